"""Tables of named columns: pandas DataFrames, or NumPy record arrays if pandas is not installed.

Both have a column as attribute and as item, a slice of lines, and a length. Iteration differs: use
`lines`.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from importlib import import_module
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: A pandas DataFrame or a NumPy record array.
Table = Any


def table(**columns: ArrayLike) -> Table:
    """Return the columns as a table."""
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    try:
        pandas = import_module("pandas")
    except ImportError:
        fields = [(name, array.dtype) for name, array in arrays.items()]
        return np.rec.fromarrays(list(arrays.values()), dtype=np.dtype(fields))
    return pandas.DataFrame({name: _column(pandas, array) for name, array in arrays.items()})


def _column(pandas: Any, array: NDArray[Any]) -> Any:
    """Return a column; strings stay as they are, as pandas cannot store all of them as its own."""
    is_text = array.dtype.kind == "U"
    return pandas.Series(array.astype(object), dtype=object) if is_text else array


def columns_of(table: Table) -> dict[str, NDArray[Any]]:
    """Return the columns of a table by name."""
    names = table.dtype.names if isinstance(table, np.recarray) else table.columns
    return {name: np.asarray(table[name]) for name in names}


def lines_of(table: Table) -> Iterator[Any]:
    """Return the lines of a table, as named tuples of Python values."""
    columns = columns_of(table)
    line = cast(Any, namedtuple)("Line", columns)  # mypy knows literal names only
    return map(line._make, zip(*(column.tolist() for column in columns.values()), strict=True))
