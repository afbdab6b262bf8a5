"""The HTML page of an audit: one self-contained file to review and decide on the suspects."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from scipy.special import logit

from unflip._utils.atomic_files import write_atomically
from unflip._utils.typing import FloatArray
from unflip.auditing import check_prose, prose
from unflip.auditing.explanation import Explainer
from unflip.auditing.html import check_rows, page_tables
from unflip.auditing.html.page_parts import content_hash, read_part, rendered
from unflip.auditing.html.row_contents import RowContents
from unflip.auditing.html.score_panels import ScorePanel, score_panels
from unflip.auditing.html.suspect_reasons import suspect_reasons
from unflip.auditing.report import Audit
from unflip.auditing.shown_rows import ShownRows

_SCRIPTS = (
    "decisions.js",
    "view.js",
    "table.js",
    "keyboard.js",
    "detail.js",
    "charts.js",
    "heat_map.js",
    "outlook.js",
    "tabs.js",
    "checks.js",
    "start.js",
)
_LONGEST_EXAMPLE = 400  # characters shown of a row that is similar to a suspect
_GRID_STEPS = 48  # positions of the slider of checked labels, besides the number of suspects
_GROWTHS = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0)  # numbers of rows to choose from, relative to today


def write_page(audit: Audit, path: Path, **options: Any) -> None:
    """Write the page of an audit; an existing file is replaced only after the new one is complete.

    Parameters
    ----------
    audit : Audit
        The audit.
    path : Path
        File to write.
    **options
        Options of `page`.
    """
    write_atomically(path, page(audit, **options))


def page(
    audit: Audit,
    *,
    shown: ShownRows | None = None,
    assumptions: Sequence[str] = (),
    by_command: bool = False,
    feature_names: Sequence[str] | None = None,
) -> bytes:
    """Return the page of an audit.

    Parameters
    ----------
    audit : Audit
        The audit.
    shown : ShownRows, optional
        What to show of each row; by default ``audit.shown``. Long texts are cut.
    assumptions : sequence of str
        More assumptions to list.
    by_command : bool
        Whether to advise on commands rather than on Python.
    feature_names : sequence of str, optional
        Names of the columns of X, for the reasons of suspects.
    """
    shown = (audit.shown if shown is None else shown).checked(len(audit.evidence.codes))
    contents = RowContents(shown)
    data = _data(audit, contents, audit.explainer(feature_names))
    script = "\n".join(read_part(name) for name in _SCRIPTS)
    return rendered(
        "page.html",
        audit=audit,
        prose=prose,
        tables=page_tables,
        annotators=page_tables.annotator_lines(audit),
        source=shown.source,
        extra=list(assumptions),
        check_prose=check_prose,
        check_names=check_rows.names(audit, contents),
        longest_note=check_rows.LONGEST_NOTE,
        interface=prose.COMMAND_LINE if by_command else prose.PYTHON,
        data=data,
        data_block=script_safe_json(data),
        script=Markup(script),
        script_hash=content_hash(script),
    )


def script_safe_json(data: Any) -> Markup:
    r"""Return ASCII JSON for a script element, with <, > and & as \u003c, \u003e and \u0026."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _data(audit: Audit, contents: RowContents, explainer: Explainer | None) -> dict[str, Any]:
    """Return the data of the page's scripts."""
    panels = [_panel(panel) for panel in score_panels(audit.evidence)]
    content = {
        "source": contents.shown.source,
        "classes": [str(label) for label in audit.classes.tolist()],
        "n_rows": len(audit.evidence.codes),
        "n_suspects": audit.n_suspects,
        "suspects": _suspects(audit, contents),
        "check": check_rows.content(audit, contents),
        "details": _details(audit, contents, explainer),
        "panels": panels,
        "transition": None if panels else _transition(audit),
        "outlook": _outlook(audit),
    }
    return {"key": hashlib.sha256(json.dumps(content).encode()).hexdigest()[:24], **content}


def _suspects(audit: Audit, contents: RowContents) -> dict[str, Any]:
    suspects = audit.suspects
    rows = suspects["row"].tolist()
    columns = contents.column_names(len(rows))
    images = contents.images(rows)
    return {
        "row": contents.numbers(rows),
        "id": contents.ids(rows),
        "text": contents.texts(rows),
        "columns": columns,
        "cells": contents.cells(rows, columns),
        "images": [images.get(row) for row in rows] if images else None,
        "observed": np.searchsorted(audit.classes, suspects["observed"]).tolist(),
        "proposed": np.searchsorted(audit.classes, suspects["proposed"]).tolist(),
        "checked": np.flatnonzero(np.isin(suspects["row"], audit.checked)).tolist(),
        "probability": np.round(suspects["probability"], 6).tolist(),
    }


def _details(
    audit: Audit, contents: RowContents, explainer: Explainer | None
) -> dict[str, Any] | None:
    """Return why the first suspects are suspect, with the rows that are similar to them."""
    if explainer is None:
        return None
    reasons = suspect_reasons(explainer, np.asarray(audit.suspects["row"]))
    rows = sorted({row for line in reasons["nearest"] for row in line})
    places = {row: place for place, row in enumerate(rows)}
    columns = contents.column_names(len(audit.suspects))
    images = contents.images(rows)
    examples = {
        "row": contents.numbers(rows),
        "id": contents.ids(rows),
        "text": contents.texts(rows, _LONGEST_EXAMPLE),
        "cells": contents.cells(rows, columns),
        "images": [images.get(row) for row in rows] if images else None,
        "label": audit.evidence.codes[rows].tolist(),
    }
    nearest = [[places[row] for row in line] for line in reasons["nearest"]]
    return {**reasons, "nearest": nearest, "examples": examples}


def _transition(audit: Audit) -> dict[str, Any]:
    """Return the transition matrix and its standard errors, for a heat map."""
    return {
        "rates": audit.noise.transition.round(5).tolist(),
        "errors": audit.noise_std.round(5).tolist(),
    }


def _panel(panel: ScorePanel) -> dict[str, Any]:
    return {
        "class": panel.code,
        "low": panel.low,
        "high": panel.high,
        "counts": panel.counts.astype(int).tolist(),
        "expected": panel.expected.round(3).tolist(),
        "marks": [[float(logit(mark)), f"{100 * mark:g}%"] for mark in panel.marks],
    }


def _outlook(audit: Audit) -> dict[str, Any] | None:
    """Return the accuracy after checks on a grid, for each growth; None if it is not known."""
    if np.isnan(audit.accuracy_after(0)):
        return None
    checked = _grid(audit.n_labels, audit.n_suspects)
    accuracy = [[audit.accuracy_after(m, growth=growth) for m in checked] for growth in _GROWTHS]
    return {
        "checked": checked,
        "growth": list(_GROWTHS),
        "accuracy": [[round(value, 6) for value in line] for line in accuracy],
        # Formatted here, because JavaScript may round ties differently.
        "accuracy_text": [[page_tables.percent(value) for value in line] for line in accuracy],
        "gain_text": [[page_tables.gain(audit, value) for value in line] for line in accuracy],
    }


def _grid(n: int, n_suspects: int) -> list[int]:
    """Return numbers of checked rows from 0 to n, denser near 0, including `n_suspects`."""
    steps: FloatArray = n * np.linspace(0, 1, _GRID_STEPS + 1) ** 2
    return sorted({*steps.round().astype(int).tolist(), n_suspects})
