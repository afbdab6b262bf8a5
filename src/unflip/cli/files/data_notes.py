"""Notes on the features of a file: copies of the labels, repeated texts, unknown values."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip.cli.files.feature_columns import Features, values
from unflip.cli.files.tables import Table
from unflip.cli.text_layout import joined
from unflip.features.table_columns import joined_texts
from unflip.features.table_features import TableFeatures
from unflip.labels.spellings import letters

# Share of the rows of each label with the value that stands for it: fewer are no copy.
_COPIED = 0.99
# Share of repeated texts that is worth a note.
_REPEATED = 0.05


def copies_of_labels(table: Table, features: Features, labels: NDArray[np.str_]) -> list[str]:
    """Return a note on each column whose values stand for the labels, apart from case and spaces.

    Parameters
    ----------
    table : Table
        The file.
    features : Features
        Columns of the features.
    labels : ndarray of str, shape (n_rows,)
        Observed labels, empty if missing.
    """
    labelled = labels != ""
    codes = _numbered(labels[labelled].tolist())
    if not codes.any():
        return []
    columns = features.of_kind("number", "boolean", "category")
    return [
        f"Column {column!r} has one value for each label: if it is a copy of the labels, ignore it "
        f"with --ignore {shlex.quote(column)}."
        for column in columns
        if _stands_for(_distinct(table, column)[labelled], codes)
    ]


def _distinct(table: Table, column: str) -> NDArray[np.intp]:
    """Return a number for each distinct value of a column."""
    numbers = table.numbers(column)
    if numbers is None:
        return _numbered(table.texts(column))
    return np.unique(numbers, return_inverse=True)[1]


def _numbered(texts: Sequence[str]) -> NDArray[np.intp]:
    """Return a number for each distinct text; texts that differ by case or spaces have one."""
    return np.unique([letters(text) for text in texts], return_inverse=True)[1]


def _stands_for(column: NDArray[np.intp], codes: NDArray[np.intp]) -> bool:
    """Return whether nearly all rows of each label have the same value, and no two labels one."""
    distinct, places = np.unique(column, return_inverse=True)
    n_labels = int(codes.max()) + 1
    if len(distinct) > len(codes) // 2 or len(distinct) < n_labels:
        return False
    counts = np.zeros((n_labels, len(distinct)))
    np.add.at(counts, (codes, places), 1)
    is_single = counts.max(axis=1) >= _COPIED * counts.sum(axis=1)
    return bool(is_single.all()) and len(set(counts.argmax(axis=1).tolist())) == n_labels


def repeated_texts(table: Table, features: Features) -> list[str]:
    """Return a note if many texts are word for word the same."""
    if features.kind != "text":
        return []
    texts = joined_texts(values(features, table), features.of_kind("text"))
    counts = Counter(text for text in texts if text)
    n_copies = sum(counts.values()) - len(counts)
    if n_copies < _REPEATED * len(texts):
        return []
    return [
        f"{n_copies:,} of {len(texts):,} texts repeat another one. Copies are scored without each "
        "other, but count as rows: remove them if they are there by mistake."
    ]


def unknown_values(recipe: TableFeatures, frame: Any) -> list[str]:
    """Return notes on rows whose categories the fit did not see, or whose texts are empty.

    Parameters
    ----------
    recipe : TableFeatures
        The features of the model.
    frame : DataFrame
        The new rows.
    """
    n_rows = len(frame)
    notes = [
        f"Rows with a value of column {column!r} that the model does not know: {len(levels):,} of "
        f"{n_rows:,} ({joined([repr(level) for level in dict.fromkeys(levels)])})."
        for column, levels in recipe.new_levels(frame).items()
    ]
    columns = [each.name for each in recipe.columns_ if each.kind == "text"]
    if columns:
        n_empty = joined_texts(frame, columns).count("")
        if n_empty:
            names = joined([repr(name) for name in columns])
            notes.append(f"Rows without text in {names}: {n_empty:,} of {n_rows:,}.")
    return notes
