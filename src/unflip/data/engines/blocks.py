"""The engine of one process: one block of rows after another, copied only to subtract an offset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from array_api_compat import array_namespace, device

from unflip._utils.progress import tracked
from unflip._utils.typing import Array, Rows
from unflip.data.engines.engine import BlockSource, Engine, OfBlock

# Numbers in a block on the host, 4 MiB in double precision: parts of a product of blocks then stay
# in the second-level cache.
BLOCK_VALUES = 2**19
# Fewest and most numbers in a block on a device, where each block costs a kernel launch.
_DEVICE_VALUES = (2**22, 2**27)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Rows of an array of any namespace, or of an object that slices like one; see `Engine`.

    Attributes
    ----------
    source : array of shape (m, p), or LazyRows
        The rows.
    offset : sequence of arrays of shape (p,)
        Subtracted from each row, in turn, in the precision of the rows.
    most_values : int, optional
        Most numbers in a block; on the host, no limit by default.
    """

    source: Rows
    offset: Sequence[Array] = ()
    most_values: int | None = None

    def fill(self, function: OfBlock, *results: Array, columns: Sequence[Array] = ()) -> None:
        """Write the function's values for each block into the same rows of the result arrays."""
        for part, block in self._blocks(None):
            values = function(block, *_rows_of(columns, part))
            for result, value in zip(results, values, strict=True):
                result[part, ...] = value

    def summed(
        self, function: OfBlock, *columns: Array, n_values: int | None = None
    ) -> tuple[Array, ...]:
        """Add up the function's values over all blocks; without rows, those of an empty block."""
        totals: tuple[Array, ...] = ()
        for part, block in self._blocks(n_values):
            values = function(block, *_rows_of(columns, part))
            totals = tuple(map(_added, totals, values)) if totals else values
        return totals

    def _blocks(self, n_values: int | None) -> Iterator[tuple[slice, Array]]:
        """Yield rows less the offset in blocks of `n_values` numbers, which may share memory."""
        n_rows, n_features = self.source.shape
        n_blocks = max(-(-n_rows * n_features // self._block_values(n_values)), 1)
        height = max(-(-n_rows // n_blocks), 1)
        buffer = self._buffer(min(height, n_rows)) if self.offset else None
        for start in tracked(range(0, max(n_rows, 1), height), "Pass over the samples"):
            part = slice(start, min(start + height, n_rows))
            if buffer is None:
                yield part, self.source[part, :]
            else:
                block = buffer[: part.stop - start, :]
                block[...] = self.source[part, :]
                yield part, less(block, self.offset)

    def _block_values(self, n_values: int | None) -> int:
        if is_on_host(self.source):
            n_values = n_values or BLOCK_VALUES
            return n_values if self.most_values is None else min(n_values, self.most_values)
        fewest, most = _DEVICE_VALUES
        n_rows, n_features = self.source.shape
        # An eighth of all numbers, so that a block needs little memory beside the rows.
        return min(max(int(n_rows) * int(n_features) // 8, fewest), self.most_values or most)

    def _buffer(self, height: int) -> Array:
        xp = array_namespace(self.source)
        return xp.empty(
            (height, self.source.shape[1]), dtype=self.source.dtype, device=device(self.source)
        )


def is_on_host(X: Rows) -> bool:
    """Whether the rows are in the memory of the CPU."""
    return "cpu" in str(device(X)).lower()


def _rows_of(columns: Sequence[Array], part: slice) -> list[Array]:
    return [column[part, ...] for column in columns]


def _added(total: Array, values: Array) -> Array:
    """Add in place, because sums may be as large as p×p."""
    total += values
    return total


def less(block: Array, offset: Sequence[Array]) -> Array:
    """Subtract each part of the offset in place."""
    for part in offset:
        block -= part[None, :]
    return block


def engine_of(X: Rows, offset: Sequence[Array] = ()) -> Engine:
    """Return the engine for passes over rows less an offset.

    Parameters
    ----------
    X : array of shape (m, p) or BlockSource
        Rows. A `BlockSource` brings its own engine; others are read in blocks in this process.
    offset : sequence of arrays of shape (p,)
        Subtracted from each row, in turn, in the precision of the rows.
    """
    return X.engine(offset) if isinstance(X, BlockSource) else Blocks(X, offset)


def evenly_spaced_rows(X: Rows) -> Array:
    """Return at most 128 evenly spaced rows of an array or `BlockSource`."""
    return X.sample() if isinstance(X, BlockSource) else every_nth_row(X)


def every_nth_row(X: Rows) -> Array:
    """Return at most 128 evenly spaced rows of an object that slices like an array."""
    return X[:: max(-(-X.shape[0] // 128), 1), :]
