"""The read-out: Gaussian class scores recovered from noisy labels, and calm behaviour without signal."""

import numpy as np
import pytest

from unflip import NoiseModel
from unflip.decoder import gaussian_readout, symmetric_readout

NOISE = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)


def draw(n, means, std, noise, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) > noise.priors[0]).astype(int)
    return np.array(means)[y] + std * rng.normal(size=n), noise.flip(y, rng), y


def true_log_odds(scores, means, std, noise):
    slope = (means[1] - means[0]) / std**2
    return slope * (scores - sum(means) / 2) + np.log(noise.priors[1] / noise.priors[0])


@pytest.mark.parametrize("means", [(-0.1, 0.3), (5.0, 7.0)])
def test_gaussian_readout_finds_the_log_odds_of_the_true_label(means):
    std = (means[1] - means[0]) / 2
    scores, codes, _ = draw(200_000, means, std, NOISE)
    readout = gaussian_readout(scores, codes, np.ones(len(scores)), NOISE, n_rows=len(scores))
    points = np.linspace(means[0], means[1], 5)
    np.testing.assert_allclose(readout(points), true_log_odds(points, means, std, NOISE), atol=0.06)


def test_without_noise_it_is_linear_discriminant_analysis():
    clean = NoiseModel.none().with_priors([0.4, 0.6])
    scores, codes, _ = draw(500, (0.0, 1.0), 0.7, clean)
    readout = gaussian_readout(scores, codes, np.ones(500), clean, n_rows=500)
    means = [scores[codes == a].mean() for a in (0, 1)]
    variance = np.mean((scores - np.array(means)[codes]) ** 2)
    assert readout.slope == pytest.approx((means[1] - means[0]) / variance)
    assert readout.offset == pytest.approx(np.log(1.5) - readout.slope * sum(means) / 2)


def test_probabilities_are_calibrated_for_the_true_label():
    scores, codes, y = draw(100_000, (-1.0, 0.5), 1.0, NOISE, seed=1)
    readout = gaussian_readout(scores, codes, np.ones(len(scores)), NOISE, n_rows=len(scores))
    probability = 1 / (1 + np.exp(-readout(scores)))
    for low in np.arange(0.1, 0.9, 0.2):
        inside = (probability >= low) & (probability < low + 0.2)
        error = 0.5 / np.sqrt(inside.sum())
        assert abs(y[inside].mean() - probability[inside].mean()) < 4 * error + 0.01


def test_weights_are_copies():
    scores, codes, _ = draw(400, (-1.0, 0.5), 1.0, NOISE)
    weights = np.random.default_rng(0).integers(1, 4, size=400)
    for fit in (gaussian_readout, symmetric_readout):
        weighted = fit(scores, codes, weights.astype(float), NOISE, n_rows=400)
        repeated = fit(scores.repeat(weights), codes.repeat(weights), np.ones(weights.sum()), NOISE, n_rows=400)
        assert weighted.slope == pytest.approx(repeated.slope, rel=1e-7)
        assert weighted.offset == pytest.approx(repeated.offset, rel=1e-7)


def test_symmetric_readout_finds_the_slope_of_the_papers_model():
    noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.3, pi_neg=0.5)
    scores, codes, _ = draw(200_000, (-0.4, 0.4), 0.5, noise)
    readout = symmetric_readout(scores, codes, np.ones(len(scores)), noise, n_rows=len(scores))
    assert readout.offset == 0
    assert readout.slope == pytest.approx(2 * 0.4 / 0.5**2, rel=0.02)


@pytest.mark.parametrize("fit", [gaussian_readout, symmetric_readout])
def test_scores_that_contradict_their_labels_keep_their_order_but_say_little(fit):
    clean = NoiseModel.none().with_priors([0.5, 0.5])
    readout = fit(np.array([1.0, 2.0, -1.0, -2.0]), np.array([0, 0, 1, 1]), np.ones(4), clean, n_rows=4)
    assert 0 < readout.slope < 0.01


@pytest.mark.parametrize("fit", [gaussian_readout, symmetric_readout])
@pytest.mark.parametrize("scores", [np.zeros(6), np.full(6, 0.3), np.repeat([-1.0, 1.0], 3)])
def test_degenerate_scores_give_finite_answers(fit, scores):
    clean = NoiseModel.none().with_priors([0.5, 0.5])
    readout = fit(scores, np.repeat([0, 1], 3), np.ones(6), clean, n_rows=6)
    assert np.isfinite([readout.slope, readout.offset]).all()


@pytest.mark.parametrize("fit", [gaussian_readout, symmetric_readout])
def test_few_rows_that_fall_apart_are_not_read_as_certainty(fit):
    clean = NoiseModel.none().with_priors([0.5, 0.5])
    for n in (2, 20, 200):
        scores = np.repeat([-1.0, 1.0], n // 2)
        readout = fit(scores, (scores > 0).astype(int), np.ones(n), clean, n_rows=n)
        assert readout(1.0) == pytest.approx(2 * n)  # means ±1, variance 1/n


@pytest.mark.parametrize("shape", ["heavy tails", "skewed", "two humps"])
def test_scores_that_are_not_gaussian_are_read_by_their_labels(shape):
    """The log-odds are then not linear, but the best line must come close to the one fitted to clean labels."""
    rng = np.random.default_rng(0)
    n = 20_000
    y = (rng.random(n) > NOISE.priors[0]).astype(int)
    error = {
        "heavy tails": rng.standard_t(3, size=n) / np.sqrt(3),
        "skewed": rng.exponential(size=n) - 1,
        "two humps": 0.9 * rng.choice([-1, 1], size=n) + np.sqrt(0.19) * rng.normal(size=n),
    }[shape]
    scores = 0.6 * (2 * y - 1) + error
    noisy = gaussian_readout(scores, NOISE.flip(y, rng), np.ones(n), NOISE, n_rows=n)
    clean = gaussian_readout(scores, y, np.ones(n), NoiseModel.none().with_priors(NOISE.priors), n_rows=n)
    assert noisy.slope == pytest.approx(clean.slope, rel=0.25)
    assert noisy.offset == pytest.approx(clean.offset, abs=0.15)


def test_label_moments_that_leave_no_variance_are_not_used():
    """Strong noise and few rows: means by labels overshoot beyond the spread of the scores in some draws."""
    steep = 0
    for seed in range(200):
        scores, codes, _ = draw(60, (-0.5, 0.5), 1.0, NOISE, seed=seed)
        steep += gaussian_readout(scores, codes, np.ones(60), NOISE, n_rows=60).slope > 20
    assert steep == 0


def test_rounding_errors_are_not_read_as_scores():
    scores = 0.3 + np.finfo(float).eps * np.arange(6)
    readout = gaussian_readout(scores, np.repeat([0, 1], 3), np.ones(6), NOISE, n_rows=6)
    assert readout.slope == 0
