"""Rows of the host, in memory or in a file, streamed through a device: the next block is copied while one is used."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace, device
from scipy.sparse import issparse

from unflip._utils.arrays import is_foreign
from unflip._utils.typing import Array
from unflip.data.engines.copies import Copies, Waiting
from unflip.data.engines.engine import is_dask
from unflip.data.lazy import LazyRows, is_lazy


def streamed(X: Any, like: Array) -> StreamedRows:
    """Return rows of the host as rows of a device, to which they are copied a block at a time.

    Fits and predictions then are made on the device, of rows that need not fit into its memory.
    What is returned is for one fit or prediction at a time.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Rows in the host's memory, or whatever is read in blocks: a memory map, an HDF5 data set.
    like : array
        Any array of the device, such as ``torch.empty(0, device="cuda")`` or ``cupy.empty(0)``.
    """
    if is_dask(X) or issparse(X) or is_foreign(X):
        raise ValueError(
            f"A {type(X).__name__} cannot be streamed: give an array of the host, or a memory map."
        )
    given = X if is_lazy(X) else np.asarray(X)
    if len(given.shape) != 2:
        raise ValueError(f"X has shape {tuple(given.shape)}: give rows and columns.")
    rows = LazyRows.of(given, [np.float64, np.float32])
    return StreamedRows(
        rows.source,
        rows.precision,
        rows.chosen,
        rows.origin,
        rows.unit,
        like=like,
        ahead=_Ahead(Copies.to(like)),
    )


class _Ahead:
    """Starts to copy the block after the one that was asked for."""

    def __init__(self, copies: Copies) -> None:
        self._copies = copies
        self._expected: tuple[LazyRows, int, int] | None = None
        self._coming: Waiting | None = None

    def block(self, rows: LazyRows, start: int, stop: int) -> Array:
        """Return some rows, all columns of them, on the device."""
        coming, self._coming = self._coming, None
        if coming is not None and self._expected != (rows, start, stop):
            coming()  # its memory must not be used again before the copy is done
            coming = None
        coming = coming or self._begin(rows, start, stop)
        if stop < rows.shape[0]:
            end = min(2 * stop - start, rows.shape[0])
            self._expected, self._coming = (rows, stop, end), self._begin(rows, stop, end)
        return coming()

    def _begin(self, rows: LazyRows, start: int, stop: int) -> Waiting:
        shape = stop - start, rows.shape[1]
        return self._copies.begin(
            lambda: rows.on_host(slice(start, stop), slice(None)), shape, rows.precision
        )


@dataclass(frozen=True, eq=False)
class StreamedRows(LazyRows):
    """A 2-D array on a device of which blocks are copied there when they are asked for.

    Attributes
    ----------
    like : array
        Any array of the device.
    ahead : _Ahead
        Who copies whole rows.
    """

    like: Array = field(kw_only=True)
    ahead: _Ahead = field(kw_only=True)

    block_values: ClassVar[int] = 2**25  # page-locked memory takes long to get

    @property
    def _checked(self) -> bool:
        """Whether blocks are checked on the host: all rows are on the device, where that is quicker."""
        return self.chosen is not None

    @property
    def device(self) -> Any:
        """Where the blocks are."""
        return device(self.like)

    @property
    def dtype(self) -> Any:
        """Precision of the blocks."""
        return getattr(array_namespace(self.like), self.precision.name)

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """Return the array library of the device."""
        namespace: ModuleType = array_namespace(self.like)
        return namespace

    @property
    def hosted(self) -> LazyRows:
        """The rows as the host has them."""
        return LazyRows(self.source, self.precision, self.chosen, self.origin, self.unit)

    def block(self, rows: slice, columns: slice) -> Array:
        """Return a part of the rows, on the device."""
        start, stop, step = rows.indices(self.shape[0])
        if step != 1 or columns != slice(None) or stop <= start:
            return array_namespace(self.like).asarray(
                self.on_host(rows, columns), device=self.device, copy=True
            )
        found = self.ahead.block(self, start, stop)
        if stop > self.source.n_checked and not self._checked:
            self._check(found, start, stop)
        return found

    def _check(self, block: Array, start: int, stop: int) -> None:
        """Raise where a number is not finite: then their sum is not."""
        if not np.isfinite(float(array_namespace(block).sum(block))):
            self.source.read(slice(start, stop), slice(None), self.precision)
        if start <= self.source.n_checked:
            self.source.n_checked = stop
