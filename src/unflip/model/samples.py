"""The samples of `NoisyLabelClassifier`, of any kind that its classifier takes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, check_array

from unflip._utils.typing import FloatArray, IntArray, Rows
from unflip._utils.validation import shown
from unflip.calibration.observations import Observations
from unflip.data.duplicates import DistinctRows
from unflip.data.groups import group_folds, n_effective_of
from unflip.labels.classes import encode, true_codes
from unflip.model.out_of_fold import fit_weighted


def check_samples(X: Any) -> None:
    """Raise ValueError unless X has samples, of any kind."""
    is_list = isinstance(X, list | tuple)
    n_rows = len(X) if is_list else next(iter(getattr(X, "shape", ())), 0)
    if not n_rows:
        raise ValueError(
            f"X = {shown(X)} must hold samples: pass an array, a sparse matrix, a DataFrame or a "
            "list."
        )


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
            raise ValueError("sample_weight is 0 for every row: give at least one non-zero weight.")
        owner = "NoisyLabelClassifier"
        all_rows = len(members) == len(labels)
        classes, codes = encode(labels[members], owner, all_rows=all_rows)
        has_groups = bool(group_folds(groups, labels.shape))
        all_groups = np.asarray(groups) if has_groups else None
        return cls(X, labels, weights, members, classes, codes, all_groups)

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
        """Groups of the members."""
        return None if self.all_groups is None else self.all_groups[self.members]

    @cached_property
    def numeric(self) -> Rows | None:
        """All samples as standardized numbers; sparse ones as they are; None if not numeric.

        Missing values are imputed by the mean, with an indicator column.
        """
        try:
            rows = check_array(
                self.rows,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                ensure_all_finite="allow-nan",
            )
        except (TypeError, ValueError):
            return None
        if issparse(rows):
            return rows
        if np.isnan(rows).any():
            imputer = SimpleImputer(add_indicator=True, keep_empty_features=True)
            rows = imputer.fit_transform(rows)
        return StandardScaler().fit_transform(rows, sample_weight=self.all_weights)

    @cached_property
    def owner(self) -> IntArray:
        """Index of the distinct row that each member equals."""
        if self.numeric is None:
            return np.arange(len(self.members))
        return np.asarray(DistinctRows.of(self.numeric, self.all_weights).owner)

    @property
    def smallest_class(self) -> int:
        """Number of distinct rows of the smallest class."""
        pairs = np.unique(np.column_stack([self.owner, self.codes]), axis=0)
        return int(np.bincount(pairs[:, 1]).min())

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
            n_effective = n_effective_of(self.groups)
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


def fit_to_posterior(estimator: Any, samples: Samples, posterior: FloatArray) -> Any:
    """Fit a classifier to the likeliest class of each sample, weighted by its lead.

    The lead is the probability of that class minus that of the next. A weighted sample for each
    class instead, with its probability as the weight, is less accurate for support vector machines,
    and no better for others. If one class is the likeliest everywhere, the observed labels are
    used, because a classifier needs two classes.

    Parameters
    ----------
    estimator : classifier
        The classifier; it stays unfitted.
    samples : Samples
        The samples.
    posterior : ndarray of shape (n_positive, k)
        P(true class | sample, label) of the members.
    """
    likeliest = posterior.argmax(axis=1)
    if (likeliest == likeliest[0]).all():
        return fit_weighted(estimator, samples.kept, samples.labels, samples.weights)
    ordered = np.sort(posterior, axis=1)
    lead = ordered[:, -1] - ordered[:, -2]
    return fit_weighted(estimator, samples.kept, samples.classes[likeliest], samples.weights * lead)
