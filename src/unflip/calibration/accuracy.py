r"""The accuracy to expect on clean labels, without any: from probabilities of leave-one-out scores.

If P(a | sᵢ) is right, a rule that predicts class ŷᵢ is right with probability P(ŷᵢ | sᵢ), and the
mean over leave-one-out scores, which have the law of new rows' scores, is the accuracy. Its
standard error adds up what is uncertain of it: the sample, the slope of the calibration, and the
noise rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace

from unflip._utils.arrays import like, numbers, own_entries, taken
from unflip._utils.typing import Array, FloatArray
from unflip.calibration.binning import evenly
from unflip.calibration.log_odds import Calibration, recalibrated
from unflip.calibration.observations import Observations
from unflip.labels.noise import Channel

# Leave-one-out scores are sums over pairs of rows, and each pair counts twice: the variance of
# their means is twice that of independent scores if label noise dominates, up to four times else.
PAIR_VARIANCE = 2.0
_LARGEST_ERROR = 0.5  # standard deviation that a number between 0 and 1 can have
# Rows that tell what other rates would change, to a few percent of it: so many numbers, but no
# fewer rows than that.
_ENOUGH_NUMBERS, _ENOUGH_ROWS = 40_000, 500


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
    others: Sequence[Channel],
    deployed: FloatArray,
    predicted: Array,
) -> ExpectedAccuracy:
    """Return the accuracy to expect of a rule on new rows.

    Parameters
    ----------
    observations : Observations
        Observed labels of the rows.
    calibration : Calibration
        Of their scores, under `noise`.
    noise : Channel
        With priors.
    base : Channel, optional
        What `others` are moved from, where that has other priors than `noise`: scores may have
        corrected these.
    others : sequence of Channel
        Such that are one standard error away, each in a way of its own.
    deployed : ndarray of shape (k,)
        Class proportions of the new rows.
    predicted : array of shape (n,)
        Class that the rule gives to each row, without a part of the row's own label in it.
    """
    priors = noise.known_priors

    def accuracy(probabilities: Array, trained: FloatArray) -> float:
        return _share_right(probabilities, predicted, deployed / trained, observations.weights)

    probabilities = calibration.probabilities
    value = min(accuracy(probabilities, priors), 1.0)
    # Both sides are tried: probabilities of 0 and 1 do not change with a steeper slope.
    steeper, flatter = (
        accuracy(calibration.with_slope_moved(by, priors).probabilities, priors)
        for by in (np.sqrt(PAIR_VARIANCE), -np.sqrt(PAIR_VARIANCE))
    )
    enough = max(_ENOUGH_NUMBERS // noise.n_classes, _ENOUGH_ROWS)
    some = evenly(own_entries(probabilities, predicted), enough)
    few, log_odds, of_few = (
        observations.subset(some),
        taken(calibration.log_odds, some),
        taken(predicted, some),
    )

    def under(other: Channel) -> float:
        return _share_right(
            recalibrated(log_odds, few, other), of_few, deployed / other.known_priors, few.weights
        )

    here = under(noise if base is None else base) if others else value
    moved = [under(other) - here for other in others]
    # Rows differ in P(right), and whether each is right is a draw of its own: in all, that of a
    # share of n rows.
    sampling = value * (1 - value) / observations.n_effective
    doubt = sum(change**2 for change in ((steeper - flatter) / 2, *moved))
    return ExpectedAccuracy(value, min(float(np.sqrt(sampling + doubt)), _LARGEST_ERROR))


def _share_right(
    probabilities: Array, predicted: Array, ratio: FloatArray, weights: Array
) -> float:
    """Return the expected share of right predictions; rows stand for more or fewer new ones, by their class's ratio."""
    weighted = probabilities * like(ratio, probabilities)
    of_rows = array_namespace(weighted).sum(weighted, axis=1)
    right, total = numbers(weights @ own_entries(weighted, predicted), weights @ of_rows)
    return right / total
