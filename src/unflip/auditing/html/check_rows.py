"""The rows to check next on the page of an audit, and those that were checked before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unflip.auditing.html.page_parts import cut
from unflip.auditing.report import Audit
from unflip.auditing.shown_rows import ShownRows

LONGEST_NOTE = 500  # characters of a note


def names(audit: Audit, shown: ShownRows) -> list[str]:
    """Return the name of each row to check next: its id, or its number."""
    rows = audit.next_checks.rows.tolist()
    return _ids(shown, rows) or [str(number) for number in _numbers(shown, rows)]


def content(audit: Audit, shown: ShownRows) -> dict[str, Any]:
    """Return what the page shows of the rows to check next, and all checks before.

    Earlier checks are exported again with the new ones, so that one file has the whole sample.
    """
    rows = audit.next_checks.rows.tolist()
    texts, cells = shown.texts, shown.cells
    return {
        "row": _numbers(shown, rows),
        "id": _ids(shown, rows),
        "text": None if texts is None else [cut(str(texts[row])) for row in rows],
        "image": None,
        "cells": None if cells is None else _cells(cells, rows),
        "observed": _observed(audit, rows),
        "earlier": _earlier(audit, shown),
    }


def _earlier(audit: Audit, shown: ShownRows) -> dict[str, Any]:
    """Return the rows that were checked before, if they are a sample."""
    rows = audit.checked.tolist() if audit.is_calibrated else []
    return {
        "row": _numbers(shown, rows),
        "id": _ids(shown, rows),
        "observed": _observed(audit, rows),
        "label": audit.evidence.truth[rows].tolist(),
    }


def _numbers(shown: ShownRows, rows: list[int]) -> list[int]:
    return rows if shown.numbers is None else [shown.numbers[row] for row in rows]


def _ids(shown: ShownRows, rows: list[int]) -> list[str] | None:
    return None if shown.ids is None else [str(shown.ids[row]) for row in rows]


def _observed(audit: Audit, rows: list[int]) -> list[int]:
    return [int(code) for code in audit.evidence.codes[rows]]


def _cells(cells: Mapping[str, Sequence[Any]], rows: list[int]) -> dict[str, Any]:
    values = [[cut(str(column[row])) for column in cells.values()] for row in rows]
    return {"names": list(cells), "values": values}
