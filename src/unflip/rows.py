"""The distinct rows of a data set, and how much weight each carries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unflip._typing import FloatArray, IntArray

_MOST_COPIES, _MOST_SHARE = 5.0, 0.01


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Rows with copies merged and weightless rows dropped.

    A fit that keeps a copy of the row that was left out has seen that row's features. So whatever is learnt from
    leave-one-out scores leaves copies out together; weighting a row and repeating it are then the same thing. Only
    features that take few values repeat a row very often; there copies are observations in their own right, and no more
    than a few leave (`leaving_share`).

    Attributes
    ----------
    X : ndarray of shape (m, p)
        The distinct rows of positive weight.
    weights : ndarray of shape (m,)
        Total weight of the copies of each.
    members : ndarray of shape (n_positive,)
        Indices of the given rows that have positive weight.
    owner : ndarray of shape (n_positive,)
        For each member the distinct row that it is a copy of.
    member_weights : ndarray of shape (n_positive,)
        Weight of each member.
    """

    X: FloatArray
    weights: FloatArray
    members: IntArray
    owner: IntArray
    member_weights: FloatArray

    @classmethod
    def of(cls, X: FloatArray, sample_weight: FloatArray | None = None) -> DistinctRows:
        """Find the distinct rows of X, in the order of their first copy."""
        weights: FloatArray = np.ones(len(X)) if sample_weight is None else sample_weight
        members = np.flatnonzero(weights > 0)
        kept = X if len(members) == len(X) else X[members]
        owner = _owners(kept)
        first = np.flatnonzero(owner == np.arange(len(kept)))
        if len(first) == len(kept):
            return cls(kept, weights[members], members, owner, weights[members])
        position = np.searchsorted(first, owner)
        pooled = np.bincount(position, weights[members]).astype(float)
        return cls(kept[first], pooled, members, position, weights[members])

    @property
    def spectrum_weights(self) -> FloatArray | None:
        """The weights, or None where all are 1 and nothing needs scaling."""
        return None if (self.weights == 1).all() else self.weights

    @property
    def leaving_share(self) -> FloatArray:
        """Share of each distinct row's weight that leaves together: all of it, or as much as 5 copies or 1% of all."""
        if len(self.X) == len(self.members):
            return np.ones(len(self.X))
        return np.asarray(np.minimum(1.0, max(_MOST_COPIES, _MOST_SHARE * self.weights.sum()) / self.weights))

    @property
    def n_effective(self) -> float:
        """How many rows of equal weight, each leaving alone, stand for as much (Kish), at any scale of the weights."""
        return float(self.weights.sum() ** 2 / (self.weights**2 @ self.leaving_share))

    @property
    def counts(self) -> FloatArray:
        """Weight of each member as a count of independent rows: they sum to `n_effective`, whatever their scale."""
        return np.asarray(self.member_weights * (self.n_effective / self.weights.sum()))

    def shares(self, codes: IntArray) -> FloatArray:
        """Proportions of the classes that the members are of."""
        return np.asarray(np.bincount(codes, self.member_weights) / self.member_weights.sum())

    def average(self, values: FloatArray) -> FloatArray:
        """Weighted mean of the members' values over the copies of each distinct row."""
        if len(self.X) == len(self.members):
            return values
        if values.ndim > 1:
            return np.column_stack([self.average(column) for column in values.T])
        mean: FloatArray = np.bincount(self.owner, self.member_weights * values) / self.weights
        return mean


def _owners(X: FloatArray) -> IntArray:
    """For each row, the index of the first row equal to it."""
    owner = np.arange(len(X))
    candidates = _possible_copies(X)
    if len(candidates):
        # Adding 0.0 turns -0.0 into 0.0, which equals it but has other bits.
        rows = np.ascontiguousarray(X[candidates] + 0.0)
        as_bytes = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
        _, first, copies = np.unique(as_bytes, return_index=True, return_inverse=True)
        owner[candidates] = candidates[first[copies]]
    return owner


def _possible_copies(X: FloatArray) -> IntArray:
    """Rows whose projection onto one random direction is, up to rounding, that of another row."""
    n_features = X.shape[1]
    direction = np.random.default_rng(0).normal(size=n_features)
    projection = X @ direction
    order = np.argsort(projection)
    rounding = 2 * n_features * np.finfo(float).eps * float(np.abs(direction).sum()) * max(X.max(), -X.min())
    close = np.diff(projection[order]) <= rounding
    candidates: IntArray = np.sort(order[np.append(close, False) | np.append(False, close)])
    return candidates
