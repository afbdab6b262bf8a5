"""From log-odds to probabilities of the classes, with intercepts by which their means are the classes' proportions."""

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
from unflip.labels.noise import Channel

_NEWTON_ROUNDS = 100
_SETTLED = 1e-6  # the last step of intercepts: what a step of Newton's method leaves is less than its square
_LARGEST_STEP = 2.0  # at first: it doubles while steps are as large


def class_probabilities(logits: Array) -> Array:
    """Probabilities of each row's classes."""
    if logits.shape[1] > 2:
        return softmax(logits)
    difference = logits[:, 1] - logits[:, 0]
    return namespace(logits).stack([expit(-difference), expit(difference)]).T


@dataclass(frozen=True, eq=False)
class ClassProportions:
    """ClassProportions of the true classes, and how many rows of known class they are worth.

    Attributes
    ----------
    priors : ndarray of shape (k,)
        The proportions.
    n_rows : float
        What they are worth.
    """

    priors: FloatArray
    n_rows: float

    @classmethod
    def from_labels(
        cls, codes: Array, share: Array, noise: Channel, n_rows: float
    ) -> ClassProportions:
        """Return the noise's priors where labels tell them: worth the rows of known class that would tell as much.

        A row's label is worth the squared correlation of observed and true class (of k classes
        Cramér's V²).
        """
        priors, posterior = noise.known_priors, noise.posterior
        observed = sums_by_code(codes, share, len(posterior))
        correlation = float(observed @ ((posterior - priors) ** 2 / priors).sum(axis=1)) / (
            len(priors) - 1
        )
        return cls(priors, max(min(correlation, 1.0) * n_rows, 1.0))

    def intercepts(
        self,
        logits: Array,
        share: Array,
        start: FloatArray | None = None,
        tolerance: float = _SETTLED,
    ) -> FloatArray:
        """Offsets (the first 0) under which the mean probability of each class is its prior, give or take a few rows.

        They maximise n·(Σ π_a b_a − mean of log Σ exp(logit + b)), which is concave, less Σ(d_a −
        d̄)²/2 with d = b − log π: as if each had a standard normal distribution about the log of
        its prior, where it is if logits are those of Gaussian classes of known means. Where many
        rows are in doubt, the mean probability of a class misses its prior by (d_a − d̄)/n. Where
        hardly any is, a prior that is off by a few rows would drive intercepts into the midst of a
        class for them; so they stay between the classes.
        """
        if len(self.priors) == 2:
            log_odds = logits[:, 1] - logits[:, 0]
            return np.array(
                [
                    0.0,
                    self.intercept(
                        log_odds, share, None if start is None else float(start[1]), tolerance
                    ),
                ]
            )
        k, neutral = len(self.priors), np.log(self.priors / self.priors[0])
        pull = self._pull
        intercepts = (neutral if start is None else start).copy()
        step, largest = np.zeros(k - 1), _LARGEST_STEP
        for _ in range(_NEWTON_ROUNDS):
            probability = class_probabilities(logits + like(intercepts, logits))
            weighted = share[:, None] * probability
            mean, products = map(
                as_numpy, (namespace(logits).sum(weighted, axis=0), weighted.T @ probability)
            )
            slope = (self.priors - mean - pull @ (intercepts - neutral))[1:]
            if step @ slope < 0:  # the last step went too far
                largest = float(np.abs(step).max()) / 2
            elif np.abs(step).max() == largest:
                largest *= 2
            step = np.clip(
                np.linalg.solve((np.diag(mean) - products + pull)[1:, 1:], slope), -largest, largest
            )
            intercepts[1:] += step
            if np.abs(step).max() <= tolerance:
                break
        return intercepts

    def moved_intercepts(self, probability: Array, change: Array, share: Array) -> FloatArray:
        """Return the derivative of `intercepts` where logits change by `change`, (n, k), at probabilities (n, k)."""
        xp = namespace(probability)
        weighted = share[:, None] * probability
        mean, products = as_numpy(xp.sum(weighted, axis=0)), as_numpy(weighted.T @ probability)
        mean_change = row_products(probability, change)
        moved = as_numpy(xp.sum(weighted * change, axis=0)) - as_numpy(weighted.T @ mean_change)
        bent = np.diag(mean) - products + self._pull
        return np.append(0.0, -np.linalg.solve(bent[1:, 1:], moved[1:]))

    @property
    def _pull(self) -> FloatArray:
        """Second derivative of the prior of the intercepts, per row that the proportions are worth, (k, k)."""
        k = len(self.priors)
        return np.asarray((np.eye(k) - 1 / k) / self.n_rows)

    def intercept(
        self, log_odds: Array, share: Array, start: float | None = None, tolerance: float = _SETTLED
    ) -> float:
        """Return the intercept of the log-odds of two classes: Newton's method between bounds that close in."""
        prior, neutral = float(self.priors[1]), float(np.log(self.priors[1] / self.priors[0]))
        pull = 1 / (2 * self.n_rows)
        intercept = neutral if start is None else start
        low, high, largest = -np.inf, np.inf, _LARGEST_STEP
        for _ in range(_NEWTON_ROUNDS):
            probability = expit(log_odds + intercept)
            weighted = share * probability
            mean, square = numbers(namespace(weighted).sum(weighted), weighted @ probability)
            slope = prior - mean - pull * (intercept - neutral)
            low, high = (intercept, high) if slope > 0 else (low, intercept)
            step = slope / (mean - square + pull)
            if abs(step) > largest:
                step, largest = float(np.copysign(largest, slope)), 2 * largest
            if abs(step) > (high - low) / 2:
                step = (low + high) / 2 - intercept
            intercept += step
            if abs(step) <= tolerance:
                break
        return intercept
