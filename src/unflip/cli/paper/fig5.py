"""Figure 5: accuracy against the regularization strength γ, in low and in high dimension."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from unflip._utils.typing import FloatArray
from unflip.cli.paper.comparison import (
    comparison_rows,
    draw_curve,
    largest_deviations,
    worst_sentence,
)
from unflip.cli.paper.piece import Piece, Settings, Table, Tables, Task, only
from unflip.cli.paper.variants import VARIANTS, accuracy_and_risk, predict, target_columns
from unflip.datasets import make_mixture
from unflip.labels.noise import NoiseModel
from unflip.plotting import style
from unflip.ridge.spectrum.decomposition import decompose


class Setup(NamedTuple):
    """The paper's settings of Figure 5."""

    sizes: tuple[tuple[int, int], ...] = ((2000, 20), (200, 200))  # (n, p)
    mean_norms: tuple[float, ...] = (0.5, 1.0, 2.0)
    noise: NoiseModel = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
    regs: FloatArray = np.logspace(-6, 3, 20)


SETUP = Setup()


def tasks(settings: Settings) -> list[Task]:
    """Return one task per panel, with all draws."""
    return [
        Task(f"n{n}-mu{mean_norm}", simulate, (n, p, mean_norm, settings.draws, settings.seed))
        for n, p in SETUP.sizes
        for mean_norm in SETUP.mean_norms
    ]


def simulate(n: int, p: int, mean_norm: float, n_draws: int, seed: int) -> Tables:
    """Return the accuracy of every variant at every γ, simulated and predicted."""
    draws = np.array(
        [one_draw(n, p, mean_norm, np.random.default_rng([seed, n, i])) for i in range(n_draws)]
    )
    rows = []
    for j, variant in enumerate(VARIANTS):
        predicted = predict(
            variant, SETUP.noise, mean_norm=mean_norm, aspect=p / n, reg=SETUP.regs
        ).accuracy
        labels = {"n": n, "p": p, "mean_norm": mean_norm, "variant": variant}
        rows.append(comparison_rows(labels, draws[:, :, j], predicted, SETUP.regs))
    return {"points": pd.concat(rows)}


def one_draw(n: int, p: int, mean_norm: float, rng: np.random.Generator) -> FloatArray:
    """Return the accuracy of one draw, shape (γ, variants), from one eigendecomposition."""
    X, y = make_mixture(
        n, p, mean_norm=mean_norm, priors=SETUP.noise.known_priors, random_state=rng
    )
    columns = target_columns(SETUP.noise, y, SETUP.noise.flip(y, rng))
    coef = decompose(X, fit_intercept=False).path(columns, SETUP.regs).coef
    accuracy, _ = accuracy_and_risk(coef, mean_norm)
    return accuracy


def draw(tables: Tables) -> Figure:
    """Plot predicted lines and simulated markers; one row per size, one column per ‖μ‖."""
    figure, axes = style.new_figure(11, 6.2, len(SETUP.sizes), len(SETUP.mean_norms), sharex=True)
    panels = ((n, p, mean_norm) for n, p in SETUP.sizes for mean_norm in SETUP.mean_norms)
    for ax, (n, p, mean_norm) in zip(axes, panels, strict=True):
        for variant in VARIANTS:
            points = only(tables["points"], n=n, mean_norm=mean_norm, variant=variant)
            draw_curve(ax, points, variant)
        ax.set_xscale("log")
        style.set_title(ax, f"n = {n}, p = {p}, ‖μ‖ = {mean_norm:g}")
    for ax in axes[-len(SETUP.mean_norms) :]:
        ax.set_xlabel("regularization strength γ")
    for ax in axes[:: len(SETUP.mean_norms)]:
        ax.set_ylabel("test accuracy")
    style.legend_below(figure, axes[0], len(VARIANTS))
    return figure


def summary(tables: Tables) -> Table:
    """Return the largest deviation from the theory on every curve."""
    points = tables["points"].rename(columns={"mean_norm": "‖μ‖"})
    return largest_deviations(points, ["n", "p", "‖μ‖", "variant"])


def notes(tables: Tables) -> list[str]:
    """Return sentences on the agreement and the gain from the choice of γ."""
    points = tables["points"]
    optimized = points[(points.variant == "optimized") & (points.mean_norm == SETUP.mean_norms[-1])]
    gains = [100 * np.ptp(optimized[optimized.n == n].predicted) for n, _ in SETUP.sizes]
    return [
        worst_sentence(summary(tables)),
        "Accuracy is computed exactly for each fit, without test rows: the standard errors are "
        "those between draws. The points of a panel share their draws, so they are correlated.",
        "The theory is a limit of many rows and features: at p = 20 and at n = p = 200 an error of "
        "order 1/p remains, which is largest at n = p with γ → 0.",
        f"At ‖μ‖ = {SETUP.mean_norms[-1]:g} the choice of γ changes the accuracy of the optimized "
        f"classifier by {gains[0]:.1f} points in low dimension and {gains[1]:.1f} in high "
        "dimension.",
    ]


PIECE = Piece(
    name="fig5",
    title="Figure 5. Accuracy against γ",
    paper="π₁ = .3, ε₊ = .4, ε₋ = .3; (n, p) = (2000, 20) in low and (200, 200) in high dimension, "
    "‖μ‖ = .5, 1, 2, 50 draws. The theory estimates the accuracy of every variant consistently.",
    full=Settings(draws=50, seed=5),
    quick=Settings(draws=20, seed=5),
    tasks=tasks,
    draw=draw,
    summary=summary,
    notes=notes,
)
