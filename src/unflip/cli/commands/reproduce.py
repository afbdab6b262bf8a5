"""Command `unflip reproduce`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from unflip.cli.terminal import INTERRUPTED, fail

if TYPE_CHECKING:
    from unflip.cli.paper.piece import Piece
    from unflip.cli.paper.runner import Listener

_console = Console()
_SKIPPED = 3  # exit code if pieces were skipped because their data are missing


def reproduce(
    pieces: Annotated[
        list[str],
        typer.Argument(
            help="Pieces of the paper, such as table1 or fig3, or all.", metavar="PIECE"
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("results"),
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Recompute finished pieces.")] = False,
    workers: Annotated[
        int,
        typer.Option(
            min=1,
            help="Number of processes; the results do not depend on it.",
            show_default="one per core",
        ),
    ] = os.cpu_count() or 1,
) -> None:
    """Recompute the paper's table and figures, and compare them with the published values.

    The comparison is a page in the folder of the results.
    """
    try:
        from unflip.cli.paper import registry, runner, summary
    except ModuleNotFoundError as missing:
        fail(f'reproduce needs {missing.name}; install it with: pip install "unflip[cli]"')
    if out.exists() and not out.is_dir():
        fail(f"{out} is a file: give the name of a folder.")
    try:
        chosen = registry.chosen(pieces)
        with _bars(chosen) as show:
            outcomes = runner.run(
                chosen, out, quick=quick, again=again, workers=workers, listener=show
            )
        skipped = [outcome.reason for outcome in outcomes if outcome.state == "skipped"]
        path = summary.write_page(list(registry.PIECES.values()), out, skipped)
    except (ValueError, runner.PieceError) as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename or out} cannot be written or read: {error.strerror or error}.")
    except KeyboardInterrupt:
        typer.echo("unflip: stopped; run the same command to continue.", err=True)
        raise typer.Exit(code=INTERRUPTED) from None
    for outcome in outcomes:
        if outcome.state == "finished":
            typer.echo(f"{outcome.piece.name} was finished before; --again recomputes it.")
    for sentence in skipped:
        typer.echo(f"unflip: {sentence}", err=True)
    typer.echo(f"Page: {path}")
    if skipped:
        raise typer.Exit(code=_SKIPPED)


@contextmanager
def _bars(pieces: list[Piece]) -> Iterator[Listener]:
    """Show a progress bar for each piece, and yield the function that updates it."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=_console) as progress:
        bars = {
            piece.name: progress.add_task(piece.title, total=None, start=False) for piece in pieces
        }

        def show(piece: Piece, done: int, total: int) -> None:
            progress.start_task(bars[piece.name])
            progress.update(bars[piece.name], completed=done, total=total)

        yield show
