"""Partitions that workers make: those of an array, and of one whose reading ends the worker that does it."""

import os
import signal
from uuid import uuid4

import dask
import dask.array as da


def partitions(X, n_rows):
    """Return an array as a Dask array in partitions of so many rows."""
    return da.from_array(X, chunks=(n_rows, -1))


def deadly(X, n_rows, folder, at):
    """Return the same, but the process that makes the `at`-th reading of a partition is killed, once.

    Readings are counted by files in the folder, as the processes that make them know nothing of each other. Without a
    folder each reading is such a one.
    """
    read = dask.delayed(_read, pure=True)
    parts = [X[start : start + n_rows] for start in range(0, len(X), n_rows)]
    return da.concatenate([da.from_delayed(read(part, folder, at), part.shape, dtype=part.dtype) for part in parts])


def _read(part, folder, at):
    if folder is None or _is_first_after(at, folder):
        os.kill(os.getpid(), signal.SIGKILL)
    return part


def _is_first_after(at, folder):
    (folder / f"read-{uuid4()}").touch()
    if len(list(folder.glob("read-*"))) < at:
        return False
    try:
        (folder / "killed").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
