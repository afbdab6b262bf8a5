"""Figure of `unflip demo`: the first suspects as images, and the accuracies of classifiers."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure

from unflip.cli.demo.digits_result import DigitsDemo
from unflip.plotting.style import COLOURS, INK, as_png, house_look

_ROWS, _COLUMNS = 3, 7  # of the first suspects


def picture(result: DigitsDemo) -> bytes:
    """Return the figure as PNG."""
    with house_look():
        figure = Figure(figsize=(11, 4.2), layout="constrained")
        FigureCanvasAgg(figure)
        left, right = figure.subfigures(1, 2, width_ratios=(1.5, 1), squeeze=False)[0]
        _draw_suspects(left, result)
        _draw_accuracies(right.subplots(), result)
        return as_png(figure)


def _draw_suspects(figure: SubFigure, result: DigitsDemo) -> None:
    shown = result.audit.suspects
    rows = np.asarray(shown["row"])
    observed = np.asarray(shown["observed"])
    proposed = np.asarray(shown["proposed"])
    for place, ax in enumerate(figure.subplots(_ROWS, _COLUMNS).ravel()):
        ax.axis("off")
        if place >= len(observed):
            continue
        row = rows[place]
        ax.imshow(result.images[row], cmap="gray", vmin=0, vmax=255)
        is_found = result.true[row] == proposed[place]
        colour = INK if is_found else COLOURS["naive"]
        ax.set_title(f"{observed[place]} → {proposed[place]}", fontsize=11, color=colour)
    title = "First suspects: observed → proposed label (orange: the proposal is wrong)"
    figure.suptitle(title, fontsize=10)


def _draw_accuracies(ax: Axes, result: DigitsDemo) -> None:
    lines = [
        ("logistic regression,\nnoisy labels", result.logistic.measured, COLOURS["naive"]),
        ("unflip,\nnoisy labels", result.unflip.measured, COLOURS["optimized"]),
        ("logistic regression,\ntrue labels", result.clean, COLOURS["oracle"]),
    ]
    for place, (_, accuracy, colour) in enumerate(lines):
        error = np.sqrt(accuracy * (1 - accuracy) / result.n_new)
        ax.errorbar(100 * accuracy, place, xerr=200 * error, fmt="o", color=colour, capsize=3)
        ax.annotate(
            f"{accuracy:.1%}",
            (100 * accuracy, place),
            (0, 10),
            textcoords="offset points",
            ha="center",
            color=colour,
            fontsize=11,
        )
    estimates = [result.logistic.estimated, result.unflip.estimated]
    ax.plot(
        [100 * each for each in estimates],
        range(len(estimates)),
        linestyle="",
        marker="D",
        color="white",
        markeredgecolor=INK,
        markersize=7,
        label="estimated from the noisy labels",
        zorder=1,
    )
    ax.set_yticks(range(len(lines)), [name for name, _, _ in lines])
    ax.margins(x=0.08, y=0.3)
    ax.invert_yaxis()
    ax.set_xlabel("percent (± 2 standard errors)")
    ax.legend(loc="lower left")
    ax.set_title("Accuracy on new images with clean labels", fontsize=10)
