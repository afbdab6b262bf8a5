"""A table or figure of the paper: its tasks, plot, summary and notes."""

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
    """Size of the simulation.

    Attributes
    ----------
    draws : int
        Repetitions of each simulation.
    seed : int
        Seed of the random numbers.
    more : dict
        Further settings of a single piece.
    """

    draws: int
    seed: int = 0
    more: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """An independent part of a piece, computed in any process and order, and saved when done.

    Attributes
    ----------
    name : str
        Unique name within the piece.
    function : callable
        Module-level function that depends on its arguments only and returns rows of the piece's
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
    """One table or figure of the paper.

    The numbers are saved first: `draw`, `summary` and `notes` use only the saved tables.

    Attributes
    ----------
    name : str
        Name on the command line.
    title : str
        Title on the page.
    paper : str
        Settings and claims of the paper.
    full, quick : Settings
        At least as many repetitions as in the paper; and fewer.
    tasks : callable
        Returns the tasks for given settings.
    draw : callable
        Returns the figure of the saved tables.
    summary : callable
        Returns the small table below the figure on the page.
    notes : callable
        Returns sentences on the differences from the paper and their causes, with measured numbers.
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
    """Concatenate the rows of each table over all parts."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {
        name: pd.concat([part[name] for part in parts if name in part], ignore_index=True)
        for name in names
    }


def only(table: Table, **values: object) -> Table:
    """Return the rows with these values."""
    for name, value in values.items():
        table = table[table[name] == value]
    return table
