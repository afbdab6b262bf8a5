"""Operations on rows of any kind: dense arrays, lazy rows or sparse matrices."""

from __future__ import annotations

import numpy as np
from array_api_compat import array_namespace
from scipy.sparse import issparse

from unflip._utils.arrays import as_numpy, largest_magnitude
from unflip._utils.typing import Array, Rows
from unflip._utils.validation import check_squares
from unflip.data.centred import CentredRows
from unflip.data.dense import DenseRows
from unflip.data.sparse_rows import SparseRows


def centred_rows(X: Rows, weights: Array | None = None, *, centre: bool = True) -> CentredRows:
    """Return rows with their weighted mean, centred by default; weights are 1 by default."""
    if issparse(X):
        return SparseRows.of(X, weights, centre=centre)
    return DenseRows.of(X, weights, centre=centre)


def product(X: Rows, columns: Array) -> Array:
    """Multiply rows by a (p, q) array, in double precision and without a copy of the rows."""
    return X @ columns if issparse(X) else DenseRows.uncentred(X).times(columns)


def check_magnitude(X: Rows) -> None:
    """Raise ValueError if squares of the features over- or underflow float64, in one pass."""
    if issparse(X):
        largest = np.abs(X.data)
    else:
        rows = DenseRows.uncentred(X)
        largest = array_namespace(rows.weights).empty_like(rows.weights)
        rows.fill(lambda block: (largest_magnitude(block),), largest)
    check_squares(float(as_numpy(largest).max(initial=0.0)), X.shape[0] * X.shape[1])
