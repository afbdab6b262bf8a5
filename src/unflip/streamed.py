"""Rows of the host, in memory or in a file, streamed through a device: the next block is copied while one is used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace, device

from unflip._typing import Array
from unflip.engines.copies import Copies
from unflip.lazy import LazyRows


def streamed(X: Any, like: Array) -> StreamedRows:
    """Return rows of the host as rows of a device, to which they are copied a block at a time.

    Fits and predictions then are made on the device, of rows that need not fit into its memory.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Rows in the host's memory, or whatever is read in blocks: a memory map, an HDF5 data set.
    like : array
        Any array of the device, such as ``torch.empty(0, device="cuda")`` or ``cupy.empty(0)``.
    """
    rows = LazyRows.of(X, [np.float64, np.float32])
    return StreamedRows(rows.source, rows.precision, like=like, ahead=_Ahead(Copies.to(like)))


class _Ahead:
    """Starts to copy the block after the one that was asked for, and remembers up to which row all are finite."""

    def __init__(self, copies: Copies) -> None:
        self._copies = copies
        self._expected: tuple[LazyRows, int, int] | None = None
        self._coming: Callable[[], Array] | None = None
        self.n_checked = 0

    def block(self, rows: LazyRows, start: int, stop: int) -> Array:
        """Return some rows, all columns of them, on the device."""
        coming = self._coming if self._expected == (rows, start, stop) else None
        coming = coming or self._begin(rows, start, stop)
        self._expected = self._coming = None
        if stop < rows.shape[0]:
            end = min(2 * stop - start, rows.shape[0])
            self._expected, self._coming = (rows, stop, end), self._begin(rows, stop, end)
        return coming()

    def _begin(self, rows: LazyRows, start: int, stop: int) -> Callable[[], Array]:
        return self._copies.begin(lambda: rows.on_host(slice(start, stop), slice(None)))


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

    _checked: ClassVar[bool] = False  # on the device, where that is quicker
    block_values: ClassVar[int] = 2**25  # page-locked memory takes long to get

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
            return array_namespace(self.like).asarray(self.on_host(rows, columns), device=self.device, copy=True)
        found = self.ahead.block(self, start, stop)
        if stop > self.ahead.n_checked and self.chosen is None:
            self._check(found, start, stop)
        return found

    def _check(self, block: Array, start: int, stop: int) -> None:
        """Raise where a number is not finite: then their sum is not."""
        if not np.isfinite(float(array_namespace(block).sum(block))):
            self.source.read(slice(start, stop), slice(None), self.precision)
        if start <= self.ahead.n_checked:
            self.ahead.n_checked = stop
