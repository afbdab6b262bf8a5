"""Parquet files as rows of numbers, of which the row groups are read that are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from os import PathLike
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from unflip._parquet import Path, check_columns, opened

_LARGEST_CACHE = 2**22  # numbers of row groups that are kept: blocks end within a group


class ParquetRows:
    """A 2-D array of the columns of Parquet files, one below the other, that slices are read from.

    Whole row groups are read, and the last is kept, with some before it while they are small: groups of about a million
    numbers suit best. It needs pyarrow (``pip install "unflip[parquet]"``).

    Parameters
    ----------
    paths : path, or sequence of paths
        The files, in the order of their rows.
    columns : sequence of str, optional
        Names of the columns, in the order of the features; all columns of the first file by default.
    dtype : {float32, float64}, optional
        Precision of the numbers; by default the single one where it holds all of them as they are stored.

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
        given = [paths] if isinstance(paths, str | PathLike) else list(paths)
        if not given:
            raise ValueError("paths is empty: give at least one Parquet file.")
        self._files = [opened(path) for path in given]
        self.columns = list(self._files[0].schema_arrow.names if columns is None else columns)
        for path, file in zip(given, self._files, strict=True):
            _check(path, file, self.columns)
        wanted = [_precision(file, self.columns) for file in self._files] if dtype is None else [np.dtype(dtype)]
        self.dtype = max(wanted, key=lambda kind: kind.itemsize)
        if self.dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype={dtype!r} is no precision of rows: use float32 or float64.")
        self._groups = [(file, index) for file in self._files for index in range(file.num_row_groups)]
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
        (start, stop, step), chosen = rows.indices(self.shape[0]), columns.indices(len(self.columns))
        if step != 1:
            raise ValueError(f"ParquetRows is read row by row: a step of {step} is not possible.")
        found = np.empty((max(stop - start, 0), len(range(*chosen))), dtype=self.dtype)
        for index in self._groups_of(start, stop):
            first, last = int(self._starts[index]), int(self._starts[index + 1])
            low, high = max(start, first), min(stop, last)
            found[low - start : high - start] = self._group(index, chosen)[low - first : high - first]
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
                values = _numbers(file.read_row_group(position, columns=names), names, self.dtype)
                while self._kept and values.size + sum(kept.size for kept in self._kept.values()) > _LARGEST_CACHE:
                    del self._kept[next(iter(self._kept))]
                self._kept[key] = values
            return self._kept[key]


def _check(path: Path, file: Any, columns: list[str]) -> None:
    """Raise where a file lacks a column, or holds something else than numbers in it."""
    from pyarrow import types

    if not columns:
        raise ValueError(f"{path} has no columns to read: name some of {file.schema_arrow.names}.")
    check_columns(path, file, columns)
    for name in columns:
        kind = file.schema_arrow.field(name).type
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            raise ValueError(f"Column {name!r} of {path} holds {kind}, no numbers: name the columns to read.")


def _precision(file: Any, columns: list[str]) -> np.dtype[Any]:
    """Single precision where it holds all numbers of these columns, double precision otherwise."""
    kinds = [np.dtype(file.schema_arrow.field(name).type.to_pandas_dtype()) for name in columns]
    return np.dtype(np.float32 if all(np.can_cast(kind, np.float32) for kind in kinds) else np.float64)


def _numbers(table: Any, names: list[str], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a table as an array; missing values become NaN, which rows are refused for."""
    found = np.empty((table.num_rows, len(names)), dtype=dtype)
    for index, name in enumerate(names):
        found[:, index] = table.column(name).to_numpy()
    return found
