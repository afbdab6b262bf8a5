"""Whatever a user says of the noise, as a noise model with standard errors.

Rows on a device stay there. What an estimate needs of them, columns such as scores, coordinates and classes, is brought
to the host by `as_numpy`, here and where estimators read a `Spectrum`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from unflip._arrays import as_numpy, is_foreign, like, place
from unflip._typing import Array, FloatArray, Rows
from unflip._validation import as_floats, shown
from unflip._warning import warn_caller
from unflip.estimation.automatic import AssumedNoiseWarning, Automatic, narrowed
from unflip.estimation.base import NoiseEstimator
from unflip.estimation.cross_moment import CrossMoment
from unflip.estimation.given import GivenRates
from unflip.estimation.trusted import TrustedSubset
from unflip.labels import true_codes
from unflip.noise import Channel, NoiseModel, checked_proportions
from unflip.rows import DistinctRows
from unflip.spectrum import Spectrum, decompose
from unflip.votes import Votes
from unflip.workers import Crowd, Workers


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows with observed labels, as given and as prepared; weights and codes are where the rows are."""

    X: Rows
    y: Array | Votes
    weights: Array
    classes: NDArray[Any]
    rows: DistinctRows
    codes: Array  # of the members; with votes, a number for each
    votes: Votes | None = None  # on the members

    @property
    def n_rows(self) -> int:
        """Number of all rows, those of no weight included."""
        return int(self.weights.shape[0])

    @property
    def absent(self) -> Array:
        """Indices of the rows of no weight."""
        return array_namespace(self.weights).nonzero(self.weights == 0)[0]

    def merged(self, of_members: Array, of_absent: Array) -> Array:
        """Return values of all rows, (n, ...), from those of the members and of the rows of no weight."""
        if not of_absent.shape[0]:
            return of_members
        xp = array_namespace(of_members)
        order = xp.argsort(xp.concat([self.rows.members, self.absent]))
        return xp.take(xp.concat([of_members, of_absent]), order, axis=0)

    def truth(self, y_trusted: ArrayLike | None) -> Array | None:
        """Return the true class of each member, `UNCHECKED` where it is not known; None where none is."""
        if y_trusted is None:
            return None
        members = as_numpy(self.rows.members)
        return like(true_codes(y_trusted, self.n_rows, members, self.classes, "y_trusted"), self.codes)

    @property
    def observed(self) -> FloatArray:
        """Proportions of the observed classes."""
        return self.rows.shares(self.codes)


@dataclass(frozen=True, eq=False)
class NoiseSource:
    """A noise model with priors, the standard errors of its transition, and what estimated them, if anything did.

    `counted` says that the priors are nothing but what explains the observed proportions. Votes come with what is known
    of the workers, and, where that was found from the votes, with the crowd that they are, of which features tell more.
    """

    noise: NoiseModel
    errors: FloatArray
    estimator: NoiseEstimator | None
    counted: bool = False
    workers: Workers | None = None
    crowd: Crowd | None = None

    def channel(self, data: Labelled) -> Channel:
        """Return P(what is observed of a row | true class), in columns that are numbered by ``data.codes``."""
        return self.noise if self.workers is None or data.votes is None else self.workers.channel(data.votes)

    def with_features(self, log_odds: Array) -> NoiseSource:
        """Return what votes and features, as log-odds of the true classes (n, k), say of the workers."""
        if self.crowd is None or self.workers is None:
            return self
        return _of_crowd(self.crowd, self.crowd.with_features(log_odds, self.workers), self.estimator)


def noise_source(noise: object, priors: ArrayLike | None, data: Labelled, spectrum: Spectrum) -> NoiseSource:
    """Return the noise that `noise=` and `priors=` stand for.

    Parameters
    ----------
    noise : "estimate", NoiseModel, NoiseEstimator, transition matrix, or None
        As in `LPClassifier`.
    priors : array-like of shape (k,), optional
        Proportions of the true classes, where known.
    data : Labelled
        The rows and labels.
    spectrum : Spectrum
        Of the distinct rows, centred or not.
    """
    if data.votes is not None:
        return _of_votes(noise, priors, data, data.votes)
    if isinstance(noise, str) and noise == "estimate":
        return _automatic(priors, data, spectrum)
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
            f"The noise model knows {model.n_classes} classes but y has {len(classes)}: give a transition matrix for "
            f"the classes {shown(classes.tolist())}, in that order."
        )
    if priors is None:
        return model
    known = model.with_priors(priors)
    if model.priors is not None and not np.allclose(model.priors, known.known_priors):
        raise ValueError(f"priors={priors!r} contradict those of the noise model, {model.priors.tolist()}: give one.")
    return known


def with_some_priors(
    noise: NoiseModel, observed: FloatArray, n_rows: float, classes: NDArray[Any], *, tolerant: bool = False
) -> NoiseModel:
    """Return the noise with its priors, or else those behind the observed proportions.

    Of two classes, proportions that no priors explain contradict the rates, unless more rows are to come (`tolerant`).
    Of more, chance does that to small classes: they are given a share of one row.
    """
    if noise.priors is not None:
        return noise
    if noise.n_classes == 2 and not tolerant:
        return noise.with_observed(observed)
    shares = observed @ noise.inverse_transition
    empty = shares <= 0
    for a in np.flatnonzero(empty & (observed > 0)):
        warn_caller(
            f"The flip rates and the observed proportions leave no true row in class {classes.tolist()[a]!r}, by "
            "chance or because the rates are too high; it is given one. Give priors= if you know the proportions."
        )
    shares = np.where(empty, 1 / (n_rows + 1), shares)
    return noise.with_priors(shares / shares.sum())


def centred(spectrum: Spectrum, data: Labelled) -> Spectrum:
    """Return the spectrum of the rows about their mean."""
    return spectrum if spectrum.fit_intercept else _about_mean(data)


def _about_mean(data: Labelled) -> Spectrum:
    rows = data.rows
    return decompose(rows.X, rows.spectrum_weights, shares=rows.memberships(data.codes, len(data.classes)))


def _automatic(priors: ArrayLike | None, data: Labelled, spectrum: Spectrum) -> NoiseSource:
    estimator = Automatic(priors=priors).fit_spectrum(centred(spectrum, data), data.rows, data.codes)
    if estimator.assumption_:
        warn_caller(estimator.assumption_, AssumedNoiseWarning)
    estimator.classes_, estimator.n_features_in_ = data.classes, data.X.shape[1]
    counted = priors is None and estimator.source_ == "anchor rows"
    return NoiseSource(estimator.noise_, estimator.noise_std_, estimator, counted)


def _estimated(estimator: NoiseEstimator, priors: ArrayLike | None, data: Labelled, spectrum: Spectrum) -> NoiseSource:
    fitted = clone(estimator)
    if is_foreign(data.X):
        return _estimated_afar(fitted, priors, data, spectrum)
    if has_fit_parameter(fitted, "sample_weight"):
        fitted.fit(data.X, data.y, sample_weight=data.weights)
    elif (data.weights == 1).all():
        fitted.fit(data.X, data.y)
    else:
        raise ValueError(f"noise={estimator!r} takes no sample_weight: fit without weights, or repeat rows.")
    if priors is None:
        return NoiseSource(fitted.noise_, fitted.noise_std_, fitted)
    return _narrowed(fitted, priors, data)


def _estimated_afar(
    fitted: NoiseEstimator, priors: ArrayLike | None, data: Labelled, spectrum: Spectrum
) -> NoiseSource:
    """Estimate from rows that are no NumPy array, by what their spectrum says: they themselves stay where they are."""
    if isinstance(fitted, GivenRates):
        fitted.fit(data.X, data.classes[as_numpy(data.codes)])
    elif isinstance(fitted, Automatic) and fitted.y_trusted is None:
        fitted.fit_spectrum(centred(spectrum, data), data.rows, data.codes)
    elif isinstance(fitted, TrustedSubset):
        members = as_numpy(data.rows.members)
        true = true_codes(fitted.y_trusted, data.n_rows, members, data.classes, "y_trusted")
        fitted.fit_members(data.rows, data.codes, members=members, classes=data.classes, true=true)
    elif isinstance(fitted, CrossMoment) and data.rows.spectrum_weights is None:
        fitted.fit_spectrum(centred(spectrum, data), as_numpy(data.codes))
    else:
        raise ValueError(
            f"noise={fitted!r} reads the rows by NumPy, but X is a {place(data.X)}: fit the estimator to a NumPy copy "
            "of X and give its noise_, or give a NoiseModel."
        )
    if priors is None:
        return NoiseSource(fitted.noise_, fitted.noise_std_, fitted)
    return _narrowed(fitted, priors, data)


def _narrowed(fitted: NoiseEstimator, priors: ArrayLike, data: Labelled) -> NoiseSource:
    noise, errors = narrowed(fitted.noise_, fitted.noise_std_, priors, data.rows, data.codes)
    return NoiseSource(noise, errors, fitted)


def _of_votes(noise: object, priors: ArrayLike | None, data: Labelled, votes: Votes) -> NoiseSource:
    """Votes: of workers who are alike where the noise is given, and otherwise told apart by what they say."""
    checked = isinstance(noise, TrustedSubset)
    if isinstance(noise, NoiseEstimator) and not checked:
        raise ValueError(f"noise={noise!r} is for one label per row: with votes use 'estimate' or TrustedSubset.")
    if checked or (isinstance(noise, str) and noise == "estimate"):
        trusted = noise.y_trusted if isinstance(noise, TrustedSubset) else None
        truth = true_codes(trusted, len(data.y), data.rows.members, data.classes, "y_trusted")
        if checked or not votes.single:
            known = None if priors is None else checked_proportions(priors, len(data.classes), "priors")
            crowd = Crowd(votes=votes, weights=data.rows.counts, truth=truth, priors=known)
            return _of_crowd(crowd, crowd.by_agreement(), noise if isinstance(noise, TrustedSubset) else None)
        found = _of_single_votes(priors, data, votes)
    else:
        observed = votes.shares(data.rows.member_weights)
        given = given_model(noise, priors, data.classes)
        model = with_some_priors(given, observed, data.rows.n_effective, data.classes)
        found = NoiseSource(model, np.zeros_like(model.transition), None)
    return replace(found, workers=Workers.alike(found.noise, votes), counted=False)


def _of_crowd(crowd: Crowd, workers: Workers, estimator: NoiseEstimator | None) -> NoiseSource:
    noise, errors = crowd.noise(workers)
    return NoiseSource(noise, errors, estimator, workers=workers, crowd=crowd)


def _of_single_votes(priors: ArrayLike | None, data: Labelled, votes: Votes) -> NoiseSource:
    """At most one vote per row: nothing but labels, some of them missing."""
    voted = data.rows.members[votes.voted]
    X, y, weights = data.X[voted], votes.classes[votes.label], data.weights[voted]
    rows = DistinctRows.of(X, weights)
    part = Labelled(X, y, weights, votes.classes, rows, votes.label)
    return _automatic(priors, part, _about_mean(part))


def _as_model(noise: object, n_classes: int) -> NoiseModel:
    if noise is None:
        return NoiseModel.none(n_classes)
    if isinstance(noise, NoiseModel):
        return noise
    if isinstance(noise, str) or hasattr(noise, "fit") or np.ndim(np.asarray(noise, dtype=object)) < 2:
        raise ValueError(
            f"noise={noise!r} is not known: use 'estimate', a NoiseModel (for two classes NoiseModel.binary(eps_pos=, "
            "eps_neg=)), a transition matrix, an estimator of unflip.estimation, or None for no noise."
        )
    return NoiseModel(as_floats(noise, "noise"))
