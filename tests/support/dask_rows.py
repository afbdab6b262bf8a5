"""Partitions that workers make: of an array, of one whose reading ends its worker, and of one that
is long to read."""

import os
import signal
import time
from uuid import uuid4

import dask
import dask.array as da


def partitions(X, n_rows):
    """Return an array as a Dask array in partitions of so many rows."""
    return da.from_array(X, chunks=(n_rows, -1))


def deadly(X, n_rows, folder, at):
    """Return the same, but the process that makes the `at`-th reading of a partition is killed,
    once.

    Readings are counted by files in the folder, as the processes that make them know nothing of
    each other. Without a folder each reading is such a one.
    """
    return _made_of(X, n_rows, _read, folder, at)


def endless(X, n_rows, folder):
    """Return the same, but each reading of a partition says so by a file in the folder, and waits
    for another."""
    return _made_of(X, n_rows, _wait, folder)


def _made_of(X, n_rows, read, *arguments):
    reading = dask.delayed(read, pure=True)
    parts = [X[start : start + n_rows] for start in range(0, len(X), n_rows)]
    return da.concatenate(
        [da.from_delayed(reading(part, *arguments), part.shape, dtype=part.dtype) for part in parts]
    )


def _wait(part, folder):
    (folder / f"read-{uuid4()}").touch()
    deadline = time.monotonic() + 60
    while not (folder / "go on").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return part


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
