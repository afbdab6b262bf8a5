"""Simulations of estimated noise rates: bias, precision and coverage."""

import warnings

import numpy as np
import pytest

from unflip import NoiseModel
from unflip.datasets import make_mixture
from unflip.estimation import CrossMoment, SecondMomentMatching

N = 1000
P = 100
PRIORS = [1 / 3, 2 / 3]
EPS_NEG = 0.2


def simulate(eps_pos, mean_norm, n_draws, estimators):
    """Return errors of ε₊, first that of counting, and whether intervals cover it, by draw."""
    noise = NoiseModel.binary(eps_pos=eps_pos, eps_neg=EPS_NEG)
    errors, covered = [], []
    for seed in range(n_draws):
        rng = np.random.default_rng([seed, int(10 * mean_norm), int(100 * eps_pos)])
        X, y = make_mixture(N, P, mean_norm=mean_norm, priors=PRIORS, random_state=rng)
        observed = noise.flip(y, rng)
        fitted = [estimator.fit(X, observed) for estimator in estimators]
        rates = [np.mean(observed[y == 1] == 0), *(fit.noise_.eps_pos for fit in fitted)]
        errors.append(np.array(rates) - eps_pos)
        intervals = [fit.interval(0.95) for fit in fitted]
        covered.append([low[1, 0] <= eps_pos <= high[1, 0] for low, high in intervals])
    return np.array(errors), np.array(covered)


def check(eps_pos, mean_norm, n_draws, regs):
    """Check errors against counting and the paper's estimator, then bias and coverage."""
    geometry = {"mean_norm": mean_norm, "pi_neg": PRIORS[0]}
    estimators = [CrossMoment(reg=reg, **geometry) for reg in regs] + [
        SecondMomentMatching(reg=reg, **geometry) for reg in regs
    ]
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", UserWarning
        )  # the paper's system often has no valid solution
        errors, covered = simulate(eps_pos, mean_norm, n_draws, estimators)
    rmse = np.sqrt((errors**2).mean(axis=0))
    counting, ours, papers = rmse[0], rmse[1 : len(regs) + 1], rmse[len(regs) + 1 :]
    assert (ours < papers).all()
    assert (ours / papers).mean() < 0.6
    if eps_pos > 0:  # at ε₊ = 0 counting has no error
        assert (ours < 2 * counting).all()
    spread = errors.std(axis=0, ddof=1) / np.sqrt(n_draws)
    assert (
        np.abs(errors.mean(axis=0))[1 : len(regs) + 1] < 0.01 + 2 * spread[1 : len(regs) + 1]
    ).all()
    # At ε₊ = 0 only one side of the interval can miss: coverage is 97.5%.
    confidence = 0.95 if eps_pos > 0 else 0.975
    error = np.sqrt(confidence * (1 - confidence) / n_draws)
    assert (covered[:, : len(regs)].mean(axis=0) > confidence - 4 * error).all()


@pytest.mark.parametrize(("eps_pos", "mean_norm"), [(0.3, 1.0), (0.1, 2.0), (0.6, 3.0)])
def test_cross_moment_on_a_few_points(eps_pos, mean_norm):
    check(eps_pos, mean_norm, 30, [1.0])


@pytest.mark.slow
@pytest.mark.parametrize("mean_norm", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("eps_pos", [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
def test_cross_moment_on_the_grid(eps_pos, mean_norm):
    check(eps_pos, mean_norm, 100, [0.1, 1.0, 10.0])


@pytest.mark.parametrize(("eps_pos", "mean_norm"), [(0.3, 1.5), (0.0, 2.0)])
def test_cross_moment_without_known_geometry_on_a_few_points(eps_pos, mean_norm):
    errors, covered = simulate(eps_pos, mean_norm, 30, [CrossMoment()])
    assert np.sqrt((errors[:, 1] ** 2).mean()) < 0.05
    assert covered.mean() > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 30)


@pytest.mark.slow
# At ε₊ = .6, some draws have no clear signal.
@pytest.mark.filterwarnings("ignore:The features predict the labels no better:UserWarning")
@pytest.mark.parametrize("mean_norm", [1.5, 2.0, 3.0])
@pytest.mark.parametrize("eps_pos", [0.0, 0.2, 0.4, 0.6])
def test_cross_moment_without_known_geometry_on_the_grid(eps_pos, mean_norm):
    errors, covered = simulate(eps_pos, mean_norm, 100, [CrossMoment()])
    assert np.sqrt((errors[:, 1] ** 2).mean()) < 0.05
    assert covered.mean() > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 100)
