"""Style of all plots: one colour and one marker per variant, and reproducible image files."""

from __future__ import annotations

import io
from contextlib import AbstractContextManager
from typing import Any, Literal, TypeAlias

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

# Palette of Okabe and Ito, which is safe for colour-blind readers.
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
NEGATIVE = "#56B4E9"  # class
POSITIVE = "#E69F00"  # class
ESTIMATORS = ("#DDAA33", "#332288")  # from Tol's palette: the paper's estimator and ours
CENTRED = "#882255"  # variants that coincide after centring the rows
INK = "#222222"
FAINT = "#9A9A9A"

#: Settings of matplotlib.
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
    """Return a figure in the project's style and its axes, row by row."""
    with rc_context(LOOK):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(rows, columns, squeeze=False, sharex=sharex, sharey=sharey)
    return figure, list(axes.ravel())


def set_title(ax: Axes, text: str) -> None:
    """Set the title of a panel."""
    ax.set_title(text, fontsize=10)


def legend_below(figure: Figure, axes: Axes, columns: int) -> None:
    """Put the legend of one panel below all panels, where it covers no data."""
    with rc_context(LOOK):
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=columns)


def as_svg(figure: Figure, name: str) -> bytes:
    """Return the figure as SVG, with the same bytes each time: no date, identifiers from `name`."""
    buffer = io.BytesIO()
    with rc_context({**LOOK, "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def as_png(figure: Figure) -> bytes:
    """Return the figure as PNG."""
    buffer = io.BytesIO()
    with rc_context(LOOK):
        figure.savefig(buffer, format="png", dpi=130)
    return buffer.getvalue()


def house_look() -> AbstractContextManager[None]:
    """Use the project's style within this context, also on existing axes."""
    return rc_context(LOOK)
