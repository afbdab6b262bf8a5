"""How steep log-odds of the true class are, by the observed labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unflip._arrays import TINY, at_least, like, namespace, numbers, pick
from unflip._typing import Array, FloatArray
from unflip.noise import Channel
from unflip.proportions import Proportions, class_probabilities

STEP = 0.05  # of log τ, to measure the curvature of the likelihood
_FARTHEST = 3.0  # that log τ, whose prior is a standard normal, may go
_SETTLED = 1e-5  # the last step of log τ and of offsets
_MAX_ROUNDS = 50


@dataclass(frozen=True, eq=False)
class Steepness:
    """The steepness τ that fits labels best, and the offsets that go with it."""

    factor: float
    offsets: FloatArray
    _cost: _Cost
    _curvature: float | None  # of the cost, as far as it was seen on the way

    @property
    def error(self) -> float:
        """Standard error of log τ, by the curvature of the cost."""
        curvature = self._curvature
        if curvature is None:
            place = float(np.log(self.factor))
            after, before = (self._cost.at(place + step, self.offsets).slope for step in (STEP, -STEP))
            curvature = (after - before) / (2 * STEP)
        return float(1 / np.sqrt(max(curvature, 1.0)))


def likeliest_steepness(
    logits: Array,
    codes: Array,
    share: Array,
    noise: Channel,
    proportions: Proportions,
    n_rows: float,
    *,
    start: FloatArray | None = None,
    tolerance: float = _SETTLED,
) -> Steepness:
    """Find the steepness under which the observed labels are likeliest, each with offsets to go with it.

    Newton's method on the derivative of the cost, between bounds that close in, from τ = 1 and offsets to `start` with;
    its curvature at first is that of the squared derivatives of single rows.
    """
    cost = _Cost(logits, pick(noise.transition.T, codes), share, proportions, n_rows, tolerance)
    low, high, place = -_FARTHEST, _FARTHEST, 0.0
    here, seen = cost.at(place, start), None
    curvature = here.curvature
    for _ in range(_MAX_ROUNDS):
        low, high = (place, high) if here.slope < 0 else (low, place)
        wanted = place - here.slope / curvature
        step = (wanted if low < wanted < high else (low + high) / 2) - place
        place, offsets = place + step, here.offsets + step * here.moved_offsets
        if abs(step) <= tolerance:
            break
        previous, here = here, cost.at(place, offsets)
        offsets = here.offsets
        seen = (here.slope - previous.slope) / step
        curvature = max(seen, here.curvature / 4)
    return Steepness(float(np.exp(place)), offsets, cost, seen)


@dataclass(frozen=True, eq=False)
class _Point:
    """Derivatives at one log τ: of the cost, its second one as a first guess, and of the offsets there."""

    slope: float
    curvature: float
    offsets: FloatArray
    moved_offsets: FloatArray


@dataclass(frozen=True, eq=False)
class _Cost:
    """(log τ)²/2 less the log-likelihood of n_rows labels, as a function of log τ."""

    logits: Array
    label_given_true: Array
    share: Array
    proportions: Proportions
    n_rows: float
    tolerance: float

    def at(self, log_steepness: float, start: FloatArray | None = None) -> _Point:
        r"""Evaluate it.

        With P = softmax(τℓ + b) and the posterior Q ∝ P·P(ỹ | a), the log-likelihood of a row has the derivative
        (Q − P)ᵀ(τℓ + db/d log τ). The offsets b make the mean of P the priors, so their derivative follows from that of
        this mean.
        """
        xp, steepness = namespace(self.logits), float(np.exp(log_steepness))
        steep = steepness * self.logits
        offsets = self.proportions.offsets(steep, self.share, start, self.tolerance)
        probability = class_probabilities(steep + like(offsets, steep))
        moved = self.proportions.moved_offsets(probability, steep, self.share)
        steep += like(moved, steep)
        joint = probability * self.label_given_true
        observed = at_least(xp.sum(joint, axis=1), TINY)
        joint /= observed[:, None]
        joint -= probability
        joint *= steep
        each = xp.sum(joint, axis=1)
        slope, squares = numbers(self.share @ each, self.share @ each**2)
        return _Point(
            slope=log_steepness - self.n_rows * slope,
            curvature=1 + self.n_rows * squares,
            offsets=offsets,
            moved_offsets=moved,
        )
