"""Dask arrays whose partitions kill their worker, or wait, when they are read."""

import os
import signal
import time
from uuid import uuid4

import dask
import dask.array as da


def partitions(X, n_rows):
    """Return an array as a Dask array in partitions of `n_rows` rows."""
    return da.from_array(X, chunks=(n_rows, -1))


def deadly(X, n_rows, folder, at):
    """Return partitions of which the `at`-th that is read kills its worker, once.

    Reads are counted by files in the folder, because the workers are separate processes. Without a
    folder, every read kills its worker.
    """
    return _from_parts(X, n_rows, _read, folder, at)


def waiting(X, n_rows, folder):
    """Return partitions that write a file when they are read, and wait for the file "go on"."""
    return _from_parts(X, n_rows, _wait, folder)


def _from_parts(X, n_rows, read, *arguments):
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
    if folder is None or _has_to_be_killed(at, folder):
        os.kill(os.getpid(), signal.SIGKILL)
    return part


def _has_to_be_killed(at, folder):
    (folder / f"read-{uuid4()}").touch()
    if len(list(folder.glob("read-*"))) < at:
        return False
    try:
        (folder / "killed").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
