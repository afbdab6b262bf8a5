"""Votes in a file: a column for each annotator, or a row for each vote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unflip._utils.typing import IntArray
from unflip.cli.files.items import Items
from unflip.cli.files.label_column import FEWEST_ROWS, check_labels, label_texts
from unflip.cli.files.tables import Table
from unflip.labels.votes import Votes


@dataclass(frozen=True, eq=False)
class VoteColumns:
    """Votes on the items of a file.

    Attributes
    ----------
    names : tuple of str
        Columns of labels.
    columns : tuple of str
        Columns of labels, items and annotators.
    votes : Votes
        The votes.
    """

    names: tuple[str, ...]
    columns: tuple[str, ...]
    votes: Votes

    @property
    def described(self) -> str:
        """The columns of labels, for messages."""
        return f"column{'s' * (len(self.names) > 1)} {', '.join(map(repr, self.names))}"

    @property
    def counts(self) -> dict[str, int]:
        """Number of votes for each label, in sorted order."""
        counts = np.bincount(self.votes.label, minlength=len(self.votes.classes))
        return dict(zip(self.votes.classes.tolist(), counts.tolist(), strict=True))

    @property
    def audited(self) -> IntArray:
        """All items."""
        return np.arange(len(self.votes))

    @property
    def observed(self) -> Votes:
        """The votes."""
        return self.votes

    @property
    def notes(self) -> list[str]:
        """No warnings."""
        return []


def votes_in_columns(table: Table, names: Sequence[str]) -> VoteColumns:
    """Read votes from a column for each annotator; an empty cell is not a vote.

    Parameters
    ----------
    table : Table
        The file.
    names : sequence of str
        The columns.
    """
    texts = np.column_stack([label_texts(table, name) for name in names])
    rows = np.repeat(np.arange(table.n_rows), len(names))
    check_labels(
        texts.ravel(), rows, f"The set of columns {', '.join(map(repr, names))} of {table.name}"
    )
    votes = Votes.from_columns(np.ma.masked_equal(texts.astype(object), ""), annotators=list(names))
    return VoteColumns(tuple(names), tuple(names), votes)


def votes_in_rows(table: Table, items: Items, label: str, annotator: str | None) -> VoteColumns:
    """Read votes from a row for each vote; a row with an empty label is not a vote.

    Parameters
    ----------
    table : Table
        The file.
    items : Items
        The items of the rows.
    label : str
        Column of labels.
    annotator : str or None
        Column of annotator ids; None if they are not known.
    """
    texts = np.array(label_texts(table, label))
    check_labels(texts, np.arange(table.n_rows), f"Column {label!r} of {table.name}")
    rows = np.flatnonzero(texts != "")
    annotators = None if annotator is None else _annotators(table, items, annotator, rows.tolist())
    votes = Votes.from_table(
        items.of_row[rows], annotators, texts[rows].astype(object), n_rows=len(items)
    )
    if votes.voted.sum() < FEWEST_ROWS:
        raise ValueError(
            f"Column {label!r} of {table.name} has votes on only {votes.voted.sum()} items: at "
            f"least {FEWEST_ROWS} are needed."
        )
    id_columns = (column for column in (items.column, annotator) if column is not None)
    return VoteColumns((label,), (label, *id_columns), votes)


def _annotators(table: Table, items: Items, column: str, rows: Sequence[int]) -> list[str]:
    """Return the annotators of these rows; raise ValueError if one votes twice on an item."""
    texts = label_texts(table, column)
    first_rows: dict[tuple[int, str], int] = {}
    for row in rows:
        item = int(items.of_row[row])
        if not texts[row]:
            raise ValueError(
                f"Column {column!r} of {table.name} is empty in row {row} (counted from 0): fill "
                "in the annotator."
            )
        first = first_rows.setdefault((item, texts[row]), row)
        if first != row:
            raise ValueError(
                f"Annotator {texts[row]!r} votes on {items.name(table, item)} in rows {first} and "
                f"{row} (counted from 0) of {table.name}: keep one of these votes."
            )
    return [texts[row] for row in rows]
