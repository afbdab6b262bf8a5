"""Spectrum of more rows than features: the p×p Gram matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from unflip._utils.typing import Array, Rows
from unflip.data.centred import CentredRows
from unflip.data.dense import DenseRows
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.cached_products import CachedFits, CachedSums
from unflip.ridge.spectrum.eigenvalues import is_reached, rounding
from unflip.ridge.spectrum.gram import (
    decompose_dense,
    decompose_sparse,
    suits_single_precision,
)
from unflip.ridge.spectrum.left_out import SMALLEST_SLACK
from unflip.ridge.spectrum.leverage_table import LeverageTable, mixed, mixture_of, orthonormal
from unflip.ridge.spectrum.stacks import RidgePath, as_columns, times

# Fitted values that are cached (256 MiB). More are computed again where they are needed, if the
# rows are in memory: it trades memory for time, and does not change the result.
_MOST_KEPT = 2**25


@dataclass(frozen=True)
class _Precision:
    """Tolerances for rows of one precision."""

    # Singular values of tabulated functions below this share of the largest are dropped.
    resolved: float
    # Largest error of a function that the table spans, relative to its largest value.
    spanned: float
    # Slack below which a difference is rounding error.
    slack: float


# In single precision, resolved=1e-9 fails a test of subnormal numbers. In double precision,
# spanned=1e-11 makes a test of products of hat matrices take another pass over the rows. Ten times
# more or less of the others changes no test of the module.
_SINGLE = _Precision(resolved=1e-10, spanned=1e-7, slack=1e-5)
_DOUBLE = _Precision(resolved=1e-15, spanned=1e-10, slack=SMALLEST_SLACK)


class PrimalSpectrum(Spectrum):
    """Eigendecomposition of the p×p Gram matrix, for more rows than features.

    Products with the eigenvectors for every row cost as much as two Gram matrices, so they are
    computed once, for leverages (see `LeverageTable`). All else needs products of the rows with a
    few columns. Each is a pass over rows that may have to be read again, so the latest are cached:
    sums for two sets of targets, fitted values for one. Sparse rows stay sparse.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> spectrum = PrimalSpectrum(rng.normal(size=(20, 3)), fit_intercept=True)
    >>> spectrum.leave_one_out(rng.normal(size=20), [0.1, 1.0]).scores.shape
    (20, 2, 1)
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
            rows, self._gram, share_sums = decompose_sparse(X, weights, shares, fit_intercept)
        else:
            rows, self._gram, share_sums = decompose_dense(
                X, weights, shares, fit_intercept, in_single=suits_single_precision(X)
            )
        super().__init__(rows, fit_intercept=fit_intercept)
        # The second table serves functions other than shrinkage near the latest strengths.
        self._table = self._other_table = LeverageTable.empty(self._gram.vectors, self.n_rows)
        self._share_sums = share_sums
        self._target_sums: list[CachedSums] = []
        self._fits: CachedFits | None = None
        self._leading: Array | None = None

    @property
    def n_varying(self) -> int:
        """Number of features that vary."""
        return self._gram.n_varying

    @property
    def _eigenvalues(self) -> Array:
        return self._gram.eigenvalues

    def path(self, targets: Array, regs: ArrayLike) -> RidgePath:
        """Return coefficients and intercepts for every regularization strength and target."""
        columns = as_columns(targets)
        cross = self._cross(columns - self._centre(columns))
        return self._gram.path(cross, self._mean_target(columns), regs)

    def diagonal(self, values: Array, rows: slice = slice(None)) -> Array:
        """Return the diagonal of U diag(values) Uᵀ."""
        xp = array_namespace(values)
        reached = xp.where(is_reached(self._eigenvalues)[:, None], values, xp.zeros_like(values))
        table = self._table
        if not table.spans(reached):
            if not self._other_table.spans(reached):
                functions = orthonormal(reached, _DOUBLE.resolved)
                sums = self._sums_of_squares(functions)
                self._other_table = LeverageTable(functions, sums, _DOUBLE.spanned)
            table = self._other_table
        return self.weights[rows, None] * table.at(reached, rows)

    def target_powers(self, targets: Array) -> tuple[Array, float]:
        """Return the squared length of the targets along each principal direction, and in total."""
        xp = array_namespace(targets)
        centred = targets - self._centre(targets)
        along = xp.sum(self._rotated(centred) ** 2, axis=1) * self._raised_eigenvalues
        return along, float(xp.sum(xp.matmul(self.weights, centred**2)))

    def residuals(self, targets: Array, reg: float) -> Array:
        """Return residuals t − t̂ of targets; cached products are not replaced."""
        centred = targets - self._centre(targets)
        path = self._gram.path(super()._cross(centred), 0 * centred[0, :], [reg])
        return centred - self._rows.times(path.coef[:, 0, :])

    def kernel_sums(self, targets: Array) -> Array:
        """Return Σⱼ wⱼ(xᵢ − x̄)ᵀ(xⱼ − x̄)tⱼ over the OTHER rows j, for every row i and target."""
        # A copy: the targets are cached, and the caller may change them.
        return super().kernel_sums(array_namespace(targets).asarray(targets, copy=True))

    @cached_property
    def principal_rows(self) -> Array:
        """The rows along the principal directions."""
        return self._rows.times(self._gram.vectors)

    def from_principal(self, coef: Array) -> Array:
        """Return coefficients of the features."""
        return array_namespace(coef).matmul(self._gram.vectors, coef)

    def coordinates(self, count: int) -> Array:
        """Return coordinates along the first principal directions, of variance 1, (m, count)."""
        if self._leading is None or self._leading.shape[1] != count:
            xp = array_namespace(self.weights)
            last = self._eigenvalues.shape[0]
            leading = slice(last - count, last)
            deviations = xp.sqrt(self._eigenvalues[leading] / self.n)
            scaled = self._gram.vectors[:, leading] / deviations[None, :]
            self._leading = self._rows.times(xp.flip(scaled, axis=1))
        return self._leading

    def _residuals_and_slack(
        self, centred: Array, regs: ArrayLike
    ) -> Callable[[slice], tuple[Array, Array]]:
        shrinkage = self._stable_shrinkage(regs)
        fits, of_targets = self._fits_of(centred, shrinkage, regs)
        of_functions = mixture_of(fits.functions, shrinkage)
        table = self._table

        def part(rows: slice) -> tuple[Array, Array]:
            residuals = mixed(fits.fitted(rows), of_functions, of_targets)
            residuals -= centred[rows, None, :]
            residuals *= -1  # in place: the array is large
            slack = table.at(shrinkage, rows)
            slack += 1 / self.n if self.fit_intercept else 0.0
            slack *= -self.weights[rows, None]
            slack += 1
            return residuals, slack

        return part

    def _fits_of(
        self, centred: Array, shrinkage: Array, regs: ArrayLike
    ) -> tuple[CachedFits, Array]:
        """Return fitted values that mix to those of these targets, and the mixture of targets.

        They are computed in a pass over the rows unless they are cached. If the table of leverages
        does not span these regularization strengths, the same pass computes one that does.
        """
        xp = array_namespace(centred)
        is_tabulated = self._table.spans(shrinkage)
        if is_tabulated and self._fits is not None:
            mixture = self._fits.mixture(centred, shrinkage)
            if mixture is not None:
                return self._fits, mixture
        self._fits = None  # free the memory before new ones are computed
        functions = self._table.functions if is_tabulated else self._functions(shrinkage, regs)
        fit_functions = functions
        if functions.shape[1] >= shrinkage.shape[1]:
            fit_functions = xp.linalg.qr(shrinkage)[0]
        rotated = self._rotated(centred)
        coef = times(self._gram.vectors, fit_functions[:, :, None] * rotated[:, None, :])
        columns = xp.reshape(coef, (coef.shape[0], -1))
        on_demand = self._rows.in_memory and self.n_rows * columns.shape[1] > _MOST_KEPT
        if not is_tabulated:
            fitted_columns = columns[:, :0] if on_demand else columns
            values, sums = self._fitted_and_sums(fitted_columns, functions)
            self._table = LeverageTable(functions, sums, self._precision.spanned)
        elif not on_demand:
            values = self._rows.times(columns)

        def part(rows: slice) -> Array:
            flat = self._rows.of_rows(rows).times(columns) if on_demand else values[rows, :]
            return xp.reshape(flat, (-1, *coef.shape[1:]))

        fits = CachedFits(centred, fit_functions, part, self._precision.spanned)
        if not on_demand:
            self._fits = fits
        return fits, xp.eye(centred.shape[1], dtype=centred.dtype, device=device(centred))

    def _rotated(self, centred: Array) -> Array:
        """Return coefficients of fits without regularization along the principal directions."""
        rotated = array_namespace(centred).matmul(self._gram.vectors.T, self._cross(centred))
        return rotated / self._raised_eigenvalues[:, None]

    def _resolution(self, regs: ArrayLike) -> float:
        return self._precision.slack

    def _cross(self, columns: Array) -> Array:
        for cached in (*reversed(self._target_sums), self._share_sums):
            mixed_sums = cached.of(columns)
            if mixed_sums is not None:
                return mixed_sums
        sums = super()._cross(columns)
        self._target_sums = [*self._target_sums[-1:], CachedSums(columns, sums)]
        return sums

    @cached_property
    def _raised_eigenvalues(self) -> Array:
        """Eigenvalues s, raised to the rounding error where they are below it."""
        xp = array_namespace(self._eigenvalues)
        smallest = float(xp.max(self._eigenvalues)) * rounding(self._eigenvalues) or 1.0
        return xp.where(
            self._eigenvalues > smallest,
            self._eigenvalues,
            xp.full_like(self._eigenvalues, smallest),
        )

    def _stable_shrinkage(self, regs: ArrayLike) -> Array:
        """Return s/(s + nγ), a column for each γ, from raised eigenvalues, as the fits use it."""
        return self._raised_eigenvalues[:, None] * self._gram.inverse(regs)

    @property
    def _precision(self) -> _Precision:
        return _DOUBLE if self._rows.is_double else _SINGLE

    def _functions(self, shrinkage: Array, regs: ArrayLike) -> Array:
        """Return orthonormal functions that serve these strengths and products of hat matrices.

        For up to 8 strengths, squares and cubes of the shrinkage are added. More strengths span
        them if 8 smaller ones, each 0.6 times the one before, and the ends' powers are added.
        """
        xp = array_namespace(shrinkage)
        strengths = np.atleast_1d(np.asarray(regs, dtype=float))
        if len(strengths) <= 8:
            columns = [shrinkage, shrinkage**2, shrinkage**3]
        else:
            ends = self._stable_shrinkage(strengths[[np.argmin(strengths), np.argmax(strengths)]])
            smaller = strengths.min() * 0.6 ** np.arange(1, 9)
            below = self._stable_shrinkage(smaller) if smaller.all() else shrinkage[:, :0]
            columns = [shrinkage, below, ends**2, ends**3]
        return orthonormal(xp.concat(columns, axis=1), self._precision.resolved)

    def _sums_of_squares(self, values: Array) -> Array:
        """Return Σⱼ zᵢⱼ²vⱼ/sⱼ for every row, in principal coordinates z, and column of values v."""
        return self._fitted_and_sums(self._gram.vectors[:, :0], values)[1]

    def _fitted_and_sums(self, coef: Array, values: Array) -> tuple[Array, Array]:
        """Return products of the rows with coefficients, and `_sums_of_squares`, in one pass."""
        xp = array_namespace(values)
        weights = values / self._raised_eigenvalues[:, None]
        if "principal_rows" in vars(self):
            turned = DenseRows.uncentred(self.principal_rows)
            sums = turned.mapped(lambda block: xp.matmul(block**2, weights), values.shape[1])
            return self._rows.times(coef), sums
        variances = self._raised_eigenvalues / self.n
        return self._rows.times_and_sums_of_squares(coef, self._gram.vectors, weights, variances)
