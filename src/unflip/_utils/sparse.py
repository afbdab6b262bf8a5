"""Canonical format of scipy.sparse rows."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, issparse

from unflip._utils.typing import Rows, SparseArray


def canonical(X: Rows) -> SparseArray:
    """Return sparse rows as CSR floats: sorted, without duplicate entries or stored zeros.

    The input is not changed; memory is shared if it is in this format already.
    """
    rows = csr_array(X, dtype=np.float64)
    if rows.has_canonical_format and rows.data.all():
        return rows
    rows = rows.copy()  # the next lines work in place
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def as_dense(X: Rows) -> Rows:
    """Return sparse rows as a dense array, and dense rows unchanged."""
    return canonical(X).toarray() if issparse(X) else X
