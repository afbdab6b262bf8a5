"""How steep log-odds of the true class are, by the observed labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unflip._arrays import as_numpy, at_least, like, namespace, pick
from unflip._typing import Array, FloatArray
from unflip.noise import Channel
from unflip.proportions import Proportions, class_probabilities

STEP = 0.05  # of log τ, to measure the curvature of the likelihood
_FARTHEST = 3.0  # that log τ, whose prior is a standard normal, may go
_SETTLED = 1e-5  # of log τ
_MAX_ROUNDS = 50
#: The smallest number with all digits.
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class Steepness:
    """The steepness τ, the offsets that go with it, the standard error of log τ, and how unlikely the labels are."""

    factor: float
    offsets: FloatArray
    error: float
    cost: float


def likeliest_steepness(
    logits: Array, codes: Array, share: Array, noise: Channel, proportions: Proportions, n_rows: float
) -> Steepness:
    """Find the steepness under which the observed labels are likeliest, each with offsets to go with it.

    Newton's method on the derivative of the cost, between bounds that close in; its curvature at first is that of the
    squared derivatives of single rows.
    """
    cost = _Cost(logits, pick(noise.transition.T, codes), share, proportions, n_rows)
    low, high, place = -_FARTHEST, _FARTHEST, 0.0
    here = cost.at(place)
    curvature = here.curvature
    for _ in range(_MAX_ROUNDS):
        low, high = (place, high) if here.slope < 0 else (low, place)
        wanted = place - here.slope / curvature
        following = wanted if low < wanted < high else (low + high) / 2
        moved, previous = following - place, here
        place, here = following, cost.at(following, previous.offsets)
        if abs(moved) <= _SETTLED:
            break
        curvature = max((here.slope - previous.slope) / moved, here.curvature / 4)
    after, before = (cost.at(place + step, here.offsets).slope for step in (STEP, -STEP))
    error = 1 / np.sqrt(max((after - before) / (2 * STEP), 1.0))
    return Steepness(float(np.exp(place)), here.offsets, float(error), here.value)


@dataclass(frozen=True, eq=False)
class _Point:
    """The cost at one log τ, its derivative, and a first guess of its second derivative."""

    value: float
    slope: float
    curvature: float
    offsets: FloatArray


@dataclass(frozen=True, eq=False)
class _Cost:
    """(log τ)²/2 less the log-likelihood of n_rows labels, as a function of log τ."""

    logits: Array
    label_given_true: Array
    share: Array
    proportions: Proportions
    n_rows: float

    def at(self, log_steepness: float, start: FloatArray | None = None) -> _Point:
        r"""Evaluate it.

        With P = softmax(τℓ + b) and the posterior Q ∝ P·P(ỹ | a), the log-likelihood of a row has the derivative
        (Q − P)ᵀ(τℓ + db/d log τ). The offsets b make the mean of P the priors, so their derivative follows from that of
        this mean.
        """
        xp, steepness = namespace(self.logits), float(np.exp(log_steepness))
        steep = steepness * self.logits
        offsets = self.proportions.offsets(steep, self.share, start)
        probability = class_probabilities(steep + like(offsets, steep))
        steep += like(self.proportions.moved_offsets(probability, steep, self.share), steep)
        joint = probability * self.label_given_true
        observed = at_least(xp.sum(joint, axis=1), TINY)
        joint /= observed[:, None]
        joint -= probability
        joint *= steep
        each = xp.sum(joint, axis=1)
        slope, squares, likelihood = as_numpy(
            xp.stack([self.share @ each, self.share @ each**2, self.share @ xp.log(observed)])
        ).tolist()
        return _Point(
            value=log_steepness**2 / 2 - self.n_rows * likelihood,
            slope=log_steepness - self.n_rows * slope,
            curvature=1 + self.n_rows * squares,
            offsets=offsets,
        )
