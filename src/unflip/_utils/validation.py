"""Validation of parameters; errors name the parameter, its value and a remedy."""

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

# Kinds of dtypes that NumPy would convert to floats: complex numbers, durations and dates.
_NOT_REAL = "cmM"
_ROUNDING = 1e-3  # by which the probabilities of a row may fail to sum to 1
_SHORT = Repr()
_SHORT.maxlong = _SHORT.maxother = _SHORT.maxstring = 120  # characters of a value in an error


def shown(value: object) -> str:
    """Return the repr of a value for an error, shortened if it is long."""
    return _SHORT.repr(value)


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Return values as an array; raise ValueError for rows of different lengths, or a mask."""
    check_unmasked(**{name: values})
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(
            f"{name} = {shown(values)} must be an array: pass rows of one length."
        ) from None


def as_floats(values: Any, name: str) -> NDArray[np.float64]:
    """Copy values into a new float array; raise ValueError if they are not numbers."""
    check_unmasked(**{name: values})
    try:
        array = np.asarray(values)
        if array.dtype.kind not in _NOT_REAL:
            return np.array(array, dtype=float)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{name} = {shown(values)} must hold numbers, all rows of one length.")


def as_number(value: object, name: str) -> float:
    """Return one number as a float, NaN and ±∞ included; raise ValueError for anything else."""
    number = as_floats(value, name)
    if number.ndim:
        raise ValueError(f"{name} = {shown(value)} must be one number.")
    return float(number)


def as_count(value: Any, name: str, *, least: int = 0, most: int = np.iinfo(np.intp).max) -> int:
    """Return a whole number within bounds as an int; raise ValueError for anything else."""
    try:
        count = operator.index(value)
    except TypeError:
        count = least - 1
    if isinstance(value, bool | np.bool_) or not least <= count <= most:
        is_bounded = most < np.iinfo(np.intp).max
        limits = f"between {least} and {most}" if is_bounded else f"of at least {least}"
        raise ValueError(f"{name} = {shown(value)} must be a whole number {limits}.")
    return count


def as_flag(value: object, name: str) -> bool:
    """Return True or False; raise ValueError for anything else."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} = {shown(value)} must be True or False.")
    return bool(value)


def as_path(value: object, name: str) -> Path:
    """Return the path of a file or folder; raise TypeError for anything else."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name} = {shown(value)} must be a path: pass a str or a pathlib.Path.")
    return Path(value)


def improper_row(probabilities: NDArray[np.float64]) -> int | None:
    """Return the first row that is not a probability distribution, up to rounding; None if all are.

    Parameters
    ----------
    probabilities : ndarray of shape (n, k)
        Probability of each class.
    """
    sums = probabilities.sum(axis=1)
    is_proper = (probabilities >= 0).all(axis=1) & (np.abs(sums - 1) <= _ROUNDING)
    return None if is_proper.all() else int(np.argmin(is_proper))


def check_choice(value: object, choices: Sequence[str], name: str) -> None:
    """Raise ValueError unless a value is one of these strings."""
    if not isinstance(value, str) or value not in choices:
        *first, last = map(repr, choices)
        raise ValueError(
            f"{name}={shown(value)} is not a valid value: use {', '.join(first)} or {last}."
        )


def check_kind(value: object, kind: type | tuple[type, ...], name: str, remedy: str) -> None:
    """Raise ValueError unless a value is of a type; the message ends with the remedy."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds):
        names = " or ".join(each.__name__ for each in kinds)
        raise ValueError(f"{name} = {shown(value)} must be a {names}: {remedy}.")


def check_unmasked(**arrays: object) -> None:
    """Raise ValueError if an argument is a masked array, whose mask would be lost."""
    for name, values in arrays.items():
        if isinstance(values, np.ma.MaskedArray):
            raise ValueError(
                f"{name} is a masked array, which is not supported: fill in the masked values, or "
                "drop such rows."
            )


@contextmanager
def reading_rows(X: Any) -> Iterator[None]:
    """Raise errors for X with a mask, dates, durations, or integers beyond the range of floats."""
    check_unmasked(X=X)
    dtypes: Any = getattr(X, "dtypes", getattr(X, "dtype", None))  # one, or one for each column
    for dtype in np.atleast_1d(dtypes):
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
    """Raise ValueError if the square of the largest feature, or a sum of squares, leaves float64.

    A largest feature of 0 is valid.
    """
    limits = np.finfo(float)
    if largest and not np.sqrt(limits.tiny) < largest < np.sqrt(limits.max / n_values):
        raise ValueError(
            f"The largest magnitude in X is {largest:.2g}, whose square over- or underflows "
            "float64: rescale X."
        )
