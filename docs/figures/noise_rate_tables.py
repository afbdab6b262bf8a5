"""Print the tables of docs/noise_rates.md.

Real data are read from the folder of UNFLIP_DATA: see `unflip.datasets`.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from noise_rate_draws import (
    TRUSTED_DATA,
    Data,
    checked_fit,
    counted,
    guess_table,
    mean_width,
    precision_draws,
    rates_of,
    root_mean_square,
    trusted_draws,
)
from sklearn.preprocessing import StandardScaler

from unflip import LPClassifier, NoiseModel
from unflip.datasets import AMAZON_DOMAINS, load_amazon_reviews, load_sentiment_votes, make_mixture
from unflip.estimation import Automatic, TrustedSubset


def main() -> None:
    """Print everything."""
    warnings.simplefilter("ignore")  # warnings of assumed rates are expected here
    print_precision()
    print_acceptance()
    print_trusted()
    print_guesses()
    print_accuracies()
    print_failures()
    print_asides()


def print_precision() -> None:
    """Print bias, standard deviation, standard error and coverage of mixture estimators."""
    print(
        "\nCross moment, n = 1000, p = 100, pi_neg = 1/3, eps_neg = .2, 100 draws: (eps_pos, "
        "eps_neg)"
    )
    for mean_norm in (1, 2, 3):
        for eps_pos in (0.1, 0.3, 0.5):
            for name, rates in precision_draws(mean_norm, eps_pos, 100).items():
                gap = rates[:, :2] - [eps_pos, 0.2]
                error = rates[:, 2:]
                covered = (np.abs(gap) < 1.96 * error).mean(axis=0)
                print(
                    f"{mean_norm} {eps_pos} {name:12s} bias {gap.mean(axis=0).round(3)} sd "
                    f"{gap.std(axis=0).round(3)} standard error {error.mean(axis=0).round(3)} "
                    f"covered {covered.round(2)}"
                )


def print_acceptance() -> None:
    """Print how often Automatic accepts rows as a mixture."""
    print("\nSource of the estimate in 50 draws, eps = (.3, .2)")
    noise = NoiseModel.binary(eps_pos=0.3, eps_neg=0.2)
    shapes: list[tuple[str, int, int, float, Any]] = [
        (f"mean_norm {length}", 1000, 100, length, None)
        for length in (0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0)
    ]
    shapes.append(
        ("features with variances .5 to 1.5", 1000, 100, 2.0, np.diag(np.linspace(0.5, 1.5, 100)))
    )
    for word, n, p, length, covariances in shapes:
        sources: Counter[str] = Counter()
        for seed in range(50):
            X, y = make_mixture(n, p, mean_norm=length, covariances=covariances, random_state=seed)
            sources[Automatic().fit(X, noise.flip(y, random_state=seed)).source_] += 1
        print(word, dict(sources))


def print_trusted() -> None:
    """Print error, interval width and coverage with trusted labels."""
    for name, draw in TRUSTED_DATA.items():
        print(f"\nTrusted labels, {name}, 60 draws: (eps_pos, eps_neg)")
        for (m, way), rows in trusted_draws(draw, ("counting", "random", "suggested"), 60).items():
            covered = ((rows[:, 1] <= 0) & (rows[:, 2] >= 0)).mean(axis=0)
            print(
                f"{m:4d} {way:10s} error {root_mean_square(rows).round(3)} width "
                f"{mean_width(rows).round(3)} covered {covered.round(2)}"
            )


def print_guesses() -> None:
    """Print heuristic estimates from anchor rows."""
    print("\nAnchor rows, 5 draws: true rate, estimate, standard error")
    for (name, kind), rows in guess_table(5).items():
        print(f"{name:18s} {kind:22s} {rows[0].round(2)} {rows[1].round(2)} {rows[2].round(2)}")


def print_accuracies() -> None:
    """Print the accuracy of the classifier by what is given."""
    for eps_pos, eps_neg in ((0.4, 0.3), (0.3, 0.1)):
        for pi_neg in (0.5, 0.3):
            for domain in AMAZON_DOMAINS:
                print_accuracy(domain, NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg), pi_neg)


def print_accuracy(domain: str, noise: NoiseModel, pi_neg: float) -> None:
    """Print accuracies on clean test labels, with a share pi_neg of negative rows."""
    X, y = load_amazon_reviews(domain)
    scores: dict[str, list[float]] = {}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(y))
        n_negative = round((y == 1).sum() * pi_neg / (1 - pi_neg))
        negative = order[y[order] == 0][:n_negative]
        order = rng.permutation(np.concatenate([order[y[order] == 1], negative]))
        train, test = np.split(order, [int(0.8 * len(order))])
        scaler = StandardScaler().fit(X[train])
        rows = scaler.transform(X[train])
        labels = noise.flip(y[train], random_state=seed)
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
            scores.setdefault(name, []).append(
                model.fit(rows, labels).score(scaler.transform(X[test]), y[test])
            )
        clean = LPClassifier(noise=None).fit(rows, y[train])
        score = clean.score(scaler.transform(X[test]), y[test])
        scores.setdefault("clean labels", []).append(score)
    words = ", ".join(
        f"{name} {100 * np.mean(values):.1f} ± {100 * np.std(values) / np.sqrt(20):.1f}"
        for name, values in scores.items()
    )
    print(f"{domain} eps ({noise.eps_pos}, {noise.eps_neg}) pi_neg {pi_neg}: {words}")


def draw_topics(seed: int) -> Data:
    """Draw rows of two topics, with 70% and 30% positive rows and clean labels."""
    X, topic = make_mixture(1000, 100, mean_norm=2.0, random_state=seed)
    return X, (
        np.random.default_rng(seed + 99).random(1000) < np.where(topic == 1, 0.7, 0.3)
    ).astype(int)


def draw_unsure(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw rows, true classes and labels with more noise near the decision boundary."""
    X, y = make_mixture(1000, 100, mean_norm=2.0, random_state=seed)
    rate = 0.6 * np.exp(-np.abs(X.sum(axis=1) / 10) / 1.5)
    return X, y, np.where(np.random.default_rng(seed + 99).random(1000) < rate, 1 - y, y)


def print_failures() -> None:
    """Print estimates in settings where they fail."""
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
        "two topics, clean labels": draw_topics,
        "noise near the boundary": lambda seed: draw_unsure(seed)[::2],
        "n = 20, p = 100": few_rows(20, 100),
        "n = 40, p = 100": few_rows(40, 100),
        "n = 100, p = 100": few_rows(100, 100),
        "unrelated labels, mixture": unrelated(0.5, 2.0),
        "unrelated labels, noise": unrelated(0.5, 0.0),
        "unrelated labels, 30% positive, mixture": unrelated(0.3, 2.0),
        "overlapping classes, clean": overlapping(0.0, 0.0),
        "overlapping classes, eps (.3, .2)": overlapping(0.3, 0.2),
    }
    print("\nFailures, 20 draws: sources; mean and sd of (eps_pos, eps_neg), mean standard errors")
    for name, draw in cases.items():
        fits = [Automatic().fit(*draw(seed)) for seed in range(20)]
        rates = np.array([rates_of(fit) for fit in fits])
        sources = dict(Counter(fit.source_ for fit in fits))
        print(
            name,
            sources,
            rates[:, :2].mean(axis=0).round(2),
            rates[:, :2].std(axis=0).round(2),
            rates[:, 2:].mean(axis=0).round(2),
        )


def print_asides() -> None:
    """Print other numbers of the page."""
    largest = [
        np.linalg.eigvalsh(
            np.cov(make_mixture(1000, 500, mean_norm=2.0, random_state=seed)[0], rowvar=False)
        )[-1]
        for seed in range(20)
    ]
    print(f"\nLargest eigenvalue: {np.mean(largest):.2f}, sd {np.std(largest):.2f}")

    uneven = np.diag(np.linspace(0.5, 1.5, 100))
    noise = NoiseModel.binary(eps_pos=0.3, eps_neg=0.2)
    neighbours = 0.3 ** np.abs(np.subtract.outer(np.arange(100), np.arange(100)))
    fits: dict[str, list[Automatic]] = {"standardised": [], "correlated": []}
    for seed in range(20):
        X, y = make_mixture(1000, 100, mean_norm=2.0, covariances=uneven, random_state=seed)
        labels = noise.flip(y, random_state=seed)
        fits["standardised"].append(Automatic().fit(StandardScaler().fit_transform(X), labels))
        X, y = make_mixture(1000, 100, mean_norm=2.0, covariances=neighbours, random_state=seed)
        fits["correlated"].append(Automatic().fit(X, noise.flip(y, random_state=seed)))
    for name, estimators in fits.items():
        rates = np.mean([rates_of(fit)[:2] for fit in estimators], axis=0)
        print(name, dict(Counter(fit.source_ for fit in estimators)), rates.round(2))

    for m in (20, 40):
        estimates = []
        highest = []
        for seed in range(20):
            X, y = draw_topics(seed)
            estimate = checked_fit(X, y, y, TrustedSubset().fit(X, y).suggest(m, random_state=seed))
            estimates.append(rates_of(estimate)[:2])
            highest.append(estimate.interval()[1][[1, 0], [0, 1]])
        mean_rates = np.mean(estimates, axis=0)
        ends = np.mean(highest, axis=0)
        print(f"two topics, {m} trusted: {mean_rates.round(2)}, upper ends {ends.round(2)}")

    unsure = []
    for seed in range(20):
        X, y, labels = draw_unsure(seed)
        checked = TrustedSubset().fit(X, labels).suggest(100, random_state=seed)
        true = [np.mean(labels[y == 1] == 0), np.mean(labels[y == 0] == 1)]
        unsure.append(rates_of(checked_fit(X, labels, y, checked))[:2] + true)
    print(f"noise near the boundary, 100 trusted, true rates: {np.mean(unsure, axis=0).round(2)}")

    widths = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(2000, 50))
        y = rng.integers(2, size=2000)
        labels = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1).flip(y, random_state=seed)
        checked = rng.choice(2000, 100, replace=False)
        low, high = checked_fit(X, labels, y, checked).interval()
        by_count = counted(y[checked], labels[checked])
        widths.append([high[1, 0] - low[1, 0], by_count[2, 0] - by_count[1, 0]])
    print(
        f"useless features, width with 100 trusted, and counted: {np.mean(widths, axis=0).round(2)}"
    )

    votes = load_sentiment_votes()
    for seed in range(5):
        checked = np.random.default_rng(seed).choice(len(votes.y_train), 200, replace=False)
        for name, labels in (
            ("random votes", votes.random_votes(seed)),
            ("worst votes", votes.worst_votes()),
        ):
            estimate = checked_fit(votes.X_train, labels, votes.y_train, checked)
            print(f"{name}, 200 trusted: {np.round(rates_of(estimate), 2)}")


if __name__ == "__main__":
    main()
