r"""Tests of whether a data set is a mixture of classes in isotropic noise, labelled by the class alone.

Rates read off such a mixture are precise, and wrong without warning where the rows are something
else. So each of its consequences is tested before it is relied on. What no test can tell is whether
the clusters ARE the classes: two topics with different shares of labels look like two classes with
noisy ones.
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
    Clusters,
    cluster_gain,
    fit_clusters,
    label_association,
    label_free_clusters,
)
from unflip.estimation.spectral import Spikes
from unflip.ridge.spectrum.base import Spectrum

_LIMIT = 3.0  # standard errors
_SMALLEST_P_VALUE = 0.001
_BINS = 10


@dataclass(frozen=True)
class MixtureEvidence:
    """Outcome of each test of the mixture structure.

    Attributes
    ----------
    n_classes : int
        k.
    n_spikes : int
        Directions that stand out of the noise: between 1 and k − 1 for k classes. k stands for more
        as well.
    excess_spread : float
        Spread of the other eigenvalues beyond isotropic noise, in standard errors.
    cluster_gain : float
        How much better k clusters describe the rows along those directions than one Gaussian, in
        units of the Bayesian information criterion: above 0 in favour. NaN where it was not tested,
        as another test had failed.
    stray_signal : float
        Agreement of labels and rows outside those directions, in standard errors. NaN as above.
    label_fit : float
        p-value of the labels' shares along the clusters, given that they depend on the class alone.
        NaN as above.
    chance : float
        p-value of the labels' shares in the clusters, given that they do not depend on these at
        all. NaN as above.
    untested : str
        Why no test was made; empty where they were.
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
        """Whether every test is passed."""
        return not self.objections

    @property
    def objections(self) -> list[str]:
        """What speaks against the mixture, in words."""
        if self.untested:
            return [self.untested]
        tests = [
            (self.n_spikes >= 1, "no direction of the rows stands out of the noise"),
            (
                self.n_spikes < self.n_classes,
                f"{self.n_spikes} directions or more stand out, too many for the classes",
            ),
            (
                self.excess_spread < _LIMIT,
                f"the noise is not isotropic (by {self.excess_spread:.0f} standard errors)",
            ),
            (not self.cluster_gain <= 0, "the rows form no clusters along what stands out"),
            (
                not self.stray_signal >= _LIMIT,
                "the labels also follow directions that do not stand out",
            ),
            (
                not self.label_fit < _SMALLEST_P_VALUE,
                "the labels do not depend on the cluster alone",
            ),
            (not self.chance > _SMALLEST_P_VALUE, "the labels do not follow the clusters"),
        ]
        return [objection for passed, objection in tests if not passed]

    def __str__(self) -> str:
        if self.supported:
            return "the rows look like classes in isotropic noise"
        if self.untested:
            return f"whether the rows are an isotropic mixture was not tested: {self.untested}"
        return "the rows are no isotropic mixture: " + "; ".join(self.objections)


def mixture_evidence(spectrum: Spectrum, codes: IntArray, n_classes: int) -> MixtureEvidence:
    """Test the mixture structure on the spectrum of centred rows, all of weight 1, and class indices."""
    return evidence_and_clusters(spectrum, codes, n_classes)[0]


def evidence_and_clusters(
    spectrum: Spectrum, codes: IntArray, n_classes: int
) -> tuple[MixtureEvidence, Clusters | None]:
    """Return the evidence, and the clusters where it came to fitting them; parameters are those of `mixture_evidence`.

    Tests come in the order of what they cost, and none is made after one that has failed.
    """
    if not spectrum.is_whole:
        reason = "their eigenvalues are too many to find one by one"
        return MixtureEvidence(n_classes, n_spikes=0, excess_spread=np.nan, untested=reason), None
    spikes = Spikes.of(spectrum, most=n_classes)
    first = MixtureEvidence(n_classes, len(spikes.strengths), spikes.excess_spread)
    if first.objections:  # without clear directions there is nothing to look along
        return first, None
    some = spikes.coordinates[random_rows(len(codes), MOST_ROWS)]
    by_shape = label_free_clusters(some, n_classes)
    seen = replace(
        first,
        cluster_gain=cluster_gain(some, by_shape),
        stray_signal=_stray_signal(spectrum, spikes, codes, n_classes),
    )
    if (
        seen.objections
    ):  # clusters that overlap take long to fit, and their labels would prove nothing
        return seen, None
    clusters = fit_clusters(spikes.coordinates, codes, n_classes, start=by_shape)
    tested = replace(
        seen,
        label_fit=_label_fit(clusters, spikes.coordinates, codes),
        chance=label_association(clusters, spikes.coordinates, codes),
    )
    return tested, clusters


def _stray_signal(spectrum: Spectrum, spikes: Spikes, codes: IntArray, n_classes: int) -> float:
    r"""Label signal in all directions less that along the spikes, in standard errors of the difference.

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
    influence = 2 * everywhere.sum(axis=1) - 2 * (
        centred * (spikes.coordinates @ (along * scale).T)
    ).sum(axis=1)
    return float(stray / (influence.std() / np.sqrt(n)))


def _label_fit(clusters: Clusters, coordinates: FloatArray, codes: IntArray) -> float:
    """Compare counts of the observed labels with those expected, in bins along the first discriminant."""
    expected = clusters.membership(coordinates) @ clusters.transition
    order = np.argsort(expected[:, 0])
    observed = np.eye(len(clusters.priors))[codes]
    bins = [
        (observed[part].sum(axis=0), expected[part].sum(axis=0))
        for part in np.array_split(order, _BINS)
    ]
    statistic = sum(float(((seen - due) ** 2 / np.maximum(due, 1)).sum()) for seen, due in bins)
    return float(chi2.sf(statistic, (_BINS - 1) * (len(clusters.priors) - 1)))
