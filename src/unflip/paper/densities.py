"""Histograms of the decision function of either class, with the predicted Gaussians."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy.special import ndtr
from scipy.stats import norm

from unflip._utils.typing import FloatArray, IntArray
from unflip.paper.piece import Table
from unflip.plotting import style

N_BINS = 25
_CLASSES = ((0, style.NEGATIVE, "truly negative"), (1, style.POSITIVE, "truly positive"))


def histogram_rows(labels: Mapping[str, object], scores: FloatArray, true: IntArray) -> Table:
    """Return the density of each class in bins of its own range."""
    parts = []
    for label in (0, 1):
        density, edges = np.histogram(scores[true == label], bins=N_BINS, density=True)
        parts.append(
            pd.DataFrame(
                {
                    **labels,
                    "true": label,
                    "left": edges[:-1],
                    "right": edges[1:],
                    "density": density,
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def class_rows(
    labels: Mapping[str, object],
    scores: FloatArray,
    true: IntArray,
    means: FloatArray,
    stds: FloatArray,
) -> Table:
    """Return mean, spread and accuracy of each class's scores, beside the predicted (negative, positive) ones."""
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
    """Draw the histogram of each class."""
    for label, colour, word in _CLASSES:
        own = bins[bins["true"] == label]
        ax.bar(
            own.left,
            own.density,
            own.right - own.left,
            align="edge",
            color=colour,
            alpha=0.55,
            label=word,
        )
    ax.axvline(0, color=style.INK, lw=0.8, ls=":")
    ax.set_yticks([])
    ax.grid(False)


def draw_law(ax: Axes, classes: Table, *, label: str = "predicted", dashes: str = "-") -> None:
    """Draw the predicted Gaussian of each class."""
    for law in classes.itertuples():
        grid = law.predicted_mean + law.predicted_std * np.linspace(-3.7, 3.7, 161)
        density = norm.pdf(grid, law.predicted_mean, law.predicted_std)
        ax.plot(
            grid, density, color=style.INK, lw=1.2, ls=dashes, label=label if law.true else None
        )
