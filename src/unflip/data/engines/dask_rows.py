"""The engine for Dask collections: workers pass over their partitions and return small results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import accumulate
from operator import add
from typing import Any

import dask
import dask.array
import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import Array, Rows
from unflip.data.engines.blocks import Blocks
from unflip.data.engines.dask_tasks import combined, iter_results
from unflip.data.engines.engine import OfBlock


@dataclass(frozen=True, eq=False)
class Group:
    """Consecutive partitions that make one task.

    Attributes
    ----------
    chunks : sequence of Delayed
        The partitions.
    lengths : sequence of int
        Their numbers of rows.
    start : int
        Index of the first row.
    """

    chunks: Sequence[Any]
    lengths: Sequence[int]
    start: int

    @property
    def stop(self) -> int:
        """Index after the last row."""
        return self.start + sum(self.lengths)


@dataclass(frozen=True, eq=False)
class Partitions:
    """Partitions of a Dask array or DataFrame, stacked, as rows of numbers.

    Attributes
    ----------
    chunks : sequence of Delayed
        The partitions.
    lengths : sequence of int
        Their numbers of rows.
    dtype : dtype
        Stored dtype of the numbers.
    header : ndarray or DataFrame of shape (0, p)
        An empty partition.
    """

    chunks: Sequence[Any]
    lengths: Sequence[int]
    dtype: np.dtype[Any]
    header: Any

    @classmethod
    def of(cls, X: Any) -> Partitions:
        """Return the partitions of a collection; rows of DataFrames are counted."""
        return _of_frame(X) if _is_frame(X) else _of_array(X)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""
        return sum(self.lengths), int(self.header.shape[1])

    def groups(self) -> Iterator[Group]:
        """Group consecutive partitions until they have enough rows for a task.

        A partition with enough rows is a group of its own. Empty partitions at the end are dropped.
        """
        starts = [0, *accumulate(self.lengths)]
        enough = task_rows(self.shape[1])
        first = 0
        n_rows = 0
        for last, length in enumerate(self.lengths, start=1):
            if n_rows and length >= enough:
                yield self._group(first, last - 1, starts)
                first = last - 1
                n_rows = 0
            n_rows += length
            if n_rows >= enough or (last == len(self.lengths) and (n_rows or not first)):
                yield self._group(first, last, starts)
                first = last
                n_rows = 0

    def _group(self, first: int, last: int, starts: list[int]) -> Group:
        return Group(self.chunks[first:last], self.lengths[first:last], starts[first])


@dataclass(frozen=True, eq=False)
class Piece:
    """The rows of one task.

    Attributes
    ----------
    group : Group
        The partitions.
    part : slice
        Position of the task's rows among all selected rows.
    as_rows : callable
        Returns the selected rows of the partitions' numbers.
    """

    group: Group
    part: slice
    as_rows: Callable[[NDArray[Any]], Rows]


@dataclass(frozen=True, eq=False)
class DaskBlocks:
    """Pieces of rows that Dask workers pass over in blocks; see `Engine`.

    Attributes
    ----------
    pieces : sequence of Piece
        The rows, in order.
    dtype : dtype
        Dtype of the numbers in the partitions.
    offset : sequence of arrays of shape (p,)
        Subtracted from each row, in turn.
    """

    pieces: Sequence[Piece]
    dtype: np.dtype[Any]
    offset: Sequence[Array] = ()

    def fill(self, function: OfBlock, *results: Array, columns: Sequence[Array] = ()) -> None:
        """Write the function's values for each block into the same rows of local arrays."""
        kinds = [(result.shape[1:], result.dtype) for result in results]
        tasks = self._tasks(partial(_filled, function=function, kinds=kinds), columns)
        for index, values in iter_results(tasks, f"Rows filled in {len(tasks)} tasks"):
            for result, value in zip(results, values, strict=True):
                result[self.pieces[index].part, ...] = value

    def summed(
        self, function: OfBlock, *columns: Array, n_values: int | None = None
    ) -> tuple[Array, ...]:
        """Add up the function's values on the workers."""
        tasks = self._tasks(partial(_summed, function=function, n_values=n_values), columns)
        totals: tuple[Array, ...] = combined(tasks, add_up, f"Rows added up in {len(tasks)} tasks")
        return totals

    def _tasks(self, walk: Callable[..., Any], columns: Sequence[Array]) -> list[Any]:
        """Return one task per piece; arguments that all share are in the graph once."""
        shared = dask.delayed((walk, self.dtype, tuple(self.offset)), pure=False, traverse=False)
        run = dask.delayed(walk_rows, pure=False)
        return [
            run(
                shared,
                list(piece.group.chunks),
                tuple(piece.group.lengths),
                piece.as_rows,
                [column[piece.part, ...] for column in columns],
            )
            for piece in self.pieces
        ]


def task_rows(n_features: int) -> int:
    """Return the fewest rows of a task.

    At least 8 rows per feature, so that the p×p result of a sum is small beside the rows, and at
    least 2**20 numbers, so that the overhead of a task is small.
    """
    return max(8 * n_features, 2**20 // n_features)


def lazily(method: Callable[[Any], NDArray[Any]], X: Any) -> Any:
    """Return a method's values for each row as a Dask array, without computing it."""
    example = method(_one_row(X))
    work = partial(_of_partition, method, example[:0])
    if _is_frame(X):
        return X.map_partitions(work, meta=example[:0])
    rows = _whole_rows(X)
    shape = example.shape[1:]
    chunks = (rows.chunks[0], *((n,) for n in shape))
    return rows.map_blocks(
        work, chunks=chunks, drop_axis=() if shape else 1, dtype=example.dtype, meta=example[:0]
    )


def partitioned(values: NDArray[Any], lengths: Sequence[int]) -> Any:
    """Return an array as a Dask array with partitions of these lengths."""
    return dask.array.from_array(values, chunks=(tuple(lengths), *values.shape[1:]))


def over_partitions(
    function: Callable[[list[Any]], Any], combine: Callable[[list[Any]], Any], *columns: Any
) -> Any:
    """Apply a function to groups of consecutive partitions, and combine the results.

    Parameters
    ----------
    function : callable
        Takes a list of tuples (position, X, y, ...), one per partition.
    combine : callable
        Combines a list of results to one.
    *columns : Dask collections or arrays
        The rows X, and columns with one entry per row.
    """
    X = Partitions.of(columns[0])
    parts = [X.chunks, *(_cut(column, X.lengths) for column in columns[1:])]
    partitions = list(zip(range(len(X.chunks)), *parts, strict=True))
    run = dask.delayed(function, pure=False)
    tasks = []
    first = 0
    for group in X.groups():
        last = first + len(group.chunks)
        tasks.append(run(partitions[first:last]))
        first = last
    return combined(tasks, combine, f"Partitions added up in {len(tasks)} tasks")


def over_parts(
    function: Callable[[Any], Any], combine: Callable[[list[Any]], Any], column: Any
) -> Any:
    """Apply a function to every partition of a column, and combine the results."""
    run = dask.delayed(function, pure=False)
    return combined([run(part) for part in np.ravel(column.to_delayed())], combine, "Column read")


def _cut(column: Any, lengths: Sequence[int]) -> list[Any]:
    """Return the parts of a column that belong to partitions of these lengths."""
    if _is_frame(column):
        if column.npartitions != len(lengths):
            raise ValueError(
                f"X has {len(lengths)} partitions but its labels or weights have "
                f"{column.npartitions}: take both from one DataFrame, or pass arrays with known "
                "chunks"
            )
        return list(column.to_delayed())
    is_dask_array = isinstance(column, dask.array.Array)
    if is_dask_array and column.numblocks == (len(lengths),) and np.isnan(column.shape).any():
        return list(column.to_delayed())
    values: Any = column if is_dask_array else np.asarray(column)
    n_rows = sum(lengths)
    if values.shape != (n_rows,):
        raise ValueError(f"it has {n_rows} rows but labels or weights of shape {values.shape}")
    if is_dask_array:
        return list(values.rechunk((tuple(lengths),)).to_delayed())
    return np.split(values, list(accumulate(lengths))[:-1])


def in_memory(values: Any) -> NDArray[Any]:
    """Return a column of labels or weights as an array."""
    parts = dict(iter_results(list(np.ravel(values.to_delayed())), "Column read"))
    return np.concatenate([np.asarray(parts[index]) for index in sorted(parts)])


def _of_array(X: Any) -> Partitions:
    if not isinstance(X, dask.array.Array) or X.ndim != 2:
        raise ValueError(f"X is {X!r}: pass a 2-D Dask array or a Dask DataFrame.")
    if np.isnan(X.shape).any():
        raise ValueError("The chunks of X have unknown sizes: call X.compute_chunk_sizes() first.")
    if not isinstance(X._meta, np.ndarray):
        raise ValueError(
            f"The chunks of X are of type {type(X._meta).__name__}: convert them to NumPy arrays "
            "with X.map_blocks."
        )
    rows = _whole_rows(X)
    return Partitions(
        list(rows.to_delayed()[:, 0]), rows.chunks[0], rows.dtype, np.empty((0, X.shape[1]))
    )


def _of_frame(X: Any) -> Partitions:
    if X.ndim != 2 or not len(X.columns):
        raise ValueError(
            f"X is a Dask {type(X).__name__} without columns: pass a DataFrame with columns."
        )
    for name, dtype in X.dtypes.items():
        if getattr(dtype, "kind", "O") not in "biuf":
            raise ValueError(
                f"Column {name!r} of X has dtype {dtype}, which is not numeric: encode it, or "
                "drop it."
            )
    counting = [dask.delayed(len)(chunk) for chunk in X[list(X.columns[:1])].to_delayed()]
    lengths = dict(iter_results(counting, "Rows counted"))
    # Nullable dtypes of pandas become float64.
    dtypes = [dtype if isinstance(dtype, np.dtype) else np.float64 for dtype in X.dtypes]
    common = np.result_type(*dtypes)
    # Arrays from the start: in each pass Dask inspects every column of a table for its size.
    rows = X.map_partitions(_numbers, common, meta=np.empty((0, len(X.columns)), dtype=common))
    return Partitions(
        list(np.ravel(rows.to_delayed())), [lengths[i] for i in sorted(lengths)], common, X._meta
    )


def _is_frame(values: Any) -> bool:
    return hasattr(type(values), "divisions")


def _whole_rows(X: Any) -> Any:
    """Return a Dask array whose chunks span all columns."""
    return X.rechunk({1: -1}) if X.numblocks[1] > 1 else X


def _one_row(X: Any) -> Any:
    ones = np.ones((1, X.shape[1]))
    return type(X._meta)(ones, columns=X.columns) if _is_frame(X) else ones


def walk_rows(
    shared: tuple[Callable[..., Any], np.dtype[Any], Sequence[Array]],
    chunks: Sequence[Any],
    lengths: Sequence[int],
    as_rows: Callable[[NDArray[Any]], Rows],
    columns: Sequence[Array],
) -> Any:
    """Pass over partitions in blocks, on a worker."""
    walk, dtype, offset = shared
    return walk(Blocks(as_rows(_stacked(chunks, lengths, dtype)), offset), columns)


def _filled(
    engine: Blocks, columns: Sequence[Array], *, function: OfBlock, kinds: Sequence[Any]
) -> list[Array]:
    values = [np.empty((engine.source.shape[0], *shape), dtype=dtype) for shape, dtype in kinds]
    engine.fill(function, *values, columns=columns)
    return values


def _summed(
    engine: Blocks, columns: Sequence[Array], *, function: OfBlock, n_values: int | None
) -> tuple[Array, ...]:
    return engine.summed(function, *columns, n_values=n_values)


def add_up(parts: list[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Add up, but not in place: a worker may need the parts again."""
    return tuple(reduce(add, values) for values in zip(*parts, strict=True))


def _stacked(chunks: Sequence[Any], lengths: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return partitions as one array; a single partition is not copied."""
    present = tuple(map(len, chunks))
    if present != tuple(lengths):
        raise RuntimeError(
            f"Partitions of X have {present} rows where {tuple(lengths)} were counted: they must "
            "not change while they are read."
        )
    if len(chunks) == 1:
        return np.asarray(chunks[0])
    stacked = np.empty((sum(lengths), chunks[0].shape[1]), dtype=dtype)
    for chunk, stop in zip(chunks, accumulate(lengths), strict=True):
        stacked[stop - len(chunk) : stop] = chunk
    return stacked


def _numbers(chunk: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    is_nullable = not all(isinstance(kind, np.dtype) for kind in chunk.dtypes)
    options = {"na_value": np.nan} if is_nullable else {}
    return np.ascontiguousarray(chunk.to_numpy(dtype=dtype, **options))


def _of_partition(
    method: Callable[[Any], NDArray[Any]], empty: NDArray[Any], chunk: Any
) -> NDArray[Any]:
    return method(chunk) if len(chunk) else empty
