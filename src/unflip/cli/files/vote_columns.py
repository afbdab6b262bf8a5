"""Votes in a file: a column for each annotator, or a row for each vote."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import IntArray
from unflip.cli.files.items import Items
from unflip.cli.files.label_column import (
    FEWEST_ROWS,
    check_labels,
    label_texts,
    written_labels,
)
from unflip.cli.files.tables import Table, as_text, is_missing
from unflip.cli.text_layout import joined
from unflip.labels.votes import Votes

# Fewest annotators, and votes of each, for the note that annotators seem to be rules. A choice.
_FEWEST_ANNOTATORS = 3
_FEWEST_VOTES = 5


@dataclass(frozen=True)
class Abstentions:
    """How annotators abstain.

    Attributes
    ----------
    allowed : bool
        Whether a missing vote is an abstention.
    label : str or None
        Label of an abstention, besides empty cells.
    """

    allowed: bool = False
    label: str | None = None

    def emptied(self, texts: NDArray[Any], column: str) -> NDArray[Any]:
        """Return labels that are empty where an annotator abstains.

        Parameters
        ----------
        texts : ndarray of str
            Labels, empty if missing.
        column : str
            The column or columns, for the error if no cell has the label of an abstention.
        """
        if self.label is None or is_missing(self.label):
            return texts
        labels = dict.fromkeys(np.unique(texts[texts != ""]).tolist(), 0)
        written = written_labels([as_text(self.label)], labels)[0]
        if written not in labels:
            raise ValueError(
                f"--abstain {shlex.quote(self.label)} is no label of {column} "
                f"({joined(list(labels)) or 'no label'}): pass the label that marks an abstention, "
                "or --abstentions if empty cells do."
            )
        return np.where(texts == written, "", texts)


#: Missing votes of annotators who did not see the row.
NO_ABSTENTIONS = Abstentions()


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
        return _described(self.names)

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
        """Warnings if the annotators seem to be rules, but abstentions are not read as such."""
        votes = self.votes
        counts = np.zeros((len(votes.annotators), len(votes.classes)), dtype=int)
        np.add.at(counts, (votes.annotator, votes.label), 1)
        notes = []
        has_empty_cells = len(votes.row) < len(votes) * len(votes.annotators)
        if has_empty_cells and not votes.abstentions:
            notes += [
                f"{share} only ever give one label: if these are rules that abstain, pass "
                "--abstentions."
                for share in _most(counts, (counts > 0).sum(axis=1) == 1)
            ]
        if len(votes.classes) > 2:
            usual = int(counts.sum(axis=0).argmax())
            label = str(votes.classes[usual])
            others = np.delete(counts, usual, axis=1)
            notes += [
                f"{share} only ever give one label besides {label!r}: if {label!r} marks an "
                f"abstention, pass --abstain {shlex.quote(label)}."
                for share in _most(others, (counts[:, usual] > 0) & ((others > 0).sum(axis=1) == 1))
            ]
        return notes


def _most(counts: IntArray, is_meant: NDArray[np.bool_]) -> list[str]:
    """Return how many annotators are meant, in words, if they are most of those with many votes.

    Parameters
    ----------
    counts : ndarray of shape (w, k)
        Number of votes of each annotator for each label.
    is_meant : ndarray of shape (w,)
        Whether each annotator is meant.
    """
    is_meant = is_meant[counts.sum(axis=1) >= _FEWEST_VOTES]
    n_meant = int(is_meant.sum())
    if len(is_meant) < _FEWEST_ANNOTATORS or 2 * n_meant <= len(is_meant):
        return []
    return [f"{n_meant} of {len(is_meant)} annotators with at least {_FEWEST_VOTES} votes"]


def _described(names: Sequence[str]) -> str:
    """Return the first columns of labels, for messages."""
    return f"column{'s' * (len(names) > 1)} {joined(list(map(repr, names)))}"


def votes_in_columns(
    table: Table, names: Sequence[str], abstentions: Abstentions = NO_ABSTENTIONS
) -> VoteColumns:
    """Read votes from a column for each annotator; an empty cell is not a vote.

    Parameters
    ----------
    table : Table
        The file.
    names : sequence of str
        The columns.
    abstentions : Abstentions
        How annotators abstain.
    """
    columns = f"{_described(names)} of {table.name}"
    cells = np.column_stack([label_texts(table, name) for name in names])
    texts = abstentions.emptied(cells, columns)
    rows = np.repeat(np.arange(table.n_rows), len(names))
    check_labels(texts.ravel(), rows, f"The set of {columns}")
    votes = Votes.from_columns(
        np.ma.masked_equal(texts.astype(object), ""),
        annotators=list(names),
        abstentions=abstentions.allowed,
    )
    return VoteColumns(tuple(names), tuple(names), votes)


def votes_in_rows(
    table: Table,
    items: Items,
    label: str,
    annotator: str | None,
    abstentions: Abstentions = NO_ABSTENTIONS,
) -> VoteColumns:
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
    abstentions : Abstentions
        How annotators abstain.
    """
    cells = np.array(label_texts(table, label))
    texts = abstentions.emptied(cells, f"{_described([label])} of {table.name}")
    check_labels(texts, np.arange(table.n_rows), f"Column {label!r} of {table.name}")
    rows = np.flatnonzero(texts != "")
    annotators = None if annotator is None else _annotators(table, items, annotator, rows.tolist())
    votes = Votes.from_table(
        items.of_row[rows],
        annotators,
        texts[rows].astype(object),
        n_rows=len(items),
        abstentions=abstentions.allowed,
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
