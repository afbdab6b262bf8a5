"""Tables of named columns, as NumPy record arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

Table = np.recarray[Any, Any]


def table(**columns: ArrayLike) -> Table:
    """Return the columns as a record array."""
    arrays = [np.asarray(column) for column in columns.values()]
    fields = [(name, array.dtype) for name, array in zip(columns, arrays, strict=True)]
    return np.rec.fromarrays(arrays, dtype=np.dtype(fields))
