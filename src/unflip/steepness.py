"""How steep log-odds of the true class are, by the observed labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from unflip._arrays import at_least, expit, like, namespace, pick, row_products
from unflip._typing import Array, FloatArray
from unflip.noise import Channel
from unflip.proportions import Proportions, class_probabilities

STEP = 0.05  # of log τ, to measure the curvature of the likelihood
_FARTHEST = 3.0  # that log τ, whose prior is a standard normal, may go
#: The smallest number with all digits.
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class Steepness:
    """The steepness τ, the standard error of its logarithm, and how unlikely the labels are under it."""

    factor: float
    error: float
    cost: float


def likeliest_steepness(
    logits: Array, codes: Array, share: Array, noise: Channel, proportions: Proportions, n_rows: float
) -> Steepness:
    """Find the steepness under which the observed labels are likeliest, each with offsets to go with it."""
    likelihood = (_likelihood_of_two if noise.n_classes == 2 else _likelihood)(logits, codes, share, noise, proportions)

    def cost(log_steepness: float) -> float:
        return log_steepness**2 / 2 - n_rows * likelihood(float(np.exp(log_steepness)))

    span = (-_FARTHEST, _FARTHEST)
    best = float(minimize_scalar(cost, bounds=span, method="bounded", options={"xatol": 1e-4}).x)
    lowest = cost(best)
    curvature = (cost(best + STEP) - 2 * lowest + cost(best - STEP)) / STEP**2
    return Steepness(float(np.exp(best)), float(1 / np.sqrt(max(curvature, 1.0))), lowest)


def _likelihood(
    logits: Array, codes: Array, share: Array, noise: Channel, proportions: Proportions
) -> Callable[[float], float]:
    """Return the mean log-likelihood of the labels as a function of the steepness."""
    xp, label_given_true = namespace(logits), pick(noise.transition.T, codes)
    offsets: FloatArray | None = None  # of the steepness before: a place to start from

    def of(steepness: float) -> float:
        nonlocal offsets
        steep = steepness * logits
        offsets = proportions.offsets(steep, share, offsets)
        observed = row_products(class_probabilities(steep + like(offsets, steep)), label_given_true)
        return float(share @ xp.log(at_least(observed, TINY)))

    return of


def _likelihood_of_two(
    logits: Array, codes: Array, share: Array, noise: Channel, proportions: Proportions
) -> Callable[[float], float]:
    """Do what `_likelihood` does with two classes, by their log-odds alone."""
    xp, log_odds = namespace(logits), logits[:, 1] - logits[:, 0]
    if_first, if_second = (pick(column, codes) for column in noise.transition)
    offset: float | None = None

    def of(steepness: float) -> float:
        nonlocal offset
        steep = steepness * log_odds
        offset = proportions.offset(steep, share, offset)
        steep += offset
        observed = if_second * expit(steep)
        observed += if_first * expit(-steep)
        return float(share @ xp.log(at_least(observed, TINY)))

    return of
