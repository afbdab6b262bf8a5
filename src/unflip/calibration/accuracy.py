r"""Expected accuracy on clean labels, estimated without any clean label.

If P(a | sᵢ) is calibrated, a rule that predicts class ŷᵢ is right with probability P(ŷᵢ | sᵢ).
Leave-one-out scores have the distribution of new rows' scores, so the mean of these probabilities
estimates the accuracy. Its standard error has two parts: the sample, and the slope and intercepts
of the calibration, which depend on the noise rates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace

from unflip._utils.arrays import like, numbers, own_entries, take
from unflip._utils.typing import Array, FloatArray
from unflip.calibration.binning import evenly_spaced
from unflip.calibration.intercepts import class_probabilities
from unflip.calibration.interval import Interval
from unflip.calibration.log_odds import Calibration
from unflip.calibration.observations import Observations
from unflip.calibration.slope import MAX_LOG_SLOPE
from unflip.labels.noise import Channel

# Probabilities (rows times classes) that show the effect of other log-odds to a few percent.
_ENOUGH_PROBABILITIES = 40_000
# Rows used for the same purpose if there are many classes.
_MIN_ROWS = 500


@dataclass(frozen=True)
class ExpectedAccuracy:
    """Expected accuracy and its standard error, with its 95% interval if rows were checked."""

    value: float
    error: float
    interval: Interval | None = None

    @classmethod
    def from_interval(cls, interval: Interval) -> ExpectedAccuracy:
        """Return an accuracy that checked rows calibrate."""
        return cls(interval.value, interval.std, interval)


def expected_accuracy(
    observations: Observations,
    calibration: Calibration,
    noise: Channel,
    *,
    covariance: FloatArray,
    deployed: FloatArray,
    predicted: Array,
) -> ExpectedAccuracy:
    """Return the expected accuracy of a decision rule on new rows.

    Parameters
    ----------
    observations : Observations
        Observed labels of the rows.
    calibration : Calibration
        Calibration of their scores under `noise`.
    noise : Channel
        Noise with priors.
    covariance : ndarray of shape (k + 1, k + 1)
        That of `unflip.calibration.information.calibration_covariance`.
    deployed : ndarray of shape (k,)
        Class proportions of the new rows.
    predicted : array of shape (n,)
        Predicted class of each row. The row's own label must not contribute to it.
    """
    ratio = deployed / noise.known_priors
    weights = observations.weights
    value = _weighted_accuracy(calibration.probabilities, predicted, ratio, weights)
    value = min(value, 1.0)
    sample = _representative_rows(calibration, predicted)
    logits = take(calibration.logits, sample)
    sampled_predictions = take(predicted, sample)
    sampled_weights = take(weights, sample)

    def accuracy(change: FloatArray) -> float:
        probabilities = _moved_probabilities(logits, calibration.intercepts, change)
        return _weighted_accuracy(probabilities, sampled_predictions, ratio, sampled_weights)

    # The variance of P(right) between rows and of right or wrong given P add up to that of a
    # proportion of n rows.
    variance = value * (1 - value) / observations.n_effective
    spreads, axes = np.linalg.eigh(covariance)
    for spread, axis in zip(np.maximum(spreads, 0.0), axes.T, strict=True):
        step = np.sqrt(spread) * axis
        # In both directions: probabilities of 0 and 1 do not change with a larger slope.
        variance += ((accuracy(step) - accuracy(-step)) / 2) ** 2
    # No variable between 0 and 1 has a standard deviation above 1/2.
    return ExpectedAccuracy(value, min(float(np.sqrt(variance)), 0.5))


def _representative_rows(calibration: Calibration, predicted: Array) -> Array:
    """Return the indices of rows that show the effect of other log-odds."""
    probabilities = calibration.probabilities
    n_rows = max(_ENOUGH_PROBABILITIES // probabilities.shape[1], _MIN_ROWS)
    return evenly_spaced(own_entries(probabilities, predicted), n_rows)


def _moved_probabilities(logits: Array, intercepts: FloatArray, change: FloatArray) -> Array:
    """Return the class probabilities with a change of the log-slope and of the intercepts."""
    log_slope = np.clip(change[0], -MAX_LOG_SLOPE, MAX_LOG_SLOPE)
    moved = float(np.exp(log_slope)) * logits
    return class_probabilities(moved + like(intercepts + change[1:], logits))


def _weighted_accuracy(
    probabilities: Array, predicted: Array, ratio: FloatArray, weights: Array
) -> float:
    """Return the expected share of correct predictions if class a is ratio[a] times as common."""
    weighted = probabilities * like(ratio, probabilities)
    row_totals = array_namespace(weighted).sum(weighted, axis=1)
    correct, total = numbers(weights @ own_entries(weighted, predicted), weights @ row_totals)
    return correct / total
