"""Whatever a user says of the noise, as a noise model with standard errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from unflip._typing import FloatArray, IntArray, Rows
from unflip._validation import as_floats
from unflip._warning import warn_caller
from unflip.estimation.automatic import AssumedNoiseWarning, Automatic, narrowed
from unflip.estimation.base import NoiseEstimator
from unflip.noise import NoiseModel
from unflip.rows import DistinctRows
from unflip.spectrum import Spectrum, decompose


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows with observed labels, as given and as prepared."""

    X: Rows
    y: NDArray[Any]
    weights: FloatArray
    classes: NDArray[Any]
    rows: DistinctRows
    codes: IntArray  # of the members

    @property
    def observed(self) -> FloatArray:
        """Proportions of the observed classes."""
        return self.rows.shares(self.codes)


@dataclass(frozen=True, eq=False)
class NoiseSource:
    """A noise model with priors, the standard errors of its transition, and what estimated them, if anything did.

    `counted` says that the priors are nothing but what explains the observed proportions.
    """

    noise: NoiseModel
    errors: FloatArray
    estimator: NoiseEstimator | None
    counted: bool = False


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
    if isinstance(noise, str) and noise == "estimate":
        return _automatic(priors, data, spectrum)
    if isinstance(noise, NoiseEstimator):
        return _estimated(noise, priors, data)
    model = given_model(noise, priors, data.classes)
    # Without flips there is nothing to infer: counting is exact.
    counted = model.priors is None and not np.array_equal(model.transition, np.eye(model.n_classes))
    known = _inferred(model, data.observed, data.rows.n_effective) if model.priors is None else model
    return NoiseSource(known, np.zeros_like(known.transition), None, counted)


def given_model(noise: object, priors: ArrayLike | None, classes: NDArray[Any]) -> NoiseModel:
    """Return the noise model that was given for these classes, with the priors if these are known.

    Parameters are those of `noise_source`.
    """
    model = _given(noise, len(classes))
    if model.n_classes != len(classes):
        raise ValueError(
            f"The noise model knows {model.n_classes} classes but y has {len(classes)}: give a transition matrix for "
            f"the classes {classes.tolist()}, in that order."
        )
    if priors is None:
        return model
    known = model.with_priors(priors)
    if model.priors is not None and not np.allclose(model.priors, known.known_priors):
        raise ValueError(f"priors={priors!r} contradict those of the noise model, {model.priors.tolist()}: give one.")
    return known


def centred(spectrum: Spectrum, data: Labelled) -> Spectrum:
    """Return the spectrum of the rows about their mean."""
    if spectrum.fit_intercept:
        return spectrum
    rows = data.rows
    return decompose(rows.X, rows.spectrum_weights, shares=rows.memberships(data.codes, len(data.classes)))


def _automatic(priors: ArrayLike | None, data: Labelled, spectrum: Spectrum) -> NoiseSource:
    estimator = Automatic(priors=priors).fit_spectrum(centred(spectrum, data), data.rows, data.codes)
    if estimator.assumption_:
        warn_caller(estimator.assumption_, AssumedNoiseWarning)
    estimator.classes_, estimator.n_features_in_ = data.classes, data.X.shape[1]
    counted = priors is None and estimator.source_ == "anchor rows"
    return NoiseSource(estimator.noise_, estimator.noise_std_, estimator, counted)


def _estimated(estimator: NoiseEstimator, priors: ArrayLike | None, data: Labelled) -> NoiseSource:
    fitted = clone(estimator)
    if has_fit_parameter(fitted, "sample_weight"):
        fitted.fit(data.X, data.y, sample_weight=data.weights)
    elif (data.weights == 1).all():
        fitted.fit(data.X, data.y)
    else:
        raise ValueError(f"noise={estimator!r} takes no sample_weight: fit without weights, or repeat rows.")
    if priors is None:
        return NoiseSource(fitted.noise_, fitted.noise_std_, fitted)
    noise, errors = narrowed(fitted.noise_, fitted.noise_std_, priors, data.rows, data.codes)
    return NoiseSource(noise, errors, fitted)


def _given(noise: object, n_classes: int) -> NoiseModel:
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


def _inferred(noise: NoiseModel, observed: FloatArray, n_rows: float) -> NoiseModel:
    """Return the priors behind the observed proportions.

    Of two classes, proportions that no priors explain contradict the rates. Of more, chance does that to small classes:
    they are given a share of one row.
    """
    if noise.n_classes == 2:
        return noise.with_observed(observed)
    shares = observed @ noise.inverse_transition
    empty = shares <= 0
    if empty.any():
        warn_caller(
            f"The flip rates and the observed proportions leave no true row in class {np.flatnonzero(empty)[0]}, by "
            "chance or because the rates are too high; it is given one. Give priors= if you know the proportions.",
        )
        shares = np.where(empty, 1 / n_rows, shares)
    return noise.with_priors(shares / shares.sum())
