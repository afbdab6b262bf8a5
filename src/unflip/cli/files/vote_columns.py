"""Several votes per row in a file: a column for each annotator, or a row for each vote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unflip.cli.files.items import Items
from unflip.cli.files.label_column import check_labels, label_texts
from unflip.cli.files.tables import Table
from unflip.labels.votes import Votes

_FEWEST_ITEMS = 10


@dataclass(frozen=True, eq=False)
class VoteColumns:
    """Votes on the items of a file.

    Attributes
    ----------
    names : tuple of str
        Columns of labels.
    columns : tuple of str
        These, and those that name annotators and items.
    votes : Votes
        Who said what of which item.
    """

    names: tuple[str, ...]
    columns: tuple[str, ...]
    votes: Votes

    @property
    def described(self) -> str:
        """What messages call them."""
        return f"column{'s' * (len(self.names) > 1)} {', '.join(map(repr, self.names))}"

    @property
    def counts(self) -> dict[str, int]:
        """How many votes there are for each label, in sorted order."""
        counts = np.bincount(self.votes.label, minlength=len(self.votes.classes))
        return dict(zip(self.votes.classes.tolist(), counts.tolist(), strict=True))


def votes_in_columns(table: Table, names: Sequence[str]) -> VoteColumns:
    """Read votes from a column for each annotator; empty cells are no votes.

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
    """Read votes from a row for each; a row whose label is empty is no vote.

    Parameters
    ----------
    table : Table
        The file.
    items : Items
        What the rows are about.
    label, annotator : str
        Columns of labels and of annotators; None: it is not known who voted.
    """
    texts = np.array(label_texts(table, label))
    check_labels(texts, np.arange(table.n_rows), f"Column {label!r} of {table.name}")
    given = np.flatnonzero(texts != "")
    annotators = None if annotator is None else _annotators(table, items, annotator, given.tolist())
    votes = Votes.from_table(
        items.of_row[given], annotators, texts[given].astype(object), n_rows=len(items)
    )
    if votes.voted.sum() < _FEWEST_ITEMS:
        raise ValueError(
            f"Column {label!r} of {table.name} holds votes on only {votes.voted.sum()} items: at "
            f"least {_FEWEST_ITEMS} are needed."
        )
    others = (column for column in (items.column, annotator) if column is not None)
    return VoteColumns((label,), (label, *others), votes)


def _annotators(table: Table, items: Items, column: str, rows: Sequence[int]) -> list[str]:
    """Return who gave the votes in these rows; nobody votes twice on an item."""
    texts = label_texts(table, column)
    seen: dict[tuple[int, str], int] = {}
    for row in rows:
        item = int(items.of_row[row])
        if not texts[row]:
            raise ValueError(
                f"Column {column!r} of {table.name} is empty in row {row}: say who gave that vote."
            )
        before = seen.setdefault((item, texts[row]), row)
        if before != row:
            raise ValueError(
                f"Annotator {texts[row]!r} votes on {items.name(table, item)} in rows {before} and "
                f"{row} of {table.name}: keep one of these votes."
            )
    return [texts[row] for row in rows]
