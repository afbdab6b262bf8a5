"""Rows of the data that a file from the page of an audit refers to, by row number or by id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from unflip.cli.files.tables import Table, as_text


class Reviewed(Protocol):
    """What is written about one row of the data."""

    @property
    def row(self) -> int:
        """Row of the data, counted from 0."""

    @property
    def id(self) -> str:
        """Id of the row, empty if it has none."""


Entry = TypeVar("Entry", bound=Reviewed)


def locate(
    entries: Sequence[Entry], table: Table, id_column: str | None, kind: str = "decision"
) -> dict[int, Entry]:
    """Return the entries by row of the data, matched by row number or by id.

    Parameters
    ----------
    entries : sequence of Reviewed
        The entries of a file.
    table : Table
        The data.
    id_column : str or None
        Column of row ids.
    kind : str
        What an entry is, for errors.
    """
    if id_column is None:
        rows = _rows_by_number(entries, table, kind)
    else:
        rows = _rows_by_id(entries, table, id_column, kind)
    by_row: dict[int, Entry] = {}
    for row, entry in zip(rows, entries, strict=True):
        if row in by_row:
            raise ValueError(
                f"Row {row} (counted from 0) of {table.name} has two {kind}s: keep one {kind}."
            )
        by_row[row] = entry
    return by_row


def _rows_by_id(entries: Sequence[Entry], table: Table, column: str, kind: str) -> list[int]:
    rows_of_id: dict[str, list[int]] = {}
    for row, row_id in enumerate(table.texts(column)):
        rows_of_id.setdefault(row_id, []).append(row)
    rows = []
    for entry in entries:
        matches = rows_of_id.get(entry.id, [])
        if len(matches) != 1:
            how_often = f"occurs {len(matches)} times" if matches else "does not occur"
            raise ValueError(
                f"The id {entry.id!r} of a {kind} {how_often} in column {column!r} of "
                f"{table.name}: name a column with a different id in each row."
            )
        rows += matches
    return rows


def _rows_by_number(entries: Sequence[Entry], table: Table, kind: str) -> list[int]:
    rows = [entry.row for entry in entries]
    ids = [entry.id for entry in entries]
    for row in rows:
        if row >= table.n_rows:
            raise ValueError(
                f"A {kind} refers to row {row}, but {table.name} has {table.n_rows} rows "
                "(counted from 0): use the file that was audited."
            )
    if any(ids) and not _is_column(table, rows, ids):
        raise ValueError(
            f"The ids of the {kind}s match no column of {table.name}: name the column of ids "
            "with --id, or use the file that was audited."
        )
    return rows


def _is_column(table: Table, rows: Sequence[int], ids: Sequence[str]) -> bool:
    pairs = list(zip(rows, ids, strict=True))
    return any(
        all(as_text(cells[row]) == row_id for row, row_id in pairs)
        for cells in table.columns.values()
    )
