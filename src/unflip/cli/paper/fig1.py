"""Figure 1: distribution of the decision function, in low and in high dimension."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from unflip._utils.typing import FloatArray, IntArray
from unflip.cli.paper.densities import class_rows, draw_bars, draw_law, histogram_rows
from unflip.cli.paper.piece import Piece, Settings, Table, Tables, Task, only
from unflip.cli.paper.variants import VARIANTS, predict, target_columns
from unflip.datasets import make_mixture
from unflip.labels.noise import NoiseModel
from unflip.plotting import style
from unflip.ridge.spectrum.decomposition import decompose


class Setup(NamedTuple):
    """The paper's settings of Figure 1."""

    n_rows: int = 5000
    dimensions: tuple[int, ...] = (50, 1000)
    mean_norm: float = 2.0
    reg: float = 0.1
    noise: NoiseModel = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=1 / 3)


SETUP = Setup()


def tasks(settings: Settings) -> list[Task]:
    """Return one draw in each dimension."""
    return [Task(f"p{p}", simulate, (p, settings.seed)) for p in SETUP.dimensions]


def simulate(p: int, seed: int) -> Tables:
    """Return histograms and moments of the scores of new rows by class."""
    scores, true = scores_of_new_rows(p, seed)
    bins = []
    classes = []
    for j, name in enumerate(VARIANTS):
        labels = {"p": p, "variant": name}
        prediction = predict(
            name, SETUP.noise, mean_norm=SETUP.mean_norm, aspect=p / SETUP.n_rows, reg=SETUP.reg
        )
        stds = np.full(2, np.sqrt(prediction.variance))
        bins.append(histogram_rows(labels, scores[:, j], true))
        classes.append(class_rows(labels, scores[:, j], true, np.array(prediction.means), stds))
    return {"histograms": pd.concat(bins), "classes": pd.concat(classes)}


def scores_of_new_rows(p: int, seed: int) -> tuple[FloatArray, IntArray]:
    """Fit every variant to one draw, and score a balanced test set of twice its size."""
    rng = np.random.default_rng([seed, p])
    X, y = make_mixture(
        SETUP.n_rows,
        p,
        mean_norm=SETUP.mean_norm,
        priors=SETUP.noise.known_priors,
        random_state=rng,
    )
    columns = target_columns(SETUP.noise, y, SETUP.noise.flip(y, rng))
    coef = decompose(X, fit_intercept=False).path(columns, [SETUP.reg]).coef[:, 0, :]
    X_new, y_new = make_mixture(2 * SETUP.n_rows, p, mean_norm=SETUP.mean_norm, random_state=rng)
    return X_new @ coef, y_new


def draw(tables: Tables) -> Figure:
    """Plot simulated bars and predicted lines, one row per dimension, one column per variant."""
    figure, axes = style.new_figure(11, 5.6, len(SETUP.dimensions), len(VARIANTS), sharex="col")
    panels = ((p, name) for p in SETUP.dimensions for name in VARIANTS)
    for ax, (p, name) in zip(axes, panels, strict=True):
        classes = only(tables["classes"], p=p, variant=name)
        draw_bars(ax, only(tables["histograms"], p=p, variant=name))
        draw_law(ax, classes)
        accuracy, predicted = classes[["accuracy", "predicted_accuracy"]].mean()
        style.set_title(ax, f"{name}, p = {p}\naccuracy {accuracy:.1%}, predicted {predicted:.1%}")
    for ax in axes[-len(VARIANTS) :]:
        ax.set_xlabel("decision function wᵀx")
    for ax in axes[:: len(VARIANTS)]:
        ax.set_ylabel("density")
    style.legend_below(figure, axes[0], 4)
    return figure


def summary(tables: Tables) -> Table:
    """Return accuracy and standard deviation of each variant."""
    grouped = tables["classes"].groupby(["p", "variant"], sort=False)
    columns = ["accuracy", "predicted_accuracy", "std", "predicted_std"]
    means = grouped[columns].mean().reset_index()
    return means.rename(columns=lambda name: name.replace("_", " "))


def notes(tables: Tables) -> list[str]:
    """Return sentences that compare observed and predicted distributions."""
    classes = tables["classes"]
    shift = (classes["mean"] - classes.predicted_mean).abs() / classes.predicted_std
    spread = (classes["std"] / classes.predicted_std - 1).abs()
    grouped = classes.groupby(["p", "variant"])[["accuracy", "predicted_accuracy"]].mean()
    accuracy = (grouped.accuracy - grouped.predicted_accuracy).abs()
    standard = classes[classes["true"] == 1].set_index(["p", "variant"])["std"]
    low, high = (standard[(p, "unbiased")] / standard[(p, "oracle")] for p in SETUP.dimensions)
    return [
        f"The class means are within {shift.max():.3f} predicted standard deviations of the "
        f"theory, the standard deviations within {spread.max():.1%}, the accuracies within "
        f"{100 * accuracy.max():.2f} points, from one draw and 10,000 new rows.",
        "The standard deviation of the unbiased classifier's scores is "
        f"{low:.1f} times the oracle's at p = {SETUP.dimensions[0]} and {high:.1f} times at p = "
        f"{SETUP.dimensions[1]}, as the paper says.",
        "The optimized column is not in the paper's figure.",
        "The theory uses h of the paper's appendix, which is correct, and not the one printed in "
        "its main text.",
    ]


PIECE = Piece(
    name="fig1",
    title="Figure 1. Distribution of the decision function",
    paper="n = 5000, π₁ = 1/3, ε₊ = .4, ε₋ = .3, ‖μ‖ = 2, γ = .1, p = 50 (first row) and 1000 "
    "(second row). The histograms follow the predicted Gaussians; the variance of the unbiased "
    "classifier grows with the dimension, which costs accuracy.",
    full=Settings(draws=1, seed=1),
    quick=Settings(draws=1, seed=1),
    tasks=tasks,
    draw=draw,
    summary=summary,
    notes=notes,
)
