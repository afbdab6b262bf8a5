"""plan: label quality, the exchange of checks for rows, and the curves' ends."""

import numpy as np
import pytest

from unflip import NoiseModel, theory

NOISE = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)


def make(**changes):
    return theory.plan(**{"n": 1600, "p": 400, "mean_norm": 1.2, "noise": NOISE, **changes})


@pytest.mark.parametrize("reg", [0.5, np.inf])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_it_agrees_with_predict_at_both_ends(fit_intercept, reg):
    ours = make(fit_intercept=fit_intercept, reg=reg)
    mixture = theory.Mixture(mean_norm=1.2, aspect=0.25, noise=NOISE)
    options = {"reg": reg, "fit_intercept": fit_intercept}
    assert ours.accuracy == pytest.approx(
        theory.predict(mixture, **options).best_accuracy, abs=1e-12
    )
    assert ours.oracle_accuracy == pytest.approx(
        theory.predict(mixture.clean, **options).best_accuracy, abs=1e-12
    )
    assert ours.bayes_accuracy == pytest.approx(float(mixture.bayes_accuracy))
    assert ours.accuracy < ours.oracle_accuracy < ours.bayes_accuracy
    assert ours.accuracy_of(rows=1e12) == pytest.approx(ours.bayes_accuracy, abs=1e-4)


@pytest.mark.parametrize("reg", [0.5, np.inf])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("checked", [0, 100, 1600])
def test_checks_and_their_worth_in_rows_give_the_same_accuracy(checked, fit_intercept, reg):
    ours = make(fit_intercept=fit_intercept, reg=reg)
    more = ours.worth_in_rows(checked)
    assert ours.accuracy_of(rows=1600 + more) == pytest.approx(
        ours.accuracy_of(checked=checked), abs=1e-9
    )


def test_noisy_rows_are_worth_fewer_clean_ones():
    ours = make()
    clean = make(n=ours.clean_rows, noise=NoiseModel.binary(eps_pos=0, eps_neg=0, pi_neg=0.3))
    assert clean.accuracy == pytest.approx(ours.accuracy, abs=1e-12)
    balanced = make(noise=NoiseModel.binary(eps_pos=0.2, eps_neg=0.2, pi_neg=0.5))
    assert balanced.clean_rows == pytest.approx(1600 * (1 - 2 * 0.2) ** 2)  # the textbook (1 − 2ε)²


def test_curves_rise_from_now_to_their_ends():
    ours = make(reg=1.0)
    for curve, end in (
        (ours.more_rows, ours.accuracy_of(rows=160_000)),
        (ours.checked_rows, ours.oracle_accuracy),
        (ours.cleaner_labels, ours.oracle_accuracy),
    ):
        assert np.all(np.diff(curve.accuracy) > 0)
        assert curve.accuracy[0] == pytest.approx(ours.accuracy)
        assert curve.accuracy[-1] == pytest.approx(float(end))
        assert len(curve.effort) == len(curve.accuracy)


def test_unless_said_otherwise_the_penalty_is_the_best_and_the_origin_has_to_be_found():
    expected = theory.Plan(
        n=1600, p=400, mean_norm=1.2, noise=NOISE, reg=np.inf, fit_intercept=True
    )
    assert make() == theory.Plan(n=1600, p=400, mean_norm=1.2, noise=NOISE) == expected


def test_one_row_of_one_feature_is_a_plan():
    assert make(n=1, p=1).accuracy >= 0.7


@pytest.mark.parametrize("reg", [0.5, np.inf])
def test_no_checks_are_worth_no_rows(reg):
    assert make(reg=reg).worth_in_rows(0) == 0


def test_checks_are_worth_infinitely_many_labels_that_say_nothing():
    """A class so rare that the square of its share, which label quality is of the order of, is 0."""
    rare = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1, pi_neg=1e-200)
    assert make(noise=rare).worth_in_rows(100) == np.inf


def test_checks_worth_more_than_a_trillion_rows_are_worth_infinitely_many():
    huge = make(n=500_000_000_000, p=400_000_000_000, reg=1.0)
    assert huge.worth_in_rows(500_000_000_000) == np.inf


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"n": 0}, "n = 0 must be at least 1"),
        ({"p": "many"}, "p = 'many' must hold numbers"),
        ({"mean_norm": -1.0}, "mean_norm = -1"),
        ({"mean_norm": [1.0, 2.0]}, "must be one number"),
        ({"noise": NoiseModel.none()}, "Plan needs the class proportions"),
        ({"reg": -1.0}, "reg = -1"),
    ],
)
def test_bad_input_is_named(changes, says):
    with pytest.raises(ValueError, match=says):
        make(**changes)


def test_checks_are_of_the_present_rows():
    with pytest.raises(ValueError, match="Give rows or checked, not both"):
        make().accuracy_of(rows=3200, checked=100)


def test_more_checks_than_rows_are_refused():
    with pytest.raises(ValueError, match="checked = 2000 must lie between 0 and n = 1600"):
        make().accuracy_of(checked=2000)
