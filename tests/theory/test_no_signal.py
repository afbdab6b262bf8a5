"""Labels independent of the features: expected accuracy must be that of the class priors."""

import warnings

import numpy as np
import pytest
from scipy.stats import chi2

from unflip import LPClassifier, NoiseModel, audit
from unflip.data.duplicates import DistinctRows
from unflip.datasets import make_mixture
from unflip.estimation.loo_scores import class_scores
from unflip.ridge.label_association import SURE

#: Rows and features: n/p from .03 to 2.
SHAPES = [(60, 2000), (60, 300), (200, 400), (200, 200), (200, 100)]
CLASSES = [2, 3, 5, 10]
FALSE_DISCOVERY_RATE = 0.1
LARGEST_EXCESS = 0.1
MOST_SUSPECTS = 0.01


def uniform_noise(n_classes, rate=0.3):
    """Return noise that replaces this share of labels by random ones; classes are balanced."""
    k = n_classes
    return NoiseModel((1 - rate) * np.eye(k) + rate / k, np.full(k, 1 / k))


def draw(n_classes, shape, seed, noise):
    """Return Gaussian rows and independent labels with each class at least once."""
    rng = np.random.default_rng([seed, n_classes, *shape])
    while True:
        X = rng.normal(size=shape)
        observed = noise.flip(rng.integers(n_classes, size=shape[0]), rng)
        if len(np.unique(observed)) == n_classes:
            return X, observed


def audited(n_classes, shape, seed, is_known):
    """Return the expected accuracy beyond chance, and the share of suspects, of an audit."""
    noise = uniform_noise(n_classes)
    X, observed = draw(n_classes, shape, seed, noise)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # heuristic rates, and few rows
        result = audit(
            X,
            observed,
            noise=noise if is_known else "estimate",
            false_discovery_rate=FALSE_DISCOVERY_RATE,
        )
    chance = 1 / n_classes if is_known else np.bincount(observed).max() / len(observed)
    return result.expected_accuracy - chance, result.n_suspects / len(observed)


def check(n_classes, is_known, seeds):
    """Assert that 99% of the draws expect chance accuracy and have almost no suspects.

    With known noise rates no draw has suspects. With estimated ones, a false positive of the
    association test may bring suspects with it.
    """
    draws = [audited(n_classes, shape, seed, is_known) for shape in SHAPES for seed in seeds]
    excess, suspects = np.array(draws).T
    assert (np.abs(excess) > LARGEST_EXCESS).mean() <= 0.01
    assert (suspects > MOST_SUSPECTS).mean() <= (0.0 if is_known else 0.01)


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("n_classes", CLASSES)
def test_expected_accuracy_without_signal_is_chance(n_classes, is_known):
    check(n_classes, is_known, range(1))


@pytest.mark.slow
@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("n_classes", CLASSES)
def test_expected_accuracy_without_signal_is_chance_over_many_draws(n_classes, is_known):
    check(n_classes, is_known, range(1000, 1040))


def test_expected_accuracy_of_overfitted_rows_is_chance():
    """If label leakage is not removed in full, refined targets expect an accuracy of .9998."""
    noise = NoiseModel(0.7 * np.eye(3) + 0.1, np.full(3, 1 / 3))
    rng = np.random.default_rng(15)
    X = rng.normal(size=(200, 400))
    y = rng.integers(3, size=200)
    clf = LPClassifier(noise).fit(X, noise.flip(y, random_state=15))
    assert clf.association_ < SURE
    assert clf.expected_accuracy_ == pytest.approx(1 / 3, abs=1e-3)
    assert clf.label_posterior_.max() < 0.81  # that of the label alone is .8


def share_of_false_positives(n_classes, shapes, seeds):
    """Return how often features without signal pass the association test, with reg selected."""
    noise = uniform_noise(n_classes)
    passed = []
    for shape in shapes:
        for seed in seeds:
            X, observed = draw(n_classes, shape, seed, noise)
            associated = class_scores(DistinctRows.of(X), observed, n_classes)[1]
            passed.append(associated >= SURE)
    return np.mean(passed), len(passed)


def test_the_classifier_has_the_same_association():
    noise = uniform_noise(3)
    X, observed = draw(3, (60, 30), 0, noise)
    expected = class_scores(DistinctRows.of(X), observed, 3)[1]
    assert LPClassifier(noise).fit(X, observed).association_ == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
def test_false_positives_are_rare():
    """None of 4,169 draws passed, over all shapes and numbers of classes."""
    shares = [share_of_false_positives(k, SHAPES, range(100)) for k in CLASSES]
    rate = np.mean([share for share, _ in shares])
    n_draws = sum(n for _, n in shares)
    assert n_draws >= 1500
    assert rate < 0.0005 + 4 * np.sqrt(0.0005 / n_draws)


@pytest.mark.parametrize("p", [1, 2, 5])
def test_few_features_pass_no_more_often(p):
    """Agreement is a sum of p squares, which would pass more often without a correction."""
    share, n_draws = share_of_false_positives(2, [(200, p)], range(500))
    assert chi2.sf(p + SURE * np.sqrt(2 * p), p) > 0.002
    assert share < 0.0005 + 4 * np.sqrt(0.0005 / n_draws)


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize(("n_classes", "error"), [(2, 0.05), (3, 0.05), (5, 0.05), (10, 0.1)])
def test_a_clear_signal_passes(n_classes, is_known, error):
    """Expected accuracies are those on new rows with clean labels."""
    noise, p = uniform_noise(n_classes), 60
    for seed in range(2):
        rng = np.random.default_rng([seed, n_classes])
        means = 3.5 * np.eye(n_classes, p)
        X, y = make_mixture(400, p, means=means, priors=noise.priors, random_state=rng)
        X_new, y_new = make_mixture(4000, p, means=means, priors=noise.priors, random_state=rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # few rows for so many classes
            clf = LPClassifier(noise if is_known else "estimate").fit(X, noise.flip(y, rng))
        accuracy = clf.score(X_new, y_new)
        assert clf.association_ > 3 * SURE
        assert accuracy > 0.85
        assert clf.expected_accuracy_ == pytest.approx(accuracy, abs=error)
