"""Noise rates and class proportions by the name of the class."""

import numpy as np
import pytest

from unflip.labels.class_values import noise_in_order, priors_in_order

NAMES = np.array(["ham", "spam"])
NUMBERS = np.array([0, 1, 2])


def test_rates_are_those_of_the_true_class():
    noise = noise_in_order({"spam": 0.3, "ham": 0.1}, NAMES)
    np.testing.assert_allclose(noise.transition, [[0.9, 0.1], [0.3, 0.7]])
    assert noise.priors is None


def test_wrong_labels_of_several_classes_are_spread_evenly():
    noise = noise_in_order({0: 0.2, 2: 0.4, np.int64(1): 0}, NUMBERS)
    np.testing.assert_allclose(noise.transition, [[0.8, 0.1, 0.1], [0, 1, 0], [0.2, 0.2, 0.6]])


def test_proportions_are_sorted_and_sum_to_1_exactly():
    priors = priors_in_order({2: 0.333333, 0: 0.333334, 1: 0.333333}, NUMBERS)
    np.testing.assert_allclose(priors, [0.333334, 0.333333, 0.333333])
    assert priors.sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("value", ["estimate", None, [[0.9, 0.1], [0.3, 0.7]]])
def test_other_values_are_unchanged(value):
    assert noise_in_order(value, NAMES) is value
    assert priors_in_order(value, NAMES) is value


@pytest.mark.parametrize(
    ("rates", "classes", "message"),
    [
        ({"span": 0.1, "ham": 0.1}, NAMES, "names the class 'span', which is not in y: did you"),
        ({"1": 0.1, 0: 0.1, 2: 0.1}, NUMBERS, "the class '1', which is not in y: did you mean 1?"),
        ({"zzz": 0.1}, NAMES, "which is not in y: the labels are 'ham', 'spam'"),
        ({"spam": 0.1}, NAMES, "noise = {'spam': 0.1} has no value for the class 'ham': give one"),
        ({}, NAMES, "has no value for the class 'ham'"),
        ({"ham": "much", "spam": 0}, NAMES, "has 'much' for the class 'ham': pass a number"),
        ({"ham": [0.1], "spam": 0}, NAMES, r"has \[0.1\] for the class 'ham'"),
        ({"ham": -0.1, "spam": 0}, NAMES, "has -0.1 for the class 'ham'"),
        ({"ham": np.nan, "spam": 0}, NAMES, "has nan for the class 'ham'"),
        ({"ham": 0.5, "spam": 0.5}, NAMES, "sums to 1: noise rates of two classes must sum to"),
        ({0: 0.1, 1: 0.7, 2: 0.1}, NUMBERS, "0.7 for the class 1, but it must be below 0.67"),
    ],
)
def test_bad_rates_are_named(rates, classes, message):
    with pytest.raises(ValueError, match=message):
        noise_in_order(rates, classes)


@pytest.mark.parametrize(
    ("priors", "message"),
    [
        ({"ham": 0.5, "spam": 0.6}, "priors = {'ham': 0.5, 'spam': 0.6} sums to 1.1"),
        ({"ham": 1, "spam": 0}, "has the proportion 0 for the class 'spam'"),
        ({"spam": 0.6}, "has no value for the class 'ham'"),
    ],
)
def test_bad_proportions_are_named(priors, message):
    with pytest.raises(ValueError, match=message):
        priors_in_order(priors, NAMES)
