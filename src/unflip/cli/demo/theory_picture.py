"""Figure of the demonstration: scores and accuracies, simulated and predicted."""

from __future__ import annotations

import io

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from unflip.cli.demo.theory_check import SETUP, Demo, predict
from unflip.plotting.style import COLOURS, MARKERS, NEGATIVE, POSITIVE


def picture(result: Demo) -> bytes:
    """Return the figure as PNG."""
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, 4, width_ratios=(1, 1, 1, 1.6))
    for ax, variant in zip(axes[:3], ("naive", "unbiased", "optimized"), strict=True):
        _draw_scores(ax, result, variant)
    axes[0].set_ylabel("density of the score on new rows")
    _draw_curves(axes[3], result)
    figure.suptitle(
        f"Learning from noisy labels: n = {SETUP.n_rows}, p = {SETUP.n_features}, ‖μ‖ = "
        f"{SETUP.mean_norm:g}, ε₊ = {SETUP.eps_pos:g}, ε₋ = {SETUP.eps_neg:g} — bars and markers "
        "simulated, lines predicted",
        fontsize=11,
    )
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


def _draw_scores(ax: Axes, result: Demo, variant: str) -> None:
    scores = result.scores[variant]
    prediction = predict(variant, SETUP.eps_pos)
    grid = np.linspace(scores.min(), scores.max(), 200)
    bins = grid[::6].tolist()
    std = float(np.sqrt(prediction.variance))
    for label, colour, name in ((0, NEGATIVE, "true negatives"), (1, POSITIVE, "true positives")):
        own = scores[result.true == label]
        ax.hist(own, bins=bins, density=True, color=colour, alpha=0.35, label=name)
        standardised = (grid - prediction.means[label]) / std
        density = np.exp(-0.5 * standardised**2) / (std * np.sqrt(2 * np.pi))
        ax.plot(grid, density, color=colour, lw=1.8)
    ax.axvline(0, color="black", lw=0.8, ls=":")
    ax.set_title(f"{variant}: {float(prediction.accuracy):.1%} predicted", fontsize=10)
    ax.set_yticks([])
    ax.set_xlabel("score wᵀx")
    if variant == "naive":
        ax.set_ylim(top=1.35 * ax.get_ylim()[1])
        ax.legend(fontsize=8, loc="upper left", frameon=False)


def _draw_curves(ax: Axes, result: Demo) -> None:
    rates = np.linspace(min(SETUP.eps_pos_grid), max(SETUP.eps_pos_grid), 61)
    for variant, points in result.curves.items():
        colour = COLOURS[variant]
        predicted = [float(predict(variant, rate).accuracy) for rate in rates]
        ax.plot(rates, predicted, color=colour, lw=1.5)
        ax.errorbar(
            SETUP.eps_pos_grid,
            [point.simulated for point in points],
            yerr=[2 * point.standard_error for point in points],
            fmt=MARKERS[variant],
            color=colour,
            ms=5,
            capsize=2,
            label=variant,
        )
    ax.set_xlabel("ε₊, noise rate of the positive class")
    ax.set_ylabel("accuracy on clean labels")
    ax.set_title("accuracy against noise rate (± 2 standard errors)", fontsize=10)
    ax.grid(alpha=0.25)
    ax.legend(fontsize=8, loc="lower left")
