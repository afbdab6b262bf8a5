r"""Input of an audit: out-of-sample probabilities of the true class, and the noise model.

A row's probabilities P(y = a | xᵢ) come from a model that has not seen its label. Bayes' rule
combines them with the label,

.. math:: P(y_i = a \mid x_i, \tilde y_i) \propto P(y = a \mid x_i)\, T_{a \tilde y_i},

and for other noise rates the probabilities are calibrated again from the same scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unflip._utils.typing import FloatArray, IntArray
from unflip.calibration.intercepts import class_probabilities
from unflip.calibration.likeliest_noise import (
    RatePrior,
    expected_noise,
    is_determined,
    likeliest_noise,
    transition_errors,
)
from unflip.calibration.log_odds import label_posterior, recalibrated
from unflip.calibration.observations import Observations
from unflip.data.duplicates import DistinctRows
from unflip.estimation.anchors import NOT_IDENTIFIABLE, anchor_rates, consistent_noise
from unflip.estimation.priors_constraint import constrain_by_priors
from unflip.labels.annotators import Annotators
from unflip.labels.classes import UNCHECKED
from unflip.labels.moved_noise import moved_rate
from unflip.labels.noise import Channel, NoiseModel
from unflip.labels.votes import UNLABELLED, Votes

# Estimates of the noise rates from scores, each from the result of the one before.
_MAX_REFITS = 2


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Out-of-sample log-odds of the rows, with their labels."""

    log_odds: FloatArray  # of each class against the first, (n, k)
    rows: Observations
    priors: FloatArray  # with which the log-odds were calibrated
    has_full_signal: bool = True  # whether the log-odds were not shrunk for lack of signal

    def probabilities(self, noise: Channel) -> FloatArray:
        """Return P(true class | row) under a noise model, (n, k).

        Log-odds are calibrated again; those shrunk for lack of signal change with the priors alone.
        """
        if self.has_full_signal:
            return np.asarray(recalibrated(self.log_odds, self.rows, noise))
        return np.asarray(
            class_probabilities(self.log_odds + np.log(noise.known_priors / self.priors))
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Noise:
    """The noise model of an audit, and where it comes from.

    Attributes
    ----------
    model : NoiseModel
        Noise model with priors. With votes, that of the majority labels.
    errors : ndarray of shape (k, k)
        Standard errors of its transition matrix.
    source : str
        "given", "trusted rows", "mixture", "label likelihood", "anchor rows", "no signal", "votes",
        or what a noise estimator of the user says.
    assumption : str
        Sentence on what was assumed without a test; empty if nothing was.
    priors_given : bool
        Whether the priors were given, rather than estimated from labels or votes.
    votes : Votes, optional
        Votes on the rows, if there are votes instead of labels.
    annotators : Annotators, optional
        Transition matrices of the annotators.
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
        """P(label or votes of a row | true class): a column per label, or per row with votes."""
        if self.votes is None or self.annotators is None:
            return self.model
        return self.annotators.channel(self.votes)

    @property
    def priors_known(self) -> bool:
        """Whether the priors were given, or estimated from several votes per row."""
        return self.priors_given or (self.votes is not None and not self.votes.single)

    def moved(self, true_class: int, change: float, observed: FloatArray) -> Noise | None:
        """Return the noise with another rate of one class; None if no noise model has that rate."""
        model = moved_rate(self.model, true_class, change, None if self.priors_known else observed)
        if model is None:
            return None
        if self.votes is None or self.annotators is None:
            return replace(self, model=model)
        if self.votes.single:
            annotators = Annotators.from_noise(model, self.votes)
        else:
            annotators = self.annotators.moved(true_class, change)
        return replace(self, model=model, annotators=annotators)


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """Everything that an audit is computed from.

    Attributes
    ----------
    classes : ndarray of shape (k,)
        Labels, sorted.
    codes : ndarray of shape (n,)
        Observed class of each row. With votes, the majority label, and `UNLABELLED` for rows
        without votes.
    truth : ndarray of shape (n,)
        True class of the checked rows, −1 for the others.
    probabilities : ndarray of shape (n, k)
        P(true class | row), without the row's own label.
    log_scores : ndarray of shape (n, k)
        Logarithms of the model's probabilities, before the noise model is applied.
    noise : Noise
        The noise model.
    accuracy, accuracy_std : float
        Expected accuracy on clean labels, and its standard error.
    dimension : float
        Effective dimension of the features; NaN if it is not known.
    n_effective : float
        Effective sample size.
    scored : ScoredRows
        Log-odds, from which `probabilities` under other noise models are computed.
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
    n_effective: float
    scored: ScoredRows
    has_signal: bool = True

    @property
    def columns(self) -> IntArray:
        """Column of ``noise.channel`` for each row, (n,)."""
        return self.codes if self.noise.votes is None else np.arange(len(self.codes))

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Whether each row has an observed label, (n,)."""
        return np.asarray(self.codes != UNLABELLED)

    @cached_property
    def label_posterior(self) -> FloatArray:
        """P(true class | row, observed label), (n, k); 0 and 1 for checked rows."""
        posterior: FloatArray = label_posterior(
            self.probabilities, self.columns, self.noise.channel
        )
        checked = self.truth != UNCHECKED
        posterior[checked] = np.eye(len(self.classes))[self.truth[checked]]
        return posterior

    @cached_property
    def wrong(self) -> FloatArray:
        """P(the observed label is wrong) of each row; 0 for rows without a label."""
        wrong = 1 - self.label_posterior[np.arange(len(self.codes)), self.codes]
        return np.where(self.labelled, wrong, 0.0)

    def with_rate(self, true_class: int, change: float) -> Evidence | None:
        """Return the evidence with another noise rate of one class; None if that is impossible."""
        moved = self.noise.moved(true_class, change, self.observed)
        return None if moved is None else self.under(moved)

    def under(self, noise: Noise) -> Evidence:
        """Return the evidence under another noise model."""
        probabilities = self.scored.probabilities(noise.channel)
        return replace(self, noise=noise, probabilities=probabilities)

    @property
    def unmoved(self) -> Evidence:
        """The evidence under the same rates, with priors that follow from them: a baseline."""
        noise = self.noise.moved(0, 0.0, self.observed)
        return self if noise is None else self.under(noise)

    def noise_one_error_away(self) -> list[Noise]:
        """Return the noise with each uncertain rate lowered (else raised) by its standard error."""
        errors = np.diag(self.noise.errors)
        observed = self.observed
        models = []
        for a in np.flatnonzero(errors > 0).tolist():
            error = float(errors[a])
            lower = self.noise.moved(a, -error, observed)
            models.append(lower or self.noise.moved(a, error, observed))
        return [model for model in models if model is not None]

    @property
    def observed(self) -> FloatArray:
        """Proportions of the observed classes."""
        return proportions(self.codes[self.labelled])


def proportions(codes: IntArray) -> FloatArray:
    """Return the proportions of the observed classes."""
    return np.asarray(np.bincount(codes) / len(codes))


def noise_from_scores(
    scores: FloatArray, logits: FloatArray, observations: Observations, priors: ArrayLike | None
) -> Noise:
    """Estimate the noise rates by the likelihood of the labels, given out-of-sample scores.

    The search starts from high-confidence rows (`unflip.estimation.anchors`).

    Parameters
    ----------
    scores : ndarray of shape (n, k)
        Scores that rank the rows by their confidence in each class.
    logits : ndarray of shape (n, k)
        Log-odds of the classes, up to a common slope and intercepts.
    observations : Observations
        Observed labels.
    priors : array-like of shape (k,), optional
        Class priors, if known.
    """
    codes = observations.codes
    rough = anchor_rates(scores, codes, observations.weights)
    start = consistent_noise(rough.transition, proportions(codes), is_sure=True)
    errors = rough.errors
    if priors is not None:
        start, errors = constrain_by_priors(start, errors, priors, DistinctRows.of(scores), codes)
    prior = RatePrior.of(start, errors)
    likeliest = likeliest_noise(logits, observations, start, prior)
    for _ in range(_MAX_REFITS):  # the shares of the wrong labels follow from the rates before
        likeliest = likeliest_noise(logits, observations, likeliest.noise, prior)
    probabilities = recalibrated(logits, observations, likeliest.noise)
    posterior = label_posterior(probabilities, codes, likeliest.noise)
    covariance = likeliest.covariance
    return Noise(
        model=expected_noise(posterior, codes, observations.shares),
        errors=transition_errors(likeliest.noise, covariance, observations.n_effective),
        source="label likelihood",
        assumption="" if is_determined(likeliest.noise, covariance) else NOT_IDENTIFIABLE,
        priors_given=priors is not None,
    )
