"""The columns of a file as a DataFrame, with numbers in place of strings."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas

from unflip._utils.typing import FloatArray
from unflip.cli.files.number_cells import bad_cell, column_numbers
from unflip.cli.files.tables import Table, as_text, is_missing
from unflip.data.chunks import LARGEST
from unflip.features.table_columns import Kind, TableColumn, column_of

_TRUTH = ("true", "false")


def typed_column(table: Table, column: str, kind: Kind | None = None) -> Any:
    """Return a column as a pandas Series: numbers if they are, strings or dates otherwise.

    Parameters
    ----------
    table : Table
        The file.
    column : str
        Name of the column.
    kind : str, optional
        What the column holds. By default numbers if all cells are.
    """
    cells = table.column(column)
    if kind == "text":
        return pandas.Series(table.texts(column), dtype=object, name=column)
    is_number = kind in ("number", "boolean")
    if is_number or (kind is None and table.numbers(column) is not None):
        values = _numbers(table, column)
        if kind != "number" and _are_truth_values(cells):
            truth = [None if np.isnan(value) else bool(value) for value in values]
            return pandas.Series(truth, dtype=object, name=column)
        return pandas.Series(values, name=column)
    present = [None if is_missing(cell) else _stripped(cell) for cell in cells]
    return pandas.Series(present, dtype=object, name=column)


def frame_of(columns: Sequence[Any]) -> Any:
    """Return columns as a DataFrame."""
    return pandas.concat(columns, axis=1)


def list_column(block: FloatArray, column: str) -> Any:
    """Return numbers of shape (n, p) as a column of lists, or of numbers if p = 1."""
    values: Any = block[:, 0] if block.shape[1] == 1 else list(block)
    return pandas.Series(values, name=column)


def described_column(table: Table, column: str, *, forced: bool) -> TableColumn:
    """Return what a column holds, and why it is not used if it is not.

    Raises ValueError at a cell that is not a number among numbers.
    """
    if table.numbers(column) is None:
        row = table.non_number(column)
        if row is not None:
            raise ValueError(bad_cell(table, column, row, "not a number", remedy(column)))
    return column_of(typed_column(table, column), forced=forced)


def remedy(column: str) -> str:
    """Return what to do about a cell that is not a number."""
    return (
        "correct it, empty the cell, remove the row, or ignore the column in audit and fit with "
        f"--ignore {shlex.quote(column)}"
    )


def _numbers(table: Table, column: str) -> FloatArray:
    """Return a column as numbers, NaN if missing; raise ValueError at one that is too large."""
    if all(map(is_missing, table.column(column))):
        return np.full(table.n_rows, np.nan)
    values = column_numbers(table, column, remedy(column))
    large = np.flatnonzero(np.abs(values) > LARGEST)
    if len(large):
        row = int(large[0])
        problem = "not a finite number"
        if np.isfinite(values[row]):
            problem = "so large that its square overflows float64"
        raise ValueError(bad_cell(table, column, row, problem, remedy(column)))
    return values


def _are_truth_values(cells: Sequence[Any]) -> bool:
    """Return whether all cells are true, false or missing."""
    if isinstance(cells, np.ndarray):
        return bool(cells.dtype == bool)
    return all(as_text(cell).lower() in _TRUTH or is_missing(cell) for cell in cells)


def _stripped(cell: Any) -> Any:
    return cell.strip() if isinstance(cell, str) else cell
