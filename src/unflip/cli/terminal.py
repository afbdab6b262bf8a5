"""How commands speak: progress on stderr, answers on stdout, errors in one sentence."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from unflip._utils.atomic_files import written_file
from unflip.labels.votes import Votes

INTERRUPTED = 130


def say(text: str, *, err: bool = False) -> None:
    """Print lines; names and cells among them must not steer the terminal."""
    typer.echo("\n".join(map(_printable, text.split("\n"))), err=err)


def fail(message: str) -> NoReturn:
    """Print an error and leave."""
    say(f"unflip: {' '.join(message.split())}", err=True)
    raise typer.Exit(code=2)


@contextmanager
def working(first: str) -> Iterator[Callable[[str], None]]:
    """Show what is being done while it is done, and turn errors into one sentence.

    Parameters
    ----------
    first : str
        What is done first, in a few words.
    """
    try:
        with _shown(first) as tell:
            yield tell
    except KeyboardInterrupt:
        typer.echo("unflip: stopped; nothing was written.", err=True)
        raise typer.Exit(code=INTERRUPTED) from None
    except MemoryError:
        fail("The data do not fit into memory: give fewer rows or columns.")
    except ModuleNotFoundError as missing:
        fail(f'This needs {missing.name}: install it with pip install "unflip[cli]".')
    except ValueError as error:
        fail(str(error))
    except OSError as error:
        name, reason = error.filename or "The file", error.strerror or error
        fail(f"{name} cannot be written or read ({reason}): check its folder and the space there.")


@contextmanager
def _shown(first: str) -> Iterator[Callable[[str], None]]:
    """Show stages on a terminal; elsewhere nothing, not even the blank line that some versions of rich print."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda stage: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(f"{first} ...")
        yield lambda stage: progress.update(task, description=f"{stage} ...")


def check_out(out: Path, endings: Sequence[str], *inputs: Path) -> None:
    """Leave with an error where a file cannot be written, or is one of the inputs; symbolic links are followed.

    Parameters
    ----------
    out : Path
        The file to write.
    endings : sequence of str
        Endings that its name may have.
    inputs : Path
        Files that must stay as they are.
    """
    if not out.name.lower().endswith(tuple(endings)):
        fail(f"{out} must end in {' or '.join(endings)}: that tells its format.")
    try:
        _check_place(out)
    except (
        OSError,
        ValueError,
    ) as error:  # such as a name that is too long, or one that no file can have
        fail(
            f"{out} cannot be written ({getattr(error, 'strerror', None) or error}): choose "
            "another name."
        )
    for path in inputs:
        if os.path.realpath(path) == os.path.realpath(out) or (
            out.exists() and path.exists() and path.samefile(out)
        ):
            fail(
                f"{out} is the file {path} itself, which is never written over: choose another "
                "name."
            )


def _check_place(out: Path) -> None:
    if out.is_dir():
        fail(f"{out} is a folder: give the name of a file.")
    file = written_file(out)
    if not file.parent.is_dir():
        fail(f"{file.parent} is not a folder: create it first, or choose another name than {out}.")
    if not os.access(file if file.exists() else file.parent, os.W_OK) or not os.access(
        file.parent, os.W_OK
    ):
        fail(f"{out} cannot be written: choose another name or folder.")


def say_json(answer: Mapping[str, Any]) -> None:
    """Print an answer for a program to read; numbers that are none become null."""
    typer.echo(json.dumps(_plain(answer), indent=2, ensure_ascii=False, allow_nan=False))


def count_votes(votes: Votes | None) -> dict[str, int] | None:
    """Return how many votes there are, for a program to read; None where there is one label per row."""
    if votes is None:
        return None
    return {
        "votes": len(votes.row),
        "annotators": len(votes.annotators),
        "rows_with_votes": int(votes.voted.sum()),
    }


def describe_votes(votes: Votes) -> str:
    """Return how many votes there are, in words; of whom, where that is known."""
    annotators = f" of {len(votes.annotators)} annotators" if len(votes.annotators) > 1 else ""
    return f"{len(votes.row)} votes{annotators}"


def print_notes(notes: Sequence[str]) -> None:
    """Print notes on stderr."""
    for note in notes:
        say(f"Note: {note}", err=True)


def on_one_line(text: str, width: int) -> str:
    """Return a text as a terminal can show it: one line, no control characters, cut to a width."""
    clean = " ".join(_printable(text).split())
    return clean if len(clean) <= width else clean[: max(width - 3, 0)].rstrip() + "..."


def _printable(line: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in line)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
