"""The paper's experiments with the cross-entropy: gradient descent with early stopping."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unflip import targets as target_values
from unflip import theory
from unflip._utils.typing import FloatArray, IntArray
from unflip.cli.paper.piece import Column, Settings, Table, Tables, Task, only
from unflip.cli.paper.variants import noise_seen
from unflip.labels.noise import NoiseModel
from unflip.losses import LOGISTIC
from unflip.plotting import style
from unflip.ridge.solvers.descent import gradient_descent

FOLDER = "paper_results"
# Settings of the published code. No grid point is ρ₊ = 1, where the loss is undefined.
RHO = np.linspace(-2, 2, 50)
STEP = 0.1
SEEDS = (1, 123, 404)
LINES = ("naive", "unbiased", "oracle")
#: Name of the curve of every fit.
CURVES = np.array(["LPC"] * len(RHO) + list(LINES))
# Name of each curve in the published files.
_FILES = {"LPC": "lpc", "naive": "naive", "unbiased": "unb", "oracle": "oracle"}
_RIGHT = 2.2  # end of the ρ₊ axis


def rho_pairs(noise: NoiseModel) -> FloatArray:
    """Return (ρ₊, ρ₋) of every fit: the curve, then naive, unbiased and oracle."""
    curve = np.column_stack([RHO, np.zeros_like(RHO)])
    return np.vstack([curve, [[0.0, 0.0], [noise.eps_pos, noise.eps_neg], [0.0, 0.0]]])


def step_sizes(noise: NoiseModel) -> FloatArray:
    """Return the step size of every fit in the units of its loss.

    The paper's text divides the perturbed gradient by 1 − ρ₊ − ρ₋, and the published experiment
    multiplies by it: its steps are those of the text times (1 − ρ₊ − ρ₋)².
    """
    return np.asarray(STEP * (1 - rho_pairs(noise).sum(axis=1)) ** 2)


def descend(
    X: FloatArray, true: IntArray, observed: IntArray, noise: NoiseModel, n_steps: int
) -> FloatArray:
    """Return the coefficients of every fit, (p, fits), for targets with t₊ > t₋."""
    pairs = rho_pairs(noise)
    columns = [
        target_values.from_rho(*pair)[true if curve == "oracle" else observed]
        for curve, pair in zip(CURVES, pairs, strict=True)
    ]
    return gradient_descent(
        X, np.column_stack(columns), LOGISTIC, step=step_sizes(noise), n_steps=n_steps
    )


def matched_regs(noise: NoiseModel, n_steps: int) -> FloatArray:
    """Return γ of every fit for which the regularized minimum is close to the end of the descent.

    Along an eigenvector of curvature λ, T small steps of size s from zero cover the fraction 1 −
    exp(−sTλ) of the distance to the minimum; the regularized minimum is at the fraction λ/(λ + 2γ).
    These agree to first order in λ if 2γ = 1/(sT).
    """
    return np.asarray(1 / (2 * step_sizes(noise) * n_steps))


def predicted(noise: NoiseModel, n_steps: int, *, mean_norm: float, aspect: float) -> FloatArray:
    """Return the accuracy of the regularized minimum of every fit by the isotropic theory."""
    accuracies = []
    fits = zip(CURVES, rho_pairs(noise), matched_regs(noise, n_steps), strict=True)
    for curve, pair, reg in fits:
        mixture = theory.Mixture(mean_norm=mean_norm, aspect=aspect, noise=noise_seen(curve, noise))
        law = theory.predict(
            mixture, targets=target_values.from_rho(*pair), reg=reg, loss="logistic"
        )
        accuracies.append(float(law.accuracy))
    return np.array(accuracies)


def rows_of(accuracies: FloatArray, noise: NoiseModel, **labels: object) -> Table:
    """Return one row per fit."""
    return pd.DataFrame(
        {**labels, "curve": CURVES, "rho_pos": rho_pairs(noise)[:, 0], "accuracy": accuracies}
    )


def published(noise: NoiseModel, suffix: str) -> Tables:
    """Return the published accuracies of the three seeds, which are max(accuracy, 1 − accuracy)."""
    accuracies = np.column_stack([_load(f"accs_{name}{suffix}.npy") for name in _FILES.values()])
    rows = [rows_of(own, noise, seed=seed) for seed, own in zip(SEEDS, accuracies, strict=True)]
    return {"published": pd.concat(rows)}


def _load(name: str) -> FloatArray:
    path = Path(os.environ.get("UNFLIP_DATA", "")) / FOLDER / name
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    return np.asarray(np.load(path), dtype=float)


def tasks(
    settings: Settings,
    one_draw: Callable[[str, int], Tables],
    without_draws: dict[str, Callable[[], Tables]],
) -> list[Task]:
    """Return tasks for the published seeds, for new seeds, and without random draws."""
    replays = [Task(f"seed{seed}", one_draw, ("published", seed)) for seed in SEEDS]
    fresh = [
        Task(f"draw{i}", one_draw, ("fresh", settings.seed + i)) for i in range(settings.draws)
    ]
    deterministic = [Task(name, function, ()) for name, function in without_draws.items()]
    return [*replays, *fresh, *deterministic]


def folded(accuracy: Column) -> Column:
    """Return max(accuracy, 1 − accuracy), as published."""
    return accuracy.where(accuracy > 0.5, 1 - accuracy)


def points(tables: Tables) -> Table:
    """Return the accuracy of every fit: published, of fresh draws, and by the theory.

    Column "ours" is folded as published, column "upright" is plain accuracy for t₊ > t₋. The
    standard error of the difference pools the variances of published and fresh draws, which differ
    in their seeds only: three draws are too few for a variance of their own.
    """
    fits = ["curve", "rho_pos"]
    fresh = only(tables["draws"], stream="fresh")
    fresh = fresh.assign(folded=folded(fresh.accuracy)).groupby(fits, sort=False)
    ours = fresh.folded
    theirs = tables["published"].groupby(fits, sort=False).accuracy
    n = ours.size()
    m = theirs.size()
    pooled = np.sqrt(((n - 1) * ours.var() + (m - 1) * theirs.var()) / (n + m - 2))
    table = pd.DataFrame(
        {
            "published": theirs.mean(),
            "published_error": pooled / np.sqrt(m),
            "ours": ours.mean(),
            "error": ours.std() / np.sqrt(n),
            "deviation": (ours.mean() - theirs.mean()) / (pooled * np.sqrt(1 / n + 1 / m)),
            "separate_deviation": (ours.mean() - theirs.mean())
            / np.sqrt(ours.var() / n + theirs.var() / m),
            "upright": fresh.accuracy.mean(),
            "upright_error": fresh.accuracy.std() / np.sqrt(n),
            "predicted": tables["theory"].set_index(fits).accuracy,
        }
    )
    return table.reset_index()


def largest_replay_difference(tables: Tables, curve: str) -> float:
    """Return the largest difference between published accuracies and those of the same seeds."""
    fits = ["curve", "rho_pos", "seed"]
    replayed = only(tables["draws"], stream="published", curve=curve).set_index(fits).accuracy
    difference = folded(replayed) - only(tables["published"], curve=curve).set_index(fits).accuracy
    return round(float(difference.abs().max()), 12)


def summary(tables: Tables) -> Table:
    """Return the deviations of every curve from the published one and from the theory."""
    rows = []
    for curve, own in points(tables).groupby("curve", sort=False):
        worst = own.loc[own.deviation.abs().idxmax()]
        theory_gap = own.upright - own.predicted
        rows.append(
            {
                "curve": curve,
                "replayed: largest difference": largest_replay_difference(tables, str(curve)),
                "fresh draws: largest, in standard errors": abs(worst.deviation),
                "at ρ₊": worst.rho_pos,
                "difference there": worst.ours - worst.published,
                "theory: mean |difference|": theory_gap.abs().mean(),
                "theory: largest difference": theory_gap[theory_gap.abs().idxmax()],
            }
        )
    return pd.DataFrame(rows)


def draw(tables: Tables) -> Figure:
    """Plot the accuracy as published on the left, and plain with the theory on the right."""
    figure, (left, right) = style.new_figure(11, 4.8, 1, 2)
    table = points(tables)
    _draw_samples(left)
    _draw_published(left, table)
    _draw_plain(right, table)
    for ax in (left, right):
        ax.axvspan(
            1, _RIGHT, color="#F1EEE6", lw=0, zorder=0, label="ρ₊ > 1: the printed loss has β < 0"
        )
        ax.set_xlim(RHO[0] - 0.1, _RIGHT)
        ax.set_xlabel("ρ₊  (ρ₋ = 0)")
    style.legend_below(figure, left, 3)
    return figure


def _draw_samples(ax: Axes) -> None:
    """Add the legend entries of both panels, column by column."""
    lpc = style.COLOURS["LPC"]

    def add(label: str, **looks: Any) -> None:
        ax.plot([], [], label=label, **looks)

    add(
        "left: published, 3 seeds ± 2 standard errors",
        color=style.INK,
        marker="o",
        ls="",
        mfc="white",
        ms=4,
    )
    add("left: LPC, fresh draws ± 2 standard errors", color=lpc)
    add(
        "right: LPC, fresh draws ± 2 standard errors",
        color=lpc,
        marker=style.MARKERS["LPC"],
        ls="",
    )
    for name in LINES:
        add(name, color=style.COLOURS[name], marker=style.MARKERS[name])
    add("right: theory of the regularized minimum", color=lpc, lw=1.1)
    add("right: LPC, fresh draws, loss as printed", color=style.INK, lw=1.1, ls="--")


def _draw_published(ax: Axes, table: Table) -> None:
    for name in ("LPC", *LINES):
        own = only(table, curve=name)
        colour = style.COLOURS[name]
        at, ours = _across(own, own.ours)
        error = 2 * own.error.to_numpy()
        ax.plot(at, ours, color=colour)
        ax.fill_between(at, ours - error, ours + error, color=colour, alpha=0.2, lw=0)
        _draw_markers(
            ax, own.published, own.published_error, own, fmt="o", color=style.INK, mfc="white"
        )
    ax.set_ylabel("max(accuracy, 1 − accuracy)")
    style.set_title(ax, "as published: the inversion at ρ₊ = 1 is hidden")


def _draw_plain(ax: Axes, table: Table) -> None:
    for name in ("LPC", *LINES):
        own = only(table, curve=name)
        colour = style.COLOURS[name]
        ax.plot(*_across(own, own.predicted), color=colour, lw=1.1)
        _draw_markers(
            ax, own.upright, own.upright_error, own, fmt=style.MARKERS[name], color=colour
        )
    beyond = table[(table.curve == "LPC") & (table.rho_pos > 1)]
    ax.plot(beyond.rho_pos, 1 - beyond.upright, color=style.INK, lw=1.1, ls="--")
    ax.axhline(0.5, color=style.FAINT, lw=0.8)
    ax.set_ylim(0, 1.03)
    ax.set_ylabel("test accuracy")
    style.set_title(ax, "plain accuracy, targets with t₊ > t₋")


def _across(own: Table, values: Column) -> tuple[FloatArray, FloatArray]:
    """Return the coordinates of a curve; a single value becomes a horizontal line."""
    if len(own) > 1:
        return own.rho_pos.to_numpy(), values.to_numpy()
    return np.array([RHO[0] - 0.1, _RIGHT]), np.repeat(values.to_numpy(), 2)


def _draw_markers(ax: Axes, values: Column, errors: Column, own: Table, **looks: Any) -> None:
    at = own.rho_pos if len(own) > 1 else [2.1]  # the marker of a horizontal line
    ax.errorbar(at, values, yerr=2 * errors, markersize=3.5, elinewidth=0.8, **looks)


def replay_sentence(tables: Tables) -> str:
    """Return a sentence on the reproduction of the published numbers."""
    differences = [largest_replay_difference(tables, curve) for curve in _FILES]
    if max(differences) < 1e-9:
        return (
            f"The published random streams (seeds {', '.join(map(str, SEEDS))}), replayed, give "
            f"all {len(CURVES) * len(SEEDS)} published accuracies exactly, if they are folded: "
            "max(accuracy, 1 − accuracy)."
        )
    return (
        f"The published streams, replayed, differ by up to {max(differences):.2g} from the "
        "published accuracies."
    )


def fresh_sentence(tables: Tables) -> str:
    """Return a sentence on the deviation of new draws from the published ones."""
    deviations = summary(tables).set_index("curve")["fresh draws: largest, in standard errors"]
    draws = only(tables["draws"], stream="fresh").seed.nunique()
    table = points(tables)
    separate = table.loc[table.separate_deviation.abs().idxmax()]
    own = only(tables["published"], curve=separate.curve, rho_pos=separate.rho_pos).accuracy
    return (
        f"{draws} fresh draws, folded alike, are at most {deviations.max():.1f} standard errors "
        "from the published means "
        f"({', '.join(f'{curve} {value:.1f}' for curve, value in deviations.items())}). The "
        "standard error is that of the difference, with the variance pooled over both, because "
        "three seeds can agree by chance: with the published seeds' own variance it would be up to "
        f"{abs(separate.separate_deviation):.1f} ({separate.curve} at ρ₊ = "
        f"{_signed(separate.rho_pos)}, where their range is {np.ptp(own):.4f} and one draw has a "
        f"standard deviation of {separate.error * np.sqrt(draws):.4f}). The points of the curve "
        "share their draws, so they are correlated."
    )


def inversion_sentences(tables: Tables) -> list[str]:
    """Return sentences on where the classifier is inverted, and on the best ρ₊."""
    curve = only(points(tables), curve="LPC")
    best = curve.loc[curve.upright.idxmax()]
    above = curve[curve.upright > 0.5].rho_pos.min()
    last = curve[curve.rho_pos > 1].iloc[-1]
    return [
        "Folding hides two inversions. For ρ₊ > 1 the loss as printed inverts the classifier "
        f"(plain accuracy {1 - last.upright:.3f} at ρ₊ = {last.rho_pos:g}, dashed); unflip keeps "
        f"t₊ > t₋. Below ρ₊ ≈ {_signed(above)} the classifier is worse than random guessing with "
        "either sign.",
        f"The curve is highest at ρ₊ = {_signed(best.rho_pos)} ({best.upright:.3f}). The "
        "experiment multiplied the perturbed gradient by 1 − ρ₊ − ρ₋ where the text divides: this "
        "only changes the step, to .1·(1 − ρ₊ − ρ₋)² in the units of the text, so every ρ₊ stops "
        "at a different time, and near ρ₊ = 1 almost at once.",
    ]


def theory_sentence(tables: Tables) -> str:
    """Return a sentence on the theory and its largest deviations."""
    gaps = summary(tables).set_index("curve")["theory: largest difference"]
    each = ", ".join(f"{100 * gaps[name]:+.1f} ({name})" for name in ("LPC", *LINES))
    return (
        "A descent that stops early does not reach a minimum. The theory shown is that of the "
        "regularized minimum with 2γ = 1/(sT), T steps of size s: they agree to first order in the "
        "curvature. Largest difference of accuracy and theory, in points: "
        f"{each.replace('-', '−')}."
    )


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
