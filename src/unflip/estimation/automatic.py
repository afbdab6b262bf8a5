"""Noise rates from the best source that the data allow: `noise="estimate"`."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.arrays import as_numpy
from unflip._utils.namespaces import checked_weights
from unflip._utils.typing import Array, FloatArray
from unflip._utils.validation import check_squares
from unflip._utils.warnings import warn_caller
from unflip.data.duplicates import DistinctRows, relative_weights
from unflip.data.input_rows import validated
from unflip.data.training_set import TrainingSet
from unflip.estimation.anchors import (
    NO_SIGNAL,
    NOT_IDENTIFIABLE,
    anchor_rates,
    consistent_noise,
    uninformative_noise,
)
from unflip.estimation.cross_moment import CrossMoment
from unflip.estimation.isotropy import MixtureEvidence, evidence_and_clusters
from unflip.estimation.loo_scores import class_scores
from unflip.estimation.noise_estimator import TRUSTED_ROWS, AssumedNoiseWarning, NoiseEstimator
from unflip.estimation.priors_constraint import LARGEST_MISFIT, constrain_by_priors
from unflip.estimation.trusted import TrustedSubset
from unflip.labels.classes import encode
from unflip.labels.noise import NoiseModel
from unflip.ridge.label_association import SURE, UNSURE
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.decomposition import decompose

Source = Literal["trusted rows", "mixture", "anchor rows", "no signal", "label likelihood"]


class Automatic(NoiseEstimator):
    """Noise rates from trusted labels, the mixture structure of the rows, or the labels.

    The rates come from the first of

    1. trusted labels (`TrustedSubset`),
    2. the mixture structure of the rows, if tests support it (`MixtureEvidence`, `CrossMoment`),
    3. the labels of high-confidence rows, a rough estimate with a large standard error
       (see `unflip.estimation.anchors`). `LPClassifier` starts from it and corrects it by the
       likelihood of the labels (see `unflip.calibration.likeliest_noise`).

    Known class priors enter the mixture fit of 2. Those of 1 and 3 are constrained by them
    afterwards (see `unflip.estimation.priors_constraint`).

    Parameters
    ----------
    y_trusted : array-like of shape (n,), optional
        True labels of checked rows, as in `TrustedSubset`.
    priors : array-like of shape (k,), optional
        Proportions of the true classes.

    Attributes
    ----------
    classes_, noise_, noise_std_
        See `NoiseEstimator`.
    source_ : {"trusted rows", "mixture", "anchor rows", "no signal", "label likelihood"}
        Source of the rates: 1, 2 or 3 of the list above; "no signal" if the features do not predict
        the labels, "label likelihood" if `LPClassifier` corrected the rates of 3.
    evidence_ : MixtureEvidence or None
        Results of the tests of 2. None if they were not made: with trusted labels, and with
        duplicate or weighted rows, which are not independent.
    assumption_ : str
        What was assumed rather than estimated, as a sentence; empty if nothing was.

    Examples
    --------
    >>> from unflip.datasets import make_mixture
    >>> X, y = make_mixture(1000, 50, mean_norm=2.0, random_state=0)
    >>> labels = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1).flip(y, random_state=0)
    >>> estimate = Automatic().fit(X, labels)
    >>> estimate.source_
    'mixture'
    >>> print(f"{estimate.noise_.eps_pos:.2f} ± {estimate.noise_std_[1, 0]:.2f}")
    0.27 ± 0.02
    """

    source_: Source
    evidence_: MixtureEvidence | None
    n_features_in_: int

    def __init__(
        self, *, y_trusted: ArrayLike | None = None, priors: ArrayLike | None = None
    ) -> None:
        self.y_trusted = y_trusted
        self.priors = priors

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the rates from rows X with observed labels y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Rows.
        y : array-like of shape (n,)
            Observed labels.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows. Weight 2 equals a duplicate, weight 0 leaves the row out.
        """
        checked_X, labels = validated(self, X, y, dtype=np.float64, ensure_min_samples=2)
        weights = relative_weights(checked_weights(sample_weight, checked_X))
        rows = DistinctRows.of(checked_X, weights)
        check_squares(rows.largest, int(np.prod(checked_X.shape)))
        self.classes_, codes = encode(labels[rows.members], "Automatic")
        if self.y_trusted is None:
            shares = rows.memberships(codes, len(self.classes_))
            self.fit_spectrum(decompose(rows.X, rows.spectrum_weights, shares=shares), rows, codes)
            if self.assumption_:
                warn_caller(self.assumption_, AssumedNoiseWarning)
            return self
        trusted = TrustedSubset(self.y_trusted).fit(checked_X, labels, weights)
        self.source_ = TRUSTED_ROWS
        self.evidence_ = None
        self.assumption_ = ""
        self.is_start_ = False
        return self._keep(trusted.noise_, trusted.noise_std_, rows, codes)

    def fit_training_set(self, data: TrainingSet, spectrum: Spectrum) -> Self:
        """Estimate from a prepared training set; does not warn of assumptions."""
        if self.y_trusted is not None:
            return super().fit_training_set(data, spectrum)
        return self.fit_from_spectrum(data, spectrum)

    def fit_from_spectrum(self, data: TrainingSet, spectrum: Spectrum) -> Self:
        """Estimate without trusted labels; does not warn of assumptions."""
        if self.y_trusted is not None:
            return super().fit_from_spectrum(data, spectrum)
        self.fit_spectrum(spectrum, data.rows, data.codes)
        self.classes_ = data.classes
        self.n_features_in_ = data.X.shape[1]
        return self

    def fit_spectrum(self, spectrum: Spectrum, rows: DistinctRows, codes: Array) -> Self:
        """Estimate without trusted labels from a spectrum; does not warn of assumptions.

        Rows stay on their device. Scores, classes, weights and coordinates along the spikes are
        moved to the host.

        Parameters
        ----------
        spectrum : Spectrum
            Spectrum of the distinct rows, centred.
        rows : DistinctRows
            The rows.
        codes : array of shape (n_positive,)
            Observed class of each member.
        """
        host_codes = as_numpy(codes)
        k = int(host_codes.max()) + 1
        priors = None
        if self.priors is not None:
            priors = NoiseModel.none(k).with_priors(self.priors).known_priors
        self.assumption_ = ""
        self.is_start_ = False
        self.rate_covariance_ = None
        self.calibration_noise_ = None
        self.evidence_ = None
        clusters = None
        if rows.spectrum_weights is None:  # the tests require independent rows
            self.evidence_, clusters = evidence_and_clusters(spectrum, host_codes, k)
        if self.evidence_ is not None and self.evidence_.supported:
            self.source_ = "mixture"
            mixture = CrossMoment().fit_spectrum(spectrum, host_codes, clusters)
            if priors is not None and k == 2:
                _check_clusters(priors, mixture.noise_.known_priors, len(host_codes))
                mixture = CrossMoment(pi_neg=float(priors[0])).fit_spectrum(spectrum, host_codes)
            return self._keep(mixture.noise_, mixture.noise_std_, rows, codes)
        scores, associated = class_scores(rows, codes, k, spectrum)
        estimate = anchor_rates(as_numpy(scores), host_codes, as_numpy(rows.counts))
        observed = rows.shares(codes)
        self.is_start_ = associated > UNSURE
        if not self.is_start_:
            self.source_ = "no signal"
            self.assumption_ = NO_SIGNAL
            return self._keep(uninformative_noise(observed), estimate.errors, rows, codes)
        self.source_ = "anchor rows"
        self.assumption_ = NOT_IDENTIFIABLE
        is_sure = associated >= SURE
        noise = consistent_noise(estimate.transition, observed, is_sure=is_sure)
        return self._keep(noise, estimate.errors, rows, codes)

    def _keep(
        self, noise: NoiseModel, errors: FloatArray, rows: DistinctRows, codes: Array
    ) -> Self:
        self.noise_ = noise
        self.noise_std_ = errors
        if self.priors is not None and (noise.n_classes > 2 or self.source_ != "mixture"):
            self.noise_, self.noise_std_ = constrain_by_priors(
                noise, errors, self.priors, rows.shares(codes), rows.n_effective
            )
        return self


def _check_clusters(priors: FloatArray, estimated: FloatArray, n: int) -> None:
    """Raise `ValueError` if known class priors contradict the clusters of the rows."""
    error = np.sqrt(estimated[0] * estimated[1] / n)
    # Another 5 percentage points are tolerated.
    if abs(priors[0] - estimated[0]) > LARGEST_MISFIT * error + 0.05:
        raise ValueError(
            f"priors {priors.round(3).tolist()} contradict the clusters of the rows, which have "
            f"the proportions {estimated.round(3).tolist()}: check the priors and the order of "
            "their classes (sorted)."
        )
