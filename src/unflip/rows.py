"""The distinct rows of a data set, and how much weight each carries."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from unflip._sparse import canonical
from unflip._typing import FloatArray, IntArray, Rows, SparseArray
from unflip.centred import DenseRows, product

_MOST_COPIES, _MOST_SHARE = 5.0, 0.01
_DIGEST = 16  # bytes that tell rows apart


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Rows with copies merged and weightless rows dropped.

    A fit that keeps a copy of the row that was left out has seen that row's features. So whatever is learnt from
    leave-one-out scores leaves copies out together; weighting a row and repeating it are then the same thing. Only
    features that take few values repeat a row very often; there copies are observations in their own right, and no more
    than a few leave (`leaving_share`).

    Attributes
    ----------
    X : ndarray, sparse array or LazyRows of shape (m, p)
        The distinct rows of positive weight; sparse, or not read yet, where they were given so.
    weights : ndarray of shape (m,)
        Total weight of the copies of each.
    members : ndarray of shape (n_positive,)
        Indices of the given rows that have positive weight.
    owner : ndarray of shape (n_positive,)
        For each member the distinct row that it is a copy of.
    member_weights : ndarray of shape (n_positive,)
        Weight of each member.
    largest : float
        Largest magnitude of a feature.
    """

    X: Rows
    weights: FloatArray
    members: IntArray
    owner: IntArray
    member_weights: FloatArray
    largest: float

    @classmethod
    def of(cls, X: Rows, sample_weight: FloatArray | None = None) -> DistinctRows:
        """Find the distinct rows of X, in the order of their first copy."""
        rows = canonical(X) if issparse(X) else X
        weights: FloatArray = np.ones(rows.shape[0]) if sample_weight is None else sample_weight
        members = np.flatnonzero(weights > 0)
        kept = rows if len(members) == rows.shape[0] else rows[members]
        owner, largest = _owners(kept)
        first = np.flatnonzero(owner == np.arange(len(members)))
        if len(first) == len(members):
            return cls(kept, weights[members], members, owner, weights[members], largest)
        position = np.searchsorted(first, owner)
        pooled = np.bincount(position, weights[members]).astype(float)
        return cls(kept[first], pooled, members, position, weights[members], largest)

    @property
    def spectrum_weights(self) -> FloatArray | None:
        """The weights, or None where all are 1 and nothing needs scaling."""
        return None if (self.weights == 1).all() else self.weights

    @property
    def leaving_share(self) -> FloatArray:
        """Share of each distinct row's weight that leaves together: all of it, or as much as 5 copies or 1% of all."""
        if len(self.weights) == len(self.members):
            return np.ones(len(self.weights))
        own = self.member_weights / self.weights[self.owner]
        n_copies = 1 / np.bincount(self.owner, own**2)  # of equal weight: one of next to none is no copy
        few = np.maximum(_MOST_COPIES / n_copies, _MOST_SHARE * self.weights.sum() / self.weights)
        return np.asarray(np.minimum(1.0, few))

    @property
    def n_effective(self) -> float:
        """How many rows of equal weight, each leaving alone, stand for as much (Kish), at any scale of the weights."""
        share = self.weights / self.weights.sum()
        return float(1 / (share**2 @ self.leaving_share))

    @property
    def counts(self) -> FloatArray:
        """Weight of each member as a count of independent rows: they sum to `n_effective`, whatever their scale."""
        return np.asarray(self.member_weights / self.weights.sum() * self.n_effective)

    def shares(self, codes: IntArray) -> FloatArray:
        """Proportions of the classes that the members are of."""
        return np.asarray(np.bincount(codes, self.member_weights) / self.member_weights.sum())

    def memberships(self, codes: IntArray, n_classes: int) -> FloatArray:
        """Shares of the classes among the copies of each distinct row, (m, k)."""
        return self.average(np.eye(n_classes)[codes])

    def average(self, values: FloatArray) -> FloatArray:
        """Weighted mean of the members' values over the copies of each distinct row."""
        if len(self.weights) == len(self.members):
            return values
        if values.ndim > 1:
            return np.column_stack([self.average(column) for column in values.T])
        mean: FloatArray = np.bincount(self.owner, self.member_weights * values) / self.weights
        return mean


def relative_weights(weights: FloatArray) -> FloatArray:
    """Return weights with a largest one of 1: only their ratios matter, and sums of extreme ones are no numbers."""
    largest = float(weights.max())
    return weights / largest if largest > 0 else weights


def _owners(X: Rows) -> tuple[IntArray, float]:
    """For each row, the index of the first row equal to it; and the largest magnitude of a feature."""
    owner = np.arange(X.shape[0])
    candidates, largest = _possible_copies(X)
    if len(candidates):
        first, copies = _first_equal(X[candidates])
        owner[candidates] = candidates[first[copies]]
    return owner, largest


def _first_equal(X: Rows) -> tuple[IntArray, IntArray]:
    """Index of the first of each kind of row, and the kind of each row."""
    as_bytes = _sparse_bytes(X) if issparse(X) else _dense_digests(X)
    _, first, copies = np.unique(as_bytes, return_index=True, return_inverse=True)
    return first, copies


def _dense_digests(X: Rows) -> NDArray[Any]:
    """Digests of the rows: there may be many copies, and rows that were not read before do not fit into memory."""
    digests = np.empty(X.shape[0], dtype=np.dtype((np.void, _DIGEST)))
    DenseRows.of_given(X).fill(_digests_of_block, digests)
    return digests


def _digests_of_block(block: FloatArray) -> tuple[NDArray[Any]]:
    # Adding 0.0 turns -0.0 into 0.0, which equals it but has other bits.
    found = b"".join(blake2b(row, digest_size=_DIGEST).digest() for row in np.ascontiguousarray(block + 0.0))
    return (np.frombuffer(found, dtype=np.dtype((np.void, _DIGEST))),)


def _sparse_bytes(X: SparseArray) -> NDArray[Any]:
    """Where the entries of each row are and what they are: one string for equal rows, as each is stored one way."""
    spans = [slice(*ends) for ends in pairwise(X.indptr)]
    return np.array([X.indices[span].tobytes() + X.data[span].tobytes() for span in spans], dtype=object)


def _possible_copies(X: Rows) -> tuple[IntArray, float]:
    """Rows whose projection onto one random direction is, up to rounding, that of another row.

    The largest magnitude of a feature comes with them, from the same pass over the rows.
    """
    direction = np.random.default_rng(0).normal(size=X.shape[1])
    projection, largest = (_sparse_projection if issparse(X) else _dense_projection)(X, direction)
    order = np.argsort(projection)
    n_terms = int(np.diff(X.indptr).max()) if issparse(X) else X.shape[1]
    largest_sum = min(n_terms * float(np.abs(direction).max()), float(np.abs(direction).sum())) * largest
    rounding = 2 * n_terms * np.finfo(float).eps * largest_sum
    close = np.diff(projection[order]) <= rounding
    candidates: IntArray = np.sort(order[np.append(close, False) | np.append(False, close)])
    return candidates, largest


def _sparse_projection(X: SparseArray, direction: FloatArray) -> tuple[FloatArray, float]:
    return product(X, direction[:, None])[:, 0], float(np.abs(X.data).max(initial=0.0))


def _dense_projection(X: Rows, direction: FloatArray) -> tuple[FloatArray, float]:
    def project(block: FloatArray) -> tuple[FloatArray, float]:
        return block @ direction, max(float(block.max()), -float(block.min()))

    projection, largest = np.empty(X.shape[0]), np.empty(X.shape[0])
    DenseRows.of_given(X).fill(project, projection, largest)
    return projection, float(largest.max())
