"""Rows in the memory or files of the host, streamed to a device block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace, device
from scipy.sparse import issparse

from unflip._utils.arrays import is_foreign
from unflip._utils.typing import Array
from unflip.data.engines.blocks import Blocks
from unflip.data.engines.engine import Engine, is_dask
from unflip.data.engines.transfers import PendingBlock, Transfer
from unflip.data.lazy import LazyRows, is_lazy


def streamed(X: Any, like: Array) -> StreamedRows:
    """Return rows on the host as rows on a device, copied there one block at a time.

    Fits and predictions then run on the device, and the rows need not fit into its memory. Use the
    result for one fit or prediction at a time.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Rows in memory, or read in blocks: a memory map, an HDF5 data set.
    like : array
        Any array on the device, such as ``torch.empty(0, device="cuda")`` or ``cupy.empty(0)``.

    Returns
    -------
    StreamedRows
        Rows to pass as `X` to `fit` or `predict`, with ``array_api_dispatch=True``.

    Raises
    ------
    ValueError
        If X is a Dask collection, a sparse matrix or an array on a device, or is not 2-D.

    Examples
    --------
    Use an array on the GPU as `like`; here NumPy stands in for it:

    >>> import numpy as np
    >>> from unflip.data.streamed import streamed
    >>> rows = streamed(np.eye(3), like=np.empty(0))
    >>> rows.shape
    (3, 3)
    >>> rows[:1, :]
    array([[1., 0., 0.]])
    """
    if is_dask(X) or issparse(X) or is_foreign(X):
        raise ValueError(
            f"X of type {type(X).__name__} cannot be streamed: pass a NumPy array or a memory map."
        )
    array = X if is_lazy(X) else np.asarray(X)
    if len(array.shape) != 2:
        raise ValueError(f"X has shape {tuple(array.shape)}: pass a 2-D array.")
    rows = LazyRows.of(array, [np.float64, np.float32])
    return StreamedRows(
        rows.source,
        rows.precision,
        rows.chosen,
        rows.origin,
        rows.unit,
        like=like,
        prefetch=_Prefetch(Transfer.to(like)),
    )


class _Prefetch:
    """Starts to copy the next block before a block is returned."""

    def __init__(self, transfer: Transfer) -> None:
        self._transfer = transfer
        self._next: tuple[LazyRows, int, int] | None = None
        self._pending: PendingBlock | None = None

    def block(self, rows: LazyRows, start: int, stop: int) -> Array:
        """Return these rows, with all columns, on the device."""
        pending = self._pending
        self._pending = None
        if pending is not None and self._next != (rows, start, stop):
            pending()  # its memory must not be reused before the copy is done
            pending = None
        pending = pending or self._begin(rows, start, stop)
        if stop < rows.shape[0]:
            end = min(2 * stop - start, rows.shape[0])
            self._next = (rows, stop, end)
            self._pending = self._begin(rows, stop, end)
        return pending()

    def _begin(self, rows: LazyRows, start: int, stop: int) -> PendingBlock:
        shape = stop - start, rows.shape[1]
        return self._transfer.begin(
            lambda: rows.on_host(slice(start, stop), slice(None)), shape, rows.precision
        )


@dataclass(frozen=True, eq=False)
class StreamedRows(LazyRows):
    """A 2-D array on a device, whose blocks are copied there when they are needed.

    Attributes
    ----------
    like : array
        Any array on the device.
    prefetch : _Prefetch
        Copies blocks of whole rows.
    """

    like: Array = field(kw_only=True)
    prefetch: _Prefetch = field(kw_only=True)

    # Most numbers in a block: page-locked memory takes long to allocate.
    block_values: ClassVar[int] = 2**25

    @property
    def _checked(self) -> bool:
        """Whether blocks are checked on the host; without a selection the device is faster."""
        return self.chosen is not None

    @property
    def device(self) -> Any:
        """Device of the blocks."""
        return device(self.like)

    @property
    def dtype(self) -> Any:
        """Precision of the blocks."""
        return getattr(array_namespace(self.like), self.precision.name)

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """Return the namespace of the device's arrays."""
        namespace: ModuleType = array_namespace(self.like)
        return namespace

    def engine(self, offset: Sequence[Array] = ()) -> Engine:
        """Return the engine that passes over the rows less an offset."""
        return Blocks(self, offset, self.block_values)

    def check_mapping(self) -> None:
        """Raise ValueError: functions of streamed rows are not supported."""
        raise ValueError(
            "Features cannot be computed from streamed rows: pass X as an array on the device, or "
            "use features='linear'."
        )

    @property
    def hosted(self) -> LazyRows:
        """The same rows as NumPy arrays."""
        return LazyRows(self.source, self.precision, self.chosen, self.origin, self.unit)

    def block(self, rows: slice, columns: slice) -> Array:
        """Return a part of the rows, on the device."""
        start, stop, step = rows.indices(self.shape[0])
        if step != 1 or columns != slice(None) or stop <= start:
            return array_namespace(self.like).asarray(
                self.on_host(rows, columns), device=self.device, copy=True
            )
        block = self.prefetch.block(self, start, stop)
        if stop > self.source.n_checked and not self._checked:
            self._check(block, start, stop)
        return block

    def _check(self, block: Array, start: int, stop: int) -> None:
        """Raise ValueError if a number is not finite: the sum of the block then is not either."""
        if not np.isfinite(float(array_namespace(block).sum(block))):
            self.source.read(slice(start, stop), slice(None), self.precision)
        if start <= self.source.n_checked:
            self.source.n_checked = stop
