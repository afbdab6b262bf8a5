"""Rows that scipy.sparse stores, in the one form that all else can rely on."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, issparse

from unflip._utils.typing import Rows, SparseArray


def canonical(X: Rows) -> SparseArray:
    """Return sparse rows as compressed rows of floats: sorted, each entry stored once, no zero stored.

    What the caller gave is never changed, and shared where it is in this form already.
    """
    rows = csr_array(X, dtype=np.float64)
    if rows.has_canonical_format and rows.data.all():
        return rows
    rows = rows.copy()  # what follows works in place
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def as_dense(X: Rows) -> Rows:
    """Return sparse rows as a dense array, and dense ones as they are."""
    return canonical(X).toarray() if issparse(X) else X
