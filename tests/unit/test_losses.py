"""Losses: derivatives, and the perturbed loss written with targets."""

import numpy as np
import pytest

from unflip import targets
from unflip.losses import LOGISTIC, SQUARED, TargetLoss

LOSSES = pytest.mark.parametrize("loss", [SQUARED, LOGISTIC], ids=lambda loss: loss.name)
SCORES = np.linspace(-6, 6, 49)


@LOSSES
@pytest.mark.parametrize("label", [-1, 1])
def test_derivatives_of_the_loss(loss, label):
    step = 1e-5
    slope = (loss.value(SCORES + step, label) - loss.value(SCORES - step, label)) / (2 * step)
    bend = (loss.gradient(SCORES + step, label) - loss.gradient(SCORES - step, label)) / (2 * step)
    np.testing.assert_allclose(loss.gradient(SCORES, label), slope, atol=1e-9)
    np.testing.assert_allclose(loss.curvature(SCORES, label), bend, atol=1e-9)


@LOSSES
@pytest.mark.parametrize("target", [-1.0, 0.3, 5.0])
def test_derivatives_of_the_target_loss(loss, target):
    perturbed, step = TargetLoss(loss, target), 1e-5
    slope = (perturbed.value(SCORES + step) - perturbed.value(SCORES - step)) / (2 * step)
    bend = (perturbed.gradient(SCORES + step) - perturbed.gradient(SCORES - step)) / (2 * step)
    np.testing.assert_allclose(perturbed.gradient(SCORES), slope, atol=1e-8)
    np.testing.assert_allclose(perturbed.curvature(SCORES), bend, atol=1e-8)


@LOSSES
def test_labels_and_scores_broadcast(loss):
    labels = np.array([[-1.0], [1.0]])
    for function in (loss.value, loss.gradient, loss.curvature):
        table = function(SCORES, labels)
        assert table.shape == (2, len(SCORES))
        np.testing.assert_array_equal(table[1], function(SCORES, 1))


@LOSSES
@pytest.mark.parametrize("label", [-1, 1])
def test_a_target_of_plus_or_minus_one_is_the_loss_of_that_label(loss, label):
    np.testing.assert_array_equal(TargetLoss(loss, label).value(SCORES), loss.value(SCORES, label))


@LOSSES
@pytest.mark.parametrize(("rho_pos", "rho_neg"), [(0.0, 0.0), (0.4, 0.3), (0.2, -1.5)])
def test_target_loss_is_perturbed_loss_of_paper(loss, rho_pos, rho_neg):
    rho = {1: rho_pos, -1: rho_neg}
    for observed, target in zip((-1, 1), targets.from_rho(rho_pos, rho_neg), strict=True):
        own, other = loss.value(SCORES, observed), loss.value(SCORES, -observed)
        printed = ((1 - rho[-observed]) * own - rho[observed] * other) / (1 - rho_pos - rho_neg)
        np.testing.assert_allclose(
            TargetLoss(loss, target).value(SCORES), printed, rtol=1e-12, atol=1e-12
        )


def test_the_squared_loss_regresses_on_the_target():
    constant = TargetLoss(SQUARED, 3.0).value(SCORES) - (SCORES - 3.0) ** 2
    np.testing.assert_allclose(constant, constant[0], atol=1e-12)


def test_logistic_loss_is_accurate_for_large_scores():
    far = np.array([-800.0, 800.0])
    np.testing.assert_array_equal(LOGISTIC.value(far, 1), [800.0, 0.0])
    np.testing.assert_array_equal(LOGISTIC.gradient(far, 1), [-1.0, 0.0])
    np.testing.assert_array_equal(LOGISTIC.curvature(far, 1), [0.0, 0.0])
    assert LOGISTIC.gradient(np.float64(40.0), 1) == pytest.approx(-np.exp(-40.0), rel=1e-12)
