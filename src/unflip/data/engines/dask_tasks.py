"""Dask tasks: run on the user's scheduler, with clear errors if workers are lost or missing."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from logging import getLogger
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any

import dask
from dask.base import get_scheduler

_POLL_SECONDS = 1.0  # between checks whether there are workers
_PATIENCE_SECONDS = 120.0  # without any worker before a fit fails

_log = getLogger("unflip")


def iter_results(tasks: Sequence[Any], title: str) -> Iterator[tuple[int, Any]]:
    """Yield the position and the result of each task as it finishes, and log the time taken."""
    start = monotonic()
    client = _client()
    if client is None:
        yield from enumerate(dask.compute(*tasks))
    else:
        yield from _results_of_workers(client, tasks)
    _log.info("%s: %.1f s", title, monotonic() - start)


def combined(tasks: Sequence[Any], combine: Callable[[list[Any]], Any], title: str) -> Any:
    """Return the results of tasks, combined on the workers eight at a time."""
    combining = dask.delayed(combine, pure=False)
    while len(tasks) > 1:
        tasks = [combining(list(tasks[i : i + 8])) for i in range(0, len(tasks), 8)]
    return next(iter(dict(iter_results(tasks, title)).values()))


def _client() -> Any:
    """Return the current client of distributed workers; None for a local scheduler."""
    get = get_scheduler()
    client = getattr(get, "__self__", None)
    return client if hasattr(client, "nthreads") else None


def _results_of_workers(client: Any, tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """Yield results as they arrive and release them; cancel all other tasks on an early end."""
    with warnings.catch_warnings():
        # Parts of columns are in the graph, so that those of a lost worker are sent again.
        warnings.filterwarnings("ignore", message="Sending large graph")  # on purpose
        waiting = dict(enumerate(client.compute(list(tasks))))
    finished: SimpleQueue[int] = SimpleQueue()
    for index, future in waiting.items():
        future.add_done_callback(lambda _, index=index: finished.put(index))
    try:
        while waiting:
            index = _next(finished, client)
            result = _result(waiting[index])
            del waiting[index]
            yield index, result
    finally:
        # A client that has lost its scheduler has nothing to cancel.
        if waiting and client.status == "running":
            client.cancel(list(waiting.values()))


def _next(finished: SimpleQueue[int], client: Any) -> int:
    """Return the next finished task; raise RuntimeError if there is no worker for too long."""
    alone_since: float | None = None
    while True:
        try:
            return finished.get(timeout=_POLL_SECONDS)
        except Empty:
            alone_since = None if _has_workers(client) else alone_since or monotonic()
        if alone_since is not None and monotonic() - alone_since >= _PATIENCE_SECONDS:
            raise RuntimeError(
                f"There was no Dask worker for {_PATIENCE_SECONDS:g} s: start workers "
                "(client.wait_for_workers(1) waits for them), and fit again."
            )


def _has_workers(client: Any) -> bool:
    try:
        return bool(client.nthreads())
    except Exception as error:  # the type depends on the connection
        raise RuntimeError(
            f"The Dask scheduler does not answer ({error}): restart it, and fit again."
        ) from error


def _result(future: Any) -> Any:
    from distributed import CancelledError, KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        raise RuntimeError(
            "Several Dask workers died on the same rows, probably out of memory: make the "
            "partitions of X smaller, or give the workers more memory."
        ) from error
    except CancelledError as error:
        raise RuntimeError(
            f"Dask cancelled a task ({error}): check that the scheduler runs, and fit again."
        ) from error
