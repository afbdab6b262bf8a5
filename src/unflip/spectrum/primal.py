"""More rows than features: the eigendecomposition of the p×p Gram matrix."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from unflip._typing import Array, Rows
from unflip.centred import CentredRows, DenseRows, SparseRows
from unflip.spectrum.base import SMALLEST_SLACK, Spectrum
from unflip.spectrum.eigenvalues import is_reached, rounding
from unflip.spectrum.hat_table import HatTable, mixed, mixture_of, orthonormal
from unflip.spectrum.precision import decomposed, decomposed_sparse, may_be_even
from unflip.spectrum.stacks import RidgePath, as_columns, times

# A table of hat values serves a few dozen penalties. Fewer have their squares and cubes tabulated as well; more span
# these, if some penalties below the smallest are added.
_FEW = 8
_SMALLER = 0.6 ** np.arange(1, 9)
# Singular values of no account, and the largest error of a spanned function relative to its largest value, for rows of
# single (False) and of double precision.
_RESOLVED = {False: 1e-10, True: 1e-15}
_SPANNED = {False: 1e-7, True: 1e-10}


class PrimalSpectrum(Spectrum):
    """More rows than features: eigenvectors of the p×p Gram matrix.

    Products with the eigenvectors for every row cost as much as two Gram matrices, so they are made once, for hat
    values (see `HatTable`). All else needs products of the rows with a few columns. Sparse rows stay sparse.
    """

    def __init__(self, X: Rows, weights: Array | None = None, *, fit_intercept: bool) -> None:
        rows: CentredRows
        if issparse(X):
            rows, self._gram = decomposed_sparse(X, weights, fit_intercept)
        else:
            rows, self._gram = decomposed(X, weights, fit_intercept, in_single=may_be_even(X))
            self._dense = rows
        super().__init__(rows, fit_intercept=fit_intercept)
        self._table = HatTable.empty(self._gram.vectors)

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
        return self._gram.path(self._cross(columns - self._centre(columns)), self._mean_target(columns), regs)

    def diagonal(self, values: Array) -> Array:
        """Diagonal of U diag(values) Uᵀ."""
        xp = array_namespace(values)
        reached = xp.where(is_reached(self._eigenvalues)[:, None], values, xp.zeros_like(values))
        known = self._table.spans(reached)
        return self.weights[:, None] * (self._table.at(reached) if known else self._sums_of_squares(reached))

    @cached_property
    def principal_rows(self) -> Array:
        """The rows along the principal directions."""
        return self._rows.times(self._gram.vectors)

    def from_principal(self, coef: Array) -> Array:
        """Return coefficients of the features."""
        return array_namespace(coef).matmul(self._gram.vectors, coef)

    def coordinates(self, count: int) -> Array:
        """Coordinates of the rows along the first principal directions, each scaled to variance 1."""
        xp = array_namespace(self.weights)
        last = self._eigenvalues.shape[0]
        leading = slice(last - count, last)
        scaled = self._gram.vectors[:, leading] / xp.sqrt(self._eigenvalues[leading] / self.n)[None, :]
        return self._rows.times(xp.flip(scaled, axis=1))

    def _residuals_and_slack(self, centred: Array, regs: ArrayLike) -> tuple[Array, Array]:
        xp = array_namespace(centred)
        rotated = xp.matmul(self._gram.vectors.T, self._cross(centred)) / self._unit[:, None]
        kept = self._kept(regs)
        is_new = not self._table.spans(kept)
        functions = self._functions(kept, regs) if is_new else self._table.functions
        mixture = mixture_of(functions, kept)
        spanned = mixture.shape[0] < mixture.shape[1]  # fitted values of the functions give those of all penalties
        filtered = (functions if spanned else kept)[:, :, None] * rotated[:, None, :]
        coef = times(self._gram.vectors, filtered)
        columns = xp.reshape(coef, (coef.shape[0], -1))
        if is_new:
            fitted, sums = self._fitted_and_sums(columns, functions)
            self._table = HatTable(functions, sums, _SPANNED[self._is_double])
        else:
            fitted = self._rows.times(columns)
        fitted = xp.reshape(fitted, (-1, *coef.shape[1:]))
        residuals = mixed(fitted, mixture) if spanned else fitted
        residuals -= centred[:, None, :]
        residuals *= -1  # in place: there are as many as rows times penalties
        slack = xp.matmul(self._table.sums, mixture)
        slack += 1 / self.n if self.fit_intercept else 0.0
        slack *= -self.weights[:, None]
        slack += 1
        return residuals, slack

    def _resolution(self, regs: ArrayLike) -> float:
        return SMALLEST_SLACK  # found by subtraction: digits are lost

    def _cross(self, centred: Array) -> Array:
        return self._rows.transposed_times(self.weights[:, None] * centred)

    @property
    def _unit(self) -> Array:
        """Eigenvalues s, those that no row reaches raised to where rounding ends."""
        xp = array_namespace(self._eigenvalues)
        smallest = float(xp.max(self._eigenvalues)) * rounding(self._eigenvalues) or 1.0
        return xp.where(self._eigenvalues > smallest, self._eigenvalues, smallest * xp.ones_like(self._eigenvalues))

    def _kept(self, regs: ArrayLike) -> Array:
        """s/(s + nγ), a column for each γ, as the fits have it where rounding decides."""
        return self._unit[:, None] * self._gram.inverse(regs)

    def _functions(self, kept: Array, regs: ArrayLike) -> Array:
        return orthonormal(self._neighbourhood(kept, regs), _RESOLVED[self._is_double])

    @property
    def _is_double(self) -> bool:
        return isinstance(self._rows, SparseRows) or bool(self._dense.X.dtype == array_namespace(self._dense.X).float64)

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
        spread = (float(xp.max(self._unit)) / self.n) ** 0.5  # coordinates of about 1 have squares in any precision
        axes, weights = self._like_rows(self._gram.vectors / spread), self._like_rows(weights * spread * spread)
        shift = self._like_rows(xp.matmul(self._dense.shift, self._gram.vectors) / spread)[None, :]
        fitted_shift = xp.matmul(self._dense.shift, coef)[None, :]

        def both(block: Array) -> Array:
            fitted = xp.matmul(xp.astype(block, coef.dtype, copy=False), coef) - fitted_shift
            turned = xp.matmul(block, axes)
            turned -= shift
            turned *= turned
            return xp.concat([fitted, xp.astype(xp.matmul(turned, weights), coef.dtype, copy=False)], axis=1)

        found = self._dense.mapped(both, coef.shape[1] + values.shape[1])
        return found[:, : coef.shape[1]], xp.asarray(found[:, coef.shape[1] :], copy=True)  # kept without the rest

    def _like_rows(self, values: Array) -> Array:
        return array_namespace(values).astype(values, self._dense.X.dtype, copy=False)
