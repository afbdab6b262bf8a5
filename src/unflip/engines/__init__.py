"""Who walks the rows: each pass over dense rows fills arrays or adds up, a block at a time, and an engine makes it."""

from __future__ import annotations

from collections.abc import Sequence

from unflip._typing import Array, Rows
from unflip.engines.base import Engine
from unflip.engines.blocks import Blocks

__all__ = ["Blocks", "Engine", "engine_of", "is_dask"]


def is_dask(values: object) -> bool:
    """Whether these are a Dask collection; Dask is imported only where they are."""
    return type(values).__module__.partition(".")[0] == "dask"


def engine_of(X: Rows, offset: Sequence[Array] = ()) -> Engine:
    """Return who walks rows less an offset: whom the rows name, or one block after another in this process.

    Parameters
    ----------
    X : array of shape (m, p), or what slices like one
        Rows. Where they have a method ``engine(offset)``, it makes the engine.
    offset : sequence of arrays of shape (p,)
        What to subtract from each row, in turn, in the precision of the rows.
    """
    engine: Engine = X.engine(offset) if hasattr(X, "engine") else Blocks(X, offset)
    return engine
