"""Parquet files, read with pyarrow: as lazy rows, or as chunks of rows.

Needs ``pip install "unflip[parquet]"``. pyarrow is imported when a file is first opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from unflip._utils.typing import FloatArray

Path = str | os.PathLike[str]

# Numbers in a chunk, 16 MiB in double precision.
_CHUNK_VALUES = 2**21
# Most numbers of cached row groups: blocks end within a group, which is then needed again.
_CACHED_VALUES = 2**22


class ParquetRows:
    """Columns of Parquet files as one 2-D array that is read by slices.

    Whole row groups are read and the last ones are cached. Row groups of about a million numbers
    work best. Needs pyarrow (``pip install "unflip[parquet]"``).

    Parameters
    ----------
    paths : path, or sequence of paths
        The files, in the order of their rows.
    columns : sequence of str, optional
        Names of the columns, in the order of the features; all columns of the first file by
        default.
    dtype : {float32, float64}, optional
        Precision of the numbers; by default float32 if it represents the stored dtypes exactly,
        float64 otherwise.

    Attributes
    ----------
    columns : list of str
        Names of the columns.
    dtype : dtype
        Precision of the numbers.
    shape : tuple of int
        Numbers of rows and of columns.

    Raises
    ------
    ValueError
        If a file is not a Parquet file, lacks a column, or holds values that are not numeric.

    Examples
    --------
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> from tempfile import TemporaryDirectory
    >>> from unflip.data.parquet import ParquetRows
    >>> with TemporaryDirectory() as folder:
    ...     pq.write_table(pa.table({"a": [1.0, 2.0], "b": [3.0, 4.0]}), f"{folder}/x.parquet")
    ...     rows = ParquetRows(f"{folder}/x.parquet", columns=["b", "a"])
    ...     rows[1:, :]
    array([[4., 2.]])
    """

    def __init__(
        self,
        paths: Path | Sequence[Path],
        columns: Sequence[str] | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        files = as_paths(paths)
        self._files = [open_parquet(path) for path in files]
        self.columns = list(self._files[0].schema_arrow.names if columns is None else columns)
        for path, file in zip(files, self._files, strict=True):
            _check_numeric(path, file, self.columns)
        if dtype is None:
            precisions = [_precision(file, self.columns) for file in self._files]
            self.dtype = max(precisions, key=lambda precision: precision.itemsize)
        else:
            self.dtype = np.dtype(dtype)
        if self.dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype={dtype!r} is not supported: use float32 or float64.")
        self._groups = [
            (file, index) for file in self._files for index in range(file.num_row_groups)
        ]
        sizes = (file.metadata.row_group(index).num_rows for file, index in self._groups)
        self._starts = np.array([0, *accumulate(sizes)])
        self._cache: dict[tuple[int, tuple[int, int, int]], NDArray[Any]] = {}
        self._lock = Lock()  # pyarrow's files are not thread-safe

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""
        return int(self._starts[-1]), len(self.columns)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: slice | tuple[slice, slice]) -> NDArray[Any]:
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        if not (isinstance(rows, slice) and isinstance(columns, slice)):
            raise TypeError(f"ParquetRows takes slices, not [{key!r}].")
        start, stop, step = rows.indices(self.shape[0])
        selected = columns.indices(len(self.columns))
        if step != 1:
            raise ValueError(f"ParquetRows takes slices of step 1, not a step of {step}.")
        values = np.empty((max(stop - start, 0), len(range(*selected))), dtype=self.dtype)
        for index in self._groups_of(start, stop):
            first = int(self._starts[index])
            last = int(self._starts[index + 1])
            low = max(start, first)
            high = min(stop, last)
            group = self._group(index, selected)
            values[low - start : high - start] = group[low - first : high - first]
        return values

    def _groups_of(self, start: int, stop: int) -> Iterable[int]:
        """Return the indices of the row groups that hold these rows."""
        if stop <= start:
            return range(0)
        first, last = np.searchsorted(self._starts, [start, stop - 1], side="right") - 1
        return range(int(first), int(last) + 1)

    def _group(self, index: int, columns: tuple[int, int, int]) -> NDArray[Any]:
        """Return columns of a row group, from the cache or from its file."""
        key = (index, columns)
        with self._lock:
            if key not in self._cache:
                file, position = self._groups[index]
                names = self.columns[slice(*columns)]
                values = _as_array(file.read_row_group(position, columns=names), names, self.dtype)
                while self._cache and values.size + self._n_cached() > _CACHED_VALUES:
                    del self._cache[next(iter(self._cache))]
                self._cache[key] = values
            return self._cache[key]

    def _n_cached(self) -> int:
        return sum(group.size for group in self._cache.values())


def _check_numeric(path: Path, file: Any, columns: list[str]) -> None:
    """Raise ValueError if a file lacks a column, or holds values that are not numeric in it."""
    from pyarrow import types

    if not columns:
        raise ValueError(f"columns is empty: choose among {file.schema_arrow.names} of {path}.")
    _check_columns(path, file, columns)
    for name in columns:
        kind = file.schema_arrow.field(name).type
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            raise ValueError(
                f"Column {name!r} of {path} holds {kind}, not numbers: choose numeric columns with "
                "columns=."
            )


def _precision(file: Any, columns: list[str]) -> np.dtype[Any]:
    """Return float32 if it represents the dtypes of these columns exactly, float64 otherwise."""
    dtypes = [np.dtype(file.schema_arrow.field(name).type.to_pandas_dtype()) for name in columns]
    fits_single = all(np.can_cast(dtype, np.float32) for dtype in dtypes)
    return np.dtype(np.float32 if fits_single else np.float64)


def _as_array(table: Any, names: list[str], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a table as an array; missing values become NaN."""
    values = np.empty((table.num_rows, len(names)), dtype=dtype)
    for index, name in enumerate(names):
        values[:, index] = table.column(name).to_numpy()
    return values


def parquet_chunks(
    paths: Iterable[Path], *, label: str, features: Sequence[str], sample_weight: str | None = None
) -> Iterator[tuple[FloatArray, NDArray[Any], FloatArray | None]]:
    """Yield chunks (X, y, sample_weight); parameters are those of `Moments.from_parquet`."""
    columns = [*features, label]
    if sample_weight is not None:
        columns.append(sample_weight)
    height = max(_CHUNK_VALUES // max(len(features), 1), 1)
    for path in paths:
        file = open_parquet(path)
        _check_columns(path, file, columns)
        for batch in file.iter_batches(batch_size=height, columns=columns):
            X = np.column_stack([_numbers(batch, name, path) for name in features])
            weights = None if sample_weight is None else _numbers(batch, sample_weight, path)
            yield X, _values(batch, label), weights


def _values(batch: Any, name: str) -> NDArray[Any]:
    from pyarrow import types

    column = batch.column(name)
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _numbers(batch: Any, name: str, path: Path) -> FloatArray:
    try:
        return np.asarray(_values(batch, name), dtype=np.float64)
    except (TypeError, ValueError):
        kind = batch.schema.field(name).type
        raise ValueError(
            f"Column {name!r} of {path} holds {kind}, not numbers: leave it out of features, or "
            "encode it."
        ) from None


def open_parquet(path: Path) -> Any:
    """Return a pyarrow ParquetFile; raise ValueError if the file is not in Parquet format."""
    try:
        from pyarrow import ArrowInvalid
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise ImportError('Parquet files need pyarrow: pip install "unflip[parquet]".') from None
    try:
        return ParquetFile(path)
    except ArrowInvalid as error:
        raise ValueError(f"{path} is not a Parquet file or is damaged ({error}).") from None


def _check_columns(path: Path, file: Any, columns: list[str]) -> None:
    """Raise ValueError if a file lacks a column."""
    for name in columns:
        if name not in file.schema_arrow.names:
            raise ValueError(
                f"{path} has no column {name!r}: it has {', '.join(file.schema_arrow.names)}."
            )


def as_paths(paths: Path | Iterable[Path]) -> list[Path]:
    """Return one path or several as a list; raise ValueError if it is empty."""
    files = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not files:
        raise ValueError("paths is empty: pass at least one Parquet file.")
    return files


def column_names(path: Path) -> list[str]:
    """Return the column names of a file."""
    return list(open_parquet(path).schema_arrow.names)
