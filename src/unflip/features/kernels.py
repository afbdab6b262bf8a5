"""Stationary kernels: similarities of samples that depend on their distance alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from array_api_compat import array_namespace
from scipy.sparse import csr_array, issparse

from unflip._utils.arrays import namespace
from unflip._utils.typing import Array, FloatArray, Rows, SparseArray

# Squared distances below this share of the squared norms are rounding errors.
_ROUNDING = 8 * float(np.finfo(float).eps)


def squared_distances(X: Rows, landmarks: Rows) -> Array:
    """Return the squared Euclidean distances of rows and landmarks, (n, m), in double precision.

    Dense rows are taken about the mean of the landmarks, because the expanded square
    ‖x‖² − 2xᵀz + ‖z‖² loses the digits that x and z have in common. Distances that are rounding
    errors are 0.
    """
    if issparse(landmarks):
        landmarks = csr_array(landmarks, dtype=float)
        rows = csr_array(X, dtype=float)
        products = (rows @ landmarks.T).toarray()
        row_norms = _squared_norms(rows)
        landmark_norms = _squared_norms(landmarks)
    else:
        xp = namespace(landmarks)
        landmarks = xp.astype(landmarks, xp.float64, copy=False)
        rows = X.toarray() if issparse(X) else X
        centre = xp.mean(landmarks, axis=0)[None, :]
        rows = xp.astype(rows, xp.float64, copy=False) - centre
        landmarks = landmarks - centre
        products = rows @ landmarks.T
        row_norms = xp.sum(rows * rows, axis=1)
        landmark_norms = xp.sum(landmarks * landmarks, axis=1)
    sums = row_norms[:, None] + landmark_norms[None, :]
    squared = products  # a large array, changed in place
    squared *= -2.0
    squared += sums
    sums *= _ROUNDING
    squared[squared <= sums] = 0.0
    return squared


def _squared_norms(X: SparseArray) -> FloatArray:
    return np.asarray(X.multiply(X).sum(axis=1)).ravel()


def rbf(squared: Array) -> Array:
    """Return exp(−d²/2), whose functions have derivatives of all orders."""
    return array_namespace(squared).exp(-squared / 2)


def matern(squared: Array) -> Array:
    """Return (1 + √3 d) exp(−√3 d), whose functions are differentiable once (Matérn, ν = 3/2)."""
    xp = array_namespace(squared)
    scaled = xp.sqrt(3 * squared)
    return (1 + scaled) * xp.exp(-scaled)


def laplace(squared: Array) -> Array:
    """Return exp(−d), whose functions are continuous but not differentiable."""
    xp = array_namespace(squared)
    return xp.exp(-xp.sqrt(squared))


#: The kernels by name, as functions of the squared distance in units of the bandwidth.
KERNELS: Mapping[str, Callable[[Array], Array]] = MappingProxyType(
    {"rbf": rbf, "matern": matern, "laplace": laplace}
)
