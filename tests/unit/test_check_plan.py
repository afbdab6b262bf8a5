"""Which rows to check next, and what their labels will tell."""

import numpy as np
import pytest

from unflip import audit
from unflip.auditing.check_plan import CheckPlan, CheckSample
from unflip.calibration.interval import Interval, normal_quantile
from unflip.calibration.labelled_scores import LabelledScores, ModelScores
from unflip.calibration.true_class import TrueClassModel
from unflip.datasets import make_mixture
from unflip.estimation import AssumedNoiseWarning
from unflip.labels.codes import UNCHECKED


def sample(n=1000, differing=0.1, checked=()):
    """Return the sample of rows of which a share has a label that differs from the prediction."""
    rng = np.random.default_rng(0)
    positive = np.where(rng.random(n) < 0.5, 0.9, 0.1)
    predicted = (positive > 0.5).astype(int)
    observed = np.where(np.arange(n) < differing * n, 1 - predicted, predicted)
    truth = np.full(n, UNCHECKED)
    truth[list(checked)] = predicted[list(checked)]
    scores = ModelScores.of(np.column_stack([1 - positive, positive]))
    model = TrueClassModel.fit(LabelledScores((scores,), observed, 2), truth)
    return CheckSample(model, np.flatnonzero(truth == UNCHECKED))


def test_forty_percent_differ():
    assert sample().quotas(50).tolist() == [30, 20]


def test_more_if_more_labels_differ():
    assert sample(differing=0.7).quotas(50).tolist() == [15, 35]


def test_no_more_than_there_are():
    assert sample(differing=0.01).quotas(50).tolist() == [40, 10]
    assert sample(differing=0.0).quotas(50).tolist() == [50, 0]
    assert sample(n=20, differing=1.0).quotas(20).tolist() == [0, 20]


def test_a_later_batch_fills_up_the_shares():
    first = sample()
    rows = first.draw(50)
    assert np.isin(rows, np.arange(100)).sum() == 20
    later = sample(checked=rows)
    assert later.quotas(50).tolist() == [30, 20]
    assert not np.isin(later.draw(50), rows).any()
    # A first batch without differing rows is made up for.
    assert sample(checked=range(500, 550)).quotas(50).tolist() == [10, 40]


def test_rows_are_distinct_and_reproducible():
    rows = sample().draw(80)
    assert len(np.unique(rows)) == 80
    np.testing.assert_array_equal(rows, sample().draw(80))
    assert not np.array_equal(rows, sample().draw(80, random_state=1))


def test_every_row_is_drawn_with_its_inclusion_probability():
    """Counts of 400 draws lie within five standard errors of their expectation."""
    checks = sample(n=100)
    counts = sum(np.bincount(checks.draw(25, seed), minlength=100) for seed in range(400))
    expected = 400 * checks.inclusion(25)
    assert expected.sum() == pytest.approx(400 * 25)
    error = np.sqrt(np.maximum(expected * (1 - checks.inclusion(25)), 1e-12))
    assert (np.abs(counts - expected) <= 5 * error + 1e-9).all()


def test_intervals_narrow_with_the_checks():
    checks = sample()
    widths = [checks.interval_after(m).width for m in (0, 20, 100, 500)]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == pytest.approx(checks.model.expected_accuracy.width)


def test_number_of_checks_for_a_width():
    checks = sample(n=5000)
    m = checks.n_for(0.05)
    assert checks.interval_after(m).width <= 0.1 < checks.interval_after(m - 1).width
    assert checks.interval_after(5000).width == pytest.approx(0, abs=1e-12)


def test_worth_of_checks():
    rows = np.empty(0, dtype=np.intp)
    narrow = CheckPlan(rows, np.empty(0), Interval(0.8, 0.7, 0.9), Interval(0.8, 0.75, 0.85), 0.0)
    assert narrow.narrowing == pytest.approx(0.1)
    assert narrow.is_worth(narrowing=0.05)
    assert not narrow.is_worth(narrowing=0.2)
    unknown = CheckPlan(rows, np.empty(0), narrow.interval, narrow.interval, np.nan)
    assert not unknown.is_worth()
    useful = CheckPlan(rows, np.empty(0), narrow.interval, narrow.interval, 0.02)
    assert useful.is_worth(gain=0.01)


def boundary_noise(X, y, seed=0):
    """Return labels that are wrong where rows are close to the class boundary."""
    rng = np.random.default_rng(seed)
    direction = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    margin = np.abs((X - X.mean(axis=0)) @ direction)
    hard = margin < np.quantile(margin, 0.4)
    return np.where(hard & (rng.random(len(y)) < 0.5), 1 - y, y)


class TestAudit:
    def test_checks_correct_what_was_assumed(self):
        X, y = make_mixture(1500, 30, mean_norm=1.2, random_state=0)
        observed = boundary_noise(X, y)
        trusted = np.full(1500, None)
        with pytest.warns(AssumedNoiseWarning, match="contradict class-conditional noise"):
            before = audit(X, observed, noise=None)  # believes the labels
        assert not before.is_calibrated
        rows = before.check_next(200)
        trusted[rows] = y[rows]
        report = audit(X, observed, trusted=trusted)
        assert report.is_calibrated
        accuracy = np.mean(report.evidence.probabilities.argmax(axis=1) == y)
        interval = report.expected_accuracy_interval
        assert interval.low <= accuracy <= interval.high
        wrong = report.expected_wrong_interval
        assert wrong.low <= np.sum(observed != y) <= wrong.high
        assumed_error = abs(before.expected_accuracy - accuracy)
        assert abs(report.expected_accuracy - accuracy) < assumed_error / 2
        # Scores and labels make it narrower than the share of 200 rows checked at random.
        share_error = np.sqrt(accuracy * (1 - accuracy) / 200)
        assert interval.width < 2 * normal_quantile(0.95) * share_error
        assert interval.width < before.expected_accuracy_interval.width

    def test_a_plan_of_the_same_rows(self):
        X, y = make_mixture(300, 20, mean_norm=2.0, random_state=0)
        report = audit(X, y, noise=None)
        plan = report.plan_checks(40)
        np.testing.assert_array_equal(plan.rows, report.check_next(40))
        assert plan.inclusion.sum() == pytest.approx(40)
        assert plan.interval_after.width < plan.interval.width

    def test_bad_arguments(self):
        X, y = make_mixture(60, 5, mean_norm=2.0, random_state=0)
        report = audit(X, y, noise=None)
        with pytest.raises(ValueError, match="half_width = 0 must lie strictly between 0 and 1"):
            report.checks_for(0)
        with pytest.raises(ValueError, match="m = 61"):
            report.check_next(61)
