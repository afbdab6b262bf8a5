"""Figure 2: accuracy and risk against the noise rate ε₊, in three dimensions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from unflip import targets as target_values
from unflip import theory
from unflip._utils.typing import FloatArray
from unflip.cli.paper.comparison import (
    comparison_rows,
    draw_curve,
    largest_deviations,
    worst_sentence,
)
from unflip.cli.paper.piece import Piece, Settings, Table, Tables, Task, only
from unflip.cli.paper.variants import accuracy_and_risk, noise_seen, targets_of
from unflip.datasets import make_mixture
from unflip.labels.noise import NoiseModel
from unflip.plotting import style
from unflip.ridge.spectrum.decomposition import decompose


class Setup(NamedTuple):
    """The paper's settings of Figure 2."""

    n_rows: int = 100
    dimensions: tuple[int, ...] = (10, 100, 1000)
    mean_norm: float = 2.0
    reg: float = 10.0
    eps_pos: FloatArray = np.linspace(0, 0.65, 25)
    eps_neg: float = 0.2
    pi_neg: float = 1 / 3
    rho_pos: float = 0.2  # of LPC
    rho_neg: float = 0.0  # of LPC


SETUP = Setup()
CURVES = ("naive", "unbiased", "LPC", "optimized", "oracle")
METRICS = ("accuracy", "risk")


def noise_at(eps_pos: float) -> NoiseModel:
    """Return the noise model at one rate ε₊."""
    return NoiseModel.binary(eps_pos=eps_pos, eps_neg=SETUP.eps_neg, pi_neg=SETUP.pi_neg)


def targets_at(variant: str, eps_pos: float) -> FloatArray:
    """Return the targets of a curve at one rate ε₊."""
    if variant == "LPC":
        return target_values.from_rho(SETUP.rho_pos, SETUP.rho_neg)
    return targets_of(variant, noise_at(eps_pos))


def tasks(settings: Settings) -> list[Task]:
    """Return one task per dimension, with all draws."""
    return [Task(f"p{p}", simulate, (p, settings.draws, settings.seed)) for p in SETUP.dimensions]


def simulate(p: int, n_draws: int, seed: int) -> Tables:
    """Return accuracy and risk of every variant at every rate, simulated and predicted."""
    draws = np.array([one_draw(p, np.random.default_rng([seed, p, i])) for i in range(n_draws)])
    rows = []
    for j, variant in enumerate(CURVES):
        predicted = np.array([predicted_at(variant, p, rate) for rate in SETUP.eps_pos])
        for k, metric in enumerate(METRICS):
            labels = {"p": p, "variant": variant, "metric": metric}
            rows.append(comparison_rows(labels, draws[:, k, :, j], predicted[:, k], SETUP.eps_pos))
    return {"points": pd.concat(rows)}


def one_draw(p: int, rng: np.random.Generator) -> FloatArray:
    """Fit every variant at every rate to the same rows; shape (metrics, rates, variants)."""
    X, y = make_mixture(
        SETUP.n_rows,
        p,
        mean_norm=SETUP.mean_norm,
        priors=[SETUP.pi_neg, 1 - SETUP.pi_neg],
        random_state=rng,
    )
    columns = []
    for rate in SETUP.eps_pos:
        observed = noise_at(rate).flip(y, rng)
        columns += [
            targets_at(variant, rate)[y if variant == "oracle" else observed] for variant in CURVES
        ]
    coef = (
        decompose(X, fit_intercept=False).path(np.column_stack(columns), [SETUP.reg]).coef[:, 0, :]
    )
    return np.reshape(
        accuracy_and_risk(coef, SETUP.mean_norm), (len(METRICS), len(SETUP.eps_pos), len(CURVES))
    )


def predicted_at(variant: str, p: int, eps_pos: float) -> tuple[float, float]:
    """Return accuracy and risk by the theory."""
    noise = noise_seen(variant, noise_at(eps_pos))
    mixture = theory.Mixture(mean_norm=SETUP.mean_norm, aspect=p / SETUP.n_rows, noise=noise)
    prediction = theory.predict(mixture, targets=targets_at(variant, eps_pos), reg=SETUP.reg)
    return float(prediction.accuracy), float(prediction.risk)


def draw(tables: Tables) -> Figure:
    """Plot predicted lines and simulated markers; rows are metrics, columns dimensions."""
    figure, axes = style.new_figure(11, 6.2, len(METRICS), len(SETUP.dimensions), sharex=True)
    panels = ((metric, p) for metric in METRICS for p in SETUP.dimensions)
    for ax, (metric, p) in zip(axes, panels, strict=True):
        for variant in CURVES:
            points = only(tables["points"], metric=metric, p=p, variant=variant)
            label = "LPC, ρ₊ = .2, ρ₋ = 0" if variant == "LPC" else variant
            draw_curve(ax, points, variant, label=label)
        if metric == "accuracy":
            style.set_title(ax, f"η = p/n = {p / SETUP.n_rows:g}")
        else:
            ax.set_xlabel("ε₊, noise rate of the positive class")
    for ax, metric in zip(axes[:: len(SETUP.dimensions)], METRICS, strict=True):
        ax.set_ylabel(f"test {metric}")
    style.legend_below(figure, axes[0], len(CURVES))
    return figure


def summary(tables: Tables) -> Table:
    """Return the largest deviation from the theory on every curve."""
    return largest_deviations(tables["points"], ["p", "variant", "metric"])


def notes(tables: Tables) -> list[str]:
    """Return sentences on the agreement and the effect of the dimension."""
    naive = only(tables["points"], metric="accuracy", variant="naive")
    moderate = 15  # index of ε₊ ≈ .4
    losses = []
    for p in SETUP.dimensions:
        predicted = only(naive, p=p).predicted.to_numpy()
        loss = 100 * (predicted[0] - predicted[moderate])
        losses.append(f"{loss:.1f} points at η = {p / SETUP.n_rows:g}")
    gap = (naive.simulated - naive.predicted).abs()
    worst = naive.loc[gap.idxmax()]
    return [
        worst_sentence(summary(tables)),
        "Accuracy and risk are computed exactly for each fit, without test rows: the standard "
        "errors are those between draws.",
        f"The largest difference in accuracy is {100 * gap.max():.0f} points (naive, η = "
        f"{worst.p / SETUP.n_rows:g}, ε₊ = {worst.x:.2f}): near E[ỹy] = 0 some fits to "
        f"{SETUP.n_rows} rows have the correct sign and some the opposite one, and the mean of "
        "their accuracies is not the accuracy of the mean fit.",
        f"From ε₊ = 0 to ε₊ = {SETUP.eps_pos[moderate]:.2f} the naive accuracy falls by "
        f"{', '.join(losses)}: noise matters more in high dimension, as the paper says.",
        "The optimized curve is not in the paper's figure. It has the best accuracy, not the best "
        "risk: its targets are small if the labels carry little information.",
    ]


PIECE = Piece(
    name="fig2",
    title="Figure 2. Accuracy and risk against ε₊",
    paper="n = 100, π₁ = 1/3, ε₋ = .2, ‖μ‖ = 2, γ = 10, and ρ = (.2, 0) for LPC; 100 draws. "
    "Simulation and theory match very accurately even at this sample size, and label noise matters "
    "more at large η.",
    full=Settings(draws=100, seed=2),
    quick=Settings(draws=25, seed=2),
    tasks=tasks,
    draw=draw,
    summary=summary,
    notes=notes,
)
