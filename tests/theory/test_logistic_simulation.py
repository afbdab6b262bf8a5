"""The logistic fits of the library against the theory that predicts them.

As in test_isotropic_simulation: twice the estimate at (2n, 2p) minus the one at (n, p) is free of
the bias of order 1/n, and must equal the theory within 4 of its own standard errors.
"""

import numpy as np
import pytest
from scipy.special import ndtr

from support import simulation
from unflip import targets as target_values
from unflip import theory
from unflip.datasets import make_mixture
from unflip.losses import LOGISTIC
from unflip.ridge.solvers import ConvexFits
from unflip.ridge.spectrum import decompose

VARIANTS = ("naive", "unbiased", "optimized")
REGS = (0.1, 1.0, 10.0)


def draw(n, p, rng):
    """Return the clean accuracy of fits without intercept to one draw, shape (variants, regs)."""
    noise = simulation.NOISE
    X, y = make_mixture(n, p, mean_norm=simulation.MEAN_NORM, priors=noise.priors, random_state=rng)
    observed = noise.flip(y, rng)
    columns = [target_values.resolve(variant, noise)[observed] for variant in VARIANTS]
    fits = ConvexFits(decompose(X, fit_intercept=False), LOGISTIC)
    coef = fits.path(np.column_stack(columns), REGS).coef
    along = simulation.MEAN_NORM / np.sqrt(p) * coef.sum(axis=0)  # wᵀμ
    return ndtr(along / np.sqrt((coef**2).sum(axis=0))).T


def simulate(n, p, n_draws):
    """Return the mean over draws and its standard error."""
    draws = np.array([draw(n, p, np.random.default_rng([1, n, p, i])) for i in range(n_draws)])
    return draws.mean(axis=0), draws.std(axis=0, ddof=1) / np.sqrt(n_draws)


def predicted(aspect):
    mixture = theory.Mixture(mean_norm=simulation.MEAN_NORM, aspect=aspect, noise=simulation.NOISE)
    return np.array(
        [
            [
                theory.predict(mixture, targets=variant, reg=reg, loss="logistic").accuracy
                for reg in REGS
            ]
            for variant in VARIANTS
        ]
    )


@pytest.mark.parametrize(
    ("n", "p", "n_draws"),
    [
        pytest.param(200, 200, 40, id="200x200, 40 draws"),
        pytest.param(320, 80, 40, id="320x80, 40 draws"),
        pytest.param(1000, 1000, 12, id="1000x1000, 12 draws", marks=pytest.mark.slow),
    ],
)
def test_accuracy_is_as_predicted(n, p, n_draws):
    small, small_error = simulate(n, p, n_draws)
    large, large_error = simulate(2 * n, 2 * p, n_draws)
    distance = np.abs(2 * large - small - predicted(p / n)) / np.sqrt(
        4 * large_error**2 + small_error**2
    )
    assert distance.max() < 4


def test_posterior_targets_are_five_points_ahead_of_unbiased_ones():
    accuracy, _ = simulate(1000, 1000, n_draws=5)
    _, unbiased, posterior = accuracy[:, REGS.index(1.0)]
    assert posterior > unbiased + 0.05
