"""Simulated estimates of noise rates, for the figures and tables of docs/noise_rates.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import binomtest

from unflip import NoiseModel
from unflip.datasets import AMAZON_DOMAINS, load_amazon_reviews, load_sentiment_votes, make_mixture
from unflip.estimation import (
    Automatic,
    CrossMoment,
    NoiseEstimator,
    SecondMomentMatching,
    TrustedSubset,
)

Data = tuple[np.ndarray, np.ndarray]  # rows, labels

PRECISION_WORDS = {
    "paper": "two second moments (paper; ‖μ‖, π known)",
    "closed form": "CrossMoment (‖μ‖, π known)",
    "fitted": "CrossMoment() (no given values)",
}


def precision_draws(mean_norm: float, eps_pos: float, n_draws: int) -> dict[str, np.ndarray]:
    """Return (ε₊, ε₋) and their standard errors, for each estimator and draw.

    The setting is n = 1000, p = 100, π₁ = 1/3 and ε₋ = .2.
    """
    estimators: dict[str, NoiseEstimator] = {
        "paper": SecondMomentMatching(mean_norm=mean_norm, pi_neg=1 / 3),
        "closed form": CrossMoment(mean_norm=mean_norm, pi_neg=1 / 3),
        "fitted": CrossMoment(),
    }
    rates: dict[str, list[list[float]]] = {name: [] for name in estimators}
    for seed in range(n_draws):
        X, y = make_mixture(
            1000, 100, mean_norm=mean_norm, priors=[1 / 3, 2 / 3], random_state=seed
        )
        observed = NoiseModel.binary(eps_pos=eps_pos, eps_neg=0.2).flip(y, random_state=seed)
        for name, estimator in estimators.items():
            rates[name].append(rates_of(estimator.fit(X, observed)))
    return {name: np.array(rows) for name, rows in rates.items()}


def rates_of(estimator: Any) -> list[float]:
    """Return (ε₊, ε₋) and their standard errors."""
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
    """Return errors of estimate, low and high end, (draw, 3, rate), by number of rows and way."""
    noise = NoiseModel.binary(eps_pos=TRUSTED_RATES[0], eps_neg=TRUSTED_RATES[1])
    errors: dict[tuple[int, str], list[np.ndarray]] = {
        (m, way): [] for m in TRUSTED_COUNTS for way in ways
    }
    for seed in range(n_draws):
        X, y = draw(seed)
        observed = noise.flip(y, random_state=seed)
        start = TrustedSubset().fit(X, observed)
        fair = start.suggest(max(TRUSTED_COUNTS), at_random=True, random_state=seed)
        suggested = start.suggest(max(TRUSTED_COUNTS), random_state=seed)
        for m, way in errors:
            checked = (suggested if way == "suggested" else fair)[:m]
            if way == "counting":
                result = counted(y[checked], observed[checked])
            else:
                estimate = checked_fit(X, observed, y, checked)
                low, high = estimate.interval()
                rates = [estimate.noise_.eps_pos, estimate.noise_.eps_neg]
                result = np.array([rates, [low[1, 0], low[0, 1]], [high[1, 0], high[0, 1]]])
            errors[m, way].append(result - TRUSTED_RATES)
    return {key: np.array(rows) for key, rows in errors.items()}


def counted(true: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Return counted noise rates of (positive, negative) rows with Wilson intervals, (3, 2)."""
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
    """Return the mean width of the intervals of (ε₊, ε₋)."""
    return np.asarray((draws[:, 2] - draws[:, 1]).mean(axis=0))


def root_mean_square(draws: np.ndarray) -> np.ndarray:
    """Return the root mean square error of (ε₊, ε₋)."""
    return np.asarray(np.sqrt((draws[:, 0] ** 2).mean(axis=0)))


def guess_table(n_draws: int) -> dict[tuple[str, str], np.ndarray]:
    """Return true rates, estimates of Automatic and standard errors, (3, 2), by data and noise."""
    table = {}
    for domain in AMAZON_DOMAINS:
        X, y = load_amazon_reviews(domain)
        for eps_pos, eps_neg in ((0.0, 0.0), (0.1, 0.1), (0.3, 0.1), (0.2, 0.4), (0.4, 0.3)):
            noise = NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg)
            drawn = [noise.flip(y, random_state=seed) for seed in range(n_draws)]
            table[domain, f"({eps_pos}, {eps_neg})"] = mean_guess(X, y, drawn, [eps_pos, eps_neg])
    votes = load_sentiment_votes()
    X = votes.X_train
    y = votes.y_train
    by_class = NoiseModel.binary(eps_pos=0.18, eps_neg=0.24)
    table["sentences", "flips by class"] = mean_guess(
        X, y, [by_class.flip(y, random_state=s) for s in range(n_draws)]
    )
    table["sentences, votes", "one random vote"] = mean_guess(
        X, y, [votes.random_votes(s) for s in range(n_draws)]
    )
    table["sentences, votes", "least accurate annotator"] = mean_guess(X, y, [votes.worst_votes()])
    return table


def mean_guess(
    X: np.ndarray, y: np.ndarray, drawn: list[np.ndarray], rates: list[float] | None = None
) -> np.ndarray:
    """Average over observed labels; true rates are counted unless given."""
    estimates = np.array([rates_of(Automatic().fit(X, labels)) for labels in drawn]).mean(axis=0)
    counts = np.array(
        [[np.mean(labels[y == 1] == 0), np.mean(labels[y == 0] == 1)] for labels in drawn]
    ).mean(axis=0)
    return np.stack([counts if rates is None else np.array(rates), estimates[:2], estimates[2:]])


def checked_fit(
    X: np.ndarray, labels: np.ndarray, y: np.ndarray, checked: np.ndarray
) -> TrustedSubset:
    """Fit TrustedSubset with the true labels of the checked rows."""
    y_trusted = np.full(len(y), np.nan)
    y_trusted[checked] = y[checked]
    return TrustedSubset(y_trusted).fit(X, labels)
