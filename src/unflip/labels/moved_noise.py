"""Noise models with another noise rate of one class, for sensitivity analyses."""

from __future__ import annotations

import numpy as np

from unflip._utils.typing import FloatArray
from unflip.labels.noise import NoiseModel, shares_of_wrong_labels


def moved_rate(
    noise: NoiseModel, a: int, change: float, observed: FloatArray | None
) -> NoiseModel | None:
    """Return the noise model with the rate of class a changed, or None if it is invalid.

    Wrong labels keep their shares. `observed` are the observed class proportions that the priors
    follow, None if the priors are known.
    """
    transition = noise.transition.copy()
    rate = float(np.clip(1 - transition[a, a] + change, 0.0, 1.0))
    transition[a] = rate * shares_of_wrong_labels(transition)[a]
    transition[a, a] = 1 - rate
    try:
        model = NoiseModel(transition)
        if observed is None:
            return model.with_priors(noise.known_priors)
        return model.with_observed(observed)
    except ValueError:
        return None
