"""CSV files that a spreadsheet can open: no cell of them is run as a formula."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


def csv_bytes(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """Return a CSV file with these cells; None is empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(map(guarded, header))
    writer.writerows([guarded("" if cell is None else str(cell)) for cell in row] for row in rows)
    return buffer.getvalue().encode("utf-8", "replace")


def guarded(cell: str) -> str:
    """Return a cell with an apostrophe before it where a spreadsheet would take it for a formula."""
    return f"'{cell}" if cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell) else cell


def unguarded(cell: str) -> str:
    """Return the cell that was guarded."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell
