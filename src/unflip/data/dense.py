"""Dense rows about their mean, read one block at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from array_api_compat import array_namespace, device, is_torch_namespace

from unflip._utils.arrays import is_numpy
from unflip._utils.typing import Array, Rows
from unflip.data.centred import CentredRows
from unflip.data.engines import blocks
from unflip.data.engines.blocks import engine_of, evenly_spaced_rows, is_on_host, less
from unflip.data.engines.engine import Engine, OfBlock

# Most numbers of rows that are kept centred, 16 MiB in double precision: one copy of small data is
# cheaper than to subtract the mean in every pass.
_KEPT_VALUES = 2**21


@dataclass(frozen=True, eq=False)
class DenseRows(CentredRows):
    """Rows of any array-API namespace, or `LazyRows`; no more than one block is copied at a time.

    Every pass is a `fill` or a `summed` of an engine (see `unflip.data.engines`). Rows may be in
    single precision; results are in double precision.

    Attributes
    ----------
    X : array or LazyRows of shape (m, p)
        The rows, not centred.
    offset : tuple of arrays of shape (p,)
        Subtracted from the rows, in turn, in their own precision: the mean in one part or two.
        Empty if the mean is subtracted from products, or not at all.
    shift : array of shape (p,)
        Subtracted from products: the mean, or 0.
    kept : array of shape (m, p) or None
        The rows less the offset, for small data.
    """

    X: Array
    weights: Array
    mean: Array
    offset: tuple[Array, ...]
    shift: Array
    kept: Array | None

    @classmethod
    def of(cls, X: Array, weights: Array | None = None, *, centre: bool = True) -> Self:
        """Return rows with their weighted mean, centred by default."""
        rows = cls._about_rough_mean(X, weights) if centre else cls.uncentred(X, weights)
        return rows._moved_by(rows._weighted_mean(), centre=centre)

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
        """Return the rows, their scatter and sums by column, in one pass.

        Parameters
        ----------
        X, weights, centre
            As for `of`.
        columns : array of shape (m, q)
            Coefficients cᵢ that sum to the weight in each row.
        in_single : bool
            Whether to multiply rows of single precision in single precision within a block. That
            takes half the time, and errs by about 1e-7 of the largest eigenvalue.

        Returns
        -------
        rows : DenseRows
            The rows with their weighted mean.
        scatter : array of shape (p, p)
            Σ wᵢ(xᵢ − x̄)(xᵢ − x̄)ᵀ.
        sums : array of shape (q, p)
            Σ cᵢ(xᵢ − x̄)ᵀ.
        """
        rows = cls._about_sample_mean(X, weights) if centre else cls.uncentred(X, weights)
        scatter, sums = rows._scatter_and_sums(columns, weights, in_single)
        xp = array_namespace(sums)
        correction = xp.sum(sums, axis=0) / rows.total
        moved = rows._moved_by(correction, centre=centre)
        if centre:
            # The outer product first, so that the scatter stays symmetric to the last digit.
            scatter -= rows.total * (correction[:, None] * correction[None, :])
            sums -= xp.sum(columns, axis=0)[:, None] * correction[None, :]
        return moved, scatter, sums

    @classmethod
    def uncentred(cls, X: Array, weights: Array | None = None) -> Self:
        """Return rows without a pass over them: their mean counts as 0."""
        xp = array_namespace(X)
        X = X if X.dtype in (xp.float32, xp.float64) else xp.astype(X, xp.float64)
        if weights is None:
            weights = xp.ones(X.shape[0], dtype=xp.float64, device=device(X))
        else:
            weights = xp.astype(checked_length(weights, X), xp.float64, copy=False)
        origin = xp.zeros(X.shape[1], dtype=xp.float64, device=device(X))
        return cls(X, weights, origin, (), origin, None)

    @classmethod
    def _about_sample_mean(cls, X: Array, weights: Array | None) -> Self:
        """Return rows about the mean of a sample, about the rough mean, or about 0."""
        if X.shape[0] < 50:  # too few rows to judge the mean by a sample
            return cls._about_rough_mean(X, weights)
        sample = _double(evenly_spaced_rows(X))
        sample_weights = None if weights is None else evenly_spaced_rows(weights[:, None])[:, 0]
        is_single = X.dtype == array_namespace(X).float32
        if _is_about_origin(sample, sample_weights, is_single=is_single):
            return cls.uncentred(X, weights)
        if weights is not None or _is_small(X):
            return cls._about_rough_mean(X, weights)
        return cls.uncentred(X, weights)._about(array_namespace(sample).mean(sample, axis=0))

    @classmethod
    def _about_rough_mean(cls, X: Array, weights: Array | None) -> Self:
        """Subtract the mean up to its rounding error, which `_moved_by` corrects.

        Left uncorrected, the error would make constant columns vary.
        """
        rows = cls.uncentred(X, weights)
        return rows._about(rows._weighted_mean())

    def _weighted_mean(self) -> Array:
        return self.transposed_times(self.weights[:, None])[:, 0] / self.total

    def _about(self, mean: Array) -> Self:
        first, *rest = offset = _split_mean(mean, self.X)
        kept = less(self.X[:, :] - first[None, :], rest) if _is_small(self.X) else None
        return replace(self, mean=mean, offset=offset, kept=kept)

    def _moved_by(self, correction: Array, *, centre: bool) -> Self:
        """Return rows about a mean that differs by a correction."""
        mean = self.mean + correction
        if not self.offset:
            return replace(self, mean=mean, shift=mean if centre else self.shift)
        kept = None if self.kept is None else less(self.kept, _split_mean(correction, self.X))
        return replace(self, mean=mean, offset=_split_mean(mean, self.X), kept=kept)

    @property
    def in_memory(self) -> bool:
        """Whether the rows are a NumPy array."""
        return is_numpy(self.X)

    @property
    def is_double(self) -> bool:
        """Whether the rows are in double precision, rather than in single precision."""
        return bool(self.X.dtype == array_namespace(self.X).float64)

    def of_rows(self, rows: slice) -> Self:
        """Return a slice of the rows, about the mean of all."""
        kept = None if self.kept is None else self.kept[rows, :]
        return replace(self, X=self.X[rows, :], weights=self.weights[rows], kept=kept)

    @property
    def total(self) -> float:
        """Sum of the weights; 1 if it is 0."""
        return float(array_namespace(self.weights).sum(self.weights)) or 1.0

    @property
    def _engine(self) -> Engine:
        return engine_of(self.X, self.offset) if self.kept is None else engine_of(self.kept)

    def fill(self, function: OfBlock, *results: Array, columns: Sequence[Array] = ()) -> None:
        """Write a function's values for each block of rows less the offset into result arrays."""
        self._engine.fill(function, *results, columns=columns)

    def summed(
        self, function: OfBlock, *columns: Array, n_values: int | None = None
    ) -> tuple[Array, ...]:
        """Add up a function's values over all blocks of rows less the offset."""
        return self._engine.summed(function, *columns, n_values=n_values)

    def mapped(self, function: Callable[[Array], Array], n_columns: int) -> Array:
        """Return a function's values, (m, n_columns), for all blocks of rows less the offset."""
        values = self._empty(n_columns)
        if n_columns:
            self.fill(lambda block: (_double(function(block)),), values)
        return values

    def _empty(self, *shape: int, dtype: Any = None) -> Array:
        """Return an array with an entry per row, in double precision by default."""
        xp = array_namespace(self.X)
        dtype = xp.float64 if dtype is None else dtype
        return xp.empty((self.X.shape[0], *shape), dtype=dtype, device=device(self.X))

    def _scatter_and_sums(
        self, columns: Array, weights: Array | None, in_single: bool
    ) -> tuple[Array, Array]:
        xp = array_namespace(self.X)

        def both(block: Array, columns: Array, weights: Array | None = None) -> tuple[Array, Array]:
            rows = block if in_single else _double(block)
            sums = xp.matmul(columns.T, _double(rows))
            if weights is not None:
                roots = xp.astype(xp.sqrt(weights), rows.dtype, copy=False)
                rows = rows * roots[:, None]
            return _double(_self_product(rows)), sums

        per_row = (columns,) if weights is None else (columns, weights)
        scatter, sums = self.summed(both, *per_row, n_values=_scatter_block(self.X.shape[1]))
        return scatter, sums

    def times(self, columns: Array) -> Array:
        """Multiply the rows by a (p, q) array."""
        xp = array_namespace(self.X)
        shift = xp.matmul(self.shift, columns)[None, :]
        return self.mapped(
            lambda block: xp.matmul(_double(block), columns) - shift, columns.shape[1]
        )

    def transposed_times(self, columns: Array) -> Array:
        """Multiply the transposed rows by an (m, q) array."""
        xp = array_namespace(self.X)
        (product,) = self.summed(lambda block, part: (xp.matmul(_double(block).T, part),), columns)
        product -= self.shift[:, None] * xp.sum(columns, axis=0)[None, :]
        return product

    def gram(self) -> Array:
        """Return the inner products of all pairs of rows, summed over blocks of columns."""
        xp = array_namespace(self.X)
        n_rows, n_features = self.X.shape
        gram = xp.zeros((n_rows, n_rows), dtype=xp.float64, device=device(self.X))
        mean = self.mean if self.offset else self.shift
        width = max(_scatter_block(n_rows) // max(n_rows, 1), 1)
        for start in range(0, n_features, width):
            columns = slice(start, min(start + width, n_features))
            block = _double(self.X[:, columns]) - mean[None, columns]
            gram += xp.matmul(block, block.T)
        return gram

    def column_powers(self) -> Array:
        """Return the weighted sum of squares of each column."""
        xp = array_namespace(self.X)
        shift = self.shift[None, :]
        (powers,) = self.summed(
            lambda block, weights: (xp.matmul(weights, (_double(block) - shift) ** 2),),
            self.weights,
        )
        return powers

    def times_and_squared_norms(self, columns: Array) -> tuple[Array, Array]:
        """Multiply the rows by a (p, q) array; return their squared norms from the same pass."""
        xp = array_namespace(self.X)
        shift = self.shift[None, :]

        def both(block: Array) -> tuple[Array, Array]:
            rows = _double(block) - shift
            return xp.matmul(rows, columns), xp.sum(rows**2, axis=1)

        product = self._empty(columns.shape[1])
        norms = self._empty()
        self.fill(both, product, norms)
        return product, norms

    def times_and_sums_of_squares(
        self, columns: Array, axes: Array, weights: Array, variances: Array
    ) -> tuple[Array, Array]:
        """Multiply the rows by a (p, q) array; return sums of squares from the same pass.

        The sums are computed in the precision of the rows.
        """
        xp = array_namespace(columns)
        # Coordinates of about 1 have squares that neither precision over- or underflows.
        spread = float(xp.max(variances)) ** 0.5
        in_range = 1 / spread < float(xp.finfo(self.X.dtype).max)
        dtype = self.X.dtype if in_range else xp.float64
        scaled_axes = xp.astype(axes / spread, dtype, copy=False)
        scaled_weights = xp.astype(weights * spread * spread, dtype, copy=False)
        shift = xp.astype(xp.matmul(self.shift, axes) / spread, dtype, copy=False)
        n_columns = columns.shape[1]
        constants = xp.matmul(self.shift, columns)
        expanded = self._is_worth_expanding(shift * spread, variances)
        # Σ(z − s)²w = Σz²w − (Σ2szw − Σs²w), where the bracket is one more product with the rows.
        if expanded:
            crossed = xp.matmul(scaled_axes, 2 * shift[:, None] * scaled_weights)
            columns = xp.concat([columns, crossed], axis=1)
            constants = xp.concat([constants, xp.matmul(shift**2, scaled_weights)])

        def both(block: Array) -> tuple[Array, Array]:
            turned = xp.matmul(xp.astype(block, dtype, copy=False), scaled_axes)
            if not expanded:
                turned -= shift[None, :]
            turned *= turned
            products = xp.matmul(_double(block), columns) - constants[None, :]
            sums = xp.matmul(turned, scaled_weights)
            if expanded:
                sums = sums - products[:, n_columns:]
            return products[:, :n_columns], sums

        product = self._empty(n_columns)
        sums = self._empty(weights.shape[1], dtype=dtype)
        self.fill(both, product, sums)
        return product, sums

    def _is_worth_expanding(self, shift: Array, variances: Array) -> bool:
        """Whether to subtract the mean from sums of squares instead of from the coordinates.

        This saves a device a pass over the products. If the mean is within three standard
        deviations of 0 along each direction (10 variances), at most one digit is lost.
        """
        if is_on_host(self.X) or not self.is_double or self.offset:
            return False
        return bool(array_namespace(shift).all(shift**2 <= 10.0 * variances))


def checked_length(weights: Array, X: Rows) -> Array:
    """Return the weights; raise ValueError if there is not one per row."""
    if weights.shape != (X.shape[0],):
        raise ValueError(f"X has {X.shape[0]} rows but sample_weight has shape {weights.shape}.")
    return weights


def _self_product(rows: Array, n_halvings: int = 2) -> Array:
    """Return XᵀX.

    NumPy computes one half of the symmetric product only. torch does so here, by halving the
    columns twice. CuPy would copy the slices.
    """
    xp = array_namespace(rows)
    half = int(rows.shape[1]) // 2
    # Halves of fewer than 64 columns are not worth another call.
    if not is_torch_namespace(xp) or not n_halvings or half < 64:
        return xp.matmul(rows.T, rows)
    left = rows[:, :half]
    right = rows[:, half:]
    product = xp.empty((rows.shape[1], rows.shape[1]), dtype=rows.dtype, device=device(rows))
    product[:half, :half] = _self_product(left, n_halvings - 1)
    product[half:, half:] = _self_product(right, n_halvings - 1)
    product[:half, half:] = xp.matmul(left.T, right)
    product[half:, :half] = product[:half, half:].T
    return product


def _scatter_block(size: int) -> int:
    """Numbers in a block for a (size, size) Gram matrix: adding that up must cost little."""
    return max(blocks.BLOCK_VALUES, min(10 * size**2, max(10 * 2**20, 2 * size**2)))


def _is_about_origin(sample: Array, weights: Array | None, *, is_single: bool) -> bool:
    """Whether the mean may be subtracted from products, as far as a sample of rows shows.

    The squared mean must be at most a share of each column's mean square: 0.95 in double
    precision, which loses one or two of 16 digits; 0.25 in single precision, which loses none of 7.
    """
    xp = array_namespace(sample)
    if weights is None:
        weights = xp.ones(sample.shape[0], dtype=xp.float64, device=device(sample))
    total = float(xp.sum(weights))
    largest_share = 0.25 if is_single else 0.95
    sums = xp.matmul(weights, sample)
    powers = xp.matmul(weights, sample**2)
    return total > 0 and bool(xp.all(sums**2 <= largest_share * total * powers))


def _is_small(X: Array) -> bool:
    return int(X.shape[0] * X.shape[1]) <= _KEPT_VALUES


def _split_mean(mean: Array, X: Array) -> tuple[Array, ...]:
    """Split a mean into parts of the precision of X: two for single precision, else one."""
    xp = array_namespace(X)
    if X.dtype == xp.float64:
        return (mean,)
    high = xp.astype(mean, X.dtype)
    return high, xp.astype(mean - _double(high), X.dtype)


def _double(values: Array) -> Array:
    xp = array_namespace(values)
    return xp.astype(values, xp.float64, copy=False)
