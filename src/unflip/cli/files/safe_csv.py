"""CSV files in which no cell is run as a formula by a spreadsheet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from unflip.cli.files.delimited import record

# A spreadsheet may run a cell as a formula if it starts with one of these signs, also full-width or
# small, after blanks and invisible characters. The page's decisions.js has the same pattern. It
# includes apostrophes at the start, which would be mistaken for the added one.
_BLANKS = r"[\s\x00-\x1f\x7f-\x9f\xad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
_SIGNS = r"[=+\-@\ufe62\ufe63\ufe66\ufe6b\uff0b\uff0d\uff1d\uff20]"
_FORMULA = re.compile(rf"'*(?:[\x00-\x1f]|{_BLANKS}*{_SIGNS})")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)


def csv_bytes(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """Return the content of a CSV file; None is an empty cell."""
    lines = [header, *(["" if cell is None else str(cell) for cell in row] for row in rows)]
    return "".join(record([guarded(cell) for cell in line]) + "\n" for line in lines).encode(
        "utf-8", "replace"
    )


def guarded(cell: str) -> str:
    """Return a cell with an apostrophe before it if a spreadsheet may run it as a formula."""
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


def unguarded(cell: str) -> str:
    """Return a cell without the apostrophe of `guarded`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
