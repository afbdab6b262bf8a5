"""Calibration: log-odds of the true class from noisy labels, and stability without signal."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.special import softmax
from scipy.stats import chi2
from sklearn.linear_model import LogisticRegression

from unflip import LPClassifier, NoiseModel
from unflip.calibration.information import PAIR_VARIANCE, calibration_covariance
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


def fit_model(scores, codes, weights, noise, *, n_rows):
    return calibrate(scores, Observations(codes, weights, n_rows), noise).model


def fit_symmetric_model(scores, codes, weights, noise, *, n_rows):
    slope_per_unit = symmetric_slope(scores[:, 0], Observations(codes, weights, n_rows), noise)
    return LogOddsModel(np.array([[0.0, slope_per_unit]]), np.zeros(2))


def fit_priors(scores, codes, weights, noise, *, n_rows):
    return likeliest_priors(scores, Observations(codes, weights, n_rows), noise)


def fit_scores(scores, codes, noise, fit=fit_model, n_rows=None):
    return fit(scores, codes, np.ones(len(codes)), noise, n_rows=n_rows or len(codes))


def slope(model):
    return model.slopes[0, 1]


def true_log_odds(scores, means, std, noise):
    return (means[1] - means[0]) / std**2 * (scores - sum(means) / 2) + np.log(
        noise.priors[1] / noise.priors[0]
    )


@pytest.mark.parametrize("means", [(-0.1, 0.3), (5.0, 7.0)])
def test_log_odds_of_the_true_class_are_recovered_from_noisy_labels(means):
    std = (means[1] - means[0]) / 2
    scores, codes, _ = draw(200_000, means, std, NOISE)
    points = np.linspace(means[0], means[1], 5)
    log_odds = fit_scores(scores, codes, NOISE).log_odds(points[:, None])
    np.testing.assert_allclose(log_odds[:, 1], true_log_odds(points, means, std, NOISE), atol=0.06)
    assert (log_odds[:, 0] == 0).all()


def test_without_noise_it_agrees_with_logistic_regression():
    noise = NoiseModel.none().with_priors([0.4, 0.6])
    scores, codes, _ = draw(3000, (0.0, 1.0), 0.7, noise)
    shares = np.bincount(codes) / 3000
    noise = noise.with_priors(shares)
    calibration = calibrate(scores, Observations(codes, np.ones(3000), 3000), noise)
    model = calibration.model
    logistic = LogisticRegression(C=np.inf).fit(scores, codes)
    assert slope(model) == pytest.approx(logistic.coef_[0, 0], rel=0.01)
    expected = regularized_priors(noise, calibration.intercepts, codes, 3000)
    np.testing.assert_allclose(model.probabilities(scores).mean(axis=0), expected, atol=1e-8)
    np.testing.assert_allclose(expected, shares, atol=1e-4)


def test_probabilities_are_calibrated_for_the_true_class():
    scores, codes, y = draw(100_000, (-1.0, 0.5), 1.0, NOISE, seed=1)
    probability = fit_scores(scores, codes, NOISE).probabilities(scores)[:, 1]
    for low in np.arange(0.1, 0.9, 0.2):
        inside = (probability >= low) & (probability < low + 0.2)
        error = 0.5 / np.sqrt(inside.sum())
        assert abs(y[inside].mean() - probability[inside].mean()) < 4 * error + 0.01


def test_label_posterior_follows_bayes_rule():
    model = LogOddsModel(np.array([[0.0, 2.0]]), np.array([0.0, 0.5]))
    scores = np.array([[-0.3], [1.0]])
    p = 1 / (1 + np.exp(-(2 * scores[:, 0] + 0.5)))
    q = Calibration(model, scores @ model.slopes, model.intercepts).posterior(
        np.array([1, 0]), NOISE
    )
    expected = [
        p[0] * 0.6 / (p[0] * 0.6 + (1 - p[0]) * 0.3),
        p[1] * 0.4 / (p[1] * 0.4 + (1 - p[1]) * 0.7),
    ]
    np.testing.assert_allclose(q[:, 1], expected, atol=1e-12)


def test_other_priors_change_only_the_intercepts():
    model = LogOddsModel(np.array([[0.0, 2.0]]), np.array([0.0, 0.5]))
    moved = model.with_priors(np.array([0.2, 0.8]), np.array([0.5, 0.5]))
    assert moved.intercepts[1] - 0.5 == pytest.approx(np.log(4))


def test_other_priors_follow_bayes_rule():
    rng = np.random.default_rng(0)
    model = LogOddsModel(
        np.hstack([np.zeros((2, 1)), rng.normal(size=(2, 2))]), np.array([0.0, 0.3, -1.0])
    )
    scores, trained, priors = (
        rng.normal(size=(5, 2)),
        np.array([0.2, 0.3, 0.5]),
        np.array([0.6, 0.3, 0.1]),
    )
    moved = model.with_priors(priors, trained)
    expected = model.probabilities(scores) * priors / trained
    np.testing.assert_allclose(
        moved.probabilities(scores), expected / expected.sum(axis=1, keepdims=True), rtol=1e-12
    )
    assert moved.intercepts[0] == 0


def test_label_that_excludes_a_class_overrides_the_score():
    """Even if the score gives that class probability 0."""
    np.testing.assert_array_equal(
        label_posterior(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0, 1]), CLEAN), np.eye(2)
    )


def test_weights_equal_duplicates():
    scores, codes, _ = draw(400, (-1.0, 0.5), 1.0, NOISE)
    weights = np.random.default_rng(0).integers(1, 4, size=400)
    for fit in (fit_model, fit_symmetric_model):
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


def test_symmetric_slope_of_the_papers_model():
    noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.3, pi_neg=0.5)
    scores, codes, _ = draw(200_000, (-0.4, 0.4), 0.5, noise)
    model = fit_scores(scores, codes, noise, fit_symmetric_model)
    assert slope(model) == pytest.approx(2 * 0.4 / 0.5**2, rel=0.02)


def test_three_classes_with_two_contrasts():
    rng = np.random.default_rng(0)
    noise = NoiseModel(
        np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]), [0.3, 0.3, 0.4]
    )
    means = np.array([[0.0, 1.0], [1.0, -1.0], [-1.5, 0.0]])
    covariance = np.array([[0.6, 0.2], [0.2, 0.4]])
    y = rng.choice(3, size=100_000, p=noise.priors)
    scores = means[y] + rng.multivariate_normal(np.zeros(2), covariance, size=len(y))
    probabilities = fit_scores(scores, noise.flip(y, rng), noise).probabilities(scores[:2000])
    precision = np.linalg.inv(covariance)
    exact = softmax(
        scores[:2000] @ precision @ means.T
        - 0.5 * np.diag(means @ precision @ means.T)
        + np.log(noise.priors),
        axis=1,
    )
    np.testing.assert_allclose(probabilities, exact, atol=0.03)


def test_common_slope_of_three_classes_is_recovered_from_noisy_labels():
    rng = np.random.default_rng(0)
    noise = NoiseModel(np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]))
    log_odds = 2 * rng.normal(size=(160_000, 3))
    y = (softmax(log_odds, axis=1).cumsum(axis=1) < rng.random((160_000, 1))).sum(axis=1)
    codes, weights = noise.flip(y, rng), np.ones(160_000)
    assert common_slope(
        5 + log_odds / 3, Observations(codes, weights, 1.0), noise
    ) == pytest.approx(3, rel=0.03)
    assert common_slope(np.zeros((10, 3)), Observations(codes[:10], weights[:10], 1.0), noise) > 0


def test_symmetric_slope_is_a_fixed_point_of_em():
    """Scores with mean square 1, class means ±m and variance 1 − m² have the slope 2m/(1 − m²)."""
    scores, codes, _ = draw(150, (-0.8, 1.1), 1.0, NOISE)
    weights = np.random.default_rng(1).random(150)
    share = weights / weights.sum()
    standard = scores[:, 0] / np.sqrt(share @ scores[:, 0] ** 2)
    label = np.log(NOISE.posterior[codes, 1] / NOISE.posterior[codes, 0])

    def moved(slope):
        mean = share @ (np.tanh((label + slope * standard) / 2) * standard)
        return 2 * mean / (1 - mean**2) - slope

    expected = brentq(moved, 0.1, 10) / np.sqrt(share @ scores[:, 0] ** 2)
    fitted_slope = symmetric_slope(scores[:, 0], Observations(codes, weights, 150.0), NOISE)
    assert fitted_slope == pytest.approx(expected, rel=1e-3)
    certain = np.array([-1.0, 1.0])  # the variance within classes is at least 1/n
    assert symmetric_slope(
        certain, Observations(np.array([0, 1]), np.ones(2), 20.0), CLEAN
    ) == pytest.approx(2 * 20)
    assert symmetric_slope(
        5 * scores[:, 0], Observations(codes, weights, 150.0), NOISE
    ) == pytest.approx(fitted_slope / 5, rel=1e-9)


class TestCommonSlope:
    noise = NoiseModel(np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]))

    def draw(self):
        rng = np.random.default_rng(0)
        scores = rng.normal(size=(100, 3)) + 2.0
        y = (softmax(3 * scores, axis=1).cumsum(axis=1) < rng.random((100, 1))).sum(axis=1)
        return scores, y, rng.random(100)

    def test_maximizes_the_likelihood(self):
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

    def test_is_between_a_thousandth_and_a_thousand_per_standard_deviation(self):
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
def test_calibration_is_affine_equivariant(r, n_rows):
    """Up to the tolerance of EM."""
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


def test_directions_without_variance_are_dropped():
    """Linearly dependent scores must not lead to a division by 0."""
    scores, codes, _ = draw(500, (-1.0, 1.0), 1.0, NOISE)
    first = fit_scores(scores, codes, NOISE).log_odds(scores)
    for columns in ([scores, 1 - scores], [scores / 3, 1 - scores, scores / 7, np.pi * scores]):
        model = fit_scores(np.hstack(columns), codes, NOISE)
        np.testing.assert_allclose(model.log_odds(np.hstack(columns)), first, atol=1e-6)


def test_scores_with_a_large_mean_are_calibrated():
    """Half of their digits are lost."""
    scores, codes, _ = draw(300, (-1.0, 1.0), 1.0, NOISE)
    shifted = 1 + 1e-8 * scores
    plain, moved = (fit_scores(z, codes, NOISE).probabilities(z) for z in (scores, shifted))
    np.testing.assert_allclose(moved, plain, atol=1e-5)


@pytest.mark.parametrize("fit", [fit_model, fit_symmetric_model])
def test_scores_that_contradict_the_labels_get_the_smallest_slope(fit):
    model = fit_scores(np.array([[1.0], [2.0], [-1.0], [-2.0]]), np.array([0, 0, 1, 1]), CLEAN, fit)
    assert 0 < slope(model) < 0.05


@pytest.mark.parametrize("fit", [fit_model, fit_symmetric_model])
@pytest.mark.parametrize("scores", [np.zeros(6), np.full(6, 0.3), np.repeat([-1.0, 1.0], 3)])
def test_degenerate_scores_give_finite_probabilities(fit, scores):
    model = fit_scores(scores[:, None], np.repeat([0, 1], 3), CLEAN, fit)
    assert np.isfinite(model.slopes).all()
    assert np.isfinite(model.intercepts).all()


@pytest.mark.parametrize("fit", [fit_model, fit_symmetric_model])
def test_few_separable_rows_do_not_give_certainty(fit):
    for n in (2, 20, 200):
        scores = np.repeat([-1.0, 1.0], n // 2)
        model = fit_scores(scores[:, None], (scores > 0).astype(int), CLEAN, fit)
        # Means ±1 and variance 1/n give 2n; the likelihood of the labels allows a little more.
        assert n <= model.log_odds(np.ones((1, 1)))[0, 1] <= 2.8 * n


@pytest.mark.parametrize("shape", ["heavy tails", "skewed", "two humps", "unequal spread"])
def test_scores_that_are_not_gaussian_are_calibrated_by_the_labels(shape):
    """Log-odds are not linear then.

    The classifier must be as accurate as logistic regression on clean labels, and expect its
    accuracy.
    """
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
    probability = fit_scores(scores, NOISE.flip(y, rng), NOISE).probabilities(scores)
    accuracy = np.mean(probability.argmax(axis=1) == y)
    assert accuracy > LogisticRegression(C=np.inf).fit(scores, y).score(scores, y) - 0.015
    assert probability.max(axis=1).mean() == pytest.approx(accuracy, abs=0.06)


def test_strong_noise_and_few_rows_do_not_inflate_the_slope():
    n_steep = 0
    for seed in range(200):
        scores, codes, _ = draw(60, (-0.5, 0.5), 1.0, NOISE, seed=seed)
        n_steep += slope(fit_scores(scores, codes, NOISE)) > 20
    assert n_steep == 0


def test_rounding_errors_are_not_treated_as_scores():
    scores = 0.3 + np.finfo(float).eps * np.arange(6)
    model = fit_scores(scores[:, None], np.repeat([0, 1], 3), NOISE)
    assert slope(model) == 0
    np.testing.assert_allclose(model.probabilities(scores[:, None])[0], NOISE.priors)
    assert model.intercepts[0] == 0


@pytest.mark.parametrize("noise", [NOISE, NoiseModel(0.6 * np.eye(3) + 0.4 / 3, [0.2, 0.3, 0.5])])
def test_constant_scores_give_the_priors(noise):
    calibration = calibrate(
        np.full((7, 2), 0.3), Observations(np.zeros(7, dtype=int), np.ones(7), 7), noise
    )
    np.testing.assert_allclose(calibration.probabilities, np.tile(noise.priors, (7, 1)), rtol=1e-12)
    assert calibration.intercepts[0] == 0


def slope_std(calibration, observations, noise):
    """Return the standard error of the log-slope, for independent scores and known rates."""
    rates = np.zeros((noise.n_classes, noise.n_classes))
    covariance = calibration_covariance(
        calibration.probabilities, calibration.logits, observations, noise, rates
    )
    return np.sqrt(covariance[0, 0])


def test_slope_error_matches_repeated_draws():
    logs, claimed = [], []
    for seed in range(100):
        scores, codes, _ = draw(1500, (-0.8, 0.8), 1.0, NOISE, seed=seed)
        observations = Observations(codes, np.ones(1500), 1500.0)
        calibration = calibrate(scores, observations, NOISE)
        logs.append(np.log(slope(calibration.model)))
        # Independent scores have no pairs.
        claimed.append(slope_std(calibration, observations, NOISE) / np.sqrt(PAIR_VARIANCE))
    assert np.std(logs) / np.mean(claimed) == pytest.approx(1, abs=0.35)


def regularized_priors(noise, intercepts, codes, n_rows):
    """Return the mean probabilities under these intercepts: priors minus (d_a − d̄)/n."""
    share = np.full(len(codes), 1 / len(codes))
    apart = intercepts - np.log(noise.priors)
    return (
        noise.priors
        - (apart - apart.mean())
        / ClassProportions.from_labels(codes, share, noise, n_rows).n_effective
    )


def test_mean_probability_of_two_classes_is_the_regularized_prior():
    scores, codes, _ = draw(800, (-0.8, 0.8), 1.0, NOISE)
    calibration = calibrate(scores, Observations(codes, np.ones(800), 800), NOISE)
    expected = regularized_priors(NOISE, calibration.intercepts, codes, 800)
    np.testing.assert_allclose(calibration.probabilities.mean(axis=0), expected, atol=1e-6)
    np.testing.assert_allclose(
        calibration.model.probabilities(scores).mean(axis=0), expected, atol=1e-6
    )


def test_scores_that_contradict_the_labels_keep_their_order():
    scores, codes, _ = draw(800, (0.8, -0.8), 1.0, NOISE)
    calibration = calibrate(scores, Observations(codes, np.ones(800), 800), NOISE)
    assert calibration.model.slopes[0, 0] == 0
    assert 0 < calibration.model.slopes[0, 1] < 0.01
    np.testing.assert_allclose(
        calibration.probabilities, np.broadcast_to(NOISE.priors, (800, 2)), atol=0.01
    )


def test_known_priors_have_the_effective_size_of_all_rows():
    scores, codes, _ = draw(800, (-0.8, 0.8), 1.0, NOISE)
    calibration = calibrate(
        scores, Observations(codes, np.ones(800), 800, priors_known=True), NOISE
    )
    apart = calibration.intercepts - np.log(NOISE.priors)
    expected = NOISE.priors - (apart - apart.mean()) / 800
    np.testing.assert_allclose(calibration.probabilities.mean(axis=0), expected, atol=1e-6)


def test_shrinkage_is_relative_to_the_priors():
    scores, codes, _ = draw(800, (-0.8, 0.8), 1.0, NOISE)
    calibration = calibrate(scores, Observations(codes, np.ones(800), 800), NOISE)
    prior = np.log(NOISE.priors / NOISE.priors[0])
    shrunk = calibration.shrunk(0.3, NOISE.priors)
    np.testing.assert_allclose(shrunk.log_odds - prior, 0.3 * (calibration.log_odds - prior))
    assert 0 < calibration.shrinkage(0.0) < 1e-3


def test_mixture_priors_of_overlapping_classes_are_the_true_priors():
    rng = np.random.default_rng(0)
    shares = np.array([0.7, 0.2, 0.1])
    y = rng.choice(3, size=4000, p=shares)
    scores = 1.5 * np.array([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]])[y] + rng.normal(size=(4000, 2))
    transition = NoiseModel(np.full((3, 3), 0.15) + 0.55 * np.eye(3))
    noise = transition.with_priors([0.6, 0.25, 0.15])
    priors = likeliest_priors(
        scores, Observations(transition.flip(y, rng), np.ones(4000), 4000), noise
    ).known_priors
    np.testing.assert_allclose(priors, np.bincount(y) / 4000, atol=4 * 0.5 / np.sqrt(4000))


class TestSeveralClasses:
    """Calibrations with (k − 1)² slopes must not overfit."""

    def test_random_labels_are_not_evidence(self):
        rng = np.random.default_rng(0)
        noise = NoiseModel.none(12).with_priors(np.full(12, 1 / 12))
        codes = rng.permutation(np.arange(600) % 12)
        calibration = calibrate(
            rng.normal(size=(600, 11)), Observations(codes, np.ones(600), 600), noise
        )
        assert calibration.probabilities.max(axis=1).mean() < 0.2
        assert (calibration.log_odds.argmax(axis=1) == codes).mean() < 0.15

    def test_leave_one_out_log_odds_do_not_depend_on_the_order_of_rows(self):
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

    def test_leave_one_out_log_odds_have_the_slope_of_new_rows(self):
        scores, codes = self.draw()
        scores -= scores.mean(axis=0)
        scores = scores @ np.linalg.inv(np.linalg.cholesky(np.cov(scores.T, bias=True))).T
        calibration = calibrate(scores, Observations(codes, np.ones(300), 300), self.noise)
        share = np.full(300, 1 / 300)
        mixture = ScoreMixture.fit(scores, codes, share, self.noise, 300)
        expected = mixture.left_out_logits(scores, share, None)
        slope_factor = calibration.logits[0, 1] / expected[0, 1]
        np.testing.assert_allclose(
            calibration.logits, slope_factor * expected, rtol=1e-4, atol=1e-4
        )
        np.testing.assert_allclose(
            calibration.model.slopes, slope_factor * mixture.directions, rtol=1e-4, atol=1e-4
        )
        intercepts = calibration.model.intercepts + slope_factor * mixture.middle
        for each, beyond in (
            (calibration.probabilities, calibration.intercepts),
            (calibration.model.probabilities(scores), intercepts),
        ):
            np.testing.assert_allclose(
                each.mean(axis=0), regularized_priors(self.noise, beyond, codes, 300), atol=1e-5
            )

    def test_other_noise_changes_slope_and_intercepts_only(self):
        scores, codes = self.draw()
        calibration = calibrate(scores, Observations(codes, np.ones(300), 300), self.noise)
        options = {"n_effective": 300.0, "priors_known": False}
        same = recalibrated(
            calibration.log_odds, Observations(codes, np.ones(300), **options), self.noise
        )
        np.testing.assert_allclose(same, calibration.probabilities, atol=0.04)
        cleaner = NoiseModel(0.5 * self.noise.transition + 0.5 * np.eye(3), self.noise.priors)
        other = recalibrated(
            calibration.log_odds, Observations(codes, np.ones(300), **options), cleaner
        )
        ratios = (
            np.log(other[:, 1:] / other[:, :1]),
            calibration.log_odds[:, 1:] - calibration.log_odds[:, :1],
        )
        for after, before in zip(*(ratio.T for ratio in ratios), strict=True):
            fitted = np.polyfit(before, after, 1)
            np.testing.assert_allclose(np.polyval(fitted, before), after, atol=1e-6)
        assert not np.allclose(other, same, atol=0.04)

    def draw(self):
        rng = np.random.default_rng(0)
        y = rng.integers(3, size=300)
        return np.array([[0.0, 1.0], [1.0, -1.0], [-1.5, 0.0]])[y] + rng.normal(size=(300, 2)), y


class TestLikeliestPriors:
    """Priors of three classes, from labels and scores together."""

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
        errors = []
        for seed in range(20):
            scores, codes, truth = self.draw(seed, **options)
            counted = self.noise.with_observed(np.bincount(codes, minlength=3) / len(codes))
            likeliest = fit_scores(scores, codes, counted, fit_priors)
            errors.append(
                [np.abs(model.known_priors - truth).max() for model in (counted, likeliest)]
            )
        return np.mean(errors, axis=0)

    def test_scores_reduce_the_error_of_counting(self):
        counted, likeliest = self.errors()
        assert likeliest < counted / 3

    def test_do_little_harm_if_scores_are_not_gaussian(self):
        counted, likeliest = self.errors(tails=2)
        assert likeliest < 1.2 * counted

    @pytest.mark.parametrize("observed", [(54, 66, 80), (70, 50, 80), (30, 90, 80)])
    def test_mixture_priors_are_weighted_by_their_fit_to_the_labels(self, observed):
        """Without variance within classes, mixture priors are the proportions of the rows, with one
        row added to each class.
        """
        counted_priors, y = np.array([0.5, 0.3, 0.2]), np.repeat(range(3), [40, 60, 100])
        transition, codes = 0.4 * np.eye(3) + 0.2, np.repeat(range(3), observed)
        scores = self.means[y]
        mixture_priors = (200 * np.array([0.2, 0.3, 0.5]) + 1) / 203
        covariance = sum(
            share * (np.diag(row) - np.outer(row, row))
            for share, row in zip(mixture_priors, transition, strict=True)
        )
        missed = np.array(observed) / 200 - mixture_priors @ transition
        misfit = 200 * missed @ np.linalg.solve(covariance + np.eye(3) / 200, missed)
        trust = min(1.0, chi2.isf(0.2, 2) / misfit) ** 2
        likeliest = fit_scores(scores, codes, NoiseModel(transition, counted_priors), fit_priors)
        np.testing.assert_allclose(
            likeliest.priors, trust * mixture_priors + (1 - trust) * counted_priors, rtol=1e-6
        )

    def test_uninformative_scores_change_nothing(self):
        _, codes, _ = self.draw(0)
        counted = self.noise.with_observed(np.bincount(codes) / 300)
        assert fit_scores(np.zeros((300, 2)), codes, counted, fit_priors) is counted


@pytest.mark.parametrize(("n", "apart"), [(20_000, 50.0), (2000, 1000.0)])
def test_slope_error_of_separated_classes_is_that_of_the_prior(n, apart):
    """If no probability is intermediate, any slope explains the labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.2, pi_neg=0.5)
    scores = rng.normal(size=n) + apart * (2 * y - 1)
    observations = Observations(noise.flip(y, random_state=0), np.ones(n), float(n))
    calibration = calibrate(scores[:, None], observations, noise)
    assert slope_std(calibration, observations, noise) == pytest.approx(1, rel=0.2)


def test_slope_error_of_three_separated_classes_is_that_of_the_prior():
    rng = np.random.default_rng(0)
    noise = NoiseModel(
        np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]), [0.3, 0.3, 0.4]
    )
    y = rng.permutation(np.repeat(range(3), [300, 300, 400]))
    scores = 1000 * np.array([[0.0, 1.0], [1.0, -1.0], [-1.5, 0.0]])[y] + rng.normal(size=(1000, 2))
    observations = Observations(noise.flip(y, random_state=0), np.ones(1000), 1000.0)
    calibration = calibrate(scores, observations, noise)
    assert slope_std(calibration, observations, noise) == pytest.approx(1, rel=0.2)
    np.testing.assert_array_equal(calibration.log_odds.argmax(axis=1), y)


@pytest.mark.parametrize("n_copies", [7, 9])
def test_duplicates_of_several_classes_equal_weights(n_copies):
    """For both calibrations: from 800 rows of three classes on, rows are not left out.

    Duplicates count once.
    """
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
