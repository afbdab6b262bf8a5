"""Numbers at the ends of what floats hold: the digits of a 60-digit reference, or a sentence that says what to do.

Warnings are errors here as everywhere, so none of NumPy's escapes.
"""

import itertools

import numpy as np
import pytest

from support import precise
from unflip import NoiseModel, targets, theory

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1, pi_neg=0.3)
CLEAN = NoiseModel.binary(eps_pos=0.0, eps_neg=0.0, pi_neg=0.3)
ASPECTS = [1e-4, 0.5, 1 - 1e-9, 1.0, 1 + 1e-9, 2.0, 1e4]
REGS = [0.0, 1e-12, 1e-6, 1e-3, 1.0, 1e3, 1e6, 1e12]
SETTINGS = [pair for pair in itertools.product(ASPECTS, REGS) if pair != (1.0, 0.0)]


class TestTheory:
    @pytest.mark.parametrize(("aspect", "reg"), SETTINGS)
    def test_delta_and_h(self, aspect, reg):
        delta, h, _ = precise.delta_and_h(aspect, reg)
        assert theory.delta(aspect, reg) == pytest.approx(float(delta), rel=1e-14)
        assert theory.h(aspect, reg) == pytest.approx(float(h), rel=1e-14)

    @pytest.mark.parametrize("noise", [NOISE, CLEAN], ids=["noisy", "clean"])
    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("mean_norm", [1e-3, 1.0, 1e3, 1e6])
    def test_scores(self, noise, fit_intercept, mean_norm):
        for (aspect, reg), name in itertools.product(SETTINGS, ["naive", "optimized"]):
            mixture = theory.Mixture(mean_norm=mean_norm, aspect=aspect, noise=noise)
            found = theory.predict(mixture, targets=name, reg=reg, fit_intercept=fit_intercept)
            values = targets.resolve(name, noise)
            low, high, variance, separation = precise.score_law(
                mean_norm, aspect, reg, noise, values, fit_intercept=fit_intercept
            )
            np.testing.assert_allclose(found.means, (low, high), rtol=1e-13, atol=1e-15 * np.abs(values).max())
            np.testing.assert_allclose(found.variance, variance, rtol=1e-13)
            np.testing.assert_allclose(found.separation, separation, rtol=1e-13)
            assert 0 <= found.accuracy <= 1
            assert 0 <= found.best_accuracy <= 1

    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("aspect", [1e-4, 1.0, 1e4])
    @pytest.mark.parametrize("mean_norm", [0.0, 1e-3, 1.0, 100.0])
    def test_a_strong_penalty_makes_every_loss_the_squared_one(self, fit_intercept, aspect, mean_norm):
        """Scores are then too small to tell the losses apart: pulls are those at the best constant score."""
        mixture = theory.Mixture(mean_norm=mean_norm, aspect=aspect, noise=NOISE)
        limit = theory.predict(mixture, reg=np.inf, fit_intercept=fit_intercept)
        for reg in (1e6, 1e8, 1e12) if aspect <= 1 else (1e10, 1e12):
            found = theory.predict(mixture, reg=reg, loss="logistic", fit_intercept=fit_intercept)
            assert found.separation == pytest.approx(float(limit.separation), rel=1e-4 if mean_norm > 1 else 1e-5)
            assert found.variance > 0
