"""The page of an audit."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from unflip.auditing import Audit
from unflip.report.files import write_atomically


def write_page(
    audit: Audit,
    path: Path,
    *,
    texts: Sequence[str] | None = None,
    ids: Sequence[str] | None = None,
    source: str = "",
    assumptions: Sequence[str] = (),
) -> None:
    """Write the suspects of an audit as a bare page.

    Parameters
    ----------
    audit : Audit
        What was found.
    path : Path
        Where to write the page.
    texts, ids : sequence of str, optional
        What to show of each row, and its name.
    source : str
        Name of the data.
    assumptions : sequence of str
        Further sentences on what was assumed.
    """
    lines = [f"<h1>{escape(source)}</h1>", *(f"<p>{escape(sentence)}</p>" for sentence in assumptions)]
    for row, observed, proposed, probability in audit.suspects.tolist():
        name = "" if ids is None else ids[row]
        text = "" if texts is None else texts[row]
        cells = (str(row), name, str(observed), str(proposed), f"{probability:.3f}", text)
        lines.append(f"<p>{' | '.join(escape(cell) for cell in cells)}</p>")
    page = f"<!doctype html><meta charset=utf-8><title>{escape(source)}</title>{''.join(lines)}"
    write_atomically(path, page.encode("utf-8", "replace"))
