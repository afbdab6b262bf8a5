"""Computation of pieces, part by part, in several processes; an interrupted run is resumed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from unflip._utils.atomic_files import write_atomically
from unflip.cli.paper.piece import Piece, Settings, Task, gather
from unflip.cli.paper.store import Folder, encode_part, fingerprint, read_part
from unflip.plotting import style

#: Called with a piece, the number of its finished parts, and the number of all its parts.
Listener: TypeAlias = Callable[[Piece, int, int], None]


class PieceError(RuntimeError):
    """Raised if a piece cannot be computed or drawn; the message names it."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a piece: computed now, finished before, or skipped with a reason."""

    piece: Piece
    state: Literal["computed", "finished", "skipped"]
    reason: str = ""


def run(
    pieces: Sequence[Piece],
    results: Path,
    *,
    quick: bool = False,
    again: bool = False,
    workers: int = 1,
    listener: Listener = lambda piece, done, total: None,
) -> list[Outcome]:
    """Compute and draw the pieces that are not finished yet.

    Parameters
    ----------
    pieces : sequence of Piece
        Pieces to reproduce.
    results : Path
        Folder of the results; each piece gets a folder in it.
    quick : bool
        Use fewer repetitions. A piece that is finished with all repetitions is not changed.
    again : bool
        Recompute finished pieces and parts.
    workers : int
        Number of processes. The results do not depend on it.
    listener : callable
        Called after every finished part.
    """
    return [_run_piece(piece, results, quick, again, workers, listener) for piece in pieces]


def missing_data(piece: Piece) -> str:
    """Return a sentence that names the missing data of a piece, or "" if none are missing."""
    home = os.environ.get("UNFLIP_DATA")
    if piece.needs_data and not home:
        names = " and ".join(f"{name}/" for name in piece.needs_data)
        return f"{piece.name} is skipped: set UNFLIP_DATA to the folder that holds {names}."
    for name in piece.needs_data:
        if not (Path(str(home)) / name).is_dir():
            return f"{piece.name} is skipped: {Path(str(home)) / name} does not exist."
    return ""


def _run_piece(
    piece: Piece, results: Path, quick: bool, again: bool, workers: int, listener: Listener
) -> Outcome:
    folder = Folder(results, piece.name)
    settings = piece.quick if quick else piece.full
    if not again and is_finished(piece, folder, quick):
        total = len(piece.tasks(settings))
        listener(piece, total, total)
        return Outcome(piece, "finished")
    reason = missing_data(piece)
    if reason:
        return Outcome(piece, "skipped", reason)
    if again:
        folder.clear()
    try:
        _compute(piece, settings, folder, workers, listener)
        _finish(piece, settings, folder, quick)
    except FileNotFoundError as error:  # a file of a data set may be missing
        return Outcome(piece, "skipped", f"{piece.name} is skipped: {error}")
    except OSError:
        raise
    except Exception as error:
        raise PieceError(f"{piece.name} failed: {type(error).__name__}: {error}") from error
    return Outcome(piece, "computed")


def is_finished(piece: Piece, folder: Folder, quick: bool) -> bool:
    """Whether the saved results have the right settings; full results also serve a quick run."""
    manifest = folder.manifest()
    accepted = [piece.full, piece.quick] if quick else [piece.full]
    fingerprints = [fingerprint(piece, settings) for settings in accepted]
    return manifest is not None and manifest.fingerprint in fingerprints


def _compute(
    piece: Piece, settings: Settings, folder: Folder, workers: int, listener: Listener
) -> None:
    """Compute the parts that are not saved yet."""
    tasks = piece.tasks(settings)
    mark = fingerprint(piece, settings)
    left = [task for task in tasks if not folder.part(mark, task).exists()]
    done = len(tasks) - len(left)
    listener(piece, done, len(tasks))
    # One BLAS thread everywhere, so that sums are rounded alike for any number of processes.
    # Workers that outlive a killed run stop after 20 idle seconds.
    processes = parallel_config(backend="loky", inner_max_num_threads=1, idle_worker_timeout=20)
    with processes, threadpool_limits(1):
        parallel = Parallel(n_jobs=min(workers, len(left)) or 1, return_as="generator_unordered")
        for _ in parallel(delayed(_run_task)(task, folder.part(mark, task)) for task in left):
            done += 1
            listener(piece, done, len(tasks))


def _run_task(task: Task, path: Path) -> None:
    start = time.perf_counter()
    tables = task.run()
    write_atomically(path, encode_part(tables, time.perf_counter() - start))


def _finish(piece: Piece, settings: Settings, folder: Folder, quick: bool) -> None:
    """Combine the saved parts, draw the figure, and save both."""
    mark = fingerprint(piece, settings)
    parts = [read_part(folder.part(mark, task)) for task in piece.tasks(settings)]
    tables = gather([part for part, _ in parts])
    figure = piece.draw(tables)
    pictures = {"svg": style.as_svg(figure, piece.name), "png": style.as_png(figure)}
    seconds = sum(seconds for _, seconds in parts)
    manifest = {"piece": piece.name, "fingerprint": mark, "quick": quick, "seconds": seconds}
    folder.save({**tables, "summary": piece.summary(tables)}, pictures, manifest)
