"""Two remarks of the paper: features need not be Gaussian, and accuracy varies like n^(−1/2)."""

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.preprocessing import StandardScaler

from support.amazon import needs_data
from support.simulation import MEAN_NORM, NOISE, predicted
from unflip import datasets, targets, theory
from unflip.ridge.spectrum import decompose

REG = 1.0
ENTRIES = {
    "gaussian": lambda rng, size: rng.normal(size=size),
    "rademacher": lambda rng, size: rng.choice([-1.0, 1.0], size=size),
    "uniform": lambda rng, size: rng.uniform(-np.sqrt(3), np.sqrt(3), size=size),
    "student t, 5 degrees": lambda rng, size: rng.standard_t(5, size=size) * np.sqrt(3 / 5),
}
TIERS = [
    pytest.param(250, 60, id="250"),
    pytest.param(1000, 100, id="1000", marks=pytest.mark.slow),
]


def draw(entries, n, p, rng):
    """Return mean and power of the weights of a fit without intercept to random rows."""
    y = (rng.random(n) > NOISE.priors[0]).astype(int)
    X = ENTRIES[entries](rng, (n, p)) + MEAN_NORM / np.sqrt(p) * (2 * y - 1)[:, None]
    t = targets.optimized(NOISE)[NOISE.flip(y, rng)]
    coef = decompose(X, fit_intercept=False).path(t, [REG]).coef[:, 0, 0]
    new = ENTRIES[entries](rng, (2000, p)) @ coef
    mean = MEAN_NORM / np.sqrt(p) * coef.sum()
    return mean, mean**2 + coef @ coef, np.mean(new > -mean)


def estimate(entries, n, p, n_draws):
    draws = np.array(
        [draw(entries, n, p, np.random.default_rng([11, n, i])) for i in range(n_draws)]
    )
    return draws.mean(axis=0), draws.std(axis=0, ddof=1) / np.sqrt(n_draws)


@pytest.mark.parametrize(("n", "n_draws"), TIERS)
@pytest.mark.parametrize("entries", ENTRIES)
def test_only_means_and_covariances_of_the_features_matter(entries, n, n_draws):
    (small, small_error), (large, large_error) = (
        estimate(entries, s * n, s * n // 2, n_draws) for s in (1, 2)
    )
    expected = predicted("optimized", REG, 0.5, False)[[1, 2, 3]]
    error = np.sqrt(4 * large_error**2 + small_error**2)
    assert np.all(np.abs(2 * large - small - expected) < 4 * error)


@needs_data
@pytest.mark.parametrize("domain", ["books", "kitchen"])
def test_real_features_with_matched_moments(domain):
    """Bags of words: the theory for the file's own means and covariances, against fits to parts of
    it.

    Word counts are far from Gaussian and classes far from alike, yet the mean accuracy comes out
    within 2 points.
    """
    X, y = datasets.load_amazon_reviews(domain)
    X = StandardScaler().fit_transform(X)
    means = np.array([X[y == a].mean(axis=0) for a in (0, 1)])
    X = X - means.mean(axis=0)
    noise = NOISE.with_priors([0.5, 0.5])
    actual = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(y))
        train, test = order[:800], order[800:]
        t = targets.optimized(noise)[noise.flip(y[train], rng)]
        coef = decompose(X[train], fit_intercept=False).path(t, [10.0]).coef[:, 0, 0]
        actual.append(np.mean((X[test] @ coef > 0) == y[test]))
    covariances = [np.cov(X[y == a].T) for a in (0, 1)]
    pair = theory.predict_general(
        mean=(means[1] - means[0]) / 2,
        cov_neg=covariances[0],
        cov_pos=covariances[1],
        n=800,
        noise=noise,
        reg=10.0,
    )
    assert abs(float(pair.accuracy) - np.mean(actual)) < 0.02


@pytest.mark.parametrize(
    "sizes", [(100, 200, 400), pytest.param((200, 400, 800, 1600), marks=pytest.mark.slow)], ids=str
)
def test_standard_deviation_of_accuracy_shrinks_like_root_n(sizes):
    """The slope of log(standard deviation of the accuracy) against log n is −1/2."""
    n_draws, spreads = 200, []
    for n in sizes:
        fits = [
            draw("gaussian", n, n // 2, np.random.default_rng([13, n, i])) for i in range(n_draws)
        ]
        spreads.append(
            np.std([ndtr(mean / np.sqrt(second - mean**2)) for mean, second, _ in fits], ddof=1)
        )
    logs = np.log(sizes)
    slope = np.polyfit(logs, np.log(spreads), 1)[0]
    error = np.sqrt(1 / (2 * n_draws)) / np.linalg.norm(logs - logs.mean())
    assert abs(slope + 0.5) < 4 * error
