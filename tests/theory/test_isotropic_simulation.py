"""The isotropic theory against Monte Carlo.

Finite sizes are off the limit by a bias of order 1/n. So simulate at (n, p) and at (2n, 2p): twice
the second minus the first has no such bias, and must equal the theory within 4 of its own standard
errors. That holds only if the theory is right AND the bias halves when the sizes double.
"""

import numpy as np
import pytest

from support import simulation
from support.paper import printed_h, right_h, theorem
from unflip import targets

SIZES = [(2000, 200), (500, 500), (300, 900)]
TIERS = [pytest.param(40, id="40 draws"), pytest.param(300, id="300 draws", marks=pytest.mark.slow)]


def extrapolate(n, p, fit_intercept, n_draws, seed=0):
    """Return the limit estimated from two sizes, and its standard error."""
    small = simulation.simulate(n, p, fit_intercept, n_draws, seed)
    large = simulation.simulate(2 * n, 2 * p, fit_intercept, n_draws, seed)
    return 2 * large.mean - small.mean, np.sqrt(4 * large.error**2 + small.error**2)


@pytest.mark.parametrize("n_draws", TIERS)
@pytest.mark.parametrize("fit_intercept", [False, True], ids=["origin", "intercept"])
@pytest.mark.parametrize(("n", "p"), SIZES)
def test_means_moments_accuracy_and_risk_agree(n, p, fit_intercept, n_draws):
    limit, error = extrapolate(n, p, fit_intercept, n_draws)
    theory = np.array(
        [
            [simulation.predicted(variant, reg, p / n, fit_intercept) for reg in simulation.REGS]
            for variant in simulation.VARIANTS
        ]
    )
    distance = np.abs(limit - theory) / error
    worst = np.unravel_index(distance.argmax(), distance.shape)
    variant, reg, statistic = (
        names[i]
        for names, i in zip(
            (simulation.VARIANTS, simulation.REGS, simulation.STATISTICS), worst, strict=True
        )
    )
    assert distance.max() < 4, (
        f"{statistic} of {variant} at reg={reg}: {distance.max():.1f} standard errors away"
    )


@pytest.mark.slow
@pytest.mark.parametrize(("n", "p"), [(60, 60), (40, 120)])
def test_bias_is_significant_and_shrinks_like_one_over_n(n, p):
    """At small sizes, where 6000 draws show it: significant at first, and of the form a/n + b/n².

    The combination f(n) − 6f(2n) + 8f(4n) is free of both terms, so it must vanish within its
    standard error.
    """
    theory = np.array(
        [
            [simulation.predicted(v, reg, p / n, False) for reg in simulation.REGS]
            for v in simulation.VARIANTS
        ]
    )
    estimates = [simulation.simulate(scale * n, scale * p, False, 6000, 1) for scale in (1, 2, 4)]
    bias = [estimate.mean - theory for estimate in estimates]
    significant = np.abs(bias[0]) > 10 * estimates[0].error
    assert significant.any()
    assert np.all(np.abs(bias[1]) < np.abs(bias[0]), where=significant)
    combined = bias[0] - 6 * bias[1] + 8 * bias[2]
    error = np.sqrt(
        estimates[0].error ** 2 + 36 * estimates[1].error ** 2 + 64 * estimates[2].error ** 2
    )
    assert np.all(np.abs(combined) < 4 * error)


@pytest.mark.parametrize(
    ("h", "agrees"), [(right_h, True), (printed_h, False)], ids=["right h", "printed h"]
)
def test_printed_h_fails_where_correct_h_passes(h, agrees):
    n = p = 500
    limit, error = extrapolate(n, p, False, 40)
    second_moment = simulation.STATISTICS.index("second_moment")
    within = []
    for i, variant in enumerate(simulation.VARIANTS):
        noise, values = simulation.setting(variant)
        rho_pos, rho_neg = targets.to_rho(values)
        for j, reg in enumerate(simulation.REGS):
            _, nu = theorem(
                rho_pos=rho_pos,
                rho_neg=rho_neg,
                noise=noise,
                mean_norm=simulation.MEAN_NORM,
                aspect=p / n,
                reg=reg,
                h=h,
            )
            within.append(abs(limit[i, j, second_moment] - nu) < 4 * error[i, j, second_moment])
    assert all(within) == agrees
    if not agrees:
        assert not any(within)
