"""More rows than features: the eigendecomposition of the p×p Gram matrix."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from unflip._utils.arrays import is_numpy
from unflip._utils.typing import Array, Rows
from unflip.data.centred import CentredRows, DenseRows, SparseRows
from unflip.data.engines.blocks import is_on_host
from unflip.ridge.spectrum.base import SMALLEST_SLACK, Spectrum
from unflip.ridge.spectrum.eigenvalues import is_reached, rounding
from unflip.ridge.spectrum.gram import decomposed, decomposed_sparse, may_be_even
from unflip.ridge.spectrum.hat_table import HatTable, mixed, mixture_of, orthonormal
from unflip.ridge.spectrum.known import KnownFits, KnownSums
from unflip.ridge.spectrum.stacks import RidgePath, as_columns, times

# A table of hat values serves a few dozen penalties. Fewer have their squares and cubes tabulated
# as well; more span these, if some penalties below the smallest are added.
_FEW = 8
_SMALLER = 0.6 ** np.arange(1, 9)
# Singular values of no account, and the largest error of a spanned function relative to its largest
# value, for rows of single (False) and of double precision.
_RESOLVED = {False: 1e-10, True: 1e-15}
_SPANNED = {False: 1e-7, True: 1e-10}
_KEPT_SUMS = 2
_MOST_KEPT = (
    2**25
)  # fitted values; more are made again where they are needed, if the rows are at hand
_NEAR = (
    10.0  # variances by which the mean of the rows may be off the origin, to be taken off products
)
_SMALLEST_SINGLE_SLACK = 1e-5  # that sums in single precision can tell from none


class PrimalSpectrum(Spectrum):
    """More rows than features: eigenvectors of the p×p Gram matrix.

    Products with the eigenvectors for every row cost as much as two Gram matrices, so they are made
    once, for hat values (see `HatTable`). All else needs products of the rows with a few columns.
    The last of these are kept, as each is a pass over rows that may have to be read again: sums for
    two sets of targets, fitted values of one. Sparse rows stay sparse.
    """

    def __init__(
        self,
        X: Rows,
        weights: Array | None = None,
        *,
        fit_intercept: bool,
        shares: Array | None = None,
    ) -> None:
        rows: CentredRows
        if issparse(X):
            rows, self._gram, known = decomposed_sparse(X, weights, shares, fit_intercept)
        else:
            rows, self._gram, known = decomposed(
                X, weights, shares, fit_intercept, in_single=may_be_even(X)
            )
            self._dense = rows
        super().__init__(rows, fit_intercept=fit_intercept)
        self._table = self._other_table = HatTable.empty(self._gram.vectors, self.n_rows)
        self._shares, self._sums = known, list[KnownSums]()
        self._fits: KnownFits | None = None
        self._leading: Array | None = None

    @property
    def n_varying(self) -> int:
        """Number of features that vary."""
        return self._gram.n_varying

    @property
    def _eigenvalues(self) -> Array:
        return self._gram.eigenvalues

    def path(self, targets: Array, regs: ArrayLike) -> RidgePath:
        """Coefficients and intercepts for every penalty and target."""
        columns = as_columns(targets)
        return self._gram.path(
            self._cross(columns - self._centre(columns)), self._mean_target(columns), regs
        )

    def diagonal(self, values: Array, rows: slice = slice(None)) -> Array:
        """Diagonal of U diag(values) Uᵀ."""
        xp = array_namespace(values)
        reached = xp.where(is_reached(self._eigenvalues)[:, None], values, xp.zeros_like(values))
        table = next(
            (table for table in (self._table, self._other_table) if table.spans(reached)), None
        )
        if table is None:
            functions = orthonormal(reached, _RESOLVED[True])
            table = self._other_table = HatTable(
                functions, self._sums_of_squares(functions), _SPANNED[True]
            )
        return self.weights[rows, None] * table.at(reached, rows)

    def target_powers(self, targets: Array) -> tuple[Array, float]:
        """Squared length of the targets along each principal direction among the rows, and in all."""
        xp, centred = array_namespace(targets), targets - self._centre(targets)
        along = xp.sum(self._rotated(centred) ** 2, axis=1) * self._unit
        return along, float(xp.sum(xp.matmul(self.weights, centred**2)))

    def residuals(self, targets: Array, reg: float) -> Array:
        """Residuals of targets; unlike leave-one-out fits, these do not take the place of products that are kept."""
        centred = targets - self._centre(targets)
        path = self._gram.path(super()._cross(centred), 0 * centred[0, :], [reg])
        return centred - self._rows.times(path.coef[:, 0, :])

    def kernel_sums(self, targets: Array) -> Array:
        """Sum over the other rows, for a copy of the targets: they are remembered, and the caller may change them."""
        return super().kernel_sums(array_namespace(targets).asarray(targets, copy=True))

    @cached_property
    def principal_rows(self) -> Array:
        """The rows along the principal directions."""
        return self._rows.times(self._gram.vectors)

    def from_principal(self, coef: Array) -> Array:
        """Return coefficients of the features."""
        return array_namespace(coef).matmul(self._gram.vectors, coef)

    def coordinates(self, count: int) -> Array:
        """Coordinates of the rows along the first principal directions, each scaled to variance 1."""
        if self._leading is None or self._leading.shape[1] != count:
            xp = array_namespace(self.weights)
            last = self._eigenvalues.shape[0]
            leading = slice(last - count, last)
            scaled = (
                self._gram.vectors[:, leading]
                / xp.sqrt(self._eigenvalues[leading] / self.n)[None, :]
            )
            self._leading = self._rows.times(xp.flip(scaled, axis=1))
        return self._leading

    def _residuals_and_slack(
        self, centred: Array, regs: ArrayLike
    ) -> Callable[[slice], tuple[Array, Array]]:
        kept = self._kept(regs)
        fits, of_targets = self._fits_of(centred, kept, regs)
        of_functions, table = mixture_of(fits.functions, kept), self._table

        def part(rows: slice) -> tuple[Array, Array]:
            residuals = mixed(fits.fitted(rows), of_functions, of_targets)
            residuals -= centred[rows, None, :]
            residuals *= -1  # in place: there are as many as rows times penalties
            slack = table.at(kept, rows)
            slack += 1 / self.n if self.fit_intercept else 0.0
            slack *= -self.weights[rows, None]
            slack += 1
            return residuals, slack

        return part

    def _fits_of(self, centred: Array, kept: Array, regs: ArrayLike) -> tuple[KnownFits, Array]:
        """Return fitted values that mix to those of these targets, and how; in a pass over the rows if need be.

        Where the table of hat values does not serve these penalties, the same pass makes one that
        does.
        """
        xp = array_namespace(centred)
        spanned = self._table.spans(kept)
        if (
            spanned
            and self._fits is not None
            and (mixture := self._fits.mixture(centred, kept)) is not None
        ):
            return self._fits, mixture
        self._fits = None  # so that two are never kept at a time
        functions = self._table.functions if spanned else self._functions(kept, regs)
        fitted = functions if functions.shape[1] < kept.shape[1] else xp.linalg.qr(kept)[0]
        coef = times(self._gram.vectors, fitted[:, :, None] * self._rotated(centred)[:, None, :])
        columns = xp.reshape(coef, (coef.shape[0], -1))
        at_hand = isinstance(self._rows, SparseRows) or is_numpy(self._dense.X)
        on_demand = at_hand and self.n_rows * columns.shape[1] > _MOST_KEPT
        if spanned:
            values = columns if on_demand else self._rows.times(columns)
        else:
            values, sums = self._fitted_and_sums(
                columns[:, :0] if on_demand else columns, functions
            )
            self._table = HatTable(functions, sums, _SPANNED[self._is_double])
        same = xp.eye(centred.shape[1], dtype=centred.dtype, device=device(centred))

        def part(rows: slice) -> Array:
            some = self._rows.of_rows(rows).times(columns) if on_demand else values[rows, :]
            return xp.reshape(some, (-1, *coef.shape[1:]))

        fits = KnownFits(centred, fitted, part, _SPANNED[self._is_double])
        self._fits = None if on_demand else fits
        return fits, same

    def _rotated(self, centred: Array) -> Array:
        """Coefficients of unpenalised fits along the principal directions."""
        return (
            array_namespace(centred).matmul(self._gram.vectors.T, self._cross(centred))
            / self._unit[:, None]
        )

    def _resolution(self, regs: ArrayLike) -> float:
        return (
            SMALLEST_SLACK if self._is_double else _SMALLEST_SINGLE_SLACK
        )  # found by subtraction: digits are lost

    def _cross(self, columns: Array) -> Array:
        for known in (*reversed(self._sums), self._shares):
            if (mixed_sums := known.of(columns)) is not None:
                return mixed_sums
        found = super()._cross(columns)
        self._sums = [*self._sums[1 - _KEPT_SUMS :], KnownSums(columns, found)]
        return found

    @cached_property
    def _unit(self) -> Array:
        """Eigenvalues s, those that no row reaches raised to where rounding ends."""
        xp = array_namespace(self._eigenvalues)
        smallest = float(xp.max(self._eigenvalues)) * rounding(self._eigenvalues) or 1.0
        return xp.where(
            self._eigenvalues > smallest,
            self._eigenvalues,
            xp.full_like(self._eigenvalues, smallest),
        )

    def _kept(self, regs: ArrayLike) -> Array:
        """s/(s + nγ), a column for each γ, as the fits have it where rounding decides."""
        return self._unit[:, None] * self._gram.inverse(regs)

    def _functions(self, kept: Array, regs: ArrayLike) -> Array:
        return orthonormal(self._neighbourhood(kept, regs), _RESOLVED[self._is_double])

    @property
    def _is_double(self) -> bool:
        return isinstance(self._rows, SparseRows) or bool(
            self._dense.X.dtype == array_namespace(self._dense.X).float64
        )

    def _neighbourhood(self, kept: Array, regs: ArrayLike) -> Array:
        """Hat matrices' eigenvalues for these penalties, with what penalties nearby and products need besides."""
        xp = array_namespace(kept)
        penalties = np.atleast_1d(np.asarray(regs, dtype=float))
        if len(penalties) <= _FEW:
            return xp.concat([kept, kept**2, kept**3], axis=1)
        ends = self._kept(penalties[[np.argmin(penalties), np.argmax(penalties)]])
        smaller = penalties.min() * _SMALLER
        below = self._kept(smaller) if smaller.all() else kept[:, :0]
        return xp.concat([kept, below, ends**2, ends**3], axis=1)

    def _sums_of_squares(self, values: Array) -> Array:
        """Σⱼ zᵢⱼ²vⱼ/sⱼ for every row, in principal coordinates z, and every column of values v."""
        return self._fitted_and_sums(self._gram.vectors[:, :0], values)[1]

    def _fitted_and_sums(self, coef: Array, values: Array) -> tuple[Array, Array]:
        """Products of the rows with coefficients and `_sums_of_squares`, in one pass over the rows."""
        xp = array_namespace(values)
        weights = values / self._unit[:, None]
        if "principal_rows" in vars(self):
            turned = DenseRows.of_given(self.principal_rows)
            sums = turned.mapped(lambda block: xp.matmul(block**2, weights), values.shape[1])
            return self._rows.times(coef), sums
        if isinstance(self._rows, SparseRows):
            return self._rows.times(coef), self._rows.sums_of_squares(self._gram.vectors, weights)
        spread = (
            float(xp.max(self._unit)) / self.n
        ) ** 0.5  # coordinates of about 1 have squares in any precision
        like = self._like_rows if self._holds(1 / spread) else xp.asarray
        axes, weights = like(self._gram.vectors / spread), like(weights * spread * spread)
        shift = like(xp.matmul(self._dense.shift, self._gram.vectors) / spread)
        columns, constants, n_fitted = coef, xp.matmul(self._dense.shift, coef), coef.shape[1]
        expanded = self._is_worth_expanding(shift * spread)
        # Σ(z − s)²w = Σz²w − (Σ2szw − Σs²w), of which the last is one more product with the rows
        if expanded:
            columns = xp.concat([coef, xp.matmul(axes, 2 * shift[:, None] * weights)], axis=1)
            constants = xp.concat([constants, xp.matmul(shift**2, weights)])

        def both(block: Array) -> tuple[Array, Array]:
            turned = xp.matmul(xp.astype(block, axes.dtype, copy=False), axes)
            if not expanded:
                turned -= shift[None, :]
            turned *= turned
            products = (
                xp.matmul(xp.astype(block, coef.dtype, copy=False), columns) - constants[None, :]
            )
            sums = xp.matmul(turned, weights)
            return products[:, :n_fitted], sums - products[:, n_fitted:] if expanded else sums

        fitted = self._empty(n_fitted, coef.dtype)
        sums = self._empty(values.shape[1], axes.dtype)
        self._dense.fill(both, fitted, sums)
        return fitted, sums

    def _is_worth_expanding(self, shift: Array) -> bool:
        """Whether to take the mean along each direction off sums of squares: that saves a device a pass over products.

        Where the mean is within three standard deviations of 0 along each, no more than a digit is
        lost.
        """
        if is_on_host(self._dense.X) or not self._is_double or self._dense.offset:
            return False
        return bool(array_namespace(shift).all(shift**2 <= _NEAR * self._unit / self.n))

    def _empty(self, n_columns: int, dtype: Any) -> Array:
        xp = array_namespace(self.weights)
        return xp.empty((self.n_rows, n_columns), dtype=dtype, device=device(self.weights))

    def _holds(self, number: float) -> bool:
        """Whether the precision of the rows has such numbers."""
        return number < float(array_namespace(self._dense.X).finfo(self._dense.X.dtype).max)

    def _like_rows(self, values: Array) -> Array:
        return array_namespace(values).astype(values, self._dense.X.dtype, copy=False)
