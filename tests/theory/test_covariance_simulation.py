"""The general-covariance theory against Monte Carlo, and the printed formula, which fails the same
test.

As in test_isotropic_simulation: the bias at (n, p) is twice that at (2n, 2p), so the theory must
equal twice the larger minus the smaller within 4 standard errors, each bias being taken against the
prediction for its own size.
"""

import numpy as np
import pytest
from scipy.linalg import toeplitz

from support.paper import general_theorem
from support.simulation import MEAN_NORM, NOISE, REGS, Estimate
from unflip import targets, theory
from unflip.datasets import make_mixture
from unflip.ridge.spectrum import decompose
from unflip.theory.covariance import class_predictions
from unflip.theory.model import best_threshold

VARIANTS = ("naive", "optimized")
QUICK, FULL = (250, 100, 150), (1000, 400, 100)
TIERS = [
    pytest.param(*QUICK, id="250x100"),
    pytest.param(*FULL, id="1000x400", marks=pytest.mark.slow),
]


def setting(n, p):
    """Return two covariances that do not commute, of the same kind at every size."""
    return {
        "mean": np.full(p, MEAN_NORM / np.sqrt(p)),
        "cov_neg": toeplitz(0.5 ** np.arange(p)),
        "cov_pos": 0.5 * toeplitz((-0.3) ** np.arange(p)) + np.diag(np.linspace(0.2, 2, p)),
        "n": n,
        "noise": NOISE,
    }


def simulate(n, p, fit_intercept, n_draws):
    """Return means, second moments and accuracies, shape (variants, regs, statistics)."""
    mixture = setting(n, p)
    means = np.array([-mixture["mean"], mixture["mean"]])
    covariances = [mixture["cov_neg"], mixture["cov_pos"]]
    draws = []
    for i in range(n_draws):
        rng = np.random.default_rng([7, n, p, i])
        X, y = make_mixture(
            n, p, means=means, priors=NOISE.priors, covariances=covariances, random_state=rng
        )
        observed = NOISE.flip(y, rng)
        columns = np.column_stack([targets.resolve(name, NOISE)[observed] for name in VARIANTS])
        path = decompose(X, fit_intercept=fit_intercept).path(columns, REGS)
        draws.append(
            [
                [
                    _statistics(path.coef[:, j, v], path.intercept[j, v], means, covariances)
                    for j in range(len(REGS))
                ]
                for v in range(len(VARIANTS))
            ]
        )
    return Estimate(np.mean(draws, axis=0), np.std(draws, axis=0, ddof=1) / np.sqrt(n_draws))


def _statistics(coef, intercept, means, covariances):
    scores = means @ coef + intercept
    variances = np.array([coef @ covariance @ coef for covariance in covariances])
    pair = class_predictions(scores, variances, NOISE.priors)
    return [*scores, *(scores**2 + variances), float(pair.accuracy)]


def predicted(n, p, fit_intercept):
    table = []
    for name in VARIANTS:
        for reg in REGS:
            pair = theory.predict_general(
                **setting(n, p), targets=name, reg=reg, fit_intercept=fit_intercept
            )
            means = np.array(pair.neg.means)
            second = means**2 + [pair.neg.variance, pair.pos.variance]
            table.append([*means, *second, float(pair.accuracy)])
    return np.reshape(table, (len(VARIANTS), len(REGS), 5))


def distances(n, p, n_draws, fit_intercept, prediction):
    small, large = (simulate(scale * n, scale * p, fit_intercept, n_draws) for scale in (1, 2))
    gap = 2 * (large.mean - prediction(2 * n, 2 * p)) - (small.mean - prediction(n, p))
    return np.abs(gap) / np.sqrt(4 * large.error**2 + small.error**2)


@pytest.mark.parametrize(("n", "p", "n_draws"), TIERS)
@pytest.mark.parametrize("fit_intercept", [False, True], ids=["origin", "intercept"])
def test_means_moments_and_accuracy_agree(n, p, n_draws, fit_intercept):
    assert (
        distances(n, p, n_draws, fit_intercept, lambda n, p: predicted(n, p, fit_intercept)).max()
        < 4
    )


@pytest.mark.parametrize(("n", "p", "n_draws"), TIERS)
def test_the_printed_formula_fails_the_same_test(n, p, n_draws):
    def second_moments(cross_terms):
        def prediction(n, p):
            table = predicted(n, p, False)
            for v, name in enumerate(VARIANTS):
                for j, reg in enumerate(REGS):
                    values = targets.resolve(name, NOISE)
                    table[v, j, 2:4] = general_theorem(
                        **setting(n, p), targets=values, reg=reg, cross_terms=cross_terms
                    )[1]
            return table

        return prediction

    assert distances(n, p, n_draws, False, second_moments(2)).max() < 4
    assert distances(n, p, n_draws, False, second_moments(1))[:, :, 2:4].max() > 8


def test_best_threshold_of_equal_variances_is_the_textbook_one():
    assert best_threshold((0.0, 2.0), (1.0, 1.0), np.array([0.3, 0.7])) == pytest.approx(
        1 - np.log(7 / 3) / 2
    )
