"""The samples of `NoisyLabelClassifier`, of any kind that its classifier takes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, check_array

from unflip._utils.typing import FloatArray, IntArray, Rows
from unflip._utils.validation import shown
from unflip.calibration.observations import Observations
from unflip.data.duplicates import DistinctRows
from unflip.data.groups import Folds, group_folds, n_effective_of
from unflip.labels.classes import encode, true_codes
from unflip.model.out_of_fold import fit_weighted, weight_parameter

# Least number of samples of each class that a classifier with weights is fitted to, if so many have
# its label: enough for the five folds of those that cross-validate.
_LEAST = 5
_ALL = slice(None)  # members
# Least weight of a sample, so that no class has a total weight of 0.
_LEAST_WEIGHT = 1e-6


def as_samples(X: Any) -> Any:
    """Return samples of any kind, as they are if they can be; raise ValueError without any."""
    if hasattr(X, "__array__") and not hasattr(X, "shape"):
        X = np.asarray(X)
    is_list = isinstance(X, list | tuple)
    n_rows = len(X) if is_list else next(iter(getattr(X, "shape", ())), 0)
    if not n_rows:
        raise ValueError(
            f"X = {shown(X)} must hold samples: pass an array, a sparse matrix, a DataFrame or a "
            "list."
        )
    if isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind in "biufc":
        raise ValueError(
            "X is a 1D array of numbers, but must have a row for each sample. Reshape your data: "
            "X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one sample."
        )
    return X


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples with observed labels and weights.

    Attributes
    ----------
    rows : array-like of shape (n, p)
        All samples, as the user passes them.
    all_labels, all_weights : ndarray of shape (n,)
        Their labels and weights.
    members : ndarray of int
        Indices of the samples of positive weight.
    classes : ndarray of shape (k,)
        Their labels, sorted.
    codes : ndarray of shape (n_positive,)
        Class index of each member.
    all_groups : ndarray of shape (n,) or None
        Groups of the samples.
    """

    rows: Any
    all_labels: NDArray[Any]
    all_weights: FloatArray
    members: IntArray
    classes: NDArray[Any]
    codes: IntArray
    all_groups: NDArray[Any] | None

    @classmethod
    def of(
        cls, X: Any, labels: NDArray[Any], weights: FloatArray, groups: ArrayLike | None
    ) -> Samples:
        """Encode the labels, and check the groups."""
        members = np.flatnonzero(weights > 0)
        if not len(members):
            raise ValueError(
                "sample_weight is 0 for every labelled row: give at least one non-zero weight."
            )
        owner = "NoisyLabelClassifier"
        all_rows = len(members) == len(labels)
        classes, codes = encode(labels[members], owner, all_rows=all_rows)
        group_folds(groups, labels.shape)  # raises ValueError for invalid groups
        all_groups = None if groups is None else np.asarray(groups)
        rows = X.tocsr() if issparse(X) else X  # rows of other formats cannot be selected
        return cls(rows, labels, weights, members, classes, codes, all_groups)

    @property
    def n_all(self) -> int:
        """Number of all samples."""
        return len(self.all_labels)

    @cached_property
    def kept(self) -> Any:
        """The members."""
        if len(self.members) == self.n_all:
            return self.rows
        return _safe_indexing(self.rows, self.members)

    @property
    def labels(self) -> NDArray[Any]:
        """Observed labels of the members."""
        return self.all_labels[self.members]

    @property
    def weights(self) -> FloatArray:
        """Weights of the members."""
        return self.all_weights[self.members]

    @property
    def groups(self) -> NDArray[Any] | None:
        """Groups of the members; None if no two share a group."""
        return None if self.all_groups is None or not self.folds else self.all_groups[self.members]

    @cached_property
    def folds(self) -> Folds:
        """Indices of training and held-out members by groups, among all samples."""
        if self.all_groups is None:
            return []
        folds = group_folds(self.all_groups[self.members], self.members.shape)
        return [(self.members[train], self.members[test]) for train, test in folds]

    @cached_property
    def numeric(self) -> Rows | None:
        """All samples as standardized numbers; sparse ones as they are; None if not numeric.

        Missing values are imputed by the mean, with an indicator column.
        """
        sparse_or_dense = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
        try:
            values = check_array(
                self.rows,
                **sparse_or_dense,
                ensure_all_finite=False,
                ensure_2d=False,
                allow_nd=True,
                ensure_min_samples=0,
                ensure_min_features=0,
            )
        except (TypeError, ValueError):  # not numbers
            return None
        if values.ndim != 2:
            return None
        rows = check_array(values, **sparse_or_dense, ensure_all_finite="allow-nan")
        if issparse(rows):
            return rows
        missing = np.isnan(rows)
        rows = np.where(missing[self.members].all(axis=0), 0.0, rows)  # columns without values
        indicators = missing[:, missing.any(axis=0)]
        scaler = StandardScaler().set_output(transform="default")
        scaled = scaler.fit_transform(np.hstack([rows, indicators]), sample_weight=self.all_weights)
        return np.nan_to_num(scaled, copy=False)  # the mean of each column is 0

    @property
    def fold_units(self) -> IntArray:
        """Index of the unit of each member: folds keep duplicates in one unit together.

        Each of more duplicates than leave-one-out scores leave out together is a unit of its own.
        """
        own = np.arange(len(self.members))
        if self.numeric is None:
            return own
        distinct = DistinctRows.of(self.numeric, self.all_weights)
        owner = np.asarray(distinct.owner)
        is_single = np.asarray(distinct.leaving_share)[owner] < 1
        return np.where(is_single, len(own) + own, owner)

    @property
    def n_effective(self) -> float:
        """Effective sample size (Kish) of the members."""
        return float(self.weights.sum() ** 2 / (self.weights**2).sum())

    @property
    def observed(self) -> FloatArray:
        """Proportions of the observed classes."""
        return np.asarray(np.bincount(self.codes, self.weights) / self.weights.sum())

    def observations(self, n_effective: float, *, priors_known: bool) -> Observations:
        """Return the labels of the members, with weights that count independent rows."""
        if self.groups is not None:
            n_effective = n_effective_of(self.groups, self.weights)
        counts = self.weights / self.weights.sum() * n_effective
        return Observations(self.codes, counts, n_effective, priors_known)

    def true_codes(self, y_trusted: ArrayLike | None) -> IntArray:
        """Return the true class of each member, `UNCHECKED` if unknown."""
        return true_codes(y_trusted, self.n_all, self.members, self.classes, "y_trusted")

    def to_all(self, of_members: FloatArray, of_others: FloatArray) -> FloatArray:
        """Return values of all samples, (n, k), from those of the members and of any other."""
        values = np.tile(of_others, (self.n_all, 1))
        values[self.members] = of_members
        return values


def fit_to_labels(estimator: Any, samples: Samples, part: IntArray | slice = _ALL) -> Any:
    """Fit a classifier to the observed labels of all members, or of some."""
    rows = _safe_indexing(samples.kept, part)
    return fit_weighted(estimator, rows, samples.labels[part], samples.weights[part])


def fit_to_posterior(
    estimator: Any, samples: Samples, posterior: FloatArray, part: IntArray | slice = _ALL
) -> Any:
    """Fit a classifier to the likeliest class of each sample, weighted by its lead.

    The lead is the probability of that class minus that of the next. A weighted sample for each
    class instead, with its probability as the weight, is less accurate for support vector machines,
    and no better for others. A class that is the likeliest of too few samples gets those with its
    label that have the largest probability, weighted by it, because classifiers may need samples of
    all classes.

    Parameters
    ----------
    estimator : classifier
        The classifier; it stays unfitted.
    samples : Samples
        The samples.
    posterior : ndarray of shape (n_positive, k)
        P(true class | sample, label) of the members.
    part : ndarray of int or slice, optional
        The members to fit to; all by default.
    """
    posterior = posterior[part]
    codes = samples.codes[part]
    likeliest = posterior.argmax(axis=1)
    ordered = np.sort(posterior, axis=1)
    share = np.maximum(ordered[:, -1] - ordered[:, -2], _LEAST_WEIGHT)
    least = 1 if weight_parameter(estimator) is None else _LEAST
    for code in np.flatnonzero(np.bincount(likeliest, minlength=posterior.shape[1]) < least):
        labelled = np.flatnonzero(codes == code)
        kept = labelled[np.argsort(-posterior[labelled, code], kind="stable")[:least]]
        likeliest[kept] = code
        share[kept] = np.maximum(posterior[kept, code], _LEAST_WEIGHT)
    rows = _safe_indexing(samples.kept, part)
    weights = samples.weights[part] * share
    return fit_weighted(estimator, rows, samples.classes[likeliest], weights)
