"""Reading parameters from whatever a caller gives, with an error that names the parameter."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from reprlib import Repr
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LIMITS = np.finfo(float)
_NO_NUMBERS = (
    "cmM"  # kinds of arrays that NumPy would turn into floats: complex numbers, durations and dates
)
_LONGEST = 120  # characters of a value in an error
_SHORT = Repr()
_SHORT.maxlong = _SHORT.maxother = _SHORT.maxstring = _LONGEST


def shown(value: object) -> str:
    """Return a value as an error shows it, cut where it is long."""
    return _SHORT.repr(value)


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Return values as an array of any kind, or say which argument has rows of several lengths, or a mask."""
    check_unmasked(**{name: values})
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(
            f"{name} = {shown(values)} must be an array: give rows of one length."
        ) from None


def as_floats(values: Any, name: str) -> NDArray[np.float64]:
    """Copy values into a new float array, or say which argument does not hold numbers."""
    check_unmasked(**{name: values})
    try:
        found = np.asarray(values)
        if found.dtype.kind not in _NO_NUMBERS:
            return np.array(found, dtype=float)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{name} = {shown(values)} must hold numbers, all rows of one length.")


def as_number(value: object, name: str) -> float:
    """Return one number as a float, NaN and ±∞ included, or say which argument is none."""
    number = as_floats(value, name)
    if number.ndim:
        raise ValueError(f"{name} = {shown(value)} must be one number.")
    return float(number)


def as_count(value: Any, name: str, *, least: int = 0, most: int = np.iinfo(np.intp).max) -> int:
    """Return a whole number within bounds as an int, or say which argument is none."""
    try:
        count = operator.index(value)
    except TypeError:
        count = least - 1
    if isinstance(value, bool | np.bool_) or not least <= count <= most:
        limits = (
            f"between {least} and {most}"
            if most < np.iinfo(np.intp).max
            else f"of at least {least}"
        )
        raise ValueError(f"{name} = {shown(value)} must be a whole number {limits}.")
    return count


def as_flag(value: object, name: str) -> bool:
    """Return True or False, or say which argument is neither."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} = {shown(value)} must be True or False.")
    return bool(value)


def as_path(value: object, name: str) -> Path:
    """Return the path of a file or folder, or say which argument is none."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name} = {shown(value)} must be a path: give a str or a pathlib.Path.")
    return Path(value)


def check_choice(value: object, choices: Sequence[str], name: str) -> None:
    """Raise unless a value is one of these words."""
    if not isinstance(value, str) or value not in choices:
        *others, last = map(repr, choices)
        raise ValueError(f"{name}={shown(value)} is not known: use {', '.join(others)} or {last}.")


def check_kind(value: object, kind: type | tuple[type, ...], name: str, remedy: str) -> None:
    """Raise unless a value is of a kind; the remedy completes the error after a colon."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds):
        wanted = " or ".join(each.__name__ for each in kinds)
        raise ValueError(f"{name} = {shown(value)} must be a {wanted}: {remedy}.")


def check_unmasked(**arrays: object) -> None:
    """Raise where an argument is a masked array, whose mask would be lost."""
    for name, values in arrays.items():
        if isinstance(values, np.ma.MaskedArray):
            raise ValueError(
                f"{name} is a masked array, and masks are not read: fill it in, or leave such rows "
                "out."
            )


@contextmanager
def reading_rows(X: Any) -> Iterator[None]:
    """Raise where rows have a mask, dates or durations, which would be taken for numbers, or numbers beyond floats."""
    check_unmasked(X=X)
    for dtype in getattr(X, "dtypes", [getattr(X, "dtype", None)]):
        if getattr(dtype, "kind", "") in ("m", "M"):
            raise TypeError(
                f"X holds values of dtype {dtype}: turn them into numbers, such as days since a "
                "date."
            )
    try:
        yield
    except OverflowError:
        raise ValueError("X holds a number that is too large for a float: rescale X.") from None


def check_squares(largest: float, n_values: int) -> None:
    """Raise where squares of features up to `largest`, or the sum of so many, are no numbers; all may be 0."""
    if largest and not np.sqrt(_LIMITS.tiny) < largest < np.sqrt(_LIMITS.max / n_values):
        raise ValueError(
            f"The largest feature of X is {largest:.2g}, and its square no number: rescale X."
        )
