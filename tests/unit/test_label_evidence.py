"""Log-odds, noise rates and class posteriors from out-of-sample scores and noisy labels."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from support.combined import combined_log_odds
from unflip import NoiseModel
from unflip.calibration.log_odds import recalibration
from unflip.calibration.observations import Observations
from unflip.estimation.score_rates import log_scores_of, rates_from_scores, score_association
from unflip.labels.codes import UNCHECKED
from unflip.model.label_evidence import LabelEvidence, fixed_rates, likeliest_rates

TWO = NoiseModel.binary(eps_pos=0.3, eps_neg=0.2, pi_neg=0.5)
THREE = NoiseModel([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]], np.full(3, 1 / 3))
NOISES = pytest.mark.parametrize("noise", [TWO, THREE], ids=["k=2", "k=3"])


def draw(noise, n=600, seed=0, size=2.0):
    """Return two parts whose sum has the log-odds of the true class, and observed labels."""
    rng = np.random.default_rng(seed)
    parts = size * rng.normal(size=(2, n, noise.n_classes))
    parts -= parts[:, :, :1]
    probabilities = softmax(parts.sum(axis=0), axis=1)
    y = (probabilities.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return parts[0], parts[1], observe(noise.flip(y, rng)), y


def observe(codes, weights=None):
    return Observations(codes, np.ones(len(codes)) if weights is None else weights, len(codes))


def given(noise):
    return fixed_rates(noise, np.zeros_like(noise.transition), "given")


def unchecked(n):
    return np.full(n, UNCHECKED)


class TestAssociation:
    @NOISES
    def test_it_is_standard_normal_for_labels_by_chance(self, noise):
        rng = np.random.default_rng(0)
        values = []
        for seed in range(300):
            first, _, _, _ = draw(noise, n=200, seed=seed)
            codes = rng.integers(noise.n_classes, size=200)
            values.append(score_association(log_softmax(first, axis=1), observe(codes)))
        assert abs(np.mean(values)) < 4 / np.sqrt(300)
        assert abs(np.std(values) - 1) < 4 / np.sqrt(600)

    def test_it_grows_with_the_root_of_the_number_of_rows(self):
        first, second, few, _ = draw(TWO, n=400)
        scores = log_softmax(first + second, axis=1)
        many = observe(np.tile(few.codes, 4))
        assert score_association(scores, few) > 4
        assert score_association(np.tile(scores, (4, 1)), many) == pytest.approx(
            2 * score_association(scores, few)
        )

    def test_it_changes_sign_with_the_scores(self):
        first, second, observations, _ = draw(TWO)
        scores = first + second
        value = score_association(scores, observations)
        assert score_association(-scores, observations) == pytest.approx(-value)
        assert score_association(7 * scores + 3, observations) == pytest.approx(value)

    def test_a_row_of_weight_two_equals_two_rows(self):
        first, _, observations, _ = draw(TWO, n=100)
        counts = np.where(np.arange(100) % 3 == 0, 2, 1)
        weighted = Observations(observations.codes, counts.astype(float), counts.sum())
        repeated = observe(observations.codes.repeat(counts))
        assert score_association(first, weighted) == pytest.approx(
            score_association(first.repeat(counts, axis=0), repeated)
        )

    @pytest.mark.parametrize("n", [2, 3, 100, 1000, 100_000])
    @pytest.mark.parametrize(
        "scores",
        [
            [0.0, 0.0],
            [np.log(0.5), np.log(0.5)],
            [-7.3, -7.3],
            [1e-9, 1e-9],
            [1e6, 1e6],
            [np.log(1 / 3)] * 3,
            [-0.3, -1.35],
            [1e6, -1e6],
        ],
        ids=lambda scores: f"{scores[0]:.3g} to {scores[-1]:.3g}, k={len(scores)}",
    )
    def test_it_is_zero_for_constant_scores(self, scores, n):
        """The scores of a classifier that predicts the same for all rows agree with nothing."""
        codes = np.arange(n) % 2
        for seed in range(3):
            weights = np.random.default_rng(seed).uniform(0.1, 3, size=n)
            for used in (np.ones(n), weights):
                value = score_association(np.tile(scores, (n, 1)), observe(codes, used))
                assert abs(value) < 1e-8

    def test_scores_that_are_constant_but_for_one_row_are_not_constant(self):
        scores = np.tile([-0.3, -1.35], (100, 1))
        codes = np.arange(100) % 2
        scores[1] += [-1e-6, 1e-6]
        assert score_association(scores, observe(codes)) > 0


def test_log_scores_exclude_no_class():
    pred_probs = np.array([[1.0, 0.0], [0.3, 0.7]])
    np.testing.assert_allclose(
        log_scores_of(pred_probs), np.log([[1, 1 / 20], [0.3, 0.7]]), rtol=1e-12
    )


class TestRates:
    @NOISES
    def test_their_errors_are_their_standard_errors(self, noise):
        deviations = []
        for seed in range(12):
            first, second, observations, y = draw(noise, n=2000, seed=seed)
            rates = likeliest_rates(observations, None)(first + second, True)
            k = noise.n_classes
            drawn = np.array([np.mean(observations.codes[y == a] == a) for a in range(k)])
            estimates = np.diag(rates.reported.transition)
            deviations.append((estimates - drawn) / np.diag(rates.errors))
            assert rates.source == "label likelihood"
            assert rates.assumption == ""
        assert np.sqrt(np.mean(np.square(deviations))) < 1.5
        assert np.abs(np.mean(deviations)) < 4 / np.sqrt(12)

    def test_given_priors_are_kept(self):
        first, second, observations, _ = draw(TWO)
        known = replace(observations, priors_known=True)
        rates = likeliest_rates(known, [0.4, 0.6])(first + second, True)
        np.testing.assert_allclose(rates.noise.priors, [0.4, 0.6], atol=1e-9)
        free = likeliest_rates(observations, None)(first + second, True)
        assert not np.allclose(free.noise.priors, [0.4, 0.6], atol=1e-3)

    @NOISES
    def test_nothing_is_estimated_without_signal(self, noise):
        first, _, observations, _ = draw(noise)
        rates = likeliest_rates(observations, None)(first, False)
        assert rates.source == "no signal"
        assert "do not predict the labels" in rates.assumption
        assert rates.noise == rates.reported
        observed = np.bincount(observations.codes) / 600
        np.testing.assert_allclose(rates.noise.observed, observed, atol=1e-9)

    @pytest.mark.parametrize("scale", [1 / 3, 3.0])
    def test_they_hardly_depend_on_the_scale_of_the_log_odds(self, scale):
        """The slope has a weak prior about 1."""
        first, second, observations, _ = draw(TWO)
        log_odds = first + second
        scores = log_softmax(log_odds, axis=1)
        one = rates_from_scores(scores, log_odds, observations, None)
        other = rates_from_scores(scores, scale * log_odds, observations, None)
        gap = np.abs(one.noise.transition - other.noise.transition)
        np.testing.assert_array_less(gap, one.errors)

    def test_given_rates_are_returned_as_they_are(self):
        errors = np.array([[0.1, 0.1], [0.2, 0.2]])
        rates_of = fixed_rates(TWO, errors, "trusted rows")
        rates = rates_of(np.zeros((5, 2)), False)
        assert rates is rates_of(np.ones((7, 2)), True)
        assert rates.noise == rates.reported == TWO
        assert (rates.source, rates.assumption) == ("trusted rows", "")
        np.testing.assert_allclose(rates.covariance, np.diag([0.01, 0.04]))
        covariance = np.array([[0.01, 0.005], [0.005, 0.04]])
        correlated = fixed_rates(TWO, errors, "trusted rows", covariance)(np.zeros((5, 2)), True)
        np.testing.assert_array_equal(correlated.covariance, covariance)


class TestEvidence:
    @NOISES
    def test_one_classifier_is_calibrated(self, noise):
        first, second, observations, _ = draw(noise)
        evidence = LabelEvidence.of(first + second, None, observations, given(noise))
        assert evidence.combination.share == 0
        assert evidence.association > 4
        expected = recalibration(first + second, observations, noise)
        np.testing.assert_array_equal(evidence.scores.calibration.log_odds, expected.log_odds)

    @NOISES
    def test_two_classifiers_are_combined(self, noise):
        first, second, observations, y = draw(noise)
        evidence = LabelEvidence.of(first, second, observations, given(noise))
        combined, share = combined_log_odds(first, second, observations, noise)
        assert 0 < share == evidence.combination.share
        np.testing.assert_array_equal(
            evidence.scores.calibration.log_odds,
            recalibration(combined, observations, noise).log_odds,
        )
        alone = LabelEvidence.of(first, None, observations, given(noise))
        assert evidence.association > alone.association
        hits, hits_alone = (each.scores.predicted == y for each in (evidence, alone))
        gain = hits.astype(float) - hits_alone
        assert gain.mean() > 3 * gain.std() / np.sqrt(600)

    def test_the_rates_are_those_of_the_combined_scores(self):
        first, second, observations, _ = draw(TWO)
        evidence = LabelEvidence.of(
            first, second, observations, likeliest_rates(observations, None)
        )
        alone = LabelEvidence.of(first, None, observations, likeliest_rates(observations, None))
        assert evidence.rates.source == "label likelihood"
        assert (np.diag(evidence.rates.errors) < np.diag(alone.rates.errors)).all()

    @NOISES
    def test_the_posterior_follows_bayes_rule(self, noise):
        first, second, observations, _ = draw(noise)
        for rates_of in (given(noise), likeliest_rates(observations, None)):
            evidence = LabelEvidence.of(first, second, observations, rates_of)
            posterior = evidence.posterior(unchecked(600))
            probabilities = softmax(evidence.scores.calibration.log_odds, axis=1)
            transition = evidence.rates.noise.transition
            joint = probabilities * transition[:, observations.codes].T
            expected = joint / joint.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(posterior, expected, atol=1e-12)

    @NOISES
    def test_known_classes_are_certain(self, noise):
        first, second, observations, y = draw(noise)
        evidence = LabelEvidence.of(first, second, observations, given(noise))
        truth = np.where(np.arange(600) % 3 == 0, y, UNCHECKED)
        posterior = evidence.posterior(truth)
        known = truth != UNCHECKED
        np.testing.assert_array_equal(posterior[known], np.eye(noise.n_classes)[y[known]])
        np.testing.assert_array_equal(posterior[~known], evidence.posterior(unchecked(600))[~known])

    def test_posteriors_are_calibrated(self):
        """Over many rows, the mean probability that a label is wrong is the share of wrong ones."""
        gaps = []
        for seed in range(12):
            first, second, observations, y = draw(TWO, seed=seed)
            evidence = LabelEvidence.of(first, second, observations, given(TWO))
            own = evidence.posterior(unchecked(600))[np.arange(600), observations.codes]
            gaps.append(own.mean() - (observations.codes == y).mean())
        assert abs(np.mean(gaps)) < 4 * np.std(gaps, ddof=1) / np.sqrt(12) < 0.03

    def test_scores_without_signal_give_the_priors(self):
        first, _, _, _ = draw(TWO)
        codes = np.random.default_rng(3).permutation(np.repeat([0, 1], [330, 270]))
        observations = observe(codes)
        rates_of = likeliest_rates(observations, None)
        log_odds = first - first[:, :1]
        assert abs(score_association(log_softmax(log_odds, axis=1), observations)) < 1.5
        evidence = LabelEvidence.of(log_odds, None, observations, rates_of)
        assert evidence.rates.source == "no signal"
        priors = evidence.rates.noise.priors
        np.testing.assert_allclose(
            evidence.scores.calibration.probabilities, np.tile(priors, (600, 1)), atol=2e-3
        )

    def test_constant_scores_have_no_signal(self):
        codes = np.random.default_rng(0).permutation(np.repeat([0, 1], [330, 270]))
        observations = observe(codes)
        log_odds = np.tile([0.0, np.log(270 / 330)], (600, 1))
        evidence = LabelEvidence.of(
            log_odds, None, observations, likeliest_rates(observations, None)
        )
        assert evidence.association == 0
        assert evidence.rates.source == "no signal"

    @NOISES
    def test_a_first_classifier_without_signal_does_not_block_the_second(self, noise):
        first, second, observations, _ = draw(noise, n=1500)
        chance = np.random.default_rng(5).normal(size=first.shape)
        rates_of = likeliest_rates(observations, None)
        assert LabelEvidence.of(chance, None, observations, rates_of).rates.source == "no signal"
        evidence = LabelEvidence.of(chance, first + second, observations, rates_of)
        assert evidence.combination.share > 0.9
        assert evidence.association > 4
        assert evidence.rates.source == "label likelihood"
