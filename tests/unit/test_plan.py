"""theory.plan: label quality, equivalence of checks and rows, ends of the curves."""

import numpy as np
import pytest

from unflip import NoiseModel, theory

NOISE = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)


def make(**changes):
    return theory.plan(**{"n": 1600, "p": 400, "mean_norm": 1.2, "noise": NOISE, **changes})


@pytest.mark.parametrize("reg", [0.5, np.inf])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_agrees_with_predict_at_both_ends(fit_intercept, reg):
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
def test_checks_and_equivalent_rows_have_same_accuracy(checked, fit_intercept, reg):
    ours = make(fit_intercept=fit_intercept, reg=reg)
    more = ours.equivalent_rows(checked)
    assert ours.accuracy_of(rows=1600 + more) == pytest.approx(
        ours.accuracy_of(checked=checked), abs=1e-9
    )


def test_noisy_rows_are_equivalent_to_fewer_clean_rows():
    ours = make()
    clean = make(n=ours.clean_rows, noise=NoiseModel.binary(eps_pos=0, eps_neg=0, pi_neg=0.3))
    assert clean.accuracy == pytest.approx(ours.accuracy, abs=1e-12)
    balanced = make(noise=NoiseModel.binary(eps_pos=0.2, eps_neg=0.2, pi_neg=0.5))
    assert balanced.clean_rows == pytest.approx(1600 * (1 - 2 * 0.2) ** 2)  # the textbook (1 − 2ε)²


def test_curves_rise_from_present_accuracy_to_their_ends():
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


def test_defaults_are_best_reg_and_intercept():
    expected = theory.Plan(
        n=1600, p=400, mean_norm=1.2, noise=NOISE, reg=np.inf, fit_intercept=True
    )
    assert make() == theory.Plan(n=1600, p=400, mean_norm=1.2, noise=NOISE) == expected


def test_one_row_and_one_feature_are_valid():
    assert make(n=1, p=1).accuracy >= 0.7


@pytest.mark.parametrize("reg", [0.5, np.inf])
def test_zero_checks_are_equivalent_to_zero_rows(reg):
    assert make(reg=reg).equivalent_rows(0) == 0


def test_checks_are_equivalent_to_infinitely_many_uninformative_labels():
    """One class is so rare that the label quality underflows float64 to 0."""
    rare = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1, pi_neg=1e-200)
    assert make(noise=rare).equivalent_rows(100) == np.inf


def test_more_than_a_trillion_equivalent_rows_is_infinite():
    huge = make(n=500_000_000_000, p=400_000_000_000, reg=1.0)
    assert huge.equivalent_rows(500_000_000_000) == np.inf


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": 0}, "n = 0 must be at least 1"),
        ({"p": "many"}, "p = 'many' must hold numbers"),
        ({"mean_norm": -1.0}, "mean_norm = -1"),
        ({"mean_norm": [1.0, 2.0]}, "must be one number"),
        ({"noise": NoiseModel.none()}, "Plan needs the class proportions"),
        ({"reg": -1.0}, "reg = -1"),
    ],
)
def test_invalid_input_raises(changes, message):
    with pytest.raises(ValueError, match=message):
        make(**changes)


def test_rows_and_checked_together_raise():
    with pytest.raises(ValueError, match="Give rows or checked, not both"):
        make().accuracy_of(rows=3200, checked=100)


def test_more_checks_than_rows_raise():
    with pytest.raises(ValueError, match="checked = 2000 must lie between 0 and n = 1600"):
        make().accuracy_of(checked=2000)
