"""Copies of blocks from the host to a device, made while the device works on other blocks.

A copy does not wait for the device, nor the device for it, only from page-locked memory and in a
queue of its own. The array API has neither, so CuPy's and torch's are used, of the library that the
user has imported; with any other library a block is copied when it is needed.
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

#: Waits for a copy, and returns the block.
Waiting: TypeAlias = Callable[[], Array]

_MOST_THREADS = 8  # one alone copies memory at a fifth of the speed of the bus


class Copies(ABC):
    """Copies blocks to the device that an array lives on."""

    @staticmethod
    def to(like: Array) -> Copies:
        """Return the quickest way there."""
        if is_cupy_array(like):
            return _CupyCopies(like)
        if is_torch_array(like) and like.device.type == "cuda":
            return _TorchCopies(like)
        return _PlainCopies(like)

    @abstractmethod
    def begin(
        self, read: Callable[[], NDArray[Any]], shape: tuple[int, int], dtype: np.dtype[Any]
    ) -> Waiting:
        """Start to read a block of this kind and to copy it; what is returned waits for it, and has to be called."""


class _PlainCopies(Copies):
    """Reads and copies a block when it is asked for."""

    def __init__(self, like: Array) -> None:
        self._like = like

    def begin(
        self, read: Callable[[], NDArray[Any]], shape: tuple[int, int], dtype: np.dtype[Any]
    ) -> Waiting:
        xp, place = array_namespace(self._like), device(self._like)
        return lambda: xp.asarray(np.array(read()), device=place)


class _PinnedCopies(Copies):
    """Reads a block into page-locked memory by threads, and copies it from there.

    Memory of the device is asked for before the copy is queued, by who will use it: whatever was to
    be done with that memory before is then in the queue of work, and the copy waits for it alone.
    """

    def __init__(self) -> None:
        self._buffers: list[Any] = [None, None]
        self._copied: list[Callable[[], None]] = [
            lambda: None,
            lambda: None,
        ]  # until a buffer is free
        self._turn = 0
        self._n_threads = min(_MOST_THREADS, os.cpu_count() or 1)
        self._reader = ThreadPoolExecutor(1, "unflip-reader")
        self._helpers = ThreadPoolExecutor(self._n_threads, "unflip-copier")

    def begin(
        self, read: Callable[[], NDArray[Any]], shape: tuple[int, int], dtype: np.dtype[Any]
    ) -> Waiting:
        self._turn = turn = 1 - self._turn
        block, before = self._memory(shape, dtype)
        started = self._reader.submit(self._copy, read, turn, block, before)

        def waiting() -> Array:
            self._in_order(started.result())
            return block

        return waiting

    def _copy(self, read: Callable[[], NDArray[Any]], turn: int, block: Array, before: Any) -> Any:
        """Read, copy and return what tells when the copy is done."""
        values = read()
        self._copied[turn]()
        held = self._buffers[turn]
        if held is None or held.shape[0] < values.size or held.dtype != values.dtype:
            held = self._buffers[turn] = self._page_locked(values.size, values.dtype)
        buffer = held[: values.size].reshape(values.shape)
        edges = np.linspace(0, len(values), self._n_threads + 1).astype(int)
        parts = [slice(*ends) for ends in pairwise(edges)]
        list(self._helpers.map(lambda part: np.copyto(buffer[part], values[part]), parts))
        done = self._sent(buffer, block, before)
        self._copied[turn] = done.synchronize
        return done

    @abstractmethod
    def _memory(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> tuple[Array, Any]:
        """Ask for a block of the device's memory, and mark what the device was asked to do so far."""

    @abstractmethod
    def _page_locked(self, size: int, dtype: np.dtype[Any]) -> NDArray[Any]: ...

    @abstractmethod
    def _sent(self, buffer: NDArray[Any], block: Array, before: Any) -> Any:
        """Start a copy that waits for a mark, and mark its end."""

    @abstractmethod
    def _in_order(self, done: Any) -> None:
        """Let what the device is asked to do from here on wait for a copy."""


class _TorchCopies(_PinnedCopies):
    def __init__(self, like: Array) -> None:
        super().__init__()
        self._torch: Any = sys.modules["torch"]
        self._device = like.device
        self._queue = self._torch.cuda.Stream(self._device)

    def _memory(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> tuple[Array, Any]:
        block = self._torch.empty(
            shape, dtype=getattr(self._torch, dtype.name), device=self._device
        )
        return block, self._torch.cuda.current_stream(self._device).record_event()

    def _page_locked(self, size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        locked: NDArray[Any] = self._torch.empty(
            size, dtype=getattr(self._torch, dtype.name), pin_memory=True
        ).numpy()
        return locked

    def _sent(self, buffer: NDArray[Any], block: Array, before: Any) -> Any:
        with self._torch.cuda.stream(self._queue):
            self._queue.wait_event(before)
            block.copy_(self._torch.from_numpy(buffer), non_blocking=True)
            return self._queue.record_event()

    def _in_order(self, done: Any) -> None:
        self._torch.cuda.current_stream(self._device).wait_event(done)


class _CupyCopies(_PinnedCopies):
    def __init__(self, like: Array) -> None:
        super().__init__()
        self._cupy: Any = sys.modules["cupy"]
        self._device = like.device
        with self._device:
            self._queue = self._cupy.cuda.Stream(non_blocking=True)

    def _memory(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> tuple[Array, Any]:
        with self._device:
            return self._cupy.empty(
                shape, dtype=dtype
            ), self._cupy.cuda.get_current_stream().record()

    def _page_locked(self, size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        with self._device:
            return np.frombuffer(
                self._cupy.cuda.alloc_pinned_memory(size * dtype.itemsize), dtype, size
            )

    def _sent(self, buffer: NDArray[Any], block: Array, before: Any) -> Any:
        with self._device:
            self._queue.wait_event(before)
            block.set(buffer, stream=self._queue)
            return self._queue.record()

    def _in_order(self, done: Any) -> None:
        with self._device:
            self._cupy.cuda.get_current_stream().wait_event(done)
