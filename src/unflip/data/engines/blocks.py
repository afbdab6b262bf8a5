"""One process: one block of rows after another, none of them copied unless something is subtracted from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from array_api_compat import array_namespace, device

from unflip._utils.typing import Array, Rows
from unflip.data.engines.engine import BlockSource, Engine, OfBlock

# Numbers of a block of rows: the second cache level holds a part of a product of them.
BLOCK_VALUES = 2**19
_SAMPLE = 128  # rows of a sample, at most
# Numbers of a block on a device, where each is work to hand over: a share of all, so that little
# more memory is needed.
_DEVICE_SHARE, _DEVICE_VALUES = 8, (2**22, 2**27)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Rows of an array of any namespace, or of what slices like one; see `Engine`.

    Attributes
    ----------
    source : array of shape (m, p), or LazyRows
        The rows.
    offset : sequence of arrays of shape (p,)
        What to subtract from them, in turn, in their own precision.
    """

    source: Rows
    offset: Sequence[Array] = ()

    def fill(self, function: OfBlock, *found: Array, columns: Sequence[Array] = ()) -> None:
        """Put the function's results into rows of these arrays."""
        for part, block in self._blocks(None):
            for whole, values in zip(found, function(block, *_rows_of(columns, part)), strict=True):
                whole[part, ...] = values

    def summed(
        self, function: OfBlock, *columns: Array, n_values: int | None = None
    ) -> tuple[Array, ...]:
        """Add up the function's results over all blocks; of no rows they are those of an empty block."""
        totals: tuple[Array, ...] = ()
        for part, block in self._blocks(n_values):
            results = function(block, *_rows_of(columns, part))
            totals = tuple(map(_added, totals, results)) if totals else results
        return totals

    def _blocks(self, n_values: int | None) -> Iterator[tuple[slice, Array]]:
        """Yield the rows less the offset, about so many numbers at a time; a block may overwrite the one before."""
        n_rows, n_features = self.source.shape
        n_blocks = max(-(-n_rows * n_features // self._n_values(n_values)), 1)
        height = max(-(-n_rows // n_blocks), 1)
        buffer = self._buffer(min(height, n_rows)) if self.offset else None
        for start in range(0, max(n_rows, 1), height):
            part = slice(start, min(start + height, n_rows))
            if buffer is None:
                yield part, self.source[part, :]
            else:
                block = buffer[: part.stop - start, :]
                block[...] = self.source[part, :]
                yield part, less(block, self.offset)

    def _n_values(self, wanted: int | None) -> int:
        if is_on_host(self.source):
            return wanted or BLOCK_VALUES
        fewest, most = _DEVICE_VALUES
        most = int(getattr(self.source, "block_values", most))
        n_rows, n_features = self.source.shape
        return min(max(int(n_rows) * int(n_features) // _DEVICE_SHARE, fewest), most)

    def _buffer(self, height: int) -> Array:
        xp = array_namespace(self.source)
        return xp.empty(
            (height, self.source.shape[1]), dtype=self.source.dtype, device=device(self.source)
        )


def is_on_host(X: Rows) -> bool:
    """Whether the processor itself works on these rows, and its cache holds blocks of them."""
    return "cpu" in str(device(X)).lower()


def _rows_of(columns: Sequence[Array], part: slice) -> list[Array]:
    return [column[part, ...] for column in columns]


def _added(total: Array, values: Array) -> Array:
    """Add in place: sums may be as large as p×p."""
    total += values
    return total


def less(block: Array, offset: Sequence[Array]) -> Array:
    """Subtract in place."""
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
    """Return at most 128 evenly spaced rows of what slices like an array."""
    return X[:: max(-(-X.shape[0] // _SAMPLE), 1), :]
