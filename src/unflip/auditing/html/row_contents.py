"""What the page shows of a row: its number, id, text, cells of a table, and image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unflip.auditing.html.thumbnails import thumbnails
from unflip.auditing.shown_rows import ShownRows

_LONGEST_TEXT = 2000  # characters shown of a row's text
_LONGEST_CELL = 200  # characters shown of a cell
# Cells of all rows of a list, and columns, that are shown at most: a page of 10 MB. A choice.
_MOST_CELLS = 1_000_000
_MOST_COLUMNS = 40


@dataclass(frozen=True, eq=False)
class RowContents:
    """Texts, cells and images of rows, as the page shows them.

    Attributes
    ----------
    shown : ShownRows
        What to show of each row, checked.
    """

    shown: ShownRows

    def numbers(self, rows: Sequence[int]) -> list[int]:
        """Return the row numbers in the data."""
        numbers = self.shown.numbers
        return list(rows) if numbers is None else [int(numbers[row]) for row in rows]

    def ids(self, rows: Sequence[int]) -> list[str] | None:
        """Return the ids, None if there are none."""
        ids = self.shown.ids
        return None if ids is None else [str(ids[row]) for row in rows]

    def texts(self, rows: Sequence[int], longest: int = _LONGEST_TEXT) -> list[str] | None:
        """Return the texts, cut after a number of characters; None if there are none."""
        texts = self.shown.texts
        return None if texts is None else [cut(str(texts[row]), longest) for row in rows]

    def column_names(self, n_rows: int) -> list[str]:
        """Return the columns to show for a number of rows: fewer if there are very many rows."""
        columns = list(self.shown.cells or {})
        return columns[: min(_MOST_COLUMNS, max(_MOST_CELLS // max(n_rows, 1), 1))]

    def cells(self, rows: Sequence[int], columns: Sequence[str]) -> list[list[str]] | None:
        """Return the cells of some columns, a list for each row; None if there are none."""
        if not self.shown.cells:
            return None
        values = [self.shown.cells[name] for name in columns]
        return [[cell_text(column[row]) for column in values] for row in rows]

    def images(self, rows: Sequence[int]) -> dict[int, str]:
        """Return data URIs of the first images, by row."""
        return {} if self.shown.images is None else thumbnails(self.shown.images, rows)


def cut(text: str, longest: int) -> str:
    """Return a text of at most `longest` characters, with a mark if some are missing."""
    return text if len(text) <= longest else text[:longest] + " […]"


def cell_text(value: Any) -> str:
    """Return a cell as text: empty if missing, and numbers with at most six digits."""
    if value is None or value != value:
        return ""
    if isinstance(value, float | np.floating):
        return f"{float(value):.6g}"
    return cut(str(value), _LONGEST_CELL)
