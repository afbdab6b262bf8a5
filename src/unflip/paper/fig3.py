"""Figure 3: accuracy against ρ₊, with the best and the worst, and where the printed loss turns round."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unflip import targets as target_values
from unflip import theory
from unflip._utils.typing import FloatArray
from unflip.datasets import make_mixture
from unflip.labels.noise import NoiseModel
from unflip.paper.comparison import comparison_rows, largest_deviations, worst_sentence
from unflip.paper.piece import Piece, Settings, Table, Tables, Task
from unflip.paper.variants import accuracy_and_risk
from unflip.plotting import style
from unflip.ridge.spectrum.decomposition import decompose

N_ROWS, DIMENSIONS, MEAN_NORM, REG = 1000, (100, 1000, 10_000), 2.0, 10.0
NOISE = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
FINE = np.linspace(-10, 10, 1000)  # ρ₊ = 1, where the loss is undefined, lies between two of these
COARSE = np.array(
    [-10, -8, -6, -4, -3, -2, -1.25, -0.65, -0.25, 0, 0.4, 0.8, 1.2, 1.57, 2, 2.5, 3, 4, 6, 8, 10]
)


def tasks(settings: Settings) -> list[Task]:
    """All draws of each dimension."""
    return [Task(f"p{p}", simulate, (p, settings.draws, settings.seed)) for p in DIMENSIONS]


def simulate(p: int, n_draws: int, seed: int) -> Tables:
    """Accuracy at a few ρ₊ by simulation, at many by theory, and at the three that have a name."""
    draws = np.array([one_draw(p, np.random.default_rng([seed, p, i])) for i in range(n_draws)])
    curve = pd.DataFrame({"p": p, "rho_pos": FINE, "accuracy": predicted_at(p, FINE)})
    unbiased = NOISE.eps_pos - NOISE.eps_neg  # accuracy depends on ρ₊ − ρ₋ alone
    rho = np.array([theory.optimal_rho(NOISE), theory.worst_rho(NOISE), unbiased])
    marks = pd.DataFrame(
        {
            "p": p,
            "mark": ["best", "worst", "unbiased"],
            "rho_pos": rho,
            "accuracy": predicted_at(p, rho),
        }
    )
    points = comparison_rows({"p": p}, draws, predicted_at(p, COARSE), COARSE)
    return {"curve": curve, "points": points, "marks": marks}


def one_draw(p: int, rng: np.random.Generator) -> FloatArray:
    """Accuracy at every ρ₊ of one fit: scores are linear in the two targets, so that two columns serve all."""
    X, y = make_mixture(N_ROWS, p, mean_norm=MEAN_NORM, priors=NOISE.known_priors, random_state=rng)
    one_hot = np.eye(2)[NOISE.flip(y, rng)]
    coef = decompose(X, fit_intercept=False).path(one_hot, [REG]).coef[:, 0, :]
    return accuracy_and_risk(
        coef @ np.array([target_values.from_rho(rho, 0.0) for rho in COARSE]).T, MEAN_NORM
    )[0]


def predicted_at(p: int, rho: FloatArray) -> FloatArray:
    """Accuracy by the theory, with targets the right way round."""
    mixture = theory.Mixture(mean_norm=MEAN_NORM, aspect=p / N_ROWS, noise=NOISE)
    predictions = [
        theory.predict(mixture, targets=target_values.from_rho(at, 0.0), reg=REG) for at in rho
    ]
    return np.array([float(prediction.accuracy) for prediction in predictions])


def draw(tables: Tables) -> Figure:
    """One panel for each dimension; beyond ρ₊ = 1 the printed loss, turned round, is dashed."""
    figure, axes = style.new_figure(11, 4.4, 1, len(DIMENSIONS), sharey=True)
    for ax, p in zip(axes, DIMENSIONS, strict=True):
        _draw_panel(
            ax, *(tables[name][tables[name].p == p] for name in ("curve", "points", "marks"))
        )
        style.set_title(ax, f"η = p/n = {p / N_ROWS:g}")
        ax.set_xlabel("ρ₊  (ρ₋ = 0)")
    axes[0].set_ylabel("test accuracy")
    style.legend_below(figure, axes[0], 3)
    return figure


def _draw_panel(ax: Axes, curve: Table, points: Table, marks: Table) -> None:
    worst = float(marks.rho_pos[marks.mark == "worst"].iloc[0])
    beyond, below = curve[curve.rho_pos > 1], curve[curve.rho_pos < worst]
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
        label="theory, targets kept upright (t₊ > t₋)",
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
    places = {"best": (0, 9, "bottom"), "worst": (8, -6, "top"), "unbiased": (-7, 3, "bottom")}
    rho = marks.set_index("mark").rho_pos
    words = {
        "best": f"ρ₊* = {rho.best:.2f}",
        "worst": f"ρ̄₊ = −{-rho.worst:.2f}",
        "unbiased": "unbiased",
    }
    for mark in marks.itertuples():
        colour = style.COLOURS.get({"best": "optimized"}.get(mark.mark, mark.mark), style.INK)
        ax.plot(mark.rho_pos, mark.accuracy, "o", mfc="white", mec=colour, mew=1.8, ms=8, zorder=5)
        dx, dy, side = places[mark.mark]
        ax.annotate(
            words[mark.mark],
            (mark.rho_pos, mark.accuracy),
            xytext=(dx, dy),
            textcoords="offset points",
            ha="right" if mark.mark == "unbiased" else "left",
            va=side,
            color=colour,
            fontsize=9,
        )
    ax.set_xlim(curve.rho_pos.min() - 0.5, curve.rho_pos.max() + 0.5)
    ax.set_ylim(0, 1.06)


def summary(tables: Tables) -> Table:
    """Largest deviation from the theory on every curve."""
    return largest_deviations(tables["points"], ["p"])


def notes(tables: Tables) -> list[str]:
    """Measure the gain of ρ₊*, the flatness in low dimension, and the flip."""
    marks = tables["marks"].set_index(["p", "mark"]).accuracy
    gains = {p: 100 * (marks[(p, "best")] - marks[(p, "unbiased")]) for p in DIMENSIONS}
    best = float(theory.optimal_rho(NOISE))
    return [
        worst_sentence(summary(tables)),
        f"ρ₊* = {best:.2f} lies beyond 1, where β = 1/(1 − ρ₊ − ρ₋) is negative: the loss as "
        "printed turns the classifier round (dashed line). Its targets have the right ratio, and "
        "unflip keeps them upright; the paper draws |m|, which hides the flip, and also hides that "
        "below ρ̄₊ the classifier is worse than a coin.",
        "ρ₊* gains over the unbiased choice "
        + ", ".join(f"{gains[p]:.1f} points at η = {p / N_ROWS:g}" for p in DIMENSIONS)
        + ": flat in low dimension, as the paper says.",
        f"The caption says “optimal γ”; the published experiment has γ = {REG:g}. The paper shows "
        "theory alone; the simulated points are ours.",
    ]


PIECE = Piece(
    name="fig3",
    title="Figure 3. Accuracy against ρ₊",
    paper="n = 1000, π₁ = .3, ‖μ‖ = 2, ε₊ = .4, ε₋ = .3, ρ₋ = 0 and “optimal γ”; theory only. Accuracy is largest at "
    "ρ₊*, above the unbiased approach, and smallest at ρ̄₊; it becomes flat in ρ₊ as η → 0.",
    full=Settings(draws=40, seed=3),
    quick=Settings(draws=8, seed=3),
    tasks=tasks,
    draw=draw,
    summary=summary,
    notes=notes,
)
