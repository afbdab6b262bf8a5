"""Parquet, by pyarrow."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyarrow import parquet


def read(content: bytes, name: str) -> dict[str, Any]:
    """Return the columns of a Parquet file: arrays of numbers where none is missing, lists of values otherwise.

    Parameters
    ----------
    content : bytes
        The file.
    name : str
        Its name, for errors.
    """
    table = _table(content, name)
    for column, count in Counter(table.column_names).items():
        if count > 1:
            raise ValueError(f"{name} has {count} columns named {column!r}: give each its own name.")
    return {column: _cells(table.column(column), column, name) for column in table.column_names}


def rewrite(content: bytes, name: str, column: str, changes: Mapping[int, Any]) -> bytes:
    """Return the file with other values in one column; types, other columns and metadata stay.

    Parameters
    ----------
    content, name
        As for `read`.
    column : str
        Name of the column.
    changes : mapping of int to value
        New value of each row that changes.
    """
    table = _table(content, name)
    place, values = table.column_names.index(column), table.column(column).to_pylist()
    for row, value in changes.items():
        values[row] = value
    field = table.schema.field(place)
    buffer = io.BytesIO()
    parquet.write_table(table.set_column(place, field, pa.array(values, type=field.type)), buffer)
    return buffer.getvalue()


def _table(content: bytes, name: str) -> Any:
    try:
        return parquet.read_table(pa.BufferReader(content))
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise ValueError(f"{name} cannot be read as Parquet ({reason}): check that it is whole.") from None


def _cells(cells: Any, column: str, name: str) -> Any:
    kind = cells.type
    if cells.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return cells.to_numpy()
    try:
        return cells.to_pylist()
    except (ArithmeticError, ValueError):  # such as times of an unknown zone, or beyond the year 9999
        raise ValueError(
            f"Column {column!r} of {name} holds values of type {kind} that cannot be read: write them as text or "
            "numbers, or drop the column."
        ) from None
