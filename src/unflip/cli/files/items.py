"""Items of a file: every row is an item, or several rows are votes on one item."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import IntArray
from unflip.cli.files.feature_columns import Features
from unflip.cli.files.tables import Table, as_text, is_missing


@dataclass(frozen=True, eq=False)
class Items:
    """Items of a file, in the order of their first rows.

    Attributes
    ----------
    column : str or None
        Column of item ids; None if every row is an item.
    first : ndarray of shape (n,)
        First row of the file of each item.
    of_row : ndarray of shape (n_rows,)
        Item of each row of the file.
    """

    column: str | None
    first: IntArray
    of_row: IntArray

    @property
    def plural(self) -> str:
        """The word for the items in messages: "rows" or "items"."""
        return "rows" if self.column is None else "items"

    def counted(self, count: int) -> str:
        """Return a number of items in words, such as "1 row" or "20 items"."""
        return f"{count} {self.plural if count != 1 else self.plural.removesuffix('s')}"

    def __len__(self) -> int:
        return len(self.first)

    def name(self, table: Table, item: int) -> str:
        """Return the name of an item, for messages."""
        row = int(self.first[item])
        if self.column is None:
            return f"row {row}"
        return f"item {as_text(table.columns[self.column][row])!r}"

    def features(self, table: Table, features: Features, frame: Any) -> Any:
        """Return the features of each item; raise ValueError if the rows of an item differ.

        Parameters
        ----------
        table : Table
            The file.
        features : Features
            Columns of the features.
        frame : DataFrame
            Values of each row.
        """
        if self.column is None:
            return frame
        differs = np.zeros(len(frame), dtype=bool)
        for column in features.columns:
            codes = _codes(frame[column])
            differs |= codes != codes[self.first[self.of_row]]
        if differs.any():
            rows = np.flatnonzero(differs)
            row = int(rows[self.of_row[rows].argmin()])
            raise ValueError(self._difference(table, features, row))
        return frame.iloc[self.first].reset_index(drop=True)

    def _difference(self, table: Table, features: Features, row: int) -> str:
        """Return the error message about a row whose features differ from its item's first row."""
        item = int(self.of_row[row])
        first = int(self.first[item])
        cells: dict[str, Any] = {**table.columns, **table.blocks}
        pairs = {
            name: [as_text(cells[name][place]) for place in (first, row)]
            for name in features.columns
        }
        column, (one, other) = next(
            (name, pair) for name, pair in pairs.items() if pair[0] != pair[1]
        )
        return (
            f"Column {column!r} of {table.name} has {one[:40]!r} in row {first} and "
            f"{other[:40]!r} in row {row} (counted from 0), both of {self.name(table, item)}: give "
            "all rows of an item the same features, or ignore the column with --ignore "
            f"{shlex.quote(column)}."
        )

    def unique_values(self, table: Table, column: str, row_values: NDArray[Any]) -> NDArray[Any]:
        """Return the value of each item, or None; raise ValueError if its rows differ.

        Parameters
        ----------
        table : Table
            The file.
        column : str
            Name of the column, for errors.
        row_values : ndarray of shape (n_rows,)
            Value of each row, or None.
        """
        values = np.full(len(self), None)
        for item, value in zip(self.of_row.tolist(), row_values.tolist(), strict=True):
            if value is not None and values[item] not in (None, value):
                raise ValueError(
                    f"Column {column!r} of {table.name} has both {values[item]!r} and {value!r} "
                    f"for {self.name(table, item)}: make them agree."
                )
            if values[item] is None:
                values[item] = value
        return values


def _codes(values: Any) -> IntArray:
    """Return a number for each distinct value of a column, lists included; −1 if missing."""
    is_list = isinstance(values.iloc[0], list | np.ndarray)
    codes, _ = (values.map(tuple) if is_list else values).factorize()
    return np.asarray(codes)


def items(table: Table, column: str | None) -> Items:
    """Return the items of a file.

    Parameters
    ----------
    table : Table
        The file.
    column : str or None
        Column of item ids; None if every row is an item.
    """
    if column is None:
        each = np.arange(table.n_rows)
        return Items(None, each, each)
    places: dict[str, int] = {}
    first: list[int] = []
    of_row: list[int] = []
    for row, cell in enumerate(table.column(column)):
        if is_missing(cell):
            raise ValueError(
                f"Column {column!r} of {table.name} is empty in row {row} (counted from 0): fill "
                "in the id of the item."
            )
        item = places.setdefault(as_text(cell), len(places))
        if item == len(first):
            first.append(row)
        of_row.append(item)
    return Items(column, np.array(first), np.array(of_row))
