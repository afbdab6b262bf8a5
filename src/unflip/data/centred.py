"""Weighted rows about their mean, as the products that fits are made of.

A sparse matrix less its mean is dense, so the mean is not subtracted from sparse rows but from
their products: (X − 1x̄ᵀ)ᵀB = XᵀB − x̄(1ᵀB), and so on. That costs digits where a column varies
little about a mean far from 0. It cannot where at most half of the column's entries are stored: its
power about the mean then is at least half of that about 0 (for equal weights). Columns with more
entries than that are kept dense, which takes at most twice the memory of their entries, and centred
as dense rows are. Dense columns whose power about the mean is not far below that about 0 are
centred in products, too, where that saves a copy: rows of double precision may lose a digit or two,
of single none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from array_api_compat import array_namespace, device, is_torch_namespace
from numpy.typing import NDArray
from scipy.sparse import issparse

from unflip._utils.arrays import as_numpy, largest_magnitude
from unflip._utils.sparse import canonical
from unflip._utils.typing import Array, FloatArray, IntArray, Rows, SparseArray
from unflip._utils.validation import check_squares
from unflip.data.engines import blocks
from unflip.data.engines.blocks import engine_of, evenly_spaced_rows, less
from unflip.data.engines.engine import Engine, OfBlock

_BLOCK = 256  # rows of a sparse product held at a time
_KEPT = 2**21  # numbers that are kept centred
_HALVINGS, _NARROW = (
    2,
    64,
)  # of the features, for symmetric products: how often, and the fewest of a half
_FEWEST = 50  # rows that tell where the origin is
_SINGLE_SHARE, _DOUBLE_SHARE = (
    0.25,
    0.95,
)  # of the power of a column that its mean may have, to be taken off products


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
        return (
            SparseRows.of(X, weights, centre=centre)
            if issparse(X)
            else DenseRows.of(X, weights, centre=centre)
        )

    @abstractmethod
    def of_rows(self, rows: slice) -> Self:
        """Return some of the rows, about the mean of all."""

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
    def times_and_squared_norms(self, columns: Array) -> tuple[Array, Array]:
        """Multiply the rows with a (p, q) array, and return the squared length of each besides, (m,)."""


@dataclass(frozen=True, eq=False)
class DenseRows(CentredRows):
    """Rows of any array-API namespace, or `LazyRows`, read a block at a time: no copy is made of more than a block.

    Every pass over them is one of two, `fill` and `summed`, and an engine makes it (see
    `unflip.data.engines`). Rows may be of single precision; what is found of them is of double
    precision.

    Attributes
    ----------
    X : array or LazyRows of shape (m, p)
        The rows as given.
    offset : tuple of arrays of shape (p,)
        What to subtract from rows, in turn, in their own precision: the mean in one part or two.
        Empty where the mean is subtracted from products, or not at all.
    shift : array of shape (p,)
        What to subtract from products: the mean, or 0.
    kept : array of shape (m, p) or None
        The rows less the offset, where they are so few that they fit into one block.
    """

    X: Array
    weights: Array
    mean: Array
    offset: tuple[Array, ...]
    shift: Array
    kept: Array | None

    @classmethod
    def of(cls, X: Array, weights: Array | None = None, *, centre: bool = True) -> Self:
        """Find the weighted mean."""
        rows = cls._about_rough_mean(X, weights) if centre else cls.of_given(X, weights)
        return rows._moved_by(
            rows.transposed_times(rows.weights[:, None])[:, 0] / rows.total, centre=centre
        )

    @classmethod
    def with_sums(
        cls,
        X: Array,
        columns: Array,
        weights: Array | None = None,
        *,
        centre: bool = True,
        in_single: bool = False,
    ) -> tuple[Self, Array, Array]:
        """Find the weighted mean, Σ wᵢ(xᵢ − x̄)(xᵢ − x̄)ᵀ, and Σᵢ cᵢ(xᵢ − x̄)ᵀ for (m, q) columns that sum to the weights.

        Products of rows of single precision that are made `in_single` precision within a block take
        half the time, and err by about 1e-7 of the largest eigenvalue.
        """
        rows = cls._about_some_mean(X, weights) if centre else cls.of_given(X, weights)
        scatter, sums = rows._scatter_and_sums(columns, weights, in_single)
        correction = array_namespace(sums).sum(sums, axis=0) / rows.total
        moved = rows._moved_by(correction, centre=centre)
        if centre:
            scatter -= rows.total * (
                correction[:, None] * correction[None, :]
            )  # symmetric to the last digit
            sums -= array_namespace(sums).sum(columns, axis=0)[:, None] * correction[None, :]
        return moved, scatter, sums

    @classmethod
    def of_given(cls, X: Array, weights: Array | None = None) -> Self:
        """Take rows without looking at them: their mean counts as 0."""
        xp = array_namespace(X)
        X = X if X.dtype in (xp.float32, xp.float64) else xp.astype(X, xp.float64)
        ones = xp.ones(X.shape[0], dtype=xp.float64, device=device(X))
        known = ones if weights is None else xp.astype(_checked(weights, X), xp.float64, copy=False)
        origin = xp.zeros(X.shape[1], dtype=xp.float64, device=device(X))
        return cls(X, known, origin, (), origin, None)

    @classmethod
    def _about_some_mean(cls, X: Array, weights: Array | None) -> Self:
        """Subtract a mean, where there is one to speak of: that of a sample will do, but weights may belie it."""
        if X.shape[0] < _FEWEST:
            return cls._about_rough_mean(X, weights)
        some = _double(evenly_spaced_rows(X))
        counted = None if weights is None else evenly_spaced_rows(weights[:, None])[:, 0]
        if _is_about_origin(some, counted, is_single=X.dtype == array_namespace(X).float32):
            return cls.of_given(X, weights)
        if weights is not None or _is_small(X):
            return cls._about_rough_mean(X, weights)
        return cls.of_given(X, weights)._about(array_namespace(some).mean(some, axis=0))

    @classmethod
    def _about_rough_mean(cls, X: Array, weights: Array | None) -> Self:
        """Subtract a mean that is off by rounding, which would make constant columns vary: see `_moved_by`."""
        rows = cls.of_given(X, weights)
        return rows._about(rows.transposed_times(rows.weights[:, None])[:, 0] / rows.total)

    def _about(self, mean: Array) -> Self:
        first, *rest = offset = _parts(mean, self.X)
        kept = less(self.X[:, :] - first[None, :], rest) if _is_small(self.X) else None
        return replace(self, mean=mean, offset=offset, kept=kept)

    def _moved_by(self, correction: Array, *, centre: bool) -> Self:
        """Return rows about a mean that differs by so much."""
        mean = self.mean + correction
        if not self.offset:
            return replace(self, mean=mean, shift=mean if centre else self.shift)
        kept = None if self.kept is None else less(self.kept, _parts(correction, self.X))
        return replace(self, mean=mean, offset=_parts(mean, self.X), kept=kept)

    def of_rows(self, rows: slice) -> Self:
        """Return some of the rows, about the mean of all."""
        kept = None if self.kept is None else self.kept[rows, :]
        return replace(self, X=self.X[rows, :], weights=self.weights[rows], kept=kept)

    @property
    def total(self) -> float:
        """Sum of the weights; 1 where rows have none, or there are none."""
        return float(array_namespace(self.weights).sum(self.weights)) or 1.0

    @property
    def _engine(self) -> Engine:
        return engine_of(self.X, self.offset) if self.kept is None else engine_of(self.kept)

    def fill(self, function: OfBlock, *found: Array, columns: Sequence[Array] = ()) -> None:
        """Apply a function to every block of rows less the offset, and put its results into rows of these arrays."""
        self._engine.fill(function, *found, columns=columns)

    def summed(
        self, function: OfBlock, *columns: Array, n_values: int | None = None
    ) -> tuple[Array, ...]:
        """Apply a function to every block of rows less the offset, and add up its results."""
        return self._engine.summed(function, *columns, n_values=n_values)

    def mapped(self, function: Callable[[Array], Array], n_columns: int) -> Array:
        """Apply a function that gives so many columns to every block of rows less the offset, and stack the results."""
        found = self._empty(n_columns)
        if n_columns:
            self.fill(lambda block: (_double(function(block)),), found)
        return found

    def _empty(self, *shape: int) -> Array:
        xp = array_namespace(self.X)
        return xp.empty((self.X.shape[0], *shape), dtype=xp.float64, device=device(self.X))

    def _scatter_and_sums(
        self, columns: Array, weights: Array | None, in_single: bool
    ) -> tuple[Array, Array]:
        xp = array_namespace(self.X)

        def both(block: Array, columns: Array, *weights: Array) -> tuple[Array, Array]:
            rows = block if in_single else _double(block)
            sums = xp.matmul(columns.T, _double(rows))
            for given in weights:
                rows = rows * _like(xp.sqrt(given), rows)[:, None]
            return _double(_self_product(rows)), sums

        given = () if weights is None else (weights,)
        scatter, sums = self.summed(both, columns, *given, n_values=_scatter_block(self.X.shape[1]))
        return scatter, sums

    def times(self, columns: Array) -> Array:
        """Multiply the rows with a (p, q) array."""
        xp = array_namespace(self.X)
        shift = xp.matmul(self.shift, columns)[None, :]
        return self.mapped(
            lambda block: xp.matmul(_double(block), columns) - shift, columns.shape[1]
        )

    def transposed_times(self, columns: Array) -> Array:
        """Multiply the transposed rows with an (m, q) array."""
        xp = array_namespace(self.X)
        (product,) = self.summed(lambda block, part: (xp.matmul(_double(block).T, part),), columns)
        product -= self.shift[:, None] * xp.sum(columns, axis=0)[None, :]
        return product

    def gram(self) -> Array:
        """Products of all pairs of rows, summed over blocks of columns."""
        xp = array_namespace(self.X)
        n_rows, n_features = self.X.shape
        gram = xp.zeros((n_rows, n_rows), dtype=xp.float64, device=device(self.X))
        width = max(_scatter_block(n_rows) // max(n_rows, 1), 1)
        for start in range(0, n_features, width):
            columns = slice(start, min(start + width, n_features))
            block = _double(self.X[:, columns])
            block = block - (self.mean if self.offset else self.shift)[None, columns]
            gram += xp.matmul(block, block.T)
        return gram

    def column_powers(self) -> Array:
        """Weighted sum of squares of each column."""
        xp, shift = array_namespace(self.X), self.shift[None, :]
        (powers,) = self.summed(
            lambda block, weights: (xp.matmul(weights, (_double(block) - shift) ** 2),),
            self.weights,
        )
        return powers

    def times_and_squared_norms(self, columns: Array) -> tuple[Array, Array]:
        """Multiply the rows with a (p, q) array, and return the squared length of each besides, in one pass."""
        xp, shift = array_namespace(self.X), self.shift[None, :]

        def both(block: Array) -> tuple[Array, Array]:
            rows = _double(block) - shift
            return xp.matmul(rows, columns), xp.sum(rows**2, axis=1)

        product, norms = self._empty(columns.shape[1]), self._empty()
        self.fill(both, product, norms)
        return product, norms


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

    def of_rows(self, rows: slice) -> Self:
        """Return some of the rows, about the mean of all."""
        scattered, block, weights = (
            self.scattered[rows],
            self.block.of_rows(rows),
            self.weights[rows],
        )
        return replace(self, scattered=scattered, block=block, weights=weights)

    def times(self, columns: FloatArray) -> FloatArray:
        """Multiply the rows with a (p, q) array."""
        product: FloatArray = (
            self.scattered @ columns
            - self.offset @ columns
            + self.block.times(columns[self.filled])
        )
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
        empty = np.maximum(
            self.weights.sum() - np.bincount(columns, weights, minlength=n_features), 0.0
        )
        powers: FloatArray = (
            np.bincount(columns, weights * squares, minlength=n_features) + empty * self.offset**2
        )
        powers[self.filled] = self.block.column_powers()
        return powers

    def scatter(self) -> FloatArray:
        """Σ wᵢ(xᵢ − x̄)(xᵢ − x̄)ᵀ, (p, p), a few rows of the sparse product at a time."""
        size = self.scattered.shape[1]
        transposed = self.scattered.T.tocsr()
        weighted = self.scattered * self.weights[:, None]
        scatter = np.empty((size, size))
        for start in range(0, size, _BLOCK):
            part = slice(start, start + _BLOCK)
            scatter[part] = (transposed[part] @ weighted).toarray()
        scatter -= self.offset[:, None] * (self.weights @ self.scattered)
        (scatter[:, self.filled],) = self.block.summed(self._across, self.scattered, self.weights)
        scatter[self.filled] = scatter[:, self.filled].T
        return scatter

    def _across(
        self, rows: FloatArray, scattered: SparseArray, weights: FloatArray
    ) -> tuple[FloatArray]:
        """Weighted products of all columns with the filled ones, of some rows."""
        columns = weights[:, None] * (rows - self.block.shift)
        products: FloatArray = scattered.T @ columns - self.offset[:, None] * columns.sum(axis=0)
        products[self.filled] = (rows - self.block.shift).T @ columns
        return (products,)

    def squared_norms_by(self, scales: FloatArray) -> FloatArray:
        """Σⱼ (xᵢⱼ − x̄ⱼ)²dⱼ of each row and each column d of (p, q) scales."""
        norms: FloatArray = self.scattered**2 @ scales
        norms -= 2 * (self.scattered @ (self.offset[:, None] * scales)) - self.offset**2 @ scales
        shift, within = self.block.shift, scales[self.filled]
        norms += self.block.mapped(lambda rows: (rows - shift) ** 2 @ within, scales.shape[1])
        return norms

    def sums_of_squares(self, axes: FloatArray, weights: FloatArray) -> FloatArray:
        """Σⱼ (xᵢᵀaⱼ)²vⱼ over (p, q) axes a, (m, r) for (q, r) weights v, a few rows at a time."""
        shift = self.offset @ axes + self.block.shift @ axes[self.filled]

        def sums(rows: FloatArray, scattered: SparseArray) -> tuple[FloatArray]:
            found = np.empty((len(rows), weights.shape[1]))
            for start in range(0, len(rows), _BLOCK):
                few = slice(start, start + _BLOCK)
                turned = scattered[few] @ axes - shift + rows[few] @ axes[self.filled]
                found[few] = turned**2 @ weights
            return (found,)

        found = np.empty((self.scattered.shape[0], weights.shape[1]))
        self.block.fill(sums, found, columns=(self.scattered,))
        return found

    def times_and_squared_norms(self, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Multiply the rows with a (p, q) array, and return the squared length of each besides."""
        along, about_zero = self.block.times_and_squared_norms(columns[self.filled])
        product: FloatArray = self.scattered @ columns - self.offset @ columns + along
        about_zero = about_zero + (self.scattered**2).sum(axis=1)
        return product, about_zero - 2 * (self.scattered @ self.offset) + self.offset @ self.offset


def _self_product(rows: Array, n_halvings: int = _HALVINGS) -> Array:
    """XᵀX, of which torch need not make both halves: NumPy knows that it is symmetric, CuPy would copy slices."""
    xp = array_namespace(rows)
    half = int(rows.shape[1]) // 2
    if not is_torch_namespace(xp) or not n_halvings or half < _NARROW:
        return xp.matmul(rows.T, rows)
    left, right = rows[:, :half], rows[:, half:]
    product = xp.empty((rows.shape[1], rows.shape[1]), dtype=rows.dtype, device=device(rows))
    product[:half, :half] = _self_product(left, n_halvings - 1)
    product[half:, half:] = _self_product(right, n_halvings - 1)
    product[:half, half:] = xp.matmul(left.T, right)
    product[half:, :half] = product[:half, half:].T
    return product


def _scatter_block(size: int) -> int:
    """Numbers of a block whose (size, size) Gram matrix is wanted: enough for adding that up not to count."""
    return max(blocks.BLOCK_VALUES, min(10 * size**2, max(10 * 2**20, 2 * size**2)))


def _is_about_origin(some: Array, weights: Array | None, *, is_single: bool) -> bool:
    """Whether the mean of each column has no more than a given share in its power about 0, by a sample of the rows."""
    xp = array_namespace(some)
    counts = (
        xp.ones(some.shape[0], dtype=xp.float64, device=device(some))
        if weights is None
        else weights
    )
    total = float(xp.sum(counts))
    largest = _SINGLE_SHARE if is_single else _DOUBLE_SHARE
    sums, powers = xp.matmul(counts, some), xp.matmul(counts, some**2)
    return total > 0 and bool(xp.all(sums**2 <= largest * total * powers))


def _is_small(X: Array) -> bool:
    return int(X.shape[0] * X.shape[1]) <= _KEPT


def _parts(mean: Array, X: Array) -> tuple[Array, ...]:
    """Split a mean into numbers of the precision of X, which for single precision are two."""
    xp = array_namespace(X)
    if X.dtype == xp.float64:
        return (mean,)
    high = xp.astype(mean, X.dtype)
    return high, xp.astype(mean - _double(high), X.dtype)


def _like(values: Array, block: Array) -> Array:
    return array_namespace(block).astype(values, block.dtype, copy=False)


def _double(values: Array) -> Array:
    xp = array_namespace(values)
    return xp.astype(values, xp.float64, copy=False)


def product(X: Rows, columns: Array) -> Array:
    """Multiply rows of either kind with a (p, q) array, in double precision and without a copy of them."""
    return X @ columns if issparse(X) else DenseRows.of_given(X).times(columns)


def _checked(weights: Array, X: Rows) -> Array:
    if weights.shape != (X.shape[0],):
        raise ValueError(f"X has {X.shape[0]} rows but sample_weight has shape {weights.shape}.")
    return weights


def _without_columns(rows: SparseArray, dropped: NDArray[np.bool_]) -> SparseArray:
    """Empty these columns, in rows of the same shape."""
    if not dropped.any():
        return rows
    kept = rows.copy()
    kept.data[dropped[kept.indices]] = 0
    kept.eliminate_zeros()
    return kept


def check_magnitude(X: Rows) -> None:
    """Raise where squares of the features are no numbers, in a pass over the rows."""
    if issparse(X):
        largest = np.abs(X.data)
    else:
        rows = DenseRows.of_given(X)
        largest = array_namespace(rows.weights).empty_like(rows.weights)
        rows.fill(lambda block: (largest_magnitude(block),), largest)
    check_squares(float(as_numpy(largest).max(initial=0.0)), X.shape[0] * X.shape[1])
