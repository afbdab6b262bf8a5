"""The theory of convex losses against Monte Carlo: logistic fits to finite data.

As in test_isotropic_simulation: twice the estimate at (2n, 2p) minus the one at (n, p) is free of
the bias of order 1/n, and must equal the theory within 4 of its own standard errors.
"""

import numpy as np
import pytest
from scipy.special import ndtr

from support import simulation
from unflip import NoiseModel, targets
from unflip.datasets import make_mixture
from unflip.losses import LOGISTIC, TargetLoss
from unflip.ridge.solvers import ConvexFits
from unflip.ridge.spectrum import decompose
from unflip.theory import Mixture
from unflip.theory.convex import predict_convex

REGS = (1.0, 0.1, 0.01)
STATISTICS = ("mean_neg", "mean_pos", "variance", "accuracy")
# An intercept is finite only while the mean target of the drawn rows is below 1: that takes milder
# flips.
NOISES = {False: simulation.NOISE, True: NoiseModel.binary(eps_pos=0.2, eps_neg=0.1, pi_neg=0.3)}
TIERS = [
    pytest.param(200, 200, 40, id="200x200, 40 draws"),
    pytest.param(320, 80, 40, id="320x80, 40 draws"),
    pytest.param(1000, 1000, 12, id="1000x1000, 12 draws", marks=pytest.mark.slow),
    pytest.param(1600, 400, 20, id="1600x400, 20 draws", marks=pytest.mark.slow),
]


def setting(variant, noise):
    """Return noise and targets of a variant; the oracle is the naive fit to clean labels."""
    clean = NoiseModel.none().with_priors(noise.priors)
    return (
        (clean, targets.naive())
        if variant == "oracle"
        else (noise, targets.resolve(variant, noise))
    )


def draw(n, p, fit_intercept, rng):
    """Return statistics of the fits to one draw, shape (variants, regs, statistics)."""
    noise = NOISES[fit_intercept]
    X, y = make_mixture(n, p, mean_norm=simulation.MEAN_NORM, priors=noise.priors, random_state=rng)
    observed = noise.flip(y, rng)
    fits = ConvexFits(decompose(X, fit_intercept=fit_intercept), LOGISTIC)
    table = np.empty((len(simulation.VARIANTS), len(REGS), len(STATISTICS)))
    for i, variant in enumerate(simulation.VARIANTS):
        _, values = setting(variant, noise)
        path = fits.path(values[y if variant == "oracle" else observed], REGS)
        along = simulation.MEAN_NORM / np.sqrt(p) * path.coef[:, :, 0].sum(axis=0)  # wᵀμ
        variance, intercept = (path.coef[:, :, 0] ** 2).sum(axis=0), path.intercept[:, 0]
        statistics = intercept - along, intercept + along, variance, ndtr(along / np.sqrt(variance))
        table[i] = np.stack(statistics, axis=1)
    return table


def simulate(n, p, fit_intercept, n_draws):
    """Return the mean over draws and its standard error."""
    draws = np.array(
        [draw(n, p, fit_intercept, np.random.default_rng([0, n, p, i])) for i in range(n_draws)]
    )
    return draws.mean(axis=0), draws.std(axis=0, ddof=1) / np.sqrt(n_draws)


def predicted(variant, reg, aspect, fit_intercept):
    noise, values = setting(variant, NOISES[fit_intercept])
    mixture = Mixture(mean_norm=simulation.MEAN_NORM, aspect=aspect, noise=noise)
    law = predict_convex(
        mixture, targets=values, reg=reg, loss=LOGISTIC, fit_intercept=fit_intercept
    )
    return np.array([*law.means, law.variance, law.accuracy])


def test_fit_minimises_loss_of_theory():
    s, t = np.linspace(-5, 5, 11), 2.5
    tau = (1 + t) / 2
    np.testing.assert_allclose(
        TargetLoss(LOGISTIC, t).value(s), np.logaddexp(0, s) - tau * s, atol=1e-14
    )


@pytest.mark.parametrize("fit_intercept", [False, True], ids=["origin", "intercept"])
@pytest.mark.parametrize(("n", "p", "n_draws"), TIERS)
def test_means_variance_and_accuracy_agree(n, p, n_draws, fit_intercept):
    small, small_error = simulate(n, p, fit_intercept, n_draws)
    large, large_error = simulate(2 * n, 2 * p, fit_intercept, n_draws)
    theory = np.array(
        [[predicted(v, reg, p / n, fit_intercept) for reg in REGS] for v in simulation.VARIANTS]
    )
    distance = np.abs(2 * large - small - theory) / np.sqrt(4 * large_error**2 + small_error**2)
    worst = np.unravel_index(distance.argmax(), distance.shape)
    variant, reg, statistic = (
        names[i] for names, i in zip((simulation.VARIANTS, REGS, STATISTICS), worst, strict=True)
    )
    assert distance.max() < 4, (
        f"{statistic} of {variant} at reg={reg}: {distance.max():.1f} standard errors away"
    )
