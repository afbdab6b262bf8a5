"""The interface of an engine: apply a function to every block of rows, then store or add up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from unflip._utils.typing import Array

#: What a pass applies to a block of rows and to the parts of row-length columns that belong to it.
OfBlock = Callable[..., tuple[Array, ...]]


class Engine(Protocol):
    """Blockwise passes over rows less an offset; blocks have any height and come in any order.

    A function gets a block (h, p) and, of every row-length column given with it, the h entries of
    the same rows. It returns a tuple of arrays, must not change or keep the block, and knows
    nothing of where it stands. It may be sent to another process: it must not hold anything as long
    as the rows.
    """

    def fill(self, function: OfBlock, *found: Array, columns: Sequence[Array] = ()) -> None:
        """Put the function's results into rows of these arrays, one for each; what is no array counts for all rows."""

    def summed(
        self, function: OfBlock, *columns: Array, n_values: int | None = None
    ) -> tuple[Array, ...]:
        """Add up the function's results over all blocks, of about so many numbers each."""


@runtime_checkable
class BlockSource(Protocol):
    """Rows that bring their own engine and a sample of themselves, such as `LazyRows`."""

    def engine(self, offset: Sequence[Array] = ()) -> Engine:
        """Return the engine that passes over these rows less an offset."""

    def sample(self) -> Array:
        """Return evenly spaced rows."""


def is_dask(values: object) -> bool:
    """Whether these are a Dask collection; does not import Dask."""
    return type(values).__module__.partition(".")[0] == "dask"


def dask_engine() -> Any:
    """Return the module of the engine for Dask collections; imports Dask."""
    return import_module("unflip.data.engines.dask_rows")
