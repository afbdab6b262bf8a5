"""The picture of the demonstration: scores and accuracies, simulated against predicted."""

from __future__ import annotations

import io

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from unflip.cli.demo import theory_check as story
from unflip.plotting.style import COLOURS, MARKERS, NEGATIVE, POSITIVE


def picture(result: story.Demo) -> bytes:
    """Return the picture as PNG."""
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, 4, width_ratios=(1, 1, 1, 1.6))
    for ax, variant in zip(axes[:3], ("naive", "unbiased", "optimized"), strict=True):
        _draw_scores(ax, result, variant)
    axes[0].set_ylabel("density of the score on new rows")
    _draw_curves(axes[3], result)
    figure.suptitle(
        f"Learning from flipped labels: n = {story.N_ROWS}, p = {story.N_FEATURES}, ‖μ‖ = "
        f"{story.MEAN_NORM:g}, ε₊ = {story.EPS_POS:g}, ε₋ = {story.EPS_NEG:g} — bars and markers "
        "simulated, lines predicted",
        fontsize=11,
    )
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


def _draw_scores(ax: Axes, result: story.Demo, variant: str) -> None:
    scores, prediction = result.scores[variant], story.predict(variant, story.EPS_POS)
    grid = np.linspace(scores.min(), scores.max(), 200)
    std = float(np.sqrt(prediction.variance))
    for label, colour, word in ((0, NEGATIVE, "truly negative"), (1, POSITIVE, "truly positive")):
        bins = grid[::6].tolist()
        ax.hist(
            scores[result.true == label],
            bins=bins,
            density=True,
            color=colour,
            alpha=0.35,
            label=word,
        )
        density = np.exp(-0.5 * ((grid - prediction.means[label]) / std) ** 2) / (
            std * np.sqrt(2 * np.pi)
        )
        ax.plot(grid, density, color=colour, lw=1.8)
    ax.axvline(0, color="black", lw=0.8, ls=":")
    ax.set_title(f"{variant}: {float(prediction.accuracy):.1%} predicted", fontsize=10)
    ax.set_yticks([])
    ax.set_xlabel("score wᵀx")
    if variant == "naive":
        ax.set_ylim(top=1.35 * ax.get_ylim()[1])
        ax.legend(fontsize=8, loc="upper left", frameon=False)


def _draw_curves(ax: Axes, result: story.Demo) -> None:
    fine = np.linspace(min(story.EPS_POS_GRID), max(story.EPS_POS_GRID), 61)
    for variant, points in result.curves.items():
        colour = COLOURS[variant]
        ax.plot(
            fine,
            [float(story.predict(variant, rate).accuracy) for rate in fine],
            color=colour,
            lw=1.5,
        )
        ax.errorbar(
            story.EPS_POS_GRID,
            [point.simulated for point in points],
            yerr=[2 * point.standard_error for point in points],
            fmt=MARKERS[variant],
            color=colour,
            ms=5,
            capsize=2,
            label=variant,
        )
    ax.set_xlabel("ε₊, share of positives that are flipped")
    ax.set_ylabel("accuracy on clean labels")
    ax.set_title("what flips cost (± 2 standard errors)", fontsize=10)
    ax.grid(alpha=0.25)
    ax.legend(fontsize=8, loc="lower left")
