"""Checked rows against Monte Carlo: clean and noisy labels with their posterior targets."""

import numpy as np
import pytest
from scipy.special import ndtr

from support.simulation import MEAN_NORM, NOISE
from unflip import targets, theory
from unflip.datasets import make_mixture
from unflip.ridge.spectrum import decompose

N_DRAWS = 60


def simulated_accuracies(n, p, share, fit_intercept):
    """Return the accuracy at the best threshold, which is known given the fit."""
    draws = []
    for i in range(N_DRAWS):
        rng = np.random.default_rng([3, n, i])
        X, y = make_mixture(n, p, mean_norm=MEAN_NORM, priors=NOISE.priors, random_state=rng)
        t = np.where(
            rng.random(n) < share, 2.0 * y - 1, targets.optimized(NOISE)[NOISE.flip(y, rng)]
        )
        coef = decompose(X, fit_intercept=fit_intercept).path(t, [5.0]).coef[:, 0, 0]
        half = MEAN_NORM / np.sqrt(p) * coef.sum() / np.linalg.norm(coef)
        shift = np.log(NOISE.priors[0] / NOISE.priors[1]) / (2 * half)
        draws.append(NOISE.priors @ ndtr([half + shift, half - shift]))
    return np.mean(draws), np.std(draws, ddof=1) / np.sqrt(N_DRAWS)


@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "origin"])
def test_accuracy_with_checked_rows_matches_prediction(share, fit_intercept):
    n, p = 300, 300
    (small, small_error), (large, large_error) = (
        simulated_accuracies(scale * n, scale * p, share, fit_intercept) for scale in (1, 2)
    )
    plan = theory.plan(
        n=n, p=p, mean_norm=MEAN_NORM, noise=NOISE, reg=5.0, fit_intercept=fit_intercept
    )
    error = np.sqrt(4 * large_error**2 + small_error**2)
    assert abs(2 * large - small - plan.accuracy_of(checked=share * n)) < 4 * error
