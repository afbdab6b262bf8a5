"""Noise rates by the likelihood of the labels: algebra, recovery of known rates, flat cases."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from support.logits import BOTH, THREE, TWO, draw
from unflip import NoiseModel
from unflip.calibration.information import LabelInformation
from unflip.calibration.likeliest_noise import (
    RatePrior,
    expected_noise,
    is_determined,
    likeliest_noise,
    transition_errors,
)
from unflip.calibration.observations import Observations
from unflip.labels.noise import shares_of_wrong_labels


def mean_log_likelihood(parameters, logits, codes, share, shares):
    """Return the mean log-likelihood by its definition; parameters: rates, log τ, b without b₀."""
    k = logits.shape[1]
    rates = parameters[:k]
    transition = rates[:, None] * shares + np.diag(1 - rates)
    log_odds = np.exp(parameters[k]) * logits + np.append(0.0, parameters[k + 1 :])
    likelihoods = (softmax(log_odds, axis=1) * transition.T[codes]).sum(axis=1)
    return share @ np.log(likelihoods)


@BOTH
def test_information_follows_from_the_likelihood_of_single_rows(noise):
    logits, codes, share = draw(noise)
    k = noise.n_classes
    shares = shares_of_wrong_labels(noise.transition)
    at = np.concatenate([1 - np.diag(noise.transition), [0.2], 0.3 * np.arange(1, k)])
    scaled = np.exp(0.2) * logits
    probabilities = softmax(scaled + 0.3 * np.arange(k), axis=1)
    information = LabelInformation.of(probabilities, scaled, codes, share, noise)
    assert information.log_likelihood == pytest.approx(
        mean_log_likelihood(at, logits, codes, share, shares), rel=1e-12
    )
    step = 1e-5
    rows = np.empty((len(codes), 2 * k))
    for i in range(len(codes)):
        alone = np.eye(len(codes))[i]
        for j in range(2 * k):
            ends = [
                mean_log_likelihood(
                    at + sign * step * np.eye(2 * k)[j], logits, codes, alone, shares
                )
                for sign in (1, -1)
            ]
            rows[i, j] = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(information.rate_gradient, share @ rows[:, :k], atol=1e-7)
    np.testing.assert_allclose(information.matrix, (rows.T * share) @ rows, atol=1e-7)
    np.testing.assert_allclose(information.posterior.sum(axis=1), 1, rtol=1e-12)


def separable(noise, n, spread, seed):
    """Return log-odds whose classes are `spread` standard deviations apart, and noisy labels."""
    rng = np.random.default_rng(seed)
    k = noise.n_classes
    y = rng.choice(k, size=n, p=noise.priors)
    scores = spread * np.eye(k)[y] + rng.normal(size=(n, k))
    return spread * scores, noise.flip(y, random_state=rng), y


def start_of(noise, errors=0.15):
    """Return a start that is off, and its prior."""
    k = noise.n_classes
    transition = 0.6 * noise.transition + 0.4 * (0.8 * np.eye(k) + 0.2 / k)
    start = NoiseModel(transition / transition.sum(axis=1, keepdims=True), noise.priors)
    return start, RatePrior.of(start, np.full((k, k), errors))


@BOTH
def test_rates_of_separated_classes_are_recovered_within_their_errors(noise):
    gaps = []
    for seed in range(40):
        logits, codes, y = separable(noise, 600, 4.0, seed)
        observations = Observations(codes, np.ones(600), 600.0)
        start, prior = start_of(noise)
        likeliest = likeliest_noise(logits, observations, start, prior)
        realised = [np.mean(codes[y == a] != a) for a in range(noise.n_classes)]
        rates = 1 - np.diag(likeliest.noise.transition)
        gaps.append((rates - realised) / np.sqrt(np.diag(likeliest.covariance)))
    # The errors are those of the rates of the population, which those of a sample vary around.
    assert np.abs(gaps).max() < 3
    assert np.abs(np.mean(gaps)) < 0.3


@BOTH
def test_logits_without_signal_leave_the_start(noise):
    _, codes, _ = separable(noise, 600, 4.0, 0)
    logits = 1e-6 * np.random.default_rng(0).normal(size=(600, noise.n_classes))
    start, prior = start_of(noise)
    likeliest = likeliest_noise(
        logits, Observations(codes, np.ones(600), 600.0, priors_known=True), start, prior
    )
    rates = 1 - np.diag(likeliest.noise.transition)
    # The labels alone say which rates explain their proportions, under the known priors.
    assert (np.abs(rates - prior.rates) < prior.errors).all()
    assert np.sqrt(np.diag(likeliest.covariance)).min() > 0.3 * prior.errors.min()
    assert not is_determined(likeliest.noise, likeliest.covariance)


@BOTH
def test_clean_labels_have_a_rate_near_0_with_a_small_error(noise):
    clean = NoiseModel.none(noise.n_classes).with_priors(noise.priors)
    logits, codes, _ = separable(clean, 800, 8.0, 0)
    start, prior = start_of(noise)
    likeliest = likeliest_noise(logits, Observations(codes, np.ones(800), 800.0), start, prior)
    rates = 1 - np.diag(likeliest.noise.transition)
    assert rates.max() < 0.005
    # The density falls like exp(−nπε), so the error is about 1/(nπ).
    errors = np.sqrt(np.diag(likeliest.covariance))
    np.testing.assert_allclose(errors, 1 / (800 * noise.priors), rtol=0.5)
    assert is_determined(likeliest.noise, likeliest.covariance)


def test_known_priors_stay_and_constrain_the_rates():
    logits, codes, _ = separable(TWO, 2000, 1.0, 0)
    start, prior = start_of(TWO)
    observed = np.bincount(codes) / 2000
    options = {"n_effective": 2000.0, "priors_known": True}
    likeliest = likeliest_noise(logits, Observations(codes, np.ones(2000), **options), start, prior)
    np.testing.assert_array_equal(likeliest.noise.priors, TWO.priors)
    np.testing.assert_allclose(likeliest.noise.observed, observed, atol=0.01)
    assert not np.allclose(start.observed, observed, atol=0.01)


def test_weights_equal_duplicates():
    logits, codes, _ = separable(THREE, 200, 2.0, 0)
    weights = np.random.default_rng(0).integers(1, 4, size=200)
    start, prior = start_of(THREE)
    weighted = likeliest_noise(logits, Observations(codes, weights, 200.0), start, prior)
    repeated = likeliest_noise(
        np.repeat(logits, weights, axis=0),
        Observations(np.repeat(codes, weights), np.ones(weights.sum()), 200.0),
        start,
        prior,
    )
    np.testing.assert_allclose(
        weighted.noise.transition, repeated.noise.transition, rtol=1e-9, atol=1e-12
    )


def test_many_rows_of_two_classes_are_binned():
    logits, codes, _ = separable(TWO, 2**16, 2.0, 0)
    start, prior = start_of(TWO)
    binned = likeliest_noise(logits, Observations(codes, np.ones(2**16), 2.0**16), start, prior)
    assert np.abs(binned.noise.transition - TWO.transition).max() < 0.02


def test_rates_that_explain_no_proportions_are_kept():
    start = NoiseModel.binary(eps_pos=0.1, eps_neg=0.4, pi_neg=0.5)
    codes = np.zeros(100, dtype=int)  # fewer than 40% would have label 1 under any priors
    codes[:20] = 1
    prior = RatePrior.of(start, np.full((2, 2), 0.1))
    likeliest = likeliest_noise(
        np.zeros((100, 2)), Observations(codes, np.ones(100), 100.0), start, prior
    )
    assert likeliest.noise == start
    np.testing.assert_allclose(np.diag(likeliest.covariance), 0.01)


class TestShares:
    """Shares of wrong labels: shrunk if the evidence is for a simpler structure."""

    k = 8

    def estimate(self, transition, n, seed=0):
        noise = NoiseModel(transition, np.full(self.k, 1 / self.k))
        logits, codes, _ = separable(noise, n, 6.0, seed)
        uniform = NoiseModel(0.7 * np.eye(self.k) + 0.3 / self.k, noise.priors)
        prior = RatePrior.of(uniform, np.full((self.k, self.k), 0.2))
        observations = Observations(codes, np.ones(n), float(n))
        return shares_of_wrong_labels(
            likeliest_noise(logits, observations, uniform, prior).noise.transition
        )

    def test_uniform_noise_gives_equal_shares(self):
        equal = (1 - np.eye(self.k)) / (self.k - 1)
        shares = self.estimate(0.7 * np.eye(self.k) + 0.3 * equal, 320)
        # Shares of twelve wrong labels in seven classes alone would differ by 0.08 on average.
        assert np.abs(shares - equal).mean() < 0.04

    def test_pairs_of_classes_are_found(self):
        confused = np.kron(np.eye(self.k // 2), [[0, 1], [1, 0]])
        shares = self.estimate(0.7 * np.eye(self.k) + 0.3 * confused, 320)
        assert shares[confused > 0].min() > 0.9

    def test_many_rows_show_any_structure(self):
        cycle = np.roll(np.eye(self.k), 1, axis=1)
        step = np.roll(np.eye(self.k), 2, axis=1)
        shares = self.estimate(0.7 * np.eye(self.k) + 0.2 * cycle + 0.1 * step, 8000)
        # 300 wrong labels of each class: four binomial standard errors.
        np.testing.assert_allclose(shares, (2 * cycle + step) / 3, atol=0.11)


def test_expected_noise_explains_the_observed_proportions():
    rng = np.random.default_rng(0)
    posterior = rng.dirichlet(np.ones(3), size=50)
    codes = rng.integers(3, size=50)
    share = rng.dirichlet(np.ones(50))
    observations = Observations(codes, share, 50.0)
    noise = expected_noise(posterior, observations, THREE)
    np.testing.assert_allclose(noise.priors, share @ posterior, rtol=1e-12)
    np.testing.assert_allclose(noise.observed, np.bincount(codes, share), rtol=1e-12)
    certain = expected_noise(np.eye(3)[codes], observations, THREE)
    np.testing.assert_allclose(certain.transition, np.eye(3), atol=1e-12)


def test_labels_no_better_than_chance_keep_the_rates():
    codes = np.arange(10) % 2
    observations = Observations(codes, np.ones(10), 10.0)
    assert expected_noise(np.eye(2)[1 - codes], observations, TWO) == TWO
    known = Observations(codes, np.ones(10), 10.0, priors_known=True)
    certain = expected_noise(np.eye(2)[codes], known, TWO)
    np.testing.assert_array_equal(certain.priors, TWO.priors)


def test_labels_of_probability_0_do_not_overflow():
    clean = NoiseModel.none(3).with_priors(THREE.priors)
    probabilities = np.array([[1.0, 1e-239, 1e-6], [1.0, 0.0, 0.0]])
    scaled = np.array([[0.0, -550.0, -14.0], [0.0, -900.0, -900.0]])
    information = LabelInformation.of(
        probabilities, scaled, np.array([1, 2]), np.array([0.5, 0.5]), clean
    )
    assert np.isfinite(information.matrix).all()


def test_errors_of_two_classes_are_those_of_the_rates():
    covariance = np.array([[0.01, 0.002], [0.002, 0.04]])
    errors = transition_errors(TWO, covariance, 500.0)
    np.testing.assert_allclose(errors, [[0.1, 0.1], [0.2, 0.2]])


def test_errors_of_shares_add_to_those_of_the_rates():
    errors = transition_errors(THREE, np.zeros((3, 3)), 1000.0)
    # Class 0 has 60 wrong labels, two thirds of them label 1: a binomial error.
    assert errors[0, 1] == pytest.approx(0.3 * np.sqrt(2 / 9 / 61))
    assert errors[0, 0] == 0


def test_determined_if_the_share_of_wrong_labels_is():
    correlated = 0.2**2 * np.array([[1, -0.99], [-0.99, 1]])
    balanced = NoiseModel.binary(eps_pos=0.2, eps_neg=0.2, pi_neg=0.5)
    assert is_determined(balanced, correlated)
    assert not is_determined(balanced, np.abs(correlated))


def test_two_classes_equal_a_grid_search():
    logits, codes, _ = separable(TWO, 400, 1.5, 1)
    observed = np.bincount(codes) / 400
    start, prior = start_of(TWO)
    likeliest = likeliest_noise(logits, Observations(codes, np.ones(400), 400.0), start, prior)

    def density(eps_pos, eps_neg):
        noise = NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg).with_observed(observed)
        prior_part = -(((np.array([eps_neg, eps_pos]) - prior.rates) / prior.errors) ** 2).sum() / 2
        return prior_part + max(
            400 * np.mean(np.log(row_likelihoods(slope, noise))) - np.log(slope) ** 2 / 2
            for slope in np.exp(np.linspace(-0.6, 0.6, 25))
        )

    def row_likelihoods(slope, noise):
        contrast = slope * (logits[:, 1] - logits[:, 0])
        low, high = -30.0, 30.0
        for _ in range(60):  # the intercept by bisection
            middle = (low + high) / 2
            if expit(contrast + middle).mean() > noise.priors[1]:
                high = middle
            else:
                low = middle
        positive = expit(contrast + middle)
        joint = np.column_stack([1 - positive, positive]) * noise.transition.T[codes]
        return joint.sum(axis=1)

    here = density(likeliest.noise.eps_pos, likeliest.noise.eps_neg)
    for move_pos in (-0.03, 0.0, 0.03):
        for move_neg in (-0.03, 0.0, 0.03):
            there = density(likeliest.noise.eps_pos + move_pos, likeliest.noise.eps_neg + move_neg)
            assert there < here + 0.05  # 0.3 standard errors
