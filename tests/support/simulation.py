"""Monte Carlo of the isotropic mixture, to compare with the theory."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from unflip import NoiseModel, theory
from unflip import targets as target_values
from unflip.datasets import make_mixture
from unflip.ridge.spectrum import decompose

MEAN_NORM = 2.0
NOISE = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
CLEAN = NoiseModel.none().with_priors(NOISE.priors)
REGS = (0.1, 1.0, 10.0)
VARIANTS = ("naive", "unbiased", "optimized", "oracle")
STATISTICS = ("mean_neg", "mean", "second_moment", "accuracy", "best_accuracy", "risk")


def setting(variant):
    """Return noise and targets of a variant; the oracle is the naive fit to clean labels."""
    return (
        (CLEAN, target_values.naive())
        if variant == "oracle"
        else (NOISE, target_values.resolve(variant, NOISE))
    )


def predicted(variant, reg, aspect, fit_intercept):
    """Return the theory's statistics."""
    noise, targets = setting(variant)
    mixture = theory.Mixture(mean_norm=MEAN_NORM, aspect=aspect, noise=noise)
    p = theory.predict(mixture, targets=targets, reg=reg, fit_intercept=fit_intercept)
    return np.array([p.means[0], p.mean, p.second_moment, p.accuracy, p.best_accuracy, p.risk])


@dataclass(frozen=True)
class Estimate:
    """Mean over draws and its standard error; last axis = STATISTICS."""

    mean: np.ndarray
    error: np.ndarray


def simulate(n, p, fit_intercept, n_draws, seed):
    """Estimate the statistics of every variant and γ, shape (variants, regs, statistics)."""
    draws = np.array(
        [_draw(n, p, fit_intercept, np.random.default_rng([seed, n, p, i])) for i in range(n_draws)]
    )
    return Estimate(draws.mean(axis=0), draws.std(axis=0, ddof=1) / np.sqrt(n_draws))


def _draw(n, p, fit_intercept, rng):
    X, y = make_mixture(n, p, mean_norm=MEAN_NORM, priors=NOISE.priors, random_state=rng)
    observed = NOISE.flip(y, rng)
    columns = [
        targets[y if noise is CLEAN else observed] for noise, targets in map(setting, VARIANTS)
    ]
    path = decompose(X, fit_intercept=fit_intercept).path(np.column_stack(columns), REGS)
    along = MEAN_NORM / np.sqrt(p) * path.coef.sum(axis=0)  # wᵀμ
    variance = (path.coef**2).sum(axis=0)
    return np.moveaxis(
        _statistics(path.intercept - along, path.intercept + along, variance), (0, 1, 2), (2, 1, 0)
    )


def _statistics(neg, pos, variance):
    """Return exact statistics given the fit, shape (statistics, regs, variants)."""
    pi_neg, pi_pos = NOISE.priors
    std = np.sqrt(variance)
    half = (pos - neg) / (2 * std)
    shift = np.log(pi_neg / pi_pos) / (2 * np.maximum(half, 1e-12))
    best = np.where(
        half > 0, pi_neg * ndtr(half + shift) + pi_pos * ndtr(half - shift), max(pi_neg, pi_pos)
    )
    return np.array(
        [
            neg,
            pos,
            pi_neg * neg**2 + pi_pos * pos**2 + variance,
            ndtr(half),
            best,
            pi_neg * (neg + 1) ** 2 + pi_pos * (pos - 1) ** 2 + variance,
        ]
    )
