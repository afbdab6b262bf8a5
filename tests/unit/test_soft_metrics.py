"""Metrics against a soft truth, and their derivatives."""

import numpy as np
import pytest
from sklearn import metrics

from unflip.auditing.evaluation.soft_metrics import (
    CONFUSION_METRICS,
    PROBABILITY_METRICS,
    RankedScores,
    ScoredModel,
    balanced_accuracy,
    brier_scores,
    confusion_matrix,
    f1,
    f1_scores,
    log_losses,
    precisions,
    recalls,
)

EXACT = {"rel": 0, "abs": 1e-10}
RATES = [recalls, precisions, f1_scores, balanced_accuracy, f1]


class TestKnownTruth:
    """If all true classes are known, the metrics are those of scikit-learn."""

    @pytest.mark.parametrize("k", [2, 4])
    def test_confusion_matrix(self, k):
        model, true = draw(k)
        confusion = confusion_matrix(np.eye(k)[true], model.predicted)
        np.testing.assert_array_equal(confusion, metrics.confusion_matrix(true, model.predicted))

    @pytest.mark.parametrize("k", [2, 4])
    @pytest.mark.parametrize(
        ("rates", "reference"),
        [
            (recalls, metrics.recall_score),
            (precisions, metrics.precision_score),
            (f1_scores, metrics.f1_score),
        ],
    )
    def test_rates_of_each_class(self, rates, reference, k):
        model, true = draw(k)
        values = rates(confusion_matrix(np.eye(k)[true], model.predicted)).values
        assert values == pytest.approx(reference(true, model.predicted, average=None), **EXACT)

    @pytest.mark.parametrize("k", [2, 4])
    def test_balanced_accuracy(self, k):
        model, true = draw(k)
        value = model.metric("balanced_accuracy", np.eye(k)[true])
        expected = metrics.balanced_accuracy_score(true, model.predicted)
        assert value == pytest.approx(expected, **EXACT)

    @pytest.mark.parametrize(("k", "average"), [(2, "binary"), (4, "macro")])
    def test_f1(self, k, average):
        model, true = draw(k)
        expected = metrics.f1_score(true, model.predicted, average=average)
        assert model.metric("f1", np.eye(k)[true]) == pytest.approx(expected, **EXACT)

    @pytest.mark.parametrize("k", [2, 4])
    @pytest.mark.parametrize("n_values", [None, 5])
    def test_area_under_the_roc_curve_with_and_without_ties(self, k, n_values):
        model, true = draw(k, n_values=n_values)
        scores = model.probabilities[:, 1] if k == 2 else model.probabilities
        expected = metrics.roc_auc_score(true, scores, multi_class="ovr", average="macro")
        assert model.metric("roc_auc", np.eye(k)[true]) == pytest.approx(expected, **EXACT)

    @pytest.mark.parametrize("k", [2, 4])
    def test_log_loss(self, k):
        model, true = draw(k)
        expected = metrics.log_loss(true, model.probabilities)
        assert model.metric("log_loss", np.eye(k)[true]) == pytest.approx(expected, **EXACT)

    @pytest.mark.parametrize("k", [2, 4])
    def test_log_loss_of_impossible_classes_is_clipped(self, k):
        _, true = draw(k)
        probabilities = np.eye(k)[np.roll(true, 1)]
        model = ScoredModel(probabilities.argmax(axis=1), k, probabilities)
        expected = metrics.log_loss(true, probabilities)
        assert model.metric("log_loss", np.eye(k)[true]) == pytest.approx(expected, **EXACT)

    @pytest.mark.parametrize("k", [2, 4])
    def test_brier_score(self, k):
        model, true = draw(k)
        probabilities = model.probabilities[:, 1] if k == 2 else model.probabilities
        expected = metrics.brier_score_loss(true, probabilities)
        assert model.metric("brier", np.eye(k)[true]) == pytest.approx(expected, **EXACT)


class TestWeightedTruth:
    """Weights of rows are those of scikit-learn."""

    @pytest.mark.parametrize("k", [2, 4])
    @pytest.mark.parametrize("name", [*CONFUSION_METRICS, *PROBABILITY_METRICS])
    def test_masses_are_sample_weights(self, name, k):
        model, true = draw(k)
        weights = np.random.default_rng(3).uniform(0, 4, len(true))
        value = model.metric(name, np.eye(k)[true] * weights[:, None])
        assert value == pytest.approx(reference(name, model, true, weights), **EXACT)

    @pytest.mark.parametrize("name", [*CONFUSION_METRICS, *PROBABILITY_METRICS])
    def test_a_soft_row_is_one_row_of_each_class(self, name):
        model, _ = draw(3)
        masses = soft(3)
        rows, classes = np.indices(masses.shape).reshape(2, -1)
        split = ScoredModel(model.predicted[rows], 3, model.probabilities[rows])
        expected = reference(name, split, classes, masses.ravel())
        assert model.metric(name, masses) == pytest.approx(expected, **EXACT)


class TestDerivatives:
    """Central differences, whose error is of the order of the step squared."""

    @pytest.mark.parametrize("k", [2, 4])
    @pytest.mark.parametrize("rates", RATES)
    def test_by_the_confusion_matrix(self, rates, k):
        confusion = np.random.default_rng(k).uniform(5, 50, (k, k))
        gradients = rates(confusion).gradients
        for index, gradient in enumerate(gradients):
            expected = differences(lambda table, i=index: rates(table).values[i], confusion)
            np.testing.assert_allclose(gradient, expected, atol=1e-8)

    @pytest.mark.parametrize("k", [2, 4])
    @pytest.mark.parametrize("n_values", [None, 5])
    @pytest.mark.parametrize("name", [*CONFUSION_METRICS, *PROBABILITY_METRICS])
    def test_by_the_masses(self, name, n_values, k):
        model, _ = draw(k, n=25, n_values=n_values)
        masses = soft(k, n=25)
        expected = differences(lambda table: model.metric(name, table), masses)
        np.testing.assert_allclose(model.gradient(name, masses), expected, atol=1e-8)

    @pytest.mark.parametrize("name", [*CONFUSION_METRICS, *PROBABILITY_METRICS])
    def test_a_common_factor_of_the_masses_changes_nothing(self, name):
        """Metrics are ratios, so by Euler's theorem gradient·masses is zero."""
        model, _ = draw(4)
        masses = soft(4)
        assert (model.gradient(name, masses) * masses).sum() == pytest.approx(0, abs=1e-10)

    @pytest.mark.parametrize("rates", [recalls, f1_scores, balanced_accuracy, f1])
    def test_of_a_class_that_does_not_occur_are_those_of_the_others(self, rates):
        confusion = np.array([[20.0, 5, 0], [4, 30, 0], [0, 0, 0]])
        result = rates(confusion)
        others = rates(confusion[:2, :2])
        if rates is f1:
            others = f1_scores(confusion[:2, :2]).mean
        defined = np.isfinite(result.values)
        assert result.values[defined] == pytest.approx(others.values, **EXACT)
        np.testing.assert_allclose(result.gradients[defined][:, :2, :2], others.gradients)
        assert not result.gradients[~defined].any()


class TestUndefined:
    def test_precision_of_a_class_that_is_never_predicted_is_nan(self):
        values = precisions(np.array([[3.0, 0], [2, 0]])).values
        assert values[0] == pytest.approx(0.6)
        assert np.isnan(values[1])

    def test_recall_of_a_class_that_does_not_occur_is_nan(self):
        confusion = np.array([[3.0, 1], [0, 0]])
        assert np.isnan(recalls(confusion).values[1])
        assert balanced_accuracy(confusion).values == pytest.approx([0.75])

    def test_area_of_one_class_alone_is_nan_and_has_no_derivatives(self):
        model, _ = draw(2)
        masses = np.eye(2)[np.zeros(len(model.predicted), dtype=int)]
        assert np.isnan(model.metric("roc_auc", masses))
        assert not model.gradient("roc_auc", masses).any()

    def test_area_is_the_mean_of_the_classes_that_occur(self):
        model, true = draw(3)
        true = np.where(true == 2, 1, true)
        ranked = RankedScores.of(model.probabilities)
        expected = [metrics.roc_auc_score(true == a, model.probabilities[:, a]) for a in range(2)]
        assert ranked.area(np.eye(3)[true]) == pytest.approx(np.mean(expected), **EXACT)

    def test_rates_without_any_row_are_nan(self):
        assert np.isnan(balanced_accuracy(np.zeros((2, 2))).values).all()

    @pytest.mark.parametrize("name", PROBABILITY_METRICS)
    def test_predictions_alone_have_no_metric_of_probabilities(self, name):
        with pytest.raises(ValueError, match="pass its probabilities"):
            ScoredModel(np.array([0, 1]), 2).metric(name, np.eye(2))


class TestLosses:
    def test_losses_of_a_certain_prediction(self):
        certain = np.array([[1.0, 0.0]])
        assert log_losses(certain)[0, 0] == pytest.approx(0, abs=1e-15)
        assert log_losses(certain)[0, 1] == pytest.approx(-np.log(np.finfo(float).eps))
        np.testing.assert_allclose(brier_scores(certain), [[0.0, 1.0]])

    def test_brier_scores_of_several_classes_are_up_to_2(self):
        np.testing.assert_allclose(brier_scores(np.array([[1.0, 0.0, 0.0]])), [[0.0, 2.0, 2.0]])


class TestCalibrationBins:
    def test_bins_have_about_equally_many_rows(self):
        model, _ = draw(2, n=1000)
        assert np.bincount(model.bins).tolist() == [100] * 10

    def test_rows_of_higher_bins_have_higher_confidence(self):
        model, _ = draw(4, n=300)
        order = np.argsort(model.confidence)
        assert (np.diff(model.bins[order]) >= 0).all()

    def test_equal_confidences_share_a_bin(self):
        model = ScoredModel(np.zeros(50, dtype=int), 2, np.tile([0.8, 0.2], (50, 1)))
        assert model.n_bins == 1

    def test_bins_are_numbered_without_gaps(self):
        model, _ = draw(2, n_values=3)
        assert np.unique(model.bins).tolist() == list(range(model.n_bins))

    def test_predictions_alone_have_no_bins(self):
        assert ScoredModel(np.array([0, 1]), 2).n_bins == 0


def draw(k, n=200, n_values=None):
    """Return a model and true classes; with `n_values`, probabilities have ties."""
    rng = np.random.default_rng(k)
    probabilities = rng.dirichlet(np.full(k, 0.7), n)
    if n_values is not None:
        probabilities = rng.multinomial(n_values, probabilities) / n_values
    true = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    return ScoredModel(probabilities.argmax(axis=1), k, probabilities), true


def soft(k, n=200):
    return np.random.default_rng(10 + k).dirichlet(np.ones(k), n)


def differences(function, table, step=1e-4):
    """Return central differences of a function by each entry of a table."""
    result = np.zeros_like(table)
    for index in np.ndindex(table.shape):
        moved = np.zeros_like(table)
        moved[index] = step
        result[index] = (function(table + moved) - function(table - moved)) / (2 * step)
    return result


def reference(name, model, true, weights):
    """Return the metric of scikit-learn."""
    k = model.n_classes
    if name == "balanced_accuracy":
        return metrics.balanced_accuracy_score(true, model.predicted, sample_weight=weights)
    if name == "f1":
        average = "binary" if k == 2 else "macro"
        return metrics.f1_score(true, model.predicted, average=average, sample_weight=weights)
    if name == "log_loss":
        return metrics.log_loss(true, model.probabilities, sample_weight=weights)
    scores = model.probabilities[:, 1] if k == 2 else model.probabilities
    if name == "brier":
        return metrics.brier_score_loss(true, scores, sample_weight=weights)
    areas = [
        metrics.roc_auc_score(true == a, model.probabilities[:, a], sample_weight=weights)
        for a in ([1] if k == 2 else range(k))
    ]
    return np.mean(areas)
