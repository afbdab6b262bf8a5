"""The rows to check next on the page of an audit, and those that were checked before."""

from __future__ import annotations

from typing import Any

import numpy as np

from unflip.auditing.html.row_contents import RowContents
from unflip.auditing.report import Audit

LONGEST_NOTE = 500  # characters of a note


def names(audit: Audit, contents: RowContents) -> list[str]:
    """Return the name of each row to check next: its id, or its number."""
    rows = audit.next_checks.rows.tolist()
    ids = None if _ids_tell_labels(audit, contents) else contents.ids(rows)
    return ids or [str(number) for number in contents.numbers(rows)]


def content(audit: Audit, contents: RowContents) -> dict[str, Any]:
    """Return what the page shows of the rows to check next, and all checks before.

    Earlier checks are exported again with the new ones, so that one file has the whole sample.
    """
    rows = audit.next_checks.rows.tolist()
    columns = contents.column_names(len(rows))
    cells = contents.cells(rows, columns)
    images = contents.images(rows)
    return {
        "row": contents.numbers(rows),
        "id": contents.ids(rows),
        "hides_ids": _ids_tell_labels(audit, contents),
        "text": contents.texts(rows),
        "image": [images.get(row) for row in rows] if images else None,
        "cells": None if cells is None else {"names": columns, "values": cells},
        "observed": _observed(audit, rows),
        "earlier": _earlier(audit, contents),
    }


def _ids_tell_labels(audit: Audit, contents: RowContents) -> bool:
    """Whether the id of every row with a label contains it, as in image folders: cat/03.png."""
    rows = np.flatnonzero(audit.evidence.labelled).tolist()
    labels = [str(audit.classes[code]) for code in _observed(audit, rows)]
    ids = contents.ids(rows)
    return ids is not None and all(
        label.casefold() in name.casefold() for label, name in zip(labels, ids, strict=True)
    )


def _earlier(audit: Audit, contents: RowContents) -> dict[str, Any]:
    """Return the rows that were checked before, if they are a sample."""
    rows = audit.checked.tolist() if audit.is_calibrated else []
    return {
        "row": contents.numbers(rows),
        "id": contents.ids(rows),
        "observed": _observed(audit, rows),
        "label": audit.evidence.truth[rows].tolist(),
    }


def _observed(audit: Audit, rows: list[int]) -> list[int]:
    return [int(code) for code in audit.evidence.codes[rows]]
