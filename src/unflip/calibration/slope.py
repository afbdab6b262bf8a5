"""How steep log-odds of the true class are, by the observed labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unflip._utils.arrays import TINY, at_least, like, namespace, numbers, pick
from unflip._utils.typing import Array, FloatArray
from unflip.calibration.intercepts import ClassProportions, class_probabilities
from unflip.labels.noise import Channel

STEP = 0.05  # of log τ, to measure the curvature of the likelihood
_FARTHEST = 3.0  # that log τ, whose prior is a standard normal, may go
_SETTLED = 1e-5  # the last step of log τ and of intercepts
_MAX_ROUNDS = 50


@dataclass(frozen=True, eq=False)
class SlopeFit:
    """The slope τ that fits labels best, and the intercepts that go with it."""

    factor: float
    intercepts: FloatArray
    _cost: _Cost
    _curvature: float | None  # of the cost, as far as it was seen on the way

    @property
    def error(self) -> float:
        """Standard error of log τ, by the curvature of the cost."""
        curvature = self._curvature
        if curvature is None:
            place = float(np.log(self.factor))
            after, before = (
                self._cost.at(place + step, self.intercepts).derivative for step in (STEP, -STEP)
            )
            curvature = (after - before) / (2 * STEP)
        return float(1 / np.sqrt(max(curvature, 1.0)))


def fit_slope(
    logits: Array,
    codes: Array,
    share: Array,
    noise: Channel,
    proportions: ClassProportions,
    n_rows: float,
    *,
    start: FloatArray | None = None,
    tolerance: float = _SETTLED,
) -> SlopeFit:
    """Find the slope under which the observed labels are likeliest, each with intercepts to go with it.

    Newton's method on the derivative of the cost, between bounds that close in, from τ = 1 and the
    intercepts `start`; its curvature at first is that of the squared derivatives of single
    rows.
    """
    cost = _Cost(logits, pick(noise.transition.T, codes), share, proportions, n_rows, tolerance)
    low, high, place = -_FARTHEST, _FARTHEST, 0.0
    here, seen = cost.at(place, start), None
    curvature = here.curvature
    for _ in range(_MAX_ROUNDS):
        low, high = (place, high) if here.derivative < 0 else (low, place)
        wanted = place - here.derivative / curvature
        step = (wanted if low < wanted < high else (low + high) / 2) - place
        place, intercepts = place + step, here.intercepts + step * here.moved_intercepts
        if abs(step) <= tolerance:
            break
        previous, here = here, cost.at(place, intercepts)
        intercepts = here.intercepts
        seen = (here.derivative - previous.derivative) / step
        curvature = max(seen, here.curvature / 4)
    return SlopeFit(float(np.exp(place)), intercepts, cost, seen)


@dataclass(frozen=True, eq=False)
class _Point:
    """Derivatives at one log τ: of the cost, its second one as a first guess, and of the intercepts there."""

    derivative: float
    curvature: float
    intercepts: FloatArray
    moved_intercepts: FloatArray


@dataclass(frozen=True, eq=False)
class _Cost:
    """(log τ)²/2 less the log-likelihood of n_rows labels, as a function of log τ."""

    logits: Array
    label_given_true: Array
    share: Array
    proportions: ClassProportions
    n_rows: float
    tolerance: float

    def at(self, log_slope: float, start: FloatArray | None = None) -> _Point:
        r"""Evaluate it.

        With P = softmax(τℓ + b) and the posterior Q ∝ P·P(ỹ | a), the log-likelihood of a row has
        the derivative (Q − P)ᵀ(τℓ + db/d log τ). The intercepts b make the mean of P the priors, so
        their derivative follows from that of this mean.
        """
        xp, slope = namespace(self.logits), float(np.exp(log_slope))
        scaled = slope * self.logits
        intercepts = self.proportions.intercepts(scaled, self.share, start, self.tolerance)
        probability = class_probabilities(scaled + like(intercepts, scaled))
        moved = self.proportions.moved_intercepts(probability, scaled, self.share)
        scaled += like(moved, scaled)
        joint = probability * self.label_given_true
        observed = at_least(xp.sum(joint, axis=1), TINY)
        joint /= observed[:, None]
        joint -= probability
        joint *= scaled
        each = xp.sum(joint, axis=1)
        derivative, squares = numbers(self.share @ each, self.share @ each**2)
        return _Point(
            derivative=log_slope - self.n_rows * derivative,
            curvature=1 + self.n_rows * squares,
            intercepts=intercepts,
            moved_intercepts=moved,
        )
