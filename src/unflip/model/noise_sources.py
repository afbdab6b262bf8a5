"""Whatever a user says of the noise, as a noise model with standard errors.

Rows on a device stay there. What an estimate needs of them, columns such as scores, coordinates and
classes, is brought to the host by `as_numpy`, here and where estimators read a `Spectrum`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from unflip._utils.typing import Array, FloatArray
from unflip._utils.validation import as_floats, shown
from unflip._utils.warnings import warn_caller
from unflip.data.duplicates import DistinctRows
from unflip.data.training_set import TrainingSet
from unflip.estimation.noise_estimator import AssumedNoiseWarning, NoiseEstimator
from unflip.estimation.priors_constraint import narrowed
from unflip.labels.annotators import Annotators, Crowd
from unflip.labels.classes import true_codes
from unflip.labels.noise import Channel, NoiseModel, checked_proportions
from unflip.labels.votes import Votes
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.decomposition import decompose


@dataclass(frozen=True, eq=False)
class NoiseSource:
    """A noise model with priors, the standard errors of its transition, and what estimated them, if anything did.

    `counted` says that the priors are nothing but what explains the observed proportions. Votes
    come with what is known of the annotators, and, where that was found from the votes, with the crowd
    that they are, of which features tell more.
    """

    noise: NoiseModel
    errors: FloatArray
    estimator: NoiseEstimator | None
    counted: bool = False
    annotators: Annotators | None = None
    crowd: Crowd | None = None

    @property
    def y_trusted(self) -> ArrayLike | None:
        """True labels of all rows, missing where a row was not checked; None without any."""
        return None if self.estimator is None else self.estimator.y_trusted

    def channel(self, data: TrainingSet) -> Channel:
        """Return P(what is observed of a row | true class), in columns that are numbered by ``data.codes``."""
        return (
            self.noise
            if self.annotators is None or data.votes is None
            else self.annotators.channel(data.votes)
        )

    def with_features(self, log_odds: Array) -> NoiseSource:
        """Return what votes and features, as log-odds of the true classes (n, k), say of the annotators."""
        if self.crowd is None or self.annotators is None:
            return self
        return _of_crowd(
            self.crowd, self.crowd.with_features(log_odds, self.annotators), self.estimator
        )


def noise_source(
    noise: object,
    priors: ArrayLike | None,
    data: TrainingSet,
    spectrum: Spectrum,
    default: NoiseEstimator,
) -> NoiseSource:
    """Return the noise that `noise=` and `priors=` stand for.

    Parameters
    ----------
    noise : "estimate", NoiseModel, NoiseEstimator, transition matrix, or None
        As in `LPClassifier`.
    priors : array-like of shape (k,), optional
        ClassProportions of the true classes, where known.
    data : TrainingSet
        The rows and labels.
    spectrum : Spectrum
        Of the distinct rows, centred or not.
    default : NoiseEstimator
        What estimates the rates for "estimate"; it knows `priors` already.
    """
    if data.votes is not None:
        return _of_votes(noise, priors, data, data.votes, default)
    if _is_estimate(noise):
        return _by_default(default, priors, data, centred(spectrum, data))
    if isinstance(noise, NoiseEstimator):
        return _estimated(noise, priors, data, spectrum)
    model = given_model(noise, priors, data.classes)
    # Without flips there is nothing to infer: counting is exact.
    counted = model.priors is None and not np.array_equal(model.transition, np.eye(model.n_classes))
    known = with_some_priors(model, data.observed, data.rows.n_effective, data.classes)
    return NoiseSource(known, np.zeros_like(known.transition), None, counted)


def given_model(noise: object, priors: ArrayLike | None, classes: NDArray[Any]) -> NoiseModel:
    """Return the noise model that was given for these classes, with the priors if these are known.

    Parameters are those of `noise_source`.
    """
    model = _as_model(noise, len(classes))
    if model.n_classes != len(classes):
        raise ValueError(
            f"The noise model knows {model.n_classes} classes but y has {len(classes)}: give a "
            f"transition matrix for the classes {shown(classes.tolist())}, in that order."
        )
    if priors is None:
        return model
    known = model.with_priors(priors)
    if model.priors is not None and not np.allclose(model.priors, known.known_priors):
        raise ValueError(
            f"priors={priors!r} contradict those of the noise model, {model.priors.tolist()}: give "
            "one."
        )
    return known


def with_some_priors(
    noise: NoiseModel,
    observed: FloatArray,
    n_rows: float,
    classes: NDArray[Any],
    *,
    tolerant: bool = False,
) -> NoiseModel:
    """Return the noise with its priors, or else those behind the observed proportions.

    Of two classes, proportions that no priors explain contradict the rates, unless more rows are to
    come (`tolerant`). Of more, chance does that to small classes: they are given a share of one
    row.
    """
    if noise.priors is not None:
        return noise
    if noise.n_classes == 2 and not tolerant:
        return noise.with_observed(observed)
    shares = observed @ noise.inverse_transition
    empty = shares <= 0
    for a in np.flatnonzero(empty & (observed > 0)):
        warn_caller(
            "The flip rates and the observed proportions leave no true row in class "
            f"{classes.tolist()[a]!r}, by chance or because the rates are too high; it is given "
            "one. Give priors= if you know the proportions."
        )
    shares = np.where(empty, 1 / (n_rows + 1), shares)
    return noise.with_priors(shares / shares.sum())


def centred(spectrum: Spectrum, data: TrainingSet) -> Spectrum:
    """Return the spectrum of the rows about their mean."""
    return spectrum if spectrum.fit_intercept else _about_mean(data)


def _about_mean(data: TrainingSet) -> Spectrum:
    rows = data.rows
    return decompose(
        rows.X, rows.spectrum_weights, shares=rows.memberships(data.codes, len(data.classes))
    )


def _is_estimate(noise: object) -> bool:
    return isinstance(noise, str) and noise == "estimate"


def _by_default(
    estimator: NoiseEstimator, priors: ArrayLike | None, data: TrainingSet, spectrum: Spectrum
) -> NoiseSource:
    estimator.fit_from_spectrum(data, spectrum)
    if estimator.assumption_:
        warn_caller(estimator.assumption_, AssumedNoiseWarning)
    counted = priors is None and estimator.source_ == "anchor rows"
    return NoiseSource(estimator.noise_, estimator.noise_std_, estimator, counted)


def _estimated(
    estimator: NoiseEstimator, priors: ArrayLike | None, data: TrainingSet, spectrum: Spectrum
) -> NoiseSource:
    fitted = clone(estimator).fit_training_set(data, centred(spectrum, data))
    if priors is None:
        return NoiseSource(fitted.noise_, fitted.noise_std_, fitted)
    return _narrowed(fitted, priors, data)


def _narrowed(fitted: NoiseEstimator, priors: ArrayLike, data: TrainingSet) -> NoiseSource:
    noise, errors = narrowed(fitted.noise_, fitted.noise_std_, priors, data.rows, data.codes)
    return NoiseSource(noise, errors, fitted)


def _of_votes(
    noise: object,
    priors: ArrayLike | None,
    data: TrainingSet,
    votes: Votes,
    default: NoiseEstimator,
) -> NoiseSource:
    """Votes: annotators with the given noise, or with a transition matrix each, estimated."""
    estimator = noise if isinstance(noise, NoiseEstimator) else None
    if estimator is not None and not estimator.from_trusted_labels:
        raise ValueError(
            f"noise={noise!r} is for one label per row: with votes use 'estimate' or TrustedSubset."
        )
    if estimator is not None or (_is_estimate(noise) and not votes.single):
        truth = true_codes(
            None if estimator is None else estimator.y_trusted,
            len(data.y),
            data.rows.members,
            data.classes,
            "y_trusted",
        )
        known = None if priors is None else checked_proportions(priors, len(data.classes), "priors")
        crowd = Crowd(votes=votes, weights=data.rows.counts, truth=truth, priors=known)
        return _of_crowd(crowd, crowd.by_agreement(), estimator)
    if _is_estimate(noise):
        source = _of_single_votes(default, priors, data, votes)
    else:
        observed = votes.shares(data.rows.member_weights)
        given = given_model(noise, priors, data.classes)
        model = with_some_priors(given, observed, data.rows.n_effective, data.classes)
        source = NoiseSource(model, np.zeros_like(model.transition), None)
    return replace(source, annotators=Annotators.alike(source.noise, votes), counted=False)


def _of_crowd(
    crowd: Crowd, annotators: Annotators, estimator: NoiseEstimator | None
) -> NoiseSource:
    noise, errors = crowd.noise(annotators)
    return NoiseSource(noise, errors, estimator, annotators=annotators, crowd=crowd)


def _of_single_votes(
    default: NoiseEstimator, priors: ArrayLike | None, data: TrainingSet, votes: Votes
) -> NoiseSource:
    """At most one vote per row: nothing but labels, some of them missing."""
    voted = data.rows.members[votes.voted]
    X, y, weights = data.X[voted], votes.classes[votes.label], data.weights[voted]
    rows = DistinctRows.of(X, weights)
    part = TrainingSet(X, y, weights, votes.classes, rows, votes.label)
    return _by_default(default, priors, part, _about_mean(part))


def _as_model(noise: object, n_classes: int) -> NoiseModel:
    if noise is None:
        return NoiseModel.none(n_classes)
    if isinstance(noise, NoiseModel):
        return noise
    if isinstance(noise, str) or np.ndim(np.asarray(noise, dtype=object)) < 2:
        raise ValueError(
            f"noise={noise!r} is not known: use 'estimate', a NoiseModel (for two classes "
            "NoiseModel.binary(eps_pos=, eps_neg=)), a transition matrix, an estimator of "
            "unflip.estimation, or None for no noise."
        )
    return NoiseModel(as_floats(noise, "noise"))
