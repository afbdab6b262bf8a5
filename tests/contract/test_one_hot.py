"""One-hot rows and singletons, which share almost no features: there is nothing to learn."""

import numpy as np
import pytest

from unflip import LPClassifier, NoiseModel
from unflip.ridge.label_association import SURE

# Warnings of heuristic noise rates and of few rows.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

ONE_HOT = np.eye(200)[:, :50]  # rows 50 to 199 are duplicates
JITTER = 1e-13


def noisy(n_classes, seed):
    """Return noise and labels that are independent of the rows."""
    noise = NoiseModel(0.7 * np.eye(n_classes) + 0.3 / n_classes, np.full(n_classes, 1 / n_classes))
    rng = np.random.default_rng(seed)
    return noise, noise.flip(rng.integers(n_classes, size=200), rng)


def jittered(X, seed=1):
    return X + JITTER * np.random.default_rng(seed).normal(size=X.shape)


def check_priors(clf, X, prior):
    assert clf.association_ < SURE
    assert clf.expected_accuracy_ == pytest.approx(prior, abs=0.1)
    assert clf.predict_proba(X).max() < prior + 0.1
    assert clf.label_posterior_.max() < 0.99


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("n_classes", [2, 4])
def test_one_hot_rows_give_the_priors(n_classes, seed):
    noise, observed = noisy(n_classes, seed)
    check_priors(LPClassifier(noise).fit(ONE_HOT, observed), ONE_HOT, 1 / n_classes)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("n_classes", [2, 4])
def test_one_hot_rows_with_rounding_errors_give_the_priors(n_classes, seed):
    noise, observed = noisy(n_classes, seed)
    X = jittered(ONE_HOT)
    check_priors(LPClassifier(noise).fit(X, observed), X, 1 / n_classes)


def test_singletons_give_the_observed_proportions():
    X, observed = np.eye(5, 60), [0, 1, 0, 1, 1]
    clf = LPClassifier(fit_intercept=False).fit(X, observed)
    assert clf.expected_accuracy_ == pytest.approx(0.6, abs=1e-3)
    np.testing.assert_allclose(clf.predict_proba(X)[:, 1], 0.6, atol=1e-3)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_rounding_errors_of_singletons_do_not_matter(fit_intercept):
    X, observed = np.eye(5, 60), [0, 1, 0, 1, 1]
    for seed in range(5):
        now, then = (
            LPClassifier(fit_intercept=fit_intercept).fit(rows, observed)
            for rows in (X, jittered(X, seed))
        )
        np.testing.assert_allclose(then.decision_function(X), now.decision_function(X), atol=3e-3)
        assert then.expected_accuracy_ == pytest.approx(now.expected_accuracy_, abs=1e-3)


@pytest.mark.parametrize("noise_given", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_rounding_errors_of_one_hot_rows_do_not_matter(seed, noise_given):
    """Duplicates become distinct rows, which are left out alone, so leave-one-out log-odds may
    change slightly.
    """
    noise, observed = noisy(2, seed)
    option = noise if noise_given else "estimate"
    now, then = (LPClassifier(option).fit(X, observed) for X in (ONE_HOT, jittered(ONE_HOT)))
    np.testing.assert_allclose(
        then.decision_function(ONE_HOT), now.decision_function(ONE_HOT), atol=1e-3
    )
    np.testing.assert_allclose(then.loo_log_odds_, now.loo_log_odds_, atol=1e-2)
