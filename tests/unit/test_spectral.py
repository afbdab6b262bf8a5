"""Spikes of the covariance: formulas, estimates without labels, and invalid input."""

import numpy as np
import pytest

from unflip.datasets import make_mixture
from unflip.estimation import spectral_mixture
from unflip.estimation.spectral import Spikes, _strength, bulk_edge, proportion_along
from unflip.ridge.spectrum import decompose


@pytest.mark.parametrize("aspect", [0.1, 1.0, 4.0])
def test_strengths_invert_the_eigenvalue_of_a_spike(aspect):
    strengths = np.sqrt(aspect) * np.array([1.0, 1.1, 3.0, 100.0])
    eigenvalues = (1 + strengths) * (1 + aspect / strengths)
    np.testing.assert_allclose(_strength(eigenvalues, aspect), strengths, rtol=1e-7)


@pytest.mark.parametrize(("n", "p"), [(400, 100), (100, 400)])
def test_primal_and_dual_spectra_show_the_same_spikes(n, p):
    X, _ = make_mixture(n, p, mean_norm=4.0, random_state=0)
    # More columns than rows force the dual; empty columns only change p.
    embedded = np.hstack([X, np.zeros((n, abs(n - p) + n))])
    variances = [np.sort(decompose(rows).variances)[-min(n, p) + 1 :] for rows in (X, embedded)]
    np.testing.assert_allclose(variances[0], variances[1], atol=1e-9)
    first, second = (decompose(rows).coordinates(1)[:, 0] for rows in (X, embedded))
    np.testing.assert_allclose(first, np.sign(first @ second) * second, atol=1e-7)
    assert first.mean() == pytest.approx(0, abs=1e-10)
    assert first.var() == pytest.approx(1, abs=1e-10)


@pytest.mark.parametrize(("n", "p", "mean_norm"), [(600, 60, 1.5), (200, 400, 3.5)])
def test_mixture_parameters_without_labels_origin_or_unit(n, p, mean_norm):
    estimates = []
    for seed in range(30):
        X, _ = make_mixture(n, p, mean_norm=mean_norm, priors=[0.3, 0.7], random_state=seed)
        mixture = spectral_mixture(7 - 0.2 * X)
        estimates.append([mixture.mean_norm, mixture.pi_small, mixture.noise_std])
    estimates = np.array(estimates)
    error = estimates.std(axis=0, ddof=1) / np.sqrt(30)
    np.testing.assert_array_less(
        np.abs(estimates.mean(axis=0) - [mean_norm, 0.3, 0.2]), 4 * error + 1 / n
    )


def test_visibility_is_the_squared_correlation_with_the_class():
    gaps = []
    for seed in range(30):
        X, y = make_mixture(300, 300, mean_norm=2.0, random_state=seed)
        spikes = Spikes.of(decompose(X))
        gaps.append(np.corrcoef(spikes.coordinates[:, 0], y)[0, 1] ** 2 - spikes.visibility[0])
    assert abs(np.mean(gaps)) < 4 * np.std(gaps) / np.sqrt(30) + 1 / 300


@pytest.mark.parametrize(("n", "p"), [(500, 50), (150, 300)])
def test_isotropic_noise_shows_no_spike_and_no_excess_spread(n, p):
    noise = [
        Spikes.of(decompose(np.random.default_rng(seed).normal(size=(n, p)))) for seed in range(60)
    ]
    assert np.mean([len(spikes.strengths) > 0 for spikes in noise]) <= 0.05  # 1% expected
    spread = np.array([spikes.excess_spread for spikes in noise])
    assert abs(spread.mean()) < 0.6
    assert 0.6 < spread.std() < 1.4


def test_a_spike_does_not_change_the_spread_of_the_bulk():
    spread = []
    for seed in range(60):
        X, _ = make_mixture(200, 300, mean_norm=4.0, random_state=seed)
        spread.append(Spikes.of(decompose(X)).excess_spread)
    assert abs(np.mean(spread)) < 4 * np.std(spread) / np.sqrt(60) + 0.1


def test_unequal_variances_increase_the_spread_of_the_bulk():
    X = np.random.default_rng(0).normal(size=(500, 50)) * np.linspace(0.8, 1.2, 50)
    assert Spikes.of(decompose(X)).excess_spread > 5


def test_edge_tends_to_that_of_marchenko_and_pastur():
    assert bulk_edge(10**8, 4 * 10**8) == pytest.approx((1 + 0.5) ** 2, abs=1e-5)


def test_proportions_along_a_spike():
    rng = np.random.default_rng(0)
    right = rng.random(40_000) < 0.2
    visibility = 0.6
    scale = np.sqrt(visibility / (0.2 * 0.8))
    coordinates = np.where(right, 0.8 * scale, -0.2 * scale) + np.sqrt(1 - visibility) * rng.normal(
        size=40_000
    )
    assert proportion_along(coordinates, visibility) == pytest.approx(right.mean(), abs=0.01)
    assert proportion_along(-coordinates, visibility) == pytest.approx(1 - right.mean(), abs=0.01)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            np.random.default_rng(0).normal(size=(100, 100)),
            "No eigenvalue of the covariance of X exceeds the level of isotropic noise",
        ),
        (
            np.random.default_rng(0).normal(size=(100, 1)),
            "No eigenvalue of the covariance of X exceeds",
        ),
        (np.full((10, 2), np.nan), "contains NaN"),
        (np.zeros((3, 2)), "minimum of 4 is required"),
        (np.zeros((9, 3)), "No eigenvalue of the covariance of X exceeds"),
    ],
)
def test_rows_without_a_spike_raise(rows, message):
    with pytest.raises(ValueError, match=message):
        spectral_mixture(rows)
