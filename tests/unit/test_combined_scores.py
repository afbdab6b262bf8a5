"""Weights of two classifiers by the likelihood of noisy labels, and what is reported of them."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, check_grad, minimize
from scipy.special import log_softmax, softmax

from support.combined import combined_log_odds
from unflip import NoiseModel
from unflip.calibration.combined_scores import _Problem
from unflip.calibration.log_odds import recalibration
from unflip.calibration.observations import Observations
from unflip.calibration.reported_scores import ReportedScores

TWO = NoiseModel.binary(eps_pos=0.3, eps_neg=0.2, pi_neg=0.5)
THREE = NoiseModel([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]], np.full(3, 1 / 3))
FOUR = NoiseModel(0.7 * np.eye(4) + 0.3 / 4, np.full(4, 1 / 4))
NOISES = pytest.mark.parametrize("noise", [TWO, THREE, FOUR], ids=["k=2", "k=3", "k=4"])


def draw(noise, n=600, seed=0, size=1.5):
    """Return two parts whose sum has the log-odds of the true class, and observed labels."""
    rng = np.random.default_rng(seed)
    parts = size * rng.normal(size=(2, n, noise.n_classes))
    parts -= parts.mean(axis=2, keepdims=True)
    probabilities = softmax(parts.sum(axis=0), axis=1)
    y = (probabilities.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return parts[0], parts[1], observe(noise.flip(y, rng)), y


def observe(codes, weights=None):
    return Observations(codes, np.ones(len(codes)) if weights is None else weights, len(codes))


def weights_of(combined, first, second):
    """Return the numbers a and b for which the combined log-odds are aK + bL."""
    parts = np.column_stack([first.ravel(), second.ravel()])
    (a, b), misfit, *_ = np.linalg.lstsq(parts, combined.ravel())
    assert misfit < 1e-18 * (combined**2).sum()
    return a, b


def slope_of(log_odds, observations, noise):
    """Return the slope that calibrates log-odds on their own."""
    unit = log_odds / spread(log_odds)
    logits = recalibration(unit, observations, noise).logits
    return (logits[0, 1] - logits[0, 0]) / (log_odds[0, 1] - log_odds[0, 0])


def spread(log_odds):
    """Return the standard deviation of log-odds whose rows have mean 0."""
    return np.sqrt(log_odds.var(axis=0).sum())


def cost_by_definition(parameters, first, second, observations, noise):
    """Return minus the log posterior density of weights and intercepts."""
    a, b, *intercepts = parameters
    probabilities = softmax(a * first + b * second + np.append(0.0, intercepts), axis=1)
    likelihood = (probabilities @ noise.transition)[np.arange(len(first)), observations.codes]
    counts = observations.n_effective * observations.weights / observations.weights.sum()
    return -counts @ np.log(likelihood) + ((a - 1) ** 2 + b**2) / 2


class TestWeights:
    @NOISES
    def test_they_have_the_largest_posterior_density(self, noise):
        first, second, observations, _ = draw(noise)
        combined, share = combined_log_odds(first, second, observations, noise)
        a, b = weights_of(combined, first, second)
        scale = spread(first) / spread(second)
        assert share == pytest.approx(b / scale / (a + b / scale), rel=1e-9)
        slope = slope_of(second, observations, noise)
        arguments = (first, slope * second, observations, noise)
        start = np.zeros(noise.n_classes + 1)
        best = minimize(cost_by_definition, start, arguments, method="BFGS")
        problem = _Problem(*arguments)
        information = approx_fprime(best.x, lambda x: problem._cost(x)[1])
        error = np.sqrt(np.diag(np.linalg.inv(information))[:2])
        np.testing.assert_array_less(np.abs([a, b / slope] - best.x[:2]), 0.02 * error)

    @NOISES
    def test_the_gradient_is_the_derivative_of_the_density(self, noise):
        first, second, observations, _ = draw(noise, n=40)
        problem = _Problem(first, second, observations, noise)
        rng = np.random.default_rng(1)
        for _ in range(5):
            point = rng.normal(size=noise.n_classes + 1)
            cost, gradient = problem._cost(point)
            arguments = (first, second, observations, noise)
            assert cost == pytest.approx(cost_by_definition(point, *arguments), rel=1e-12)
            miss = check_grad(
                lambda x: problem._cost(x)[0], lambda x: problem._cost(x)[1], point, epsilon=1e-6
            )
            assert miss < 1e-5 * np.linalg.norm(gradient)

    @NOISES
    def test_the_gradient_vanishes_at_the_solution(self, noise):
        first, second, observations, _ = draw(noise)
        problem = _Problem(first, second, observations, noise)
        solution = problem.solution(largest_weight=np.inf)
        assert solution.x[:2].min() > 0.1  # inside the bounds
        at_the_start = problem._cost(np.append(1.0, np.zeros(noise.n_classes)))[1]
        gradient = problem._cost(solution.x)[1]
        assert np.linalg.norm(gradient) < 1e-3 * np.linalg.norm(at_the_start)

    @NOISES
    def test_the_parts_of_the_log_odds_have_equal_weights(self, noise):
        shares = []
        for seed in range(10):
            first, second, observations, _ = draw(noise, seed=seed)
            shares.append(combined_log_odds(first, second, observations, noise)[1])
        error = np.std(shares, ddof=1) / np.sqrt(10)
        assert abs(np.mean(shares) - 0.5) < 3 * error < 0.1

    def test_a_row_of_weight_two_equals_two_rows(self):
        first, second, observations, _ = draw(TWO, n=300)
        counts = np.where(np.arange(300) % 3 == 0, 2, 1)
        weighted = Observations(observations.codes, counts.astype(float), counts.sum())
        repeated = observe(np.repeat(observations.codes, counts))
        rows = np.repeat(np.arange(300), counts)
        one, share = combined_log_odds(first, second, weighted, TWO)
        other, same_share = combined_log_odds(first[rows], second[rows], repeated, TWO)
        assert share == pytest.approx(same_share, rel=1e-6)
        np.testing.assert_allclose(one[rows], other, rtol=1e-6)

    def test_fewer_effective_rows_make_the_prior_stronger(self):
        first, second, observations, _ = draw(TWO)
        few = Observations(observations.codes, observations.weights, 150)
        all_rows = combined_log_odds(first, second, observations, TWO)[1]
        assert 0 < combined_log_odds(first, second, few, TWO)[1] < all_rows


class TestUse:
    @NOISES
    def test_scores_without_information_are_rarely_used(self, noise):
        rng = np.random.default_rng(2)
        used = []
        for seed in range(20):
            first, second, observations, _ = draw(noise, n=300, seed=seed)
            chance = rng.normal(size=first.shape)
            combined, share = combined_log_odds(first + second, chance, observations, noise)
            used.append(share > 0)
            if share == 0:
                np.testing.assert_array_equal(combined, first + second)
        # The test is one-sided, because b ≥ 0: 2.5% by chance.
        assert np.sum(used) <= 3

    @NOISES
    def test_scores_that_equal_the_first_are_not_used(self, noise):
        first, second, observations, _ = draw(noise)
        log_odds = first + second
        for again in (log_odds, 0.1 * log_odds, 7 * log_odds):
            combined, share = combined_log_odds(log_odds, again, observations, noise)
            assert share == 0
            np.testing.assert_array_equal(combined, log_odds)

    @pytest.mark.parametrize("constant", [0.0, -np.log(2), 1e-3])
    @NOISES
    def test_constant_scores_are_not_used(self, noise, constant):
        first, second, observations, _ = draw(noise)
        log_odds = first + second
        same = np.full_like(log_odds, constant)
        combined, share = combined_log_odds(log_odds, same, observations, noise)
        assert share == 0
        np.testing.assert_array_equal(combined, log_odds)

    @NOISES
    def test_scores_against_the_labels_are_not_used(self, noise):
        first, second, observations, _ = draw(noise)
        assert combined_log_odds(first, -second, observations, noise)[1] == 0

    @pytest.mark.parametrize("size", [0.0, 1e-3, 0.1, 1.0])
    @NOISES
    def test_a_first_classifier_without_information_is_replaced(self, noise, size):
        """Log-odds of a fit that finds no signal are close to 0."""
        first, second, observations, y = draw(noise)
        log_odds = first + second
        chance = size * np.random.default_rng(3).normal(size=first.shape)
        combined, share = combined_log_odds(chance, log_odds, observations, noise)
        assert share > 0.7
        hits, best = ((scores.argmax(axis=1) == y).mean() for scores in (combined, log_odds))
        assert hits > best - 3 * 0.5 / np.sqrt(600)

    @NOISES
    def test_combined_scores_predict_the_true_class_better(self, noise):
        first, second, observations, y = draw(noise, n=2000)
        combined, _ = combined_log_odds(first, second, observations, noise)
        of_first, of_both = ((scores.argmax(axis=1) == y).mean() for scores in (first, combined))
        assert of_both > of_first + 3 * 0.5 / np.sqrt(2000)


class TestInvariance:
    @NOISES
    def test_to_a_constant_added_to_all_classes_of_a_row(self, noise):
        first, second, observations, _ = draw(noise)
        rng = np.random.default_rng(4)
        one, share = combined_log_odds(first, second, observations, noise)
        moved = [part + 3 * rng.normal(size=(len(first), 1)) for part in (first, second)]
        other, same_share = combined_log_odds(*moved, observations, noise)
        assert same_share == pytest.approx(share, rel=1e-3)
        np.testing.assert_allclose(
            log_softmax(other, axis=1), log_softmax(one, axis=1), rtol=1e-3, atol=1e-3
        )

    @NOISES
    def test_to_the_scale_of_the_second_scores(self, noise):
        first, second, observations, _ = draw(noise)
        one, share = combined_log_odds(first, second, observations, noise)
        for scale in (1e-6, 0.5, 1e6):
            other, same_share = combined_log_odds(first, scale * second, observations, noise)
            assert same_share == pytest.approx(share, rel=1e-6)
            np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-6)

    @NOISES
    def test_to_the_order_of_the_rows(self, noise):
        first, second, observations, _ = draw(noise)
        order = np.random.default_rng(5).permutation(len(first))
        one, share = combined_log_odds(first, second, observations, noise)
        other, same_share = combined_log_odds(
            first[order], second[order], observe(observations.codes[order]), noise
        )
        assert same_share == pytest.approx(share, rel=1e-5)
        np.testing.assert_allclose(other, one[order], rtol=1e-5, atol=1e-5)

    def test_to_the_names_of_three_classes(self):
        first, second, observations, _ = draw(THREE)
        order = np.array([2, 0, 1])
        renamed = NoiseModel(THREE.transition[np.ix_(order, order)], THREE.priors[order])
        codes = np.argsort(order)[observations.codes]
        one, share = combined_log_odds(first, second, observations, THREE)
        other, same_share = combined_log_odds(
            first[:, order], second[:, order], observe(codes), renamed
        )
        # The intercept of the first class is fixed, and only bounded for the others.
        assert same_share == pytest.approx(share, rel=1e-4)
        np.testing.assert_allclose(other, one[:, order], rtol=1e-4, atol=1e-4)

    def test_log_odds_in_both_codings_of_two_classes(self):
        """[0, v] and [−v/2, v/2] are the same log-odds."""
        first, second, observations, _ = draw(TWO)
        first = first - first[:, :1]
        value = second[:, 1] - second[:, 0]
        one = combined_log_odds(first, np.column_stack([-value / 2, value / 2]), observations, TWO)
        other = combined_log_odds(
            first, np.column_stack([np.zeros_like(value), value]), observations, TWO
        )
        assert one[1] == pytest.approx(other[1], rel=1e-3)
        np.testing.assert_allclose(
            log_softmax(one[0], axis=1), log_softmax(other[0], axis=1), rtol=1e-3, atol=1e-3
        )


class TestReportedScores:
    @staticmethod
    def reported(certainty):
        first, second, observations, _ = draw(TWO, n=300)
        fitted = recalibration(first + second, observations, TWO)
        return ReportedScores(fitted, observations, TWO, np.zeros((2, 2)), certainty)

    def test_certain_scores_are_reported_as_fitted(self):
        scores = self.reported(1.0)
        assert scores.calibration is scores.fitted

    def test_uncertain_scores_are_shrunk_to_the_priors(self):
        whole = self.reported(1.0)
        half = self.reported(0.5)
        np.testing.assert_allclose(
            half.calibration.log_odds, 0.5 * whole.calibration.log_odds, atol=1e-12
        )  # the priors are equal
        chance = self.reported(0.0)
        np.testing.assert_allclose(chance.calibration.probabilities, 0.5, atol=1e-3)

    def test_shrunk_scores_keep_their_predictions(self):
        predicted = [self.reported(certainty).predicted for certainty in (0.0, 0.3, 1.0)]
        np.testing.assert_array_equal(predicted[0], predicted[2])
        np.testing.assert_array_equal(predicted[1], predicted[2])

    def test_the_expected_accuracy_is_the_mean_probability_of_the_predictions(self):
        scores = self.reported(1.0)
        probabilities = scores.calibration.probabilities
        for predicted in (scores.predicted, np.zeros(300, dtype=int), np.arange(300) % 2):
            accuracy = scores.expected_accuracy(predicted, TWO.priors)
            expected = probabilities[np.arange(300), predicted].mean()
            assert accuracy.value == pytest.approx(expected, rel=1e-9)
            assert 0 < accuracy.error < 0.2

    def test_uncertain_scores_have_an_uncertain_accuracy(self):
        accuracies = [
            scores.expected_accuracy(scores.predicted, TWO.priors)
            for scores in map(self.reported, (0.1, 1.0))
        ]
        assert accuracies[0].value < accuracies[1].value
        relative = [each.error / (each.value - 0.5) for each in accuracies]
        assert relative[0] > relative[1]


@NOISES
@pytest.mark.parametrize("certainty", [1.0, 0.4])
def test_other_rows_are_reported_as_rows_with_a_label(noise, certainty):
    first, second, observations, _ = draw(noise)
    fitted = recalibration(first + second, observations, noise)
    errors = np.zeros((noise.n_classes, noise.n_classes))
    scores = ReportedScores(fitted, observations, noise, errors, certainty)
    others = scores.log_odds_of((first + second)[:50])
    np.testing.assert_allclose(others, scores.calibration.log_odds[:50], atol=1e-10)
