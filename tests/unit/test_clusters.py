"""Gaussian clusters with noisy labels: likelihood, fit and standard errors."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

from unflip.estimation.clusters import (
    Clusters,
    _scores,
    fit_clusters,
    prior_influence,
    standard_errors,
)

TRANSITION = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.25, 0.15, 0.6]])
TRUTH = Clusters(
    priors=np.array([0.3, 0.3, 0.4]),
    means=np.array([[-1.5, 0.0], [1.5, -0.5], [0.0, 2.0]]),
    covariance=np.array([[0.4, 0.1], [0.1, 0.3]]),
    transition=TRANSITION,
)


def draw(clusters, n, seed):
    rng = np.random.default_rng(seed)
    k, r = clusters.means.shape
    true = rng.choice(k, size=n, p=clusters.priors)
    w = clusters.means[true] + rng.multivariate_normal(np.zeros(r), clusters.covariance, size=n)
    return w, clusters.noise.flip(true, rng)


def test_likelihood_equals_that_of_the_mixture():
    w, codes = draw(TRUTH, 50, 0)
    direct = sum(
        TRUTH.priors[a]
        * multivariate_normal(TRUTH.means[a], TRUTH.covariance).pdf(w)
        * TRANSITION[a, codes]
        for a in range(3)
    )
    assert TRUTH.log_likelihood(w, codes) == pytest.approx(np.log(direct).sum(), abs=1e-10)
    np.testing.assert_allclose(TRUTH.membership(w, codes).sum(axis=1), 1, atol=1e-12)


def test_scores_equal_the_derivatives_of_the_likelihood():
    w, codes = draw(TRUTH, 40, 1)

    def likelihood(parameters):
        rates, priors, means, shape = np.split(parameters, [6, 8, 14])
        transition = np.zeros((3, 3))
        transition[~np.eye(3, dtype=bool)] = rates
        np.fill_diagonal(transition, 1 - transition.sum(axis=1))
        covariance = np.array([[shape[0], shape[1]], [shape[1], shape[2]]])
        fit = Clusters(
            np.append(priors, 1 - priors.sum()), means.reshape(3, 2), covariance, transition
        )
        return fit.log_likelihood(w, codes)

    at = np.concatenate(
        [TRANSITION[~np.eye(3, dtype=bool)], TRUTH.priors[:2], TRUTH.means.ravel(), [0.4, 0.1, 0.3]]
    )
    numeric = approx_fprime(at, likelihood, 1e-6)
    analytic = _scores(TRUTH, w, codes).sum(axis=0)
    analytic[-2] *= 2  # the off-diagonal entry of the covariance occurs twice
    np.testing.assert_allclose(analytic, numeric, rtol=1e-3, atol=1e-2)


def test_many_rows_recover_the_parameters():
    w, codes = draw(TRUTH, 20_000, 2)
    fit = fit_clusters(w, codes, 3)
    errors = standard_errors(fit, w)
    np.testing.assert_array_less(np.abs(fit.transition - TRANSITION), 4.5 * errors)
    np.testing.assert_allclose(fit.priors, TRUTH.priors, atol=0.02)
    np.testing.assert_allclose(fit.means, TRUTH.means, atol=0.05)
    assert errors.max() < 0.02


def test_standard_errors_match_the_spread_over_draws():
    fits, claimed, priors, influence = [], [], [], []
    for seed in range(60):
        w, codes = draw(TRUTH, 800, 100 + seed)
        fit = fit_clusters(w, codes, 3)
        fits.append(fit.transition)
        claimed.append(standard_errors(fit, w))
        priors.append(fit.priors[0])
        influence.append(np.sqrt(np.mean(prior_influence(fit, w, codes)[:, 0] ** 2) / 800))
    # A standard deviation over 60 draws has a relative standard error of 9%; nine are compared.
    np.testing.assert_allclose(np.std(fits, axis=0) / np.mean(claimed, axis=0), 1, atol=0.36)
    assert np.std(priors) / np.mean(influence) == pytest.approx(1, abs=0.36)


def test_standard_errors_by_class_are_close_to_the_joint_ones(monkeypatch):
    """Priors and shape are taken to be known, which matters little if clusters hardly overlap."""
    w, codes = draw(TRUTH, 4000, 7)
    fit = fit_clusters(w, codes, 3)
    joint = standard_errors(fit, w)
    monkeypatch.setattr("unflip.estimation.clusters._MOST_PARAMETERS", 0)
    by_class = standard_errors(fit, w)
    assert (by_class <= joint).all()
    np.testing.assert_allclose(by_class, joint, rtol=0.25)


def test_clusters_are_matched_to_classes():
    """Even if labels are too noisy to start from them alone."""
    noisy = Clusters(
        TRUTH.priors, TRUTH.means, TRUTH.covariance, np.full((3, 3), 0.3) + 0.1 * np.eye(3)
    )
    w, codes = draw(noisy, 5000, 3)
    fit = fit_clusters(w, codes, 3)
    assert (np.abs(fit.means - TRUTH.means) < 0.3).all()
    np.testing.assert_allclose(fit.transition, noisy.transition, atol=0.06)


@pytest.mark.parametrize("order", ["tiled", "sorted"])
def test_order_of_many_rows_does_not_matter(order):
    """Starting values come from a sample of the rows, in which all classes must occur."""
    rng = np.random.default_rng(0)
    y = np.tile(np.arange(4), 4000) if order == "tiled" else np.repeat(np.arange(4), 4000)
    codes = np.where(rng.random(16_000) < 0.2, rng.integers(4, size=16_000), y)
    w = 5.0 * np.eye(4)[:, :3][y] + rng.normal(size=(16_000, 3))
    fit = fit_clusters(w, codes, 4)
    np.testing.assert_allclose(np.diag(fit.transition), 0.85, atol=0.02)
    assert standard_errors(fit, w).max() < 0.02


def test_estimated_rates_are_positive():
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=300)
    fit = fit_clusters(10.0 * codes[:, None] + rng.normal(size=(300, 1)), codes, 2)
    assert 0 < fit.transition[0, 1] < 0.01
    assert np.isfinite(standard_errors(fit, 10.0 * codes[:, None])).all()
