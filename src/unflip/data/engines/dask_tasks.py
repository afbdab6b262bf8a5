"""Dask tasks: run where the user's scheduler is, and waited for as long as there is somebody to run them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from logging import getLogger
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any

import dask
from dask.base import get_scheduler

_FAN_IN = 8  # partial sums that are added up in one task
_LOOK = 1.0  # seconds between looks at whether there are workers
_PATIENCE = 120.0  # seconds to wait for one where there is none

_log = getLogger("unflip")


def results(tasks: Sequence[Any], what: str) -> Iterator[tuple[int, Any]]:
    """Yield the position and the result of each task, in the order in which workers finish, and log what that was."""
    start = monotonic()
    client = _client()
    found = enumerate(dask.compute(*tasks)) if client is None else _from_workers(client, tasks)
    yield from found
    _log.info("%s: %.1f s", what, monotonic() - start)


def combined(tasks: Sequence[Any], combine: Callable[[list[Any]], Any], what: str) -> Any:
    """Return the results of tasks, combined a few at a time on the workers."""
    adding = dask.delayed(combine, pure=False)
    while len(tasks) > 1:
        tasks = [adding(list(tasks[i : i + _FAN_IN])) for i in range(0, len(tasks), _FAN_IN)]
    return next(iter(dict(results(tasks, what)).values()))


def _client() -> Any:
    """Return the client of distributed workers that computations go to; None where they go to a local scheduler."""
    get = get_scheduler()
    client = getattr(get, "__self__", None)
    return client if hasattr(client, "nthreads") else None


def _from_workers(client: Any, tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """Yield results as they come and let go of them; whatever ends this early ends the tasks, too."""
    with warnings.catch_warnings():
        # Parts of columns travel in the graph, so that those of a lost worker can be sent again.
        warnings.filterwarnings("ignore", message="Sending large graph")  # it is meant
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
        if (
            waiting and client.status == "running"
        ):  # one that has lost its scheduler has nothing to cancel
            client.cancel(list(waiting.values()))


def _next(finished: SimpleQueue[int], client: Any) -> int:
    """Return the next task that is done, or raise where for long nobody has been there to do one."""
    alone_since: float | None = None
    while True:
        try:
            return finished.get(timeout=_LOOK)
        except Empty:
            alone_since = (alone_since or monotonic()) if _is_alone(client) else None
        if alone_since is not None and monotonic() - alone_since >= _PATIENCE:
            raise RuntimeError(
                f"There has been no Dask worker for {_PATIENCE:g} s: start some "
                "(client.wait_for_workers(1) waits for them), and fit again."
            )


def _is_alone(client: Any) -> bool:
    try:
        return not client.nthreads()
    except Exception as error:  # whatever the connection makes of a scheduler that is gone
        raise RuntimeError(
            f"The Dask scheduler does not answer ({error}): start it, and fit again."
        ) from error


def _result(future: Any) -> Any:
    from distributed import CancelledError, KilledWorker

    try:
        return future.result()
    except KilledWorker as error:
        raise RuntimeError(
            "Dask workers died one after another over the same rows, as they do where memory runs "
            "out: make the partitions of X smaller, or give the workers more memory."
        ) from error
    except CancelledError as error:
        raise RuntimeError(
            f"Dask gave up a task ({error}): look whether the scheduler runs, and fit again."
        ) from error
