"""How steep log-odds are by the labels, and the offsets by which the mean probability of a class is its prior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from unflip._arrays import as_numpy, at_least, expit, like, namespace, numbers, pick, row_products, softmax
from unflip._typing import Array, FloatArray
from unflip.noise import Channel

_NEWTON_ROUNDS = 100
_SETTLED = 1e-6  # of the offsets: what a step leaves is less than its square
_LARGEST_STEP = 2.0
_PULL = 1e-7  # of offsets, per unit of their distance
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


def likeliest_steepness(logits: Array, codes: Array, share: Array, noise: Channel, n_rows: float) -> Steepness:
    """Find the steepness under which the observed labels are likeliest."""
    likelihood = (_likelihood_of_two if noise.n_classes == 2 else _likelihood)(logits, codes, share, noise)

    def cost(log_steepness: float) -> float:
        return log_steepness**2 / 2 - n_rows * likelihood(float(np.exp(log_steepness)))

    span = (-_FARTHEST, _FARTHEST)
    best = float(minimize_scalar(cost, bounds=span, method="bounded", options={"xatol": 1e-4}).x)
    lowest = cost(best)
    curvature = (cost(best + STEP) - 2 * lowest + cost(best - STEP)) / STEP**2
    return Steepness(float(np.exp(best)), float(1 / np.sqrt(max(curvature, 1.0))), lowest)


def _likelihood(logits: Array, codes: Array, share: Array, noise: Channel) -> Callable[[float], float]:
    """Return the mean log-likelihood of the labels as a function of the steepness, each with offsets to go with it."""
    xp, label_given_true = namespace(logits), pick(noise.transition.T, codes)
    # A steepness and its offsets, which are about proportional: it says where to look for the next.
    last, at_last = 1.0, prior_offsets(logits, share, noise.known_priors)

    def of(steepness: float) -> float:
        nonlocal last, at_last
        start = at_last / last * steepness
        steep = steepness * logits
        offsets = prior_offsets(steep, share, noise.known_priors, start=start)
        last, at_last = steepness, offsets
        observed = row_products(class_probabilities(steep + like(offsets, steep)), label_given_true)
        return float(share @ xp.log(at_least(observed, TINY)))

    return of


def _likelihood_of_two(logits: Array, codes: Array, share: Array, noise: Channel) -> Callable[[float], float]:
    """Do what `_likelihood` does with two classes, by their log-odds alone."""
    xp, priors = namespace(logits), noise.known_priors
    log_odds = logits[:, 1] - logits[:, 0]
    if_first, if_second = (pick(column, codes) for column in noise.transition)
    mean, prior = float(share @ log_odds), float(priors[1])
    log_prior_odds = float(np.log(priors[1]) - np.log(priors[0]))
    neutral = log_prior_odds - mean
    last, at_last = 1.0, _offset(log_odds, share, prior, neutral, neutral)

    def of(steepness: float) -> float:
        nonlocal last, at_last
        start = at_last / last * steepness
        steep = steepness * log_odds
        offset = _offset(steep, share, prior, log_prior_odds - steepness * mean, start)
        last, at_last = steepness, offset
        steep += offset
        observed = if_second * expit(steep)
        observed += if_first * expit(-steep)
        return float(share @ xp.log(at_least(observed, TINY)))

    return of


def prior_offsets(logits: Array, share: Array, priors: FloatArray, start: FloatArray | None = None) -> FloatArray:
    """Offsets (the first 0) under which the mean probability of each class is its prior: Newton's method.

    They maximise Σ π_a b_a − mean of log Σ exp(logit + b), which is concave, less a weak pull towards the offsets of
    classes whose mean scores are alike: where no row is in doubt the mean probability hardly depends on them.
    """
    neutral = np.log(priors) - as_numpy(share @ logits)
    neutral -= neutral[0]
    offsets = neutral.copy() if start is None else start.copy()
    if len(priors) == 2:
        offsets[1] = _offset(logits[:, 1] - logits[:, 0], share, float(priors[1]), float(neutral[1]), float(offsets[1]))
        return offsets
    for _ in range(_NEWTON_ROUNDS):
        probability = class_probabilities(logits + like(offsets, logits))
        weighted = share[:, None] * probability
        mean, products = map(as_numpy, (namespace(logits).sum(weighted, axis=0), weighted.T @ probability))
        hessian = np.diag(mean) - products
        slope = (priors - mean) - _PULL * (offsets - neutral)
        step = np.linalg.solve(hessian[1:, 1:] + _PULL * np.eye(len(priors) - 1), slope[1:])
        step = np.clip(step, -_LARGEST_STEP, _LARGEST_STEP)
        offsets[1:] += step
        if np.abs(step).max() <= _SETTLED:
            break
    return offsets


def _offset(log_odds: Array, share: Array, prior: float, neutral: float, start: float) -> float:
    """Do what `prior_offsets` does with two classes."""
    offset = start
    for _ in range(_NEWTON_ROUNDS):
        probability = expit(log_odds + offset)
        weighted = share * probability
        mean, square = numbers(namespace(weighted).sum(weighted), weighted @ probability)
        slope = (prior - mean) - _PULL * (offset - neutral)
        step = slope / (mean - square + _PULL)
        step = min(max(step, -_LARGEST_STEP), _LARGEST_STEP)
        offset += step
        if abs(step) <= _SETTLED:
            break
    return offset


def class_probabilities(logits: Array) -> Array:
    """Probabilities of each row's classes."""
    if logits.shape[1] > 2:
        return softmax(logits)
    difference = logits[:, 1] - logits[:, 0]
    return namespace(logits).stack([expit(-difference), expit(difference)], axis=1)
