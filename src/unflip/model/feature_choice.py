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
from array_api_compat import array_namespace, device
from sklearn.base import clone

from unflip._utils.arrays import TINY, as_numpy, like, row_products, take
from unflip._utils.typing import Array, IntArray, Rows
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
# Observations by which features are compared. A choice: with 2000, the correlations of two kernels
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
    owner, weights, labels = _compared_observations(data)
    distinct, row_of = np.unique(owner, return_inverse=True)
    X = _in_memory(take_rows(data.rows.X, distinct))

    def agreement(features: Rows) -> _Agreement:
        rows = _unmerged(take_rows(features, row_of), weights, data.rows.largest)
        return _agreement(rows, labels)

    linear = agreement(X)
    landmarks = KernelFeatures(n_components=_COMPARED_LANDMARKS).fit(X)
    squared = landmarks.squared_distances(X)
    agreements = {
        kernel: agreement(landmarks.with_kernel(kernel).features_at(squared)) for kernel in KERNELS
    }
    best = max(agreements, key=lambda kernel: agreements[kernel].correlation)
    if not agreements[best].exceeds(linear, _SIGNIFICANT):
        return None
    return KernelFeatures(best).fit(data.rows.X)


def _compared_observations(data: TrainingSet) -> tuple[IntArray, Array, Array]:
    """Return the distinct row, the weight and the shares of the labels of each observation.

    A duplicate group is one observation, but each member of a very large one is an observation of
    its own (`DistinctRows.leaving_share`). There are at most `_COMPARED_ROWS`, all with votes.
    """
    rows = data.rows
    xp = array_namespace(rows.weights)
    is_large = as_numpy(rows.leaving_share) < 1
    merged = like(np.flatnonzero(~is_large), rows.weights)
    apart = like(np.flatnonzero(is_large[as_numpy(rows.owner)]), rows.weights)
    owner = xp.concat([merged, take(rows.owner, apart)])
    weights = xp.concat([take(rows.weights, merged), take(rows.member_weights, apart)])
    labels = xp.concat(
        [take(rows.average(data.label_shares), merged), take(data.label_shares, apart)], axis=0
    )
    chosen = np.flatnonzero(as_numpy(labels).any(axis=1))
    if len(chosen) > _COMPARED_ROWS:
        chosen = np.random.default_rng(0).choice(chosen, _COMPARED_ROWS, replace=False)
    indices = like(np.sort(chosen), rows.weights)
    return as_numpy(take(owner, indices)), take(weights, indices), take(labels, indices)


def _unmerged(X: Rows, weights: Array, largest: float) -> DistinctRows:
    """Return rows that are left out one at a time, even if some are equal."""
    own_index = array_namespace(weights).arange(weights.shape[0], device=device(weights))
    return DistinctRows(X, weights, own_index, own_index, weights, largest, int(weights.shape[0]))


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
