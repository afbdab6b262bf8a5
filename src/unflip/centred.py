"""Weighted rows about their mean, as the products that fits are made of.

A sparse matrix less its mean is dense, so the mean is not subtracted from sparse rows but from their products:
(X − 1x̄ᵀ)ᵀB = XᵀB − x̄(1ᵀB), and so on. That costs digits where a column varies little about a mean far from 0. It cannot
where at most half of the column's entries are stored: its power about the mean then is at least half of that about 0
(for equal weights). Columns with more entries than that are kept dense, which takes at most twice the memory of their
entries, and centred as dense rows are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import NDArray
from scipy.sparse import issparse

from unflip._sparse import canonical
from unflip._typing import Array, FloatArray, IntArray, Rows, SparseArray

_BLOCK = 256  # rows of a sparse product held at a time


class CentredRows(ABC):
    """Rows xᵢ − x̄ with weights wᵢ, or plain xᵢ where they are not centred.

    Attributes
    ----------
    weights : array of shape (m,)
        Their weights.
    mean : array of shape (p,)
        Weighted mean x̄ of the rows as given, whether it was subtracted or not.
    """

    weights: Array
    mean: Array

    @staticmethod
    def of(X: Rows, weights: Array | None = None, *, centre: bool = True) -> CentredRows:
        """Take rows of either kind; weights are 1 by default."""
        return SparseRows.of(X, weights, centre=centre) if issparse(X) else DenseRows.of(X, weights, centre=centre)

    @abstractmethod
    def times(self, columns: Array) -> Array:
        """Multiply the rows with a (p, q) array."""

    @abstractmethod
    def transposed_times(self, columns: Array) -> Array:
        """Multiply the transposed rows with an (m, q) array."""

    @abstractmethod
    def gram(self) -> Array:
        """Products of all pairs of rows, (m, m), without the weights."""

    @abstractmethod
    def column_powers(self) -> Array:
        """Weighted sum of squares of each column, (p,)."""

    @abstractmethod
    def squared_norms(self) -> Array:
        """Squared length of each row, (m,)."""


@dataclass(frozen=True, eq=False)
class DenseRows(CentredRows):
    """Rows of any array-API namespace; `values` holds them centred."""

    values: Array
    weights: Array
    mean: Array

    @classmethod
    def of(cls, X: Array, weights: Array | None = None, *, centre: bool = True) -> Self:
        """Subtract the weighted mean."""
        xp = array_namespace(X)
        known = xp.ones(X.shape[0], dtype=X.dtype, device=device(X)) if weights is None else _checked(weights, X)
        total = float(xp.sum(known))
        mean = xp.matmul(known, X) / total
        if not centre:
            return cls(X, known, mean)
        values = X - mean[None, :]
        # Once more: the first mean of many rows is off by rounding, which would make constant columns vary.
        correction = xp.matmul(known, values) / total
        values -= correction[None, :]
        return cls(values, known, mean + correction)

    def times(self, columns: Array) -> Array:
        """Multiply the rows with a (p, q) array."""
        return array_namespace(self.values).matmul(self.values, columns)

    def transposed_times(self, columns: Array) -> Array:
        """Multiply the transposed rows with an (m, q) array."""
        return array_namespace(self.values).matmul(self.values.T, columns)

    def gram(self) -> Array:
        """Products of all pairs of rows."""
        return array_namespace(self.values).matmul(self.values, self.values.T)

    def column_powers(self) -> Array:
        """Weighted sum of squares of each column."""
        return array_namespace(self.values).matmul(self.weights, self.values**2)

    def squared_norms(self) -> Array:
        """Squared length of each row."""
        return array_namespace(self.values).sum(self.values**2, axis=1)


@dataclass(frozen=True, eq=False)
class SparseRows(CentredRows):
    """Rows of scipy.sparse.

    Attributes
    ----------
    scattered : sparse array of shape (m, p)
        Columns of which at most half the entries are stored, as given; the others are empty here.
    offset : ndarray of shape (p,)
        What to subtract from the scattered columns: their mean, or 0 where rows are not centred.
    filled : ndarray of shape (n_filled,)
        Indices of the other columns.
    block : DenseRows
        The other columns.
    """

    scattered: SparseArray
    offset: FloatArray
    filled: IntArray
    block: DenseRows
    weights: FloatArray
    mean: FloatArray

    @classmethod
    def of(cls, X: Rows, weights: FloatArray | None = None, *, centre: bool = True) -> Self:
        """Split the columns; nothing is subtracted from those that are mostly empty."""
        rows = canonical(X)
        known = np.ones(rows.shape[0]) if weights is None else _checked(weights, rows)
        is_filled = 2 * np.bincount(rows.indices, minlength=rows.shape[1]) > rows.shape[0]
        filled = np.flatnonzero(is_filled)
        block = DenseRows.of(rows[:, filled].toarray(), known, centre=centre)
        scattered = _without_columns(rows, is_filled)
        mean = known @ scattered / known.sum()
        offset = mean.copy() if centre else np.zeros_like(mean)
        mean[filled] = block.mean
        return cls(scattered, offset, filled, block, known, mean)

    def times(self, columns: FloatArray) -> FloatArray:
        """Multiply the rows with a (p, q) array."""
        product: FloatArray = self.scattered @ columns - self.offset @ columns + self.block.times(columns[self.filled])
        return product

    def transposed_times(self, columns: FloatArray) -> FloatArray:
        """Multiply the transposed rows with an (m, q) array."""
        product: FloatArray = self.scattered.T @ columns
        product -= self.offset[:, None] * columns.sum(axis=0)
        product[self.filled] = self.block.transposed_times(columns)
        return product

    def gram(self) -> FloatArray:
        """Products of all pairs of rows, a few rows of the sparse product at a time."""
        size = self.scattered.shape[0]
        transposed = self.scattered.T.tocsr()
        gram = np.empty((size, size))
        for start in range(0, size, _BLOCK):
            part = slice(start, start + _BLOCK)
            gram[part] = (self.scattered[part] @ transposed).toarray()
        along_offset = self.scattered @ self.offset
        gram -= along_offset[:, None]
        gram -= along_offset[None, :]
        gram += self.offset @ self.offset
        gram += self.block.gram()
        return gram

    def column_powers(self) -> FloatArray:
        """Weighted sum of squares of each column: a sum of positive terms, so that none cancels."""
        columns, n_features = self.scattered.indices, self.scattered.shape[1]
        weights = np.repeat(self.weights, np.diff(self.scattered.indptr))
        squares = (self.scattered.data - self.offset[columns]) ** 2
        empty = np.maximum(self.weights.sum() - np.bincount(columns, weights, minlength=n_features), 0.0)
        powers: FloatArray = np.bincount(columns, weights * squares, minlength=n_features) + empty * self.offset**2
        powers[self.filled] = self.block.column_powers()
        return powers

    def squared_norms(self) -> FloatArray:
        """Squared length of each row."""
        about_zero = (self.scattered**2).sum(axis=1) + self.block.squared_norms()
        norms: FloatArray = about_zero - 2 * (self.scattered @ self.offset) + self.offset @ self.offset
        return norms


def _checked(weights: Array, X: Rows) -> Array:
    if weights.shape != (X.shape[0],):
        raise ValueError(f"X has {X.shape[0]} rows but sample_weight has shape {weights.shape}.")
    return weights


def _without_columns(rows: SparseArray, dropped: NDArray[np.bool_]) -> SparseArray:
    """Empty these columns, in rows of the same shape."""
    kept = rows.copy()
    kept.data[dropped[kept.indices]] = 0
    kept.eliminate_zeros()
    return kept
