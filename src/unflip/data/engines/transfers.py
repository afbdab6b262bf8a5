"""Transfers of blocks from the host to a device, made while the device works on other blocks.

A copy runs beside the work of the device only from page-locked memory and in a stream of its own.
The array API offers neither, so those of CuPy and torch are used, of the library that the user has
imported. With any other library, a block is copied when it is needed.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import array_namespace, device, is_cupy_array, is_torch_array
from numpy.typing import NDArray

from unflip._utils.typing import Array

#: Waits for the end of a transfer, and returns the block on the device.
PendingBlock: TypeAlias = Callable[[], Array]


class Transfer(ABC):
    """Copies blocks from the host to the device of an array."""

    @staticmethod
    def to(like: Array) -> Transfer:
        """Return the fastest transfer to the device of an array."""
        if is_cupy_array(like):
            return _CupyTransfer(like)
        if is_torch_array(like) and like.device.type == "cuda":
            return _TorchTransfer(like)
        return _DirectTransfer(like)

    @abstractmethod
    def begin(
        self, read: Callable[[], NDArray[Any]], shape: tuple[int, int], dtype: np.dtype[Any]
    ) -> PendingBlock:
        """Start to read and copy a block of this shape and dtype; the result has to be called."""


class _DirectTransfer(Transfer):
    """Reads and copies a block when it is needed."""

    def __init__(self, like: Array) -> None:
        self._like = like

    def begin(
        self, read: Callable[[], NDArray[Any]], shape: tuple[int, int], dtype: np.dtype[Any]
    ) -> PendingBlock:
        xp = array_namespace(self._like)
        return lambda: xp.asarray(np.array(read()), device=device(self._like))


class _PinnedTransfer(Transfer):
    """Reads a block into page-locked memory by threads, and copies it from there.

    The calling thread allocates the device memory before the copy is queued. All earlier work on
    that memory is then queued already, and the copy has to wait for that work only.
    """

    def __init__(self) -> None:
        # Two page-locked buffers in turn, and for each a function that waits until it is free.
        self._buffers: list[Any] = [None, None]
        self._wait_until_free: list[Callable[[], None]] = [lambda: None, lambda: None]
        self._turn = 0
        # One thread alone copies memory at a fifth of the speed of the bus.
        self._n_threads = min(8, os.cpu_count() or 1)
        self._reader = ThreadPoolExecutor(1, "unflip-reader")
        self._copiers = ThreadPoolExecutor(self._n_threads, "unflip-copier")

    def begin(
        self, read: Callable[[], NDArray[Any]], shape: tuple[int, int], dtype: np.dtype[Any]
    ) -> PendingBlock:
        turn = 1 - self._turn
        self._turn = turn
        block, allocated = self._allocate(shape, dtype)
        sent = self._reader.submit(self._send, read, turn, block, allocated)

        def wait() -> Array:
            self._wait_on_device(sent.result())
            return block

        return wait

    def _send(
        self, read: Callable[[], NDArray[Any]], turn: int, block: Array, allocated: Any
    ) -> Any:
        """Read a block, start its copy to the device, and return the event of its end."""
        values = read()
        self._wait_until_free[turn]()
        memory = self._buffers[turn]
        if memory is None or memory.shape[0] < values.size or memory.dtype != values.dtype:
            memory = self._page_locked(values.size, values.dtype)
            self._buffers[turn] = memory
        buffer = memory[: values.size].reshape(values.shape)
        edges = np.linspace(0, len(values), self._n_threads + 1).astype(int)
        parts = [slice(*ends) for ends in pairwise(edges)]
        list(self._copiers.map(lambda part: np.copyto(buffer[part], values[part]), parts))
        done = self._copy(buffer, block, allocated)
        self._wait_until_free[turn] = done.synchronize
        return done

    @abstractmethod
    def _allocate(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> tuple[Array, Any]:
        """Return a block of device memory, and an event after all work queued so far."""

    @abstractmethod
    def _page_locked(self, size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return page-locked memory of the host."""

    @abstractmethod
    def _copy(self, buffer: NDArray[Any], block: Array, allocated: Any) -> Any:
        """Start a copy that waits for an event, and return the event of its end."""

    @abstractmethod
    def _wait_on_device(self, done: Any) -> None:
        """Let all work that is queued from here on wait for an event."""


class _TorchTransfer(_PinnedTransfer):
    def __init__(self, like: Array) -> None:
        super().__init__()
        self._torch: Any = sys.modules["torch"]
        self._device = like.device
        self._stream = self._torch.cuda.Stream(self._device)

    def _allocate(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> tuple[Array, Any]:
        own_dtype = getattr(self._torch, dtype.name)
        block = self._torch.empty(shape, dtype=own_dtype, device=self._device)
        return block, self._torch.cuda.current_stream(self._device).record_event()

    def _page_locked(self, size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        own_dtype = getattr(self._torch, dtype.name)
        locked: NDArray[Any] = self._torch.empty(size, dtype=own_dtype, pin_memory=True).numpy()
        return locked

    def _copy(self, buffer: NDArray[Any], block: Array, allocated: Any) -> Any:
        with self._torch.cuda.stream(self._stream):
            self._stream.wait_event(allocated)
            block.copy_(self._torch.from_numpy(buffer), non_blocking=True)
            return self._stream.record_event()

    def _wait_on_device(self, done: Any) -> None:
        self._torch.cuda.current_stream(self._device).wait_event(done)


class _CupyTransfer(_PinnedTransfer):
    def __init__(self, like: Array) -> None:
        super().__init__()
        self._cupy: Any = sys.modules["cupy"]
        self._device = like.device
        with self._device:
            self._stream = self._cupy.cuda.Stream(non_blocking=True)

    def _allocate(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> tuple[Array, Any]:
        with self._device:
            block = self._cupy.empty(shape, dtype=dtype)
            return block, self._cupy.cuda.get_current_stream().record()

    def _page_locked(self, size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        with self._device:
            memory = self._cupy.cuda.alloc_pinned_memory(size * dtype.itemsize)
            return np.frombuffer(memory, dtype, size)

    def _copy(self, buffer: NDArray[Any], block: Array, allocated: Any) -> Any:
        with self._device:
            self._stream.wait_event(allocated)
            block.set(buffer, stream=self._stream)
            return self._stream.record()

    def _wait_on_device(self, done: Any) -> None:
        with self._device:
            self._cupy.cuda.get_current_stream().wait_event(done)
