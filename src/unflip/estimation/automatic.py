"""How noisy are the labels? The best answer that the data at hand allow, and how much of it was assumed."""

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
from unflip.data.lazy import validated
from unflip.data.training_set import TrainingSet
from unflip.estimation.anchors import anchor_rates, consistent
from unflip.estimation.cross_moment import CrossMoment
from unflip.estimation.isotropy import MixtureEvidence, evidence_and_clusters
from unflip.estimation.loo_scores import scored_classes
from unflip.estimation.noise_estimator import AssumedNoiseWarning, NoiseEstimator
from unflip.estimation.priors_constraint import narrowed
from unflip.estimation.trusted import TrustedSubset
from unflip.labels.classes import encode
from unflip.labels.noise import NoiseModel
from unflip.ridge.label_association import SURE, UNSURE
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.decomposition import decompose

_LARGEST_MISFIT, _SMALLEST_MISFIT = (
    5.0,
    0.05,
)  # of given proportions to clusters: standard errors, and beyond these

_UNTOLD_RATE = (
    0.5  # labels drawn anew where nothing is known of them; wide standard errors go with it
)
_NOTHING_TOLD = (
    "The features do not predict the labels better than chance, so nothing shows which labels are "
    "wrong, and the noise rates mean nothing: add rows or other features, or give a NoiseModel."
)

Source = Literal["trusted rows", "mixture", "anchor rows"]


class Automatic(NoiseEstimator):
    """Noise rates from whatever there is: trusted rows, class proportions, the structure of the rows, or a prior.

    Labels and rows alone do not identify the rates of real data: whether classes overlap or labels
    are wrong looks the same. So rates come from, in this order,

    1. rows with true labels (`TrustedSubset`),
    2. the mixture structure of the rows, where tests support it (`MixtureEvidence`, `CrossMoment`),
    3. the labels of the surest rows, as a stated guess with a wide standard error and a warning
       (see `unflip.estimation.anchors`),

    and where the true class proportions are known, they narrow the answer of 1 and 3 (see
    `unflip.estimation.priors_constraint`) and enter that of 2.

    Parameters
    ----------
    y_trusted : array-like of shape (n,), optional
        True labels of some rows, as in `TrustedSubset`.
    priors : array-like of shape (k,), optional
        ClassProportions of the true classes.

    Attributes
    ----------
    classes_, noise_, noise_std_
        See `NoiseEstimator`.
    source_ : {"trusted rows", "mixture", "anchor rows"}
        What the rates were read from.
    evidence_ : MixtureEvidence or None
        How the rows fared as a mixture; None where that was not asked: with trusted rows, or where
        rows repeat or carry weights, which no test of independent rows allows.
    assumption_ : str
        What was assumed rather than seen, in words; empty where nothing was.
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
        """Estimate from rows X with observed labels y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Rows.
        y : array-like of shape (n,)
            Observed labels.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows; a row of weight 2 counts as two copies, one of weight 0 as absent.
        """
        given, labels = validated(self, X, y, dtype=np.float64, ensure_min_samples=2)
        weights = relative_weights(checked_weights(sample_weight, given))
        rows = DistinctRows.of(given, weights)
        check_squares(rows.largest, int(np.prod(given.shape)))
        self.classes_, codes = encode(labels[rows.members], "Automatic")
        if self.y_trusted is None:
            shares = rows.memberships(codes, len(self.classes_))
            self.fit_spectrum(decompose(rows.X, rows.spectrum_weights, shares=shares), rows, codes)
            if self.assumption_:
                warn_caller(self.assumption_, AssumedNoiseWarning)
            return self
        trusted = TrustedSubset(self.y_trusted).fit(given, labels, weights)
        self.source_, self.evidence_, self.assumption_ = "trusted rows", None, ""
        return self._keep(trusted.noise_, trusted.noise_std_, rows, codes)

    def fit_from_spectrum(self, data: TrainingSet, spectrum: Spectrum) -> Self:
        """Estimate without trusted labels; does not warn of what was assumed."""
        if self.y_trusted is not None:
            return super().fit_from_spectrum(data, spectrum)
        self.fit_spectrum(spectrum, data.rows, data.codes)
        self.classes_ = data.classes
        self.n_features_in_ = data.X.shape[1]
        return self

    def fit_spectrum(self, spectrum: Spectrum, rows: DistinctRows, codes: Array) -> Self:
        """Estimate without trusted rows, from the spectrum of the distinct rows, centred, and class indices.

        It does not warn of what was assumed: see ``assumption_``. Rows may be on any device: they
        stay there, and what is read off them (coordinates along what stands out, scores, classes
        and weights) is brought to the host.
        """
        on_host = as_numpy(codes)
        k = int(on_host.max()) + 1
        known = (
            None
            if self.priors is None
            else NoiseModel.none(k).with_priors(self.priors).known_priors
        )
        self.assumption_ = ""
        alone = (
            rows.spectrum_weights is None
        )  # weights and copies are no independent rows, which the tests need
        self.evidence_, clusters = (
            evidence_and_clusters(spectrum, on_host, k) if alone else (None, None)
        )
        if self.evidence_ is not None and self.evidence_.supported:
            self.source_ = "mixture"
            mixture = CrossMoment().fit_spectrum(spectrum, on_host, clusters)
            if known is not None and k == 2:
                _check_clusters(known, mixture.noise_.known_priors, len(on_host))
                mixture = CrossMoment(pi_neg=float(known[0])).fit_spectrum(spectrum, on_host)
            return self._keep(mixture.noise_, mixture.noise_std_, rows, codes)
        self.source_ = "anchor rows"
        scores, associated = scored_classes(rows, codes, k, spectrum)
        rough, observed = (
            anchor_rates(as_numpy(scores), on_host, as_numpy(rows.counts)),
            rows.shares(codes),
        )
        is_told = associated > UNSURE
        is_sure = associated >= SURE
        guess = (
            consistent(rough.transition, observed, is_sure=is_sure)
            if is_told
            else _untold(observed)
        )
        self._keep(guess, rough.errors, rows, codes)
        self.assumption_ = self._guess() if is_told else _NOTHING_TOLD
        return self

    def _keep(
        self, noise: NoiseModel, errors: FloatArray, rows: DistinctRows, codes: Array
    ) -> Self:
        self.noise_, self.noise_std_ = noise, errors
        if self.priors is not None and (noise.n_classes > 2 or self.source_ != "mixture"):
            self.noise_, self.noise_std_ = narrowed(noise, errors, self.priors, rows, codes)
        return self

    def _guess(self) -> str:
        doubt = float(self.noise_std_[~np.eye(self.noise_.n_classes, dtype=bool)].max())
        used, missing = (
            ("", "priors= (the true class proportions), ")
            if self.priors is None
            else (" and the priors", "")
        )
        reason = self.evidence_ if self.evidence_ is not None else "rows repeat or carry weights"
        return (
            f"The noise rates are a guess, from the labels of the surest rows{used}, with standard "
            f"errors up to {doubt:.2f}: nothing here identifies them ({reason}). Give {missing}a "
            "NoiseModel, or rows with true labels (estimation.TrustedSubset); noise=None if all "
            "labels are right."
        )


def _check_clusters(priors: FloatArray, found: FloatArray, n: int) -> None:
    """Raise where given proportions are not those of the clusters that the rows form."""
    if (
        abs(priors[0] - found[0])
        > _LARGEST_MISFIT * np.sqrt(found[0] * found[1] / n) + _SMALLEST_MISFIT
    ):
        raise ValueError(
            f"priors {priors.round(3).tolist()} contradict the clusters of the rows, which have "
            f"the proportions {found.round(3).tolist()}: check the priors and the order of their "
            "classes (sorted)."
        )


def _untold(observed: FloatArray) -> NoiseModel:
    """Return flips that leave the proportions as they are, for scores that do not predict the labels.

    Such scores show no anchor rows, and proportions that followed from rates which mean nothing
    would be far off.
    """
    transition = (1 - _UNTOLD_RATE) * np.eye(len(observed)) + _UNTOLD_RATE * observed
    return NoiseModel(transition / transition.sum(axis=1, keepdims=True), observed)
