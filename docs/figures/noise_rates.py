"""Draw the pictures of docs/noise_rates.md, or print its tables (``python docs/figures/noise_rates.py tables``).

Real data are read from the folder that UNFLIP_DATA names: see `unflip.datasets`.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy.special import expit
from scipy.stats import binomtest
from sklearn.preprocessing import StandardScaler

from unflip import LPClassifier, NoiseModel
from unflip.datasets import AMAZON_DOMAINS, load_amazon_reviews, load_sentiment_votes, make_mixture
from unflip.estimation import Automatic, CrossMoment, NoiseEstimator, SecondMomentMatching, TrustedSubset

IMAGES = Path(__file__).resolve().parents[1] / "images"
# Okabe and Ito's palette: distinct for readers with any colour vision.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"

Data = tuple[np.ndarray, np.ndarray]  # rows, labels


def main() -> None:
    """Draw everything, or print the tables."""
    warnings.simplefilter("ignore")  # guessed rates are what is measured here
    jobs = [
        print_precision,
        print_acceptance,
        print_trusted,
        print_guesses,
        print_accuracies,
        print_failures,
        print_asides,
    ]
    if sys.argv[1:] != ["tables"]:
        jobs = [draw_same_law, draw_spectrum, draw_cross_moment, draw_trusted, draw_anchors]
    for job in jobs:
        job()


# ---------------------------------------------------------------------------------------------------- pictures


def draw_same_law() -> None:
    """Two truths with one law of what is seen."""
    noise = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
    score = np.linspace(-3, 3, 300)
    separated = expit(3 * score)
    seen = noise.eps_neg + (1 - noise.eps_pos - noise.eps_neg) * separated
    figure, (left, right) = panels(1, 2, (8, 3.5))
    left.plot(score, seen, color=BLUE, lw=2)
    left.text(0.75, 0.55, "A: classes overlap,\nlabels are right", fontsize=9, va="top", color=BLUE)
    left.plot(score, separated, color=ORANGE, lw=2, ls="--")
    left.text(-3, 0.98, "B: clear classes,\nlabels flipped\n(ε₊ = .3, ε₋ = .1)", fontsize=9, va="top", color=ORANGE)
    left.set(ylabel="P(truly positive | score)", title="two truths ...")
    right.plot(score, seen, color=GREY, lw=5, alpha=0.35, label="both formulas")
    edges = np.linspace(-3, 3, 25)
    for seed, (truth, model, colour, marker) in enumerate(
        [(seen, NoiseModel.none(), BLUE, "o"), (separated, noise, ORANGE, "^")]
    ):
        rng = np.random.default_rng(seed)
        drawn = rng.uniform(-3, 3, 20_000)
        observed = model.flip((rng.random(20_000) < np.interp(drawn, score, truth)).astype(int), random_state=seed)
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
    right.set(ylabel="P(labelled positive | score)", title="... that look the same")
    for ax in (left, right):
        ax.set(xlabel="score", ylim=(-0.03, 1.03))
        ax.grid(alpha=0.25)
    right.legend(fontsize=8, loc="upper left", frameon=False)
    save(figure, "same_law")


def draw_spectrum() -> None:
    """Eigenvalues and the coordinates along the first of them, above and below the transition."""
    n, p = 1000, 500
    aspect = p / n
    low, high = (1 - np.sqrt(aspect)) ** 2, (1 + np.sqrt(aspect)) ** 2
    grid = np.linspace(low, high, 400)
    bulk = np.sqrt((high - grid) * (grid - low)) / (2 * np.pi * aspect * grid)
    figure, axes = panels(2, 2, (8, 6))
    for (left, right), mean_norm, where in zip(axes, (2.0, 0.7), ("above", "below"), strict=True):
        X, y = make_mixture(n, p, mean_norm=mean_norm, random_state=0)
        observed = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1).flip(y, random_state=0)
        values, vectors = np.linalg.eigh(np.cov(X, rowvar=False))
        left.hist(values, bins=np.linspace(0, 6.6, 67).tolist(), density=True, color=GREY, alpha=0.4)
        left.plot(grid, bulk, color="black", lw=1.3, label="isotropic noise (Marchenko–Pastur)")
        left.plot([high, high], [0, 0.7], color=BLUE, lw=1.4, ls=":", label=f"its edge, {high:.2f}")
        left.set(xlabel="eigenvalue of the covariance", ylabel="density", ylim=(0, 1.3), xlim=(0, 6.6))
        left.set_title(f"‖μ‖ = {mean_norm:g}: ℓ = {mean_norm**2:.2g}, {where} √η = {np.sqrt(aspect):.2f}", fontsize=10)
        strength = mean_norm**2
        if strength > np.sqrt(aspect):
            expected = (1 + strength) * (1 + aspect / strength)
            left.plot([expected], [0.05], "v", color=ORANGE, ms=8, label=f"spike expected at {expected:.2f}")
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
        for label, colour, word in ((0, BLUE, "labelled negative"), (1, ORANGE, "labelled positive")):
            right.hist(along[observed == label], bins=bins, color=colour, alpha=0.45, label=word)
        right.set(xlabel="coordinate along the first eigenvector", ylabel="rows", ylim=(0, 105))
        right.set_title(
            "two clusters, each with some labels of the other" if where == "above" else "nothing to see", fontsize=10
        )
        right.legend(fontsize=8, loc="upper left", frameon=False)
    save(figure, "spectrum")


def draw_cross_moment() -> None:
    """Estimated against true ε₊."""
    rates = (0.1, 0.2, 0.3, 0.4, 0.5)
    figure, axes = panels(1, 3, (8, 3.4), sharey=True)
    for ax, mean_norm in zip(axes, (1, 2, 3), strict=True):
        ax.plot([0.05, 0.55], [0.05, 0.55], color="black", lw=0.8, ls=":")
        draws = [precision_draws(mean_norm, rate, 40) for rate in rates]
        for shift, (name, colour, marker) in enumerate(
            [("paper", ORANGE, "s"), ("closed form", BLUE, "o"), ("fitted", GREEN, "^")]
        ):
            found = np.array([draw[name][:, 0] for draw in draws])
            ax.errorbar(
                np.array(rates) + 0.018 * (shift - 1),
                found.mean(axis=1),
                yerr=2 * found.std(axis=1),
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
    """Error and interval width against the number of trusted rows."""
    figure, axes = panels(1, 2, (8, 3.6), sharey=True)
    for ax, (name, draw) in zip(axes, TRUSTED_DATA.items(), strict=True):
        found = trusted_draws(draw, ("counting", "random"), 40)
        for way, colour, marker in (("counting", ORANGE, "s"), ("random", BLUE, "o")):
            word = "counting" if way == "counting" else "TrustedSubset"
            widths = [mean_width(found[m, way])[0] for m in TRUSTED_COUNTS]
            errors = [root_mean_square(found[m, way])[0] for m in TRUSTED_COUNTS]
            ax.plot(
                TRUSTED_COUNTS, widths, marker + "-", color=colour, ms=4, lw=1.5, label=f"{word}: width of 95% interval"
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
        ax.set(xscale="log", yscale="log", xlabel="trusted rows", title=name)
        ax.set_xticks(TRUSTED_COUNTS, [str(m) for m in TRUSTED_COUNTS])
        ax.set_yticks([0.02, 0.05, 0.1, 0.2, 0.5], ["0.02", "0.05", "0.1", "0.2", "0.5"])
        ax.minorticks_off()
        ax.grid(alpha=0.25)
    axes[0].set_ylabel("error or width (ε₊ = 0.3)")
    handles, words = axes[0].get_legend_handles_labels()
    figure.legend(handles, words, fontsize=8, loc="outside lower center", ncols=2, frameon=False)
    save(figure, "trusted")


def draw_anchors() -> None:
    """Labels along the score, and what is made of the surest ones."""
    figure, (left, right) = panels(1, 2, (8, 3.7))
    X, y = load_amazon_reviews("books")
    observed = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1).flip(y, random_state=0)
    votes = load_sentiment_votes()
    vote = votes.random_votes(0)
    crowd = float(np.mean(vote[votes.y_train == 1] == 0))
    for rows, labels, rate, colour, marker, word in (
        (X, observed, 0.3, BLUE, "o", "book reviews, flips by class alone"),
        (votes.X_train, vote, crowd, ORANGE, "^", "sentences, votes of crowd workers"),
    ):
        order = np.argsort(LPClassifier(noise=None).fit(rows, labels).loo_decision_)
        shares = [float(np.mean(labels[part] == 0)) for part in np.array_split(order, 10)]
        left.plot(np.linspace(5, 95, 10), shares, marker, color=colour, ms=4, label=word)
        left.axhline(rate, color=colour, lw=1.2, ls="--")
        left.text(2, rate - 0.01, f"true ε₊ = {rate:.2f}", fontsize=8, va="top", color=colour)
    left.axvspan(90, 100, color=GREY, alpha=0.15, lw=0)
    left.text(95, 0.65, "anchor rows", fontsize=8, ha="center", va="center", rotation=90, color=GREY)
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
        ([name for name in guesses if name not in crowds], BLUE, "o", "flips by class alone"),
        (sorted(crowds), ORANGE, "^", "sentences, votes of crowd workers"),
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
    right.set(xlabel="true rate", ylabel="guess ± 1 standard error", ylim=(-0.1, 0.62))
    right.legend(fontsize=8, loc="upper left", frameon=False)
    for ax in (left, right):
        ax.grid(alpha=0.25)
    save(figure, "anchors")


def panels(n_rows: int, n_columns: int, size: tuple[float, float], **options: Any) -> tuple[Figure, Any]:
    """Return an empty figure and its axes."""
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    axes: Axes = figure.subplots(n_rows, n_columns, **options)
    return figure, axes


def save(figure: Figure, name: str) -> None:
    """Write the picture, with titles of one size."""
    for ax in figure.axes:
        ax.title.set_fontsize(10)
    figure.savefig(IMAGES / f"noise_{name}.png", dpi=110)


# ------------------------------------------------------------------------------------------------ measurements

PRECISION_WORDS = {
    "paper": "two second moments (paper; ‖μ‖, π known)",
    "closed form": "CrossMoment (‖μ‖, π known)",
    "fitted": "CrossMoment() (nothing known)",
}


def precision_draws(mean_norm: float, eps_pos: float, n_draws: int) -> dict[str, np.ndarray]:
    """Return (ε₊, ε₋) and their standard errors, for each estimator and draw (n = 1000, p = 100, π₁ = 1/3, ε₋ = .2)."""
    estimators: dict[str, NoiseEstimator] = {
        "paper": SecondMomentMatching(mean_norm=mean_norm, pi_neg=1 / 3),
        "closed form": CrossMoment(mean_norm=mean_norm, pi_neg=1 / 3),
        "fitted": CrossMoment(),
    }
    found: dict[str, list[list[float]]] = {name: [] for name in estimators}
    for seed in range(n_draws):
        X, y = make_mixture(1000, 100, mean_norm=mean_norm, priors=[1 / 3, 2 / 3], random_state=seed)
        observed = NoiseModel.binary(eps_pos=eps_pos, eps_neg=0.2).flip(y, random_state=seed)
        for name, estimator in estimators.items():
            found[name].append(rates_of(estimator.fit(X, observed)))
    return {name: np.array(rows) for name, rows in found.items()}


def rates_of(estimator: Any) -> list[float]:
    """(ε₊, ε₋) and their standard errors."""
    errors = estimator.noise_std_
    return [estimator.noise_.eps_pos, estimator.noise_.eps_neg, errors[1, 0], errors[0, 1]]


TRUSTED_COUNTS = (10, 25, 50, 100, 200, 400)
TRUSTED_RATES = np.array([0.3, 0.1])


def _trusted_mixture(seed: int) -> Data:
    return make_mixture(2000, 400, mean_norm=2.0, random_state=seed)


def _trusted_books(seed: int) -> Data:
    return load_amazon_reviews("books")


TRUSTED_DATA: dict[str, Callable[[int], Data]] = {
    "mixture, n = 2000, p = 400, ‖μ‖ = 2": _trusted_mixture,
    "reviews of books, n = 2000, p = 400": _trusted_books,
}


def trusted_draws(
    draw: Callable[[int], Data], ways: tuple[str, ...], n_draws: int
) -> dict[tuple[int, str], np.ndarray]:
    """Estimate, low and high end less the truth, (draw, 3, rate), for each number of trusted rows and each way."""
    noise = NoiseModel.binary(eps_pos=TRUSTED_RATES[0], eps_neg=TRUSTED_RATES[1])
    found: dict[tuple[int, str], list[np.ndarray]] = {(m, way): [] for m in TRUSTED_COUNTS for way in ways}
    for seed in range(n_draws):
        X, y = draw(seed)
        observed = noise.flip(y, random_state=seed)
        start = TrustedSubset().fit(X, observed)
        fair = start.suggest(max(TRUSTED_COUNTS), at_random=True, random_state=seed)
        suggested = start.suggest(max(TRUSTED_COUNTS), random_state=seed)
        for m, way in found:
            checked = (suggested if way == "suggested" else fair)[:m]
            if way == "counting":
                result = counted(y[checked], observed[checked])
            else:
                estimate = checked_fit(X, observed, y, checked)
                low, high = estimate.interval()
                rates = [estimate.noise_.eps_pos, estimate.noise_.eps_neg]
                result = np.array([rates, [low[1, 0], low[0, 1]], [high[1, 0], high[0, 1]]])
            found[m, way].append(result - TRUSTED_RATES)
    return {key: np.array(rows) for key, rows in found.items()}


def counted(true: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Flipped shares of (positive, negative) rows with Wilson intervals, (3, 2)."""
    columns = []
    for label in (1, 0):
        mine = observed[true == label]
        if len(mine) == 0:
            columns.append([0.5, 0.0, 1.0])
            continue
        test = binomtest(int((mine != label).sum()), len(mine))
        interval = test.proportion_ci(method="wilson")
        columns.append([test.statistic, interval.low, interval.high])
    return np.array(columns).T


def mean_width(draws: np.ndarray) -> np.ndarray:
    """Mean width of the intervals of (ε₊, ε₋)."""
    return np.asarray((draws[:, 2] - draws[:, 1]).mean(axis=0))


def root_mean_square(draws: np.ndarray) -> np.ndarray:
    """Root mean square error of (ε₊, ε₋)."""
    return np.asarray(np.sqrt((draws[:, 0] ** 2).mean(axis=0)))


def guess_table(n_draws: int) -> dict[tuple[str, str], np.ndarray]:
    """Return true rates, guesses of Automatic and their standard errors, (3, 2), by data set and kind of noise."""
    table = {}
    for domain in AMAZON_DOMAINS:
        X, y = load_amazon_reviews(domain)
        for eps_pos, eps_neg in ((0.0, 0.0), (0.1, 0.1), (0.3, 0.1), (0.2, 0.4), (0.4, 0.3)):
            noise = NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg)
            drawn = [noise.flip(y, random_state=seed) for seed in range(n_draws)]
            table[domain, f"({eps_pos}, {eps_neg})"] = mean_guess(X, y, drawn, [eps_pos, eps_neg])
    votes = load_sentiment_votes()
    X, y = votes.X_train, votes.y_train
    by_class = NoiseModel.binary(eps_pos=0.18, eps_neg=0.24)
    table["sentences", "flips by class"] = mean_guess(X, y, [by_class.flip(y, random_state=s) for s in range(n_draws)])
    table["sentences, votes", "one random vote"] = mean_guess(X, y, [votes.random_votes(s) for s in range(n_draws)])
    table["sentences, votes", "least accurate worker"] = mean_guess(X, y, [votes.worst_votes()])
    return table


def mean_guess(X: np.ndarray, y: np.ndarray, drawn: list[np.ndarray], rates: list[float] | None = None) -> np.ndarray:
    """Average over observed labels; the true rates are counted where they are not given."""
    found = np.array([rates_of(Automatic().fit(X, labels)) for labels in drawn]).mean(axis=0)
    counts = np.array([[np.mean(labels[y == 1] == 0), np.mean(labels[y == 0] == 1)] for labels in drawn]).mean(axis=0)
    return np.stack([counts if rates is None else np.array(rates), found[:2], found[2:]])


# ------------------------------------------------------------------------------------------------------ tables


def print_precision() -> None:
    """Bias, spread, mean standard error and coverage of the estimators of a mixture."""
    print("\nCross moment, n = 1000, p = 100, pi_neg = 1/3, eps_neg = .2, 100 draws: (eps_pos, eps_neg)")
    for mean_norm in (1, 2, 3):
        for eps_pos in (0.1, 0.3, 0.5):
            for name, found in precision_draws(mean_norm, eps_pos, 100).items():
                gap, error = found[:, :2] - [eps_pos, 0.2], found[:, 2:]
                covered = (np.abs(gap) < 1.96 * error).mean(axis=0)
                print(
                    f"{mean_norm} {eps_pos} {name:12s} bias {gap.mean(axis=0).round(3)} sd {gap.std(axis=0).round(3)} "
                    f"standard error {error.mean(axis=0).round(3)} covered {covered.round(2)}"
                )


def print_acceptance() -> None:
    """How often Automatic takes rows for a mixture."""
    print("\nShare of 50 draws taken for a mixture, eps = (.3, .2)")
    noise = NoiseModel.binary(eps_pos=0.3, eps_neg=0.2)
    shapes: list[tuple[str, int, int, float, Any]] = [
        (f"mean_norm {length}", 1000, 100, length, None) for length in (0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0)
    ]
    shapes.append(("features with variances .5 to 1.5", 1000, 100, 2.0, np.diag(np.linspace(0.5, 1.5, 100))))
    for word, n, p, length, covariances in shapes:
        sources: Counter[str] = Counter()
        for seed in range(50):
            X, y = make_mixture(n, p, mean_norm=length, covariances=covariances, random_state=seed)
            sources[Automatic().fit(X, noise.flip(y, random_state=seed)).source_] += 1
        print(word, dict(sources))


def print_trusted() -> None:
    """Error, width and coverage of trusted rows."""
    for name, draw in TRUSTED_DATA.items():
        print(f"\nTrusted rows, {name}, 60 draws: (eps_pos, eps_neg)")
        for (m, way), rows in trusted_draws(draw, ("counting", "random", "suggested"), 60).items():
            covered = ((rows[:, 1] <= 0) & (rows[:, 2] >= 0)).mean(axis=0)
            print(
                f"{m:4d} {way:10s} error {root_mean_square(rows).round(3)} width {mean_width(rows).round(3)} "
                f"covered {covered.round(2)}"
            )


def print_guesses() -> None:
    """Show guesses from anchor rows."""
    print("\nAnchor rows, 5 draws: true, guess, standard error")
    for (name, kind), rows in guess_table(5).items():
        print(f"{name:18s} {kind:22s} {rows[0].round(2)} {rows[1].round(2)} {rows[2].round(2)}")


def print_accuracies() -> None:
    """Accuracy of the classifier by what it is told."""
    for eps_pos, eps_neg in ((0.4, 0.3), (0.3, 0.1)):
        for pi_neg in (0.5, 0.3):
            for domain in AMAZON_DOMAINS:
                print_accuracy(domain, NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg), pi_neg)


def print_accuracy(domain: str, noise: NoiseModel, pi_neg: float) -> None:
    """Split at random, keep so many negative rows that they make up pi_neg, flip, fit, score on clean test labels."""
    X, y = load_amazon_reviews(domain)
    found: dict[str, list[float]] = {}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(y))
        n_negative = round((y == 1).sum() * pi_neg / (1 - pi_neg))
        negative = order[y[order] == 0][:n_negative]
        order = rng.permutation(np.concatenate([order[y[order] == 1], negative]))
        train, test = np.split(order, [int(0.8 * len(order))])
        scaler = StandardScaler().fit(X[train])
        rows, labels = scaler.transform(X[train]), noise.flip(y[train], random_state=seed)
        y_trusted = np.full(len(train), np.nan)
        y_trusted[:100] = y[train[:100]]
        priors = [pi_neg, 1 - pi_neg]
        models = {
            "none": LPClassifier(noise=None),
            "default": LPClassifier(),
            "priors": LPClassifier(priors=priors),
            "100 trusted": LPClassifier(noise=TrustedSubset(y_trusted)),
            "rates": LPClassifier(noise=noise),
            "rates and priors": LPClassifier(noise=noise, priors=priors),
        }
        for name, model in models.items():
            found.setdefault(name, []).append(model.fit(rows, labels).score(scaler.transform(X[test]), y[test]))
        clean = LPClassifier(noise=None).fit(rows, y[train])
        found.setdefault("clean labels", []).append(clean.score(scaler.transform(X[test]), y[test]))
    words = ", ".join(
        f"{name} {100 * np.mean(values):.1f} ± {100 * np.std(values) / np.sqrt(20):.1f}"
        for name, values in found.items()
    )
    print(f"{domain} eps ({noise.eps_pos}, {noise.eps_neg}) pi_neg {pi_neg}: {words}")


def draw_topics(seed: int) -> Data:
    """Draw rows of two topics, with 70% and 30% positive rows; all labels are right."""
    X, topic = make_mixture(1000, 100, mean_norm=2.0, random_state=seed)
    return X, (np.random.default_rng(seed + 99).random(1000) < np.where(topic == 1, 0.7, 0.3)).astype(int)


def draw_unsure(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw rows, true classes and labels that are flipped the more often, the nearer a row is to the border."""
    X, y = make_mixture(1000, 100, mean_norm=2.0, random_state=seed)
    rate = 0.6 * np.exp(-np.abs(X.sum(axis=1) / 10) / 1.5)
    return X, y, np.where(np.random.default_rng(seed + 99).random(1000) < rate, 1 - y, y)


def print_failures() -> None:
    """Show what can go wrong."""
    noise = NoiseModel.binary(eps_pos=0.3, eps_neg=0.2)

    def few_rows(n: int, p: int) -> Callable[[int], Data]:
        def draw(seed: int) -> Data:
            X, y = make_mixture(n, p, mean_norm=2.0, random_state=seed)
            return X, noise.flip(y, random_state=seed)

        return draw

    def unrelated(share: float, mean_norm: float) -> Callable[[int], Data]:
        def draw(seed: int) -> Data:
            X, _ = make_mixture(1000, 100, mean_norm=mean_norm, random_state=seed)
            return X, (np.random.default_rng(seed + 5).random(1000) < share).astype(int)

        return draw

    def overlapping(eps_pos: float, eps_neg: float) -> Callable[[int], Data]:
        def draw(seed: int) -> Data:
            X, y = make_mixture(1000, 400, mean_norm=0.6, random_state=seed)
            return X, NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg).flip(y, random_state=seed)

        return draw

    cases: dict[str, Callable[[int], Data]] = {
        "two topics, all labels right": draw_topics,
        "flips near the border": lambda seed: draw_unsure(seed)[::2],
        "n = 20, p = 100": few_rows(20, 100),
        "n = 40, p = 100": few_rows(40, 100),
        "n = 100, p = 100": few_rows(100, 100),
        "unrelated labels, mixture": unrelated(0.5, 2.0),
        "unrelated labels, noise": unrelated(0.5, 0.0),
        "unrelated labels, 30% positive, mixture": unrelated(0.3, 2.0),
        "overlapping classes, clean": overlapping(0.0, 0.0),
        "overlapping classes, eps (.3, .2)": overlapping(0.3, 0.2),
    }
    print("\nWhat can go wrong, 20 draws: sources; mean and sd of (eps_pos, eps_neg), mean standard errors")
    for name, draw in cases.items():
        fits = [Automatic().fit(*draw(seed)) for seed in range(20)]
        found = np.array([rates_of(fit) for fit in fits])
        sources = dict(Counter(fit.source_ for fit in fits))
        print(
            name,
            sources,
            found[:, :2].mean(axis=0).round(2),
            found[:, :2].std(axis=0).round(2),
            found[:, 2:].mean(axis=0).round(2),
        )


def print_asides() -> None:
    """Print numbers that the page mentions in passing."""
    largest = [
        np.linalg.eigvalsh(np.cov(make_mixture(1000, 500, mean_norm=2.0, random_state=seed)[0], rowvar=False))[-1]
        for seed in range(20)
    ]
    print(f"\nLargest eigenvalue: {np.mean(largest):.2f}, sd {np.std(largest):.2f}")

    uneven, noise = np.diag(np.linspace(0.5, 1.5, 100)), NoiseModel.binary(eps_pos=0.3, eps_neg=0.2)
    neighbours = 0.3 ** np.abs(np.subtract.outer(np.arange(100), np.arange(100)))
    fits: dict[str, list[Automatic]] = {"standardised": [], "correlated": []}
    for seed in range(20):
        X, y = make_mixture(1000, 100, mean_norm=2.0, covariances=uneven, random_state=seed)
        labels = noise.flip(y, random_state=seed)
        fits["standardised"].append(Automatic().fit(StandardScaler().fit_transform(X), labels))
        X, y = make_mixture(1000, 100, mean_norm=2.0, covariances=neighbours, random_state=seed)
        fits["correlated"].append(Automatic().fit(X, noise.flip(y, random_state=seed)))
    for name, found in fits.items():
        rates = np.mean([rates_of(fit)[:2] for fit in found], axis=0)
        print(name, dict(Counter(fit.source_ for fit in found)), rates.round(2))

    for m in (20, 40):
        found_rates, highest = [], []
        for seed in range(20):
            X, y = draw_topics(seed)
            estimate = checked_fit(X, y, y, TrustedSubset().fit(X, y).suggest(m, random_state=seed))
            found_rates.append(rates_of(estimate)[:2])
            highest.append(estimate.interval()[1][[1, 0], [0, 1]])
        mean_rates, ends = np.mean(found_rates, axis=0), np.mean(highest, axis=0)
        print(f"two topics, {m} trusted: {mean_rates.round(2)} up to {ends.round(2)}")

    unsure = []
    for seed in range(20):
        X, y, labels = draw_unsure(seed)
        checked = TrustedSubset().fit(X, labels).suggest(100, random_state=seed)
        true = [np.mean(labels[y == 1] == 0), np.mean(labels[y == 0] == 1)]
        unsure.append(rates_of(checked_fit(X, labels, y, checked))[:2] + true)
    print(f"flips near the border, 100 trusted, and true rates: {np.mean(unsure, axis=0).round(2)}")

    widths = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(2000, 50)), rng.integers(2, size=2000)
        labels = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1).flip(y, random_state=seed)
        checked = rng.choice(2000, 100, replace=False)
        low, high = checked_fit(X, labels, y, checked).interval()
        by_count = counted(y[checked], labels[checked])
        widths.append([high[1, 0] - low[1, 0], by_count[2, 0] - by_count[1, 0]])
    print(f"scores of no use, width with 100 trusted and counted: {np.mean(widths, axis=0).round(2)}")

    votes = load_sentiment_votes()
    for seed in range(5):
        checked = np.random.default_rng(seed).choice(len(votes.y_train), 200, replace=False)
        for name, labels in (("random votes", votes.random_votes(seed)), ("worst votes", votes.worst_votes())):
            estimate = checked_fit(votes.X_train, labels, votes.y_train, checked)
            print(f"{name}, 200 trusted: {np.round(rates_of(estimate), 2)}")


def checked_fit(X: np.ndarray, labels: np.ndarray, y: np.ndarray, checked: np.ndarray) -> TrustedSubset:
    """Fit with true labels of the checked rows."""
    y_trusted = np.full(len(y), np.nan)
    y_trusted[checked] = y[checked]
    return TrustedSubset(y_trusted).fit(X, labels)


if __name__ == "__main__":
    main()
