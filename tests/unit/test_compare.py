"""`compare`: the difference of two models on true labels."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics

from unflip import compare, evaluate
from unflip.auditing.evaluation.sampled_checks import SelectedChecksWarning
from unflip.auditing.evaluation.uncertain_truth import SampledTruth

EXACT = {"rel": 0, "abs": 1e-10}
# Fits with the two models in the other order stop at other roundings of the same optimum.
SAME_FIT = {"rel": 1e-6, "abs": 1e-6}
NAMES = ["accuracy", "balanced_accuracy", "f1", "roc_auc", "log_loss", "brier"]


class TestAllRowsChecked:
    @pytest.mark.parametrize("k", [2, 4])
    def test_differences_of_checked_rows_are_exact(self, k):
        a, b, labels, true, _ = draw(k)
        result = compare(a, b, labels, true)
        first = references(a, true)
        second = references(b, true)
        assert list(result.differences) == NAMES
        for name, interval in result.differences.items():
            expected = first[name] - second[name]
            assert interval.numbers == pytest.approx((expected,) * 3, **EXACT), name

    def test_differences_are_those_of_two_evaluations(self):
        a, b, labels, true, _ = draw(3)
        first = evaluate(a, labels, true).metrics
        second = evaluate(b, labels, true).metrics
        for name, interval in compare(a, b, labels, true).differences.items():
            expected = first[name].value - second[name].value
            assert interval.value == pytest.approx(expected, **EXACT), name


class TestSymmetry:
    @pytest.mark.parametrize("k", [2, 4])
    @pytest.mark.parametrize("n_checked", [0, 60])
    def test_the_other_order_has_the_opposite_differences(self, k, n_checked):
        a, b, labels, _, trusted = draw(k, n_checked=n_checked)
        forward = compare(a, b, labels, trusted).differences
        backward = compare(b, a, labels, trusted).differences
        for name, interval in forward.items():
            other = backward[name]
            opposite = (-other.value, -other.high, -other.low)
            assert interval.numbers == pytest.approx(opposite, **SAME_FIT), name

    @pytest.mark.parametrize("k", [2, 4])
    @pytest.mark.parametrize("n_checked", [0, 60])
    def test_a_model_does_not_differ_from_itself(self, k, n_checked):
        a, _, labels, _, trusted = draw(k, n_checked=n_checked)
        result = compare(a, a, labels, trusted)
        for interval in result.differences.values():
            assert interval.numbers == (0.0, 0.0, 0.0)
        assert result.better is None

    @pytest.mark.parametrize("k", [2, 4])
    def test_rows_may_be_in_any_order(self, k):
        a, b, labels, _, trusted = draw(k)
        order = np.random.default_rng(1).permutation(400)
        plain = compare(a, b, labels, trusted).differences
        permuted = compare(a[order], b[order], labels[order], trusted[order]).differences
        for name, interval in permuted.items():
            assert interval.numbers == pytest.approx(plain[name].numbers, **SAME_FIT), name

    def test_classes_may_have_any_sorted_names(self):
        a, b, labels, _, trusted = draw(2)
        plain = compare(a, b, labels, trusted)
        names = np.array(["no", "yes"])
        checked = np.array([None if code is None else names[code] for code in trusted])
        assert compare(a, b, names[labels], checked).differences == plain.differences


class TestSomeRowsChecked:
    def test_interval_is_narrower_than_those_of_the_models(self):
        a, b, labels, _, trusted = draw(2, n=2000, n_checked=100)
        difference = compare(a, b, labels, trusted).difference
        first = evaluate(a, labels, trusted).accuracy
        second = evaluate(b, labels, trusted).accuracy
        assert difference.width < np.hypot(first.width, second.width)

    def test_more_checks_give_narrower_intervals(self):
        widths = []
        for n_checked in (20, 100, 400):
            a, b, labels, _, trusted = draw(2, n=2000, n_checked=n_checked)
            widths.append(compare(a, b, labels, trusted).difference.width)
        assert widths == sorted(widths, reverse=True)

    def test_predictions_are_compared_without_metrics_of_probabilities(self):
        a, b, labels, _, trusted = draw(2)
        for first, second in ((a, b.argmax(axis=1)), (a.argmax(axis=1), b.argmax(axis=1))):
            result = compare(first, second, labels, trusted)
            assert list(result.differences) == ["accuracy", "balanced_accuracy", "f1"]

    def test_a_model_of_probabilities_does_not_differ_from_its_predictions(self):
        a, _, labels, _, trusted = draw(3)
        result = compare(a, a.argmax(axis=1), labels, trusted)
        for interval in result.differences.values():
            assert interval.numbers == (0.0, 0.0, 0.0)

    def test_inclusion_probabilities_are_used(self):
        a, b, labels, _, trusted = draw(2)
        inclusion = np.random.default_rng(0).uniform(0.05, 1, 400)
        plain = compare(a, b, labels, trusted).difference
        weighted = compare(a, b, labels, trusted, inclusion=inclusion).difference
        equal = compare(a, b, labels, trusted, inclusion=np.full(400, 0.15)).difference
        assert weighted.numbers != pytest.approx(plain.numbers, **SAME_FIT)
        assert equal.numbers == pytest.approx(plain.numbers, **SAME_FIT)


class TestBetter:
    def test_clearly_better_models_are_named(self):
        a, _, labels, true, trusted = draw(2, n_checked=200)
        wrong = np.roll(np.eye(2)[true], 1, axis=1)
        assert compare(a, wrong, labels, trusted).better == "a"
        assert compare(wrong, a, labels, trusted).better == "b"

    def test_intervals_that_contain_zero_name_none(self):
        a, b, labels, _, trusted = draw(2, n_checked=0)
        result = compare(a, b, labels, trusted)
        assert result.difference.low < 0 < result.difference.high
        assert result.better is None


class TestContradictedModel:
    """The scores of A are wrong at a medium confidence; 800 of 2000 rows are checked."""

    def test_difference_is_counted_on_the_checked_rows(self):
        """B predicts the other one of two classes, so the difference is 2 × accuracy − 1."""
        scores, labels, true, trusted = contradicting()
        predicted = scores.argmax(axis=1)
        result = compare(scores, 1 - predicted, labels, trusted)
        assert isinstance(result.truth, SampledTruth)
        expected = mean_of_kinds(predicted == true, labels == predicted, trusted)
        assert result.difference.value == pytest.approx(2 * expected - 1, **EXACT)
        assert result.better == "a"

    def test_kinds_of_rows_with_few_checks_are_counted_with_others(self):
        """B agrees with A on two rows of a kind: one checked row is no sample of its kind."""
        scores, labels, true, trusted = contradicting()
        predicted = scores.argmax(axis=1)
        other = 1 - predicted
        is_same = labels == predicted
        rows = [np.flatnonzero(is_same & (pd.notna(trusted) == checked))[0] for checked in (0, 1)]
        other[rows] = predicted[rows]
        result = compare(scores, other, labels, trusted)
        assert isinstance(result.truth, SampledTruth)
        contrast = (predicted == true) * 1.0 - (other == true)
        expected = mean_of_kinds(contrast, is_same, trusted)
        assert result.difference.value == pytest.approx(expected, **EXACT)
        assert result.difference.low < expected < result.difference.high

    def test_kinds_of_rows_with_two_checks_are_counted_alone(self):
        scores, labels, true, trusted = contradicting()
        predicted = scores.argmax(axis=1)
        other = 1 - predicted
        is_same = labels == predicted
        rows = [*np.flatnonzero(is_same & pd.notna(trusted))[:2], *np.flatnonzero(is_same)[-30:]]
        other[rows] = predicted[rows]
        result = compare(scores, other, labels, trusted)
        assert isinstance(result.truth, SampledTruth)
        contrast = (predicted == true) * 1.0 - (other == true)
        differ = predicted != other
        # Rows on which the models agree add nothing, so those on which they differ decide.
        expected = differ.mean() * mean_of_kinds(contrast[differ], is_same[differ], trusted[differ])
        assert result.difference.value == pytest.approx(expected, **EXACT)


@pytest.mark.parametrize("k", [2, 4])
def test_checks_of_suspicious_labels_warn(k):
    a, b, labels, true, trusted = draw(k, n=1000, n_checked=0)
    rows = np.argsort(a[np.arange(1000), labels])[:40]
    trusted[rows] = true[rows]
    with pytest.warns(SelectedChecksWarning, match="not a random sample") as record:
        compare(a, b, labels, trusted)
    assert record[0].filename == __file__


class TestErrors:
    @pytest.mark.parametrize("name", ["scores_a", "scores_b"])
    @pytest.mark.parametrize(
        ("scores", "message"),
        [
            (np.full((399, 2), 0.5), " has shape (399, 2) but there are 400 labels: pass one row"),
            (np.full((400, 2), 0.6), "[0] = [0.6, 0.6] is not a probability distribution"),
            (np.full(400, "cat"), "[0] = 'cat' is not among the observed classes [0, 1]: pass"),
            (np.full(400, np.nan), "[0] is missing: pass a prediction for every row"),
            (np.full((400, 3), 1 / 3), " has 3 columns but labels has 2 classes: pass one column"),
        ],
    )
    def test_invalid_scores_are_named(self, name, scores, message):
        a, b, labels, _, trusted = draw(2)
        arguments = {"scores_a": a, "scores_b": b} | {name: scores}
        with pytest.raises(ValueError, match=re.escape(name + message)):
            compare(**arguments, labels=labels, trusted=trusted)

    def test_one_class_is_not_enough(self):
        a, b, _, _, _ = draw(2)
        with pytest.raises(ValueError, match="compare needs at least two classes"):
            compare(a, b, np.zeros(400))

    def test_different_indexes(self):
        a, b, labels, _, _ = draw(2)
        moved = pd.DataFrame(b, index=np.arange(400)[::-1])
        remedy = "scores_b.reindex(scores_a.index)"
        with pytest.raises(ValueError, match=re.escape(remedy)):
            compare(pd.DataFrame(a), moved, labels)

    def test_columns_in_another_order(self):
        a, b, labels, _, _ = draw(2)
        with pytest.raises(ValueError, match=re.escape("columns of scores_b are [1, 0]")):
            compare(a, pd.DataFrame(b, columns=[1, 0]), labels)


class TestPresentation:
    def test_frame_has_all_differences(self):
        a, b, labels, _, trusted = draw(3)
        result = compare(a, b, labels, trusted)
        frame = result.to_frame()
        assert frame.columns.tolist() == ["metric", "value", "low", "high"]
        assert frame["metric"].tolist() == NAMES
        lines = frame[["value", "low", "high"]].itertuples(index=False, name=None)
        expected = [interval.numbers for interval in result.differences.values()]
        assert list(lines) == expected

    def test_text_has_the_verdict_and_each_difference(self):
        a, b, labels, _, trusted = draw(2)
        result = compare(a, b, labels, trusted)
        lines = str(result).splitlines()
        assert len(lines) == 1 + len(NAMES)
        assert lines[1] == f"accuracy, A − B: {result.difference:+.3f}"

    def test_text_names_the_better_model(self):
        a, _, labels, true, trusted = draw(2, n_checked=200)
        wrong = np.roll(np.eye(2)[true], 1, axis=1)
        assert str(compare(a, wrong, labels, trusted)).startswith("Model A is more accurate")
        assert str(compare(wrong, a, labels, trusted)).startswith("Model B is more accurate")

    def test_text_advises_more_checks_if_no_model_is_better(self):
        a, b, labels, _, _ = draw(2)
        assert "check more rows" in str(compare(a, b, labels))

    def test_repr_is_one_line(self):
        a, b, labels, _, trusted = draw(2)
        result = compare(a, b, labels, trusted)
        assert repr(result) == f"<Comparison on 400 rows: difference={result.difference:+.3f}>"

    def test_notebook_table_has_a_line_for_each_metric(self):
        a, b, labels, _, trusted = draw(2)
        html = compare(a, b, labels, trusted)._repr_html_()
        assert html.count("<tr>") == 1 + len(NAMES)
        assert "<td>roc_auc</td>" in html


def draw(k, n=400, n_checked=60):
    """Return scores of two models, noisy labels, true classes, and those of a random sample."""
    rng = np.random.default_rng(k)
    probabilities = rng.dirichlet(np.full(k, 0.6), n)
    true = (rng.random(n)[:, None] > probabilities.cumsum(axis=1)).sum(axis=1)
    worse = (probabilities + rng.dirichlet(np.ones(k), n)) / 2
    is_wrong = rng.random(n) < 0.5 * (1 - probabilities.max(axis=1))
    labels = np.where(is_wrong, rng.integers(0, k, n), true)
    trusted = np.full(n, None)
    checked = rng.permutation(n)[:n_checked]
    trusted[checked] = true[checked]
    return probabilities, worse, labels, true, trusted


def contradicting():
    """Return scores that are wrong at a medium confidence, labels, true classes, and checks."""
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1, 2000)
    predicted = rng.integers(0, 2, 2000)
    true = np.where((confidence >= 0.67) & (confidence <= 0.84), 1 - predicted, predicted)
    labels = np.where(rng.random(2000) < 0.3, 1 - true, true)
    trusted = np.full(2000, None)
    checked = rng.permutation(2000)[:800]
    trusted[checked] = true[checked]
    is_predicted = np.eye(2, dtype=bool)[predicted]
    scores = np.where(is_predicted, confidence[:, None], 1 - confidence[:, None])
    return scores, labels, true, trusted


def mean_of_kinds(values, is_kind, trusted):
    """Return the mean of values of the checked rows, where two kinds of rows count by their size.

    Checked rows are a random sample of each kind.
    """
    is_checked = pd.notna(trusted)
    shares = [np.mean(is_kind), np.mean(~is_kind)]
    means = [values[is_checked & is_kind].mean(), values[is_checked & ~is_kind].mean()]
    return np.dot(shares, means)


def references(scores, true):
    """Return the metrics of scikit-learn."""
    k = scores.shape[1]
    predicted = scores.argmax(axis=1)
    positive = scores[:, 1] if k == 2 else scores
    return {
        "accuracy": metrics.accuracy_score(true, predicted),
        "balanced_accuracy": metrics.balanced_accuracy_score(true, predicted),
        "f1": metrics.f1_score(true, predicted, average="binary" if k == 2 else "macro"),
        "roc_auc": metrics.roc_auc_score(true, positive, multi_class="ovr", average="macro"),
        "log_loss": metrics.log_loss(true, scores),
        "brier": metrics.brier_score_loss(true, positive),
    }
