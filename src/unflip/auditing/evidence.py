r"""What an audit rests on: honest probabilities of the true class, and the noise model that joins labels to them.

A row's probabilities P(y = a | xᵢ) come from a model that has not seen its label, so Bayes joins
the two,

.. math:: P(y_i = a \mid x_i, \tilde y_i) \propto P(y = a \mid x_i)\, T_{a \tilde y_i},

and for other rates the probabilities are read anew from the same scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unflip._utils.typing import FloatArray, IntArray
from unflip.calibration.intercepts import class_probabilities
from unflip.calibration.log_odds import label_posterior, recalibrated
from unflip.calibration.observations import Observations
from unflip.data.duplicates import DistinctRows
from unflip.estimation.anchors import anchor_rates, consistent
from unflip.estimation.priors_constraint import narrowed
from unflip.labels.annotators import Annotators
from unflip.labels.classes import UNCHECKED
from unflip.labels.moved_noise import moved_rate
from unflip.labels.noise import Channel, NoiseModel
from unflip.labels.votes import UNLABELLED, Votes

_TINY = 1e-12


class Reader(Protocol):
    """P(true class | row), (n, k), under a noise model."""

    def __call__(self, noise: Channel, /) -> FloatArray:
        """Read the probabilities."""


@dataclass(frozen=True, eq=False)
class LogOddsReader:
    """Reads log-odds that are free of the row's own label, with the slope and intercepts that a noise model asks for."""

    log_odds: FloatArray  # of each class against the first, (n, k)
    rows: Observations
    priors: FloatArray  # that they were read with
    is_sure: bool

    def __call__(self, noise: Channel, /) -> FloatArray:
        """Calibrate under this noise model; log-odds that are believed in part move with its priors alone."""
        if self.is_sure:
            return np.asarray(recalibrated(self.log_odds, self.rows, noise))
        return np.asarray(
            class_probabilities(self.log_odds + np.log(noise.known_priors / self.priors))
        )


@dataclass(frozen=True, eq=False)
class ProbabilityReader:
    """Reads P(observed label | row) = P(true class | row)·T backwards."""

    observed: FloatArray  # (n, k)

    def __call__(self, noise: Channel, /) -> FloatArray:
        """Invert the transition; what falls outside the simplex is clipped to it."""
        inverse = NoiseModel(noise.transition).inverse_transition
        inverted = np.clip(self.observed @ inverse, _TINY, None)
        return np.asarray(inverted / inverted.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False, kw_only=True)
class Noise:
    """The noise model of an audit, and where it comes from.

    Attributes
    ----------
    model : NoiseModel
        With priors. Of votes, it tells how often the label that most of them favour is another than
        the true one.
    errors : ndarray of shape (k, k)
        Standard errors of its transition.
    source : str
        "given", "trusted rows", "mixture", "anchor rows" or "votes".
    assumption : str
        What was assumed rather than seen; empty where nothing was.
    priors_given : bool
        Whether the priors were given, rather than found from labels or votes.
    votes : Votes, optional
        Votes on the rows, where they have these in place of labels.
    annotators : Annotators, optional
        How those who gave them vote.
    """

    model: NoiseModel
    errors: FloatArray
    source: str
    assumption: str
    priors_given: bool
    votes: Votes | None = None
    annotators: Annotators | None = None

    @property
    def channel(self) -> Channel:
        """P(what is observed of a row | true class): a column for each label, or, with votes, for each row."""
        return (
            self.model
            if self.votes is None or self.annotators is None
            else self.annotators.channel(self.votes)
        )

    @property
    def priors_known(self) -> bool:
        """Whether they come from more than the proportions of the labels: several votes tell more."""
        return self.priors_given or (self.votes is not None and not self.votes.single)

    def moved(self, true_class: int, change: float, observed: FloatArray) -> Noise | None:
        """Return more or fewer flips out of one class; None where no noise model is like that."""
        model = moved_rate(self.model, true_class, change, None if self.priors_known else observed)
        if model is None:
            return None
        if self.votes is None or self.annotators is None:
            return replace(self, model=model)
        alone = self.votes.single
        annotators = (
            Annotators.alike(model, self.votes)
            if alone
            else self.annotators.moved(true_class, change)
        )
        return replace(self, model=model, annotators=annotators)


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """Everything that an audit is computed from.

    Attributes
    ----------
    classes : ndarray of shape (k,)
        Labels, sorted.
    codes : ndarray of shape (n,)
        Observed class of each row: of votes, the one that most of them favour, and `UNLABELLED`
        where there are none.
    truth : ndarray of shape (n,)
        True class of the rows that were checked, −1 for the others.
    probabilities : ndarray of shape (n, k)
        P(true class | row), without the row's own label.
    log_scores : ndarray of shape (n, k)
        Logarithms of the model's own probabilities, before any noise model.
    noise : Noise
        The noise model.
    accuracy, accuracy_std : float
        Accuracy to expect on clean labels, and its standard error.
    dimension : float
        Effective dimension of the rows; NaN where it is not known.
    n_rows : float
        How many independent rows these stand for.
    read : Reader
        Where the probabilities come from.
    has_signal : bool
        Whether the features predict the labels better than chance.
    """

    classes: NDArray[Any]
    codes: IntArray
    truth: IntArray
    probabilities: FloatArray
    log_scores: FloatArray
    noise: Noise
    accuracy: float
    accuracy_std: float
    dimension: float
    n_rows: float
    read: Reader
    has_signal: bool = True

    @property
    def columns(self) -> IntArray:
        """Column of ``noise.channel`` that tells of each row, (n,)."""
        return self.codes if self.noise.votes is None else np.arange(len(self.codes))

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Whether each row has an observed label, (n,)."""
        return np.asarray(self.codes != UNLABELLED)

    @cached_property
    def label_posterior(self) -> FloatArray:
        """P(true class | row, observed label), (n, k); 0 and 1 for rows that were checked."""
        posterior: FloatArray = label_posterior(
            self.probabilities, self.columns, self.noise.channel
        )
        checked = self.truth != UNCHECKED
        posterior[checked] = np.eye(len(self.classes))[self.truth[checked]]
        return posterior

    @cached_property
    def wrong(self) -> FloatArray:
        """P(the observed label is wrong) of each row; 0 where there is none."""
        wrong = 1 - self.label_posterior[np.arange(len(self.codes)), self.codes]
        return np.where(self.labelled, wrong, 0.0)

    def with_rate(self, true_class: int, change: float) -> Evidence | None:
        """Return the evidence with more or fewer flips out of one class; None where no noise model is like that."""
        moved = self.noise.moved(true_class, change, self.observed)
        return None if moved is None else self.under(moved)

    def under(self, noise: Noise) -> Evidence:
        """Return the evidence under another noise model."""
        return replace(self, noise=noise, probabilities=self.read(noise.channel))

    @property
    def unmoved(self) -> Evidence:
        """The evidence under rates as they are, and priors that follow from them: what other rates compare with."""
        noise = self.noise.moved(0, 0.0, self.observed)
        return self if noise is None else self.under(noise)

    def noise_one_error_away(self) -> list[Noise]:
        """Return the noise with each rate in doubt moved by its standard error, towards fewer flips if possible."""
        errors = np.diag(self.noise.errors)
        moves = [(int(a), float(errors[a])) for a in np.flatnonzero(errors > 0)]
        moved, observed = self.noise.moved, self.observed
        found = [moved(a, -error, observed) or moved(a, error, observed) for a, error in moves]
        return [other for other in found if other is not None]

    @property
    def observed(self) -> FloatArray:
        """ClassProportions of the observed classes."""
        return shares(self.codes[self.labelled])


def shares(codes: IntArray) -> FloatArray:
    """ClassProportions of the observed classes."""
    return np.asarray(np.bincount(codes) / len(codes))


def guessed_noise(scores: FloatArray, codes: IntArray, priors: ArrayLike | None) -> Noise:
    """Guess the noise rates from the labels of the rows that score highest for each class (n, k).

    See `unflip.estimation.anchors`.
    """
    rough = anchor_rates(scores, codes, np.ones(len(codes)))
    model, errors = consistent(rough.transition, shares(codes)), rough.errors
    if priors is not None:
        model, errors = narrowed(model, errors, priors, DistinctRows.of(scores), codes)
    doubt = float(errors[~np.eye(len(errors), dtype=bool)].max())
    assumption = (
        "The noise rates are a guess, from the labels of the surest rows, with standard errors up "
        f"to {doubt:.2f}: give noise= if the rates are known, or true labels of some rows as "
        "trusted=."
    )
    return Noise(
        model=model,
        errors=errors,
        source="anchor rows",
        assumption=assumption,
        priors_given=priors is not None,
    )
