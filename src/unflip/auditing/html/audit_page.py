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
from unflip.auditing.html import check_rows, page_tables
from unflip.auditing.html.page_parts import content_hash, cut, read_part, rendered
from unflip.auditing.html.score_panels import MOST_PANELS, ScorePanel, score_panels
from unflip.auditing.report import Audit
from unflip.auditing.shown_rows import ShownRows

_SCRIPTS = (
    "decisions.js",
    "view.js",
    "table.js",
    "keyboard.js",
    "charts.js",
    "outlook.js",
    "tabs.js",
    "checks.js",
    "start.js",
)
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
    text_heading: str = "Text",
    by_command: bool = False,
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
    text_heading : str
        Heading of the column of texts.
    by_command : bool
        Whether to advise on commands rather than on Python.
    """
    shown = (audit.shown if shown is None else shown).checked(len(audit.evidence.codes))
    data = _data(audit, shown, text_heading)
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
        check_names=check_rows.names(audit, shown),
        longest_note=check_rows.LONGEST_NOTE,
        interface=prose.COMMAND_LINE if by_command else prose.PYTHON,
        data=data,
        data_block=script_safe_json(data),
        script=Markup(script),
        script_hash=content_hash(script),
        most_panels=MOST_PANELS,
    )


def script_safe_json(data: Any) -> Markup:
    r"""Return ASCII JSON for a script element, with <, > and & as \u003c, \u003e and \u0026."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _data(audit: Audit, shown: ShownRows, text_heading: str) -> dict[str, Any]:
    """Return the data of the page's scripts."""
    content = {
        "source": shown.source,
        "classes": [str(label) for label in audit.classes.tolist()],
        "n_rows": len(audit.evidence.codes),
        "n_suspects": audit.n_suspects,
        "suspects": _suspects(audit, shown),
        "check": check_rows.content(audit, shown),
        "text_heading": text_heading,
        "panels": [_panel(panel) for panel in score_panels(audit.evidence)],
        "outlook": _outlook(audit),
    }
    return {"key": hashlib.sha256(json.dumps(content).encode()).hexdigest()[:24], **content}


def _suspects(audit: Audit, shown: ShownRows) -> dict[str, Any]:
    suspects = audit.suspects
    numbers, ids, texts = shown.numbers, shown.ids, shown.texts
    rows = suspects.row.tolist()
    checked_places = np.flatnonzero(np.isin(suspects.row, audit.checked))
    return {
        "row": rows if numbers is None else [numbers[row] for row in rows],
        "id": None if ids is None else [str(ids[row]) for row in rows],
        "text": None if texts is None else [cut(str(texts[row])) for row in rows],
        "observed": np.searchsorted(audit.classes, suspects.observed).tolist(),
        "proposed": np.searchsorted(audit.classes, suspects.proposed).tolist(),
        "checked": checked_places.tolist(),
        "probability": suspects.probability.round(6).tolist(),
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
