"""Figure 3: accuracy against ρ₊, with its optimum, its worst value and the sign of β."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unflip import targets as target_values
from unflip import theory
from unflip._utils.typing import FloatArray
from unflip.cli.paper.comparison import comparison_rows, largest_deviations, worst_sentence
from unflip.cli.paper.piece import Piece, Settings, Table, Tables, Task
from unflip.cli.paper.variants import accuracy_and_risk
from unflip.datasets import make_mixture
from unflip.labels.noise import NoiseModel
from unflip.plotting import style
from unflip.ridge.spectrum.decomposition import decompose


class Setup(NamedTuple):
    """The paper's settings of Figure 3; neither grid of ρ₊ holds 1, where the loss is undefined."""

    n_rows: int = 1000
    dimensions: tuple[int, ...] = (100, 1000, 10_000)
    mean_norm: float = 2.0
    reg: float = 10.0
    noise: NoiseModel = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
    predicted_rho: FloatArray = np.linspace(-10, 10, 1000)
    simulated_rho: FloatArray = np.concatenate(
        [
            [-10, -8, -6, -4, -3, -2, -1.25, -0.65, -0.25, 0],
            [0.4, 0.8, 1.2, 1.57, 2, 2.5, 3, 4, 6, 8, 10],
        ]
    )


SETUP = Setup()


def tasks(settings: Settings) -> list[Task]:
    """Return one task per dimension, with all draws."""
    return [Task(f"p{p}", simulate, (p, settings.draws, settings.seed)) for p in SETUP.dimensions]


def simulate(p: int, n_draws: int, seed: int) -> Tables:
    """Return accuracies at a few ρ₊ by simulation, and at many ρ₊ and the marks by theory."""
    draws = np.array([one_draw(p, np.random.default_rng([seed, p, i])) for i in range(n_draws)])
    curve = pd.DataFrame(
        {"p": p, "rho_pos": SETUP.predicted_rho, "accuracy": predicted_at(p, SETUP.predicted_rho)}
    )
    unbiased = SETUP.noise.eps_pos - SETUP.noise.eps_neg  # accuracy depends on ρ₊ − ρ₋ only
    rho = np.array([theory.optimal_rho(SETUP.noise), theory.worst_rho(SETUP.noise), unbiased])
    marks = pd.DataFrame(
        {
            "p": p,
            "mark": ["best", "worst", "unbiased"],
            "rho_pos": rho,
            "accuracy": predicted_at(p, rho),
        }
    )
    points = comparison_rows(
        {"p": p}, draws, predicted_at(p, SETUP.simulated_rho), SETUP.simulated_rho
    )
    return {"curve": curve, "points": points, "marks": marks}


def one_draw(p: int, rng: np.random.Generator) -> FloatArray:
    """Return the accuracy at every ρ₊ of one draw, from a fit to one-hot labels.

    Scores are linear in the two targets, so two columns of coefficients are enough.
    """
    X, y = make_mixture(
        SETUP.n_rows,
        p,
        mean_norm=SETUP.mean_norm,
        priors=SETUP.noise.known_priors,
        random_state=rng,
    )
    one_hot = np.eye(2)[SETUP.noise.flip(y, rng)]
    coef = decompose(X, fit_intercept=False).path(one_hot, [SETUP.reg]).coef[:, 0, :]
    targets = np.array([target_values.from_rho(rho, 0.0) for rho in SETUP.simulated_rho])
    accuracy, _ = accuracy_and_risk(coef @ targets.T, SETUP.mean_norm)
    return accuracy


def predicted_at(p: int, rho: FloatArray) -> FloatArray:
    """Return the accuracy by the theory, for targets with t₊ > t₋."""
    mixture = theory.Mixture(mean_norm=SETUP.mean_norm, aspect=p / SETUP.n_rows, noise=SETUP.noise)
    predictions = [
        theory.predict(mixture, targets=target_values.from_rho(at, 0.0), reg=SETUP.reg)
        for at in rho
    ]
    return np.array([float(prediction.accuracy) for prediction in predictions])


def draw(tables: Tables) -> Figure:
    """Plot one panel per dimension; for ρ₊ > 1 the dashed line is the loss as printed."""
    figure, axes = style.new_figure(11, 4.4, 1, len(SETUP.dimensions), sharey=True)
    for ax, p in zip(axes, SETUP.dimensions, strict=True):
        _draw_panel(
            ax, *(tables[name][tables[name].p == p] for name in ("curve", "points", "marks"))
        )
        style.set_title(ax, f"η = p/n = {p / SETUP.n_rows:g}")
        ax.set_xlabel("ρ₊  (ρ₋ = 0)")
    axes[0].set_ylabel("test accuracy")
    style.legend_below(figure, axes[0], 3)
    return figure


def _draw_panel(ax: Axes, curve: Table, points: Table, marks: Table) -> None:
    worst = float(marks.rho_pos[marks.mark == "worst"].iloc[0])
    beyond = curve[curve.rho_pos > 1]
    below = curve[curve.rho_pos < worst]
    ax.axvspan(
        1,
        curve.rho_pos.max() + 0.5,
        color="#F1EEE6",
        lw=0,
        label="ρ₊ > 1: the printed loss has β < 0",
    )
    ax.axhline(0.5, color=style.FAINT, lw=0.8)
    ax.plot(
        curve.rho_pos,
        curve.accuracy,
        color=style.COLOURS["LPC"],
        label="theory, targets with t₊ > t₋",
    )
    ax.plot(
        beyond.rho_pos,
        1 - beyond.accuracy,
        color=style.INK,
        lw=1.2,
        ls="--",
        label="theory, loss as printed",
    )
    ax.plot(
        below.rho_pos,
        1 - below.accuracy,
        color=style.FAINT,
        lw=1.2,
        ls=":",
        label="as the paper draws it, with |m|",
    )
    ax.errorbar(
        points.x,
        points.simulated,
        yerr=2 * points.standard_error,
        fmt=style.MARKERS["LPC"],
        color=style.COLOURS["LPC"],
        capsize=1.5,
        elinewidth=1,
        label="simulation, ± 2 standard errors",
    )
    _draw_marks(ax, marks)
    ax.set_xlim(curve.rho_pos.min() - 0.5, curve.rho_pos.max() + 0.5)
    ax.set_ylim(0, 1.06)


def _draw_marks(ax: Axes, marks: Table) -> None:
    rho = marks.set_index("mark").rho_pos
    # Colour, text, offset in points, and alignment of the text.
    looks = {
        "best": (style.COLOURS["optimized"], f"ρ₊* = {rho.best:.2f}", (0, 9), ("left", "bottom")),
        "worst": (style.INK, f"ρ̄₊ = −{-rho.worst:.2f}", (8, -6), ("left", "top")),
        "unbiased": (style.COLOURS["unbiased"], "unbiased", (-7, 3), ("right", "bottom")),
    }
    for mark in marks.itertuples():
        colour, text, offset, (horizontal, vertical) = looks[mark.mark]
        ax.plot(mark.rho_pos, mark.accuracy, "o", mfc="white", mec=colour, mew=1.8, ms=8, zorder=5)
        ax.annotate(
            text,
            (mark.rho_pos, mark.accuracy),
            xytext=offset,
            textcoords="offset points",
            ha=horizontal,
            va=vertical,
            color=colour,
            fontsize=9,
        )


def summary(tables: Tables) -> Table:
    """Return the largest deviation from the theory on every curve."""
    return largest_deviations(tables["points"], ["p"])


def notes(tables: Tables) -> list[str]:
    """Return sentences on the gain of ρ₊*, the flatness in low dimension, and the sign of β."""
    marks = tables["marks"].set_index(["p", "mark"]).accuracy
    gains = {p: 100 * (marks[(p, "best")] - marks[(p, "unbiased")]) for p in SETUP.dimensions}
    best = float(theory.optimal_rho(SETUP.noise))
    return [
        worst_sentence(summary(tables)),
        f"ρ₊* = {best:.2f} is above 1, where β = 1/(1 − ρ₊ − ρ₋) is negative: the loss as printed "
        "inverts the classifier (dashed line). The ratio of its targets is correct, and unflip "
        "keeps t₊ > t₋. The paper draws |m|, which hides the inversion, and also hides that below "
        "ρ̄₊ the classifier is worse than random guessing.",
        "Gain of ρ₊* over the unbiased choice: "
        + ", ".join(f"{gains[p]:.1f} points at η = {p / SETUP.n_rows:g}" for p in SETUP.dimensions)
        + ". The curve is flat in low dimension, as the paper says.",
        f"The caption says “optimal γ”; the published experiment has γ = {SETUP.reg:g}. The paper "
        "shows the theory only; the simulated points are ours.",
    ]


PIECE = Piece(
    name="fig3",
    title="Figure 3. Accuracy against ρ₊",
    paper="n = 1000, π₁ = .3, ‖μ‖ = 2, ε₊ = .4, ε₋ = .3, ρ₋ = 0 and “optimal γ”; theory only. "
    "Accuracy is largest at ρ₊*, above the unbiased approach, and smallest at ρ̄₊; it becomes flat "
    "in ρ₊ as η → 0.",
    full=Settings(draws=40, seed=3),
    quick=Settings(draws=8, seed=3),
    tasks=tasks,
    draw=draw,
    summary=summary,
    notes=notes,
)
