"""What notebooks show of an audit: its main numbers, one picture, and the first suspects.

There are no scripts, and colours are those of the notebook's text, so that it suits light and dark
themes. Texts of the data are escaped by the template.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.special import logit

from unflip._utils.record_tables import lines_of
from unflip._utils.typing import FloatArray
from unflip.auditing import prose
from unflip.auditing.html import page_tables
from unflip.auditing.html.page_parts import environment
from unflip.auditing.html.row_contents import RowContents, cut
from unflip.auditing.html.score_panels import score_panels
from unflip.auditing.report import Audit

# Choices, so that an output stays below 100 kB, and fits on a screen.
_N_SUSPECTS = 8
_MOST_CELLS = 5  # columns of a table
_LONGEST_TEXT = 160  # characters
_LONGEST_NAME = 40  # characters of ids and labels
_MOST_BARS = 12  # classes in the picture of noise rates

# The picture, in pixels.
_WIDTH = 340.0
_HEIGHT = 120.0


def notebook_view(audit: Audit) -> str:
    """Return the audit as HTML, for the output of a notebook's cell."""
    html = (
        environment()
        .get_template("notebook.html")
        .render(
            title=prose.headline(audit),
            cards=page_tables.figures(audit),
            histogram=_Histogram.of(audit) if len(audit.classes) == 2 else None,
            rates=_rates(audit) if len(audit.classes) > 2 else [],
            suspects=_Suspects.of(audit),
            n_listed=len(audit.suspects),
            next_step=prose.next_step(audit),
        )
    )
    return html.encode("utf-8", "replace").decode()


@dataclass(frozen=True)
class _Suspects:
    """The first suspects: names of the columns with their content, and a list for each row."""

    columns: list[str]
    images: dict[int, str]
    rows: list[tuple[int, list[str], str, str, str]]  # row, content, labels and probability

    @classmethod
    def of(cls, audit: Audit) -> _Suspects:
        contents = RowContents(audit.shown.checked(len(audit.evidence.codes)))
        lines = list(lines_of(audit.suspects[:_N_SUSPECTS]))
        rows = [line.row for line in lines]
        names = contents.ids(rows) or [str(number) for number in contents.numbers(rows)]
        columns = ["row" if audit.shown.ids is None else "id"]
        content = [[cut(name, _LONGEST_NAME)] for name in names]
        texts = contents.texts(rows, _LONGEST_TEXT)
        if texts is not None:
            columns.append("text")
            content = [[*cells, text] for cells, text in zip(content, texts, strict=True)]
        shown_columns = contents.column_names(len(rows))[:_MOST_CELLS]
        table = contents.cells(rows, shown_columns)
        if table is not None:
            columns += [cut(str(name), _LONGEST_NAME) for name in shown_columns]
            content = [[*cells, *line] for cells, line in zip(content, table, strict=True)]
        return cls(
            columns,
            contents.images(rows),
            [
                (
                    line.row,
                    cells,
                    cut(str(line.observed), _LONGEST_NAME),
                    cut(str(line.proposed), _LONGEST_NAME),
                    f"{line.probability:.1%}",
                )
                for line, cells in zip(lines, content, strict=True)
            ],
        )


@dataclass(frozen=True)
class _Histogram:
    """Rows by the log-odds of the second class, as paths of an SVG; see `score_panels`."""

    labels: list[str]  # of the two classes
    bars: list[str]  # of the rows with each label
    lines: list[str]  # expected number of these rows
    marks: list[tuple[float, str]]  # place on the axis, and probability
    width: float = _WIDTH
    height: float = _HEIGHT

    @classmethod
    def of(cls, audit: Audit) -> _Histogram:
        panel = score_panels(audit.evidence)[0]
        most = float(max(panel.counts.max(), panel.expected.max()))
        return cls(
            labels=[cut(str(label), _LONGEST_NAME) for label in audit.classes.tolist()],
            bars=[_bars(counts / most) for counts in panel.counts],
            lines=[_line(expected / most) for expected in panel.expected],
            marks=[
                (
                    round(_WIDTH * (float(logit(mark)) - panel.low) / (panel.high - panel.low), 1),
                    f"{100 * mark:g}%",
                )
                for mark in panel.marks
            ],
        )


def _bars(heights: FloatArray) -> str:
    """Return bars of these shares of the height, as the path of an SVG."""
    width = _WIDTH / len(heights)
    return "".join(
        f"M{i * width:.1f} {_HEIGHT:.1f}v{-_HEIGHT * height:.1f}h{width:.1f}V{_HEIGHT:.1f}z"
        for i, height in enumerate(heights.tolist())
    )


def _line(heights: FloatArray) -> str:
    """Return a line at these shares of the height, as the path of an SVG."""
    places = (np.arange(len(heights)) + 0.5) * _WIDTH / len(heights)
    points = (
        f"{x:.1f} {_HEIGHT * (1 - height):.1f}"
        for x, height in zip(places.tolist(), heights.tolist(), strict=True)
    )
    return "M" + "L".join(points)


def _rates(audit: Audit) -> Iterable[tuple[str, str, float]]:
    """Return the largest noise rates: class, rate in words, and length of a bar."""
    rates = 1 - np.diag(audit.noise.transition)
    errors = np.diag(audit.noise_std)
    order = np.argsort(-rates, kind="stable")[:_MOST_BARS].tolist()
    most = max(float(rates.max()), np.finfo(float).tiny)
    for a in order:
        error = f" ± {errors[a]:.0%}" if errors[a] > 0 else ""
        label = cut(str(audit.classes[a]), _LONGEST_NAME)
        yield label, f"{rates[a]:.0%}{error}", round(100 * float(rates[a]) / most, 1)
