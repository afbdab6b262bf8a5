"""The interface of an engine: apply a function to every block of rows, then store or add up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

#: Function of a block of rows and of the matching entries of the columns passed with it.
OfBlock = Callable[..., tuple[Any, ...]]


class Engine(Protocol):
    """Blockwise passes over rows less an offset; blocks have any height and come in any order.

    A function gets a block (h, p) and the h matching entries of every column passed with it. It
    returns a tuple of arrays. It must not change or keep the block, and must not depend on the
    position of the block. It may be sent to another process, so it must not hold an array as long
    as the rows. Arrays are of the namespace of the rows.
    """

    def fill(self, function: OfBlock, *results: Any, columns: Sequence[Any] = ()) -> None:
        """Write the function's values for each block into the same rows of the result arrays.

        The function returns one value per result array; a scalar is written to all rows of the
        block.
        """

    def summed(
        self, function: OfBlock, *columns: Any, n_values: int | None = None
    ) -> tuple[Any, ...]:
        """Add up the function's values over all blocks, of about `n_values` numbers each."""


@runtime_checkable
class BlockSource(Protocol):
    """Rows that bring their own engine and a sample of themselves, such as `LazyRows`."""

    def engine(self, offset: Sequence[Any] = ()) -> Engine:
        """Return the engine that passes over these rows less an offset."""

    def sample(self) -> Any:
        """Return evenly spaced rows."""


def is_dask(values: object) -> bool:
    """Whether this is a Dask collection; does not import Dask."""
    return type(values).__module__.partition(".")[0] == "dask"


def dask_engine() -> Any:
    """Return the module of the engine for Dask collections; imports Dask."""
    return import_module("unflip.data.engines.dask_rows")
