"""Terminal output: progress on stderr, results on stdout, errors in one sentence."""

from __future__ import annotations

import json
import math
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from unflip._utils.atomic_files import written_file

if TYPE_CHECKING:  # the program starts without them: they take a fifth of a second
    from unflip.labels.votes import Votes

INTERRUPTED = 128 + signal.SIGINT  # exit code after Ctrl-C, as of shells


def say(text: str, *, err: bool = False) -> None:
    """Print lines without control characters, which data could contain."""
    typer.echo("\n".join(map(_printable, text.split("\n"))), err=err)


def fail(message: str) -> NoReturn:
    """Print an error and exit with code 2."""
    say(f"unflip: {' '.join(message.split())}", err=True)
    raise typer.Exit(code=2)


@contextmanager
def working(first: str) -> Iterator[Callable[[str], None]]:
    """Show progress, and print errors in one sentence.

    Parameters
    ----------
    first : str
        The first stage, in a few words.
    """
    try:
        with _progress(first) as report_progress:
            yield report_progress
    except KeyboardInterrupt:
        typer.echo("unflip: stopped; nothing was written.", err=True)
        raise typer.Exit(code=INTERRUPTED) from None
    except MemoryError:
        fail("The data do not fit into memory: use fewer rows or columns.")
    except ModuleNotFoundError as missing:
        fail(f'This needs {missing.name}: install it with pip install "unflip[cli]".')
    except ValueError as error:
        fail(str(error))
    except OSError as error:
        name = error.filename or "The file"
        reason = error.strerror or error
        fail(f"{name} cannot be written or read ({reason}): check its folder and the disk space.")


@contextmanager
def _progress(first: str) -> Iterator[Callable[[str], None]]:
    """Show stages on a terminal; elsewhere print nothing, not even the blank line of some rich."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda stage: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(f"{first} ...")
        yield lambda stage: progress.update(task, description=f"{stage} ...")


def check_out(out: Path, endings: Sequence[str], *inputs: Path) -> None:
    """Exit with an error if a file cannot be written, or is an input; follow symbolic links.

    Parameters
    ----------
    out : Path
        The file to write.
    endings : sequence of str
        Allowed endings of its name.
    inputs : Path
        Files that must not be overwritten.
    """
    if not out.name.lower().endswith(tuple(endings)):
        fail(f"{out} must end in {' or '.join(endings)}: choose another name.")
    try:
        _check_writable(out)
    except OSError as error:  # such as a name that is too long
        fail(f"{out} cannot be written ({error.strerror or error}): choose another name.")
    except ValueError as error:  # such as a name with a null byte
        fail(f"{out} cannot be written ({error}): choose another name.")
    for path in inputs:
        is_same_path = os.path.realpath(path) == os.path.realpath(out)
        if is_same_path or (out.exists() and path.exists() and path.samefile(out)):
            fail(f"{out} is the input file {path}: choose another name.")


def check_new_folder(out: Path) -> None:
    """Exit with an error if a folder cannot be made."""
    if out.exists():
        fail(f"{out} exists already: choose another name.")
    _check_writable(out)


def _check_writable(out: Path) -> None:
    if out.is_dir():
        fail(f"{out} is a folder: name a file.")
    file = written_file(out)
    if not file.parent.is_dir():
        fail(f"{file.parent} is not a folder: create it first, or choose another name than {out}.")
    target = file if file.exists() else file.parent
    if not os.access(target, os.W_OK) or not os.access(file.parent, os.W_OK):
        fail(f"{out} cannot be written: choose another name or folder.")


def say_json(result: Mapping[str, Any]) -> None:
    """Print a result as JSON; NaN and infinite numbers become null."""
    typer.echo(json.dumps(_jsonable(result), indent=2, ensure_ascii=False, allow_nan=False))


def count_votes(votes: Votes | None) -> dict[str, int] | None:
    """Return the numbers of votes and annotators, for JSON; None if there are no votes.

    Also whether missing votes are abstentions.
    """
    if votes is None:
        return None
    return {
        "votes": len(votes.row),
        "annotators": len(votes.annotators),
        "rows_with_votes": int(votes.voted.sum()),
        "abstentions": votes.abstentions,
    }


def describe_votes(votes: Votes) -> str:
    """Describe the number of votes, and of annotators if there are several."""
    annotators = f" of {len(votes.annotators)} annotators" if len(votes.annotators) > 1 else ""
    return f"{len(votes.row)} votes{annotators}"


def print_notes(notes: Sequence[str]) -> None:
    """Print notes on stderr."""
    for note in notes:
        say(f"Note: {note}", err=True)


def on_one_line(text: str, width: int) -> str:
    """Return a text on one line, without control characters, cut to a width."""
    clean = " ".join(_printable(text).split())
    return clean if len(clean) <= width else clean[: max(width - 3, 0)].rstrip() + "..."


def _printable(line: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in line)


def _jsonable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
