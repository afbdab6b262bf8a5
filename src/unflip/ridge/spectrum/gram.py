"""The eigendecomposition of a p×p Gram matrix, and ridge fits from it.

Gram matrices of single-precision rows are made in single precision where that is precise enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import ArrayLike

from unflip._utils.typing import Array, Rows
from unflip.data.centred import DenseRows, SparseRows
from unflip.data.engines.blocks import evenly_spaced_rows
from unflip.ridge.spectrum.eigenvalues import above_rounding, count_varying, inverse, scale
from unflip.ridge.spectrum.known import KnownSums
from unflip.ridge.spectrum.stacks import RidgePath, as_columns, as_regs, times, with_intercept

# Gram matrices of so many numbers in single precision may be made in it, where eigenvalues differ
# by no more than this.
_FEW_VALUES, _EVEN, _LARGEST_SINGLE = 2**19, 16.0, 1e20


class ClassSums(Protocol):
    """Sums over the rows of each class, such as `Moments`."""

    @property
    def n(self) -> float:
        """Total weight."""

    @property
    def counts(self) -> Array:
        """Weight of each class, (k,)."""

    @property
    def mean(self) -> Array:
        """Mean of the rows, (p,)."""

    def gram(self, *, centred: bool) -> Array:
        """Gram matrix of the rows, (p, p)."""

    def cross(self, targets: Array, *, centred: bool) -> Array:
        """Σ wᵢxᵢtᵢ for targets of each class, (p, r)."""


@dataclass(frozen=True, eq=False)
class GramSpectrum:
    """Eigendecomposition of the p×p Gram matrix: fits from sums alone, without rows.

    Examples
    --------
    >>> from unflip import Moments
    >>> rng = np.random.default_rng(0)
    >>> X, codes = rng.normal(size=(50, 3)), rng.integers(2, size=50)
    >>> moments = Moments.from_rows(X, codes, n_classes=2)
    >>> path = GramSpectrum.from_moments(moments, fit_intercept=True).solve(moments, np.array([-1.0, 1.0]), [0.1, 1.0])
    >>> path.coef.shape, path.intercept.shape
    ((3, 2, 1), (2, 1))
    """

    eigenvalues: Array
    vectors: Array
    mean: Array
    n: float
    fit_intercept: bool
    n_varying: int

    @classmethod
    def from_moments(cls, moments: ClassSums, *, fit_intercept: bool) -> GramSpectrum:
        """Diagonalise the Gram matrix of the rows behind `moments`."""
        gram = moments.gram(centred=fit_intercept)
        return cls.from_gram(gram, moments.mean, moments.n, fit_intercept=fit_intercept)

    @classmethod
    def from_gram(cls, gram: Array, mean: Array, n: float, *, fit_intercept: bool) -> GramSpectrum:
        """Diagonalise a Gram matrix, about the mean where there is an intercept."""
        xp = array_namespace(gram)
        eigenvalues, vectors = xp.linalg.eigh(gram)
        n_varying = count_varying(xp.linalg.diagonal(gram), mean, n)
        return cls(
            above_rounding(eigenvalues, n_varying), vectors, mean, n, fit_intercept, n_varying
        )

    @property
    def least_reg(self) -> float:
        """Smallest penalty worth comparing: any, as in an exact `Spectrum`."""
        return 0.0

    @property
    def scale(self) -> float:
        """Typical eigenvalue of the covariance, Σs²/(nΣs): that of `Spectrum`."""
        return scale(self.eigenvalues, self.n)

    def class_sums(self, moments: ClassSums) -> Array:
        """Σ wᵢxᵢ over each class (about the mean with an intercept) along the principal directions, (p, k)."""
        xp = array_namespace(self.vectors)
        each = xp.eye(moments.counts.shape[0], dtype=xp.float64, device=device(self.vectors))
        return xp.matmul(self.vectors.T, moments.cross(each, centred=self.fit_intercept))

    def solve(self, moments: ClassSums, targets: Array, regs: ArrayLike) -> RidgePath:
        """Fit one target value (or a row of them) per class, for every penalty."""
        xp = array_namespace(self.vectors)
        table = as_columns(targets)
        cross = moments.cross(table, centred=self.fit_intercept)
        return self.path(cross, xp.matmul(moments.counts, table) / moments.n, regs)

    def path(self, cross: Array, mean_target: Array, regs: ArrayLike) -> RidgePath:
        """Fit from Σ wᵢxᵢtᵢ (about the mean with an intercept) and the mean target."""
        rotated = array_namespace(cross).matmul(self.vectors.T, cross)
        coef = times(self.vectors, self.inverse(regs)[:, :, None] * rotated[:, None, :])
        return with_intercept(coef, self.mean, mean_target, self.fit_intercept)

    def inverse(self, regs: ArrayLike) -> Array:
        """1/(s + nγ), a column for each γ."""
        return inverse(self.eigenvalues, self.n, as_regs(regs, self.eigenvalues), self.n_varying)


def decomposed(
    X: Array, weights: Array | None, shares: Array | None, fit_intercept: bool, *, in_single: bool
) -> tuple[DenseRows, GramSpectrum, KnownSums]:
    """Return the rows, their spectrum and the sums for `shares`; products in single precision must not be too rough."""
    xp = array_namespace(X)
    ones = xp.ones(X.shape[0], dtype=xp.float64, device=device(X))
    known = (ones if weights is None else weights)[:, None]
    columns, weighted = (ones[:, None], known) if shares is None else (shares, known * shares)
    rows, scatter, sums = DenseRows.with_sums(
        X, weighted, weights, centre=fit_intercept, in_single=in_single
    )
    if not in_single or _looks_even(scatter):
        n = float(xp.sum(rows.weights))
        found = GramSpectrum.from_gram(scatter, rows.mean, n, fit_intercept=fit_intercept)
        if not in_single or _is_even(found.eigenvalues):
            return rows, found, KnownSums(columns, sums.T)
    return decomposed(X, weights, shares, fit_intercept, in_single=False)


def decomposed_sparse(
    X: Rows, weights: Array | None, shares: Array | None, fit_intercept: bool
) -> tuple[SparseRows, GramSpectrum, KnownSums]:
    """Return sparse rows, their spectrum and the sums for `shares`, in double precision."""
    rows = SparseRows.of(X, weights, centre=fit_intercept)
    n = float(rows.weights.sum())
    found = GramSpectrum.from_gram(rows.scatter(), rows.mean, n, fit_intercept=fit_intercept)
    columns = np.ones((X.shape[0], 1)) if shares is None else shares
    return rows, found, KnownSums(columns, rows.transposed_times(rows.weights[:, None] * columns))


def may_be_even(X: Array) -> bool:
    """Whether rows are of single precision, many, and no feature varies much more than another."""
    xp = array_namespace(X)
    if X.dtype != xp.float32 or X.shape[0] * X.shape[1] <= _FEW_VALUES:
        return False
    variances = xp.var(xp.astype(evenly_spaced_rows(X), xp.float64), axis=0)
    in_range = bool(xp.all((variances > 1 / _LARGEST_SINGLE) & (variances < _LARGEST_SINGLE)))
    return in_range and _is_even(variances)


def _looks_even(gram: Array) -> bool:
    """Whether the mean of the squared eigenvalues is at most twice the square of their mean."""
    xp = array_namespace(gram)
    return (
        int(gram.shape[0]) * float(xp.sum(gram**2))
        <= 2 * float(xp.sum(xp.linalg.diagonal(gram))) ** 2
    )


def _is_even(eigenvalues: Array) -> bool:
    """Whether errors of 1e-7 of the largest are small beside the smallest."""
    xp = array_namespace(eigenvalues)
    return float(xp.max(eigenvalues)) <= _EVEN * float(xp.min(eigenvalues))
