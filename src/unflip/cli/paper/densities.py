"""Histograms of the decision function by true class, with the predicted Gaussians."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy.special import ndtr
from scipy.stats import norm

from unflip._utils.typing import FloatArray, IntArray
from unflip.cli.paper.piece import Table
from unflip.plotting import style

# Class, colour and name in the legend.
_CLASSES = ((0, style.NEGATIVE, "true negatives"), (1, style.POSITIVE, "true positives"))


def histogram_rows(labels: Mapping[str, object], scores: FloatArray, true: IntArray) -> Table:
    """Return the density of each class in 25 bins of its own range."""
    parts = []
    for label in (0, 1):
        density, edges = np.histogram(scores[true == label], bins=25, density=True)
        bins = {"true": label, "left": edges[:-1], "right": edges[1:], "density": density}
        parts.append(pd.DataFrame({**labels, **bins}))
    return pd.concat(parts, ignore_index=True)


def class_rows(
    labels: Mapping[str, object],
    scores: FloatArray,
    true: IntArray,
    means: FloatArray,
    stds: FloatArray,
) -> Table:
    """Return mean, standard deviation and accuracy of each class, observed and predicted."""
    own = [scores[true == label] for label in (0, 1)]
    return pd.DataFrame(
        {
            **labels,
            "true": [0, 1],
            "mean": [part.mean() for part in own],
            "predicted_mean": means,
            "std": [part.std(ddof=1) for part in own],
            "predicted_std": stds,
            "accuracy": [np.mean(own[0] < 0), np.mean(own[1] > 0)],
            "predicted_accuracy": ndtr(np.array([-1, 1]) * means / stds),
        }
    )


def draw_bars(ax: Axes, bins: Table) -> None:
    """Plot the histogram of each class."""
    for label, colour, name in _CLASSES:
        own = bins[bins["true"] == label]
        width = own.right - own.left
        ax.bar(own.left, own.density, width, align="edge", color=colour, alpha=0.55, label=name)
    ax.axvline(0, color=style.INK, lw=0.8, ls=":")
    ax.set_yticks([])
    ax.grid(False)


def draw_law(ax: Axes, classes: Table, *, label: str = "predicted", dashes: str = "-") -> None:
    """Plot the predicted Gaussian of each class."""
    for law in classes.itertuples():
        grid = law.predicted_mean + law.predicted_std * np.linspace(-3.7, 3.7, 161)
        density = norm.pdf(grid, law.predicted_mean, law.predicted_std)
        ax.plot(
            grid, density, color=style.INK, lw=1.2, ls=dashes, label=label if law.true else None
        )
