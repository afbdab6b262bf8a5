"""What an engine does: apply a function to every block of rows, and put its results into rows, or add them up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from unflip._typing import Array

#: What a pass applies to a block of rows and to the parts of row-length columns that belong to it.
OfBlock = Callable[..., tuple[Array, ...]]


class Engine(Protocol):
    """Rows less an offset that are walked a block at a time; blocks may be of any height and come in any order.

    A function gets a block (h, p) and, of every row-length column given with it, the h entries of the same rows. It
    returns a tuple of arrays, must not change or keep the block, and knows nothing of where it stands. It may be sent
    to another process: it must not hold anything as long as the rows.
    """

    def fill(self, function: OfBlock, *found: Array, columns: Sequence[Array] = ()) -> None:
        """Put the function's results into rows of these arrays, one for each; what is no array counts for all rows."""

    def summed(self, function: OfBlock, *columns: Array, n_values: int | None = None) -> tuple[Array, ...]:
        """Add up the function's results over all blocks, of about so many numbers each."""
