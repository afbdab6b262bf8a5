"""The distinct rows of a data set: duplicates merged, zero-weight rows dropped.

Three index spaces occur, and `DistinctRows` alone maps between them:

* all rows, as the user gave them (n);
* members, the rows of positive weight (n_positive);
* distinct rows, one for each group of duplicates among the members (m).
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
    taken,
)
from unflip._utils.sparse import canonical
from unflip._utils.typing import Array, FloatArray, IntArray, Rows, SparseArray
from unflip.data.centred import DenseRows, product
from unflip.data.lazy import LazyRows

_MOST_COPIES, _MOST_SHARE = 5.0, 0.01
_DIGEST = 16  # bytes that tell rows apart


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Rows with copies merged and weightless rows dropped.

    A fit that keeps a copy of the row that was left out has seen that row's features. So whatever
    is learnt from leave-one-out scores leaves copies out together; weighting a row and repeating it
    are then the same thing. Only features that take few values repeat a row very often; there
    copies are observations in their own right, and no more than a few leave (`leaving_share`).

    Arrays with an entry for each row are of the namespace and on the device of the rows; NumPy's
    for sparse ones.

    Attributes
    ----------
    X : array, sparse array or LazyRows of shape (m, p)
        The distinct rows of positive weight; sparse, or not read yet, where they were given so.
    weights : array of shape (m,)
        Total weight of the copies of each.
    members : array of shape (n_positive,)
        Indices of the given rows that have positive weight.
    owner : array of shape (n_positive,)
        For each member the distinct row that it is a copy of.
    member_weights : array of shape (n_positive,)
        Weight of each member.
    largest : float
        Largest magnitude of a feature.
    n_given : int
        Number of all rows.
    """

    X: Rows
    weights: Array
    members: Array
    owner: Array
    member_weights: Array
    largest: float
    n_given: int

    @classmethod
    def of(cls, X: Rows, sample_weight: Array | None = None) -> DistinctRows:
        """Find the distinct rows of X, in the order of their first copy.

        Of rows on a device none is brought to the host but those that look like copies of each
        other; where some are, so are the weights.
        """
        rows = canonical(X) if issparse(X) else X
        weights = _ones(rows) if sample_weight is None else sample_weight
        members = array_namespace(weights).nonzero(weights > 0)[0]
        kept, member_weights = rows, weights
        if members.shape[0] < rows.shape[0]:
            kept, member_weights = chosen(rows, members), taken(weights, members)
        candidates, largest = _possible_copies(kept)
        copies = _first_copies(kept, candidates)
        if copies is None:
            alone = array_namespace(members).arange(
                members.shape[0], dtype=members.dtype, device=device(members)
            )
            return cls(kept, member_weights, members, alone, member_weights, largest, rows.shape[0])
        first, owner = copies
        pooled = like(np.bincount(owner, as_numpy(member_weights)).astype(float), weights)
        return cls(
            chosen(kept, first),
            pooled,
            members,
            like(owner, members),
            member_weights,
            largest,
            rows.shape[0],
        )

    @property
    def has_copies(self) -> bool:
        """Whether some row is there more than once."""
        return bool(self.weights.shape[0] < self.members.shape[0])

    @property
    def spectrum_weights(self) -> Array | None:
        """The weights, or None where all are 1 and nothing needs scaling."""
        return None if bool(array_namespace(self.weights).all(self.weights == 1)) else self.weights

    @property
    def leaving_share(self) -> Array:
        """Share of each distinct row's weight that leaves together: all of it, or as much as 5 copies or 1% of all."""
        xp = array_namespace(self.weights)
        if not self.has_copies:
            return xp.ones_like(self.weights)
        own = self.member_weights / self.of_members(self.weights)
        n_copies = 1 / self._sums(own**2)  # of equal weight: one of next to none is no copy
        few = xp.maximum(_MOST_COPIES / n_copies, _MOST_SHARE * xp.sum(self.weights) / self.weights)
        return xp.where(few < 1, few, 1.0)

    @property
    def label_weights(self) -> Array:
        """Weight that labels of one distinct row share: all of it for few copies, or that of one of very many copies.

        Few copies count as one row with one label. Very many are observations in their own right.
        """
        if not self.has_copies:
            return self.weights
        of_one = self._sums(self.member_weights**2) / self.weights
        return array_namespace(of_one).where(self.leaving_share < 1, of_one, self.weights)

    @cached_property
    def n_effective(self) -> float:
        """How many rows of equal weight, each leaving alone, stand for as much (Kish), at any scale of the weights."""
        share = self.weights / array_namespace(self.weights).sum(self.weights)
        return 1 / float(share**2 @ self.leaving_share)

    @property
    def counts(self) -> Array:
        """Weight of each member as a count of independent rows: they sum to `n_effective`, whatever their scale."""
        return (
            self.member_weights / array_namespace(self.weights).sum(self.weights) * self.n_effective
        )

    def shares(self, codes: Array) -> FloatArray:
        """Proportions of the classes that the members are of."""
        sums = sums_by_code(codes, self.member_weights, int(array_namespace(codes).max(codes)) + 1)
        return np.asarray(sums / float(array_namespace(codes).sum(self.member_weights)))

    def memberships(self, codes: Array, n_classes: int) -> Array:
        """Shares of the classes among the copies of each distinct row, (m, k)."""
        return self.average(one_hot(codes, n_classes))

    def of_members(self, values: Array) -> Array:
        """Return the values of distinct rows as those of their duplicates, the members."""
        return taken(values, self.owner) if self.has_copies else values

    @property
    def zero_weight(self) -> Array:
        """Indices of the zero-weight rows among all rows."""
        if self.members.shape[0] == self.n_given:
            return self.members[:0]
        absent = np.setdiff1d(np.arange(self.n_given), as_numpy(self.members))
        return like(absent, self.members)

    def pick_members(self, values: Any) -> Any:
        """Return the values of the members, from those of all rows: an array, or `Votes`."""
        if self.members.shape[0] == self.n_given:
            return values
        if is_foreign(values):
            return taken(values, self.members)
        return values[as_numpy(self.members)]

    def to_all_rows(self, of_members: Array, of_zero_weight: Array) -> Array:
        """Return values of all rows, (n, ...), from those of the members and zero-weight rows."""
        if not of_zero_weight.shape[0]:
            return of_members
        xp = array_namespace(of_members)
        order = xp.argsort(xp.concat([self.members, self.zero_weight]))
        return xp.take(xp.concat([of_members, of_zero_weight]), order, axis=0)

    def average(self, values: Array) -> Array:
        """Weighted mean of the members' values over the copies of each distinct row."""
        if not self.has_copies:
            return values
        if values.ndim > 1:
            xp = array_namespace(values)
            return xp.stack(
                [self.average(values[:, column]) for column in range(values.shape[1])], axis=1
            )
        return self._sums(self.member_weights * values) / self.weights

    def _sums(self, values: Array) -> Array:
        """Sum of the members' values over the copies of each distinct row."""
        if is_numpy(values):
            return np.bincount(self.owner, values)
        xp, (order, rank, last) = array_namespace(values), self._by_owner
        sums, reach, most = xp.take(values, order), 1, int(xp.max(rank))
        while (
            reach <= most
        ):  # sums over 2, 4, 8, … copies: no digit is lost, as in differences of running sums
            before = xp.concat([xp.zeros_like(sums[:reach]), sums[:-reach]])
            sums, reach = sums + xp.where(rank >= reach, before, 0.0), 2 * reach
        return xp.take(sums, last)

    @cached_property
    def _by_owner(self) -> tuple[Array, Array, Array]:
        """Members in the order of their owners, how many copies come before each, and where the last of each is."""
        owner = as_numpy(self.owner)
        order = np.argsort(owner, kind="stable")
        first = np.searchsorted(owner[order], np.arange(self.weights.shape[0]))
        rank = np.arange(len(owner)) - first[owner[order]]
        last = np.append(first[1:], len(owner)) - 1
        return like(order, self.owner), like(rank, self.owner), like(last, self.owner)


def relative_weights(weights: Array) -> Array:
    """Return weights with a largest one of 1: only their ratios matter, and sums of extreme ones are no numbers."""
    largest = float(array_namespace(weights).max(weights))
    return weights / largest if largest > 0 else weights


def _ones(X: Rows) -> Array:
    if not is_foreign(X):
        return np.ones(X.shape[0])
    xp = array_namespace(X)
    return xp.ones(X.shape[0], dtype=xp.float64, device=device(X))


def chosen(X: Rows, indices: Array) -> Rows:
    """Return these rows, of any kind; indices may be NumPy's for rows on a device."""
    if isinstance(X, LazyRows):
        return X[as_numpy(indices)]
    return array_namespace(X).take(X, like(indices, X), axis=0) if is_foreign(X) else X[indices]


def _first_copies(X: Rows, candidates: IntArray) -> tuple[IntArray, IntArray] | None:
    """Return the indices of the distinct rows, and for each row which of these it equals, on the host.

    None where all rows differ.
    """
    if not len(candidates):
        return None
    first, copies = _first_equal(_on_host(X, candidates))
    if len(first) == len(candidates):
        return None
    owner = np.arange(X.shape[0])
    owner[candidates] = candidates[first[copies]]
    distinct = np.flatnonzero(owner == np.arange(len(owner)))
    return distinct, np.searchsorted(distinct, owner)


def _on_host(X: Rows, indices: IntArray) -> Rows:
    """Return these rows on the host: in memory, or to be read."""
    if isinstance(X, LazyRows):
        return X.hosted[indices]
    return as_numpy(chosen(X, indices)) if is_foreign(X) else X[indices]


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
    found = b"".join(
        blake2b(row, digest_size=_DIGEST).digest() for row in np.ascontiguousarray(block + 0.0)
    )
    return (np.frombuffer(found, dtype=np.dtype((np.void, _DIGEST))),)


def _sparse_bytes(X: SparseArray) -> NDArray[Any]:
    """Where the entries of each row are and what they are: one string for equal rows, as each is stored one way."""
    spans = [slice(*ends) for ends in pairwise(X.indptr)]
    return np.array(
        [X.indices[span].tobytes() + X.data[span].tobytes() for span in spans], dtype=object
    )


def _possible_copies(X: Rows) -> tuple[IntArray, float]:
    """Rows whose projection onto one random direction is, up to rounding, that of another row; their indices.

    The largest magnitude of a feature comes with them, from the same pass over the rows.
    """
    direction = np.random.default_rng(0).normal(size=X.shape[1])
    projection, largest = (_sparse_projection if issparse(X) else _dense_projection)(X, direction)
    xp = array_namespace(projection)
    order = xp.argsort(projection)
    n_terms = int(np.diff(X.indptr).max()) if issparse(X) else X.shape[1]
    largest_sum = (
        min(n_terms * float(np.abs(direction).max()), float(np.abs(direction).sum())) * largest
    )
    rounding = 2 * n_terms * float(np.finfo(float).eps) * largest_sum
    ordered = taken(projection, order)
    close = ordered[1:] - ordered[:-1] <= rounding
    none = xp.zeros_like(close[:1])
    is_near_another = xp.concat([close, none]) | xp.concat([none, close])
    return np.sort(as_numpy(order[is_near_another])), largest


def _sparse_projection(X: SparseArray, direction: FloatArray) -> tuple[FloatArray, float]:
    return product(X, direction[:, None])[:, 0], float(np.abs(X.data).max(initial=0.0))


def _dense_projection(X: Rows, direction: FloatArray) -> tuple[Array, float]:
    rows = DenseRows.of_given(X)
    xp, along = array_namespace(rows.weights), like(direction, rows.weights)

    def project(block: Array) -> tuple[Array, float]:
        return xp.astype(block, xp.float64, copy=False) @ along, largest_magnitude(block)

    projection, largest = xp.empty_like(rows.weights), xp.empty_like(rows.weights)
    rows.fill(project, projection, largest)
    return projection, float(xp.max(largest))
