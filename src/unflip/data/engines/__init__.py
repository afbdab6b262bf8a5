"""Engines: blockwise map and reduce over the rows of X.

Every pass over dense rows either fills arrays or adds up sums, one block at a time. `Blocks` does
that in this process, `dask_rows` on the workers of Dask. A new engine is one new file with a class
that implements `Engine`, and a subclass of `LazyRows` that returns it from its method ``engine``.
"""

from unflip.data.engines.blocks import Blocks, engine_of, evenly_spaced_rows
from unflip.data.engines.engine import BlockSource, Engine, OfBlock, is_dask

__all__ = [
    "BlockSource",
    "Blocks",
    "Engine",
    "OfBlock",
    "engine_of",
    "evenly_spaced_rows",
    "is_dask",
]
