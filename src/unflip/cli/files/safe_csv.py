"""CSV files that a spreadsheet can open: no cell of them is run as a formula."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from unflip.cli.files.delimited import record

# What a spreadsheet may take for a formula, as in the page's decisions.js: a sign that begins one,
# also full-width or small, after blanks and invisible characters. Apostrophes that are there
# already would be taken for the guard.
_BLANKS = r"[\s\x00-\x1f\x7f-\x9f\xad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
_SIGNS = r"[=+\-@\ufe62\ufe63\ufe66\ufe6b\uff0b\uff0d\uff1d\uff20]"
_FORMULA = re.compile(rf"'*(?:[\x00-\x1f]|{_BLANKS}*{_SIGNS})")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)


def csv_bytes(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """Return a CSV file with these cells; None is empty."""
    lines = [header, *(["" if cell is None else str(cell) for cell in row] for row in rows)]
    return "".join(record([guarded(cell) for cell in line]) + "\n" for line in lines).encode(
        "utf-8", "replace"
    )


def guarded(cell: str) -> str:
    """Return a cell with an apostrophe before it where a spreadsheet would take it for a formula."""
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


def unguarded(cell: str) -> str:
    """Return the cell that was guarded."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
