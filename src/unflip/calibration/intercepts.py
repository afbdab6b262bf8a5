"""Class probabilities from log-odds, and intercepts that make their means the class priors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unflip._utils.arrays import (
    as_numpy,
    expit,
    like,
    namespace,
    numbers,
    row_products,
    softmax,
    sums_by_code,
)
from unflip._utils.typing import Array, FloatArray
from unflip.calibration.observations import Observations
from unflip.labels.noise import Channel

#: Iterations of EM and of Newton's method at most; both stop earlier by their tolerance.
MAX_ITERATIONS = 100
# Last step of the intercepts. Newton's method converges quadratically, so the error is about 1e-12.
_TOLERANCE = 1e-6
# First limit of a Newton step, in units of log-odds. It doubles while steps reach it. Other limits
# lead to the same intercepts: with 1 and 4 they differ by rounding errors only.
_FIRST_STEP_LIMIT = 2.0


def class_probabilities(logits: Array) -> Array:
    """Return the softmax of each row of logits, (n, k)."""
    if logits.shape[1] > 2:
        return softmax(logits)
    difference = logits[:, 1] - logits[:, 0]
    return namespace(logits).stack([expit(-difference), expit(difference)]).T


@dataclass(frozen=True, eq=False)
class ClassProportions:
    """Proportions of the true classes, with an effective sample size.

    Attributes
    ----------
    priors : ndarray of shape (k,)
        The proportions.
    n_effective : float
        Number of clean labels that would determine them as precisely.
    """

    priors: FloatArray
    n_effective: float

    @classmethod
    def of(
        cls, codes: Array, share: Array, observations: Observations, noise: Channel
    ) -> ClassProportions:
        """Return the noise's priors, known in advance or inferred from the labels.

        `codes` and `share` are those of the rows that a calibration is fitted to.
        """
        if observations.priors_known:
            return cls(noise.known_priors, observations.n_effective)
        return cls.from_labels(codes, share, noise, observations.n_effective)

    @classmethod
    def from_labels(
        cls, codes: Array, share: Array, noise: Channel, n_effective: float
    ) -> ClassProportions:
        """Return the noise's priors, if they are inferred from n noisy labels.

        They are as precise as n·V² clean labels, with Cramér's V of observed and true class; for
        two classes V² is their squared correlation.
        """
        priors = noise.known_priors
        posterior = noise.posterior
        observed = sums_by_code(codes, share, len(posterior))
        chi_square = float(observed @ ((posterior - priors) ** 2 / priors).sum(axis=1))
        squared_v = chi_square / (len(priors) - 1)
        return cls(priors, max(min(squared_v, 1.0) * n_effective, 1.0))

    def intercepts(
        self,
        logits: Array,
        share: Array,
        start: FloatArray | None = None,
        tolerance: float = _TOLERANCE,
    ) -> FloatArray:
        """Return intercepts b (the first 0) that make the mean probability of each class its prior.

        They maximise n·(Σ π_a b_a − mean of log Σ exp(logit + b)) − Σ(d_a − d̄)²/2 with
        d = b − log π, which is concave. The last term is a standard normal prior about log π, the
        intercepts of Gaussian classes with known means. If many rows have intermediate
        probabilities, the mean probability of a class differs from its prior by (d_a − d̄)/n. If
        hardly any row has, the term keeps the intercepts in the gap between the classes. Without
        it, priors that are off by a few rows would move a threshold into a class.
        """
        if len(self.priors) == 2:
            binary_start = None if start is None else float(start[1])
            log_odds = logits[:, 1] - logits[:, 0]
            return np.array([0.0, self.intercept(log_odds, share, binary_start, tolerance)])
        neutral = np.log(self.priors / self.priors[0])
        intercepts = (neutral if start is None else start).copy()
        prior_curvature = self._prior_curvature
        step = np.zeros(len(self.priors) - 1)
        step_limit = _FIRST_STEP_LIMIT
        for _ in range(MAX_ITERATIONS):
            probability = class_probabilities(logits + like(intercepts, logits))
            mean, products = _moments(share[:, None] * probability, probability)
            gradient = (self.priors - mean - prior_curvature @ (intercepts - neutral))[1:]
            if step @ gradient < 0:  # the last step went too far
                step_limit = float(np.abs(step).max()) / 2
            elif np.abs(step).max() == step_limit:
                step_limit *= 2
            curvature = (np.diag(mean) - products + prior_curvature)[1:, 1:]
            step = np.clip(np.linalg.solve(curvature, gradient), -step_limit, step_limit)
            intercepts[1:] += step
            if np.abs(step).max() <= tolerance:
                break
        return intercepts

    def intercepts_derivative(self, probability: Array, change: Array, share: Array) -> FloatArray:
        """Return the derivative of `intercepts`, (k,), along a change of the logits, (n, k).

        `probability`, (n, k), are the class probabilities under these logits and intercepts.
        """
        weighted = share[:, None] * probability
        mean, products = _moments(weighted, probability)
        mean_change = row_products(probability, change)
        moved = as_numpy(namespace(probability).sum(weighted * change, axis=0))
        moved = moved - as_numpy(weighted.T @ mean_change)
        curvature = np.diag(mean) - products + self._prior_curvature
        return np.append(0.0, -np.linalg.solve(curvature[1:, 1:], moved[1:]))

    @property
    def _prior_curvature(self) -> FloatArray:
        """Second derivative of the intercepts' log-prior, divided by −n_effective, (k, k)."""
        k = len(self.priors)
        return np.asarray((np.eye(k) - 1 / k) / self.n_effective)

    def intercept(
        self,
        log_odds: Array,
        share: Array,
        start: float | None = None,
        tolerance: float = _TOLERANCE,
    ) -> float:
        """Return the intercept for the log-odds of two classes: Newton's method with bisection."""
        prior = float(self.priors[1])
        neutral = float(np.log(self.priors[1] / self.priors[0]))
        prior_curvature = 1 / (2 * self.n_effective)
        intercept = neutral if start is None else start
        low = -np.inf
        high = np.inf
        step_limit = _FIRST_STEP_LIMIT
        for _ in range(MAX_ITERATIONS):
            probability = expit(log_odds + intercept)
            weighted = share * probability
            mean, square = numbers(namespace(weighted).sum(weighted), weighted @ probability)
            gradient = prior - mean - prior_curvature * (intercept - neutral)
            if gradient > 0:
                low = intercept
            else:
                high = intercept
            step = gradient / (mean - square + prior_curvature)
            if abs(step) > step_limit:
                step = float(np.copysign(step_limit, gradient))
                step_limit *= 2
            if abs(step) > (high - low) / 2:
                step = (low + high) / 2 - intercept
            intercept += step
            if abs(step) <= tolerance:
                break
        return intercept


def _moments(weighted: Array, probability: Array) -> tuple[FloatArray, FloatArray]:
    """Return weighted means of probabilities (n, k) and of their products, (k,) and (k, k)."""
    return as_numpy(namespace(weighted).sum(weighted, axis=0)), as_numpy(weighted.T @ probability)
