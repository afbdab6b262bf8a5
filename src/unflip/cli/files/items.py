"""What the rows of a file are about: each about something of its own, or several about one item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import FloatArray, IntArray
from unflip.cli.files.feature_columns import Features
from unflip.cli.files.tables import Table, as_text, is_missing


@dataclass(frozen=True, eq=False)
class Items:
    """Items of a file, in the order of their first rows.

    Attributes
    ----------
    column : str or None
        Column that names the item of each row; None: every row is an item.
    first : ndarray of shape (n,)
        First row of the file of each item.
    of_row : ndarray of shape (n_rows,)
        Item of each row of the file.
    """

    column: str | None
    first: IntArray
    of_row: IntArray

    @property
    def words(self) -> str:
        """What to call them."""
        return "rows" if self.column is None else "items"

    def __len__(self) -> int:
        return len(self.first)

    def name(self, table: Table, item: int) -> str:
        """Return what messages call an item."""
        row = int(self.first[item])
        return (
            f"row {row}"
            if self.column is None
            else f"item {as_text(table.columns[self.column][row])!r}"
        )

    def features(
        self, table: Table, features: Features, given: FloatArray | list[str]
    ) -> FloatArray | list[str]:
        """Return the features of each item from those of each row, or an error where its rows differ.

        Parameters
        ----------
        table : Table
            The file.
        features : Features
            Where they come from.
        given : ndarray of shape (n_rows, p) or list of str
            Numbers or text of each row.
        """
        if self.column is None:
            return given
        values = (
            np.array(given, dtype=object) if isinstance(given, list) else given
        )  # no text padded to the longest
        differs = (values != values[self.first[self.of_row]]).reshape(len(values), -1).any(axis=1)
        if differs.any():
            rows = np.flatnonzero(differs)
            raise ValueError(self._said_of(table, features, int(rows[self.of_row[rows].argmin()])))
        return [given[row] for row in self.first] if isinstance(given, list) else given[self.first]

    def _said_of(self, table: Table, features: Features, row: int) -> str:
        item = int(self.of_row[row])
        first = int(self.first[item])
        pairs = {
            name: [as_text(table.columns[name][place]) for place in (first, row)]
            for name in features.columns
        }
        column, (one, other) = next(
            (name, pair) for name, pair in pairs.items() if pair[0] != pair[1]
        )
        return (
            f"Column {column!r} of {table.name} holds {one[:40]!r} in row {first} and "
            f"{other[:40]!r} in row {row}, both of {self.name(table, item)}: give all rows of an "
            f"item the same features, or leave the column out with --ignore {column}."
        )

    def agreed(self, table: Table, column: str, said: NDArray[Any]) -> NDArray[Any]:
        """Return what the rows of each item say, None where none does, or an error where they say different things.

        Parameters
        ----------
        table : Table
            The file.
        column : str
            Name of the column where they say it.
        said : ndarray of shape (n_rows,)
            What each row says, or None.
        """
        found = np.full(len(self), None)
        for item, text in zip(self.of_row.tolist(), said.tolist(), strict=True):
            if text is not None and found[item] not in (None, text):
                raise ValueError(
                    f"Column {column!r} of {table.name} holds both {found[item]!r} and {text!r} "
                    f"for {self.name(table, item)}: make them agree."
                )
            found[item] = text if found[item] is None else found[item]
        return found


def items(table: Table, column: str | None) -> Items:
    """Read which rows are about the same item.

    Parameters
    ----------
    table : Table
        The file.
    column : str or None
        Column that names the items; None: every row is one.
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
                f"Column {column!r} of {table.name} is empty in row {row}: name the item of every "
                "row."
            )
        item = places.setdefault(as_text(cell), len(places))
        if item == len(first):
            first.append(row)
        of_row.append(item)
    return Items(column, np.array(first), np.array(of_row))
