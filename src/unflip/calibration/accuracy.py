r"""Expected accuracy on clean labels, estimated without any clean label.

If P(a | sᵢ) is calibrated, a rule that predicts class ŷᵢ is right with probability P(ŷᵢ | sᵢ).
Leave-one-out scores have the distribution of new rows' scores, so the mean of these probabilities
estimates the accuracy. Its standard error has three parts: the sample, the slope of the
calibration, and the noise rates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace

from unflip._utils.arrays import like, numbers, own_entries, take
from unflip._utils.typing import Array, FloatArray
from unflip.calibration.binning import evenly_spaced
from unflip.calibration.log_odds import Calibration, recalibrated
from unflip.calibration.observations import Observations
from unflip.labels.noise import Channel

#: Variance of a mean of leave-one-out scores, relative to that of independent scores. They are sums
#: over pairs of rows and each pair counts twice: the factor is 2 if label noise dominates, and at
#: most 4.
PAIR_VARIANCE = 2.0
# Probabilities (rows times classes) that show the effect of other noise rates to a few percent.
_ENOUGH_PROBABILITIES = 40_000
# Rows used for the same purpose if there are many classes.
_MIN_ROWS = 500


@dataclass(frozen=True)
class ExpectedAccuracy:
    """Expected accuracy and its standard error."""

    value: float
    error: float


def expected_accuracy(
    observations: Observations,
    calibration: Calibration,
    noise: Channel,
    *,
    base: Channel | None = None,
    alternatives: Sequence[Channel],
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
    base : Channel, optional
        Noise that `alternatives` are compared with; by default `noise`. It differs if the priors of
        `noise` were corrected by the scores.
    alternatives : sequence of Channel
        Noise models that are one standard error away, each in a different direction.
    deployed : ndarray of shape (k,)
        Class proportions of the new rows.
    predicted : array of shape (n,)
        Predicted class of each row. The row's own label must not contribute to it.
    """
    priors = noise.known_priors

    def accuracy(probabilities: Array) -> float:
        return _weighted_accuracy(probabilities, predicted, deployed / priors, observations.weights)

    value = min(accuracy(calibration.probabilities), 1.0)
    # In both directions: probabilities of 0 and 1 do not change with a larger slope.
    n_errors = np.sqrt(PAIR_VARIANCE)
    steeper = accuracy(calibration.with_slope_moved(n_errors, priors).probabilities)
    flatter = accuracy(calibration.with_slope_moved(-n_errors, priors).probabilities)
    changes = [(steeper - flatter) / 2]
    if alternatives:
        accuracy_under = _recalibrated_accuracy(observations, calibration, deployed, predicted)
        unmoved = accuracy_under(noise if base is None else base)
        changes += [accuracy_under(alternative) - unmoved for alternative in alternatives]
    # The variance of P(right) between rows and of right or wrong given P add up to that of a
    # proportion of n rows.
    variance = value * (1 - value) / observations.n_effective
    variance += sum(change**2 for change in changes)
    # No variable between 0 and 1 has a standard deviation above 1/2.
    return ExpectedAccuracy(value, min(float(np.sqrt(variance)), 0.5))


def _recalibrated_accuracy(
    observations: Observations, calibration: Calibration, deployed: FloatArray, predicted: Array
) -> Callable[[Channel], float]:
    """Return the expected accuracy as a function of the noise, from a sample of the rows."""
    n_classes = len(deployed)
    n_rows = max(_ENOUGH_PROBABILITIES // n_classes, _MIN_ROWS)
    sample = evenly_spaced(own_entries(calibration.probabilities, predicted), n_rows)
    sampled = observations.subset(sample)
    log_odds = take(calibration.log_odds, sample)
    sampled_predictions = take(predicted, sample)

    def accuracy_under(noise: Channel) -> float:
        probabilities = recalibrated(log_odds, sampled, noise)
        ratio = deployed / noise.known_priors
        return _weighted_accuracy(probabilities, sampled_predictions, ratio, sampled.weights)

    return accuracy_under


def _weighted_accuracy(
    probabilities: Array, predicted: Array, ratio: FloatArray, weights: Array
) -> float:
    """Return the expected share of correct predictions if class a is ratio[a] times as common."""
    weighted = probabilities * like(ratio, probabilities)
    row_totals = array_namespace(weighted).sum(weighted, axis=1)
    correct, total = numbers(weights @ own_entries(weighted, predicted), weights @ row_totals)
    return correct / total
