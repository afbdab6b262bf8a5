"""Rows that stay in a file or on Dask workers: read one block at a time and checked when read.

Any object works that slices like a 2-D array and has a shape and a dtype: a memory map, an HDF5 or
Zarr data set, `unflip.data.parquet.ParquetRows`. Dask arrays and DataFrames work, too; their
workers read the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from array_api_compat import is_array_api_obj
from array_api_compat import numpy as numpy_namespace
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import issparse

from unflip._utils.typing import Array, FloatArray, IntArray
from unflip.data.engines.blocks import Blocks, engine_of, every_nth_row
from unflip.data.engines.engine import Engine, dask_engine, is_dask

# Most numbers in a block of mapped rows, 16 MiB in double precision: a pass holds a few blocks.
_MAPPED_VALUES = 2**21
_NUMERIC_KINDS = "biuf"  # NumPy's kinds of dtypes: booleans, integers and floats


def is_lazy(X: object) -> bool:
    """Whether X has the shape, dtype and slices of a 2-D array but is not an array in memory."""
    if isinstance(X, LazyRows) or is_dask(X):
        return True
    if isinstance(X, np.memmap):
        return X.ndim == 2 and X.dtype.kind in _NUMERIC_KINDS
    if is_array_api_obj(X) or issparse(X) or hasattr(X, "__dataframe__"):
        return False
    has_interface = hasattr(X, "dtype") and hasattr(X, "__getitem__")
    return has_interface and len(getattr(X, "shape", ())) == 2


class _Source:
    """An array-like to read rows from, and the number of its first rows known to be finite."""

    def __init__(self, array: Any, first_row: int = 0) -> None:
        self.array = array
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        self.n_checked = 0
        self._first_row = first_row

    def unchecked(self) -> _Source:
        """Return the same source with no row checked, because rows may have changed since."""
        return _Source(self.array, self._first_row)

    def read(
        self, rows: slice, columns: slice, dtype: np.dtype[Any], *, checked: bool = True
    ) -> NDArray[Any]:
        """Return consecutive rows; raise ValueError if one is not finite, unless not `checked`."""
        try:
            block = np.asarray(self.array[rows, columns])
        except Exception as error:
            raise RuntimeError(
                f"Rows {rows.start} to {rows.stop - 1} of X could not be read: {error}"
            ) from error
        shape = rows.stop - rows.start, _n_selected(columns, self.shape[1])
        if block.shape != shape:
            raise RuntimeError(
                f"X has shape {self.shape}, but the block of shape {shape} from row {rows.start} "
                f"was read with shape {block.shape}: X must not change while it is read."
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
                f"{(columns.start or 0) + column}: impute missing values, or drop such rows."
            )
        if rows.start <= self.n_checked and block.shape[1] == self.shape[1]:
            self.n_checked = rows.stop


@dataclass(frozen=True, eq=False)
class RowMapping:
    """A function of whole rows, such as the `transform` of a fitted transformer.

    Attributes
    ----------
    function : callable
        Returns an array with one row for each row of its argument.
    n_columns : int
        Number of columns that it returns.
    """

    function: Callable[[Any], Any]
    n_columns: int


@dataclass(frozen=True, eq=False)
class LazyRows:
    """A 2-D array of floats whose blocks are read when they are needed.

    Slices ``X[rows, columns]`` are arrays in memory. Row indices in ascending order or a mask of
    rows, ``X[indices]``, return another `LazyRows`, which reads rows that are close together at
    once.

    Attributes
    ----------
    source : _Source
        Where the rows are read from.
    precision : dtype
        float32 or float64; numbers of any other dtype are converted to it.
    chosen : ndarray of int or None
        Indices of the selected rows of the source; None for all.
    origin, unit : ndarray of shape (p,) and float
        Each row is returned as (row − origin) / unit.
    mapping : RowMapping or None
        Function of the stored rows that gives the rows; None if these are the stored ones.
    """

    source: Any
    precision: np.dtype[Any]
    chosen: IntArray | None = None
    origin: FloatArray | None = None
    unit: float = 1.0
    mapping: RowMapping | None = None

    ndim = 2
    device: ClassVar[Any] = "cpu"

    @classmethod
    def of(cls, X: Any, dtype: DTypeLike | list[type] = np.float64) -> LazyRows:
        """Return lazy rows in one of these precisions: the stored one if listed, or the first."""
        if is_dask(X):
            partitions = dask_engine().Partitions.of(X)
            return PartitionedRows(partitions, _precision(partitions.dtype, dtype))
        if isinstance(X, LazyRows):
            return X.restarted(_precision(X.precision, dtype))
        return cls(_Source(X), _precision(np.dtype(X.dtype), dtype))

    def restarted(self, precision: np.dtype[Any]) -> LazyRows:
        """Return the rows in a precision; they are checked again when they are read."""
        return replace(self, precision=precision, source=self.source.unchecked())

    def check_mapping(self) -> None:
        """Raise ValueError if functions of such rows are not supported."""

    def mapped(self, mapping: RowMapping) -> LazyRows:
        """Return a function of these rows, which every pass computes again."""
        self.check_mapping()
        return replace(self, mapping=mapping)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""
        n_rows, n_features = self.source.shape
        n_rows = n_rows if self.chosen is None else len(self.chosen)
        return n_rows, n_features if self.mapping is None else self.mapping.n_columns

    @property
    def header(self) -> Any:
        """Object with the number of features, and their names if they have any."""
        return self

    @property
    def _checked(self) -> bool:
        """Whether blocks are checked to be finite when they are read."""
        return True

    @property
    def dtype(self) -> Any:
        """Precision of the blocks, as a dtype of their namespace."""
        return self.precision

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """Blocks are NumPy arrays."""
        return numpy_namespace

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Read all rows."""
        return np.asarray(self.on_host(slice(None), slice(None)), dtype)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            return self.block(*key)
        if isinstance(key, slice):
            return self[key, :]
        indices = np.asarray(key)
        indices = np.flatnonzero(indices) if indices.dtype == bool else indices
        if (np.diff(indices) < 0).any():
            raise ValueError(
                "Row indices of lazily read rows must be in ascending order: sort the indices."
            )
        return replace(self, chosen=indices if self.chosen is None else self.chosen[indices])

    def engine(self, offset: Sequence[Array] = ()) -> Engine:
        """Return the engine that passes over the rows less an offset."""
        return Blocks(self, offset, None if self.mapping is None else _MAPPED_VALUES)

    def sample(self) -> Any:
        """Return evenly spaced rows, read once."""
        return self._sample

    @cached_property
    def _sample(self) -> Any:
        return every_nth_row(self)

    def rescaled(self) -> LazyRows:
        """Return the rows less the first, divided by their largest magnitude, after one pass."""
        about = replace(self, precision=np.dtype(np.float64), origin=self[:1, :][0].astype(float))
        largest = np.empty(self.shape[0])
        engine_of(about).fill(lambda block: (np.abs(block).max(),), largest)
        return replace(about, unit=float(largest.max()) or 1.0)

    @property
    def hosted(self) -> LazyRows:
        """The same rows as NumPy arrays."""
        return self

    def block(self, rows: slice, columns: slice) -> Any:
        """Return a part of the rows, as an array of their namespace."""
        return self.on_host(rows, columns)

    def on_host(self, rows: slice, columns: slice) -> NDArray[Any]:
        """Return a part of the rows, as a NumPy array."""
        block = self._read(rows, columns)
        if self.origin is None:
            return block
        return np.asarray((block - self.origin[columns]) / self.unit)

    def _read(self, rows: slice, columns: slice) -> NDArray[Any]:
        if self.mapping is None:
            return self._read_stored(rows, columns)
        values = self.mapping.function(self._read_stored(rows, slice(None)))
        return np.asarray(values, dtype=self.precision)[:, columns]

    def _read_stored(self, rows: slice, columns: slice) -> NDArray[Any]:
        start, stop, step = rows.indices(self.shape[0])
        if self.chosen is None and step == 1:
            return self._read_consecutive(slice(start, max(stop, start)), columns)
        indices = self._source_indices(rows)
        n_columns = _n_selected(columns, self.source.shape[1])
        values = np.empty((len(indices), n_columns), dtype=self.precision)
        for run in _runs(indices):
            first = int(indices[run.start])
            last = int(indices[run.stop - 1])
            block = self._read_consecutive(slice(first, last + 1), columns)
            values[run] = block[indices[run] - first]
        return values

    def _read_consecutive(self, rows: slice, columns: slice) -> NDArray[Any]:
        return np.asarray(self.source.read(rows, columns, self.precision, checked=self._checked))

    def _source_indices(self, rows: slice) -> IntArray:
        """Return the indices of a slice of the rows among those of the source."""
        return np.arange(*rows.indices(self.shape[0])) if self.chosen is None else self.chosen[rows]


@dataclass(frozen=True, eq=False)
class PartitionedRows(LazyRows):
    """Rows of a Dask collection (`dask_rows.Partitions`), read by the workers of Dask."""

    def restarted(self, precision: np.dtype[Any]) -> LazyRows:
        """Return the rows in a precision; workers check them whenever they read them."""
        return replace(self, precision=precision)

    @property
    def header(self) -> Any:
        """Object with the number of features, and their names if they have any."""
        return self.source.header

    def engine(self, offset: Sequence[Array] = ()) -> Engine:
        """Return the engine that passes over the rows less an offset."""
        dask_rows = dask_engine()
        pieces = []
        for group in self.source.groups():
            part = slice(group.start, group.stop)
            chosen = None
            if self.chosen is not None:
                part = slice(*np.searchsorted(self.chosen, [group.start, group.stop]).tolist())
                chosen = self.chosen[part] - group.start
            if part.stop > part.start:
                as_rows = partial(
                    _partition_rows,
                    group.start,
                    self.precision,
                    chosen,
                    self.origin,
                    self.unit,
                    self.mapping,
                )
                pieces.append(dask_rows.Piece(group, part, as_rows))
        engine: Engine = dask_rows.DaskBlocks(pieces, self.source.dtype, offset)
        return engine

    def partitioned(self, values: NDArray[Any]) -> Any:
        """Return an array with one entry per row as a Dask array with the rows' partitions."""
        return dask_engine().partitioned(values, self.source.lengths)

    def _read(self, rows: slice, columns: slice) -> NDArray[Any]:
        indices = self._source_indices(rows)
        n_columns = _n_selected(columns, self.shape[1])
        values = np.empty((len(indices), n_columns), dtype=self.precision)
        if values.size:
            selected = replace(self, chosen=indices, origin=None)
            selected.engine().fill(lambda block: (block[:, columns],), values)
        return values


def _partition_rows(
    first_row: int,
    dtype: np.dtype[Any],
    chosen: IntArray | None,
    origin: FloatArray | None,
    unit: float,
    mapping: RowMapping | None,
    values: NDArray[Any],
) -> LazyRows:
    """Return the rows of partitions in memory, the first of which is row `first_row` of all."""
    return LazyRows(_Source(values, first_row), dtype, chosen, origin, unit, mapping)


def _precision(stored: np.dtype[Any], dtype: DTypeLike | list[type]) -> np.dtype[Any]:
    """Return the stored precision if it is among these, or the first of these."""
    if stored.kind not in _NUMERIC_KINDS:
        raise ValueError(f"X has dtype {stored}, which is not numeric: pass integers or floats.")
    precisions = [np.dtype(kind) for kind in (dtype if isinstance(dtype, list) else [dtype])]
    native = stored.newbyteorder("=")
    return native if native in precisions else precisions[0]


def _n_selected(columns: slice, n_features: int) -> int:
    return len(range(*columns.indices(n_features)))


def _runs(indices: IntArray) -> Iterator[slice]:
    """Cut ascending indices into runs that are read at once.

    A run ends at a gap of more than 16 rows, and spans no more rows than there are indices.
    """
    start = 0
    while start < len(indices):
        stop = int(np.searchsorted(indices, indices[start] + len(indices)))
        wide_gaps = np.flatnonzero(np.diff(indices[start:stop]) > 16)
        stop = start + int(wide_gaps[0]) + 1 if len(wide_gaps) else stop
        yield slice(start, stop)
        start = stop
