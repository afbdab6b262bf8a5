"""Columns of numbers, with errors that name the cell that is not one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unflip._utils.typing import FloatArray
from unflip.cli.files.tables import Table, as_text, has_comma, is_missing, numbers


def column_numbers(table: Table, column: str, remedy: str) -> FloatArray:
    """Return a column as numbers, NaN if missing; raise ValueError at a cell that is not a number.

    Parameters
    ----------
    table : Table
        The file.
    column : str
        Name of the column.
    remedy : str
        What to do about such a cell, for the error.
    """
    values = table.numbers(column)
    if values is not None:
        return values
    row = table.non_number(column)
    if row is None:
        row = _first_non_number(table.columns[column])
    raise ValueError(bad_cell(table, column, row, "not a number", remedy))


def check_finite(table: Table, column: str, values: FloatArray, remedy: str) -> None:
    """Raise ValueError if a row of values (n,) or (n, p) has a missing or infinite number."""
    finite = np.isfinite(values).reshape(len(values), -1).all(axis=1)
    if not finite.all():
        row = int(np.flatnonzero(~finite)[0])
        raise ValueError(bad_cell(table, column, row, "not a finite number", remedy))


def bad_cell(table: Table, column: str, row: int, problem: str, remedy: str) -> str:
    """Return an error that names a cell, its problem and what to do."""
    if column in table.blocks:
        return (
            f"Row {row} (counted from 0) of the array {column!r}, for {table.name}, has a value "
            f"that is {problem}: fill in a number, or remove the row."
        )
    cell = table.columns[column][row]
    place = f"Column {column!r} of {table.name}"
    where = f"in row {row} (counted from 0)"
    if not as_text(cell):
        return f"{place} is empty {where}: {remedy}."
    if has_comma(cell) and not table.decimal_comma:
        problem = "a number with a decimal comma"
        remedy = "write a decimal point, or separate cells by semicolons"
    return f"{place} has {as_text(cell)[:40]!r} {where}, which is {problem}: {remedy}."


def _first_non_number(cells: Sequence[Any]) -> int:
    for row, cell in enumerate(cells):
        if not is_missing(cell) and numbers([cell]) is None:
            return row
    return 0
