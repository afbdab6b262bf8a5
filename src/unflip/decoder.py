r"""From scores to probabilities of the TRUE label: two Gaussians fitted to leave-one-out scores.

The scores of new rows are Gaussian within a true class (the paper's Theorem), so the log-odds of the true label are
linear in the score s:

.. math:: \log\frac{P(y=+ \mid s)}{P(y=- \mid s)} = \frac{m_+ - m_-}{\sigma^2}\Bigl(s - \frac{m_+ + m_-}2\Bigr)
          + \log\frac{\pi_+}{\pi_-}.

Leave-one-out scores have the law of new rows' scores and do not see their own row's label. So given the noise model the
observed label ỹᵢ acts as a prior P(y | ỹᵢ) of its own for each row, and (m₋, m₊, σ²) follow by maximum likelihood: EM
with those label posteriors held fixed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from unflip._typing import FloatArray, IntArray
from unflip.noise import NoiseModel

_TOLERANCE = 1e-10
_MAX_ROUNDS = 10_000
# In units of the scores' own spread: no log-odds steeper than a variance of 1e-6 allows, and none that falls with
# the score. Scores that show no signal then keep their order and a probability close to the prior.
_SMALLEST_VARIANCE = 1e-6
_SMALLEST_SLOPE = 1e-3


@dataclass(frozen=True)
class LinearReadout:
    """Log-odds of the true label, slope·score + offset."""

    slope: float
    offset: float

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Log-odds that the true label is positive."""
        return self.slope * scores + self.offset


def gaussian_readout(scores: FloatArray, codes: IntArray, weights: FloatArray, noise: NoiseModel) -> LinearReadout:
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
    """
    centre = float(np.average(scores, weights=weights))
    spread = float(np.sqrt(np.average((scores - centre) ** 2, weights=weights)))
    prior_log_odds = float(np.log(noise.known_priors[1] / noise.known_priors[0]))
    if spread == 0:
        return LinearReadout(0.0, prior_log_odds)
    standard = (scores - centre) / spread
    mean_neg, mean_pos, variance = _class_moments(standard, _label_log_odds(codes, noise), weights)
    slope = max((mean_pos - mean_neg) / variance, _SMALLEST_SLOPE)
    offset = prior_log_odds - slope * (mean_neg + mean_pos) / 2
    return LinearReadout(slope / spread, offset - slope * centre / spread)


def symmetric_readout(scores: FloatArray, codes: IntArray, weights: FloatArray, noise: NoiseModel) -> LinearReadout:
    """Fit log-odds that change sign where the score does: class means ±m, as in the paper's model, no prior."""
    spread = float(np.sqrt(np.average(scores**2, weights=weights)))
    if spread == 0:
        return LinearReadout(_SMALLEST_SLOPE, 0.0)
    standard = scores / spread
    label_log_odds = _label_log_odds(codes, noise)
    slope = 0.0
    for _ in range(_MAX_ROUNDS):
        signs = 2 * expit(label_log_odds + slope * standard) - 1
        mean = float(np.average(signs * standard, weights=weights))
        previous, slope = slope, 2 * mean / max(1 - mean**2, _SMALLEST_VARIANCE)
        if abs(slope - previous) <= _TOLERANCE * (1 + abs(slope)):
            break
    return LinearReadout(max(slope, _SMALLEST_SLOPE) / spread, 0.0)


def _label_log_odds(codes: IntArray, noise: NoiseModel) -> FloatArray:
    log_odds: FloatArray = logit(noise.posterior[:, 1])[codes]
    return log_odds


def _class_moments(standard: FloatArray, label_log_odds: FloatArray, weights: FloatArray) -> tuple[float, float, float]:
    """EM for the two means and the common variance of standardised scores."""
    share = weights / weights.sum()
    current = np.zeros(3)
    responsibility = expit(label_log_odds)
    for _ in range(_MAX_ROUNDS):
        positive = share * responsibility
        pi_pos = float(positive.sum())
        moment_pos = float(positive @ standard)
        mean_pos, mean_neg = moment_pos / pi_pos, -moment_pos / (1 - pi_pos)
        between = pi_pos * mean_pos**2 + (1 - pi_pos) * mean_neg**2
        variance = max(1 - between, _SMALLEST_VARIANCE)
        previous, current = current, np.array([mean_neg, mean_pos, variance])
        if np.abs(current - previous).max() <= _TOLERANCE:
            break
        slope = (mean_pos - mean_neg) / variance
        responsibility = expit(label_log_odds + slope * (standard - (mean_pos + mean_neg) / 2))
    return mean_neg, mean_pos, variance
