"""Copies of blocks from the host to a device, made while the device works on other blocks.

A copy does not wait for the device, nor the device for it, only from page-locked memory and in a queue of its own. The
array API has neither, so CuPy's and torch's are used, of the library that the user has imported; with any other library
a block is copied when it is needed.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_cupy_array, is_torch_array
from numpy.typing import NDArray

from unflip._typing import Array

_MOST_THREADS = 8  # one alone copies memory at a fifth of the speed of the bus


class Copies(ABC):
    """Copies blocks to the device that an array lives on."""

    @staticmethod
    def to(like: Array) -> Copies:
        """Return the quickest way there."""
        if is_cupy_array(like):
            return _CupyCopies()
        if is_torch_array(like) and like.device.type == "cuda":
            return _TorchCopies(like)
        return _PlainCopies(like)

    @abstractmethod
    def begin(self, read: Callable[[], NDArray[Any]]) -> Callable[[], Array]:
        """Start to read a block and to copy it; what is returned waits for it."""


class _PlainCopies(Copies):
    """Reads and copies a block when it is asked for."""

    def __init__(self, like: Array) -> None:
        self._like = like

    def begin(self, read: Callable[[], NDArray[Any]]) -> Callable[[], Array]:
        xp, place = array_namespace(self._like), device(self._like)
        return lambda: xp.asarray(np.array(read()), device=place)


class _PinnedCopies(Copies):
    """Reads a block into page-locked memory by threads, and copies it from there."""

    def __init__(self) -> None:
        self._buffers: list[Any] = [None, None]
        self._copied: list[Callable[[], None]] = [lambda: None, lambda: None]  # until a buffer is free
        self._turn = 0
        self._reader = ThreadPoolExecutor(1, "unflip-reader")
        self._n_threads = min(_MOST_THREADS, os.cpu_count() or 1)
        self._helpers = ThreadPoolExecutor(self._n_threads, "unflip-copier")

    def begin(self, read: Callable[[], NDArray[Any]]) -> Callable[[], Array]:
        self._turn = turn = 1 - self._turn
        after = self._now()
        started: Future[Callable[[], Array]] = self._reader.submit(self._copy, read, turn, after)
        return lambda: started.result()()

    def _copy(self, read: Callable[[], NDArray[Any]], turn: int, after: Any) -> Callable[[], Array]:
        block = read()
        self._copied[turn]()
        held = self._buffers[turn]
        if held is None or held.shape[0] < block.size or held.dtype != block.dtype:
            held = self._buffers[turn] = self._page_locked(block.size, block.dtype)
        buffer = held[: block.size].reshape(block.shape)
        edges = np.linspace(0, len(block), self._n_threads + 1).astype(int)
        parts = [slice(*ends) for ends in pairwise(edges)]
        list(self._helpers.map(lambda part: np.copyto(buffer[part], block[part]), parts))
        copied, finished = self._sent(buffer, after)
        self._copied[turn] = finished
        return copied

    @abstractmethod
    def _now(self) -> Any:
        """Mark what the device was asked to do so far: memory that is used again may be in use until then."""

    @abstractmethod
    def _page_locked(self, size: int, dtype: np.dtype[Any]) -> NDArray[Any]: ...

    @abstractmethod
    def _sent(self, buffer: NDArray[Any], after: Any) -> tuple[Callable[[], Array], Callable[[], None]]:
        """Start a copy; return what gives the block in the device's order of work, and what waits for the copy."""


class _TorchCopies(_PinnedCopies):
    def __init__(self, like: Array) -> None:
        super().__init__()
        self._torch: Any = sys.modules["torch"]
        self._device = like.device
        self._queue = self._torch.cuda.Stream(self._device)

    def _now(self) -> Any:
        return self._torch.cuda.current_stream(self._device).record_event()

    def _page_locked(self, size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        kind = self._torch.from_numpy(np.empty(0, dtype)).dtype
        locked: NDArray[Any] = self._torch.empty(size, dtype=kind, pin_memory=True).numpy()
        return locked

    def _sent(self, buffer: NDArray[Any], after: Any) -> tuple[Callable[[], Array], Callable[[], None]]:
        torch, source = self._torch, self._torch.from_numpy(buffer)
        with torch.cuda.device(self._device):
            block = torch.empty(source.shape, dtype=source.dtype, device=self._device)
            with torch.cuda.stream(self._queue):
                self._queue.wait_event(after)
                block.copy_(source, non_blocking=True)
                done = self._queue.record_event()

        def in_order() -> Array:
            torch.cuda.current_stream(self._device).wait_event(done)
            return block

        return in_order, done.synchronize


class _CupyCopies(_PinnedCopies):
    def __init__(self) -> None:
        super().__init__()
        self._cupy: Any = sys.modules["cupy"]
        self._queue = self._cupy.cuda.Stream(non_blocking=True)

    def _now(self) -> Any:
        return self._cupy.cuda.get_current_stream().record()

    def _page_locked(self, size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        memory = self._cupy.cuda.alloc_pinned_memory(size * dtype.itemsize)
        return np.frombuffer(memory, dtype, size)

    def _sent(self, buffer: NDArray[Any], after: Any) -> tuple[Callable[[], Array], Callable[[], None]]:
        block = self._cupy.empty(buffer.shape, dtype=buffer.dtype)
        self._queue.wait_event(after)
        block.set(buffer, stream=self._queue)
        done = self._queue.record()

        def in_order() -> Array:
            self._cupy.cuda.get_current_stream().wait_event(done)
            return block

        return in_order, done.synchronize
