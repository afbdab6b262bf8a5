"""The columns of a table: their kinds, and why some are not used."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence, Set
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy as np

from unflip._utils.typing import FloatArray
from unflip.features.column_values import (
    Levels,
    Part,
    are_numbers,
    are_truth_values,
    date_format,
    date_part,
    dates,
    level_values,
    numbers,
    strings,
    truth_values,
    varying_parts,
)

Kind = Literal["number", "boolean", "category", "date", "text", "embedding", "other"]

# Fewest rows of a level of a category, or of missing values, that have an indicator, and their
# share in small tables. `benchmarks/tables.py` compares 2 to 50 rows: 5 and more are alike.
_FEWEST_ROWS = 5
_FEWEST_SHARE = 0.1
# A column of strings whose levels all differ, or are more than these, is text if they have this
# many words on average. A choice: levels of a category are names, and few.
_MOST_PHRASES = 40
_FEWEST_WORDS = 3.0
# Whole numbers that all differ in so many rows are ids: among 100 measurements between 0 and 1000,
# two agree with a probability of 99%.
_FEWEST_IDS = 100
# Whole numbers that are consecutive in any order number the rows from this many rows on. A choice:
# by chance, ten of 100 numbers are so with a probability of 10⁻¹¹.
_FEWEST_CONSECUTIVE = 10
_N_NAMED = 8  # columns that a message names

#: Reasons why a column is not used.
IGNORED = "it is ignored"
BESIDE_TEXT = "the features are the words of the texts"
BESIDE_EMBEDDING = "the features are an embedding"
LOOKS_LIKE_TEXT = "it looks like text"
_LISTS = "it has lists, which can be an embedding"
_OTHER = "its values are not numbers, strings or dates"
_EMPTY = "it is empty"
_CONSTANT = "it never varies"
_SEQUENCE = "it numbers the rows"
_ALL_DIFFERENT = "all its values differ, as ids do"
_FEW_AGREE = "nearly all its values differ"


@dataclass(frozen=True, kw_only=True)
class TableColumn:
    """What became of a column.

    Attributes
    ----------
    name : str
        The column.
    kind : {"number", "boolean", "category", "date", "text", "embedding", "other"}
        What it holds.
    left_out : str
        Why it is not used; empty if it is.
    n_features : int
        Number of features; those of all columns of text are counted for the first.
    date_format : str
        Format of dates in strings, as in `pandas.to_datetime`; empty for other columns.
    parts : tuple of str
        Parts of dates that are features, such as "weekday".
    """

    name: Any
    kind: Kind
    left_out: str = ""
    n_features: int = 0
    date_format: str = ""
    parts: tuple[str, ...] = ()


def fewest_rows(n_rows: int) -> int:
    """Return the fewest rows of a level, or of missing values, that have an indicator."""
    return max(2, min(_FEWEST_ROWS, int(_FEWEST_SHARE * n_rows)))


def is_frame(X: Any) -> bool:
    """Whether this is a pandas DataFrame."""
    return type(X).__module__.partition(".")[0] == "pandas" and getattr(X, "ndim", 0) == 2


def as_frame(X: Any) -> Any:
    """Return a table as a pandas DataFrame; raise an error if it is none, or is empty."""
    frame = X.to_pandas() if hasattr(X, "to_pandas") else X  # polars and Arrow have this method
    if not is_frame(frame):
        raise TypeError(
            f"X must be a table, not a {type(X).__name__}: pass a pandas DataFrame with named "
            "columns."
        )
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"X has two columns {twice!r}: rename one of them.")
    if len(frame) == 0:
        raise ValueError("X has no rows: pass a table with data.")
    return frame


def check_column(name: Any, columns: Iterable[Any], parameter: str) -> None:
    """Raise ValueError with similar names if there is no such column."""
    names = list(columns)
    if isinstance(name, Hashable) and name in names:
        return
    close = get_close_matches(str(name), list(map(str, names)), n=1, cutoff=0.6)
    if close:
        hint = f"did you mean {close[0]!r}?"
    else:
        rest = len(names) - _N_NAMED
        more = [f"{rest} more"] if rest > 0 else []
        hint = f"its columns are {', '.join([*map(repr, names[:_N_NAMED]), *more])}."
    raise ValueError(f"{parameter}={name!r}, but the table has no such column: {hint}")


def named_columns(names: Any, columns: Sequence[Any], parameter: str) -> list[Any]:
    """Return the columns that a parameter names, in the order of the table.

    Parameters
    ----------
    names : str, sequence of str or None
        Names; one that is no column may have wildcards, such as "rule*".
    columns : sequence
        All columns.
    parameter : str
        Name of the parameter, for errors.
    """
    chosen: set[Any] = set()
    for name in as_names(names):
        matches = []
        if isinstance(name, str) and name not in columns:
            matches = [each for each in columns if fnmatchcase(str(each), name)]
        if not matches:
            check_column(name, columns, parameter)
            matches = [name]
        chosen.update(matches)
    return [column for column in columns if column in chosen]


def as_names(names: Any) -> list[Any]:
    """Return the names of columns as a list, for one name, several or None."""
    if names is None:
        return []
    is_several = isinstance(names, Sequence | Set) or getattr(names, "ndim", 0) == 1
    return list(names) if is_several and not isinstance(names, str | bytes) else [names]


def joined_texts(frame: Any, columns: Sequence[Any]) -> list[str]:
    """Return the text of each row; those of several columns are joined by a line break."""
    each = [strings(frame[column]) for column in columns]
    if len(each) == 1:
        return each[0]
    return ["\n".join(filter(None, texts)) for texts in zip(*each, strict=True)]


def column_of(series: Any, *, forced: bool = False) -> TableColumn:
    """Return what a column holds, and why it is not used if it is not.

    Parameters
    ----------
    series : Series
        The column.
    forced : bool
        Whether to use it even if it looks like an id or like text, or never varies.
    """
    levels = None
    if series.dtype.kind not in "biufmM":
        levels = Levels.of(series)
        if levels is None or series.dtype.kind not in "OUT":
            has_lists = isinstance(series.iloc[0], list | tuple | np.ndarray)
            reason = _LISTS if has_lists else _OTHER
            return TableColumn(name=series.name, kind="other", left_out=reason)
    column = _kind_of(series, levels)
    if forced:
        return column
    if column.kind == "date":
        return column if column.parts else replace(column, left_out=_CONSTANT)
    if column.kind == "category" and levels is not None:
        reason = _why_not_levels(levels, len(series))
        return replace(
            column, left_out=reason, kind="text" if reason == LOOKS_LIKE_TEXT else "category"
        )
    values = truth_values(series) if column.kind == "boolean" else numbers(series)
    return replace(column, left_out=_why_not_numbers(values))


def _kind_of(series: Any, levels: Levels | None) -> TableColumn:
    """Return what a column holds; `levels` are None if its dtype says so."""
    name = series.name
    if series.dtype.kind == "b":
        return TableColumn(name=name, kind="boolean")
    if series.dtype.kind == "M":
        return TableColumn(name=name, kind="date", parts=varying_parts(dates(series, "")))
    if levels is None:
        return TableColumn(name=name, kind="number")
    if str(series.dtype) == "category":
        return TableColumn(name=name, kind="category")
    if are_truth_values(levels):
        return TableColumn(name=name, kind="boolean")
    if are_numbers(series, levels):
        return TableColumn(name=name, kind="number")
    found = date_format(levels)
    if found:
        parts = varying_parts(dates(series, found))
        return TableColumn(name=name, kind="date", date_format=found, parts=parts)
    return TableColumn(name=name, kind="category")


def _why_not_levels(levels: Levels, n_rows: int) -> str:
    """Return why a category is not used; empty if it is."""
    if not levels.strings:
        return _EMPTY
    fewest = fewest_rows(n_rows)
    has_missing = levels.n_missing >= fewest
    if len(set(levels.strings)) == 1:
        return "" if has_missing else _CONSTANT
    n_words = np.mean([len(text.split()) for text in levels.strings])
    most = levels.counts.max()
    if n_words >= _FEWEST_WORDS and (most == 1 or len(levels.strings) > _MOST_PHRASES):
        return LOOKS_LIKE_TEXT
    if most == 1:
        return _ALL_DIFFERENT
    return "" if has_missing or most >= fewest else _FEW_AGREE


def _why_not_numbers(values: FloatArray) -> str:
    """Return why numbers are not used; empty if they are."""
    present = values[~np.isnan(values)]
    n = len(present)
    if n == 0:
        return _EMPTY
    if (present == present[0]).all():
        has_missing = len(values) - n >= fewest_rows(len(values))
        return "" if has_missing else _CONSTANT
    if (present != np.floor(present)).any():
        return ""
    if n > 2 and (np.diff(present) == 1).all():
        return _SEQUENCE
    steps = np.diff(np.sort(present))
    if n >= _FEWEST_CONSECUTIVE and (steps == 1).all():
        return _SEQUENCE
    return _ALL_DIFFERENT if n >= _FEWEST_IDS and (steps > 0).all() else ""


def parts_of(series: Any, column: TableColumn) -> list[Part]:
    """Return the values of a column that is used; raise ValueError at one of another kind."""
    name = str(column.name)
    if column.kind == "number":
        return [Part(name, numbers(series))]
    if column.kind == "boolean":
        return [Part(name, truth_values(series))]
    if column.kind == "category":
        return [Part(name, level_values(series))]
    moments = dates(series, column.date_format)
    return [date_part(name, moments, part) for part in column.parts]
