"""Spectrum of rows with at least as many features as rows: the m×m Gram matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import mul

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from unflip._utils.typing import Array, Rows
from unflip.data.rows import centred_rows
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.eigenvalues import above_rounding, count_varying, inverse, is_reached
from unflip.ridge.spectrum.left_out import SMALLEST_SLACK
from unflip.ridge.spectrum.stacks import (
    RidgePath,
    as_columns,
    as_regs,
    in_one,
    times,
    with_intercept,
)


class DualSpectrum(Spectrum):
    """Eigendecomposition of the m×m Gram matrix, for at least as many features as rows.

    With an intercept the direction √w, which the centred rows do not reach, gets an eigenvalue
    above all others. It is then the last eigenvector, which the intercept fits without
    regularization. Residuals and slack are sums of nγ/(s + nγ) over the other directions, exact
    for any γ > 0.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> spectrum = DualSpectrum(rng.normal(size=(5, 8)), fit_intercept=True)
    >>> spectrum.leave_one_out(rng.normal(size=5), [0.1, 1.0]).scores.shape
    (5, 2, 1)
    """

    has_exact_slack = True

    def __init__(self, X: Rows, weights: Array | None = None, *, fit_intercept: bool) -> None:
        rows = centred_rows(X, weights, centre=fit_intercept)
        super().__init__(rows, fit_intercept=fit_intercept)
        xp = array_namespace(rows.weights)
        self._root_weights = xp.sqrt(rows.weights)
        gram = rows.gram()
        if weights is not None:
            gram = self._root_weights[:, None] * gram * self._root_weights[None, :]
        if fit_intercept:
            top = 2 * float(xp.sum(xp.linalg.diagonal(gram))) or 1.0
            gram = gram + (top / self.n) * self._root_weights[:, None] * self._root_weights[None, :]
        eigenvalues, vectors = xp.linalg.eigh(gram)
        regularized = slice(0, eigenvalues.shape[0] - int(fit_intercept))
        self._n_varying = count_varying(rows.column_powers(), self.mean, self.n)
        self._values = above_rounding(eigenvalues[regularized], self._n_varying)
        self._vectors = vectors[:, regularized]

    @property
    def n_varying(self) -> int:
        """Number of features that vary."""
        return self._n_varying

    @property
    def _eigenvalues(self) -> Array:
        return self._values

    def path(self, targets: Array, regs: ArrayLike) -> RidgePath:
        """Return coefficients and intercepts for every regularization strength and target."""
        columns = as_columns(targets)
        rotated = self._rotated(columns - self._centre(columns))
        filtered = self._inverse(regs)[:, :, None] * rotated[:, None, :]
        coef = self._features(times(self._vectors, filtered))
        return with_intercept(coef, self.mean, self._mean_target(columns), self.fit_intercept)

    def diagonal(self, values: Array, rows: slice = slice(None)) -> Array:
        """Return the diagonal of U diag(values) Uᵀ."""
        return array_namespace(self.weights).matmul(self._vectors[rows, :] ** 2, values)

    def residual_diagonals(
        self, *products: Sequence[ArrayLike], rows: slice = slice(None)
    ) -> list[Array]:
        """Return diagonals of products of residual makers, as sums of positive terms."""
        return [
            self.diagonal(reduce(mul, map(self._remainder, factors)), rows) for factors in products
        ]

    def leverage_and_slack(self, regs: ArrayLike, rows: slice = slice(None)) -> tuple[Array, Array]:
        """Return leverage and slack, both as sums of positive terms."""
        leverage = self.hat_diagonals([regs], rows=rows)[0]
        slack = self.residual_diagonals([regs], rows=rows)[0]
        return leverage, slack

    def target_powers(self, targets: Array) -> tuple[Array, float]:
        """Return the squared length of the targets along each principal direction, and in total."""
        xp = array_namespace(targets)
        centred = targets - self._centre(targets)
        along = xp.sum(self._rotated(centred) ** 2, axis=1)
        return along, float(xp.sum(xp.matmul(self.weights, centred**2)))

    @property
    def principal_rows(self) -> Array:
        """The rows along the principal directions."""
        xp = array_namespace(self.weights)
        return self._vectors * xp.sqrt(self._values)[None, :] / self._root_weights[:, None]

    def from_principal(self, coef: Array) -> Array:
        """Return coefficients of the features; those along directions no row reaches are 0."""
        xp = array_namespace(coef)
        reached = is_reached(self._values)
        root = xp.sqrt(xp.where(reached, self._values, xp.ones_like(self._values)))
        kept = xp.where(reached[:, None], coef / root[:, None], xp.zeros_like(coef))
        return self._features(xp.matmul(self._vectors, kept))

    def coordinates(self, count: int) -> Array:
        """Return coordinates along the first principal directions, of variance 1, (m, count)."""
        xp = array_namespace(self.weights)
        last = self._values.shape[0]
        scaled = self._vectors[:, last - count : last] * (self.n**0.5 / self._root_weights)[:, None]
        return xp.flip(scaled, axis=1)

    def _residuals_and_slack(
        self, centred: Array, regs: ArrayLike
    ) -> Callable[[slice], tuple[Array, Array]]:
        remainder = self._remainder(regs)
        filtered = remainder[:, :, None] * self._rotated(centred)[:, None, :]

        def part(rows: slice) -> tuple[Array, Array]:
            residuals = times(self._vectors[rows, :], filtered)
            return residuals / self._root_weights[rows, None, None], self.diagonal(remainder, rows)

        return part

    def _resolution(self, regs: ArrayLike) -> float:
        # Slack is a sum of positive terms, some of which vanish at γ = 0.
        return 0.0 if float(np.min(regs)) > 0 else SMALLEST_SLACK

    def _rotated(self, centred: Array) -> Array:
        return array_namespace(centred).matmul(
            self._vectors.T, self._root_weights[:, None] * centred
        )

    def _features(self, combined: Array) -> Array:
        """Return AᵀB for a stack B of shape (m, ...)."""
        return in_one(
            lambda flat: self._rows.transposed_times(self._root_weights[:, None] * flat), combined
        )

    def _inverse(self, regs: ArrayLike) -> Array:
        return inverse(self._values, self.n, as_regs(regs, self._values), self._n_varying)

    def _remainder(self, regs: ArrayLike) -> Array:
        """Return nγ/(s + nγ), the unfitted share of each direction; 1 for s = 0, even at γ = 0."""
        xp = array_namespace(self._values)
        shifts = self.n * as_regs(regs, self._values)[None, :]
        unreached = xp.astype(~is_reached(self._values), self._values.dtype)[:, None]
        return xp.where(shifts > 0, shifts * self._inverse(regs), unreached)
