"""The features that `features=` stands for, chosen by leave-one-out scores of the noisy labels.

Of all functions of a sample, P(true class | sample) has the largest correlation with labels whose
noise depends on the class alone: such noise lowers the correlation of every function by the same
factor. So features are compared by the correlation of probabilities with observed labels, as
regularization strengths are by that of scores (`unflip.ridge.selection`), and no clean label is
needed. The probabilities are leave-one-out scores after calibration to the labels: a kernel fit
saturates far from the boundary, as probabilities do and linear scores do not, which is no reason to
prefer it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from sklearn.base import clone

from unflip._utils.arrays import TINY, as_numpy, like, row_products, take
from unflip._utils.typing import Array, Rows
from unflip.calibration.log_odds import calibrate
from unflip.calibration.observations import Observations
from unflip.data.duplicates import DistinctRows, take_rows
from unflip.data.lazy import LazyRows
from unflip.data.training_set import TrainingSet
from unflip.features.kernel_features import KernelFeatures
from unflip.features.kernels import KERNELS
from unflip.features.transformed_rows import transformed_rows
from unflip.labels.classes import contrasts
from unflip.labels.noise import NoiseModel
from unflip.model.refinement.rounds import drop_contradictions
from unflip.ridge.selection import best_reg, candidate_regs, corrected_score_parts
from unflip.ridge.spectrum.decomposition import decompose

# Standard errors by which the best kernel must agree more with the labels than the samples
# themselves: a one-sided test at the 5% level with Bonferroni's correction for three kernels.
_SIGNIFICANT = 2.13
# Distinct rows by which features are compared. A choice: with 2000, the correlations of two kernels
# have a difference whose standard error is about 0.005.
_COMPARED_ROWS = 2000
# Landmarks by which kernels are compared, fewer than those of the fit.
_COMPARED_LANDMARKS = 250


def fit_features(features: Any, data: TrainingSet) -> Any:
    """Return the fitted transformer of the samples; None for the samples themselves.

    Parameters
    ----------
    features : str or transformer
        As in `LPClassifier`, validated.
    data : TrainingSet
        The training set. A transformer is fitted without the labels, which would leak into scores
        of their own rows.
    """
    if isinstance(features, str) and features == "linear":
        return None
    X = data.rows.X
    if isinstance(X, LazyRows):
        X.check_mapping()
    if not isinstance(features, str):
        return clone(features).fit(_in_memory(X))
    return _best_features(data) if features == "auto" else KernelFeatures(features).fit(X)


def with_features(data: TrainingSet, transformer: Any) -> TrainingSet:
    """Return the training set with the features of its rows; unchanged without a transformer."""
    if transformer is None:
        return data
    rows = transformed_rows(transformer, data.rows.X)
    X = rows if data.rows.X is data.X else transformed_rows(transformer, data.X)
    return replace(data, X=X, rows=replace(data.rows, X=rows), is_local=True)


def _best_features(data: TrainingSet) -> KernelFeatures | None:
    """Return the kernel whose fit agrees most with the labels; None for the samples themselves."""
    rows, labels = _compared_rows(data)
    linear = _agreement(rows, labels)
    landmarks = KernelFeatures(n_components=_COMPARED_LANDMARKS).fit(rows.X)
    squared = landmarks.squared_distances(rows.X)
    agreements = {}
    for kernel in KERNELS:
        features = landmarks.with_kernel(kernel).features_at(squared)
        agreements[kernel] = _agreement(replace(rows, X=features), labels)
    best = max(agreements, key=lambda kernel: agreements[kernel].correlation)
    if not agreements[best].exceeds(linear, _SIGNIFICANT):
        return None
    return KernelFeatures(best).fit(data.rows.X)


def _compared_rows(data: TrainingSet) -> tuple[DistinctRows, Array]:
    """Return at most `_COMPARED_ROWS` distinct rows in memory, and shares of their labels, (m, k).

    Rows without votes are left out.
    """
    rows = data.rows
    labels = rows.average(data.label_shares)
    labelled = np.flatnonzero(as_numpy(labels).any(axis=1))
    if len(labelled) > _COMPARED_ROWS:
        labelled = np.random.default_rng(0).choice(labelled, _COMPARED_ROWS, replace=False)
    elif len(labelled) == int(rows.weights.shape[0]):
        return replace(rows, X=_in_memory(rows.X)), labels
    chosen = np.sort(labelled)
    indices = like(chosen, rows.weights)
    sample = _in_memory(take_rows(rows.X, chosen))
    return DistinctRows.of(sample, take(rows.weights, indices)), take(labels, indices)


@dataclass(frozen=True, eq=False)
class _Agreement:
    """The correlation ρ of leave-one-out probabilities s and labels t, at the best γ.

    Attributes
    ----------
    correlation : float
        The correlation.
    influence : array of shape (m,)
        Effect of each row on it, sᵢtᵢ − ρ(sᵢ² + tᵢ²)/2 for standardized s and t.
    share : array of shape (m,)
        Weights of the rows; they sum to 1.
    """

    correlation: float
    influence: Array
    share: Array

    def exceeds(self, other: _Agreement, n_errors: float) -> bool:
        """Whether the correlation is larger by so many standard errors of the difference."""
        difference = self.influence - other.influence
        centred = difference - self.share @ difference
        error = float(self.share**2 @ centred**2) ** 0.5
        return bool(self.correlation - other.correlation > n_errors * error)


def _agreement(rows: DistinctRows, labels: Array) -> _Agreement:
    """Fit by each γ, and return the agreement of the best scores."""
    share = rows.weights / array_namespace(rows.weights).sum(rows.weights)
    spectrum = decompose(rows.X, rows.spectrum_weights)
    if not spectrum.n_varying:
        return _Agreement(0.0, 0 * share, share)
    targets = labels @ like(contrasts(labels.shape[1]), labels)
    reg, _ = best_reg(spectrum, rows, targets, candidate_regs(spectrum))
    scores = corrected_score_parts(spectrum, rows, targets, np.array([reg]))(slice(None))[:, 0, :]
    scores = drop_contradictions(scores, targets, rows.weights)
    probabilities = _standardized(_label_probabilities(scores, labels, rows), share)
    labels = _standardized(labels, share)
    products = row_products(probabilities, labels)
    correlation = float(share @ products)
    if correlation <= 0:  # worse than a constant, by chance
        return _Agreement(0.0, 0 * share, share)
    powers = row_products(probabilities, probabilities) + row_products(labels, labels)
    return _Agreement(correlation, products - correlation / 2 * powers, share)


def _label_probabilities(scores: Array, labels: Array, rows: DistinctRows) -> Array:
    """Return P(label | score) of each row, (m, k)."""
    codes = array_namespace(labels).argmax(labels, axis=1)
    observations = Observations(codes, rows.weights, rows.n_effective)
    counts = rows.n_effective * as_numpy(observations.shares @ labels) + 1  # no class is impossible
    noise = NoiseModel(np.eye(len(counts)), counts / counts.sum())
    return calibrate(scores, observations, noise).probabilities


def _standardized(values: Array, share: Array) -> Array:
    """Return columns (m, r) about their means, with a total variance of 1."""
    centred = values - share @ values
    return centred / max(float(share @ row_products(centred, centred)), TINY) ** 0.5


def _in_memory(X: Rows) -> Rows:
    return np.asarray(X) if isinstance(X, LazyRows) else X
