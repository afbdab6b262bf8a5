"""Running pieces: part by part, in several processes, taking up where an earlier run stopped."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from unflip._utils.atomic_files import write_atomically
from unflip.paper.piece import Piece, Settings, Task, gather
from unflip.paper.store import Folder, encode_part, fingerprint, read_part
from unflip.plotting import style

#: Told the piece, how many of its parts are done, and how many there are.
Listener: TypeAlias = Callable[[Piece, int, int], None]
_IDLE_SECONDS = 20


class PieceError(RuntimeError):
    """A piece could not be computed or drawn; the message names it."""


@dataclass(frozen=True)
class Outcome:
    """What became of a piece: computed now, found finished, or skipped with a reason."""

    piece: Piece
    state: str  # "computed", "found" or "skipped"
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
    """Compute and draw pieces that are not finished yet.

    Parameters
    ----------
    pieces : sequence of Piece
        What to remake.
    results : Path
        Folder that gets a folder for each.
    quick : bool
        Fewer repetitions; a piece that is finished with all of them is left as it is.
    again : bool
        Compute finished pieces and parts again.
    workers : int
        Processes. The results do not depend on it.
    listener : callable
        Told of every part that is done.
    """
    return [_run_piece(piece, results, quick, again, workers, listener) for piece in pieces]


def missing_data(piece: Piece) -> str:
    """Say in a sentence which data of a piece are missing; empty where none are."""
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
        return Outcome(piece, "found")
    reason = missing_data(piece)
    if reason:
        return Outcome(piece, "skipped", reason)
    if again:
        folder.clear()
    try:
        _compute(piece, settings, folder, workers, listener)
        _finish(piece, settings, folder, quick)
    except FileNotFoundError as error:  # a data set may lack a file
        return Outcome(piece, "skipped", f"{piece.name} is skipped: {error}")
    except OSError:
        raise
    except Exception as error:
        raise PieceError(f"{piece.name} failed: {type(error).__name__}: {error}") from error
    return Outcome(piece, "computed")


def is_finished(piece: Piece, folder: Folder, quick: bool) -> bool:
    """Whether the saved results are those of the settings; full ones serve a quick run, too."""
    manifest = folder.manifest()
    accepted = [piece.full, piece.quick] if quick else [piece.full]
    return manifest is not None and manifest.fingerprint in [
        fingerprint(piece, settings) for settings in accepted
    ]


def _compute(
    piece: Piece, settings: Settings, folder: Folder, workers: int, listener: Listener
) -> None:
    """Compute the parts that are not saved yet."""
    tasks, mark = piece.tasks(settings), fingerprint(piece, settings)
    left = [task for task in tasks if not folder.part(mark, task).exists()]
    done = len(tasks) - len(left)
    listener(piece, done, len(tasks))
    # One BLAS thread everywhere: sums are then rounded alike, however many processes there are.
    # Workers that outlive a killed run go when they have been idle for a while.
    processes = parallel_config(
        backend="loky", inner_max_num_threads=1, idle_worker_timeout=_IDLE_SECONDS
    )
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
    """Put the saved parts together and draw them."""
    mark = fingerprint(piece, settings)
    parts = [read_part(folder.part(mark, task)) for task in piece.tasks(settings)]
    tables = gather([part for part, _ in parts])
    figure = piece.draw(tables)
    pictures = {"svg": style.as_svg(figure, piece.name), "png": style.as_png(figure)}
    seconds = sum(seconds for _, seconds in parts)
    manifest = {"piece": piece.name, "fingerprint": mark, "quick": quick, "seconds": seconds}
    folder.save({**tables, "summary": piece.summary(tables)}, pictures, manifest)
