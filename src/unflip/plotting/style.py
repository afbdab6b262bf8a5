"""How every picture looks: one colour and one marker for each variant, and files that come out the same each time."""

from __future__ import annotations

import io
from contextlib import AbstractContextManager
from typing import Any, Literal, TypeAlias

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

# Okabe and Ito's palette: distinct for readers with any colour vision.
COLOURS = {
    "oracle": "#666666",
    "naive": "#D55E00",
    "unbiased": "#0072B2",
    "optimized": "#009E73",
    "LPC": "#CC79A7",
    "refined": "#000000",
}
MARKERS = {
    "oracle": "D",
    "naive": "o",
    "unbiased": "s",
    "optimized": "^",
    "LPC": "v",
    "refined": "*",
}
NEGATIVE, POSITIVE = "#56B4E9", "#E69F00"
ESTIMATORS = ("#DDAA33", "#332288")  # Tol's: the paper's and ours
CENTRED = "#882255"  # variants that coincide once the rows are centred
INK, FAINT = "#222222", "#9A9A9A"

_PNG_DPI = 130
#: Settings of matplotlib for the look of the house.
LOOK: Any = {
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.labelsize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.7,
    "lines.markersize": 4.5,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
}
Sharing: TypeAlias = bool | Literal["none", "all", "row", "col"]


def new_figure(
    width: float,
    height: float,
    rows: int,
    columns: int,
    *,
    sharex: Sharing = False,
    sharey: Sharing = False,
) -> tuple[Figure, list[Axes]]:
    """Return a figure of the house's look and its axes, row by row."""
    with rc_context(LOOK):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(rows, columns, squeeze=False, sharex=sharex, sharey=sharey)
    return figure, list(axes.ravel())


def set_title(ax: Axes, text: str) -> None:
    """Head a panel."""
    ax.set_title(text, fontsize=10)


def legend_below(figure: Figure, axes: Axes, columns: int) -> None:
    """Put the legend of some axes under all of them, where it covers no data."""
    with rc_context(LOOK):
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=columns)


def as_svg(figure: Figure, name: str) -> bytes:
    """Return the picture as SVG, the same bytes each time: no date, and identifiers that depend on its name alone."""
    buffer = io.BytesIO()
    with rc_context({**LOOK, "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def as_png(figure: Figure) -> bytes:
    """Return the picture as PNG."""
    buffer = io.BytesIO()
    with rc_context(LOOK):
        figure.savefig(buffer, format="png", dpi=_PNG_DPI)
    return buffer.getvalue()


def house_look() -> AbstractContextManager[None]:
    """Draw in the house's look within this context, also on axes that somebody else made."""
    return rc_context(LOOK)
