r"""Distances between rows in the metric of a ridge fit.

The squared distance of two rows is :math:`(x_i - x_j)^\top (S + \gamma)^{-1} (x_i - x_j)`, where S
is the covariance of all rows. For rows against their mean this is n times the leverage. Directions
in which rows vary little count as much as others, down to the variance γ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, eigh, solve_triangular

from unflip._utils.typing import FloatArray, IntArray

# Rows whose coordinates are computed together (a few MiB).
_BLOCK = 2**12
# Largest entry, and inverse of it: sums of squares stay within the range of single precision.
_LARGEST = 1e12


@dataclass(frozen=True, eq=False)
class RowMetric:
    """Rows in single precision, and their covariance.

    Attributes
    ----------
    rows : array of shape (n, p)
        Rows, centred. With fewer rows than features, their principal coordinates.
    covariance : array of shape (p, p)
        Mean of their squares and products.
    scale : float
        Typical eigenvalue of the covariance, the natural unit of γ; 0 if all rows are equal.
    """

    rows: NDArray[np.float32]
    covariance: NDArray[np.float32]
    scale: float

    @classmethod
    def of(cls, X: FloatArray) -> RowMetric:
        """Centre the rows and compute their covariance."""
        rows = np.empty_like(X, dtype=np.float32)
        with np.errstate(over="ignore"):  # rows that overflow float32 are rescaled below
            np.subtract(X, X.mean(axis=0), out=rows, casting="same_kind")
        largest = max(float(rows.max()), -float(rows.min()))
        if not 1 / _LARGEST < largest < _LARGEST and largest > 0:
            rows = ((X - X.mean(axis=0)) / np.abs(X).max()).astype(np.float32)
        if len(rows) < len(rows.T):
            rows = _principal_coordinates(rows)
        covariance = rows.T @ rows / np.float32(len(rows))
        total = float(np.trace(covariance))
        scale = float(np.sum(covariance**2)) / total if total > 0 else 0.0
        return cls(rows, covariance, scale)

    def factor(self, reg: float) -> NDArray[np.float32]:
        """Return the lower Cholesky factor of S + γ, with γ in units of `scale`."""
        diagonal = np.full(len(self.covariance), reg * self.scale, dtype=np.float32)
        return np.asarray(cholesky(self.covariance + np.diag(diagonal), lower=True))

    def squared_norms(
        self, factor: NDArray[np.float32], rows: IntArray | slice = slice(None)
    ) -> FloatArray:
        """Return squared distances of rows to the mean, n times their leverage."""
        return _squared_norms(self.rows[rows], factor)

    def squared_distances(
        self, factor: NDArray[np.float32], first: IntArray, second: IntArray
    ) -> FloatArray:
        """Return the squared distances of pairs of rows."""
        return _squared_norms(self.rows[first] - self.rows[second], factor)

    def leading(self, count: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return coordinates along the first principal directions, and their variances."""
        p = len(self.covariance)
        variances, vectors = eigh(self.covariance, subset_by_index=(p - min(count, p), p - 1))
        return self.rows @ vectors, np.maximum(variances, 0)

    def leave_one_out_scores(
        self, factor: NDArray[np.float32], squared_norms: FloatArray, targets: FloatArray
    ) -> FloatArray:
        """Return exact leave-one-out ridge fits of the targets, less their means, (n, k)."""
        n = len(self.rows)
        centred = targets - targets.mean(axis=0)
        coef = cho_solve((factor, True), self.rows.T @ centred.astype(np.float32)) / n
        leverage = (squared_norms[:, None] + 1) / n
        slack = np.maximum(1 - leverage, np.finfo(np.float32).eps)
        return np.asarray(centred - (centred - self.rows @ coef) / slack)


def _squared_norms(rows: NDArray[np.float32], factor: NDArray[np.float32]) -> FloatArray:
    """Return the squared norm of each row in the metric of a factor."""
    squares = np.empty(len(rows))
    for start in range(0, len(rows), _BLOCK):
        columns = rows[start : start + _BLOCK].T
        turned = solve_triangular(factor, columns, lower=True, check_finite=False)
        squares[start : start + _BLOCK] = np.einsum("ij,ij->j", turned, turned)
    return squares


def _principal_coordinates(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return coordinates of the rows with the same products, (n, n)."""
    values, vectors = eigh(rows @ rows.T)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))
