"""The column of labels: which rows have one, and which classes there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import IntArray
from unflip.cli.files.tables import Table, as_text, is_missing

_FEWEST_ROWS = 10
_VERY_FEW = 0.1  # rows of a misspelt label to those of the label that is meant
_FEWEST_ROWS_PER_CLASS = 5  # on average: more classes than that are no classes


class Labels(Protocol):
    """What was said of the classes of rows: one label each, or votes."""

    @property
    def described(self) -> str:
        """What messages call it."""

    @property
    def counts(self) -> dict[str, int]:
        """How often each label was given, in sorted order."""


@dataclass(frozen=True, eq=False)
class LabelColumn:
    """Labels of a table, as texts.

    Attributes
    ----------
    name : str
        Name of the column.
    texts : ndarray of str, shape (n,)
        Label of each row, empty where it has none.
    """

    name: str
    texts: NDArray[Any]

    @property
    def names(self) -> tuple[str, ...]:
        """Columns of labels."""
        return (self.name,)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are spoken for."""
        return (self.name,)

    @property
    def described(self) -> str:
        """What messages call it."""
        return f"column {self.name!r}"

    @property
    def labelled(self) -> IntArray:
        """Rows that have a label."""
        return np.flatnonzero(self.texts != "")

    @property
    def unlabelled(self) -> IntArray:
        """Rows that have none."""
        return np.flatnonzero(self.texts == "")

    @property
    def observed(self) -> NDArray[Any]:
        """Labels of the rows that have one."""
        return np.asarray(self.texts[self.labelled])

    @property
    def counts(self) -> dict[str, int]:
        """How many rows have each label, in sorted order."""
        classes, counts = np.unique(self.observed, return_counts=True)
        return dict(zip(classes.tolist(), counts.tolist(), strict=True))


def label_column(table: Table, name: str) -> LabelColumn:
    """Read the column of labels, or say why it is none.

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


def check_labels(texts: NDArray[Any], rows: IntArray, column: str) -> None:
    """Raise where cells are no labels of classes that have several rows each.

    Parameters
    ----------
    texts : ndarray of str, shape (n_cells,)
        Labels, empty where there is none.
    rows : ndarray of shape (n_cells,)
        Row of the file that each stands in.
    column : str
        What messages call the cells.
    """
    classes, places, codes = np.unique(texts[texts != ""], return_index=True, return_inverse=True)
    rows = rows[texts != ""]
    n, counts = len(np.unique(rows)), np.bincount(codes)
    if len(classes) < 2:
        held = f"the one label {classes.item()!r}" if len(classes) else "no label"
        raise ValueError(
            f"{column} holds {held}: two classes or more are needed, so name another column."
        )
    if len(classes) * _FEWEST_ROWS_PER_CLASS > n and len(classes) > 2:
        raise ValueError(
            f"{column} holds {len(classes)} different labels in {n} rows: name a column of "
            "classes, each of which has many rows."
        )
    if n < _FEWEST_ROWS:
        raise ValueError(
            f"{column} holds only {n} labels: at least {_FEWEST_ROWS} rows with a label are needed."
        )
    for label, place in zip(
        classes[counts == 1].tolist(), places[counts == 1].tolist(), strict=True
    ):
        raise ValueError(
            f"{column} holds the label {label!r} in row {rows[place]} alone: correct it, or empty "
            "that cell to leave the row without a label."
        )


def label_texts(table: Table, name: str) -> list[str]:
    """Return the labels of a column as texts, empty where they are missing."""
    return ["" if is_missing(cell) else as_text(cell) for cell in table.column(name)]


def trusted_labels(table: Table, name: str, labels: Labels) -> NDArray[Any]:
    """Return the true label of each row, None where it is not known.

    Parameters
    ----------
    table : Table
        The file.
    name : str
        Name of the column that holds true labels.
    labels : Labels
        The observed ones: true labels are among them.
    """
    same = _by_value(labels.counts)
    found = [same.get(_value(text), text) for text in label_texts(table, name)]
    for row, label in enumerate(found):
        if label and label not in labels.counts:
            raise ValueError(
                f"Column {name!r} of {table.name} holds {label!r} in row {row}, which is no label "
                f"of {labels.described} ({_some(labels.counts)}): correct it, or leave it empty "
                "where the truth is not known."
            )
    if not any(found):
        raise ValueError(
            f"Column {name!r} of {table.name} holds no true label: fill in some, or drop --trusted."
        )
    return np.array([label or None for label in found], dtype=object)


def _value(text: str) -> str | float:
    """Return what a label stands for: numbers that are equal, such as 1 and 1.0, are the same label."""
    try:
        return float(text)
    except ValueError:
        return text


def _by_value(labels: Mapping[str, int]) -> dict[str | float, str]:
    """Return the one label of each value; labels that are written differently on purpose stay apart."""
    written = Counter(map(_value, labels))
    return {_value(label): label for label in labels if written[_value(label)] == 1}


def lookalikes(labels: LabelColumn) -> list[str]:
    """Say which classes have very few rows and differ from another by capitals or blanks alone."""
    by_letters: dict[str, list[str]] = {}
    for label in labels.counts:
        by_letters.setdefault("".join(label.casefold().split()), []).append(label)
    usual = {
        label: max(alike, key=labels.counts.__getitem__)
        for alike in by_letters.values()
        for label in alike
    }
    return [
        f"The label {label!r}, in {labels.counts[label]} rows, differs from {other!r} by capitals "
        "or blanks alone and is taken as a class of its own: write them alike if they mean the "
        "same."
        for label, other in usual.items()
        if labels.counts[label] <= _VERY_FEW * labels.counts[other]
    ]


def check_names(table: Table, name: str) -> None:
    """Raise where two rows have one name."""
    first: dict[str, int] = {}
    for row, text in enumerate(table.texts(name)):
        if text in first:
            raise ValueError(
                f"Column {name!r} of {table.name} holds {text!r} in rows {first[text]} and {row}: "
                "name a column with one id for each row."
            )
        first[text] = row


def groups(table: Table, name: str) -> NDArray[Any]:
    """Return the group of each row; a row without one stands alone."""
    texts = table.texts(name)
    if len(Counter(texts)) == 1:
        raise ValueError(
            f"Column {name!r} of {table.name} holds one group only: name another, or drop --group."
        )
    return np.array([f"group {text}" if text else f"row {row}" for row, text in enumerate(texts)])


def _some(labels: dict[str, int]) -> str:
    names = list(labels)
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
