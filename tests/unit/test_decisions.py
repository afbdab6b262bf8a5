"""Decision rules for given class priors and costs."""

import numpy as np
import pytest

from unflip import NoiseModel
from unflip.calibration.decision import Rule

NOISE = NoiseModel.none().with_priors([0.3, 0.7])


def test_by_default_priors_are_those_of_training_and_errors_cost_the_same():
    rule = Rule.of(NOISE, None, None)
    np.testing.assert_array_equal(rule.priors, [0.3, 0.7])
    assert rule.log_cost_ratio == 0
    np.testing.assert_array_equal(Rule.of(NOISE, "balanced", None).priors, [0.5, 0.5])
    np.testing.assert_array_equal(Rule.of(NOISE, [0.9, 0.1], None).priors, [0.9, 0.1])


def test_costs_are_relative_to_the_correct_prediction():
    """The second class is predicted if its expected cost is lower."""
    costs = np.array([[1.0, 4.0], [9.0, 2.0]])
    threshold = -Rule.of(NOISE, None, costs).log_cost_ratio
    for p in np.linspace(0.04, 0.96, 19):
        cheaper = np.array([1 - p, p]) @ costs
        assert (cheaper[1] < cheaper[0]) == (np.log(p / (1 - p)) > threshold)


def test_raises_if_a_wrong_prediction_costs_less_than_the_correct_one():
    with pytest.raises(ValueError, match=r"costs\[0, 1\] = 1 must exceed costs\[0, 0\] = 2"):
        Rule.of(NOISE, None, [[2, 1], [1, 0]])
