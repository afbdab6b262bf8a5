"""The read-out: log-odds of the true class recovered from noisy labels, and calm behaviour without
signal."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.special import softmax
from scipy.stats import chi2
from sklearn.linear_model import LogisticRegression

from unflip import LPClassifier, NoiseModel
from unflip.calibration.intercepts import ClassProportions
from unflip.calibration.log_odds import (
    Calibration,
    LogOddsModel,
    calibrate,
    common_slope,
    label_posterior,
    likeliest_priors,
    recalibrated,
    symmetric_slope,
)
from unflip.calibration.mixture import ScoreMixture
from unflip.calibration.observations import Observations

NOISE = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
CLEAN = NoiseModel.none().with_priors([0.5, 0.5])


def draw(n, means, std, noise, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) > noise.priors[0]).astype(int)
    return (np.array(means)[y] + std * rng.normal(size=n))[:, None], noise.flip(y, rng), y


def gaussian_readout(scores, codes, weights, noise, *, n_rows):
    return calibrate(scores, Observations(codes, weights, n_rows), noise).model


def symmetric_readout(scores, codes, weights, noise, *, n_rows):
    found = symmetric_slope(scores[:, 0], Observations(codes, weights, n_rows), noise)
    return LogOddsModel(np.array([[0.0, found]]), np.zeros(2))


def mixture_priors(scores, codes, weights, noise, *, n_rows):
    return likeliest_priors(scores, Observations(codes, weights, n_rows), noise)


def read(scores, codes, noise, fit=gaussian_readout, n_rows=None):
    return fit(scores, codes, np.ones(len(codes)), noise, n_rows=n_rows or len(codes))


def slope(readout):
    return readout.slopes[0, 1]


def true_log_odds(scores, means, std, noise):
    return (means[1] - means[0]) / std**2 * (scores - sum(means) / 2) + np.log(
        noise.priors[1] / noise.priors[0]
    )


@pytest.mark.parametrize("means", [(-0.1, 0.3), (5.0, 7.0)])
def test_it_finds_the_log_odds_of_the_true_label(means):
    std = (means[1] - means[0]) / 2
    scores, codes, _ = draw(200_000, means, std, NOISE)
    points = np.linspace(means[0], means[1], 5)
    found = read(scores, codes, NOISE).log_odds(points[:, None])
    np.testing.assert_allclose(found[:, 1], true_log_odds(points, means, std, NOISE), atol=0.06)
    assert (found[:, 0] == 0).all()


def test_without_noise_it_is_logistic_regression_with_the_right_mean_probability():
    noise = NoiseModel.none().with_priors([0.4, 0.6])
    scores, codes, _ = draw(3000, (0.0, 1.0), 0.7, noise)
    shares = np.bincount(codes) / 3000
    noise = noise.with_priors(shares)
    reading = calibrate(scores, Observations(codes, np.ones(3000), 3000), noise)
    readout = reading.model
    logistic = LogisticRegression(C=np.inf).fit(scores, codes)
    assert slope(readout) == pytest.approx(logistic.coef_[0, 0], rel=0.01)
    expected = pulled(noise, reading.intercepts, codes, 3000)
    np.testing.assert_allclose(readout.probabilities(scores).mean(axis=0), expected, atol=1e-8)
    np.testing.assert_allclose(expected, shares, atol=1e-4)


def test_probabilities_are_calibrated_for_the_true_label():
    scores, codes, y = draw(100_000, (-1.0, 0.5), 1.0, NOISE, seed=1)
    probability = read(scores, codes, NOISE).probabilities(scores)[:, 1]
    for low in np.arange(0.1, 0.9, 0.2):
        inside = (probability >= low) & (probability < low + 0.2)
        error = 0.5 / np.sqrt(inside.sum())
        assert abs(y[inside].mean() - probability[inside].mean()) < 4 * error + 0.01


def test_the_observed_label_enters_by_bayes():
    readout = LogOddsModel(np.array([[0.0, 2.0]]), np.array([0.0, 0.5]))
    scores = np.array([[-0.3], [1.0]])
    p = 1 / (1 + np.exp(-(2 * scores[:, 0] + 0.5)))
    q = Calibration(readout, scores @ readout.slopes, readout.intercepts).posterior(
        np.array([1, 0]), NOISE
    )
    expected = [
        p[0] * 0.6 / (p[0] * 0.6 + (1 - p[0]) * 0.3),
        p[1] * 0.4 / (p[1] * 0.4 + (1 - p[1]) * 0.7),
    ]
    np.testing.assert_allclose(q[:, 1], expected, atol=1e-12)


def test_other_proportions_move_the_offsets():
    readout = LogOddsModel(np.array([[0.0, 2.0]]), np.array([0.0, 0.5]))
    moved = readout.under(np.array([0.2, 0.8]), np.array([0.5, 0.5]))
    assert moved.intercepts[1] - 0.5 == pytest.approx(np.log(4))


def test_other_proportions_enter_by_bayes():
    rng = np.random.default_rng(0)
    readout = LogOddsModel(
        np.hstack([np.zeros((2, 1)), rng.normal(size=(2, 2))]), np.array([0.0, 0.3, -1.0]), 0.25
    )
    scores, trained, priors = (
        rng.normal(size=(5, 2)),
        np.array([0.2, 0.3, 0.5]),
        np.array([0.6, 0.3, 0.1]),
    )
    moved = readout.under(priors, trained)
    expected = readout.probabilities(scores) * priors / trained
    np.testing.assert_allclose(
        moved.probabilities(scores), expected / expected.sum(axis=1, keepdims=True), rtol=1e-12
    )
    assert (moved.intercepts[0], moved.slope_error) == (0, 0.25)


def test_a_label_that_its_class_cannot_have_is_believed():
    """However sure the score is of another class."""
    np.testing.assert_array_equal(
        label_posterior(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0, 1]), CLEAN), np.eye(2)
    )


def test_weights_are_copies():
    scores, codes, _ = draw(400, (-1.0, 0.5), 1.0, NOISE)
    weights = np.random.default_rng(0).integers(1, 4, size=400)
    for fit in (gaussian_readout, symmetric_readout):
        weighted = fit(scores, codes, weights.astype(float), NOISE, n_rows=400)
        repeated = fit(
            scores.repeat(weights, axis=0),
            codes.repeat(weights),
            np.ones(weights.sum()),
            NOISE,
            n_rows=400,
        )
        np.testing.assert_allclose(weighted.slopes, repeated.slopes, rtol=1e-6)
        np.testing.assert_allclose(weighted.intercepts, repeated.intercepts, rtol=1e-6, atol=1e-9)


def test_symmetric_slope_finds_that_of_the_papers_model():
    noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.3, pi_neg=0.5)
    scores, codes, _ = draw(200_000, (-0.4, 0.4), 0.5, noise)
    readout = read(scores, codes, noise, symmetric_readout)
    assert slope(readout) == pytest.approx(2 * 0.4 / 0.5**2, rel=0.02)


def test_three_classes_in_two_contrasts():
    rng = np.random.default_rng(0)
    noise = NoiseModel(
        np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]), [0.3, 0.3, 0.4]
    )
    means = np.array([[0.0, 1.0], [1.0, -1.0], [-1.5, 0.0]])
    covariance = np.array([[0.6, 0.2], [0.2, 0.4]])
    y = rng.choice(3, size=100_000, p=noise.priors)
    scores = means[y] + rng.multivariate_normal(np.zeros(2), covariance, size=len(y))
    found = read(scores, noise.flip(y, rng), noise).probabilities(scores[:2000])
    precision = np.linalg.inv(covariance)
    exact = softmax(
        scores[:2000] @ precision @ means.T
        - 0.5 * np.diag(means @ precision @ means.T)
        + np.log(noise.priors),
        axis=1,
    )
    np.testing.assert_allclose(found, exact, atol=0.03)


def test_the_common_slope_of_three_classes_is_found_through_the_noise():
    rng = np.random.default_rng(0)
    noise = NoiseModel(np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]))
    log_odds = 2 * rng.normal(size=(160_000, 3))
    y = (softmax(log_odds, axis=1).cumsum(axis=1) < rng.random((160_000, 1))).sum(axis=1)
    codes, weights = noise.flip(y, rng), np.ones(160_000)
    assert common_slope(
        5 + log_odds / 3, Observations(codes, weights, 1.0), noise
    ) == pytest.approx(3, rel=0.03)
    assert common_slope(np.zeros((10, 3)), Observations(codes[:10], weights[:10], 1.0), noise) > 0


def test_symmetric_slope_is_where_em_stands_still():
    """Means ±m and variance 1 − m² of scores of mean square 1 have the slope 2m/(1 − m²)."""
    scores, codes, _ = draw(150, (-0.8, 1.1), 1.0, NOISE)
    weights = np.random.default_rng(1).random(150)
    share = weights / weights.sum()
    standard = scores[:, 0] / np.sqrt(share @ scores[:, 0] ** 2)
    label = np.log(NOISE.posterior[codes, 1] / NOISE.posterior[codes, 0])

    def moved(slope):
        mean = share @ (np.tanh((label + slope * standard) / 2) * standard)
        return 2 * mean / (1 - mean**2) - slope

    expected = brentq(moved, 0.1, 10) / np.sqrt(share @ scores[:, 0] ** 2)
    found = symmetric_slope(scores[:, 0], Observations(codes, weights, 150.0), NOISE)
    assert found == pytest.approx(expected, rel=1e-3)
    certain = np.array(
        [-1.0, 1.0]
    )  # classes at ±1 that do not vary are taken to have a variance of 1/n
    assert symmetric_slope(
        certain, Observations(np.array([0, 1]), np.ones(2), 20.0), CLEAN
    ) == pytest.approx(2 * 20)
    assert symmetric_slope(
        5 * scores[:, 0], Observations(codes, weights, 150.0), NOISE
    ) == pytest.approx(found / 5, rel=1e-9)


class TestCommonSlope:
    noise = NoiseModel(np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]))

    def draw(self):
        rng = np.random.default_rng(0)
        scores = rng.normal(size=(100, 3)) + 2.0
        y = (softmax(3 * scores, axis=1).cumsum(axis=1) < rng.random((100, 1))).sum(axis=1)
        return scores, y, rng.random(100)

    def test_it_is_the_likeliest(self):
        scores, y, weights = self.draw()
        codes = self.noise.flip(y, random_state=0)

        def cost(log_slope):
            observed = (
                softmax(np.exp(log_slope) * scores, axis=1) * self.noise.transition.T[codes]
            ).sum(axis=1)
            return -weights @ np.log(observed)

        best = minimize_scalar(cost, bounds=(-5, 5), method="bounded", options={"xatol": 1e-8}).x
        assert common_slope(scores, Observations(codes, weights, 1.0), self.noise) == pytest.approx(
            np.exp(best), rel=1e-5
        )

    def test_it_goes_from_a_thousandth_to_a_thousand_per_spread_of_the_scores(self):
        scores, _, weights = self.draw()
        leads = scores - scores.mean(axis=1, keepdims=True)
        spread = np.sqrt(weights / weights.sum() @ (leads**2).sum(axis=1))
        clean = NoiseModel.none(3)
        against, along = (
            common_slope(scores, Observations(codes(axis=1), weights, 1.0), clean)
            for codes in (scores.argmin, scores.argmax)
        )
        assert against * spread == pytest.approx(1e-3, rel=1e-3)
        assert along * spread == pytest.approx(1e3, rel=0.1)
        assert (
            common_slope(
                np.ones((100, 3)), Observations(scores.argmax(axis=1), weights, 1.0), clean
            )
            > 0
        )


@pytest.mark.parametrize("n_rows", [300.0, 1e5])
@pytest.mark.parametrize("r", [1, 2])
def test_units_axes_and_origin_of_scores_do_not_matter(r, n_rows):
    """But for where EM stops."""
    rng = np.random.default_rng(0)
    noise = NOISE if r == 1 else NoiseModel(0.6 * np.eye(3) + 0.4 / 3, [0.3, 0.3, 0.4])
    y = rng.choice(r + 1, size=300, p=noise.priors)
    scores, codes, weights = (
        2 * np.eye(3)[y][:, 1 : r + 1] + rng.normal(size=(300, r)),
        noise.flip(y, rng),
        rng.random(300),
    )
    axes, origin = np.array([[40.0, 3.0], [-7.0, 20.0]])[:r, :r], np.array([100.0, -30.0])[:r]
    plain, moved = (
        calibrate(z, Observations(codes, weights, n_rows), noise)
        for z in (scores, scores @ axes + origin)
    )
    np.testing.assert_allclose(moved.probabilities, plain.probabilities, atol=1e-4)
    np.testing.assert_allclose(
        moved.model.probabilities(scores @ axes + origin),
        plain.model.probabilities(scores),
        atol=1e-4,
    )


def test_directions_without_spread_are_dropped():
    """k scores that sum to one have k − 1 directions; the read-out must not divide by the missing
    one."""
    scores, codes, _ = draw(500, (-1.0, 1.0), 1.0, NOISE)
    first = read(scores, codes, NOISE).log_odds(scores)
    for copies in ([scores, 1 - scores], [scores / 3, 1 - scores, scores / 7, np.pi * scores]):
        found = read(np.hstack(copies), codes, NOISE)
        np.testing.assert_allclose(found.log_odds(np.hstack(copies)), first, atol=1e-6)


def test_scores_that_hardly_vary_beside_their_size_are_read_as_if_they_did():
    """They have half their digits left."""
    scores, codes, _ = draw(300, (-1.0, 1.0), 1.0, NOISE)
    shifted = 1 + 1e-8 * scores
    plain, found = (read(z, codes, NOISE).probabilities(z) for z in (scores, shifted))
    np.testing.assert_allclose(found, plain, atol=1e-5)


@pytest.mark.parametrize("fit", [gaussian_readout, symmetric_readout])
def test_scores_that_contradict_their_labels_keep_their_order_but_say_little(fit):
    readout = read(np.array([[1.0], [2.0], [-1.0], [-2.0]]), np.array([0, 0, 1, 1]), CLEAN, fit)
    assert 0 < slope(readout) < 0.05


@pytest.mark.parametrize("fit", [gaussian_readout, symmetric_readout])
@pytest.mark.parametrize("scores", [np.zeros(6), np.full(6, 0.3), np.repeat([-1.0, 1.0], 3)])
def test_degenerate_scores_give_finite_answers(fit, scores):
    readout = read(scores[:, None], np.repeat([0, 1], 3), CLEAN, fit)
    assert np.isfinite(readout.slopes).all()
    assert np.isfinite(readout.intercepts).all()


@pytest.mark.parametrize("fit", [gaussian_readout, symmetric_readout])
def test_few_rows_that_fall_apart_are_not_read_as_certainty(fit):
    for n in (2, 20, 200):
        scores = np.repeat([-1.0, 1.0], n // 2)
        readout = read(scores[:, None], (scores > 0).astype(int), CLEAN, fit)
        # Means ±1 and variance 1/n make 2n; labels that the scores explain allow a little more.
        assert n <= readout.log_odds(np.ones((1, 1)))[0, 1] <= 2.8 * n


@pytest.mark.parametrize("shape", ["heavy tails", "skewed", "two humps", "unequal spread"])
def test_scores_that_are_not_gaussian_are_read_by_their_labels(shape):
    """The log-odds are then not linear, but the line must classify as one fitted to clean labels
    does, and know it."""
    rng = np.random.default_rng(0)
    n = 40_000
    y = (rng.random(n) > NOISE.priors[0]).astype(int)
    error = {
        "heavy tails": rng.standard_t(3, size=n) / np.sqrt(3),
        "skewed": rng.exponential(size=n) - 1,
        "two humps": 0.9 * rng.choice([-1, 1], size=n) + np.sqrt(0.19) * rng.normal(size=n),
        "unequal spread": np.where(y == 1, 1.2, 0.5) * rng.normal(size=n),
    }[shape]
    scores = (0.6 * (2 * y - 1) + error)[:, None]
    probability = read(scores, NOISE.flip(y, rng), NOISE).probabilities(scores)
    accuracy = np.mean(probability.argmax(axis=1) == y)
    assert accuracy > LogisticRegression(C=np.inf).fit(scores, y).score(scores, y) - 0.015
    assert probability.max(axis=1).mean() == pytest.approx(accuracy, abs=0.06)


def test_strong_noise_and_few_rows_do_not_make_it_steep():
    steep = 0
    for seed in range(200):
        scores, codes, _ = draw(60, (-0.5, 0.5), 1.0, NOISE, seed=seed)
        steep += slope(read(scores, codes, NOISE)) > 20
    assert steep == 0


def test_rounding_errors_are_not_read_as_scores():
    scores = 0.3 + np.finfo(float).eps * np.arange(6)
    readout = read(scores[:, None], np.repeat([0, 1], 3), NOISE)
    assert (slope(readout), readout.slope_error) == (0, 0)
    np.testing.assert_allclose(readout.probabilities(scores[:, None])[0], NOISE.priors)
    assert readout.intercepts[0] == 0


@pytest.mark.parametrize("noise", [NOISE, NoiseModel(0.6 * np.eye(3) + 0.4 / 3, [0.2, 0.3, 0.5])])
def test_scores_that_are_all_alike_leave_the_priors(noise):
    reading = calibrate(
        np.full((7, 2), 0.3), Observations(np.zeros(7, dtype=int), np.ones(7), 7), noise
    )
    np.testing.assert_allclose(reading.probabilities, np.tile(noise.priors, (7, 1)), rtol=1e-12)
    assert reading.intercepts[0] == 0


def test_the_error_of_the_steepness_is_that_of_repeated_draws():
    logs, claimed = [], []
    for seed in range(100):
        scores, codes, _ = draw(1500, (-0.8, 0.8), 1.0, NOISE, seed=seed)
        readout = read(scores, codes, NOISE)
        logs.append(np.log(slope(readout)))
        claimed.append(readout.slope_error)
    assert np.std(logs) / np.mean(claimed) == pytest.approx(1, abs=0.35)


def pulled(noise, intercepts, codes, n_rows):
    """What intercepts make of the mean probability: the prior, less what they miss of its logarithm
    over its rows."""
    share = np.full(len(codes), 1 / len(codes))
    apart = intercepts - np.log(noise.priors)
    return (
        noise.priors
        - (apart - apart.mean()) / ClassProportions.from_labels(codes, share, noise, n_rows).n_rows
    )


def test_the_mean_probability_of_two_classes_is_the_prior_give_or_take_a_few_rows():
    scores, codes, _ = draw(800, (-0.8, 0.8), 1.0, NOISE)
    reading = calibrate(scores, Observations(codes, np.ones(800), 800), NOISE)
    expected = pulled(NOISE, reading.intercepts, codes, 800)
    np.testing.assert_allclose(reading.probabilities.mean(axis=0), expected, atol=1e-6)
    np.testing.assert_allclose(
        reading.model.probabilities(scores).mean(axis=0), expected, atol=1e-6
    )


def test_scores_that_contradict_the_labels_keep_their_order_and_say_next_to_nothing():
    scores, codes, _ = draw(800, (0.8, -0.8), 1.0, NOISE)
    found = calibrate(scores, Observations(codes, np.ones(800), 800), NOISE)
    assert found.model.slopes[0, 0] == 0
    assert 0 < found.model.slopes[0, 1] < 0.01
    np.testing.assert_allclose(
        found.probabilities, np.broadcast_to(NOISE.priors, (800, 2)), atol=0.01
    )


def test_priors_known_from_elsewhere_are_worth_all_rows():
    scores, codes, _ = draw(800, (-0.8, 0.8), 1.0, NOISE)
    found = calibrate(scores, Observations(codes, np.ones(800), 800, priors_known=True), NOISE)
    apart = found.intercepts - np.log(NOISE.priors)
    expected = NOISE.priors - (apart - apart.mean()) / 800
    np.testing.assert_allclose(found.probabilities.mean(axis=0), expected, atol=1e-6)


@pytest.mark.parametrize("errors", [1.0, -1.7])
def test_what_is_beyond_the_priors_is_steeper(errors):
    scores, codes, _ = draw(800, (-0.8, 0.8), 1.0, NOISE)
    reading = calibrate(scores, Observations(codes, np.ones(800), 800), NOISE)
    factor = np.exp(errors * reading.model.slope_error)
    prior = np.log(NOISE.priors / NOISE.priors[0])
    found = reading.with_slope_moved(errors, NOISE.priors)
    np.testing.assert_allclose(found.log_odds - prior, factor * (reading.log_odds - prior))


def test_priors_by_the_shape_of_overlapping_classes_are_the_true_ones():
    rng = np.random.default_rng(0)
    shares = np.array([0.7, 0.2, 0.1])
    y = rng.choice(3, size=4000, p=shares)
    scores = 1.5 * np.array([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]])[y] + rng.normal(size=(4000, 2))
    flips = NoiseModel(np.full((3, 3), 0.15) + 0.55 * np.eye(3))
    given = flips.with_priors([0.6, 0.25, 0.15])
    found = likeliest_priors(
        scores, Observations(flips.flip(y, rng), np.ones(4000), 4000), given
    ).known_priors
    np.testing.assert_allclose(found, np.bincount(y) / 4000, atol=4 * 0.5 / np.sqrt(4000))


class TestSeveralClasses:
    """(k − 1)² slopes, of which none may feed on chance."""

    def test_labels_without_signal_are_not_read_as_evidence(self):
        rng = np.random.default_rng(0)
        noise = NoiseModel.none(12).with_priors(np.full(12, 1 / 12))
        codes = rng.permutation(np.arange(600) % 12)
        reading = calibrate(
            rng.normal(size=(600, 11)), Observations(codes, np.ones(600), 600), noise
        )
        assert reading.probabilities.max(axis=1).mean() < 0.2
        assert (reading.log_odds.argmax(axis=1) == codes).mean() < 0.15

    def test_rows_are_read_by_others_alike_whatever_their_order(self):
        scores, codes = self.draw()
        order = np.random.default_rng(1).permutation(300)
        first, second = (
            calibrate(scores[rows], Observations(codes[rows], np.ones(300), 300), self.noise)
            for rows in (np.arange(300), order)
        )
        np.testing.assert_allclose(second.log_odds, first.log_odds[order], rtol=1e-7, atol=1e-7)

    noise = NoiseModel(
        np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]), [0.3, 0.3, 0.4]
    )

    def test_rows_are_read_without_their_own_part_as_steeply_as_new_ones(self):
        scores, codes = self.draw()
        scores -= scores.mean(axis=0)
        scores = (
            scores @ np.linalg.inv(np.linalg.cholesky(np.cov(scores.T, bias=True))).T
        )  # whitened
        reading = calibrate(scores, Observations(codes, np.ones(300), 300), self.noise)
        share = np.full(300, 1 / 300)
        mixture = ScoreMixture.fit(scores, codes, share, self.noise, 1 / 300)
        expected = mixture.left_out_logits(scores, share, None)
        steepness = reading.logits[0, 1] / expected[0, 1]
        np.testing.assert_allclose(reading.logits, steepness * expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(
            reading.model.slopes, steepness * mixture.directions, rtol=1e-4, atol=1e-4
        )
        intercepts = reading.model.intercepts + steepness * mixture.middle
        for each, beyond in (
            (reading.probabilities, reading.intercepts),
            (reading.model.probabilities(scores), intercepts),
        ):
            np.testing.assert_allclose(
                each.mean(axis=0), pulled(self.noise, beyond, codes, 300), atol=1e-5
            )

    def test_other_noise_keeps_the_directions_and_moves_slope_and_offsets(self):
        scores, codes = self.draw()
        reading = calibrate(scores, Observations(codes, np.ones(300), 300), self.noise)
        options = {"n_effective": 300.0, "priors_known": False}
        same = recalibrated(
            reading.log_odds, Observations(codes, np.ones(300), **options), self.noise
        )
        np.testing.assert_allclose(same, reading.probabilities, atol=0.04)
        cleaner = NoiseModel(0.5 * self.noise.transition + 0.5 * np.eye(3), self.noise.priors)
        other = recalibrated(
            reading.log_odds, Observations(codes, np.ones(300), **options), cleaner
        )
        ratios = (
            np.log(other[:, 1:] / other[:, :1]),
            reading.log_odds[:, 1:] - reading.log_odds[:, :1],
        )
        for found, before in zip(*(ratio.T for ratio in ratios), strict=True):
            fitted = np.polyfit(before, found, 1)
            np.testing.assert_allclose(np.polyval(fitted, before), found, atol=1e-6)
        assert not np.allclose(other, same, atol=0.04)

    def draw(self):
        rng = np.random.default_rng(0)
        y = rng.integers(3, size=300)
        return np.array([[0.0, 1.0], [1.0, -1.0], [-1.5, 0.0]])[y] + rng.normal(size=(300, 2)), y


class TestLikeliestPriors:
    """Proportions of three classes, from the labels and from how the scores cluster."""

    noise = NoiseModel(np.array([[0.4, 0.6, 0.0], [0.0, 0.4, 0.6], [0.5, 0.0, 0.5]]))
    means = 2.5 * np.array([[0.0, 1.0], [1.0, -1.0], [-1.5, 0.0]])

    def draw(self, seed, n=300, tails=np.inf):
        rng = np.random.default_rng(seed)
        y = rng.choice(3, size=n, p=[0.2, 0.3, 0.5])
        noise_of_scores = (
            rng.normal(size=(n, 2)) if np.isinf(tails) else rng.standard_t(tails, size=(n, 2))
        )
        return self.means[y] + noise_of_scores, self.noise.flip(y, rng), np.bincount(y) / n

    def errors(self, **options):
        found = []
        for seed in range(20):
            scores, codes, truth = self.draw(seed, **options)
            counted = self.noise.with_observed(np.bincount(codes, minlength=3) / len(codes))
            likeliest = read(scores, codes, counted, mixture_priors)
            found.append(
                [np.abs(model.known_priors - truth).max() for model in (counted, likeliest)]
            )
        return np.mean(found, axis=0)

    def test_scores_narrow_what_counting_says(self):
        counted, likeliest = self.errors()
        assert likeliest < counted / 3

    def test_they_do_little_harm_where_they_are_no_mixture(self):
        counted, likeliest = self.errors(tails=2)
        assert likeliest < 1.2 * counted

    @pytest.mark.parametrize("observed", [(54, 66, 80), (70, 50, 80), (30, 90, 80)])
    def test_proportions_of_the_mixture_count_by_how_well_they_explain_the_labels(self, observed):
        """Of classes without spread they are those of the rows, with one more of each; χ² is that
        of flips alone."""
        given, y = np.array([0.5, 0.3, 0.2]), np.repeat(range(3), [40, 60, 100])
        transition, codes = 0.4 * np.eye(3) + 0.2, np.repeat(range(3), observed)
        scores = self.means[y]
        found = (200 * np.array([0.2, 0.3, 0.5]) + 1) / 203
        of_flips = sum(
            share * (np.diag(row) - np.outer(row, row))
            for share, row in zip(found, transition, strict=True)
        )
        missed = np.array(observed) / 200 - found @ transition
        misfit = 200 * missed @ np.linalg.solve(of_flips + np.eye(3) / 200, missed)
        trust = min(1.0, chi2.isf(0.2, 2) / misfit) ** 2
        likeliest = read(scores, codes, NoiseModel(transition, given), mixture_priors)
        np.testing.assert_allclose(likeliest.priors, trust * found + (1 - trust) * given, rtol=1e-6)

    def test_scores_that_say_nothing_change_nothing(self):
        _, codes, _ = self.draw(0)
        counted = self.noise.with_observed(np.bincount(codes) / 300)
        assert read(np.zeros((300, 2)), codes, counted, mixture_priors) is counted


@pytest.mark.parametrize(("n", "apart"), [(20_000, 50.0), (2000, 1000.0)])
def test_a_steepness_that_nothing_tells_is_as_uncertain_as_its_prior(n, apart):
    """Of classes so far apart that no row is in doubt, any steepness explains the labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.2, pi_neg=0.5)
    scores = rng.normal(size=n) + apart * (2 * y - 1)
    reading = calibrate(
        scores[:, None], Observations(noise.flip(y, random_state=0), np.ones(n), float(n)), noise
    )
    assert reading.model.slope_error == pytest.approx(1, rel=0.2)


def test_a_steepness_of_three_classes_that_nothing_tells_is_as_uncertain_as_its_prior():
    rng = np.random.default_rng(0)
    noise = NoiseModel(
        np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]), [0.3, 0.3, 0.4]
    )
    y = rng.permutation(np.repeat(range(3), [300, 300, 400]))
    scores = 1000 * np.array([[0.0, 1.0], [1.0, -1.0], [-1.5, 0.0]])[y] + rng.normal(size=(1000, 2))
    reading = calibrate(
        scores, Observations(noise.flip(y, random_state=0), np.ones(1000), 1000.0), noise
    )
    assert reading.model.slope_error == pytest.approx(1, rel=0.2)
    np.testing.assert_array_equal(reading.log_odds.argmax(axis=1), y)


@pytest.mark.parametrize("n_copies", [7, 9])
def test_copies_of_several_classes_are_read_as_weights_are(n_copies):
    """Also where there are so many that rows are no longer left out: 800 rows of three classes,
    copies counted once."""
    rng = np.random.default_rng(0)
    noise = NoiseModel(0.7 * np.eye(3) + 0.1)
    y = rng.integers(3, size=100)
    X, labels = 2.0 * np.eye(5)[y] + rng.normal(size=(100, 5)), noise.flip(y, random_state=0)
    weighted = LPClassifier(noise).fit(X, labels, sample_weight=np.full(100, float(n_copies)))
    copied = LPClassifier(noise).fit(np.repeat(X, n_copies, axis=0), np.repeat(labels, n_copies))
    assert copied.expected_accuracy_ == pytest.approx(weighted.expected_accuracy_, abs=1e-9)
    np.testing.assert_allclose(
        copied.label_posterior_[::n_copies], weighted.label_posterior_, atol=1e-8
    )
