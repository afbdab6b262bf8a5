"""A table with a column of labels, read for an audit, with what to show of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from unflip.auditing.shown_rows import ShownRows
from unflip.features.column_values import strings
from unflip.features.table_columns import is_frame, joined_texts
from unflip.model.table_data import TableData, read_table_data


class ReadTable(NamedTuple):
    """A table, and what to show of its rows."""

    data: TableData
    shown: ShownRows


def read_table(
    X: Any,
    y: Any,
    label: str | None,
    columns: Mapping[str, Any],
    roles: Mapping[str, Any],
) -> ReadTable | None:
    """Return a table's features and labels, and what to show of its rows; None without `label`.

    Parameters
    ----------
    X : DataFrame or other samples
        Samples of the audit.
    y : array-like or None
        Labels, if they are not a column.
    label : str or None
        Column of labels.
    columns : mapping of str to str, sequence of str or None
        `text`, `embedding`, `use` and `ignore`, as in `TableFeatures`.
    roles : mapping of str to str or None
        Columns that are no features, by the parameter that names them.
    """
    if label is None:
        _check_array_input(X, y, {**columns, "id": roles["id"]})
        return None
    if y is not None:
        raise ValueError("y and label= both pass the labels: pass one of them.")
    named = {role: name for role, name in roles.items() if _is_column_name(role, name)}
    data = read_table_data(X, label, roles=named, **columns)
    return ReadTable(data, shown_rows(data))


def _is_column_name(role: str, value: Any) -> bool:
    """Whether a parameter names a column; `trusted` can also be a file of checked rows."""
    is_file = role == "trusted" and str(value).endswith(".csv")
    return isinstance(value, str) and not is_file


def shown_rows(data: TableData) -> ShownRows:
    """Return what to show of each row: its texts, its id or index, and its cells."""
    details = data.features.columns_
    texts = [each.name for each in details if each.kind == "text" and not each.left_out]
    hidden = [each.name for each in details if each.kind == "embedding"]
    return ShownRows(
        ids=_ids(data),
        texts=joined_texts(data.frame, texts) if texts else None,
        cells={
            str(name): strings(data.frame[name])
            for name in data.frame.columns
            if name not in texts and name not in hidden
        },
    )


def _ids(data: TableData) -> Sequence[str] | None:
    """Return the ids in a column, or an index that does not count from 0."""
    if "id" in data.columns:
        return ["" if each is None else str(each) for each in data.columns["id"].tolist()]
    index = data.frame.index
    if type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1:
        return None
    return [str(each) for each in index]


def check_no_texts(X: Any) -> None:
    """Raise ValueError if the samples are texts."""
    is_flat = isinstance(X, list | tuple) or getattr(X, "ndim", 2) == 1
    if is_flat and len(X) and isinstance(next(iter(X)), str):
        raise ValueError(
            "X holds texts: pass a DataFrame with label='column' and text='column', or features of "
            "the texts, for example those of TfidfVectorizer."
        )


def _check_array_input(X: Any, y: Any, named: Mapping[str, Any]) -> None:
    """Raise ValueError if the input looks like a table with labels, but `label` is missing."""
    for parameter, names in named.items():
        if names is not None:
            raise ValueError(
                f"{parameter}={names!r} names columns of a table: pass the column of labels as "
                "label=, too."
            )
    if y is None:
        raise ValueError("The labels are missing: pass y, or a DataFrame with label='column'.")
    if not is_frame(X):
        return
    for name in X.columns:
        if not _may_be_numbers(X[name]):
            raise ValueError(
                f"Column {name!r} of X does not have numbers: put the labels into a column of the "
                "table and pass its name as label=, or transform X with "
                "unflip.features.TableFeatures."
            )


def _may_be_numbers(series: Any) -> bool:
    """Whether the first value of a column is a number, or a string of one."""
    if series.dtype.kind in "biuf":
        return True
    try:
        float(next(iter(series.dropna()), 0.0))
    except (TypeError, ValueError):
        return False
    return True
