"""Sparse rows about their mean; columns that are mostly filled are stored dense."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from unflip._utils.sparse import canonical
from unflip._utils.typing import FloatArray, IntArray, Rows, SparseArray
from unflip.data.centred import CentredRows
from unflip.data.dense import DenseRows, checked_length

# Rows of a sparse product that are made dense at a time.
_BLOCK_ROWS = 256


@dataclass(frozen=True, eq=False)
class SparseRows(CentredRows):
    """Rows of scipy.sparse; see `unflip.data.centred` on the two kinds of columns.

    Attributes
    ----------
    scattered : sparse array of shape (m, p)
        Columns of which at most half of the entries are stored; the other columns are empty here.
    offset : ndarray of shape (p,)
        Mean of the scattered columns, or 0 if rows are not centred.
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
        """Return rows with their weighted mean, centred by default."""
        rows = canonical(X)
        weights = np.ones(rows.shape[0]) if weights is None else checked_length(weights, rows)
        is_filled = 2 * np.bincount(rows.indices, minlength=rows.shape[1]) > rows.shape[0]
        filled = np.flatnonzero(is_filled)
        block = DenseRows.of(rows[:, filled].toarray(), weights, centre=centre)
        scattered = _without_columns(rows, is_filled)
        mean = weights @ scattered / weights.sum()
        offset = mean.copy() if centre else np.zeros_like(mean)
        mean[filled] = block.mean
        return cls(scattered, offset, filled, block, weights, mean)

    @property
    def in_memory(self) -> bool:
        """True: the rows are in the memory of the host."""
        return True

    @property
    def is_double(self) -> bool:
        """True: the rows are in double precision."""
        return True

    def of_rows(self, rows: slice) -> Self:
        """Return a slice of the rows, about the mean of all."""
        return replace(
            self,
            scattered=self.scattered[rows],
            block=self.block.of_rows(rows),
            weights=self.weights[rows],
        )

    def times(self, columns: FloatArray) -> FloatArray:
        """Multiply the rows by a (p, q) array."""
        product: FloatArray = (
            self.scattered @ columns
            - self.offset @ columns
            + self.block.times(columns[self.filled])
        )
        return product

    def transposed_times(self, columns: FloatArray) -> FloatArray:
        """Multiply the transposed rows by an (m, q) array."""
        product: FloatArray = self.scattered.T @ columns
        product -= self.offset[:, None] * columns.sum(axis=0)
        product[self.filled] = self.block.transposed_times(columns)
        return product

    def gram(self) -> FloatArray:
        """Return the inner products of all pairs of rows, a block of rows at a time."""
        gram = _dense_product(self.scattered, self.scattered.T.tocsr())
        along_offset = self.scattered @ self.offset
        gram -= along_offset[:, None]
        gram -= along_offset[None, :]
        gram += self.offset @ self.offset
        gram += self.block.gram()
        return gram

    def column_powers(self) -> FloatArray:
        """Return the weighted sum of squares of each column: positive terms, so none cancels."""
        columns = self.scattered.indices
        n_features = self.scattered.shape[1]
        weights = np.repeat(self.weights, np.diff(self.scattered.indptr))
        squares = (self.scattered.data - self.offset[columns]) ** 2
        stored_weight = np.bincount(columns, weights, minlength=n_features)
        empty_weight = np.maximum(self.weights.sum() - stored_weight, 0.0)
        powers: FloatArray = (
            np.bincount(columns, weights * squares, minlength=n_features)
            + empty_weight * self.offset**2
        )
        powers[self.filled] = self.block.column_powers()
        return powers

    def scatter(self) -> FloatArray:
        """Return Σ wᵢ(xᵢ − x̄)(xᵢ − x̄)ᵀ, (p, p), a block of rows at a time."""
        scatter = _dense_product(self.scattered.T.tocsr(), self.scattered * self.weights[:, None])
        scatter -= self.offset[:, None] * (self.weights @ self.scattered)
        (scatter[:, self.filled],) = self.block.summed(
            self._products_with_filled, self.scattered, self.weights
        )
        scatter[self.filled] = scatter[:, self.filled].T
        return scatter

    def _products_with_filled(
        self, rows: FloatArray, scattered: SparseArray, weights: FloatArray
    ) -> tuple[FloatArray]:
        """Return the weighted products of all columns with the filled ones, for a block of rows."""
        columns = weights[:, None] * (rows - self.block.shift)
        products: FloatArray = scattered.T @ columns - self.offset[:, None] * columns.sum(axis=0)
        products[self.filled] = (rows - self.block.shift).T @ columns
        return (products,)

    def squared_norms_by(self, scales: FloatArray) -> FloatArray:
        """Return Σⱼ (xᵢⱼ − x̄ⱼ)²dⱼ for each row and each column d of (p, q) scales."""
        norms: FloatArray = self.scattered**2 @ scales
        norms -= 2 * (self.scattered @ (self.offset[:, None] * scales)) - self.offset**2 @ scales
        shift = self.block.shift
        filled_scales = scales[self.filled]
        norms += self.block.mapped(
            lambda rows: (rows - shift) ** 2 @ filled_scales, scales.shape[1]
        )
        return norms

    def sums_of_squares(self, axes: FloatArray, weights: FloatArray) -> FloatArray:
        """Return Σⱼ (xᵢᵀaⱼ)²vⱼ over (p, q) axes a, (m, r) for (q, r) weights v."""
        shift = self.offset @ axes + self.block.shift @ axes[self.filled]

        def sums(rows: FloatArray, scattered: SparseArray) -> tuple[FloatArray]:
            values = np.empty((len(rows), weights.shape[1]))
            for start in range(0, len(rows), _BLOCK_ROWS):
                part = slice(start, start + _BLOCK_ROWS)
                turned = scattered[part] @ axes - shift + rows[part] @ axes[self.filled]
                values[part] = turned**2 @ weights
            return (values,)

        result = np.empty((self.scattered.shape[0], weights.shape[1]))
        self.block.fill(sums, result, columns=(self.scattered,))
        return result

    def times_and_sums_of_squares(
        self, columns: FloatArray, axes: FloatArray, weights: FloatArray, variances: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Multiply the rows by a (p, q) array; also return `sums_of_squares`."""
        return self.times(columns), self.sums_of_squares(axes, weights)

    def times_and_squared_norms(self, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Multiply the rows by a (p, q) array; also return their squared norms."""
        block_product, block_norms = self.block.times_and_squared_norms(columns[self.filled])
        product: FloatArray = self.scattered @ columns - self.offset @ columns + block_product
        about_zero = block_norms + (self.scattered**2).sum(axis=1)
        return product, about_zero - 2 * (self.scattered @ self.offset) + self.offset @ self.offset


def _dense_product(left: SparseArray, right: SparseArray) -> FloatArray:
    """Return the product of two sparse arrays, made dense a block of rows at a time."""
    product = np.empty((left.shape[0], right.shape[1]))
    for start in range(0, left.shape[0], _BLOCK_ROWS):
        part = slice(start, start + _BLOCK_ROWS)
        product[part] = (left[part] @ right).toarray()
    return product


def _without_columns(rows: SparseArray, dropped: NDArray[np.bool_]) -> SparseArray:
    """Return rows of the same shape with these columns empty."""
    if not dropped.any():
        return rows
    remaining = rows.copy()
    remaining.data[dropped[remaining.indices]] = 0
    remaining.eliminate_zeros()
    return remaining
