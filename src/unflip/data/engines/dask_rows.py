"""Dask: rows stay with the workers, a group of partitions is a task, and what is found of them comes back."""

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
from unflip.data.engines.dask_tasks import combined, results
from unflip.data.engines.engine import OfBlock

_TASK_VALUES = 2**20  # numbers of a task, at least: fewer are not worth its while
_ROWS_PER_FEATURE = (
    8  # of a task, at least: its result in a sum is p×p, and must be small beside the rows
)
_NUMBERS = "biuf"


@dataclass(frozen=True, eq=False)
class Group:
    """Neighbouring partitions that make a task: what gives them, their numbers of rows, and where the first stands."""

    chunks: Sequence[Any]
    lengths: Sequence[int]
    start: int

    @property
    def stop(self) -> int:
        """The row after the last."""
        return self.start + sum(self.lengths)


@dataclass(frozen=True, eq=False)
class Partitions:
    """Partitions of a Dask array or DataFrame, one below the other, as rows of numbers.

    Attributes
    ----------
    chunks : sequence of Delayed
        The partitions.
    lengths : sequence of int
        Their numbers of rows.
    dtype : dtype
        Of the numbers, as they are stored.
    header : ndarray or DataFrame of shape (0, p)
        No rows, of the kind that the partitions are.
    """

    chunks: Sequence[Any]
    lengths: Sequence[int]
    dtype: np.dtype[Any]
    header: Any

    @classmethod
    def of(cls, X: Any) -> Partitions:
        """Take a collection, of which the numbers of rows must be known or can be counted."""
        return _of_frame(X) if _is_frame(X) else _of_array(X)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""
        return sum(self.lengths), int(self.header.shape[1])

    def groups(self) -> Iterator[Group]:
        """Put neighbours together until they have rows enough for a task; those that have alone stay alone.

        Empty ones at the end are left out.
        """
        starts, first, n_rows, wanted = (
            [0, *accumulate(self.lengths)],
            0,
            0,
            task_rows(self.shape[1]),
        )
        for last, length in enumerate(self.lengths, start=1):
            if n_rows and length >= wanted:
                yield Group(
                    self.chunks[first : last - 1], self.lengths[first : last - 1], starts[first]
                )
                first, n_rows = last - 1, 0
            n_rows += length
            if n_rows >= wanted or (last == len(self.lengths) and (n_rows or not first)):
                yield Group(self.chunks[first:last], self.lengths[first:last], starts[first])
                first, n_rows = last, 0


@dataclass(frozen=True, eq=False)
class Piece:
    """A task's rows: the partitions, which rows of the whole it yields, and what makes rows of their numbers."""

    group: Group
    part: slice
    opened: Callable[[NDArray[Any]], Rows]


@dataclass(frozen=True, eq=False)
class DaskBlocks:
    """Pieces of rows that workers walk, each in blocks; see `Engine`.

    Attributes
    ----------
    pieces : sequence of Piece
        The rows, in order.
    dtype : dtype
        Of the numbers in the partitions.
    offset : sequence of arrays of shape (p,)
        What to subtract from rows, in turn.
    """

    pieces: Sequence[Piece]
    dtype: np.dtype[Any]
    offset: Sequence[Array] = ()

    def fill(self, function: OfBlock, *found: Array, columns: Sequence[Array] = ()) -> None:
        """Put the function's results into rows of these arrays, which are here."""
        kinds = [(whole.shape[1:], whole.dtype) for whole in found]
        tasks = self._tasks(partial(_filled, function=function, kinds=kinds), columns)
        for index, values in results(tasks, f"Rows filled in {len(tasks)} tasks"):
            for whole, part in zip(found, values, strict=True):
                whole[self.pieces[index].part, ...] = part

    def summed(
        self, function: OfBlock, *columns: Array, n_values: int | None = None
    ) -> tuple[Array, ...]:
        """Add up the function's results on the workers."""
        tasks = self._tasks(partial(_summed, function=function, n_values=n_values), columns)
        totals: tuple[Array, ...] = combined(tasks, add_up, f"Rows added up in {len(tasks)} tasks")
        return totals

    def _tasks(self, walk: Callable[..., Any], columns: Sequence[Array]) -> list[Any]:
        """Make a task of every piece; what all have in common stands in the graph once, and is sent again if lost."""
        common = dask.delayed((walk, self.dtype, tuple(self.offset)), pure=False, traverse=False)
        run = dask.delayed(walk_rows, pure=False)
        return [
            run(
                common,
                list(piece.group.chunks),
                tuple(piece.group.lengths),
                piece.opened,
                [column[piece.part, ...] for column in columns],
            )
            for piece in self.pieces
        ]


def task_rows(n_features: int) -> int:
    """Return how many rows a task should have at least."""
    return max(_ROWS_PER_FEATURE * n_features, _TASK_VALUES // n_features)


def lazily(method: Callable[[Any], NDArray[Any]], X: Any) -> Any:
    """Return what a method gives for each row as a Dask array, of which nothing is computed yet."""
    example = method(_one_row(X))
    work = partial(_of_partition, method, example[:0])
    if _is_frame(X):
        return X.map_partitions(work, meta=example[:0])
    rows, shape = _whole_rows(X), example.shape[1:]
    chunks = (rows.chunks[0], *((n,) for n in shape))
    return rows.map_blocks(
        work, chunks=chunks, drop_axis=() if shape else 1, dtype=example.dtype, meta=example[:0]
    )


def partitioned(values: NDArray[Any], lengths: Sequence[int]) -> Any:
    """Return an array as a Dask array with so many rows in each partition."""
    return dask.array.from_array(values, chunks=(tuple(lengths), *values.shape[1:]))


def over_partitions(
    function: Callable[[list[Any]], Any], combine: Callable[[list[Any]], Any], *columns: Any
) -> Any:
    """Apply a function to groups of neighbouring partitions, given as (position, X, y, ...), and combine the results.

    Parameters
    ----------
    function : callable
        It gets a list of such tuples, of one partition each.
    combine : callable
        It makes one result of a list of them.
    *columns : Dask collections or arrays
        The rows X, and what belongs to them row by row.
    """
    X = Partitions.of(columns[0])
    parts = [X.chunks, *(_cut(column, X.lengths) for column in columns[1:])]
    together = list(zip(range(len(X.chunks)), *parts, strict=True))
    run, first, tasks = dask.delayed(function, pure=False), 0, []
    for group in X.groups():
        last = first + len(group.chunks)
        tasks.append(run(together[first:last]))
        first = last
    return combined(tasks, combine, f"Partitions added up in {len(tasks)} tasks")


def over_parts(
    function: Callable[[Any], Any], combine: Callable[[list[Any]], Any], column: Any
) -> Any:
    """Apply a function to every part of a column, and combine the results."""
    run = dask.delayed(function, pure=False)
    return combined([run(part) for part in np.ravel(column.to_delayed())], combine, "Column read")


def _cut(column: Any, lengths: Sequence[int]) -> list[Any]:
    """Return the parts of a column that belong to partitions of so many rows."""
    n_rows, ends = sum(lengths), list(accumulate(lengths))
    if _is_frame(column):
        if column.npartitions != len(lengths):
            raise ValueError(
                f"X has {len(lengths)} partitions and what belongs to its rows "
                f"{column.npartitions}: take both from one DataFrame, or make them arrays with "
                "known chunks"
            )
        return list(column.to_delayed())
    if (
        isinstance(column, dask.array.Array)
        and column.numblocks == (len(lengths),)
        and np.isnan(column.shape).any()
    ):
        return list(column.to_delayed())
    given = column if isinstance(column, dask.array.Array) else np.asarray(column)
    if given.shape != (n_rows,):
        raise ValueError(f"it has {n_rows} rows but labels or weights of shape {given.shape}")
    if isinstance(given, np.ndarray):
        return [given[stop - length : stop] for stop, length in zip(ends, lengths, strict=True)]
    return list(given.rechunk((tuple(lengths),)).to_delayed())


def in_memory(values: Any) -> NDArray[Any]:
    """Return a column of labels, weights or the like as an array."""
    parts = dict(results(list(np.ravel(values.to_delayed())), "Column read"))
    return np.concatenate([np.asarray(parts[index]) for index in sorted(parts)])


def _of_array(X: Any) -> Partitions:
    if not isinstance(X, dask.array.Array) or X.ndim != 2:
        raise ValueError(f"X is {X!r}: give a Dask array of shape (rows, columns), or a DataFrame.")
    if np.isnan(X.shape).any():
        raise ValueError("The chunks of X are of unknown size: call X.compute_chunk_sizes() first.")
    if not isinstance(X._meta, np.ndarray):
        raise ValueError(
            f"The chunks of X are of {type(X._meta).__name__}: make them NumPy arrays by "
            "X.map_blocks."
        )
    rows = _whole_rows(X)
    return Partitions(
        list(rows.to_delayed()[:, 0]), rows.chunks[0], rows.dtype, np.empty((0, X.shape[1]))
    )


def _of_frame(X: Any) -> Partitions:
    if X.ndim != 2 or not len(X.columns):
        raise ValueError(
            f"X is a Dask {type(X).__name__} without columns: give a DataFrame with some."
        )
    for name, kind in X.dtypes.items():
        if getattr(kind, "kind", "O") not in _NUMBERS:
            raise ValueError(
                f"Column {name!r} of X is of dtype {kind}, no numbers: encode it, or leave it out."
            )
    counted = [dask.delayed(len)(chunk) for chunk in X[list(X.columns[:1])].to_delayed()]
    lengths = dict(results(counted, "Rows counted"))
    dtype = np.result_type(
        *(kind if isinstance(kind, np.dtype) else np.float64 for kind in X.dtypes)
    )
    # Arrays from the start: Dask looks at every column of a table, in each pass, to know its size.
    rows = X.map_partitions(_numbers, dtype, meta=np.empty((0, len(X.columns)), dtype=dtype))
    return Partitions(
        list(np.ravel(rows.to_delayed())), [lengths[i] for i in sorted(lengths)], dtype, X._meta
    )


def _is_frame(values: Any) -> bool:
    return hasattr(type(values), "divisions")


def _whole_rows(X: Any) -> Any:
    return X.rechunk({1: -1}) if X.numblocks[1] > 1 else X


def _one_row(X: Any) -> Any:
    ones = np.ones((1, X.shape[1]))
    return type(X._meta)(ones, columns=X.columns) if _is_frame(X) else ones


def walk_rows(
    common: tuple[Callable[..., Any], np.dtype[Any], Sequence[Array]],
    chunks: Sequence[Any],
    lengths: Sequence[int],
    opened: Callable[[NDArray[Any]], Rows],
    columns: Sequence[Array],
) -> Any:
    """Walk partitions in blocks: what a worker does."""
    walk, dtype, offset = common
    return walk(Blocks(opened(_stacked(chunks, lengths, dtype)), offset), columns)


def _filled(
    engine: Blocks, columns: Sequence[Array], *, function: OfBlock, kinds: Sequence[Any]
) -> list[Array]:
    found = [np.empty((engine.source.shape[0], *shape), dtype=dtype) for shape, dtype in kinds]
    engine.fill(function, *found, columns=columns)
    return found


def _summed(
    engine: Blocks, columns: Sequence[Array], *, function: OfBlock, n_values: int | None
) -> tuple[Array, ...]:
    return engine.summed(function, *columns, n_values=n_values)


def add_up(parts: list[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Add up, but not in place: a worker may need the parts once more."""
    return tuple(reduce(add, values) for values in zip(*parts, strict=True))


def _stacked(chunks: Sequence[Any], lengths: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return partitions as one array, in the one copy that takes."""
    present = tuple(map(len, chunks))
    if present != tuple(lengths):
        raise RuntimeError(
            f"Partitions of X have {present} rows where {tuple(lengths)} were counted: they must "
            "not change while they are read."
        )
    if len(chunks) == 1:
        return np.asarray(chunks[0])
    found = np.empty((sum(lengths), chunks[0].shape[1]), dtype=dtype)
    for chunk, stop in zip(chunks, accumulate(lengths), strict=True):
        found[stop - len(chunk) : stop] = chunk
    return found


def _numbers(chunk: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    nullable = not all(isinstance(kind, np.dtype) for kind in chunk.dtypes)
    values = (
        chunk.to_numpy(dtype=dtype, na_value=np.nan) if nullable else chunk.to_numpy(dtype=dtype)
    )
    return np.ascontiguousarray(values)


def _of_partition(
    method: Callable[[Any], NDArray[Any]], none: NDArray[Any], chunk: Any
) -> NDArray[Any]:
    return method(chunk) if len(chunk) else none
