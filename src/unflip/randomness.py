"""Random numbers from whatever scikit-learn's users give as a seed."""

from __future__ import annotations

import numpy as np

from unflip._typing import RandomState


def generator(random_state: RandomState) -> np.random.Generator:
    """Return a generator for a seed, a Generator, a legacy RandomState, or None."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)
