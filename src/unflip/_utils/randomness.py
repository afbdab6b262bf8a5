"""Random generators from scikit-learn's `random_state`."""

from __future__ import annotations

import reprlib
from typing import Any, TypeAlias

import numpy as np

RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None


def generator(random_state: RandomState) -> np.random.Generator:
    """Return a generator for a seed, a Generator, a legacy RandomState, or None."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return seeded(random_state)


def seeded(seed: Any, *stream: int) -> np.random.Generator:
    """Return a generator for a seed or None, or for an independent stream of the seed."""
    try:
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=stream))
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state = {reprlib.repr(seed)} must be None, a whole number of at least 0, a "
            "Generator or a RandomState."
        ) from None
