"""What a table or figure of the paper is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pandas as pd
from matplotlib.figure import Figure

Table: TypeAlias = pd.DataFrame
Column: TypeAlias = pd.Series
Tables: TypeAlias = dict[str, Table]


@dataclass(frozen=True)
class Settings:
    """How much to simulate.

    Attributes
    ----------
    draws : int
        Repetitions of each simulation.
    seed : int
        Where its random numbers start.
    more : dict
        What only one piece knows.
    """

    draws: int
    seed: int = 0
    more: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """A part of a piece that is computed on its own, in whatever process and order, and saved when it is done.

    Attributes
    ----------
    name : str
        Its name among the parts of the piece.
    function : callable
        A function of a module that depends on its arguments alone and returns rows of the piece's
        tables.
    arguments : tuple
        Its arguments, seeds included.
    """

    name: str
    function: Callable[..., Tables]
    arguments: tuple[Any, ...]

    def run(self) -> Tables:
        """Compute the rows."""
        return self.function(*self.arguments)


@dataclass(frozen=True)
class Piece:
    """One table or figure: how its numbers are computed, drawn and put into words.

    The numbers are saved before anything else is done with them: `draw`, `summary` and `notes` see
    only what is in the saved tables.

    Attributes
    ----------
    name : str
        What the command line calls it.
    title : str
        What it shows, in a line.
    paper : str
        What the paper says and reports there.
    full, quick : Settings
        As the paper did it, or more; and with fewer repetitions.
    tasks : callable
        The parts to compute at some settings.
    draw : callable
        The picture of the saved tables.
    summary : callable
        The small table that the page shows under the picture.
    notes : callable
        Sentences that say where and why the results differ from the paper's, with measured numbers.
    needs_data : sequence of str
        Folders of ``UNFLIP_DATA`` that it reads.
    """

    name: str
    title: str
    paper: str
    full: Settings
    quick: Settings
    tasks: Callable[[Settings], list[Task]]
    draw: Callable[[Tables], Figure]
    summary: Callable[[Tables], Table]
    notes: Callable[[Tables], list[str]]
    needs_data: Sequence[str] = ()

    def compute(self, settings: Settings) -> Tables:
        """Compute every table in this process."""
        return gather([task.run() for task in self.tasks(settings)])


def gather(parts: Sequence[Tables]) -> Tables:
    """Put the rows of each table together, part by part."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {
        name: pd.concat([part[name] for part in parts if name in part], ignore_index=True)
        for name in names
    }


def only(table: Table, **values: object) -> Table:
    """Return the rows that have these values."""
    for name, value in values.items():
        table = table[table[name] == value]
    return table
