"""Optimal regularization: search range, units and limits; best threshold of two Gaussians."""

import numpy as np
import pytest
from scipy.special import ndtr

from unflip import NoiseModel, theory
from unflip.theory.model import best_threshold
from unflip.theory.optimum import search_reg

NOISE = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)


class TestSearch:
    """Grid of γ half a decade apart, then a refinement."""

    @pytest.mark.parametrize("scale", [1.0, 3.0])
    def test_range_is_eight_decades_in_both_directions(self, scale):
        assert search_reg(lambda reg: reg, scale) == pytest.approx(1e-8 * scale, rel=1e-12)
        assert search_reg(lambda reg: -reg, scale) == pytest.approx(1e8 * scale, rel=1e-12)

    def test_grid_has_steps_of_half_a_decade(self):
        tried = []
        search_reg(lambda reg: tried.append(reg) or reg, decades=2.0)
        np.testing.assert_allclose(tried, np.logspace(-2, 2, 9), rtol=1e-12)

    @pytest.mark.parametrize("best", [0.02, 0.3, 1.0, 2.0, 50.0])
    def test_minimum_between_grid_points_is_found(self, best):
        assert search_reg(lambda reg: np.log(reg / best) ** 2, decades=2.0) == pytest.approx(
            best, rel=1e-6
        )


def general(noise, unit=1.0):
    """Return a mixture whose first class has less variance along some features."""
    mean, variances = np.repeat([0.5, 0.05], 20), np.repeat([10.0, 0.1], 20)
    wider = np.repeat([3.0, 1.0], 20) * variances
    return theory.GeneralMixture(
        mean=unit * mean, cov_neg=unit**2 * variances, cov_pos=unit**2 * wider, n=400, noise=noise
    )


def test_optimal_reg_scales_with_feature_variance():
    """Features scaled by 1e-10 have γ* scaled by 1e-20, below the range for unit variance."""
    noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1, pi_neg=0.8)
    usual, small = (float(theory.optimal_reg(general(noise, unit))) for unit in (1.0, 1e-10))
    assert small == pytest.approx(1e-20 * usual, rel=1e-4)


def test_optimal_reg_uses_best_threshold():
    """If variances and priors differ, the threshold midway between the means has another γ*."""
    mixture = general(NoiseModel.binary(eps_pos=0.2, eps_neg=0.1, pi_neg=0.8))
    near = float(theory.optimal_reg(mixture)) * np.array([0.8, 1.0, 1.25])
    prediction = [theory.predict_mixture(mixture, reg=reg) for reg in near]
    assert np.argmax([pair.best_accuracy for pair in prediction]) == 1
    assert np.argmax([pair.accuracy for pair in prediction]) != 1


def test_other_losses_raise_for_general_covariances():
    mixture = theory.GeneralMixture(
        mean=np.ones(3), cov_neg=np.ones(3), cov_pos=np.ones(3), n=10, noise=NOISE
    )
    with pytest.raises(ValueError, match="loss='logistic' is not available for a GeneralMixture"):
        theory.optimal_reg(mixture, loss="logistic")


def test_optimal_multiclass_reg_has_defaults_of_predict_multiclass():
    noise = NoiseModel(0.4 * np.eye(3) + 0.2, [0.6, 0.3, 0.1])
    setting = {"means": 1.0 + 2 * np.eye(3, 20), "n": 60, "noise": noise}
    best = theory.optimal_multiclass_reg(**setting, readout="plain")
    near = [
        theory.predict_multiclass(**setting, reg=reg).accuracy
        for reg in best * np.array([0.8, 1.0, 1.25])
    ]
    assert np.argmax(near) == 1


class TestBestThreshold:
    """The most accurate rule "positive above a threshold" for two Gaussian classes."""

    @pytest.mark.parametrize("pi_neg", [0.001, 0.2, 0.5, 0.7, 0.999])
    @pytest.mark.parametrize("stds", [(1.0, 1.0), (0.5, 2.0), (3.0, 1.0), (1.0, 1e-3)])
    @pytest.mark.parametrize("means", [(-1.0, 1.0), (4.0, 4.0), (1.0, -0.5), (10.0, 10.3)])
    def test_no_other_threshold_is_more_accurate(self, means, stds, pi_neg):
        priors = np.array([pi_neg, 1 - pi_neg])

        def accuracy(threshold):
            return priors[0] * ndtr((threshold - means[0]) / stds[0]) + priors[1] * ndtr(
                (means[1] - threshold) / stds[1]
            )

        result = best_threshold(means, (stds[0] ** 2, stds[1] ** 2), priors)
        grid = np.concatenate([[-np.inf, np.inf], np.linspace(-20, 20, 40_001)])
        assert accuracy(result) >= accuracy(grid).max() - 1e-12

    def test_of_two_crossings_the_rising_one_is_chosen(self):
        """Also if one class is so rare that both crossings have the same accuracy in float64."""
        means, variances, rare = (-8.87588436, 6.23837976), (0.01527847, 0.01212907), 9.92e-19
        assert means[0] < best_threshold(means, variances, np.array([1.0, rare])) < means[1]

    def test_constant_scores_have_threshold_at_midpoint(self):
        still = (0.0, 0.0)
        assert best_threshold((1.0, 4.0), still, np.array([0.2, 0.8])) == 2.5
        for means in ((4.0, 1.0), (1.0, 1.0)):  # none parts them: the larger class is predicted
            assert best_threshold(means, still, np.array([0.2, 0.8])) == -np.inf
            assert best_threshold(means, still, np.array([0.8, 0.2])) == np.inf
