"""Estimated noise rates against simulation: bias, precision and coverage over draws."""

import warnings

import numpy as np
import pytest

from unflip import NoiseModel
from unflip.datasets import make_mixture
from unflip.estimation import CrossMoment, SecondMomentMatching

N, P, PRIORS, EPS_NEG = 1000, 100, [1 / 3, 2 / 3], 0.2


def simulate(eps_pos, mean_norm, n_draws, estimators):
    """Return errors of ε₊ and whether the interval holds it, (draws, estimators); the first is
    counting."""
    noise = NoiseModel.binary(eps_pos=eps_pos, eps_neg=EPS_NEG)
    errors, held = [], []
    for seed in range(n_draws):
        rng = np.random.default_rng([seed, int(10 * mean_norm), int(100 * eps_pos)])
        X, y = make_mixture(N, P, mean_norm=mean_norm, priors=PRIORS, random_state=rng)
        observed = noise.flip(y, rng)
        fitted = [estimator.fit(X, observed) for estimator in estimators]
        found = [np.mean(observed[y == 1] == 0), *(fit.noise_.eps_pos for fit in fitted)]
        errors.append(np.array(found) - eps_pos)
        intervals = [fit.interval(0.95) for fit in fitted]
        held.append([low[1, 0] <= eps_pos <= high[1, 0] for low, high in intervals])
    return np.array(errors), np.array(held)


def check(eps_pos, mean_norm, n_draws, regs):
    """Compare with the floor, with the paper's estimator, with no bias and with the stated
    confidence."""
    known = {"mean_norm": mean_norm, "pi_neg": PRIORS[0]}
    estimators = [CrossMoment(reg=reg, **known) for reg in regs] + [
        SecondMomentMatching(reg=reg, **known) for reg in regs
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the paper's system often has no root inside
        errors, held = simulate(eps_pos, mean_norm, n_draws, estimators)
    rmse = np.sqrt((errors**2).mean(axis=0))
    counting, ours, papers = rmse[0], rmse[1 : len(regs) + 1], rmse[len(regs) + 1 :]
    assert (ours < papers).all()
    assert (ours / papers).mean() < 0.6
    if eps_pos > 0:  # where no positive is flipped, counting makes no error at all
        assert (ours < 2 * counting).all()
    spread = errors.std(axis=0, ddof=1) / np.sqrt(n_draws)
    assert (
        np.abs(errors.mean(axis=0))[1 : len(regs) + 1] < 0.01 + 2 * spread[1 : len(regs) + 1]
    ).all()
    # Half of the interval is cut off at ε₊ = 0: 97.5% then.
    confidence = 0.95 if eps_pos > 0 else 0.975
    error = np.sqrt(confidence * (1 - confidence) / n_draws)
    assert (held[:, : len(regs)].mean(axis=0) > confidence - 4 * error).all()


@pytest.mark.parametrize(("eps_pos", "mean_norm"), [(0.3, 1.0), (0.1, 2.0), (0.6, 3.0)])
def test_the_cross_moment_on_a_few_points_of_the_grid(eps_pos, mean_norm):
    check(eps_pos, mean_norm, 30, [1.0])


@pytest.mark.slow
@pytest.mark.parametrize("mean_norm", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("eps_pos", [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
def test_the_cross_moment_on_the_whole_grid(eps_pos, mean_norm):
    check(eps_pos, mean_norm, 100, [0.1, 1.0, 10.0])


@pytest.mark.parametrize(("eps_pos", "mean_norm"), [(0.3, 1.5), (0.0, 2.0)])
def test_nothing_known_on_a_few_points(eps_pos, mean_norm):
    errors, held = simulate(eps_pos, mean_norm, 30, [CrossMoment()])
    assert np.sqrt((errors[:, 1] ** 2).mean()) < 0.05
    assert held.mean() > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 30)


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:The labels agree with the rows no better:UserWarning"
)  # at ε₊ = .6, now and then
@pytest.mark.parametrize("mean_norm", [1.5, 2.0, 3.0])
@pytest.mark.parametrize("eps_pos", [0.0, 0.2, 0.4, 0.6])
def test_nothing_known_on_the_whole_grid(eps_pos, mean_norm):
    errors, held = simulate(eps_pos, mean_norm, 100, [CrossMoment()])
    assert np.sqrt((errors[:, 1] ** 2).mean()) < 0.05
    assert held.mean() > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 100)
