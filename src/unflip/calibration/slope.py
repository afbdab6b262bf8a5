"""The slope τ of the log-odds, by maximum likelihood of the observed labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unflip._utils.arrays import TINY, at_least, like, namespace, numbers, pick
from unflip._utils.typing import Array, FloatArray
from unflip.calibration.intercepts import ClassProportions, class_probabilities
from unflip.labels.noise import Channel

#: Step of log τ for finite differences, and half the bracket around a rough optimum.
LOG_SLOPE_STEP = 0.05
#: Largest |log τ|: three standard deviations of its standard normal prior.
MAX_LOG_SLOPE = 3.0
# Last step of log τ and of the intercepts.
_TOLERANCE = 1e-5


@dataclass(frozen=True, eq=False)
class SlopeFit:
    """The maximum-likelihood slope τ, and its intercepts."""

    factor: float
    intercepts: FloatArray


def fit_slope(
    logits: Array,
    codes: Array,
    share: Array,
    noise: Channel,
    proportions: ClassProportions,
    n_effective: float,
    *,
    start: SlopeFit | None = None,
    tolerance: float = _TOLERANCE,
) -> SlopeFit:
    """Return the slope under which the observed labels are likeliest, and its intercepts.

    Newton's method on the derivative of the cost with bisection, from `start` or τ = 1. The first
    curvature is the sum of the squared derivatives of single rows.
    """
    label_given_true = pick(noise.transition.T, codes)
    cost = _Cost(logits, label_given_true, share, proportions, n_effective, tolerance)
    low = -MAX_LOG_SLOPE
    high = MAX_LOG_SLOPE
    log_slope = 0.0 if start is None else float(np.log(start.factor))
    point = cost.at(log_slope, None if start is None else start.intercepts)
    curvature = point.curvature
    for _ in range(50):  # more than bisection alone would take
        if point.derivative < 0:
            low = log_slope
        else:
            high = log_slope
        newton = log_slope - point.derivative / curvature
        following = newton if low < newton < high else (low + high) / 2
        step = following - log_slope
        log_slope += step
        intercepts = point.intercepts + step * point.intercepts_derivative
        if abs(step) <= tolerance:
            break
        previous = point
        point = cost.at(log_slope, intercepts)
        intercepts = point.intercepts
        measured_curvature = (point.derivative - previous.derivative) / step
        curvature = max(measured_curvature, point.curvature / 4)
    return SlopeFit(float(np.exp(log_slope)), intercepts)


@dataclass(frozen=True, eq=False)
class _Point:
    """The cost at one log τ: its derivative, a rough curvature, and the intercepts."""

    derivative: float
    curvature: float
    intercepts: FloatArray
    intercepts_derivative: FloatArray


@dataclass(frozen=True, eq=False)
class _Cost:
    """(log τ)²/2 minus the log-likelihood of n_effective labels, as a function of log τ."""

    logits: Array
    label_given_true: Array
    share: Array
    proportions: ClassProportions
    n_effective: float
    tolerance: float

    def at(self, log_slope: float, start: FloatArray | None = None) -> _Point:
        r"""Evaluate the derivatives.

        With P = softmax(τℓ + b) and the posterior Q ∝ P·P(ỹ | a), the log-likelihood of a row has
        the derivative (Q − P)ᵀ(τℓ + db/d log τ). The intercepts b make the mean of P the priors, so
        their derivative follows from that of this mean.
        """
        xp = namespace(self.logits)
        scaled = float(np.exp(log_slope)) * self.logits
        intercepts = self.proportions.intercepts(scaled, self.share, start, self.tolerance)
        probability = class_probabilities(scaled + like(intercepts, scaled))
        moved = self.proportions.intercepts_derivative(probability, scaled, self.share)
        scaled += like(moved, scaled)
        gain = probability * self.label_given_true
        observed = at_least(xp.sum(gain, axis=1), TINY)
        gain /= observed[:, None]
        gain -= probability
        gain *= scaled
        derivatives = xp.sum(gain, axis=1)
        mean, mean_square = numbers(self.share @ derivatives, self.share @ derivatives**2)
        return _Point(
            derivative=log_slope - self.n_effective * mean,
            curvature=1 + self.n_effective * mean_square,
            intercepts=intercepts,
            intercepts_derivative=moved,
        )
