"""A DataFrame with a column of labels: its features, its labels, and columns with other roles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._utils.warnings import warn_caller
from unflip.features.table_columns import (
    BESIDE_EMBEDDING,
    BESIDE_TEXT,
    IGNORED,
    TableColumn,
    as_frame,
    check_column,
)
from unflip.features.table_features import TableFeatures
from unflip.labels.classes import is_missing
from unflip.labels.spellings import usual_spellings


@dataclass(frozen=True, eq=False, kw_only=True)
class TableData:
    """A table, read.

    Attributes
    ----------
    frame : DataFrame
        The table without the columns of labels and of other roles.
    features : TableFeatures
        The fitted transformer of its columns.
    rows : array or sparse matrix of shape (n, p)
        Their features.
    labels : ndarray of shape (n,)
        The labels, None if missing.
    columns : mapping of str to ndarray of shape (n,)
        Values of the columns with other roles, by role, None if missing.
    """

    frame: Any
    features: TableFeatures
    rows: Any
    labels: NDArray[Any]
    columns: Mapping[str, NDArray[Any]]


def read_table_data(
    X: Any,
    label: str,
    *,
    text: str | Sequence[str] | None = None,
    embedding: str | Sequence[str] | None = None,
    use: str | Sequence[str] | None = None,
    ignore: str | Sequence[str] | None = None,
    roles: Mapping[str, Any] | None = None,
) -> TableData:
    """Read a DataFrame, and warn of columns that are not used though nothing said so.

    Parameters
    ----------
    X : DataFrame
        The table.
    label : str
        Column of labels.
    text, embedding, use, ignore
        As in `TableFeatures`.
    roles : mapping of str to str or None
        Columns that are no features, by the parameter that names them.
    """
    frame = as_frame(X)
    named = {role: name for role, name in (roles or {}).items() if name is not None}
    for role, name in {"label": label, **named}.items():
        check_column(name, frame.columns, role)
        if role != "label" and name == label:
            raise ValueError(f"{role}={name!r} is the column of labels: name another.")
    reserved = [label, *named.values()]
    labels = _values(frame[label])
    _warn_of_spellings(labels, label)
    rest = frame.drop(columns=list(dict.fromkeys(reserved)))
    features = TableFeatures(text, embedding=embedding, use=use, ignore=ignore)
    rows = features.fit_transform(rest)
    _warn_of_left_out(features.columns_)
    return TableData(
        frame=rest,
        features=features,
        rows=rows,
        labels=labels,
        columns={role: _values(frame[name]) for role, name in named.items()},
    )


def _values(series: Any) -> NDArray[Any]:
    """Return the values of a column, as objects with None if some are missing."""
    values = series.to_numpy()
    cells = series.tolist()
    if not any(map(_is_empty, cells)):
        return np.asarray(values)
    array = np.full(len(cells), None, dtype=object)
    for row, cell in enumerate(cells):
        array[row] = None if _is_empty(cell) else cell
    return array


def _is_empty(cell: Any) -> bool:
    """Whether a cell is missing, or an empty string."""
    return is_missing(cell) or (isinstance(cell, str) and not cell.strip())


def _warn_of_spellings(labels: NDArray[Any], column: str) -> None:
    """Warn of labels that differ from another only by case or spaces."""
    counts = Counter(label for label in labels.tolist() if isinstance(label, str))
    variants = [label for label, usual in usual_spellings(counts).items() if label != usual]
    if variants:
        named = ", ".join(map(repr, variants))
        warn_caller(
            f"The labels {named} of column {column!r} differ from others only by case or spaces, "
            "and are classes of their own: if they mean the same, spell them alike, for example "
            f"with frame[{column!r}].str.strip().str.lower()."
        )


def _warn_of_left_out(columns: Sequence[TableColumn]) -> None:
    """Warn of columns that are left out because of what they look like."""
    meant = ("", IGNORED, BESIDE_TEXT, BESIDE_EMBEDDING)
    surprising = [column for column in columns if column.left_out not in meant]
    if not surprising:
        return
    named = "; ".join(f"{column.name!r}, because {column.left_out}" for column in surprising)
    text = "columns of text with text=, " if any(each.kind == "text" for each in surprising) else ""
    warn_caller(
        f"Not used as features: {named}. To use them, name {text}others with use=; to leave them "
        "out without this warning, name them with ignore=."
    )
