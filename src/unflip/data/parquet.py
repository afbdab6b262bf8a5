"""Parquet files, by pyarrow: as lazy rows, as chunks of samples, and as columns of a table.

Needs ``pip install "unflip[parquet]"``. pyarrow is imported when a file is first opened.
"""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from unflip._utils.typing import FloatArray

Path = str | os.PathLike[str]

_CHUNK_VALUES = 2**21  # numbers of a chunk
_LARGEST_CACHE = 2**22  # numbers of row groups that are kept: blocks end within a group


class ParquetRows:
    """A 2-D array of the columns of Parquet files, one below the other, that slices are read from.

    Whole row groups are read, and the last is kept, with some before it while they are small:
    groups of about a million numbers suit best. It needs pyarrow (``pip install
    "unflip[parquet]"``).

    Parameters
    ----------
    paths : path, or sequence of paths
        The files, in the order of their rows.
    columns : sequence of str, optional
        Names of the columns, in the order of the features; all columns of the first file by
        default.
    dtype : {float32, float64}, optional
        Precision of the numbers; by default the single one where it holds all of them as they are
        stored.

    Attributes
    ----------
    columns : list of str
        Names of the columns.
    dtype : dtype
        Precision of the numbers.
    shape : tuple of int
        Numbers of rows and of columns.
    """

    def __init__(
        self,
        paths: Path | Sequence[Path],
        columns: Sequence[str] | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        files = as_paths(paths)
        self._files = [opened(path) for path in files]
        self.columns = list(self._files[0].schema_arrow.names if columns is None else columns)
        for path, file in zip(files, self._files, strict=True):
            _check_numeric(path, file, self.columns)
        wanted = (
            [_precision(file, self.columns) for file in self._files]
            if dtype is None
            else [np.dtype(dtype)]
        )
        self.dtype = max(wanted, key=lambda kind: kind.itemsize)
        if self.dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype={dtype!r} is no precision of rows: use float32 or float64.")
        self._groups = [
            (file, index) for file in self._files for index in range(file.num_row_groups)
        ]
        sizes = (file.metadata.row_group(index).num_rows for file, index in self._groups)
        self._starts = np.array([0, *accumulate(sizes)])
        self._kept: dict[tuple[int, tuple[int, int, int]], NDArray[Any]] = {}
        self._reading = Lock()  # pyarrow's files are not for several threads at a time

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
        (start, stop, step), chosen = (
            rows.indices(self.shape[0]),
            columns.indices(len(self.columns)),
        )
        if step != 1:
            raise ValueError(f"ParquetRows is read row by row: a step of {step} is not possible.")
        found = np.empty((max(stop - start, 0), len(range(*chosen))), dtype=self.dtype)
        for index in self._groups_of(start, stop):
            first, last = int(self._starts[index]), int(self._starts[index + 1])
            low, high = max(start, first), min(stop, last)
            found[low - start : high - start] = self._group(index, chosen)[
                low - first : high - first
            ]
        return found

    def _groups_of(self, start: int, stop: int) -> Iterable[int]:
        if stop <= start:
            return range(0)
        ends = np.searchsorted(self._starts, [start, stop - 1], side="right") - 1
        return range(int(ends[0]), int(ends[1]) + 1)

    def _group(self, index: int, columns: tuple[int, int, int]) -> NDArray[Any]:
        """Return some columns of a row group; the groups read last are kept."""
        key = (index, columns)
        with self._reading:
            if key not in self._kept:
                file, position = self._groups[index]
                names = self.columns[slice(*columns)]
                values = _as_array(file.read_row_group(position, columns=names), names, self.dtype)
                while (
                    self._kept
                    and values.size + sum(kept.size for kept in self._kept.values())
                    > _LARGEST_CACHE
                ):
                    del self._kept[next(iter(self._kept))]
                self._kept[key] = values
            return self._kept[key]


def _check_numeric(path: Path, file: Any, columns: list[str]) -> None:
    """Raise where a file lacks a column, or holds something else than numbers in it."""
    from pyarrow import types

    if not columns:
        raise ValueError(f"{path} has no columns to read: name some of {file.schema_arrow.names}.")
    check_columns(path, file, columns)
    for name in columns:
        kind = file.schema_arrow.field(name).type
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            raise ValueError(
                f"Column {name!r} of {path} holds {kind}, no numbers: name the columns to read."
            )


def _precision(file: Any, columns: list[str]) -> np.dtype[Any]:
    """Single precision where it holds all numbers of these columns, double precision otherwise."""
    kinds = [np.dtype(file.schema_arrow.field(name).type.to_pandas_dtype()) for name in columns]
    return np.dtype(
        np.float32 if all(np.can_cast(kind, np.float32) for kind in kinds) else np.float64
    )


def _as_array(table: Any, names: list[str], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a table as an array; missing values become NaN, which rows are refused for."""
    found = np.empty((table.num_rows, len(names)), dtype=dtype)
    for index, name in enumerate(names):
        found[:, index] = table.column(name).to_numpy()
    return found


def parquet_chunks(
    paths: Iterable[Path], *, label: str, features: Sequence[str], sample_weight: str | None = None
) -> Iterator[tuple[FloatArray, NDArray[Any], FloatArray | None]]:
    """Yield (X, y, sample_weight) of some rows at a time; parameters are those of `Moments.from_parquet`."""
    wanted = [*features, label, *([] if sample_weight is None else [sample_weight])]
    for path in paths:
        file = opened(path)
        check_columns(path, file, wanted)
        height = max(_CHUNK_VALUES // max(len(features), 1), 1)
        for batch in file.iter_batches(batch_size=height, columns=wanted):
            X = np.column_stack([_numbers(batch, name, path) for name in features])
            weights = None if sample_weight is None else _numbers(batch, sample_weight, path)
            yield X, _values(batch, label), weights


def _values(batch: Any, name: str) -> NDArray[Any]:
    column = batch.column(name)
    column = column.dictionary_decode() if hasattr(column, "dictionary_decode") else column
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


def read(content: bytes, name: str) -> dict[str, Any]:
    """Return the columns of a Parquet file: arrays of numbers where none is missing, lists of values otherwise.

    Parameters
    ----------
    content : bytes
        The file.
    name : str
        Its name, for errors.
    """
    table = _table(content, name)
    for column, count in Counter(table.column_names).items():
        if count > 1:
            raise ValueError(
                f"{name} has {count} columns named {column!r}: give each its own name."
            )
    return {column: _cells(table.column(column), column, name) for column in table.column_names}


def decimal_comma(content: bytes, name: str) -> bool:
    """Whether "1,5" is a number: never, in this format."""
    return False


def rewrite(content: bytes, name: str, column: str, changes: Mapping[int, Any]) -> bytes:
    """Return the file with other values in one column; types, other columns and metadata stay.

    Parameters
    ----------
    content, name
        As for `read`.
    column : str
        Name of the column.
    changes : mapping of int to value
        New value of each row that changes.
    """
    import pyarrow as pa
    from pyarrow import parquet

    table = _table(content, name)
    place, values = table.column_names.index(column), table.column(column).to_pylist()
    for row, value in changes.items():
        values[row] = value
    field = table.schema.field(place)
    buffer = io.BytesIO()
    parquet.write_table(table.set_column(place, field, pa.array(values, type=field.type)), buffer)
    return buffer.getvalue()


def _table(content: bytes, name: str) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.read_table(pa.BufferReader(content))
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise ValueError(
            f"{name} cannot be read as Parquet ({reason}): check that it is whole."
        ) from None


def _cells(cells: Any, column: str, name: str) -> Any:
    from pyarrow import types

    kind = cells.type
    if cells.null_count == 0 and (types.is_integer(kind) or types.is_floating(kind)):
        return cells.to_numpy()
    try:
        return cells.to_pylist()
    except (
        ArithmeticError,
        ValueError,
    ):  # such as times of an unknown zone, or beyond the year 9999
        raise ValueError(
            f"Column {column!r} of {name} holds values of type {kind} that cannot be read: write "
            "them as text or numbers, or drop the column."
        ) from None


def opened(path: Path) -> Any:
    """Return a pyarrow ParquetFile."""
    try:
        from pyarrow import ArrowInvalid
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise ImportError('Parquet files need pyarrow: pip install "unflip[parquet]".') from None
    try:
        return ParquetFile(path)
    except ArrowInvalid as error:
        raise ValueError(f"{path} is not a Parquet file or is damaged ({error}).") from None


def check_columns(path: Path, file: Any, wanted: list[str]) -> None:
    """Raise where a file lacks a column."""
    for name in wanted:
        if name not in file.schema_arrow.names:
            raise ValueError(
                f"{path} has no column {name!r}: it has {', '.join(file.schema_arrow.names)}."
            )


def as_paths(paths: Path | Iterable[Path]) -> list[Path]:
    """Return one path or several as a list, and raise `ValueError` if it is empty."""
    files = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not files:
        raise ValueError("paths is empty: give at least one Parquet file.")
    return files


def column_names(path: Path) -> list[str]:
    """Return the names of a file's columns."""
    return list(opened(path).schema_arrow.names)
