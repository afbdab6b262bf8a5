"""How P(label wrong) changes with noise rates, slope and intercepts, and its mean over them."""

import numpy as np
import pytest
from scipy.special import expit, logit, softmax

from support.logits import BOTH
from unflip import NoiseModel, audit_scores
from unflip.calibration.log_odds import label_posterior
from unflip.labels.noise import shares_of_wrong_labels


def evidence_of(noise, n=200, seed=0):
    """Return the evidence of an audit of probabilities that predict the labels."""
    rng = np.random.default_rng(seed)
    k = noise.n_classes
    y = rng.choice(k, size=n, p=noise.priors)
    log_odds = 2.0 * np.eye(k)[y] + rng.normal(size=(n, k))
    return audit_scores(softmax(log_odds, axis=1), noise.flip(y, rng), noise=noise).evidence


def wrong_log_odds(evidence, rate_changes, log_slope, intercepts):
    """Return the log-odds that labels are wrong, by definition."""
    transition = evidence.noise.model.transition
    rates = 1 - np.diag(transition) + rate_changes
    moved = rates[:, None] * shares_of_wrong_labels(transition) + np.diag(1 - rates)
    logits = np.exp(log_slope) * np.log(evidence.probabilities) + intercepts
    posterior = label_posterior(softmax(logits, axis=1), evidence.codes, NoiseModel(moved))
    return logit(1 - posterior[np.arange(len(evidence.codes)), evidence.codes])


@BOTH
def test_gradient_matches_finite_differences(noise):
    evidence = evidence_of(noise)
    k = noise.n_classes
    rows = np.arange(len(evidence.codes))
    step = 1e-6
    for j in range(2 * k + 1):
        change = step * np.eye(2 * k + 1)[j]
        ends = [
            wrong_log_odds(evidence, sign * change[:k], sign * change[k], sign * change[k + 1 :])
            for sign in (1, -1)
        ]
        expected = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(
            evidence.wrong_gradient(rows)[:, j], expected, rtol=1e-5, atol=1e-7
        )


@BOTH
def test_marginal_probabilities_are_means_over_the_standard_errors(noise):
    evidence = evidence_of(noise)
    k = noise.n_classes
    rows = np.arange(len(evidence.codes))
    rng = np.random.default_rng(0)
    draws = rng.multivariate_normal(np.zeros(2 * k + 1), evidence.parameter_covariance, size=4000)
    total = np.zeros(len(evidence.codes))
    for change in draws:
        total += expit(
            wrong_log_odds(evidence, np.zeros(k), change[k], change[k + 1 :])
            + evidence.wrong_gradient(rows)[:, :k] @ change[:k]
        )
    # Log-odds are linear in the rates and intercepts only approximately.
    np.testing.assert_allclose(evidence.marginal_wrong(rows), total / 4000, atol=0.03)


def test_exact_parameters_change_nothing():
    noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1, pi_neg=0.4)
    many = evidence_of(noise, n=20_000)
    np.testing.assert_allclose(many.marginal_wrong(np.arange(20_000)), many.wrong, atol=0.01)


def test_uncertain_rates_reduce_the_certainty():
    noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.2, pi_neg=0.5)
    evidence = evidence_of(noise, n=400)
    suspects = evidence.wrong > 0.8
    assert suspects.sum() > 10
    assert (evidence.marginal_wrong(np.flatnonzero(suspects)) < evidence.wrong[suspects]).all()
    assert evidence.marginal_wrong(np.arange(400)).sum() == pytest.approx(
        evidence.wrong.sum(), rel=0.1
    )


@pytest.mark.parametrize("scale", [3.0, -3.0])
def test_known_priors_make_offsets_of_scores_irrelevant(scale):
    """Known priors fix the intercepts, so the error of the slope must not depend on them."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    log_odds = 2.0 * (2 * y - 1) + 2.0 * rng.normal(size=400)
    observed = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1).flip(y, rng)

    def accuracy_error(offset):
        positive = expit(log_odds + offset)
        given = np.column_stack([1 - positive, positive])
        noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1, pi_neg=0.5)
        return audit_scores(given, observed, noise=noise).expected_accuracy_std

    assert accuracy_error(scale) == pytest.approx(accuracy_error(0.0), rel=0.05)
