r"""Tests of the isotropic mixture model, before noise rates are estimated from it.

The model: classes with means of their own, isotropic noise, and labels that depend on the class
alone. Rates from this model are precise, but wrong without any sign of it on other data. So each
consequence of the model is tested. No test can decide whether the clusters ARE the classes: two
topics with different label proportions look like two classes with noisy labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import chi2

from unflip._utils.arrays import as_numpy, like
from unflip._utils.typing import FloatArray, IntArray
from unflip.calibration.binning import random_rows
from unflip.estimation.clusters import (
    MOST_ROWS,
    SMALLEST_P_VALUE,
    Clusters,
    cluster_gain,
    fit_clusters,
    label_association,
    unsupervised_clusters,
)
from unflip.estimation.spectral import Spikes
from unflip.ridge.spectrum.base import Spectrum

#: Limit on test statistics, in standard errors; the usual three-sigma rule.
_LIMIT = 3.0


@dataclass(frozen=True)
class MixtureEvidence:
    """Results of the tests of the isotropic mixture model.

    A value is NaN if the test was not made, because an earlier one failed.

    Attributes
    ----------
    n_classes : int
        Number of classes k.
    n_spikes : int
        Number of covariance eigenvalues above the noise level, counted up to k. Between 1 and
        k − 1 in a mixture of k classes.
    excess_spread : float
        Spread of the other eigenvalues beyond that of isotropic noise, in standard errors.
    cluster_gain : float
        Gain in the Bayesian information criterion of k clusters over one Gaussian, along the
        directions of the spikes. Above 0 in favour of clusters.
    stray_signal : float
        Covariance of labels and rows outside those directions, in standard errors.
    label_fit : float
        p-value of the label proportions along the clusters, if they depend on the class alone.
    chance : float
        p-value of the label proportions in the clusters, if they are independent of the clusters.
    untested : str
        Why no test was made; empty if tests were made.

    Examples
    --------
    >>> evidence = MixtureEvidence(n_classes=2, n_spikes=0, excess_spread=0.4)
    >>> evidence.supported
    False
    >>> print(evidence)
    the rows are not an isotropic mixture: no covariance eigenvalue exceeds the noise level
    """

    n_classes: int
    n_spikes: int
    excess_spread: float
    cluster_gain: float = np.nan
    stray_signal: float = np.nan
    label_fit: float = np.nan
    chance: float = np.nan
    untested: str = ""

    @property
    def supported(self) -> bool:
        """Whether all tests were passed."""
        return not self.objections

    @property
    def objections(self) -> list[str]:
        """Failed tests, in words."""
        if self.untested:
            return [self.untested]
        # NaN passes: the test was not made.
        tests = [
            (self.n_spikes >= 1, "no covariance eigenvalue exceeds the noise level"),
            (
                self.n_spikes < self.n_classes,
                f"{self.n_spikes} or more covariance eigenvalues exceed the noise level, too many "
                f"for {self.n_classes} classes",
            ),
            (
                self.excess_spread < _LIMIT,
                f"the noise is not isotropic (by {self.excess_spread:.0f} standard errors)",
            ),
            (not self.cluster_gain <= 0, "the rows do not form clusters"),
            (
                not self.stray_signal >= _LIMIT,
                "the labels also depend on directions other than those of the clusters",
            ),
            (
                not self.label_fit < SMALLEST_P_VALUE,
                "within clusters, the labels depend on the features",
            ),
            (not self.chance > SMALLEST_P_VALUE, "the labels are independent of the clusters"),
        ]
        return [objection for passed, objection in tests if not passed]

    def __str__(self) -> str:
        if self.supported:
            return "the rows are consistent with classes in isotropic noise"
        if self.untested:
            return f"the isotropic mixture model was not tested: {self.untested}"
        return "the rows are not an isotropic mixture: " + "; ".join(self.objections)


def mixture_evidence(spectrum: Spectrum, codes: IntArray, n_classes: int) -> MixtureEvidence:
    """Test the mixture model; parameters are those of `evidence_and_clusters`."""
    return evidence_and_clusters(spectrum, codes, n_classes)[0]


def evidence_and_clusters(
    spectrum: Spectrum, codes: IntArray, n_classes: int
) -> tuple[MixtureEvidence, Clusters | None]:
    """Test the mixture model, and return the fitted clusters too, if it came to fitting them.

    Cheap tests come first, and tests stop at the first stage that fails.

    Parameters
    ----------
    spectrum : Spectrum
        Spectrum of the centred rows, all of weight 1.
    codes : ndarray of shape (n,)
        Observed class of each row.
    n_classes : int
        Number of classes k.
    """
    if not spectrum.is_whole:
        untested = MixtureEvidence(
            n_classes,
            n_spikes=0,
            excess_spread=np.nan,
            untested="X is too large for a full eigendecomposition",
        )
        return untested, None
    spikes = Spikes.of(spectrum, most=n_classes)
    evidence = MixtureEvidence(n_classes, len(spikes.strengths), spikes.excess_spread)
    if evidence.objections:
        return evidence, None
    sample = spikes.coordinates[random_rows(len(codes), MOST_ROWS)]
    start = unsupervised_clusters(sample, n_classes)
    evidence = replace(
        evidence,
        cluster_gain=cluster_gain(sample, start),
        stray_signal=_stray_signal(spectrum, spikes, codes, n_classes),
    )
    if evidence.objections:  # overlapping clusters take long to fit
        return evidence, None
    clusters = fit_clusters(spikes.coordinates, codes, n_classes, start=start)
    evidence = replace(
        evidence,
        label_fit=_label_fit(clusters, spikes.coordinates, codes),
        chance=label_association(clusters, spikes.coordinates, codes),
    )
    return evidence, clusters


def _stray_signal(spectrum: Spectrum, spikes: Spikes, codes: IntArray, n_classes: int) -> float:
    r"""Return the label signal outside the spikes, in standard errors.

    For a centred indicator t of a label, the squared length of E[t·x] is the mean of tᵢtⱼxᵢᵀxⱼ over
    distinct rows. Along a spike it is b²ℓσ²/ρ² with b = E[t·w].
    """
    n = len(codes)
    indicators = np.eye(n_classes)[codes]
    centred = indicators - indicators.mean(axis=0)
    sums = as_numpy(spectrum.kernel_sums(like(centred, spectrum.weights)))
    scores = sums / n / spikes.noise_variance  # Σⱼ xᵢᵀxⱼtⱼ/n over other rows
    everywhere = centred * scores
    scale = spikes.strengths / spikes.visibility
    along = centred.T @ spikes.coordinates / n  # means of t·w, (k, n_spikes)
    noise = ((centred**2).T @ spikes.coordinates**2 / n - along**2) / n
    stray = everywhere.sum(axis=1).mean() - float(((along**2 - noise) * scale).sum())
    along_spikes = (centred * (spikes.coordinates @ (along * scale).T)).sum(axis=1)
    influence = 2 * everywhere.sum(axis=1) - 2 * along_spikes
    return float(stray / (influence.std() / np.sqrt(n)))


def _label_fit(clusters: Clusters, coordinates: FloatArray, codes: IntArray) -> float:
    """Return the p-value of label counts in ten bins along the first discriminant (chi-square)."""
    n_bins = 10
    expected = clusters.membership(coordinates) @ clusters.transition
    order = np.argsort(expected[:, 0])
    observed = np.eye(len(clusters.priors))[codes]
    statistic = 0.0
    for rows in np.array_split(order, n_bins):
        n_observed = observed[rows].sum(axis=0)
        n_expected = expected[rows].sum(axis=0)
        statistic += float(((n_observed - n_expected) ** 2 / np.maximum(n_expected, 1)).sum())
    return float(chi2.sf(statistic, (n_bins - 1) * (len(clusters.priors) - 1)))
