"""Rows that stay where they are stored: read a block at a time, checked as they are read, never held as a whole.

Whatever slices like a 2-D array and has a shape and a dtype will do: a memory map, an HDF5 or Zarr
data set, `unflip.data.parquet.ParquetRows`. Dask arrays and DataFrames will, too; their rows
are read where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial, wraps
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from array_api_compat import is_array_api_obj
from array_api_compat import numpy as numpy_namespace
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from unflip._utils.arrays import place
from unflip._utils.namespaces import takes_as_it_is
from unflip._utils.typing import Array, FloatArray, IntArray, Rows
from unflip._utils.validation import check_unmasked, reading_rows
from unflip.data.engines.blocks import Blocks, engine_of, every_nth_row
from unflip.data.engines.engine import Engine, dask_engine, is_dask

_NO_LABELS = "no_validation"  # as scikit-learn has it: None would be labels that are missing
_NUMBERS = "biuf"
_LARGEST_GAP = 16  # rows that are read along, rather than skipped by another reading


def is_lazy(X: object) -> bool:
    """Whether X is no array in memory, but has the shape, the dtype and the slices of a 2-D one."""
    if isinstance(X, LazyRows) or is_dask(X):
        return True
    if isinstance(X, np.memmap):
        return X.ndim == 2 and X.dtype.kind in _NUMBERS
    in_memory = (
        is_array_api_obj(X) or issparse(X) or hasattr(X, "__dataframe__") or not hasattr(X, "dtype")
    )
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

    Rows that are read lazily come back as `LazyRows`, which are found to be finite or not when they
    are first read: a pass over the data less.
    """
    y = in_memory(y)
    check_unmasked(y=y)
    if takes_as_it_is(X) and not isinstance(
        dtype, list
    ):  # who knows namespaces names their precisions
        name = type(estimator).__name__
        raise ValueError(
            f"{name} reads the rows by NumPy, but X is a {place(X)}: give a NumPy copy of X."
        )
    if not is_lazy(X):
        options = {"accept_sparse": "csr", "dtype": dtype, "ensure_min_samples": ensure_min_samples}
        # scikit-learn's sum of all numbers may overflow both ways: then it looks at each.
        with reading_rows(X), np.errstate(invalid="ignore"):  # told by what it finds then
            return validate_data(estimator, X, y, reset=reset, **options)
    rows = LazyRows.of(X, dtype)
    _check_size(rows.shape, ensure_min_samples)
    unlabelled = isinstance(y, str) and y == _NO_LABELS
    labels = None if unlabelled else validate_data(estimator, y=y)
    validate_data(
        estimator, rows.header, reset=reset, skip_check_array=True
    )  # last, as it learns the names
    if labels is None:
        return rows
    check_consistent_length(rows, labels)
    return rows, labels


def row_by_row(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Let a method of a fitted estimator take Dask collections, too: it is applied to partitions once that is wanted.

    What is sent to the workers is what the estimator's ``_alone()`` returns.
    """

    @wraps(method)
    def of_any(estimator: Any, X: Any) -> Any:
        if not is_dask(X):
            return method(estimator, X)
        check_is_fitted(estimator)
        return dask_engine().lazily(getattr(estimator._alone(), method.__name__), X)

    return of_any


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

    def __init__(self, given: Any, first_row: int = 0) -> None:
        self.given, self.shape = given, (int(given.shape[0]), int(given.shape[1]))
        self._first_row, self.n_checked = first_row, 0

    def anew(self) -> _Source:
        """Return the same rows, not checked yet: they may have changed since they were."""
        return _Source(self.given, self._first_row)

    def read(
        self, rows: slice, columns: slice, dtype: np.dtype[Any], *, checked: bool = True
    ) -> NDArray[Any]:
        """Return a block of neighbouring rows; whether they are finite is checked, or left to the caller."""
        try:
            block = np.asarray(self.given[rows, columns])
        except Exception as error:
            raise RuntimeError(
                f"Rows {rows.start} to {rows.stop - 1} of X could not be read: {error}"
            ) from error
        shape = rows.stop - rows.start, len(range(*columns.indices(self.shape[1])))
        if block.shape != shape:
            raise RuntimeError(
                f"X has shape {self.shape}, but a block of shape {shape} from row {rows.start} on "
                f"came as {block.shape}: it must not change while it is read."
            )
        block = block.astype(dtype, copy=False)
        if checked:
            self._check_finite(block, rows, columns)
        return block

    def _check_finite(self, block: NDArray[Any], rows: slice, columns: slice) -> None:
        if rows.stop <= self.n_checked:
            return
        if not np.isfinite(block).all():
            row, column = (int(index[0]) for index in np.nonzero(~np.isfinite(block)))
            kind = "NaN" if np.isnan(block[row, column]) else "infinity"
            raise ValueError(
                f"Input X contains {kind}, in row {self._first_row + rows.start + row} and column "
                f"{(columns.start or 0) + column}: give finite numbers, or leave such rows out."
            )
        if rows.start <= self.n_checked and block.shape[1] == self.shape[1]:
            self.n_checked = rows.stop


@dataclass(frozen=True, eq=False)
class LazyRows:
    """A 2-D array of floats of which blocks are read when they are asked for.

    Slices ``X[rows, columns]`` are arrays in memory. Indices or a mask of rows, ``X[indices]``,
    make another such object, which reads the rows that lie near each other together; indices must
    not fall.

    Attributes
    ----------
    source : _Source
        Where the rows are.
    precision : dtype
        Single or double, which numbers of any other kind are turned into.
    chosen : ndarray of int or None
        Which of the source's rows these are; None for all.
    origin, unit : ndarray of shape (p,) and float
        What is subtracted from each row, and what it is divided by then.
    """

    source: Any
    precision: np.dtype[Any]
    chosen: IntArray | None = None
    origin: FloatArray | None = None
    unit: float = 1.0

    @classmethod
    def of(cls, X: Any, dtype: DTypeLike | list[type] = np.float64) -> LazyRows:
        """Take rows as they are stored, in one of these precisions: their own, or else the first."""
        X = _partitions(X) if is_dask(X) else X
        precisions = [np.dtype(kind) for kind in (dtype if isinstance(dtype, list) else [dtype])]
        stored = X.precision if isinstance(X, LazyRows) else np.dtype(X.dtype)
        if stored.kind not in _NUMBERS:
            raise ValueError(
                f"X holds values of dtype {stored}, which are no numbers: give integers or floats."
            )
        native = stored.newbyteorder("=")
        own = native if native in precisions else precisions[0]
        if isinstance(X, LazyRows):
            return replace(
                X,
                precision=own,
                source=X.source.anew() if isinstance(X.source, _Source) else X.source,
            )
        return PartitionedRows(X, own) if hasattr(X, "groups") else cls(_Source(X), own)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""
        return self.source.shape[0] if self.chosen is None else len(self.chosen), self.source.shape[
            1
        ]

    @property
    def header(self) -> Any:
        """What tells the number of features, and their names where they have some."""
        return self

    ndim = 2
    device: ClassVar[Any] = "cpu"

    @property
    def _checked(self) -> bool:
        """Whether blocks are found to be finite or not when they are read."""
        return True

    @property
    def dtype(self) -> Any:
        """Precision of the blocks, as their array library has it."""
        return self.precision

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """Blocks are NumPy arrays."""
        return numpy_namespace

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            return self.block(*key)
        if isinstance(key, slice):
            return self[key, :]
        indices = np.asarray(key)
        indices = np.flatnonzero(indices) if indices.dtype == bool else indices
        if (np.diff(indices) < 0).any():
            raise ValueError(
                "Rows that are read lazily are chosen in their order: sort the indices."
            )
        return replace(self, chosen=indices if self.chosen is None else self.chosen[indices])

    def engine(self, offset: Sequence[Array] = ()) -> Engine:
        """Return who walks the rows less an offset."""
        return Blocks(self, offset)

    def sample(self) -> Any:
        """Return evenly spaced rows; kept, because they may lie anywhere."""
        return self._sample

    @cached_property
    def _sample(self) -> Any:
        return every_nth_row(self)

    def rescaled(self) -> LazyRows:
        """Rows about the first and up to 1, which takes a pass over them."""
        about = replace(self, precision=np.dtype(np.float64), origin=self[:1, :][0].astype(float))
        largest = np.empty(self.shape[0])
        engine_of(about).fill(lambda block: (np.abs(block).max(),), largest)
        return replace(about, unit=float(largest.max()) or 1.0)

    @property
    def hosted(self) -> LazyRows:
        """The rows as the host has them."""
        return self

    def block(self, rows: slice, columns: slice) -> Any:
        """Return a part of the rows, as an array."""
        return self.on_host(rows, columns)

    def on_host(self, rows: slice, columns: slice) -> NDArray[Any]:
        """Return a part of the rows, as a NumPy array."""
        return self._moved(self._read(rows, columns), columns)

    def _read(self, rows: slice, columns: slice) -> NDArray[Any]:
        start, stop, step = rows.indices(self.shape[0])
        if self.chosen is None and step == 1:
            part = slice(start, max(stop, start))
            return np.asarray(
                self.source.read(part, columns, self.precision, checked=self._checked)
            )
        wanted = np.arange(start, stop, step) if self.chosen is None else self.chosen[rows]
        return self._gathered(wanted, columns)

    def _gathered(self, wanted: IntArray, columns: slice) -> NDArray[Any]:
        """Read rows of indices that do not fall, those near each other together and no more than wanted at once."""
        found = np.empty(
            (len(wanted), len(range(*columns.indices(self.shape[1])))), dtype=self.precision
        )
        for part in _runs(wanted):
            first, last = int(wanted[part.start]), int(wanted[part.stop - 1])
            block = self.source.read(
                slice(first, last + 1), columns, self.precision, checked=self._checked
            )
            found[part] = block[wanted[part] - first]
        return found

    def _moved(self, block: NDArray[Any], columns: slice) -> NDArray[Any]:
        return (
            block if self.origin is None else np.asarray((block - self.origin[columns]) / self.unit)
        )


@dataclass(frozen=True, eq=False)
class PartitionedRows(LazyRows):
    """Rows that the workers of Dask hold or read (`unflip.data.engines.dask_rows.Partitions`), and walk."""

    @property
    def header(self) -> Any:
        """What tells the number of features, and their names where they have some."""
        return self.source.header

    def engine(self, offset: Sequence[Array] = ()) -> Engine:
        """Return who walks the rows less an offset."""
        dask_rows, pieces = dask_engine(), []
        for group in self.source.groups():
            part, chosen = slice(group.start, group.stop), None
            if self.chosen is not None:
                part = slice(*np.searchsorted(self.chosen, [group.start, group.stop]).tolist())
                chosen = self.chosen[part] - group.start
            if part.stop > part.start:
                opened = partial(
                    _part_in_memory, group.start, self.precision, chosen, self.origin, self.unit
                )
                pieces.append(dask_rows.Piece(group, part, opened))
        engine: Engine = dask_rows.DaskBlocks(pieces, self.source.dtype, offset)
        return engine

    def partitioned(self, values: NDArray[Any]) -> Any:
        """Return an array with an entry for each row as a Dask array with the partitions of the rows."""
        return dask_engine().partitioned(values, self.source.lengths)

    def _read(self, rows: slice, columns: slice) -> NDArray[Any]:
        """Have workers send rows."""
        wanted = (
            np.arange(*rows.indices(self.shape[0])) if self.chosen is None else self.chosen[rows]
        )
        found = np.empty(
            (len(wanted), len(range(*columns.indices(self.shape[1])))), dtype=self.precision
        )
        if found.size:
            replace(self, chosen=wanted, origin=None).engine().fill(
                lambda block: (block[:, columns],), found
            )
        return found


def _part_in_memory(
    first_row: int,
    dtype: np.dtype[Any],
    chosen: IntArray | None,
    origin: FloatArray | None,
    unit: float,
    values: NDArray[Any],
) -> LazyRows:
    """Return rows of a part of the data that is in memory, from `first_row` on."""
    return LazyRows(_Source(values, first_row), dtype, chosen, origin, unit)


def _partitions(X: Any) -> Any:
    return dask_engine().Partitions.of(X)


def in_memory(values: Any) -> Any:
    """Return labels or weights that Dask holds as an array, and others as they are."""
    return dask_engine().in_memory(values) if is_dask(values) else values


def opened(X: Any) -> Any:
    """Return a Dask collection as `LazyRows`, of which results are in memory, and other rows as they are."""
    return LazyRows.of(X, [np.float64, np.float32]) if is_dask(X) else X


def as_rows(X: Any) -> Rows:
    """Return rows that are read lazily as `LazyRows` in double precision, others as an array; single stays single."""
    if is_lazy(X):
        return LazyRows.of(X)
    return np.asarray(
        X, dtype=np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
    )


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
            f"Found array with {shape[0]} sample(s) (shape={shape}) while a minimum of {fewest} is "
            "required."
        )
    if shape[1] < 1:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required."
        )
