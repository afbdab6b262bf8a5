"""Ridge fits from the eigendecomposition of a p×p Gram matrix, without rows."""

from __future__ import annotations

from dataclasses import dataclass

from array_api_compat import array_namespace, device
from numpy.typing import ArrayLike

from unflip._typing import Array
from unflip.moments import Moments
from unflip.spectrum.eigenvalues import above_rounding, count_varying, inverse, scale
from unflip.spectrum.stacks import RidgePath, as_columns, as_regs, times, with_intercept


@dataclass(frozen=True, eq=False)
class GramSpectrum:
    """Eigendecomposition of the p×p Gram matrix: fits from sums alone, without rows.

    Examples
    --------
    >>> import numpy as np
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
    def from_moments(cls, moments: Moments, *, fit_intercept: bool) -> GramSpectrum:
        """Diagonalise the Gram matrix of the rows behind `moments`."""
        gram = moments.gram(centred=fit_intercept)
        return cls.from_gram(gram, moments.mean, moments.n, fit_intercept=fit_intercept)

    @classmethod
    def from_gram(cls, gram: Array, mean: Array, n: float, *, fit_intercept: bool) -> GramSpectrum:
        """Diagonalise a Gram matrix, about the mean where there is an intercept."""
        xp = array_namespace(gram)
        eigenvalues, vectors = xp.linalg.eigh(gram)
        n_varying = count_varying(xp.linalg.diagonal(gram), mean, n)
        return cls(above_rounding(eigenvalues, n_varying), vectors, mean, n, fit_intercept, n_varying)

    @property
    def least_reg(self) -> float:
        """Smallest penalty worth comparing: any, as in an exact `Spectrum`."""
        return 0.0

    @property
    def scale(self) -> float:
        """Typical eigenvalue of the covariance, Σs²/(nΣs): that of `Spectrum`."""
        return scale(self.eigenvalues, self.n)

    def class_sums(self, moments: Moments) -> Array:
        """Σ wᵢxᵢ over each class (about the mean with an intercept) along the principal directions, (p, k)."""
        xp = array_namespace(self.vectors)
        each = xp.eye(moments.counts.shape[0], dtype=xp.float64, device=device(self.vectors))
        return xp.matmul(self.vectors.T, moments.cross(each, centred=self.fit_intercept))

    def solve(self, moments: Moments, targets: Array, regs: ArrayLike) -> RidgePath:
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
