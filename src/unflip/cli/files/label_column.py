"""The column of labels: its classes, and the rows that have a label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from unflip._utils.guarded_cells import unguarded
from unflip._utils.typing import IntArray
from unflip.cli.files.tables import Table, as_text, is_missing
from unflip.labels.spellings import usual_spellings
from unflip.labels.votes import Votes

#: Fewest rows with a label, or items with votes: fewer are probably a mistake; a choice.
FEWEST_ROWS = 10
# Fewest rows per class, on average: a column with more classes probably holds ids or text; a
# choice.
_FEWEST_ROWS_PER_CLASS = 5
_N_NAMES = 8  # classes that are named in a message


class Labels(Protocol):
    """The labels of a file: one for each row, or votes."""

    @property
    def names(self) -> tuple[str, ...]:
        """Columns of labels."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are not features."""

    @property
    def described(self) -> str:
        """The column or columns, for messages."""

    @property
    def counts(self) -> dict[str, int]:
        """Number of rows or votes of each label, in sorted order."""

    @property
    def votes(self) -> Votes | None:
        """The votes; None if there is one label per row."""

    @property
    def audited(self) -> IntArray:
        """Items to audit or fit to: those with a label, or all items if there are votes."""

    @property
    def observed(self) -> NDArray[Any] | Votes:
        """Labels of the audited items, or the votes."""

    @property
    def notes(self) -> list[str]:
        """Warnings about the labels."""


@dataclass(frozen=True, eq=False)
class LabelColumn:
    """The labels of a table as strings.

    Attributes
    ----------
    name : str
        Name of the column.
    texts : ndarray of str, shape (n,)
        Label of each row, empty if it has none.
    """

    name: str
    texts: NDArray[Any]

    @property
    def names(self) -> tuple[str, ...]:
        """Columns of labels."""
        return (self.name,)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are not features."""
        return (self.name,)

    @property
    def described(self) -> str:
        """The column, for messages."""
        return f"column {self.name!r}"

    @property
    def votes(self) -> None:
        """None: there are no votes."""
        return None

    @property
    def audited(self) -> IntArray:
        """Rows with a label."""
        return np.flatnonzero(self.texts != "")

    @property
    def observed(self) -> NDArray[Any]:
        """Labels of the rows that have one."""
        return np.asarray(self.texts[self.audited])

    @property
    def counts(self) -> dict[str, int]:
        """Number of rows with each label, in sorted order."""
        classes, counts = np.unique(self.observed, return_counts=True)
        return dict(zip(classes.tolist(), counts.tolist(), strict=True))

    @property
    def variants(self) -> dict[str, str]:
        """The usual spelling of each label that differs from another only by case or spaces."""
        usual = usual_spellings(self.counts)
        return {label: spelling for label, spelling in usual.items() if label != spelling}

    @property
    def notes(self) -> list[str]:
        """Warnings about labels that differ from another only by case or spaces."""
        counts = self.counts
        return [
            f"The label {label!r}, in {counts[label]} rows, differs from {usual!r} only by case or "
            "spaces, and is a separate class: if they mean the same, spell them alike, as "
            "--normalise-labels of audit, fit and apply does."
            for label, usual in self.variants.items()
        ]


def label_column(table: Table, name: str) -> LabelColumn:
    """Read the column of labels; raise ValueError if it does not hold classes.

    Parameters
    ----------
    table : Table
        The file.
    name : str
        Name of the column.
    """
    labels = LabelColumn(name, np.array(label_texts(table, name)))
    check_labels(labels.texts, np.arange(table.n_rows), f"Column {name!r} of {table.name}")
    return labels


def with_usual_spellings(table: Table, names: Sequence[str]) -> Table:
    """Return a table whose labels that differ only by case or spaces are spelled alike.

    Each takes its most frequent spelling.

    Parameters
    ----------
    table : Table
        The file.
    names : sequence of str
        Columns of labels.
    """
    texts = {name: label_texts(table, name) for name in names}
    usual = usual_spellings(Counter(text for cells in texts.values() for text in cells))
    spelled = {name: [usual[text] for text in cells] for name, cells in texts.items()}
    return replace(table, columns={**table.columns, **spelled})


def check_labels(texts: NDArray[Any], rows: IntArray, column: str) -> None:
    """Raise ValueError unless there are at least two classes with several rows each.

    Parameters
    ----------
    texts : ndarray of str, shape (n_cells,)
        Labels, empty if missing.
    rows : ndarray of shape (n_cells,)
        Row of each cell in the file.
    column : str
        The column or columns, for messages.
    """
    classes, places, codes = np.unique(texts[texts != ""], return_index=True, return_inverse=True)
    rows = rows[texts != ""]
    n = len(np.unique(rows))
    counts = np.bincount(codes)
    if len(classes) < 2:
        content = f"only the label {classes.item()!r}" if len(classes) else "no label"
        raise ValueError(
            f"{column} has {content}: at least two classes are needed, so name another column."
        )
    if len(classes) * _FEWEST_ROWS_PER_CLASS > n and len(classes) > 2:
        raise ValueError(
            f"{column} has {len(classes)} different labels in {n} rows: name a column of classes "
            "with many rows each."
        )
    if n < FEWEST_ROWS:
        raise ValueError(
            f"{column} has only {n} labels: at least {FEWEST_ROWS} rows with a label are needed."
        )
    for label, place in zip(
        classes[counts == 1].tolist(), places[counts == 1].tolist(), strict=True
    ):
        raise ValueError(
            f"{column} has the label {label!r} only in row {rows[place]} (counted from 0): correct "
            "it, or empty the cell to leave the row unlabelled."
        )


def label_texts(table: Table, name: str) -> list[str]:
    """Return the labels of a column as strings, empty if missing."""
    return ["" if is_missing(cell) else as_text(cell) for cell in table.column(name)]


def trusted_labels(table: Table, name: str, labels: Labels) -> NDArray[Any]:
    """Return the trusted label of each row, None for unchecked rows.

    Parameters
    ----------
    table : Table
        The file.
    name : str
        Column of trusted labels.
    labels : Labels
        The observed labels; trusted labels must be among them.
    """
    remedy = "correct it, or empty the cell if the row was not checked"
    trusted = matched_labels(table, name, labels, remedy)
    if not any(trusted):
        raise ValueError(
            f"Column {name!r} of {table.name} has no trusted label: fill in some, or omit "
            "--trusted."
        )
    return np.array([label or None for label in trusted], dtype=object)


def matched_labels(table: Table, name: str, labels: Labels, remedy: str) -> list[str]:
    """Return the labels of another column, written as the observed ones; empty if missing.

    Parameters
    ----------
    table : Table
        The file.
    name : str
        The column.
    labels : Labels
        The observed labels.
    remedy : str
        What to do about a label that is not among them, for the error.
    """
    counts = labels.counts
    written = written_labels(label_texts(table, name), counts)
    for row, label in enumerate(written):
        if label and label not in counts:
            raise ValueError(
                f"Column {name!r} of {table.name} has {label!r} in row {row} (counted from 0), "
                f"which is not a label of {named_labels(labels)}: {remedy}."
            )
    return written


def written_labels(texts: Sequence[str], labels: Mapping[str, int]) -> list[str]:
    """Return texts as the observed labels are written, if they are equal in value.

    1.0 becomes 1 if that is an observed label, and the apostrophe of `guarded` is removed.
    """
    by_value = _by_value(labels)
    written = [by_value.get(_value(text), text) for text in texts]
    return [
        unguarded(text) if text not in labels and unguarded(text) in labels else text
        for text in written
    ]


def named_labels(labels: Labels) -> str:
    """Return the column of labels with its first classes, for messages."""
    names = list(labels.counts)
    listed = ", ".join(names[:_N_NAMES]) + (", ..." if len(names) > _N_NAMES else "")
    return f"{labels.described} ({listed})"


def _value(text: str) -> str | float:
    """Return a label as a number if it is one, so that 1 and 1.0 are the same label."""
    try:
        return float(text)
    except ValueError:
        return text


def _by_value(labels: Mapping[str, int]) -> dict[str | float, str]:
    """Return the label of each value; labels with equal values, such as 1 and 1.0, are omitted."""
    written = Counter(map(_value, labels))
    return {_value(label): label for label in labels if written[_value(label)] == 1}


def check_unique(table: Table, name: str) -> None:
    """Raise ValueError if two rows have the same id."""
    first: dict[str, int] = {}
    for row, text in enumerate(table.texts(name)):
        if text in first:
            raise ValueError(
                f"Column {name!r} of {table.name} has {text!r} in rows {first[text]} and {row} "
                "(counted from 0): name a column with a different id in each row."
            )
        first[text] = row


def groups(table: Table, name: str) -> NDArray[Any]:
    """Return the group of each row; a row with an empty cell gets its own group."""
    texts = table.texts(name)
    if len(Counter(texts)) == 1:
        raise ValueError(
            f"Column {name!r} of {table.name} has one group only: name another, or omit --group."
        )
    return np.array([f"group {text}" if text else f"row {row}" for row, text in enumerate(texts)])
