"""True classes of rows up to an error: by the model, or by a sample of checked rows."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from unflip.auditing.evaluation.class_contrast import ClassContrast
from unflip.auditing.evaluation.held_out_checks import is_contradicted
from unflip.auditing.evaluation.soft_metrics import (
    CONFUSION_METRICS,
    PROBABILITY_METRICS,
    ScoredModel,
    confusion_matrix,
)
from unflip.auditing.evaluation.uncertain_truth import ModelTruth, SampledTruth
from unflip.calibration.interval import normal_interval, wilson_interval
from unflip.calibration.labelled_scores import LabelledScores, ModelScores
from unflip.calibration.true_class import TrueClassModel
from unflip.labels.codes import UNCHECKED

EXACT = {"rel": 1e-10, "abs": 1e-10}
# Standard errors within which parameters are moved to the limits of a function.
REACH_TOLERANCE = 1e-3


class TestModelTruth:
    @pytest.mark.parametrize("k", [2, 4])
    def test_variance_has_a_part_of_the_parameters_and_one_of_the_classes(self, k):
        """The parameter part by central differences, the sampling part written out."""
        truth = model_truth(k)
        model = truth.model
        gradient = np.random.default_rng(1).normal(size=truth.masses.shape)
        step = 1e-5
        slopes = []
        for direction in np.eye(len(model.parameters)):
            up = model.posterior_at(model.parameters + step * direction)
            down = model.posterior_at(model.parameters - step * direction)
            slopes.append((gradient * (up - down)).sum() / (2 * step))
        sampling = 0.0
        for posterior, derivatives in zip(model.posterior, gradient, strict=True):
            covariance = np.diag(posterior) - np.outer(posterior, posterior)
            sampling += derivatives @ covariance @ derivatives
        expected = slopes @ model.covariance @ slopes + sampling
        assert truth.variance(gradient) == pytest.approx(expected, rel=1e-7)

    @pytest.mark.parametrize("k", [2, 4])
    def test_confusion_variances_are_those_of_its_entries(self, k):
        truth = model_truth(k)
        predicted = truth.model.rows.predicted
        variances = truth.confusion_variances(predicted)
        for entry in product(range(k), range(k)):
            gradient = entry_gradient(predicted, k, *entry)
            assert variances[entry] == pytest.approx(truth.variance(gradient), **EXACT)

    def test_variance_of_the_number_of_rows_is_zero(self):
        truth = model_truth(4)
        assert truth.variance(np.full_like(truth.masses, 0.1)) == pytest.approx(0, abs=1e-25)

    def test_variance_is_never_negative(self):
        """Derivatives that are equal up to rounding have no variance but that of rounding."""
        truth = model_truth(2)
        noise = np.random.default_rng(0).normal(size=truth.masses.shape)
        assert truth.variance(0.1 + 1e-17 * noise) >= 0

    def test_derivatives_of_checked_rows_do_not_matter(self):
        truth = model_truth(3)
        gradient = np.random.default_rng(1).normal(size=truth.masses.shape)
        moved = gradient + 5 * (~truth.model.unchecked)[:, None]
        assert truth.variance(moved) == truth.variance(gradient)

    def test_known_classes_have_no_variance(self):
        truth = model_truth(3, n_checked=300)
        gradient = np.random.default_rng(1).normal(size=truth.masses.shape)
        assert truth.variance(gradient) == 0
        assert not truth.confusion_variances(truth.model.rows.predicted).any()

    def test_difference_is_that_of_two_accuracies(self):
        truth = model_truth(3)
        first, second = np.random.default_rng(1).integers(0, 3, (2, 300))
        difference = truth.difference(first, second)
        expected = truth.accuracy(first).value - truth.accuracy(second).value
        assert difference.value == pytest.approx(expected, **EXACT)

    @pytest.mark.parametrize("n_checked", [10, 40])
    def test_difference_to_an_opposite_model_is_twice_the_accuracy_less_1(self, n_checked):
        """Of two classes, and before the accuracy is limited to 0 and 1 and rounded to rows."""
        truth = model_truth(2, n_checked=n_checked)
        predicted = truth.model.rows.predicted
        gradient = np.eye(2)[predicted] / 300
        spread = truth.spread(share_right(predicted), gradient)
        accuracy = normal_interval(
            truth.accuracy(predicted).value, spread.error, limits=spread.limits
        )
        difference = truth.difference(predicted, 1 - predicted)
        expected = [2 * number - 1 for number in accuracy.numbers]
        assert difference.numbers == pytest.approx(expected, **EXACT)

    def test_differences_in_the_other_order_are_opposite(self):
        truth = model_truth(3)
        first, second = np.random.default_rng(1).integers(0, 3, (2, 300))
        difference = truth.difference(first, second)
        opposite = truth.difference(second, first)
        expected = (-difference.value, -difference.high, -difference.low)
        assert opposite.numbers == pytest.approx(expected, **EXACT)

    @pytest.mark.parametrize("k", [2, 4])
    def test_limits_of_the_accuracy_are_whole_rows(self, k):
        """The next ones outside of the interval of the share."""
        truth = model_truth(k)
        predicted = truth.model.rows.predicted
        share = truth.model.share(predicted)
        accuracy = truth.accuracy(predicted)
        assert accuracy.value == share.value
        assert accuracy.low * 300 == pytest.approx(np.floor(share.low * 300), **EXACT)
        assert accuracy.high * 300 == pytest.approx(np.ceil(share.high * 300), **EXACT)

    def test_limits_of_a_known_accuracy_stay_on_their_row(self):
        """One of 300 rows does not move them, whatever the rounding of 299/300."""
        truth = model_truth(2, n_checked=300)
        true = truth.model.truth
        for n_wrong in range(300):
            predicted = np.where(np.arange(300) < n_wrong, 1 - true, true)
            accuracy = (300 - n_wrong) / 300
            assert truth.accuracy(predicted).numbers == pytest.approx((accuracy,) * 3, **EXACT)


class TestSpreadOfModelTruth:
    @pytest.mark.parametrize("k", [2, 4])
    @pytest.mark.parametrize("name", [*CONFUSION_METRICS, *PROBABILITY_METRICS])
    def test_limits_are_the_metric_of_moved_parameters(self, name, k):
        """The derivatives by the parameters are central differences of the metric."""
        truth = model_truth(k)
        model = truth.model
        metric, gradient = metric_of_model(truth, name)
        step = 1e-5
        slopes = []
        for direction in np.eye(len(model.parameters)):
            up = metric(model.posterior_at(model.parameters + step * direction))
            down = metric(model.posterior_at(model.parameters - step * direction))
            slopes.append((up - down) / (2 * step))
        expected = [metric(model.posterior_at(moved)) for moved in model.moved(slopes, 0.95)]
        width = expected[1] - expected[0]
        assert width > 0
        spread = truth.spread(metric, gradient)
        assert spread.limits == pytest.approx(expected, abs=REACH_TOLERANCE * width)

    @pytest.mark.parametrize("k", [2, 4])
    def test_error_is_that_of_the_classes_for_known_parameters(self, k):
        truth = model_truth(k)
        metric, gradient = metric_of_model(truth, "balanced_accuracy")
        covariance = np.zeros_like(truth.model.covariance)
        known = ModelTruth(replace(truth.model, covariance=covariance))
        spread = truth.spread(metric, gradient)
        assert spread.error**2 == pytest.approx(known.variance(gradient), **EXACT)
        value = metric(truth.masses)
        assert known.spread(metric, gradient).limits == (value, value)

    @pytest.mark.parametrize("name", [*CONFUSION_METRICS, *PROBABILITY_METRICS])
    def test_value_is_between_the_limits(self, name):
        truth = model_truth(3)
        metric, gradient = metric_of_model(truth, name)
        low, high = truth.spread(metric, gradient).limits
        assert low < metric(truth.masses) < high

    def test_the_opposite_metric_has_the_opposite_limits(self):
        truth = model_truth(3)
        metric, gradient = metric_of_model(truth, "f1")
        low, high = truth.spread(metric, gradient).limits
        opposite = truth.spread(lambda masses: -metric(masses), -gradient)
        assert opposite.limits == (-high, -low)

    def test_known_classes_have_no_spread(self):
        truth = model_truth(3, n_checked=300)
        metric, gradient = metric_of_model(truth, "f1")
        spread = truth.spread(metric, gradient)
        value = metric(truth.masses)
        assert (*spread.limits, spread.error) == (value, value, 0.0)


class TestSampledTruth:
    def test_variance_of_a_sum_is_the_textbook_formula(self):
        """Σ N² (1 − m/N) s²/m over the strata."""
        truth, sampled, strata = sample(3)
        values = np.random.default_rng(2).normal(size=(len(truth), 3))
        expected = sum(
            textbook(values[chosen, truth[chosen]], np.sum(strata == stratum))
            for stratum, chosen in by_stratum(truth, strata)
        )
        assert sampled.variance(values) == pytest.approx(expected, **EXACT)

    @pytest.mark.parametrize("inclusion", [False, True])
    def test_spread_is_that_of_sampling_alone(self, inclusion):
        truth, sampled, _ = sample(3, inclusion=inclusion)
        predicted = np.random.default_rng(2).integers(0, 3, len(truth))
        gradient = np.eye(3)[predicted] / len(truth)
        metric = share_right(predicted)
        spread = sampled.spread(metric, gradient)
        value = metric(sampled.masses)
        assert spread.limits == (value, value)
        assert spread.error**2 == pytest.approx(sampled.variance(gradient), **EXACT)
        assert spread.error > 0

    def test_estimate_of_a_sum_is_the_textbook_formula(self):
        truth, sampled, strata = sample(3)
        values = np.random.default_rng(2).normal(size=(len(truth), 3))
        expected = sum(
            np.sum(strata == stratum) * values[chosen, truth[chosen]].mean()
            for stratum, chosen in by_stratum(truth, strata)
        )
        assert (sampled.masses * values).sum() == pytest.approx(expected, **EXACT)

    def test_confusion_variances_are_those_of_its_entries(self):
        truth, sampled, _ = sample(3)
        predicted = np.random.default_rng(2).integers(0, 3, len(truth))
        variances = sampled.confusion_variances(predicted)
        for entry in product(range(3), range(3)):
            gradient = entry_gradient(predicted, 3, *entry)
            assert variances[entry] == pytest.approx(sampled.variance(gradient), **EXACT)

    def test_weights_add_up_to_the_rows_of_each_stratum(self):
        truth, sampled, strata = sample(2, inclusion=True)
        checked_strata = strata[truth != UNCHECKED]
        np.testing.assert_allclose(
            np.bincount(checked_strata, sampled.weights), np.bincount(strata), rtol=1e-12
        )

    def test_weights_are_inverse_inclusion_probabilities(self):
        truth, sampled, strata = sample(2, inclusion=True)
        for _, chosen in by_stratum(truth, strata):
            weights = sampled.weights[np.isin(np.flatnonzero(truth != UNCHECKED), chosen)]
            products = weights * sampled.inclusion[chosen]
            assert products == pytest.approx(np.full(len(chosen), products[0]), **EXACT)

    def test_equal_inclusion_probabilities_change_nothing(self):
        truth, sampled, strata = sample(2)
        weighted = SampledTruth(truth, 2, strata, np.where(strata == 0, 0.1, 0.3))
        values = np.random.default_rng(2).normal(size=(len(truth), 2))
        np.testing.assert_allclose(weighted.masses, sampled.masses, rtol=1e-12)
        assert weighted.variance(values) == pytest.approx(sampled.variance(values), **EXACT)

    def test_number_of_rows_has_no_variance(self):
        truth, sampled, _ = sample(2, inclusion=True)
        assert sampled.variance(np.ones((len(truth), 2))) == pytest.approx(0, abs=1e-20)

    def test_accuracy_of_one_stratum_is_wilsons_for_a_finite_population(self):
        truth, _, _ = sample(2)
        sampled = SampledTruth.of(truth, 2, [], None)
        predicted = np.zeros(len(truth), dtype=int)
        checked = truth[truth != UNCHECKED]
        n, m = len(truth), len(checked)
        expected = wilson_interval(np.mean(checked == 0), m * n / (n - m))
        interval = sampled.accuracy(predicted)
        assert interval.numbers == pytest.approx(expected.numbers, **EXACT)

    def test_accuracy_of_strata_is_their_mean(self):
        truth, sampled, strata = sample(2)
        predicted = np.zeros(len(truth), dtype=int)
        shares = [np.mean(truth[chosen] == 0) for _, chosen in by_stratum(truth, strata)]
        expected = np.average(shares, weights=np.bincount(strata))
        assert sampled.accuracy(predicted).value == pytest.approx(expected, **EXACT)

    def test_accuracy_is_that_of_the_masses(self):
        truth, sampled, _ = sample(3, inclusion=True)
        predicted = np.random.default_rng(2).integers(0, 3, len(truth))
        share = np.trace(confusion_matrix(sampled.masses, predicted)) / len(truth)
        assert sampled.accuracy(predicted).value == pytest.approx(share, **EXACT)

    def test_difference_is_that_of_two_accuracies(self):
        truth, sampled, _ = sample(3, inclusion=True)
        first, second = np.random.default_rng(2).integers(0, 3, (2, len(truth)))
        difference = sampled.difference(first, second)
        expected = sampled.accuracy(first).value - sampled.accuracy(second).value
        assert difference.value == pytest.approx(expected, **EXACT)

    def test_all_rows_checked_leave_no_doubt(self):
        truth = np.random.default_rng(0).integers(0, 2, 60)
        predicted = np.zeros(60, dtype=int)
        sampled = SampledTruth.of(truth, 2, [np.arange(60) % 2], None)
        accuracy = np.mean(truth == 0)
        assert sampled.accuracy(predicted).numbers == pytest.approx((accuracy,) * 3, **EXACT)
        assert sampled.variance(np.random.default_rng(1).normal(size=(60, 2))) == 0

    def test_strata_have_two_checked_rows_at_least(self):
        truth = np.array([0, 1, 1, 0, UNCHECKED, UNCHECKED])
        fine = np.array([0, 1, 1, 2, 2, 2])
        coarse = np.array([0, 0, 1, 1, 1, 1])
        sampled = SampledTruth.of(truth, 2, [fine, coarse], None)
        assert sampled.strata.tolist() == coarse.tolist()
        assert SampledTruth.of(truth, 2, [fine], None).strata.tolist() == [0] * 6

    def test_strata_are_numbered_anew(self):
        truth = np.array([0, 1, 1, 0, UNCHECKED])
        sampled = SampledTruth.of(truth, 2, [np.array([7, 7, 3, 3, 3])], None)
        assert sampled.strata.tolist() == [1, 1, 0, 0, 0]


class TestMonteCarlo:
    @pytest.mark.parametrize("name", [*CONFUSION_METRICS, *PROBABILITY_METRICS])
    def test_linearized_variance_is_that_of_the_metric_over_classes_drawn(self, name):
        """Fixed parameters: true classes of the unchecked rows are drawn from the posterior.

        The sample variance of N draws has a relative standard error of √(2/N).
        """
        truth = model_truth(3, n=2000)
        truth.model.covariance[:] = 0
        rng = np.random.default_rng(0)
        probabilities = rng.dirichlet(np.ones(3), 2000)
        scored = ScoredModel(probabilities.argmax(axis=1), 3, probabilities)
        n_draws = 400
        cumulated = truth.masses.cumsum(axis=1)
        values = []
        for _ in range(n_draws):
            classes = (rng.random(2000)[:, None] > cumulated).sum(axis=1)
            values.append(scored.metric(name, np.eye(3)[np.minimum(classes, 2)]))
        expected = truth.variance(scored.gradient(name, truth.masses))
        assert np.var(values, ddof=1) == pytest.approx(expected, rel=4 * np.sqrt(2 / n_draws))


class TestClassContrast:
    def test_observed(self):
        contrast = ClassContrast(np.array([0, 1, 2, 1]), np.array([1, 1, 0, 2]))
        assert contrast.observed(np.array([0, 1, 0, 0])).tolist() == [1, 0, -1, 0]

    def test_observed_without_a_second_class(self):
        assert ClassContrast(np.array([0, 1])).observed(np.array([0, 0])).tolist() == [1, 0]

    @pytest.mark.parametrize("has_second", [False, True])
    def test_moments_are_those_over_the_classes(self, has_second):
        rng = np.random.default_rng(0)
        posterior = rng.dirichlet(np.ones(3), 50)
        first, second = rng.integers(0, 3, (2, 50))
        contrast = ClassContrast(first, second if has_second else None)
        values = np.array([contrast.observed(np.full(50, a)) for a in range(3)]).T
        mean = (posterior * values).sum(axis=1)
        variance = (posterior * values**2).sum(axis=1) - mean**2
        np.testing.assert_allclose(contrast.expected(posterior), mean, atol=1e-14)
        np.testing.assert_allclose(contrast.variance(posterior), variance, atol=1e-14)

    @pytest.mark.parametrize("has_second", [False, True])
    def test_gradients_are_derivatives(self, has_second):
        model = model_truth(3).model
        first, second = np.random.default_rng(0).integers(0, 3, (2, 300))
        contrast = ClassContrast(first, second if has_second else None)
        gradients = contrast.gradients(model.rows, model.predicted_posterior)
        step = 1e-5
        for j, direction in enumerate(np.eye(len(model.parameters))):
            up = contrast.expected(model.rows.posterior(model.parameters + step * direction))
            down = contrast.expected(model.rows.posterior(model.parameters - step * direction))
            np.testing.assert_allclose(gradients[:, j], (up - down) / (2 * step), atol=1e-8)

    def test_subset(self):
        contrast = ClassContrast(np.arange(4), np.arange(4)[::-1]).subset(np.array([2, 0]))
        assert contrast.first.tolist() == [2, 0]
        assert contrast.second.tolist() == [1, 3]


class TestHeldOutChecks:
    @pytest.mark.parametrize("has_inclusion", [False, True])
    def test_correct_models_are_hardly_ever_contradicted(self, has_inclusion):
        """Class-conditional noise; a correct model is contradicted with probability 0.003."""
        assert sum(correct_is_contradicted(seed, has_inclusion) for seed in range(60)) <= 3

    @pytest.mark.parametrize("seed", range(5))
    def test_scores_that_are_not_monotone_contradict_the_model(self, seed):
        model = contradicted_model(seed, n_checked=1000)
        contrasts = [ClassContrast(model.rows.predicted)]
        assert is_contradicted(model, contrasts, model.rows.strata)

    def test_scores_that_are_wrong_on_every_row_do_not(self):
        """The model learns from the checked rows that the scores are to be reversed."""
        true = np.arange(1200) % 2
        probabilities = np.where(np.eye(2)[1 - true] == 1, 0.9, 0.1)
        truth = np.where(np.arange(1200) < 1000, true, UNCHECKED)
        rows = LabelledScores((ModelScores.of(probabilities),), true, 2)
        model = TrueClassModel.fit(rows, truth)
        assert not is_contradicted(model, [ClassContrast(rows.predicted)], rows.strata)
        assert model.share(rows.predicted).high < 0.01

    @pytest.mark.parametrize(("n_checked", "expected"), [(29, False), (30, True)])
    def test_fewer_than_thirty_checks_do_not_contradict(self, n_checked, expected):
        """Labels are the predictions, so evenly spaced checks show where scores are wrong."""
        confidence = np.tile(np.linspace(0.51, 0.99, n_checked), 10)
        predicted = np.arange(len(confidence)) % 2
        true = np.where(is_reversed(confidence), 1 - predicted, predicted)
        truth = np.where(np.arange(len(true)) < n_checked, true, UNCHECKED)
        scores = ModelScores.of(two_columns(confidence, predicted))
        rows = LabelledScores((scores,), predicted, 2)
        model = TrueClassModel.fit(rows, truth)
        assert is_contradicted(model, [ClassContrast(predicted)], rows.strata) == expected

    def test_equal_inclusion_probabilities_change_nothing(self):
        """For models that are contradicted, and for others."""
        answers = set()
        for seed in range(12):
            model = contradicted_model(seed, n_checked=300)
            contrasts = [ClassContrast(model.rows.predicted)]
            plain = is_contradicted(model, contrasts, model.rows.strata)
            inclusion = np.full(len(model.truth), 0.15)
            assert is_contradicted(model, contrasts, model.rows.strata, inclusion) == plain
            answers.add(plain)
        assert answers == {False, True}

    def test_one_of_several_contrasts_is_enough(self):
        model = contradicted_model(n_checked=1000)
        predicted = model.rows.predicted
        contrasts = [ClassContrast(predicted, predicted), ClassContrast(predicted)]
        assert not is_contradicted(model, contrasts[:1], model.rows.strata)
        assert is_contradicted(model, contrasts, model.rows.strata)

    @pytest.mark.parametrize(("n_checked", "expected"), [(1999, True), (2000, False)])
    def test_nothing_depends_on_the_model_if_all_rows_are_checked(self, n_checked, expected):
        model = contradicted_model(n_checked=n_checked)
        contrasts = [ClassContrast(model.rows.predicted)]
        assert is_contradicted(model, contrasts, model.rows.strata) == expected


def model_truth(k, n=300, n_checked=40):
    """Return true classes by a model whose checked rows are a random sample."""
    rng = np.random.default_rng(k)
    probabilities = rng.dirichlet(np.full(k, 0.7), n)
    true = (rng.random(n)[:, None] > probabilities.cumsum(axis=1)).sum(axis=1)
    observed = np.where(rng.random(n) < 0.2, rng.integers(0, k, n), true)
    truth = np.where(np.arange(n) < n_checked, true, UNCHECKED)
    rows = LabelledScores((ModelScores.of(probabilities),), observed, k)
    return ModelTruth(TrueClassModel.fit(rows, truth))


def share_right(predicted):
    """Return the accuracy of predictions as a function of the masses."""
    rows = np.arange(len(predicted))
    return lambda masses: float(masses[rows, predicted].sum() / len(predicted))


def metric_of_model(truth, name):
    """Return a metric of the scores of the model of the true class, and its derivatives."""
    rows = truth.model.rows
    probabilities = np.exp(rows.models[0].log_scores)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    scored = ScoredModel(rows.predicted, rows.n_classes, probabilities)
    return lambda masses: scored.metric(name, masses), scored.gradient(name, truth.masses)


def correct_is_contradicted(seed, has_inclusion, n=600):
    """Whether a model of calibrated scores and class-conditional noise is contradicted."""
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.full(2, 0.7), n)
    true = (rng.random(n) > probabilities[:, 0]).astype(int)
    observed = np.where(rng.random(n) < 0.2, 1 - true, true)
    inclusion = np.full(n, 0.35)
    if has_inclusion:
        inclusion = np.where(probabilities.max(axis=1) > 0.8, 0.6, 0.2)
    truth = np.where(rng.random(n) < inclusion, true, UNCHECKED)
    rows = LabelledScores((ModelScores.of(probabilities),), observed, 2)
    passed = inclusion if has_inclusion else None
    model = TrueClassModel.fit(rows, truth, inclusion=passed)
    return is_contradicted(model, [ClassContrast(rows.predicted)], rows.strata, passed)


def contradicted_model(seed=0, *, n_checked, n=2000):
    """Return a model of noisy labels and scores that are wrong at a medium confidence."""
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(0.5, 1, n)
    predicted = rng.integers(0, 2, n)
    true = np.where(is_reversed(confidence), 1 - predicted, predicted)
    observed = np.where(rng.random(n) < 0.3, 1 - true, true)
    truth = np.full(n, UNCHECKED)
    checked = rng.permutation(n)[:n_checked]
    truth[checked] = true[checked]
    scores = ModelScores.of(two_columns(confidence, predicted))
    return TrueClassModel.fit(LabelledScores((scores,), observed, 2), truth)


def is_reversed(confidence):
    return (confidence >= 0.67) & (confidence <= 0.84)


def two_columns(confidence, predicted):
    """Return the probabilities of two classes."""
    is_predicted = np.eye(2, dtype=bool)[predicted]
    return np.where(is_predicted, confidence[:, None], 1 - confidence[:, None])


def sample(k, inclusion=False):
    """Return true classes of checked rows, the sampled truth, and strata of unequal rates."""
    rng = np.random.default_rng(k)
    strata = (rng.random(200) < 0.3).astype(int)
    probabilities = np.where(strata == 0, 0.15, 0.5)
    if inclusion:
        probabilities = rng.uniform(0.1, 0.5, 200)
    chosen = rng.random(200) < probabilities
    truth = np.where(chosen, rng.integers(0, k, 200), UNCHECKED)
    return truth, SampledTruth.of(truth, k, [strata], probabilities if inclusion else None), strata


def by_stratum(truth, strata):
    """Return each stratum with its checked rows."""
    checked = truth != UNCHECKED
    return [(stratum, np.flatnonzero(checked & (strata == stratum))) for stratum in (0, 1)]


def textbook(values, n):
    """Return the variance of an estimated sum over n rows, of which these were sampled."""
    m = len(values)
    return n**2 * (1 - m / n) * np.var(values, ddof=1) / m


def entry_gradient(predicted, k, true_class, predicted_class):
    """Return the derivatives of an entry of the confusion matrix by the masses, (n, k)."""
    return np.outer(predicted == predicted_class, np.eye(k)[true_class])
