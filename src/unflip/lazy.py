"""Rows that stay where they are stored: read a block at a time, checked as they are read, never held as a whole.

Whatever slices like a 2-D array and has a shape and a dtype will do: a memory map, an HDF5 or Zarr data set, or
`unflip.parquet_rows.ParquetRows`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj
from array_api_compat import numpy as numpy_namespace
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_consistent_length, validate_data

from unflip._arrays import place
from unflip._namespaces import takes_as_it_is
from unflip._typing import FloatArray, IntArray, Rows

_NO_LABELS = "no_validation"  # as scikit-learn has it: None would be labels that are missing
_NUMBERS = "biuf"
_BLOCK_VALUES = 2**19  # numbers that are read at a time
_LARGEST_GAP = 16  # rows that are read along, rather than skipped by another reading


def is_lazy(X: object) -> bool:
    """Whether X is no array in memory, but has the shape, the dtype and the slices of a 2-D one."""
    if isinstance(X, LazyRows):
        return True
    if isinstance(X, np.memmap):
        return X.ndim == 2 and X.dtype.kind in _NUMBERS
    in_memory = is_array_api_obj(X) or issparse(X) or hasattr(X, "__dataframe__") or not hasattr(X, "dtype")
    return not in_memory and hasattr(X, "__getitem__") and len(getattr(X, "shape", ())) == 2


def validated(
    estimator: object,
    X: object,
    y: ArrayLike | None = _NO_LABELS,
    *,
    dtype: DTypeLike | list[type],
    reset: bool = True,
    ensure_min_samples: int = 1,
) -> Any:
    """Check rows of any kind, and labels where there are some, as scikit-learn's `validate_data` does.

    Rows that are read lazily come back as `LazyRows`, which are found to be finite or not when they are first read: a
    pass over the data less.
    """
    if takes_as_it_is(X) and not isinstance(dtype, list):  # who knows namespaces names their precisions
        name = type(estimator).__name__
        raise ValueError(f"{name} reads the rows by NumPy, but X is a {place(X)}: give a NumPy copy of X.")
    if not is_lazy(X):
        options = {"accept_sparse": "csr", "dtype": dtype, "ensure_min_samples": ensure_min_samples}
        return validate_data(estimator, X, y, reset=reset, **options)
    rows = LazyRows.of(X, dtype)
    _check_size(rows.shape, ensure_min_samples)
    validate_data(estimator, rows, y, reset=reset, skip_check_array=True)
    if isinstance(y, str) and y == _NO_LABELS:
        return rows
    labels = validate_data(estimator, y=y)
    check_consistent_length(rows, labels)
    return rows, labels


@contextmanager
def unchanged_on_error(estimator: object) -> Iterator[None]:
    """Give an estimator back the attributes it had, where fitting fails half-way."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


class _Source:
    """What rows are read from; it remembers up to which row they are known to be finite."""

    def __init__(self, given: Any) -> None:
        self.given, self.shape = given, (int(given.shape[0]), int(given.shape[1]))
        self._n_checked = 0

    def read(self, rows: slice, columns: slice, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return a block of neighbouring rows."""
        try:
            block = np.asarray(self.given[rows, columns])
        except Exception as error:
            raise RuntimeError(f"Rows {rows.start} to {rows.stop - 1} of X could not be read: {error}") from error
        shape = rows.stop - rows.start, len(range(*columns.indices(self.shape[1])))
        if block.shape != shape:
            raise RuntimeError(
                f"X has shape {self.shape}, but a block of shape {shape} from row {rows.start} on came as "
                f"{block.shape}: it must not change while it is read."
            )
        block = block.astype(dtype, copy=False)
        self._check_finite(block, rows, columns)
        return block

    def _check_finite(self, block: NDArray[Any], rows: slice, columns: slice) -> None:
        if rows.stop <= self._n_checked:
            return
        if not np.isfinite(block).all():
            row, column = (int(index[0]) for index in np.nonzero(~np.isfinite(block)))
            kind = "NaN" if np.isnan(block[row, column]) else "infinity"
            raise ValueError(
                f"Input X contains {kind}, in row {rows.start + row} and column {(columns.start or 0) + column}: give "
                "finite numbers, or leave such rows out."
            )
        if rows.start <= self._n_checked and block.shape[1] == self.shape[1]:
            self._n_checked = rows.stop


@dataclass(frozen=True, eq=False)
class LazyRows:
    """A 2-D array of floats of which blocks are read when they are asked for.

    Slices ``X[rows, columns]`` are arrays in memory. Indices or a mask of rows, ``X[indices]``, make another such
    object, which reads the rows that lie near each other together; indices must not fall.

    Attributes
    ----------
    source : _Source
        Where the rows are.
    dtype : dtype
        Single or double precision, which numbers of any other kind are turned into.
    chosen : ndarray of int or None
        Which of the source's rows these are; None for all.
    origin, unit : ndarray of shape (p,) and float
        What is subtracted from each row, and what it is divided by then.
    """

    source: _Source
    dtype: np.dtype[Any]
    chosen: IntArray | None = None
    origin: FloatArray | None = None
    unit: float = 1.0

    @classmethod
    def of(cls, X: Any, dtype: DTypeLike | list[type] = np.float64) -> LazyRows:
        """Take rows as they are stored, in one of these precisions: their own, or else the first."""
        precisions = [np.dtype(kind) for kind in (dtype if isinstance(dtype, list) else [dtype])]
        stored = np.dtype(X.dtype)
        if stored.kind not in _NUMBERS:
            raise ValueError(f"X holds values of dtype {stored}, which are no numbers: give integers or floats.")
        native = stored.newbyteorder("=")
        own = native if native in precisions else precisions[0]
        return replace(X, dtype=own) if isinstance(X, LazyRows) else cls(_Source(X), own)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""
        return self.source.shape[0] if self.chosen is None else len(self.chosen), self.source.shape[1]

    ndim = 2
    device = "cpu"

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """Blocks are NumPy arrays."""
        return numpy_namespace

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            return self._moved(self._read(*key), key[1])
        if isinstance(key, slice):
            return self[key, :]
        indices = np.asarray(key)
        indices = np.flatnonzero(indices) if indices.dtype == bool else indices
        if (np.diff(indices) < 0).any():
            raise ValueError("Rows that are read lazily are chosen in their order: sort the indices.")
        return replace(self, chosen=indices if self.chosen is None else self.chosen[indices])

    def rescaled(self) -> LazyRows:
        """Rows about the first and up to 1, which takes a pass over them."""
        about = replace(self, dtype=np.dtype(np.float64), origin=self[:1, :][0].astype(float))
        height = max(_BLOCK_VALUES // self.shape[1], 1)
        blocks = (about[start : start + height] for start in range(0, self.shape[0], height))
        return replace(about, unit=max(float(np.abs(block).max()) for block in blocks) or 1.0)

    def _read(self, rows: slice, columns: slice) -> NDArray[Any]:
        start, stop, step = rows.indices(self.shape[0])
        if self.chosen is None and step == 1:
            return self.source.read(slice(start, max(stop, start)), columns, self.dtype)
        wanted = np.arange(start, stop, step) if self.chosen is None else self.chosen[rows]
        return self._gathered(wanted, columns)

    def _gathered(self, wanted: IntArray, columns: slice) -> NDArray[Any]:
        """Read rows of indices that do not fall, those near each other together and no more than wanted at once."""
        found = np.empty((len(wanted), len(range(*columns.indices(self.shape[1])))), dtype=self.dtype)
        for part in _runs(wanted):
            first, last = int(wanted[part.start]), int(wanted[part.stop - 1])
            found[part] = self.source.read(slice(first, last + 1), columns, self.dtype)[wanted[part] - first]
        return found

    def _moved(self, block: NDArray[Any], columns: slice) -> NDArray[Any]:
        return block if self.origin is None else np.asarray((block - self.origin[columns]) / self.unit)


def as_rows(X: Any) -> Rows:
    """Return rows that are read lazily as `LazyRows` in double precision, and others as an array of it."""
    return LazyRows.of(X) if is_lazy(X) else np.asarray(X, dtype=float)


def _runs(wanted: IntArray) -> Iterator[slice]:
    """Cut indices that do not fall where a gap is wide, or what would be read is more than there are indices."""
    start = 0
    while start < len(wanted):
        stop = int(np.searchsorted(wanted, wanted[start] + max(len(wanted), 1)))
        wide = np.flatnonzero(np.diff(wanted[start:stop]) > _LARGEST_GAP)
        stop = start + int(wide[0]) + 1 if len(wide) else stop
        yield slice(start, stop)
        start = stop


def _check_size(shape: tuple[int, int], fewest: int) -> None:
    """Raise scikit-learn's errors for too few rows and for no features."""
    if shape[0] < fewest:
        raise ValueError(
            f"Found array with {shape[0]} sample(s) (shape={shape}) while a minimum of {fewest} is required."
        )
    if shape[1] < 1:
        raise ValueError(f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required.")
