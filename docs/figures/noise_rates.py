"""Figures of docs/noise_rates.md; `noise_rate_tables.py` prints its tables.

Real data are read from the folder of UNFLIP_DATA: see `unflip.datasets`.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from noise_rate_draws import (
    PRECISION_WORDS,
    TRUSTED_COUNTS,
    TRUSTED_DATA,
    guess_table,
    mean_width,
    precision_draws,
    root_mean_square,
    trusted_draws,
)
from scipy.special import expit

from unflip import LPClassifier, NoiseModel
from unflip.datasets import load_amazon_reviews, load_sentiment_votes, make_mixture

IMAGES = Path(__file__).resolve().parents[1] / "images"
# Palette of Okabe and Ito, safe for colour blindness.
BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#009E73"
GREY = "#666666"


def main() -> None:
    """Draw everything."""
    warnings.simplefilter("ignore")  # warnings of assumed rates are expected here
    for draw in (draw_same_law, draw_spectrum, draw_cross_moment, draw_trusted, draw_anchors):
        draw()


def draw_same_law() -> None:
    """Draw two models with the same distribution of observed labels."""
    noise = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
    score = np.linspace(-3, 3, 300)
    separated = expit(3 * score)
    seen = noise.eps_neg + (1 - noise.eps_pos - noise.eps_neg) * separated
    figure, (left, right) = panels(1, 2, (8, 3.5))
    left.plot(score, seen, color=BLUE, lw=2)
    left.text(0.75, 0.55, "A: overlapping classes,\nclean labels", fontsize=9, va="top", color=BLUE)
    left.plot(score, separated, color=ORANGE, lw=2, ls="--")
    left.text(
        -3,
        0.98,
        "B: separated classes,\nnoisy labels\n(ε₊ = .3, ε₋ = .1)",
        fontsize=9,
        va="top",
        color=ORANGE,
    )
    left.set(ylabel="P(truly positive | score)", title="two models ...")
    right.plot(score, seen, color=GREY, lw=5, alpha=0.35, label="both formulas")
    edges = np.linspace(-3, 3, 25)
    for seed, (truth, model, colour, marker) in enumerate(
        [(seen, NoiseModel.none(), BLUE, "o"), (separated, noise, ORANGE, "^")]
    ):
        rng = np.random.default_rng(seed)
        drawn = rng.uniform(-3, 3, 20_000)
        observed = model.flip(
            (rng.random(20_000) < np.interp(drawn, score, truth)).astype(int), random_state=seed
        )
        place = np.digitize(drawn, edges) - 1
        share = np.bincount(place, observed, minlength=24) / np.bincount(place, minlength=24)
        right.plot(
            (edges[:-1] + edges[1:]) / 2,
            share,
            marker,
            color=colour,
            ms=5,
            label=f"20,000 rows drawn from {'AB'[seed]}",
        )
    right.set(ylabel="P(labelled positive | score)", title="... with the same observed labels")
    for ax in (left, right):
        ax.set(xlabel="score", ylim=(-0.03, 1.03))
        ax.grid(alpha=0.25)
    right.legend(fontsize=8, loc="upper left", frameon=False)
    save(figure, "same_law")


def draw_spectrum() -> None:
    """Draw eigenvalues and first principal coordinates, above and below the phase transition."""
    n = 1000
    p = 500
    aspect = p / n
    low = (1 - np.sqrt(aspect)) ** 2
    high = (1 + np.sqrt(aspect)) ** 2
    grid = np.linspace(low, high, 400)
    bulk = np.sqrt((high - grid) * (grid - low)) / (2 * np.pi * aspect * grid)
    figure, axes = panels(2, 2, (8, 6))
    for (left, right), mean_norm, where in zip(axes, (2.0, 0.7), ("above", "below"), strict=True):
        X, y = make_mixture(n, p, mean_norm=mean_norm, random_state=0)
        observed = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1).flip(y, random_state=0)
        values, vectors = np.linalg.eigh(np.cov(X, rowvar=False))
        left.hist(
            values, bins=np.linspace(0, 6.6, 67).tolist(), density=True, color=GREY, alpha=0.4
        )
        left.plot(grid, bulk, color="black", lw=1.3, label="isotropic noise (Marchenko–Pastur)")
        left.plot([high, high], [0, 0.7], color=BLUE, lw=1.4, ls=":", label=f"its edge, {high:.2f}")
        left.set(
            xlabel="eigenvalue of the covariance", ylabel="density", ylim=(0, 1.3), xlim=(0, 6.6)
        )
        left.set_title(
            f"‖μ‖ = {mean_norm:g}: ℓ = {mean_norm**2:.2g}, {where} √η = {np.sqrt(aspect):.2f}",
            fontsize=10,
        )
        strength = mean_norm**2
        if strength > np.sqrt(aspect):
            expected = (1 + strength) * (1 + aspect / strength)
            left.plot(
                [expected],
                [0.05],
                "v",
                color=ORANGE,
                ms=8,
                label=f"spike expected at {expected:.2f}",
            )
        left.annotate(
            f"largest: {values[-1]:.2f}",
            (values[-1], 0.02),
            (values[-1] - 0.35 if strength > 1 else 4.2, 0.35),
            fontsize=8,
            arrowprops={"arrowstyle": "-", "color": GREY, "lw": 0.7},
            ha="center",
        )
        left.legend(fontsize=8, loc="upper right", frameon=False)
        along = (X - X.mean(axis=0)) @ vectors[:, -1]
        along *= np.sign(np.corrcoef(along, y)[0, 1]) / along.std()
        bins = np.linspace(-3.4, 3.4, 35).tolist()
        for label, colour, word in (
            (0, BLUE, "labelled negative"),
            (1, ORANGE, "labelled positive"),
        ):
            right.hist(along[observed == label], bins=bins, color=colour, alpha=0.45, label=word)
        right.set(xlabel="coordinate along the first eigenvector", ylabel="rows", ylim=(0, 105))
        right.set_title(
            "two clusters, each with noisy labels" if where == "above" else "no visible clusters",
            fontsize=10,
        )
        right.legend(fontsize=8, loc="upper left", frameon=False)
    save(figure, "spectrum")


def draw_cross_moment() -> None:
    """Draw estimated against true ε₊."""
    rates = (0.1, 0.2, 0.3, 0.4, 0.5)
    figure, axes = panels(1, 3, (8, 3.4), sharey=True)
    for ax, mean_norm in zip(axes, (1, 2, 3), strict=True):
        ax.plot([0.05, 0.55], [0.05, 0.55], color="black", lw=0.8, ls=":")
        draws = [precision_draws(mean_norm, rate, 40) for rate in rates]
        for shift, (name, colour, marker) in enumerate(
            [("paper", ORANGE, "s"), ("closed form", BLUE, "o"), ("fitted", GREEN, "^")]
        ):
            estimates = np.array([draw[name][:, 0] for draw in draws])
            ax.errorbar(
                np.array(rates) + 0.018 * (shift - 1),
                estimates.mean(axis=1),
                yerr=2 * estimates.std(axis=1),
                fmt=marker,
                color=colour,
                ms=4,
                lw=1.2,
                capsize=2,
                label=PRECISION_WORDS[name],
            )
        ax.set(xlabel="true ε₊", title=f"‖μ‖ = {mean_norm}", xticks=rates, ylim=(-0.04, 0.64))
        ax.grid(alpha=0.25)
    axes[0].set_ylabel("estimated ε₊ (mean ± 2 sd)")
    handles, words = axes[0].get_legend_handles_labels()
    figure.legend(handles, words, fontsize=8, loc="outside lower center", ncols=3, frameon=False)
    save(figure, "cross_moment")


def draw_trusted() -> None:
    """Draw error and interval width against the number of trusted labels."""
    figure, axes = panels(1, 2, (8, 3.6), sharey=True)
    for ax, (name, draw) in zip(axes, TRUSTED_DATA.items(), strict=True):
        draws = trusted_draws(draw, ("counting", "random"), 40)
        for way, colour, marker in (("counting", ORANGE, "s"), ("random", BLUE, "o")):
            word = "counting" if way == "counting" else "TrustedSubset"
            widths = [mean_width(draws[m, way])[0] for m in TRUSTED_COUNTS]
            errors = [root_mean_square(draws[m, way])[0] for m in TRUSTED_COUNTS]
            ax.plot(
                TRUSTED_COUNTS,
                widths,
                marker + "-",
                color=colour,
                ms=4,
                lw=1.5,
                label=f"{word}: width of 95% interval",
            )
            ax.plot(
                TRUSTED_COUNTS,
                errors,
                marker + "--",
                color=colour,
                ms=4,
                lw=1,
                mfc="white",
                label=f"{word}: error (rms)",
            )
        ax.set(xscale="log", yscale="log", xlabel="trusted labels", title=name)
        ax.set_xticks(TRUSTED_COUNTS, [str(m) for m in TRUSTED_COUNTS])
        ax.set_yticks([0.02, 0.05, 0.1, 0.2, 0.5], ["0.02", "0.05", "0.1", "0.2", "0.5"])
        ax.minorticks_off()
        ax.grid(alpha=0.25)
    axes[0].set_ylabel("error or width (ε₊ = 0.3)")
    handles, words = axes[0].get_legend_handles_labels()
    figure.legend(handles, words, fontsize=8, loc="outside lower center", ncols=2, frameon=False)
    save(figure, "trusted")


def draw_anchors() -> None:
    """Draw labels along the score, and estimates from high-confidence rows."""
    figure, (left, right) = panels(1, 2, (8, 3.7))
    X, y = load_amazon_reviews("books")
    observed = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1).flip(y, random_state=0)
    votes = load_sentiment_votes()
    vote = votes.random_votes(0)
    crowd = float(np.mean(vote[votes.y_train == 1] == 0))
    for rows, labels, rate, colour, marker, word in (
        (X, observed, 0.3, BLUE, "o", "book reviews, class-dependent noise"),
        (votes.X_train, vote, crowd, ORANGE, "^", "sentences, annotators' votes"),
    ):
        order = np.argsort(LPClassifier(noise=None).fit(rows, labels).loo_decision_)
        shares = [float(np.mean(labels[part] == 0)) for part in np.array_split(order, 10)]
        left.plot(np.linspace(5, 95, 10), shares, marker, color=colour, ms=4, label=word)
        left.axhline(rate, color=colour, lw=1.2, ls="--")
        left.text(2, rate - 0.01, f"true ε₊ = {rate:.2f}", fontsize=8, va="top", color=colour)
    left.axvspan(90, 100, color=GREY, alpha=0.15, lw=0)
    left.text(
        95, 0.65, "anchor rows", fontsize=8, ha="center", va="center", rotation=90, color=GREY
    )
    left.set(
        xlabel="rows by leave-one-out score (percentile)",
        ylabel="share labelled negative",
        ylim=(0, 1.12),
        xlim=(0, 100),
    )
    left.legend(fontsize=8, loc="upper right", frameon=False)
    right.plot([0, 0.5], [0, 0.5], color="black", lw=0.8, ls=":")
    guesses = guess_table(3)
    crowds = {name for name in guesses if name[0].startswith("sentences, ")}
    for names, colour, marker, word in (
        ([name for name in guesses if name not in crowds], BLUE, "o", "class-dependent noise"),
        (sorted(crowds), ORANGE, "^", "sentences, annotators' votes"),
    ):
        rows = np.array([guesses[name] for name in names])  # (case, statistic, rate)
        beside = 0.006 * (np.arange(len(rows)) // 5 - len(rows) // 10)  # data sets side by side
        right.errorbar(
            (rows[:, 0] + beside[:, None]).ravel(),
            rows[:, 1].ravel(),
            yerr=rows[:, 2].ravel(),
            fmt=marker,
            color=colour,
            ms=4,
            lw=0.6,
            alpha=0.85,
            label=word,
        )
    right.set(xlabel="true rate", ylabel="estimate ± 1 standard error", ylim=(-0.1, 0.62))
    right.legend(fontsize=8, loc="upper left", frameon=False)
    for ax in (left, right):
        ax.grid(alpha=0.25)
    save(figure, "anchors")


def panels(
    n_rows: int, n_columns: int, size: tuple[float, float], **options: Any
) -> tuple[Figure, Any]:
    """Return an empty figure and its axes."""
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    axes: Axes = figure.subplots(n_rows, n_columns, **options)
    return figure, axes


def save(figure: Figure, name: str) -> None:
    """Write the figure, with titles of one size."""
    for ax in figure.axes:
        ax.title.set_fontsize(10)
    figure.savefig(IMAGES / f"noise_{name}.png", dpi=110)


if __name__ == "__main__":
    main()
