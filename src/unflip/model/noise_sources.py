"""The noise model with standard errors that the parameters `noise=` and `priors=` stand for.

Rows on a device stay there. Estimators bring the small arrays that they need, such as scores and
class codes, to the host with `as_numpy`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from unflip._utils.arrays import as_numpy
from unflip._utils.typing import Array, FloatArray, IntArray
from unflip._utils.validation import as_floats, shown
from unflip._utils.warnings import warn_caller
from unflip.calibration.likeliest_noise import RatePrior
from unflip.data.training_set import TrainingSet
from unflip.estimation.noise_estimator import NoiseEstimator
from unflip.estimation.priors_constraint import constrain_by_priors
from unflip.labels.annotators import Annotators
from unflip.labels.classes import true_codes
from unflip.labels.codes import UNCHECKED
from unflip.labels.crowd import Crowd
from unflip.labels.noise import Channel, NoiseModel, checked_proportions
from unflip.labels.votes import Votes
from unflip.model.options import is_estimate
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.decomposition import decompose


@dataclass(frozen=True, eq=False)
class NoiseSource:
    """A noise model with priors, standard errors, and its estimator.

    Attributes
    ----------
    noise : NoiseModel
        Noise model with priors.
    errors : ndarray of shape (k, k)
        Standard errors of the transition matrix.
    estimator : NoiseEstimator or None
        Fitted estimator, with votes one that only holds trusted labels; None if the noise model was
        given.
    counted : bool
        Whether the priors only explain the observed proportions.
    annotators : Annotators or None
        Annotators, if there are votes.
    crowd : Crowd or None
        Votes from which the annotators were estimated; features can improve that estimate.
    """

    noise: NoiseModel
    errors: FloatArray
    estimator: NoiseEstimator | None
    counted: bool = False
    annotators: Annotators | None = None
    crowd: Crowd | None = None

    @property
    def y_trusted(self) -> ArrayLike | None:
        """Trusted labels of all rows, missing where a row was not checked; None without any."""
        return None if self.estimator is None else self.estimator.y_trusted

    @property
    def rate_prior(self) -> RatePrior | None:
        """Prior of rates that are only a start; None if the rates are final."""
        if self.estimator is None or not self.estimator.is_start_:
            return None
        return RatePrior.of(self.noise, self.errors)

    def channel(self, data: TrainingSet) -> Channel:
        """Return P(label or votes | true class); ``data.codes`` are the columns of the rows."""
        if self.annotators is None or data.votes is None:
            return self.noise
        return self.annotators.channel(data.votes)

    @property
    def is_calibrated_by_truth(self) -> bool:
        """Whether trusted labels of sampled rows calibrate the posterior."""
        return self.estimator is not None and self.estimator.uses_trusted_labels

    def with_features(self, log_odds: Array) -> NoiseSource:
        """Return the source with annotators estimated from votes and log-odds (n, k)."""
        if self.crowd is None or self.annotators is None:
            return self
        annotators = self.crowd.with_features(log_odds, self.annotators)
        return _from_crowd(self.crowd, annotators, self.estimator)

    def log_likelihood(self, log_odds: Array) -> float:
        """Return log P(votes | features) for log-odds (n, k); 0 if no annotators are estimated."""
        if self.crowd is None or self.annotators is None:
            return 0.0
        return self.crowd.log_likelihood(self.annotators, log_odds)


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
        Class priors, if known.
    data : TrainingSet
        The rows and labels.
    spectrum : Spectrum
        Spectrum of the distinct rows, centred or not.
    default : NoiseEstimator
        Estimator for "estimate". It takes `priors` into account already.
    """
    if data.votes is not None:
        return _from_votes(noise, priors, data, data.votes)
    if is_estimate(noise):
        fitted = default.fit_training_set(data, centred(spectrum, data))
        is_counted = priors is None and fitted.is_start_
        return NoiseSource(fitted.noise_, fitted.noise_std_, fitted, is_counted)
    if isinstance(noise, NoiseEstimator):
        return _from_estimator(noise, priors, data, spectrum)
    model = resolve_noise(noise, priors, data.classes)
    # Without noise the observed proportions are the priors: nothing is inferred.
    is_noisy = not np.array_equal(model.transition, np.eye(model.n_classes))
    counted = model.priors is None and is_noisy
    model = with_inferred_priors(model, data.observed, data.rows.n_effective, data.classes)
    return NoiseSource(model, np.zeros_like(model.transition), None, counted)


def with_hidden_labels(
    source: NoiseSource,
    truth: IntArray,
    priors: ArrayLike | None,
    data: TrainingSet,
    spectrum: Spectrum,
) -> NoiseSource:
    """Return the noise that fewer trusted labels give.

    Parameters
    ----------
    source : NoiseSource
        Noise that trusted labels gave.
    truth : ndarray of shape (n_positive,)
        True class of each member, `UNCHECKED` where it is unknown or hidden.
    priors, data, spectrum
        As in `noise_source`.
    """
    if source.crowd is not None:
        crowd = replace(source.crowd, truth=truth)
        return _from_crowd(crowd, crowd.by_agreement(), source.estimator)
    if source.estimator is None:
        return source
    is_known = truth != UNCHECKED
    y_trusted = np.full(data.n_rows, None, dtype=object)
    y_trusted[as_numpy(data.rows.members)[is_known]] = data.classes[truth[is_known]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were shown for all trusted labels
        fitted = source.estimator.with_trusted(y_trusted, data, centred(spectrum, data))
        return _from_fitted(fitted, priors, data)


def resolve_noise(noise: object, priors: ArrayLike | None, classes: NDArray[Any]) -> NoiseModel:
    """Return the given noise model for these classes, with the priors if they are known.

    Parameters are those of `noise_source`.
    """
    model = _as_model(noise, len(classes))
    if model.n_classes != len(classes):
        raise ValueError(
            f"The noise model has {model.n_classes} classes but y has {len(classes)}: give a "
            f"transition matrix for the classes {shown(classes.tolist())}, in that order."
        )
    if priors is None:
        return model
    with_priors = model.with_priors(priors)
    if model.priors is not None and not np.allclose(model.priors, with_priors.known_priors):
        raise ValueError(
            f"priors={priors!r} contradict those of the noise model, {model.priors.tolist()}: give "
            "only one of them."
        )
    return with_priors


def with_inferred_priors(
    noise: NoiseModel,
    observed: FloatArray,
    n_effective: float,
    classes: NDArray[Any],
    *,
    tolerant: bool = False,
) -> NoiseModel:
    """Return the noise with its priors, or with those that explain the observed proportions.

    If no priors explain the proportions of two classes, the rates are contradicted and
    `ValueError` is raised, unless more rows are to come (`tolerant`). With more classes this
    happens to small classes by chance: they get a share of one row.
    """
    if noise.priors is not None:
        return noise
    if noise.n_classes == 2 and not tolerant:
        return noise.with_observed(observed)
    shares = observed @ noise.inverse_transition
    empty = shares <= 0
    for a in np.flatnonzero(empty & (observed > 0)):
        warn_caller(
            "The noise rates and the observed class proportions leave no true row in class "
            f"{classes.tolist()[a]!r}, by chance or because the rates are too high; assuming one "
            "row. Give priors= if you know the class proportions."
        )
    shares = np.where(empty, 1 / (n_effective + 1), shares)
    return noise.with_priors(shares / shares.sum())


def centred(spectrum: Spectrum, data: TrainingSet) -> Spectrum:
    """Return the spectrum of the centred rows."""
    return spectrum if spectrum.fit_intercept else _centred_spectrum(data)


def _centred_spectrum(data: TrainingSet) -> Spectrum:
    rows = data.rows
    shares = rows.memberships(data.codes, len(data.classes))
    return decompose(rows.X, rows.spectrum_weights, shares=shares)


def _from_estimator(
    estimator: NoiseEstimator, priors: ArrayLike | None, data: TrainingSet, spectrum: Spectrum
) -> NoiseSource:
    fitted: NoiseEstimator = clone(estimator)
    fitted.fit_training_set(data, centred(spectrum, data))
    return _from_fitted(fitted, priors, data)


def _from_fitted(
    fitted: NoiseEstimator, priors: ArrayLike | None, data: TrainingSet
) -> NoiseSource:
    noise, errors = fitted.checked_rates(len(data.classes))
    if noise.priors is None:
        noise = with_inferred_priors(noise, data.observed, data.rows.n_effective, data.classes)
    if priors is not None:
        noise, errors = constrain_by_priors(
            noise, errors, priors, data.observed, data.rows.n_effective
        )
    is_counted = fitted.is_start_ and priors is None and fitted.priors is None
    return NoiseSource(noise, errors, fitted, is_counted)


def _from_votes(
    noise: object,
    priors: ArrayLike | None,
    data: TrainingSet,
    votes: Votes,
) -> NoiseSource:
    """Return annotators with the given noise, or with an estimated transition matrix each."""
    estimator = clone(noise) if isinstance(noise, NoiseEstimator) else None
    if estimator is not None and not estimator.from_trusted_labels:
        raise ValueError(
            f"noise={noise!r} is for one label per row: with votes use 'estimate' or TrustedSubset."
        )
    if estimator is not None or is_estimate(noise):
        truth = true_codes(
            None if estimator is None else estimator.y_trusted,
            len(data.y),
            data.rows.members,
            data.classes,
            "y_trusted",
        )
        if priors is not None:
            priors = checked_proportions(priors, len(data.classes), "priors")
        crowd = Crowd(votes=votes, weights=data.rows.counts, truth=truth, priors=priors)
        return _from_crowd(crowd, crowd.by_agreement(), estimator)
    observed = votes.shares(data.rows.member_weights)
    model = resolve_noise(noise, priors, data.classes)
    model = with_inferred_priors(model, observed, data.rows.n_effective, data.classes)
    annotators = Annotators.from_noise(model, votes)
    return NoiseSource(model, np.zeros_like(model.transition), None, annotators=annotators)


def _from_crowd(
    crowd: Crowd, annotators: Annotators, estimator: NoiseEstimator | None
) -> NoiseSource:
    noise, errors = crowd.noise(annotators)
    return NoiseSource(noise, errors, estimator, annotators=annotators, crowd=crowd)


def _as_model(noise: object, n_classes: int) -> NoiseModel:
    if noise is None:
        return NoiseModel.none(n_classes)
    if isinstance(noise, NoiseModel):
        return noise
    if isinstance(noise, str) or np.ndim(np.asarray(noise, dtype=object)) < 2:
        raise ValueError(
            f"noise={noise!r} is not known: use 'estimate', noise rates by class such as "
            "{'no': 0.1, 'yes': 0.2}, a NoiseModel, a transition matrix, a NoiseEstimator "
            "(see unflip.estimation), or None for no noise."
        )
    return NoiseModel(as_floats(noise, "noise"))
