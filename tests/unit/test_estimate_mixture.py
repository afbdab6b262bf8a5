"""Class means and covariances from noisy labels, and predictions from them."""

import numpy as np
import pytest

from unflip import NoiseModel, theory
from unflip.datasets import make_mixture
from unflip.estimation import estimate_mixture

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
P = 30


def draw(n, covariances=None, seed=0):
    means = np.array([-1.0, 1.0])[:, None] * np.linspace(0.1, 0.4, P)
    X, y = make_mixture(
        n, P, means=means, priors=[0.4, 0.6], covariances=covariances, random_state=seed
    )
    return X + 5, NOISE.flip(y, random_state=seed), means[1]


@pytest.mark.parametrize("common", [True, False])
def test_many_rows_recover_the_parameters(common):
    shapes = np.array(
        [
            np.diag(np.linspace(0.5, 1.5, P)),
            np.diag(np.linspace(0.5, 1.5, P) * (1 if common else 3)),
        ]
    )
    X, observed, mu = draw(100_000, shapes)
    mixture = estimate_mixture(X, np.array(["a", "b"])[observed], NOISE, common_covariance=common)
    np.testing.assert_allclose(mixture.mean, mu, atol=0.03)
    np.testing.assert_allclose(mixture.noise.priors, [0.4, 0.6], atol=0.01)
    # Mislabelled rows add 4P(1 − P)μμᵀ to the covariance of each observed class.
    posterior = NOISE.with_priors([0.4, 0.6]).posterior
    mixed = np.array(
        [w @ shapes.reshape(2, -1) + 4 * w[0] * w[1] * np.outer(mu, mu).ravel() for w in posterior]
    )
    unmixing = (
        np.tile(NOISE.with_priors([0.4, 0.6]).observed, (2, 1))
        if common
        else np.linalg.inv(posterior)
    )
    expected = (unmixing @ mixed).reshape(2, P, P)
    error = np.sqrt(2 / 30_000) * shapes.max() * np.linalg.norm(unmixing, axis=1)
    np.testing.assert_allclose(mixture.cov_neg, expected[0], atol=5 * error[0])
    np.testing.assert_allclose(mixture.cov_pos, expected[1], atol=5 * error[1])


def test_length_of_the_mean_is_corrected_for_noise():
    """In high dimension the raw difference of means is far too long."""
    lengths = []
    for seed in range(20):
        X, y = make_mixture(300, 600, mean_norm=2.0, random_state=seed)
        mixture = estimate_mixture(X, NOISE.flip(y, random_state=seed), NOISE)
        lengths.append(np.sum(np.square(mixture.mean)))
    error = np.std(lengths, ddof=1) / np.sqrt(20)
    assert abs(np.mean(lengths) - 4.0) < 4 * error
    assert error < 0.5


def test_predictions_are_unbiased():
    predicted = []
    for seed in range(12):
        X, y = make_mixture(400, 200, mean_norm=1.5, random_state=seed)
        mixture = estimate_mixture(X, NOISE.flip(y, random_state=seed), NOISE)
        predicted.append(
            float(theory.predict_mixture(mixture, reg=10.0, fit_intercept=True).accuracy)
        )
    truth = theory.Mixture(mean_norm=1.5, aspect=0.5, noise=NOISE.with_priors([0.5, 0.5]))
    expected = float(theory.predict(truth, reg=10.0, fit_intercept=True).accuracy)
    error = np.std(predicted, ddof=1) / np.sqrt(12)
    assert abs(np.mean(predicted) - expected) < 4 * error
    assert error < 0.015


def test_no_signal_gives_a_mean_of_zero_in_half_of_the_draws():
    X = np.random.default_rng(0).normal(size=(200, 400))
    lengths = [
        np.linalg.norm(
            estimate_mixture(X, np.random.default_rng(s).integers(2, size=200), NOISE).mean
        )
        for s in range(20)
    ]
    # Noise is below its expectation about half of the time; otherwise the excess is small.
    assert 3 <= np.sum(np.array(lengths) == 0) <= 17
    assert max(lengths) < 1.5


@pytest.mark.parametrize(
    ("y", "noise", "message"),
    [
        (np.arange(20) % 3, NOISE, "requires two classes; y has 3"),
        (np.arange(20) % 2, NoiseModel(np.eye(3)), "the noise model 3"),
        (np.arange(20) == 0, NoiseModel.none(), "has one row only"),
        (np.arange(19) % 2, NOISE, "inconsistent numbers of samples"),
        (np.arange(20) % 2, "mild", "noise = 'mild' must be a NoiseModel"),
    ],
)
def test_invalid_input_raises(y, noise, message):
    with pytest.raises(ValueError, match=message):
        estimate_mixture(np.random.default_rng(0).normal(size=(20, 3)), y, noise)
