r"""From scores to probabilities of the TRUE label: two classes fitted to leave-one-out scores.

Within a true class the scores of new rows are close to Gaussian (the paper's Theorem), so the log-odds of the true
label are linear in the score s:

.. math:: \log\frac{P(y=+ \mid s)}{P(y=- \mid s)} = \frac{m_+ - m_-}{\sigma^2}\Bigl(s - \frac{m_+ + m_-}2\Bigr)
          + \log\frac{\pi_+}{\pi_-}.

Leave-one-out scores have the law of new rows' scores and do not see their own row's label, so given the noise model the
observed label ỹᵢ acts as a prior P(y | ỹᵢ) of its own for each row. There are two ways to (m₋, m₊, σ²):

* by the shape of the scores: maximum likelihood of the Gaussian mixture, by EM with the label posteriors held fixed;
* by the labels alone: the mean score of an observed class is a known mixture of m₋ and m₊, so m = posterior⁻¹ E[s | ỹ].

The first is precise where scores are Gaussian and is led astray where they are not; the second does not mind, but is
noisy, and leaves no variance within the classes when it overshoots. The one under which the observed labels are
likelier is used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from unflip._typing import FloatArray, IntArray
from unflip.noise import NoiseModel

_TOLERANCE = 1e-10
_MAX_ROUNDS = 10_000
# In units of the scores' own spread. No log-odds fall with the score: scores that show no signal keep their order and a
# probability close to the prior.
_SMALLEST_SLOPE = 1e-3
# A spread below this share of the scores' size is rounding error.
_ROUNDING = 1e3 * np.finfo(float).eps
# Class means by labels that leave less than this share of the variance by shape have overshot.
_PLAUSIBLE_VARIANCE = 0.5


@dataclass(frozen=True)
class LinearReadout:
    """Log-odds of the true label, slope·score + offset."""

    slope: float
    offset: float

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Log-odds that the true label is positive."""
        return self.slope * scores + self.offset


@dataclass(frozen=True)
class _Classes:
    """Means and common variance of the two true classes' scores."""

    mean_neg: float
    mean_pos: float
    variance: float

    def readout(self, prior_log_odds: float) -> LinearReadout:
        slope = max((self.mean_pos - self.mean_neg) / self.variance, _SMALLEST_SLOPE)
        return LinearReadout(slope, prior_log_odds - slope * (self.mean_neg + self.mean_pos) / 2)


def gaussian_readout(
    scores: FloatArray, codes: IntArray, weights: FloatArray, noise: NoiseModel, *, n_rows: float
) -> LinearReadout:
    """Fit the log-odds of the true label to label-free leave-one-out scores.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        One score per row, without a trace of the row's own label.
    codes : ndarray of shape (n,)
        Observed classes, 0 or 1.
    weights : ndarray of shape (n,)
        Weights of the rows.
    noise : NoiseModel
        With priors; its posterior P(y | ỹ) is held fixed.
    n_rows : float
        How many independent rows the scores stand for. The variance within a class is taken to be at least a share
        1/n_rows of the total, so that a few rows which happen to fall apart are not read as certainty.
    """
    share = weights / weights.sum()
    centre = float(share @ scores)
    spread = float(np.sqrt(share @ (scores - centre) ** 2))
    prior_log_odds = float(np.log(noise.known_priors[1] / noise.known_priors[0]))
    if spread <= _ROUNDING * np.abs(scores).max():
        return LinearReadout(0.0, prior_log_odds)
    standard = (scores - centre) / spread
    by_shape = _by_shape(standard, codes, share, noise, 1 / n_rows)
    by_labels = _by_labels(standard, codes, share, noise)
    readout = by_shape.readout(prior_log_odds)
    if by_labels.variance >= max(_PLAUSIBLE_VARIANCE * by_shape.variance, 1 / n_rows):
        candidates = (readout, by_labels.readout(prior_log_odds))
        readout = max(candidates, key=lambda candidate: _label_likelihood(candidate(standard), codes, share, noise))
    return LinearReadout(readout.slope / spread, readout.offset - readout.slope * centre / spread)


def symmetric_readout(
    scores: FloatArray, codes: IntArray, weights: FloatArray, noise: NoiseModel, *, n_rows: float
) -> LinearReadout:
    """Fit log-odds that change sign where the score does: class means ±m, as in the paper's model, and no prior.

    Parameters are those of `gaussian_readout`.
    """
    spread = float(np.sqrt(np.average(scores**2, weights=weights)))
    if spread == 0:
        return LinearReadout(_SMALLEST_SLOPE, 0.0)
    standard = scores / spread
    label_log_odds = _label_log_odds(codes, noise)
    slope = 0.0
    for _ in range(_MAX_ROUNDS):
        signs = 2 * expit(label_log_odds + slope * standard) - 1
        mean = float(np.average(signs * standard, weights=weights))
        previous, slope = slope, 2 * mean / max(1 - mean**2, 1 / n_rows)
        if abs(slope - previous) <= _TOLERANCE * (1 + abs(slope)):
            break
    return LinearReadout(max(slope, _SMALLEST_SLOPE) / spread, 0.0)


def _by_shape(
    standard: FloatArray, codes: IntArray, share: FloatArray, noise: NoiseModel, smallest_variance: float
) -> _Classes:
    """Maximum likelihood of the mixture by EM, from standardised scores."""
    label_log_odds = _label_log_odds(codes, noise)
    responsibility = expit(label_log_odds)
    current = np.zeros(3)
    for _ in range(_MAX_ROUNDS):
        positive = share * responsibility
        pi_pos = float(positive.sum())
        moment_pos = float(positive @ standard)
        mean_pos, mean_neg = moment_pos / pi_pos, -moment_pos / (1 - pi_pos)
        between = pi_pos * mean_pos**2 + (1 - pi_pos) * mean_neg**2
        variance = max(1 - between, smallest_variance)
        previous, current = current, np.array([mean_neg, mean_pos, variance])
        if np.abs(current - previous).max() <= _TOLERANCE:
            break
        slope = (mean_pos - mean_neg) / variance
        responsibility = expit(label_log_odds + slope * (standard - (mean_pos + mean_neg) / 2))
    return _Classes(mean_neg, mean_pos, variance)


def _by_labels(standard: FloatArray, codes: IntArray, share: FloatArray, noise: NoiseModel) -> _Classes:
    """Class means from the mean score of each observed class; the variance is what they leave, or less than nothing."""
    observed = np.bincount(codes, share)
    means = np.linalg.solve(noise.posterior, np.bincount(codes, share * standard) / observed)
    true = observed @ noise.posterior  # shares of the true classes among these rows; their mean score is 0
    return _Classes(float(means[0]), float(means[1]), float(1 - true @ means**2))


def _label_likelihood(log_odds: FloatArray, codes: IntArray, share: FloatArray, noise: NoiseModel) -> float:
    """Mean log-likelihood of the observed labels when the true ones have these log-odds."""
    positive = expit(log_odds)
    observed = positive * noise.transition[1, codes] + (1 - positive) * noise.transition[0, codes]
    return float(share @ np.log(np.maximum(observed, np.finfo(float).tiny)))


def _label_log_odds(codes: IntArray, noise: NoiseModel) -> FloatArray:
    log_odds: FloatArray = logit(noise.posterior[:, 1])[codes]
    return log_odds
