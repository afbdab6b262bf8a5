r"""Combine the log-odds of two classifiers by the likelihood of noisy labels.

With out-of-sample log-odds K and L of two classifiers,

.. math:: P(y \mid x) = \mathrm{softmax}(aK + bL + c), \qquad
          P(\tilde y \mid x) = \sum_a P(y = a \mid x)\, T_{a \tilde y},

and the weights a and b ≥ 0 and the intercepts c are those under which the observed labels are
likeliest, with a weak prior. L is used if the labels support it significantly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, OptimizeResult, minimize

from unflip._utils.arrays import TINY, pick, softmax
from unflip._utils.typing import FloatArray
from unflip.calibration.log_odds import ROUNDING, recalibration
from unflip.calibration.observations import Observations
from unflip.labels.noise import Channel

# Gain in the log posterior density from which L is used: half of the 95% quantile of χ²₁. It is at
# most the 2.5% level of a likelihood-ratio test of b = 0 against b > 0.
_LEAST_GAIN = 1.92
# Bound of the intercepts, as log-odds.
_LARGEST_INTERCEPT = 20.0


@dataclass(frozen=True)
class Combination:
    """Weights of the log-odds K and L of two classifiers.

    Attributes
    ----------
    first, second : float
        The weights a and b, for K and L on their own scales.
    share : float
        Share of L in aK + bL: b·sd(L) / (a·sd(K) + b·sd(L)). 0 if K is used as it is.
    """

    first: float = 1.0
    second: float = 0.0
    share: float = 0.0

    @classmethod
    def fit(
        cls, first: FloatArray, second: FloatArray, observations: Observations, noise: Channel
    ) -> Combination:
        """Return the weights under which the labels are likeliest.

        Parameters
        ----------
        first : ndarray of shape (n, k)
            Log-odds K, in which the label of the row has no part. They are calibrated for the true
            class: the prior of a is normal about 1.
        second : ndarray of shape (n, k)
            Log-odds L, on any scale. They are calibrated on their own first. The prior of b is
            normal about 0; both have a standard deviation of 1.
        observations : Observations
            Observed labels.
        noise : Channel
            Noise of the labels.
        """
        share = observations.shares
        centred = _centred(second)
        unit = _spread(centred, share)
        if unit <= ROUNDING * np.abs(second).max():
            return cls()
        slope = float(recalibration(centred / unit, observations, noise).model.slopes[1, 1])
        calibrated = slope * (centred / unit)
        problem = _Problem(_centred(first), calibrated, observations, noise)
        alone = problem.solution(largest_weight=0.0)
        both = problem.solution(largest_weight=np.inf)
        if alone.fun - both.fun < _LEAST_GAIN:
            return cls()
        a, b = both.x[:2].tolist()
        part = b * _spread(calibrated, share)
        whole = a * _spread(_centred(first), share) + part
        return cls(a, b * slope / unit, part / whole)

    def log_odds(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Return aK + bL of rows, (n, k)."""
        if self.share == 0:
            return first
        return self.first * _centred(first) + self.second * _centred(second)


class _Problem:
    """The log posterior density of the weights and intercepts."""

    def __init__(
        self, first: FloatArray, second: FloatArray, observations: Observations, noise: Channel
    ) -> None:
        self._first = first
        self._second = second
        self._counts = observations.n_effective * observations.shares
        self._likelihoods = pick(noise.transition.T, observations.codes)

    def solution(self, largest_weight: float) -> OptimizeResult:
        """Return the parameters (a, b, c) of the largest density, with a bound of b."""
        n_intercepts = self._first.shape[1] - 1
        limits = np.full(n_intercepts, _LARGEST_INTERCEPT)
        bounds = Bounds([0.0, 0.0, *-limits], [np.inf, largest_weight, *limits])
        start = np.zeros(2 + n_intercepts)
        start[0] = 1.0
        return minimize(self._cost, start, jac=True, method="L-BFGS-B", bounds=bounds)

    def _cost(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        a, b = parameters[:2]
        logits = a * self._first + b * self._second
        logits[:, 1:] += parameters[2:]
        probabilities = softmax(logits)
        joint = probabilities * self._likelihoods
        likelihood = np.maximum(joint.sum(axis=1), TINY)
        excess = self._counts[:, None] * (probabilities - joint / likelihood[:, None])
        gradient = np.array(
            [
                (excess * self._first).sum() + a - 1,
                (excess * self._second).sum() + b,
                *excess[:, 1:].sum(axis=0),
            ]
        )
        log_prior = -((a - 1) ** 2 + b**2) / 2
        return -float(self._counts @ np.log(likelihood)) - log_prior, gradient


def _centred(log_odds: FloatArray) -> FloatArray:
    """Return log-odds whose mean over the classes is 0."""
    return np.asarray(log_odds - log_odds.mean(axis=1, keepdims=True))


def _spread(log_odds: FloatArray, share: FloatArray) -> float:
    """Return the root mean square of the log-odds about their means over the rows."""
    centred = log_odds - share @ log_odds
    return float(np.sqrt(share @ (centred**2).sum(axis=1)))
