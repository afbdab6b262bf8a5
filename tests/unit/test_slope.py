"""The steepness of log-odds, against its definition by a general solver."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from support.logits import BOTH, draw, offsets_by_definition
from unflip.calibration.intercepts import ClassProportions
from unflip.calibration.slope import fit_slope

WORTH = 50.0  # rows, of the priors


def penalised(log_steepness, logits, codes, share, noise, n_rows):
    """Minus the log-likelihood of the labels, and of log τ in a standard normal distribution."""
    steep = np.exp(log_steepness) * logits
    log_odds = steep + offsets_by_definition(steep, share, noise.priors, WORTH)
    observed = (softmax(log_odds, axis=1) * noise.transition.T[codes]).sum(axis=1)
    return log_steepness**2 / 2 - n_rows * share @ np.log(observed)


class TestLikeliestSteepness:
    @BOTH
    @pytest.mark.parametrize("factor", [0.3, 1.0, 4.0])
    @pytest.mark.parametrize("n_rows", [3.0, 80.0])
    def test_it_is_the_posterior_mode_with_its_curvature(self, noise, factor, n_rows):
        logits, codes, share = draw(noise, factor=factor)
        data = logits, codes, share, noise, n_rows
        best = minimize_scalar(
            penalised, bounds=(-3, 3), args=data, method="bounded", options={"xatol": 1e-7}
        )
        found = fit_slope(
            logits, codes, share, noise, ClassProportions(noise.priors, WORTH), n_rows
        )
        assert np.log(found.factor) == pytest.approx(best.x, abs=2e-4)
        step = 0.01
        around = [penalised(best.x + move, *data) for move in (-step, 0.0, step)]
        curvature = (around[0] - 2 * around[1] + around[2]) / step**2
        assert found.error == pytest.approx(1 / np.sqrt(max(curvature, 1.0)), rel=0.01)

    @BOTH
    def test_labels_that_the_scores_say_nothing_of_leave_the_prior(self, noise):
        """Logits that are all alike: no steepness is likelier than another."""
        logits, codes, share = draw(noise)
        found = fit_slope(
            0.0 * logits, codes, share, noise, ClassProportions(noise.priors, WORTH), 80.0
        )
        assert found.factor == pytest.approx(1, abs=1e-4)
        assert found.error == pytest.approx(1)
