"""The values of a column of a DataFrame: numbers, levels of a category, or parts of dates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import FloatArray
from unflip.data.chunks import LARGEST

# Strings that are missing values, as in data files.
_MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null"})
_TRUTH = {"true": 1.0, "false": 0.0}
# Share of numbers in a column of strings from which other strings are mistakes. A choice, as in
# data files: with fewer, the column is a category.
_MOSTLY_NUMBERS = 0.9
_DAYS = ("%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y", "%d %b %Y", "%b %d, %Y")
_TIMES = ("", " %H:%M", " %H:%M:%S")
# Formats of dates in strings, in the order in which they are tried; the month first, as in pandas.
_FORMATS = ("ISO8601", *map("".join, product(_DAYS, _TIMES)), "%H:%M", "%H:%M:%S")
_N_TRIED = 20  # strings that a format must read before it is tried on all
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
# Parts of dates: the attribute of pandas' `dt`, and names of its values; numbers have no names.
_DATE_PARTS: Mapping[str, tuple[str, Callable[[int], str] | None]] = {
    "year": ("year", None),
    "month": ("month", lambda month: _MONTHS[month - 1]),
    "day": ("day", None),
    "weekday": ("day_of_week", lambda day: _WEEKDAYS[day]),
    "hour": ("hour", lambda hour: f"{hour:02}"),
}
_ELAPSED = "elapsed"


@dataclass(frozen=True, eq=False)
class Part:
    """The values of a column, or of a part of a date: numbers, or levels of a category.

    Attributes
    ----------
    name : str
        Name for people, such as "age" or "signup weekday".
    values : ndarray of float or of object, shape (n,)
        Numbers, NaN if missing, or strings, None if missing.
    """

    name: str
    values: NDArray[Any]

    @property
    def is_number(self) -> bool:
        """Whether the values are numbers."""
        return bool(self.values.dtype.kind == "f")


@dataclass(frozen=True, eq=False)
class Levels:
    """The distinct values of a column.

    Attributes
    ----------
    codes : ndarray of int, shape (n,)
        Place of the value of each row among the distinct values; −1 if missing.
    cells : list
        The distinct values.
    strings : list of str
        The same as strings.
    """

    codes: NDArray[np.intp]
    cells: list[Any]
    strings: list[str]

    @classmethod
    def of(cls, series: Any) -> Levels | None:
        """Return the levels of a column; None if its values cannot be compared, such as lists."""
        try:
            codes, uniques = series.factorize()
        except TypeError:
            return None
        cells = list(uniques.tolist())
        strings = list(map(as_text, cells))
        present = [place for place, string in enumerate(strings) if string not in _MISSING]
        places = np.full(len(cells) + 1, -1)  # the last one is for code −1
        places[present] = np.arange(len(present))
        kept = [cells[place] for place in present]
        return cls(places[codes], kept, [strings[place] for place in present])

    @property
    def counts(self) -> NDArray[np.intp]:
        """Number of rows of each level."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.cells))

    @property
    def n_missing(self) -> int:
        """Number of rows without a value."""
        return int((self.codes < 0).sum())

    def spread(self, values: Sequence[Any] | NDArray[Any], missing: Any) -> NDArray[Any]:
        """Return the value of each row, for one value of each level."""
        dtype = object if missing is None else float
        padded = np.array([*values, missing], dtype=dtype)
        return np.asarray(padded[self.codes])


def as_text(cell: Any) -> str:
    """Return a cell as a stripped string; 1.0 becomes "1"."""
    if isinstance(cell, float | np.floating) and float(cell).is_integer():
        return str(int(cell))
    return str(cell).strip()


def strings(series: Any) -> list[str]:
    """Return a column as strings, empty if missing."""
    missing = series.isna().tolist()
    return [
        "" if is_missing else as_text(cell)
        for cell, is_missing in zip(series.tolist(), missing, strict=True)
    ]


def level_values(series: Any) -> NDArray[Any]:
    """Return a column as strings, None if missing."""
    levels = _levels(series, "a name")
    return levels.spread(levels.strings, None)


def numbers(series: Any) -> FloatArray:
    """Return a column as numbers, NaN if missing; raise ValueError at a cell that is none."""
    if series.dtype.kind == "m":
        values = series.dt.total_seconds().to_numpy(dtype=float)
    elif series.dtype.kind in "biuf":
        values = series.to_numpy(dtype=float, na_value=np.nan)
    else:
        levels = _levels(series, "a number")
        values = levels.spread(_all_read(series, levels, _read_numbers, "a number"), np.nan)
    too_large = np.flatnonzero(np.abs(values) > LARGEST)
    if len(too_large):
        row = int(too_large[0])
        raise ValueError(
            f"Column {series.name!r} has {values[row]} in row {row} (counted from 0), which is "
            "infinite or so large that its square overflows float64: correct it, make it missing, "
            "or ignore the column."
        )
    return np.asarray(values, dtype=float)


def number_lists(series: Any) -> FloatArray:
    """Return a column of numbers, or of lists of numbers, as an array of shape (n, p)."""
    first = next(iter(series))
    if not isinstance(first, list | tuple | np.ndarray):
        values = numbers(series)[:, None]
    else:
        try:
            values = np.array(series.tolist(), dtype=float).reshape(len(series), -1)
        except (TypeError, ValueError):
            raise ValueError(
                f"Column {series.name!r} must have lists of numbers of the same length."
            ) from None
    bad = np.flatnonzero(~(np.abs(values) <= LARGEST).all(axis=1))
    if len(bad):
        raise ValueError(
            f"Column {series.name!r} has a missing, infinite or too large number in row {bad[0]} "
            "(counted from 0): correct it, or remove the row."
        )
    return values


def are_numbers(series: Any, levels: Levels) -> bool:
    """Return whether strings are numbers; raise ValueError if a few of them are not."""
    if not levels.strings:
        return False
    read = ~np.isnan(_read_numbers(levels.strings))
    if read.all():
        return True
    if read[levels.codes[levels.codes >= 0]].mean() >= _MOSTLY_NUMBERS:
        raise ValueError(_not_a(series, levels.strings[int(read.argmin())], "a number"))
    return False


def are_truth_values(levels: Levels) -> bool:
    """Return whether all strings are "true" or "false"."""
    return bool(levels.strings) and not np.isnan(_read_truth_values(levels.strings)).any()


def truth_values(series: Any) -> FloatArray:
    """Return a column of booleans, or of 1 and 0, as numbers, NaN if missing."""
    if series.dtype.kind in "biuf":
        return numbers(series)
    levels = _levels(series, "true or false")
    return levels.spread(_all_read(series, levels, _read_truth_values, "true or false"), np.nan)


def date_format(levels: Levels) -> str:
    """Return the format that reads all strings as dates; empty if there is none."""
    if not levels.strings or not any(map(str.isdigit, levels.strings[0])):
        return ""
    if all(isinstance(cell, date) for cell in levels.cells):  # also datetime
        return _FORMATS[0]
    for tried in _FORMATS:
        if all(
            not _read_dates(some, tried).isna().any()
            for some in (levels.strings[:_N_TRIED], levels.strings)
        ):
            return tried
    return ""


def dates(series: Any, format_of_strings: str) -> Any:
    """Return a column as dates without a time zone; raise ValueError at a cell that is none."""
    if series.dtype.kind != "M":
        levels = _levels(series, "a date")
        read = _read_dates(levels.strings, format_of_strings or _FORMATS[0])
        if read.isna().any():
            wrong = levels.strings[int(read.isna().argmax())]
            raise ValueError(_not_a(series, wrong, "a date like those of the fit"))
        series = read.reindex(levels.codes).reset_index(drop=True)  # missing for code −1
    return series if series.dt.tz is None else series.dt.tz_localize(None)


def varying_parts(moments: Any) -> tuple[str, ...]:
    """Return the parts of dates that vary, the seconds elapsed first."""
    if moments.nunique() < 2:
        return ()
    accessor = moments.dt
    varying = [
        part for part, (name, _) in _DATE_PARTS.items() if getattr(accessor, name).nunique() > 1
    ]
    return (_ELAPSED, *varying)


def date_part(name: str, moments: Any, part: str) -> Part:
    """Return a part of dates: numbers, or names of months, weekdays or hours."""
    label = f"{name} {part}"
    if part == _ELAPSED:
        elapsed = moments.to_numpy() - np.datetime64(0, "s")
        return Part(label, np.asarray(elapsed / np.timedelta64(1, "s"), dtype=float))
    attribute, name_of = _DATE_PARTS[part]
    values = getattr(moments.dt, attribute).to_numpy(dtype=float, na_value=np.nan)
    if name_of is None:
        return Part(label, values)
    named = [None if np.isnan(value) else name_of(int(value)) for value in values]
    return Part(label, np.array(named, dtype=object))


def _levels(series: Any, what: str) -> Levels:
    """Return the levels of a column; raise ValueError if its cells are lists or other objects."""
    levels = Levels.of(series)
    if levels is None:
        raise ValueError(
            f"Column {series.name!r} has lists or other objects, which are not {what}: ignore it."
        )
    return levels


def _all_read(
    series: Any, levels: Levels, read: Callable[[Sequence[str]], FloatArray], what: str
) -> FloatArray:
    """Return the values of all levels; raise ValueError at one that cannot be read."""
    values = read(levels.strings)
    wrong = np.flatnonzero(np.isnan(values))
    if len(wrong):
        raise ValueError(_not_a(series, levels.strings[int(wrong[0])], what))
    return values


def _read_numbers(texts: Sequence[str]) -> FloatArray:
    """Return strings as numbers, NaN if they are none."""
    pandas = import_module("pandas")
    values = pandas.to_numeric(pandas.Series(texts, dtype=object), errors="coerce")
    return np.asarray(values, dtype=float)


def _read_truth_values(texts: Sequence[str]) -> FloatArray:
    """Return "true" and "false" as 1 and 0, NaN for other strings."""
    return np.array([_TRUTH.get(text.lower(), np.nan) for text in texts], dtype=float)


def _read_dates(texts: Sequence[str], format_of_strings: str) -> Any:
    """Return strings as dates in UTC, NaT if they are none."""
    pandas = import_module("pandas")
    series = pandas.Series(texts, dtype=object)
    return pandas.to_datetime(series, format=format_of_strings, errors="coerce", utc=True)


def _not_a(series: Any, text: str, what: str) -> str:
    """Return the error message about a cell of another kind than its column."""
    row = next(row for row, cell in enumerate(series.tolist()) if as_text(cell) == text)
    return (
        f"Column {series.name!r} has {text[:40]!r} in row {row} (counted from 0), which is not "
        f"{what}: correct it, make it missing, or ignore the column."
    )
