"""Paragraphs and lists on the terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence

_WIDEST = 160  # columns of text, also on wider terminals
_N_NAMES = 8  # labels or columns that are printed


def width() -> int:
    """Return the number of columns of text."""
    return min(shutil.get_terminal_size().columns, _WIDEST)


def wrapped(sentence: str, indent: str = "") -> str:
    """Return a paragraph, whose lines after the first have a larger indent."""
    return textwrap.fill(
        sentence,
        width(),
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def step(text: str) -> str:
    """Return an entry of a list."""
    return wrapped(f"- {text}", "  ")


def joined(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    n_more = len(names) - _N_NAMES
    return ", ".join(names[:_N_NAMES]) + (f" and {n_more} more" if n_more > 0 else "")


def aligned(header: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table: the first column flush left, the others flush right."""
    columns = zip(header, *lines, strict=True)
    first, *others = (max(map(len, column)) for column in columns)
    return [
        f"  {line[0]:<{first}}"
        + "".join(f"  {cell:>{size}}" for cell, size in zip(line[1:], others, strict=True))
        for line in (header, *lines)
    ]
