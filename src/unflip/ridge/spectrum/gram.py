"""Eigendecomposition of a p×p Gram matrix, and ridge fits from it.

Gram matrices of single-precision rows are computed in single precision where that is precise
enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import ArrayLike

from unflip._utils.typing import Array, Rows
from unflip.data.dense import DenseRows
from unflip.data.engines.blocks import evenly_spaced_rows
from unflip.data.sparse_rows import SparseRows
from unflip.ridge.spectrum.cached_products import CachedSums
from unflip.ridge.spectrum.eigenvalues import above_rounding, count_varying, inverse, scale
from unflip.ridge.spectrum.stacks import RidgePath, as_columns, as_regs, times, with_intercept

# Numbers in X above which single precision is considered: less is fast in double precision. This is
# one block of `unflip.data.engines.blocks`.
_FEW_VALUES = 2**19
# Largest ratio of eigenvalues in single precision: errors of about 1e-7 of the largest eigenvalue
# are then about 2e-6 of the smallest.
_LARGEST_RATIO = 16.0
# Largest variance, and inverse of the smallest, for single precision: sums of squares over many
# rows then stay within its range, 1e-38 to 3e38.
_LARGEST_SINGLE = 1e20


class ClassSums(Protocol):
    """Sums over the rows of each class; `Moments` implements it."""

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
    """Eigendecomposition of the p×p Gram matrix, for fits from sums without the rows.

    Examples
    --------
    >>> from unflip import Moments
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 3))
    >>> moments = Moments.from_rows(X, rng.integers(2, size=50), n_classes=2)
    >>> spectrum = GramSpectrum.from_moments(moments, fit_intercept=True)
    >>> path = spectrum.solve(moments, np.array([-1.0, 1.0]), [0.1, 1.0])
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
        """Decompose the Gram matrix of the rows that were summed."""
        gram = moments.gram(centred=fit_intercept)
        return cls.from_gram(gram, moments.mean, moments.n, fit_intercept=fit_intercept)

    @classmethod
    def from_gram(cls, gram: Array, mean: Array, n: float, *, fit_intercept: bool) -> GramSpectrum:
        """Decompose a Gram matrix, which is about the mean if there is an intercept."""
        xp = array_namespace(gram)
        eigenvalues, vectors = xp.linalg.eigh(gram)
        n_varying = count_varying(xp.linalg.diagonal(gram), mean, n)
        eigenvalues = above_rounding(eigenvalues, n_varying)
        return cls(eigenvalues, vectors, mean, n, fit_intercept, n_varying)

    @property
    def least_reg(self) -> float:
        """Smallest γ whose leave-one-out scores are reliable: 0, as in an exact `Spectrum`."""
        return 0.0

    @property
    def scale(self) -> float:
        """Typical eigenvalue of the covariance, Σs²/(nΣs), as in `Spectrum`."""
        return scale(self.eigenvalues, self.n)

    def class_sums(self, moments: ClassSums) -> Array:
        """Return Σ wᵢxᵢ over each class along the principal directions, (p, k).

        With an intercept the rows are taken about their mean.
        """
        xp = array_namespace(self.vectors)
        indicators = xp.eye(moments.counts.shape[0], dtype=xp.float64, device=device(self.vectors))
        return xp.matmul(self.vectors.T, moments.cross(indicators, centred=self.fit_intercept))

    def solve(self, moments: ClassSums, targets: Array, regs: ArrayLike) -> RidgePath:
        """Fit targets of each class, (k,) or (k, r), for every regularization strength."""
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
        """Return 1/(s + nγ), a column for each γ."""
        return inverse(self.eigenvalues, self.n, as_regs(regs, self.eigenvalues), self.n_varying)


def decompose_dense(
    X: Array, weights: Array | None, shares: Array | None, fit_intercept: bool, *, in_single: bool
) -> tuple[DenseRows, GramSpectrum, CachedSums]:
    """Return the rows, their spectrum and the sums for `shares`.

    If single precision turns out to be too rough, double precision is used.
    """
    xp = array_namespace(X)
    ones = xp.ones(X.shape[0], dtype=xp.float64, device=device(X))
    weight_column = (ones if weights is None else weights)[:, None]
    if shares is None:
        columns = ones[:, None]
        weighted = weight_column
    else:
        columns = shares
        weighted = weight_column * shares
    rows, scatter, sums = DenseRows.with_sums(
        X, weighted, weights, centre=fit_intercept, in_single=in_single
    )
    if not in_single or _may_have_small_ratio(scatter):
        n = float(xp.sum(rows.weights))
        spectrum = GramSpectrum.from_gram(scatter, rows.mean, n, fit_intercept=fit_intercept)
        if not in_single or _has_small_ratio(spectrum.eigenvalues):
            return rows, spectrum, CachedSums(columns, sums.T)
    return decompose_dense(X, weights, shares, fit_intercept, in_single=False)


def decompose_sparse(
    X: Rows, weights: Array | None, shares: Array | None, fit_intercept: bool
) -> tuple[SparseRows, GramSpectrum, CachedSums]:
    """Return sparse rows, their spectrum and the sums for `shares`, in double precision."""
    rows = SparseRows.of(X, weights, centre=fit_intercept)
    n = float(rows.weights.sum())
    spectrum = GramSpectrum.from_gram(rows.scatter(), rows.mean, n, fit_intercept=fit_intercept)
    columns = np.ones((X.shape[0], 1)) if shares is None else shares
    sums = rows.transposed_times(rows.weights[:, None] * columns)
    return rows, spectrum, CachedSums(columns, sums)


def suits_single_precision(X: Array) -> bool:
    """Whether there are many rows of single precision with features of similar variance."""
    xp = array_namespace(X)
    if X.dtype != xp.float32 or X.shape[0] * X.shape[1] <= _FEW_VALUES:
        return False
    variances = xp.var(xp.astype(evenly_spaced_rows(X), xp.float64), axis=0)
    in_range = bool(xp.all((variances > 1 / _LARGEST_SINGLE) & (variances < _LARGEST_SINGLE)))
    return in_range and _has_small_ratio(variances)


def _may_have_small_ratio(gram: Array) -> bool:
    """Whether the mean squared eigenvalue is at most twice the square of their mean."""
    xp = array_namespace(gram)
    squares = int(gram.shape[0]) * float(xp.sum(gram**2))
    return squares <= 2 * float(xp.sum(xp.linalg.diagonal(gram))) ** 2


def _has_small_ratio(eigenvalues: Array) -> bool:
    """Whether single precision resolves the smallest eigenvalue."""
    xp = array_namespace(eigenvalues)
    return float(xp.max(eigenvalues)) <= _LARGEST_RATIO * float(xp.min(eigenvalues))
