"""`evaluate`: metrics of any model on true labels, from noisy labels and checked rows."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.calibration import calibration_curve

from unflip import evaluate
from unflip.auditing.evaluation.sampled_checks import SelectedChecksWarning
from unflip.calibration.interval import wilson_interval

EXACT = {"rel": 0, "abs": 1e-10}
# Fits to renamed or reordered input stop at other roundings of the same optimum.
SAME_FIT = {"rel": 1e-6, "abs": 1e-6}


class TestAllRowsChecked:
    """The metrics are those of scikit-learn, without any uncertainty."""

    @pytest.mark.parametrize("k", [2, 4])
    def test_metrics_of_checked_rows_are_exact(self, k):
        scores, labels, true, _ = draw(k)
        result = evaluate(scores, labels, true)
        expected = references(scores, true)
        assert result.metrics.keys() == expected.keys()
        for name, interval in result.metrics.items():
            assert interval.numbers == pytest.approx((expected[name],) * 3, **EXACT), name

    @pytest.mark.parametrize("k", [2, 4])
    def test_metrics_of_predictions_are_exact(self, k):
        scores, labels, true, _ = draw(k)
        result = evaluate(scores.argmax(axis=1), labels, true)
        assert list(result.metrics) == ["accuracy", "balanced_accuracy", "f1"]
        expected = references(scores, true)
        for name, interval in result.metrics.items():
            assert interval.numbers == pytest.approx((expected[name],) * 3, **EXACT), name

    @pytest.mark.parametrize("k", [2, 4])
    def test_rates_of_the_classes_are_exact(self, k):
        scores, labels, true, _ = draw(k)
        result = evaluate(scores, labels, true)
        predicted = scores.argmax(axis=1)
        precision, recall, _, _ = metrics.precision_recall_fscore_support(true, predicted)
        assert [rate.value for rate in result.precision] == pytest.approx(precision, **EXACT)
        assert [rate.value for rate in result.recall] == pytest.approx(recall, **EXACT)

    @pytest.mark.parametrize("k", [2, 4])
    def test_confusion_is_exact(self, k):
        scores, labels, true, _ = draw(k)
        result = evaluate(scores, labels, true)
        expected = metrics.confusion_matrix(true, scores.argmax(axis=1))
        low, high = result.confusion_interval
        for table in (result.confusion, low, high):
            np.testing.assert_allclose(table, expected, rtol=0, atol=1e-10)

    @pytest.mark.parametrize("k", [2, 4])
    def test_calibration_curve_is_exact(self, k):
        scores, labels, true, _ = draw(k)
        curve = evaluate(scores, labels, true).calibration_curve
        is_right = scores.argmax(axis=1) == true
        accuracy, confidence = calibration_curve(
            is_right, scores.max(axis=1), n_bins=10, strategy="quantile"
        )
        np.testing.assert_allclose(curve.confidence, confidence, rtol=0, atol=1e-10)
        np.testing.assert_allclose(curve.accuracy, accuracy, rtol=0, atol=1e-10)
        assert curve.n_rows.sum() == len(true)

    def test_area_with_ties_of_rounded_probabilities_is_exact(self):
        """Sums of rounded probabilities differ from 1 by rounding, which must not break ties."""
        rng = np.random.default_rng(1)
        scores = rng.multinomial(10, np.full(4, 0.25), size=500) / 10
        true = rng.integers(0, 4, 500)
        expected = metrics.roc_auc_score(true, scores, multi_class="ovr")
        assert evaluate(scores, true, true).roc_auc.value == pytest.approx(expected, **EXACT)

    def test_correct_labels_are_counted(self):
        scores, labels, true, _ = draw(3)
        interval = evaluate(scores, labels, true).correct_labels
        assert interval.numbers == pytest.approx((np.mean(labels == true),) * 3, **EXACT)

    def test_a_model_that_is_always_wrong_is_known_to_be(self):
        true = np.arange(400) % 2
        result = evaluate(np.eye(2)[1 - true], true, true)
        assert result.accuracy.numbers == (0.0, 0.0, 0.0)
        assert result.is_model_based

    def test_no_row_is_left_to_check(self):
        scores, labels, true, _ = draw(2)
        result = evaluate(scores, labels, true)
        assert result.check_next(0).size == 0
        with pytest.raises(ValueError, match="between 0 and 0"):
            result.check_next(1)


class TestSomeRowsChecked:
    @pytest.mark.parametrize("k", [2, 4])
    def test_agreement_is_the_accuracy_on_noisy_labels(self, k):
        scores, labels, _, trusted = draw(k)
        result = evaluate(scores, labels, trusted)
        assert result.agreement == metrics.accuracy_score(labels, scores.argmax(axis=1))

    def test_sizes(self):
        scores, labels, _, trusted = draw(3)
        result = evaluate(scores, labels, trusted)
        assert (result.n_rows, result.n_checked) == (400, 60)
        assert result.classes.tolist() == [0, 1, 2]

    def test_checked_rows_are_certain(self):
        scores, labels, true, trusted = draw(3)
        posterior = evaluate(scores, labels, trusted).label_posterior
        is_checked = pd.notna(trusted)
        np.testing.assert_array_equal(posterior[is_checked], np.eye(3)[true[is_checked]])
        assert (posterior[~is_checked].max(axis=1) < 1).all()

    @pytest.mark.parametrize("k", [2, 4])
    def test_metrics_agree_with_the_confusion_matrix(self, k):
        scores, labels, _, trusted = draw(k)
        result = evaluate(scores, labels, trusted)
        confusion = result.confusion
        recalls = confusion.diagonal() / confusion.sum(axis=1)
        assert confusion.sum() == pytest.approx(400, **EXACT)
        assert result.accuracy.value == pytest.approx(np.trace(confusion) / 400, **EXACT)
        assert result.balanced_accuracy.value == pytest.approx(recalls.mean(), **EXACT)
        assert [rate.value for rate in result.recall] == pytest.approx(recalls, **EXACT)

    def test_mean_of_the_calibration_curve_is_the_accuracy(self):
        scores, labels, _, trusted = draw(4)
        result = evaluate(scores, labels, trusted)
        curve = result.calibration_curve
        mean = np.average(curve.accuracy, weights=curve.n_rows)
        assert mean == pytest.approx(result.accuracy.value, **EXACT)
        assert ((curve.low < curve.accuracy) & (curve.accuracy < curve.high)).all()

    def test_intervals_contain_their_value(self):
        scores, labels, _, trusted = draw(4)
        result = evaluate(scores, labels, trusted)
        low, high = result.confusion_interval
        assert ((low < result.confusion) & (result.confusion < high)).all()
        for interval in [*result.metrics.values(), *result.precision, *result.recall]:
            assert interval.low < interval.value < interval.high

    def test_more_checks_give_narrower_intervals(self):
        scores, labels, _, trusted = draw(2, n=2000, n_checked=400)
        many = evaluate(scores, labels, trusted)
        trusted[np.flatnonzero(pd.notna(trusted))[50:]] = None
        few = evaluate(scores, labels, trusted)
        for name, interval in many.metrics.items():
            assert interval.width < few.metrics[name].width, name

    def test_interval_is_narrower_than_wilsons_on_the_checks(self):
        scores, labels, true, trusted = draw(2, n=2000, n_checked=100)
        is_checked = pd.notna(trusted)
        share = np.mean(scores.argmax(axis=1)[is_checked] == true[is_checked])
        interval = evaluate(scores, labels, trusted).accuracy
        assert interval.width < wilson_interval(share, 100).width

    def test_equal_inclusion_probabilities_change_nothing(self):
        scores, labels, _, trusted = draw(3)
        plain = evaluate(scores, labels, trusted)
        weighted = evaluate(scores, labels, trusted, inclusion=np.full(400, 0.15))
        assert_same(weighted, plain, SAME_FIT)

    def test_results_may_be_changed(self):
        scores, labels, _, trusted = draw(3)
        result = evaluate(scores, labels, trusted)
        result.confusion[:] = 0
        result.label_posterior[:] = 0
        assert result.confusion.sum() == pytest.approx(400)
        assert result.label_posterior.sum() == pytest.approx(400)

    def test_input_is_left_alone(self):
        scores, labels, _, trusted = draw(3)
        before = [scores.copy(), labels.copy(), trusted.copy()]
        evaluate(scores, labels, trusted).to_frame()
        for value, copy in zip((scores, labels, trusted), before, strict=True):
            np.testing.assert_array_equal(value, copy)


class TestFewRowsChecked:
    def test_without_checks_intervals_are_wide(self):
        scores, labels, _, trusted = draw(2)
        without = evaluate(scores, labels)
        assert without.n_checked == 0
        assert without.accuracy.width > 2 * evaluate(scores, labels, trusted).accuracy.width
        assert "No row was checked" in str(without)
        assert "check_next" in str(without)

    def test_a_column_of_missing_trusted_labels_is_no_check(self):
        scores, labels, _, _ = draw(2)
        without = evaluate(scores, labels)
        for missing in (np.full(400, None), np.full(400, np.nan), pd.array([pd.NA] * 400)):
            assert evaluate(scores, labels, missing).accuracy == without.accuracy

    @pytest.mark.parametrize(("n_checked", "is_few"), [(1, True), (19, True), (20, False)])
    def test_text_says_that_few_checks_rest_on_other_data_sets(self, n_checked, is_few):
        scores, labels, _, trusted = draw(2, n_checked=n_checked)
        text = str(evaluate(scores, labels, trusted))
        assert ("rest mostly on what other data sets showed" in text) == is_few

    def test_two_rows_are_enough(self):
        result = evaluate([0.3, 0.6], [0, 1])
        assert result.accuracy.low < result.accuracy.value < result.accuracy.high


class TestCheckNext:
    def test_rows_are_unchecked_and_distinct(self):
        scores, labels, _, trusted = draw(2)
        rows = evaluate(scores, labels, trusted).check_next(100)
        assert len(set(rows.tolist())) == 100
        assert pd.isna(trusted[rows]).all()

    def test_seed_decides(self):
        scores, labels, _, _ = draw(2)
        result = evaluate(scores, labels)
        assert result.check_next(9).tolist() == result.check_next(9, random_state=0).tolist()
        assert result.check_next(9).tolist() != result.check_next(9, random_state=1).tolist()

    @pytest.mark.parametrize("m", [-1, 341, 2.5, True, "3"])
    def test_invalid_numbers_are_errors(self, m):
        scores, labels, _, trusted = draw(2)
        with pytest.raises(ValueError, match=f"m = {m!r} must be a whole number between 0 and 340"):
            evaluate(scores, labels, trusted).check_next(m)


class TestNamesAndOrder:
    """Results depend neither on the names of the classes nor on the order of the rows."""

    @pytest.mark.parametrize("names", [["no", "yes"], [False, True], [-1, 1], [1.0, 2.0]])
    def test_classes_may_have_any_sorted_names(self, names):
        scores, labels, _, trusted = draw(2)
        plain = evaluate(scores, labels, trusted)
        renamed = evaluate(scores, rename(labels, names), rename(trusted, names))
        assert renamed.metrics == plain.metrics
        assert renamed.classes.tolist() == names

    @pytest.mark.parametrize("names", [["no", "yes"], [False, True], [-1, 1]])
    def test_predictions_may_have_any_sorted_names(self, names):
        scores, labels, _, trusted = draw(2)
        predicted = scores.argmax(axis=1)
        plain = evaluate(predicted, labels, trusted)
        arguments = [rename(values, names) for values in (predicted, labels, trusted)]
        assert evaluate(*arguments).metrics == plain.metrics

    def test_classes_may_be_numbered_in_another_order(self):
        scores, labels, _, trusted = draw(4)
        plain = evaluate(scores, labels, trusted)
        order = [2, 0, 3, 1]  # new number of each class
        renamed = evaluate(
            scores[:, np.argsort(order)], rename(labels, order), rename(trusted, order)
        )
        assert_same(renamed, plain, SAME_FIT)
        np.testing.assert_allclose(
            renamed.confusion[np.ix_(order, order)], plain.confusion, rtol=1e-6
        )

    @pytest.mark.parametrize("k", [2, 4])
    def test_rows_may_be_in_any_order(self, k):
        scores, labels, _, trusted = draw(k)
        plain = evaluate(scores, labels, trusted)
        order = np.random.default_rng(1).permutation(400)
        permuted = evaluate(scores[order], labels[order], trusted[order])
        assert_same(permuted, plain, SAME_FIT)


class TestKindsOfInput:
    def test_probabilities_of_the_second_class_are_those_of_both(self):
        scores, labels, _, trusted = draw(2)
        both = np.column_stack([1 - scores[:, 1], scores[:, 1]])
        result = evaluate(scores[:, 1], labels, trusted)
        assert result.metrics == evaluate(both, labels, trusted).metrics

    @pytest.mark.parametrize("dtype", [int, float, bool])
    def test_zeros_and_ones_are_predictions(self, dtype):
        scores, labels, _, trusted = draw(2)
        result = evaluate(scores.argmax(axis=1).astype(dtype), labels, trusted)
        assert result.roc_auc is None
        assert result.log_loss is None
        assert result.brier is None
        assert len(result.calibration_curve) == 0

    def test_zeros_and_ones_are_probabilities_of_classes_with_other_names(self):
        scores, labels, _, trusted = draw(2)
        certain = scores.argmax(axis=1).astype(float)
        names = ["no", "yes"]
        result = evaluate(certain, rename(labels, names), rename(trusted, names))
        assert result.metrics == evaluate(np.eye(2)[certain.astype(int)], labels, trusted).metrics

    def test_lists(self):
        scores, labels, _, trusted = draw(3)
        result = evaluate(scores.tolist(), labels.tolist(), trusted.tolist())
        assert result.metrics == evaluate(scores, labels, trusted).metrics

    def test_pandas_objects(self):
        scores, labels, _, trusted = draw(2)
        index = np.random.default_rng(0).permutation(400)
        plain = evaluate(scores, labels, trusted, inclusion=np.full(400, 0.5))
        result = evaluate(
            pd.DataFrame(scores, index=index),
            pd.Series(labels, index=index).astype("Int64"),
            pd.Series(trusted, index=index).astype("Int64"),
            inclusion=pd.Series(0.5, index=index),
        )
        assert_same(result, plain)

    def test_categories(self):
        scores, labels, _, trusted = draw(2)
        names = ["no", "yes"]
        predicted = scores.argmax(axis=1)
        arguments = [
            pd.Series(rename(values, names)).astype("category")
            for values in (predicted, labels, trusted)
        ]
        assert evaluate(*arguments).metrics == evaluate(predicted, labels, trusted).metrics

    @pytest.mark.parametrize("dtype", [np.float32, np.float16])
    def test_low_precision(self, dtype):
        scores, labels, _, trusted = draw(2)
        rounded = scores[:, 1].astype(dtype)
        result = evaluate(rounded, labels, trusted)
        assert result.metrics == evaluate(rounded.astype(float), labels, trusted).metrics

    def test_low_precision_of_several_classes(self):
        scores, labels, _, trusted = draw(4)
        result = evaluate(scores.astype(np.float32), labels, trusted)
        expected = evaluate(scores, labels, trusted)
        resolution = float(np.finfo(np.float32).eps)
        assert result.brier.value == pytest.approx(expected.brier.value, rel=1e3 * resolution)

    def test_masked_trusted_labels_are_missing(self):
        scores, labels, true, trusted = draw(2)
        masked = np.ma.masked_array(true, pd.isna(trusted))
        assert evaluate(scores, labels, masked).metrics == evaluate(scores, labels, trusted).metrics

    def test_torch_tensors(self):
        torch = pytest.importorskip("torch")
        scores, labels, true, trusted = draw(2)
        result = evaluate(torch.tensor(scores), torch.tensor(labels), trusted)
        assert result.metrics == evaluate(scores, labels, trusted).metrics
        every = evaluate(torch.tensor(scores), torch.tensor(labels), torch.tensor(true))
        assert every.metrics == evaluate(scores, labels, true).metrics

    def test_arrays_of_the_array_api_standard(self):
        strict = pytest.importorskip("array_api_strict")
        scores, labels, _, trusted = draw(3)
        result = evaluate(strict.asarray(scores), strict.asarray(labels), trusted)
        assert result.metrics == evaluate(scores, labels, trusted).metrics

    def test_probabilities_may_be_rounded(self):
        scores, labels, _, trusted = draw(4)
        rounded = scores.round(4)
        assert not (rounded.sum(axis=1) == 1).all()
        result = evaluate(rounded, labels, trusted)
        assert result.brier.value == pytest.approx(
            evaluate(scores, labels, trusted).brier.value, abs=1e-3
        )


class TestExtremeScores:
    @pytest.mark.parametrize("value", [0.5, 0.3, 1e-300, 1 - 1e-16])
    @pytest.mark.parametrize("n_checked", [0, 60])
    def test_constant_scores(self, value, n_checked):
        _, labels, _, trusted = draw(2, n_checked=n_checked)
        result = evaluate(np.full(400, value), labels, trusted)
        assert result.roc_auc.value == pytest.approx(0.5, **EXACT)
        assert result.balanced_accuracy.numbers == pytest.approx((0.5,) * 3, **EXACT)
        assert np.isfinite([interval.numbers for interval in result.metrics.values()]).all()
        assert len(result.calibration_curve) == 1

    def test_log_loss_of_the_uniform_distribution_is_known(self):
        _, labels, _, trusted = draw(4)
        interval = evaluate(np.full((400, 4), 0.25), labels, trusted).log_loss
        assert interval.numbers == pytest.approx((np.log(4),) * 3, **EXACT)

    @pytest.mark.parametrize("k", [2, 4])
    def test_certain_probabilities(self, k):
        scores, labels, _, trusted = draw(k)
        certain = np.eye(k)[scores.argmax(axis=1)]
        result = evaluate(certain, labels, trusted)
        clipped = -np.log(np.finfo(float).eps)
        error = 1 - result.accuracy.value
        assert result.log_loss.value == pytest.approx(clipped * error, rel=1e-10)
        assert result.brier.value == pytest.approx(error * (1 if k == 2 else 2), rel=1e-10)

    def test_tiny_probabilities(self):
        scores, labels, _, trusted = draw(2)
        tiny = np.where(scores[:, 1] > 0.5, scores[:, 1], 1e-300)
        result = evaluate(tiny, labels, trusted)
        assert np.isfinite([interval.numbers for interval in result.metrics.values()]).all()

    def test_one_predicted_class_has_no_precision_of_the_other(self):
        _, labels, _, trusted = draw(2)
        result = evaluate(np.zeros(400, dtype=int), labels, trusted)
        assert result.recall[0].numbers == pytest.approx((1, 1, 1), abs=1e-5)
        assert np.isnan(result.precision[1].numbers).all()


class TestContradictedModel:
    """Scores that are wrong at a medium confidence; 800 of 2000 rows are checked."""

    def test_metrics_are_counted_on_the_checked_rows(self):
        scores, labels, true, trusted = contradicting()
        result = evaluate(scores, labels, trusted)
        assert not result.is_model_based
        predicted = scores.argmax(axis=1)
        is_right = mean_of_kinds(predicted == true, labels == predicted, trusted)
        assert result.accuracy.value == pytest.approx(is_right, **EXACT)
        is_correct = mean_of_kinds(labels == true, labels == predicted, trusted)
        assert result.correct_labels.value == pytest.approx(is_correct, **EXACT)
        assert "800 checked rows contradict the model of the true class" in str(result)

    def test_the_same_rows_with_few_checks_do_not_contradict(self):
        scores, labels, _, trusted = contradicting()
        trusted[np.flatnonzero(pd.notna(trusted))[29:]] = None
        result = evaluate(scores, labels, trusted)
        assert result.is_model_based
        assert "contradict" not in str(result)

    def test_rows_of_the_confusion_matrix_represent_all(self):
        scores, labels, true, trusted = contradicting()
        predicted = scores.argmax(axis=1)
        confusion = evaluate(scores, labels, trusted).confusion
        assert confusion.sum() == pytest.approx(2000, **EXACT)
        for a, b in np.ndindex(2, 2):
            is_entry = (true == a) & (predicted == b)
            expected = 2000 * mean_of_kinds(is_entry, labels == predicted, trusted)
            assert confusion[a, b] == pytest.approx(expected, **EXACT)

    def test_intervals_contain_their_value(self):
        scores, labels, _, trusted = contradicting()
        for interval in evaluate(scores, labels, trusted).metrics.values():
            assert interval.low < interval.value < interval.high

    def test_bins_without_checked_rows_have_no_accuracy(self):
        scores, labels, _, trusted = contradicting()
        unsure = scores.max(axis=1) < 0.56
        trusted[unsure] = None
        result = evaluate(scores, labels, trusted)
        assert not result.is_model_based
        curve = result.calibration_curve
        assert curve.n_rows.tolist() == [200] * 10
        assert np.isnan(curve.accuracy[0])
        assert (curve.low[0], curve.high[0]) == (0, 1)
        assert np.isfinite(curve.accuracy[1:]).all()


class TestSelectedChecks:
    @pytest.mark.parametrize("k", [2, 4])
    def test_checks_of_suspicious_labels_warn(self, k):
        scores, labels, trusted = suspicious(k)
        with pytest.warns(SelectedChecksWarning, match="not a random sample") as record:
            evaluate(scores, labels, trusted)
        assert record[0].filename == __file__

    def test_known_inclusion_probabilities_do_not_warn(self):
        scores, labels, trusted = suspicious(2)
        assert evaluate(scores, labels, trusted, inclusion=np.full(1000, 0.1)).n_checked == 40

    def test_rows_of_check_next_do_not_warn(self):
        scores, labels, true, trusted = draw(2, n=1000, n_checked=0)
        rows = evaluate(scores, labels).check_next(100)
        trusted[rows] = true[rows]
        assert evaluate(scores, labels, trusted).n_checked == 100


class TestErrors:
    """Messages name the value, and say what to do."""

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"scores": np.full((399, 2), 0.5)}, "scores has shape (399, 2) but there are 400 lab"),
            ({"scores": 0.5}, "scores has shape () but there are 400 labels: pass one row"),
            ({"scores": None}, "scores has shape () but there are 400 labels: pass one row"),
            ({"scores": [[0.5, 0.5], [1.0]]}, "must be an array: pass rows of one length"),
            ({"scores": np.full((400, 3), 1 / 3)}, "3 columns but labels has 2 classes: pass one"),
            ({"scores": np.full((400, 1), 1.0)}, "1 columns but labels has 2 classes: pass one"),
            ({"scores": np.full((400, 2), 0.6)}, "scores[0] = [0.6, 0.6] is not a probability dis"),
            ({"scores": np.full((400, 2), "a")}, "must hold numbers"),
            ({"scores": np.ma.masked_array(np.full(400, 0.5), True)}, "scores is a masked array"),
            ({"scores": np.full(400, "cat")}, "scores[0] = 'cat' is not among the observed classe"),
            ({"labels": np.zeros((400, 1))}, "labels has shape (400, 1): pass one label for each"),
            ({"labels": np.zeros(400)}, "needs at least two classes"),
            ({"labels": np.linspace(0, 1, 400)}, "evaluate needs class labels"),
            ({"labels": np.array([1, "a"] * 200, dtype=object)}, "convert them to one type"),
            ({"labels": np.ma.masked_array(np.arange(400) % 2, True)}, "labels is a masked array"),
            ({"trusted": [0, 1]}, "(trusted) have shape (2,) but there are 400 rows: pass one en"),
            ({"trusted": [7] + [None] * 399}, "contain 7, which is not among the observed class"),
            ({"trusted": ["0"] + [None] * 399}, "contain '0', which is not among the observed"),
            ({"inclusion": [0.5]}, "inclusion has shape (1,) but there are 400 rows: pass for"),
            ({"inclusion": np.zeros(400)}, "] = 0 must be above 0 and at most 1: pass the prob"),
            ({"inclusion": np.full(400, 1.5)}, "] = 1.5 must be above 0 and at most 1: pass the"),
            ({"inclusion": np.full(400, np.nan)}, "] = nan must be above 0 and at most 1"),
            ({"inclusion": np.full(400, "a")}, "must hold numbers"),
        ],
    )
    def test_invalid_arguments(self, change, message):
        scores, labels, _, trusted = draw(2)
        arguments = {"scores": scores, "labels": labels, "trusted": trusted} | change
        with pytest.raises(ValueError, match=re.escape(message)):
            evaluate(**arguments)

    @pytest.mark.parametrize("value", [np.nan, np.inf, -0.1])
    def test_invalid_probabilities(self, value):
        scores, labels, _, _ = draw(2)
        scores[5, 0] = value
        with pytest.raises(ValueError, match=re.escape("scores[5] = [")):
            evaluate(scores, labels)

    @pytest.mark.parametrize("value", [np.inf, -0.1, 1.5])
    def test_invalid_probabilities_of_the_second_class(self, value):
        scores, labels, _, _ = draw(2)
        positive = scores[:, 1]
        positive[5] = value
        message = f"scores[5] = {value} is not among the observed classes"
        with pytest.raises(ValueError, match=re.escape(message)):
            evaluate(positive, labels)

    @pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
    def test_missing_predictions(self, missing):
        _, labels, _, _ = draw(2)
        predicted = labels.astype(object)
        predicted[5] = missing
        with pytest.raises(ValueError, match=re.escape("scores[5] is missing: pass a prediction")):
            evaluate(predicted, labels)

    @pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
    def test_missing_labels(self, missing):
        scores, labels, _, _ = draw(2)
        labels = labels.astype(object)
        labels[5] = missing
        with pytest.raises(ValueError, match=re.escape("labels[5] is missing: leave such rows")):
            evaluate(scores, labels)

    def test_missing_probabilities(self):
        scores, labels, _, _ = draw(2)
        scores[5] = np.nan
        with pytest.raises(ValueError, match=re.escape("scores[5] is missing: pass a prediction")):
            evaluate(scores[:, 1], labels)

    def test_inclusion_of_unchecked_rows_does_not_matter(self):
        scores, labels, _, trusted = draw(2)
        inclusion = np.where(pd.isna(trusted), np.nan, 0.2)
        assert evaluate(scores, labels, trusted, inclusion=inclusion).n_checked == 60

    @pytest.mark.parametrize("name", ["labels", "trusted", "inclusion"])
    def test_different_indexes(self, name):
        scores, labels, _, trusted = draw(2)
        arguments = {"labels": labels, "trusted": trusted, "inclusion": np.full(400, 0.5)}
        arguments[name] = pd.Series(arguments[name], index=np.arange(400)[::-1])
        remedy = f"{name}.reindex(scores.index)"
        with pytest.raises(ValueError, match=re.escape(remedy)):
            evaluate(pd.DataFrame(scores), **arguments)

    @pytest.mark.parametrize(
        ("classes", "columns"), [([0, 1], [1, 0]), ([0, 1], ["1", "0"]), (["a", "b"], ["b", "a"])]
    )
    def test_columns_in_another_order(self, classes, columns):
        scores, labels, _, _ = draw(2)
        frame = pd.DataFrame(scores, columns=columns)
        message = f"columns of scores are {columns}: pass them in sorted order of the classes"
        with pytest.raises(ValueError, match=re.escape(message)):
            evaluate(frame, rename(labels, classes))

    @pytest.mark.parametrize("columns", [[0, 1], ["0", "1"], ["p0", "p1"]])
    def test_columns_in_order(self, columns):
        scores, labels, _, _ = draw(2)
        frame = pd.DataFrame(scores, columns=columns)
        assert_same(evaluate(frame, labels), evaluate(scores, labels))


class TestPresentation:
    def test_frame_has_all_metrics(self):
        scores, labels, _, trusted = draw(3)
        result = evaluate(scores, rename(labels, "abc"), rename(trusted, "abc"))
        frame = result.to_frame()
        assert frame.columns.tolist() == ["metric", "class", "value", "low", "high"]
        whole = frame[frame["class"].isna()].set_index("metric")
        for name, interval in result.metrics.items():
            assert tuple(whole.loc[name, ["value", "low", "high"]]) == interval.numbers
        for name, rates in (("precision", result.precision), ("recall", result.recall)):
            lines = frame[frame.metric == name]
            assert lines["class"].tolist() == ["a", "b", "c"]
            assert lines["value"].tolist() == [rate.value for rate in rates]

    def test_frame_of_predictions_has_no_metrics_of_probabilities(self):
        scores, labels, _, trusted = draw(2)
        frame = evaluate(scores.argmax(axis=1), labels, trusted).to_frame()
        assert not {"roc_auc", "log_loss", "brier"} & set(frame.metric)

    def test_text_names_each_metric(self):
        scores, labels, _, trusted = draw(2)
        result = evaluate(scores, labels, trusted)
        text = str(result)
        assert f"Accuracy on true labels: {result.accuracy.value:.1%}" in text
        assert f"Against the noisy labels it is {result.agreement:.1%}." in text
        assert f"balanced accuracy: {result.balanced_accuracy}" in text
        assert "All 400 rows are used, calibrated by 60 checked rows." in text

    def test_repr_is_one_line(self):
        scores, labels, _, trusted = draw(2)
        result = evaluate(scores, labels, trusted)
        expected = f"<Evaluation of 400 rows, 60 checked: accuracy={result.accuracy}>"
        assert repr(result) == expected

    def test_notebook_table_escapes_class_names(self):
        scores, labels, _, trusted = draw(2)
        names = ["<b>", "c"]
        html = evaluate(scores, rename(labels, names), rename(trusted, names))._repr_html_()
        assert "<td>&lt;b&gt;</td>" in html
        assert "<td><b></td>" not in html
        assert html.count("<tr>") == 1 + 6 + 2 * 2


def draw(k, n=400, n_checked=60):
    """Return scores, noisy labels, true classes, and the true labels of a random sample.

    Rows on which the model is unsure are mislabelled more often.
    """
    rng = np.random.default_rng(k)
    scores = rng.dirichlet(np.full(k, 0.6), n)
    true = (rng.random(n)[:, None] > scores.cumsum(axis=1)).sum(axis=1)
    is_wrong = rng.random(n) < 0.5 * (1 - scores.max(axis=1))
    labels = np.where(is_wrong, rng.integers(0, k, n), true)
    trusted = np.full(n, None)
    checked = rng.permutation(n)[:n_checked]
    trusted[checked] = true[checked]
    return scores, labels, true, trusted


def assert_same(result, expected, tolerance=EXACT):
    assert result.metrics.keys() == expected.metrics.keys()
    for name, interval in result.metrics.items():
        assert interval.numbers == pytest.approx(expected.metrics[name].numbers, **tolerance), name


def rename(codes, names):
    """Return class names of class indices, and None for None."""
    renamed = [None if code is None else names[code] for code in codes.tolist()]
    return np.array(renamed, dtype=object if None in renamed else None)


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


def contradicting():
    """Return scores that are wrong at a medium confidence, and rows as `draw`."""
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


def suspicious(k):
    """Return scores, labels, and the true labels of the rows with the least likely labels."""
    scores, labels, true, trusted = draw(k, n=1000, n_checked=0)
    rows = np.argsort(scores[np.arange(1000), labels])[:40]
    trusted[rows] = true[rows]
    return scores, labels, trusted
