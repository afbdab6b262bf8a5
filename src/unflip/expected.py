r"""The accuracy to expect on clean labels, without any: from probabilities of leave-one-out scores.

If P(a | sᵢ) is right, a rule that predicts class ŷᵢ is right with probability P(ŷᵢ | sᵢ), and the mean over
leave-one-out scores, which have the law of new rows' scores, is the accuracy. Its standard error adds up what is
uncertain of it: the sample, the steepness of the read-out, and the noise rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from array_api_compat import array_namespace

from unflip._arrays import like, numbers, own_entries, taken
from unflip._typing import Array, FloatArray
from unflip.decoder import Reading, recalibrated
from unflip.noise import Channel, NoiseModel
from unflip.pooling import evenly

_PAIRS = float(np.sqrt(2))
_LARGEST_ERROR = 0.5  # standard deviation that a number between 0 and 1 can have
# Rows that tell what other rates would change, to a few percent of it: so many numbers, but no fewer rows than that.
_ENOUGH_NUMBERS, _ENOUGH_ROWS = 40_000, 500


@dataclass(frozen=True)
class ExpectedAccuracy:
    """Expected accuracy and its standard error."""

    value: float
    error: float


@dataclass(frozen=True, eq=False)
class ObservedRows:
    """What was observed of rows.

    Attributes
    ----------
    codes, weights : array of shape (n,)
        Observed class and weight of each row.
    n_rows : float
        How many independent rows they stand for.
    priors_known : bool
        That of `unflip.decoder.gaussian_reading`.
    """

    codes: Array
    weights: Array
    n_rows: float
    priors_known: bool = False

    def some(self, indices: Array) -> ObservedRows:
        """Return some of the rows, which stand for as many as all."""
        return replace(self, codes=taken(self.codes, indices), weights=taken(self.weights, indices))

    def read(self, logits: Array, noise: Channel) -> Array:
        """P(true class | row) under a noise model, by given logits."""
        return recalibrated(logits, self.codes, self.weights, noise, n_rows=self.n_rows, priors_known=self.priors_known)


def expected_accuracy(
    rows: ObservedRows,
    reading: Reading,
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
    rows : ObservedRows
        The rows.
    reading : Reading
        Of their scores, under `noise`.
    noise : Channel
        With priors.
    base : Channel, optional
        What `others` are moved from, where that has other priors than `noise`: scores may have corrected these.
    others : sequence of Channel
        Such that are one standard error away, each in a way of its own.
    deployed : ndarray of shape (k,)
        Class proportions of the new rows.
    predicted : array of shape (n,)
        Class that the rule gives to each row, without a part of the row's own label in it.
    """
    priors = noise.known_priors

    def accuracy(probabilities: Array, trained: FloatArray) -> float:
        return _share_right(probabilities, predicted, deployed / trained, rows.weights)

    probabilities = reading.probabilities
    value = min(accuracy(probabilities, priors), 1.0)
    # A label counts twice, as its row's own and through the scores of the others. Sums over pairs of rows vary more
    # than sums over rows do, by a factor between √2 (noisy labels) and 2 of the standard error. Both sides are asked:
    # log-odds that are certain as they are do not change where they are steeper.
    steeper, flatter = (accuracy(reading.steeper(by, priors).probabilities, priors) for by in (_PAIRS, -_PAIRS))
    enough = max(_ENOUGH_NUMBERS // noise.n_classes, _ENOUGH_ROWS)
    some = evenly(own_entries(probabilities, predicted), enough)
    few, log_odds, of_few = rows.some(some), taken(reading.log_odds, some), taken(predicted, some)

    def under(other: Channel) -> float:
        return _share_right(few.read(log_odds, other), of_few, deployed / other.known_priors, few.weights)

    here = under(noise if base is None else base) if others else value
    moved = [under(other) - here for other in others]
    # Rows differ in P(right), and whether each is right is a draw of its own: in all, that of a share of n rows.
    sampling = value * (1 - value) / rows.n_rows
    doubt = sum(change**2 for change in ((steeper - flatter) / 2, *moved))
    return ExpectedAccuracy(value, min(float(np.sqrt(sampling + doubt)), _LARGEST_ERROR))


def _share_right(probabilities: Array, predicted: Array, ratio: FloatArray, weights: Array) -> float:
    """Return the expected share of right predictions; rows stand for more or fewer new ones, by their class's ratio."""
    weighted = probabilities * like(ratio, probabilities)
    of_rows = array_namespace(weighted).sum(weighted, axis=1)
    right, total = numbers(weights @ own_entries(weighted, predicted), weights @ of_rows)
    return right / total


def other_noise(noise: NoiseModel, errors: FloatArray, observed: FloatArray | None) -> list[NoiseModel]:
    """Return the noise model, and such as are one standard error away, the rates out of one true class at a time.

    Parameters
    ----------
    noise : NoiseModel
        With priors.
    errors : ndarray of shape (k, k)
        Standard errors of its transition.
    observed : ndarray of shape (k,) or None
        Observed class proportions that the priors follow; None where the priors are known.
    """
    found = [moved_rate(noise, 0, 0.0, observed) or noise]
    for a in np.flatnonzero(np.diag(errors) > 0):
        error = float(errors[a, a])
        fewer, more = (moved_rate(noise, int(a), sign * error, observed) for sign in (-1, 1))
        can_fall = 1 - noise.transition[a, a] >= error
        moved = next((model for model in ((fewer, more) if can_fall else (more, fewer)) if model is not None), None)
        if moved is not None:
            found.append(moved)
    return found


def moved_rate(noise: NoiseModel, a: int, change: float, observed: FloatArray | None) -> NoiseModel | None:
    """Return the noise model with more (or fewer) flips out of class a, or None where there is no such model.

    Flips keep their shares among the other classes; `observed` is that of `other_noise`.
    """
    transition = noise.transition.copy()
    flips = 1 - transition[a, a]
    others = np.arange(noise.n_classes) != a
    share = transition[a, others] / flips if flips > 0 else np.full(noise.n_classes - 1, 1 / (noise.n_classes - 1))
    wanted = float(np.clip(flips + change, 0.0, 1.0))
    transition[a, others], transition[a, a] = wanted * share, 1 - wanted
    try:
        model = NoiseModel(transition)
        return model.with_priors(noise.known_priors) if observed is None else model.with_observed(observed)
    except ValueError:
        return None
