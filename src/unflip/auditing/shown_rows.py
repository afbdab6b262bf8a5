"""What pages and notebooks show of the rows of an audit: ids, texts, images and cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False, kw_only=True)
class ShownRows:
    """What to show of each row, with one entry for each row of the audit.

    Attributes
    ----------
    ids : sequence of str, optional
        Name of each row.
    texts : sequence of str, optional
        Text of each row.
    images : sequence of path or array, optional
        Image of each row: a file, or its pixels of shape (height, width) or (height, width, 3).
    cells : mapping of str to sequence, optional
        Columns of a table, by name.
    numbers : sequence of int, optional
        Row number in the data, if not all rows of the data were audited.
    source : str
        Name of the data.
    """

    ids: Sequence[Any] | None = None
    texts: Sequence[Any] | None = None
    images: Sequence[Any] | None = None
    cells: Mapping[str, Sequence[Any]] | None = None
    numbers: Sequence[int] | None = None
    source: str = ""

    def checked(self, n_rows: int) -> ShownRows:
        """Return the same as lists; raise ValueError unless each has an entry for each row."""
        cells = None
        if self.cells is not None:
            cells = {name: _in_order(each, n_rows, name) or [] for name, each in self.cells.items()}
        return ShownRows(
            ids=_in_order(self.ids, n_rows, "ids"),
            texts=_in_order(self.texts, n_rows, "texts"),
            images=_in_order(self.images, n_rows, "images"),
            cells=cells,
            numbers=_in_order(self.numbers, n_rows, "numbers"),
            source=self.source,
        )


def _in_order(values: Sequence[Any] | None, n_rows: int, name: str) -> list[Any] | None:
    """Return a list with an entry for each row; a pandas Series would be indexed by its labels."""
    if values is None:
        return None
    try:
        entries = list(values)
    except TypeError:
        raise TypeError(
            f"{name} = {values!r} must be a sequence: pass one entry for each row."
        ) from None
    if len(entries) != n_rows:
        raise ValueError(
            f"{name} has {len(entries)} entries but the audit has {n_rows} rows: pass one for each "
            "row."
        )
    return entries
