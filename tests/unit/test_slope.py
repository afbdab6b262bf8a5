"""The slope of the log-odds, against its definition by a general solver."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from support.logits import BOTH, draw, intercepts_by_definition
from unflip.calibration.intercepts import ClassProportions
from unflip.calibration.slope import SlopeFit, fit_slope

N_EFFECTIVE = 50.0  # effective sample size of the priors


def penalised(log_slope, logits, codes, share, noise, n_rows):
    """Return minus the log-likelihood of the labels, with a standard normal prior of log τ."""
    scaled = np.exp(log_slope) * logits
    log_odds = scaled + intercepts_by_definition(scaled, share, noise.priors, N_EFFECTIVE)
    observed = (softmax(log_odds, axis=1) * noise.transition.T[codes]).sum(axis=1)
    return log_slope**2 / 2 - n_rows * share @ np.log(observed)


class TestFitSlope:
    @BOTH
    @pytest.mark.parametrize("factor", [0.3, 1.0, 4.0])
    @pytest.mark.parametrize("n_rows", [3.0, 80.0])
    def test_is_the_posterior_mode(self, noise, factor, n_rows):
        logits, codes, share = draw(noise, factor=factor)
        data = logits, codes, share, noise, n_rows
        best = minimize_scalar(
            penalised, bounds=(-3, 3), args=data, method="bounded", options={"xatol": 1e-7}
        )
        slope_fit = fit_slope(
            logits, codes, share, noise, ClassProportions(noise.priors, N_EFFECTIVE), n_rows
        )
        assert np.log(slope_fit.factor) == pytest.approx(best.x, abs=2e-4)
        again = fit_slope(
            logits,
            codes,
            share,
            noise,
            ClassProportions(noise.priors, N_EFFECTIVE),
            n_rows,
            start=SlopeFit(2.0, slope_fit.intercepts),
        )
        assert np.log(again.factor) == pytest.approx(np.log(slope_fit.factor), abs=2e-4)

    @BOTH
    def test_constant_logits_leave_the_prior(self, noise):
        """All slopes have the same likelihood."""
        logits, codes, share = draw(noise)
        slope_fit = fit_slope(
            0.0 * logits, codes, share, noise, ClassProportions(noise.priors, N_EFFECTIVE), 80.0
        )
        assert slope_fit.factor == pytest.approx(1, abs=1e-4)
