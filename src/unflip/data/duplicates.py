"""The distinct rows of a data set: duplicates merged, zero-weight rows dropped.

Three index spaces occur, and `DistinctRows` alone maps between them:

* all rows, in the order of the user's X (n);
* members, the rows of positive weight (n_positive);
* distinct rows, one for each duplicate group among the members (m).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import NDArray
from scipy.sparse import issparse

from unflip._utils.arrays import (
    as_numpy,
    is_foreign,
    is_numpy,
    largest_magnitude,
    like,
    one_hot,
    sums_by_code,
    take,
)
from unflip._utils.sparse import canonical
from unflip._utils.typing import Array, FloatArray, IntArray, Rows, SparseArray
from unflip.data.dense import DenseRows
from unflip.data.lazy import LazyRows

_DIGEST = np.dtype((np.void, 16))  # 128 bits, so that different rows do not collide in practice


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Rows with duplicates merged and zero-weight rows dropped.

    A leave-one-out fit that keeps a duplicate of the left-out row has seen that row's features. So
    whatever is learnt from leave-one-out scores leaves a duplicate group out together. A row of
    weight 2 is then the same as a row that occurs twice. Very large groups occur only if features
    take few values. Their members are independent observations, and no more than a few of them are
    left out together (`leaving_share`).

    Arrays with one entry per row are in the namespace and on the device of the rows; NumPy arrays
    for sparse rows.

    Attributes
    ----------
    X : array, sparse array or LazyRows of shape (m, p)
        The distinct rows of positive weight, of the kind of the user's X.
    weights : array of shape (m,)
        Total weight of each duplicate group.
    members : array of shape (n_positive,)
        Indices of the rows of positive weight among all rows.
    owner : array of shape (n_positive,)
        Index of the distinct row that each member equals.
    member_weights : array of shape (n_positive,)
        Weight of each member.
    largest : float
        Largest magnitude of a feature.
    n_all : int
        Number of all rows.
    """

    X: Rows
    weights: Array
    members: Array
    owner: Array
    member_weights: Array
    largest: float
    n_all: int

    @classmethod
    def of(cls, X: Rows, sample_weight: Array | None = None) -> DistinctRows:
        """Find the distinct rows of X, in the order of their first occurrence.

        Of rows on a device, only possible duplicates are copied to the host; the weights, too, if
        there are duplicates.
        """
        rows = canonical(X) if issparse(X) else X
        weights = _ones(rows) if sample_weight is None else sample_weight
        members = array_namespace(weights).nonzero(weights > 0)[0]
        n_rows = rows.shape[0]
        member_weights = weights
        if members.shape[0] < n_rows:
            rows = take_rows(rows, members)
            member_weights = take(weights, members)
        candidates, largest = _possible_duplicates(rows)
        groups = _duplicate_groups(rows, candidates)
        if groups is None:
            own_index = array_namespace(members).arange(
                members.shape[0], dtype=members.dtype, device=device(members)
            )
            return cls(rows, member_weights, members, own_index, member_weights, largest, n_rows)
        first, owner = groups
        group_weights = np.bincount(owner, as_numpy(member_weights)).astype(float)
        return cls(
            take_rows(rows, first),
            like(group_weights, weights),
            members,
            like(owner, members),
            member_weights,
            largest,
            n_rows,
        )

    @property
    def has_duplicates(self) -> bool:
        """Whether a row occurs more than once."""
        return bool(self.weights.shape[0] < self.members.shape[0])

    @property
    def spectrum_weights(self) -> Array | None:
        """The weights, or None if all are 1 and nothing needs scaling."""
        return None if bool(array_namespace(self.weights).all(self.weights == 1)) else self.weights

    @property
    def leaving_share(self) -> Array:
        """Share of each group's weight that is left out together.

        All of it, but at most the weight of 5 duplicates or of 1% of all rows, whichever is larger.
        """
        xp = array_namespace(self.weights)
        if not self.has_duplicates:
            return xp.ones_like(self.weights)
        own_share = self.member_weights / self.of_members(self.weights)
        # Effective group size: duplicates of very small weight count little.
        group_size = 1 / self._group_sums(own_share**2)
        share = xp.maximum(5 / group_size, 0.01 * xp.sum(self.weights) / self.weights)
        return xp.where(share < 1, share, 1.0)

    @property
    def label_weights(self) -> Array:
        """Weight of the labels of each distinct row.

        A small duplicate group counts as one row with one label, of the weight of the group. The
        labels of a very large group count as independent, each with the weight of one member.
        """
        if not self.has_duplicates:
            return self.weights
        of_one = self._group_sums(self.member_weights**2) / self.weights
        return array_namespace(of_one).where(self.leaving_share < 1, of_one, self.weights)

    @cached_property
    def n_effective(self) -> float:
        """Effective sample size (Kish), in rows of equal weight that are left out alone.

        It does not depend on the scale of the weights.
        """
        share = self.weights / array_namespace(self.weights).sum(self.weights)
        return 1 / float(share**2 @ self.leaving_share)

    @property
    def counts(self) -> Array:
        """Weight of each member as a count of independent rows; they sum to `n_effective`."""
        total = array_namespace(self.weights).sum(self.weights)
        return self.member_weights / total * self.n_effective

    def shares(self, codes: Array) -> FloatArray:
        """Return the weighted class proportions of the members."""
        xp = array_namespace(codes)
        sums = sums_by_code(codes, self.member_weights, int(xp.max(codes)) + 1)
        return np.asarray(sums / float(xp.sum(self.member_weights)))

    def memberships(self, codes: Array, n_classes: int) -> Array:
        """Return the class proportions within each duplicate group, (m, k)."""
        return self.average(one_hot(codes, n_classes))

    def of_members(self, values: Array) -> Array:
        """Return values of the members from those of the distinct rows."""
        return take(values, self.owner) if self.has_duplicates else values

    @property
    def zero_weight(self) -> Array:
        """Indices of the zero-weight rows among all rows."""
        if self.members.shape[0] == self.n_all:
            return self.members[:0]
        absent = np.setdiff1d(np.arange(self.n_all), as_numpy(self.members))
        return like(absent, self.members)

    def pick_members(self, values: Any) -> Any:
        """Return values of the members from those of all rows: an array, or `Votes`."""
        if self.members.shape[0] == self.n_all:
            return values
        if is_foreign(values):
            return take(values, self.members)
        return values[as_numpy(self.members)]

    def to_all_rows(self, of_members: Array, of_zero_weight: Array) -> Array:
        """Return values of all rows, (n, ...), from those of members and zero-weight rows."""
        if not of_zero_weight.shape[0]:
            return of_members
        xp = array_namespace(of_members)
        order = xp.argsort(xp.concat([self.members, self.zero_weight]))
        return xp.take(xp.concat([of_members, of_zero_weight]), order, axis=0)

    def average(self, values: Array) -> Array:
        """Return the weighted mean of the members' values over each duplicate group."""
        if not self.has_duplicates:
            return values
        if values.ndim > 1:
            columns = [self.average(values[:, column]) for column in range(values.shape[1])]
            return array_namespace(values).stack(columns, axis=1)
        return self._group_sums(self.member_weights * values) / self.weights

    def _group_sums(self, values: Array) -> Array:
        """Return the sum of the members' values over each duplicate group."""
        if is_numpy(values):
            return np.bincount(self.owner, values)
        xp = array_namespace(values)
        order, rank, last = self._by_owner
        sums = xp.take(values, order)
        largest_rank = int(xp.max(rank))
        # Sums over 2, 4, 8, … members; differences of running sums would lose digits.
        reach = 1
        while reach <= largest_rank:
            before = xp.concat([xp.zeros_like(sums[:reach]), sums[:-reach]])
            sums = sums + xp.where(rank >= reach, before, 0.0)
            reach = 2 * reach
        return xp.take(sums, last)

    @cached_property
    def _by_owner(self) -> tuple[Array, Array, Array]:
        """Members in the order of their owners, their rank in the group, and each group's end."""
        owner = as_numpy(self.owner)
        order = np.argsort(owner, kind="stable")
        first = np.searchsorted(owner[order], np.arange(self.weights.shape[0]))
        rank = np.arange(len(owner)) - first[owner[order]]
        last = np.append(first[1:], len(owner)) - 1
        return like(order, self.owner), like(rank, self.owner), like(last, self.owner)


def relative_weights(weights: Array) -> Array:
    """Divide weights by the largest, because sums of extreme weights would overflow float64."""
    largest = float(array_namespace(weights).max(weights))
    return weights / largest if largest > 0 else weights


def _ones(X: Rows) -> Array:
    if not is_foreign(X):
        return np.ones(X.shape[0])
    xp = array_namespace(X)
    return xp.ones(X.shape[0], dtype=xp.float64, device=device(X))


def take_rows(X: Rows, indices: Array) -> Rows:
    """Return these rows, of any kind; indices may be NumPy's for rows on a device."""
    if isinstance(X, LazyRows):
        return X[as_numpy(indices)]
    return array_namespace(X).take(X, like(indices, X), axis=0) if is_foreign(X) else X[indices]


def _duplicate_groups(X: Rows, candidates: IntArray) -> tuple[IntArray, IntArray] | None:
    """Return indices of the distinct rows, and which of them each row equals, on the host.

    None if all rows differ.
    """
    if not len(candidates):
        return None
    first, group = _first_equal(_on_host(X, candidates))
    if len(first) == len(candidates):
        return None
    owner = np.arange(X.shape[0])
    owner[candidates] = candidates[first[group]]
    distinct = np.flatnonzero(owner == np.arange(len(owner)))
    return distinct, np.searchsorted(distinct, owner)


def _on_host(X: Rows, indices: IntArray) -> Rows:
    """Return these rows on the host: an array, a sparse array or lazy rows."""
    if isinstance(X, LazyRows):
        return X.hosted[indices]
    return as_numpy(take_rows(X, indices)) if is_foreign(X) else X[indices]


def _first_equal(X: Rows) -> tuple[IntArray, IntArray]:
    """Return the index of the first row of each duplicate group, and the group of each row."""
    as_bytes = _sparse_bytes(X) if issparse(X) else _dense_digests(X)
    _, first, group = np.unique(as_bytes, return_index=True, return_inverse=True)
    return first, group


def _dense_digests(X: Rows) -> NDArray[Any]:
    """Return digests of the rows, because rows that are read lazily may not fit into memory."""
    digests = np.empty(X.shape[0], dtype=_DIGEST)
    DenseRows.uncentred(X).fill(_digests_of_block, digests)
    return digests


def _digests_of_block(block: FloatArray) -> tuple[NDArray[Any]]:
    # Adding 0.0 turns -0.0 into 0.0, which equals it but has other bits.
    rows = np.ascontiguousarray(block + 0.0)
    digests = b"".join(blake2b(row, digest_size=_DIGEST.itemsize).digest() for row in rows)
    return (np.frombuffer(digests, dtype=_DIGEST),)


def _sparse_bytes(X: SparseArray) -> NDArray[Any]:
    """Return columns and values of each row as bytes; they are unique in canonical format."""
    spans = [slice(*ends) for ends in pairwise(X.indptr)]
    return np.array(
        [X.indices[span].tobytes() + X.data[span].tobytes() for span in spans], dtype=object
    )


def _possible_duplicates(X: Rows) -> tuple[IntArray, float]:
    """Return rows whose random projection equals another's up to rounding; their indices.

    Also return the largest magnitude of a feature, from the same pass over the rows.
    """
    direction = np.random.default_rng(0).normal(size=X.shape[1])
    if issparse(X):
        projection = (X @ direction[:, None])[:, 0]
        largest = float(np.abs(X.data).max(initial=0.0))
        n_terms = int(np.diff(X.indptr).max())
    else:
        projection, largest = _dense_projection(X, direction)
        n_terms = X.shape[1]
    xp = array_namespace(projection)
    order = xp.argsort(projection)
    magnitudes = np.abs(direction)
    largest_sum = min(n_terms * float(magnitudes.max()), float(magnitudes.sum())) * largest
    rounding = 2 * n_terms * float(np.finfo(float).eps) * largest_sum
    ordered = take(projection, order)
    close = ordered[1:] - ordered[:-1] <= rounding
    none = xp.zeros_like(close[:1])
    is_near_another = xp.concat([close, none]) | xp.concat([none, close])
    return np.sort(as_numpy(order[is_near_another])), largest


def _dense_projection(X: Rows, direction: FloatArray) -> tuple[Array, float]:
    rows = DenseRows.uncentred(X)
    xp = array_namespace(rows.weights)
    direction = like(direction, rows.weights)

    def project(block: Array) -> tuple[Array, float]:
        return xp.astype(block, xp.float64, copy=False) @ direction, largest_magnitude(block)

    projection = xp.empty_like(rows.weights)
    largest = xp.empty_like(rows.weights)
    rows.fill(project, projection, largest)
    return projection, float(xp.max(largest))
