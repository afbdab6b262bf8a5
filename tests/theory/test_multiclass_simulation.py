"""The theory of k classes against Monte Carlo.

As for two classes (test_isotropic_simulation.py), twice the result at (2n, 2p) minus that at (n, p)
is free of the bias of order 1/n and must equal the theory within 4 of its own standard errors.
"""

import numpy as np
import pytest

from unflip import NoiseModel
from unflip.datasets import make_mixture
from unflip.ridge.spectrum import decompose
from unflip.theory.multiclass import MulticlassPrediction, predict_multiclass

TIERS = [
    pytest.param((200, 100), (0.5,), 80, id="80 draws"),
    pytest.param((500, 250), (0.1, 1.0, 10.0), 200, id="200 draws", marks=pytest.mark.slow),
    pytest.param((250, 500), (0.1, 1.0, 10.0), 200, id="200 draws, p > n", marks=pytest.mark.slow),
]


def random_setting(k):
    """Return means in the first k axes, noise, and two tables side by side."""
    rng = np.random.default_rng(k)
    transition = rng.dirichlet(np.ones(k), size=k) / 2 + np.eye(k) / 2
    noise = NoiseModel(transition, rng.dirichlet(np.full(k, 10.0)))
    return rng.normal(size=(k, k)) * 1.2, noise, (np.eye(k), rng.normal(size=(k, k)))


def padded(means, p):
    return np.pad(means, ((0, 0), (0, p - means.shape[1])))


def statistics(prediction):
    """Return means, covariance, and accuracies per class, overall and of the best rule."""
    accuracies = [*prediction.class_accuracies, prediction.accuracy, prediction.readout_accuracy]
    return np.concatenate(
        [
            prediction.means.ravel(),
            prediction.covariance[np.triu_indices(len(accuracies) - 2)],
            accuracies,
        ]
    )


def simulate(k, n, p, regs, fit_intercept, n_draws):
    """Return the mean over draws and its standard error, shape (tables, regs, statistics)."""
    means, noise, tables = random_setting(k)
    draws = []
    for i in range(n_draws):
        rng = np.random.default_rng([k, n, p, i])
        X, y = make_mixture(n, p, means=padded(means, p), priors=noise.priors, random_state=rng)
        path = decompose(X, fit_intercept=fit_intercept).path(
            np.hstack(tables)[noise.flip(y, rng)], regs
        )
        draws.append(
            [
                [statistics(of_fit(path, means, noise, r, t)) for r in range(len(regs))]
                for t in range(len(tables))
            ]
        )
    return np.mean(draws, axis=0), np.std(draws, axis=0, ddof=1) / np.sqrt(n_draws)


def of_fit(path, means, noise, reg_index, table_index):
    """Return exact statistics given the fit: scores of new rows are Gaussian."""
    k = len(means)
    columns = slice(table_index * k, (table_index + 1) * k)
    weights = path.coef[:, reg_index, columns]
    centres = means @ weights[:k] + path.intercept[reg_index, columns]
    return MulticlassPrediction(means=centres, covariance=weights.T @ weights, priors=noise.priors)


@pytest.mark.parametrize(("size", "regs", "n_draws"), TIERS)
@pytest.mark.parametrize("fit_intercept", [False, True], ids=["origin", "intercept"])
@pytest.mark.parametrize("k", [3, 4])
def test_means_covariance_and_accuracies_agree(k, fit_intercept, size, regs, n_draws):
    n, p = size
    small, small_error = simulate(k, n, p, regs, fit_intercept, n_draws)
    large, large_error = simulate(k, 2 * n, 2 * p, regs, fit_intercept, n_draws)
    means, noise, tables = random_setting(k)
    setting = {"means": padded(means, p), "n": n, "noise": noise, "fit_intercept": fit_intercept}
    theory = [
        [statistics(predict_multiclass(targets=t, reg=reg, **setting)) for reg in regs]
        for t in tables
    ]
    # The error of an accuracy that is 0 in every draw is 0: keep it positive.
    error = np.sqrt(4 * large_error**2 + small_error**2) + 1e-12
    distance = np.abs(2 * large - small - theory) / error
    worst = np.unravel_index(distance.argmax(), distance.shape)
    assert distance.max() < 4, (
        f"(table, reg, statistic) {worst}: {distance.max():.1f} standard errors away"
    )
