"""The command line: parsing and printing only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import unflip
from unflip import demo as story
from unflip.report import demo as picture

if TYPE_CHECKING:
    from unflip.paper.piece import Piece
    from unflip.paper.runner import Listener

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
_console = Console()
_SKIPPED = 3  # exit code of a run that left pieces out because their data are missing
_INTERRUPTED = 130


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unflip {unflip.__version__}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Learn from noisy labels in high dimension."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where to write the picture (PNG).")] = Path("unflip-demo.png"),
) -> None:
    """Show what label noise does, what each variant gets, and what the theory predicted."""
    if out.suffix.lower() != ".png":
        _fail(f"{out} must end in .png: the picture is a PNG file.")
    if out.is_dir():
        _fail(f"{out} is a folder: give the name of a file.")
    if not out.parent.is_dir():
        _fail(f"{out.parent} is not a folder: create it first, or choose another --out.")
    if not os.access(out if out.exists() else out.parent, os.W_OK):
        _fail(f"{out} cannot be written: choose another --out.")
    with _console.status("Simulating flipped labels ..."):
        result = story.run()
        picture.save(result, out)
    _console.print(
        f"\n{story.N_ROWS} rows, {story.N_FEATURES} features, two Gaussian classes {2 * story.MEAN_NORM:g} standard "
        f"deviations apart.\n{story.EPS_POS:.0%} of the positive and {story.EPS_NEG:.0%} of the negative labels are "
        "flipped.\n"
    )
    _console.print(_table(result))
    oracle, naive, optimized = (result.at_headline(name).simulated for name in ("oracle", "naive", "optimized"))
    _console.print(
        f"\nFlips cost plain ridge {100 * (oracle - naive):.1f} points of accuracy; regressing on the mean true label "
        f"given the observed one brings {100 * (optimized - naive):.1f} back.\n"
        "The last row does not know that the origin is the midpoint between the classes: that knowledge is worth "
        f"{100 * (optimized - result.with_intercept.simulated):.1f} points.\n"
    )
    _console.print(f"Picture: {out}", soft_wrap=True, highlight=False, markup=False)


@app.command()
def reproduce(
    pieces: Annotated[list[str], typer.Argument(help="Pieces such as table1 or fig3, or all.", metavar="PIECE...")],
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("results"),
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Compute finished pieces once more.")] = False,
    workers: Annotated[
        int, typer.Option(min=1, help="Processes; the results do not depend on it.", show_default="one for each core")
    ] = os.cpu_count() or 1,
) -> None:
    """Remake the paper's table and figures, and a page that sets them beside what it reports."""
    try:
        from unflip.paper import page, registry, runner
    except ModuleNotFoundError as missing:
        _fail(f"reproduce needs {missing.name}; install it with: pip install 'unflip[cli]'")
    if out.exists() and not out.is_dir():
        _fail(f"{out} is a file: give the name of a folder.")
    try:
        wanted = registry.chosen(pieces)
        with _bars(wanted) as show:
            outcomes = runner.run(wanted, out, quick=quick, again=again, workers=workers, listener=show)
        skipped = [outcome.reason for outcome in outcomes if outcome.state == "skipped"]
        path = page.write_page(list(registry.PIECES.values()), out, skipped)
    except (ValueError, runner.PieceError) as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename or out} cannot be written or read: {error.strerror or error}.")
    except KeyboardInterrupt:
        typer.echo("unflip: stopped; the same command goes on from here.", err=True)
        raise typer.Exit(code=_INTERRUPTED) from None
    for outcome in outcomes:
        if outcome.state == "found":
            typer.echo(f"{outcome.piece.name} was finished before; --again computes it once more.")
    for sentence in skipped:
        typer.echo(f"unflip: {sentence}", err=True)
    typer.echo(f"Page: {path}")
    if skipped:
        raise typer.Exit(code=_SKIPPED)


@contextmanager
def _bars(pieces: list[Piece]) -> Iterator[Listener]:
    """Show a bar for each piece, and yield what is to be told of its parts."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=_console) as progress:
        bars = {piece.name: progress.add_task(piece.title, total=None, start=False) for piece in pieces}

        def show(piece: Piece, done: int, total: int) -> None:
            progress.start_task(bars[piece.name])
            progress.update(bars[piece.name], completed=done, total=total)

        yield show


def _table(result: story.Demo) -> Table:
    table = Table(title="Accuracy on clean labels")
    table.add_column("fit")
    for heading in ("targets t₋, t₊", "origin", "predicted", "simulated"):
        table.add_column(heading, justify="right")
    notes = {"oracle": " (no flips)", "naive": " (plain ridge)"}
    for variant in result.curves:
        _add_row(table, variant, notes.get(variant, ""), "known", result.at_headline(variant))
    _add_row(table, "optimized", "", "found", result.with_intercept)
    return table


def _add_row(table: Table, variant: str, note: str, origin: str, comparison: story.Comparison) -> None:
    t_neg, t_pos = story.targets_at(variant, story.EPS_POS)
    simulated = f"{comparison.simulated:.1%} ± {comparison.standard_error:.1%}"
    table.add_row(variant + note, f"{t_neg:+.2f}, {t_pos:+.2f}", origin, f"{comparison.predicted:.1%}", simulated)


def _fail(message: str) -> NoReturn:
    typer.echo(f"unflip: {message}", err=True)
    raise typer.Exit(code=2)
