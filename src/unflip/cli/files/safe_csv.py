"""CSV files in which no cell is run as a formula by a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from unflip._utils.guarded_cells import guarded
from unflip.cli.files.delimited import record


def csv_bytes(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """Return the content of a CSV file; None is an empty cell."""
    lines = [header, *(["" if cell is None else str(cell) for cell in row] for row in rows)]
    return "".join(record([guarded(cell) for cell in line]) + "\n" for line in lines).encode(
        "utf-8", "replace"
    )
