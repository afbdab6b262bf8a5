"""Votes with independent errors, with errors shared by difficulty, and with checked rows."""

import numpy as np
import pytest
from scipy.stats import norm

from unflip import LPClassifier, Votes, audit
from unflip.datasets import make_mixture
from unflip.labels.crowd import Crowd

N, P, MEAN_NORM = 1000, 50, 1.2
SKILLS = np.linspace(0.6, 0.85, 8)


def drawn(seed, spread, correlation):
    """Return samples, true classes, and votes of the model of shared difficulty."""
    X, y = make_mixture(N, P, mean_norm=MEAN_NORM, random_state=seed)
    rng = np.random.default_rng((seed, 1))
    means = [X[y == a].mean(axis=0) for a in (0, 1)]
    scores = X @ (means[1] - means[0])
    margins = np.empty(N)
    for a in (0, 1):
        own = scores[y == a] * (2 * a - 1)
        margins[y == a] = (own - own.mean()) / own.std()
    z = correlation * margins + np.sqrt(1 - correlation**2) * rng.normal(size=N)
    # Both classes have the same skill, so half the distance of the thresholds is the threshold.
    thresholds = norm.ppf(SKILLS)
    loadings = spread * thresholds
    right = norm.cdf((thresholds + loadings * z[:, None]) / np.sqrt(1 - loadings**2))
    labels = np.where(rng.random((N, len(SKILLS))) < right, y[:, None], 1 - y[:, None])
    return X, y, Votes.from_columns(labels)


@pytest.fixture(scope="module")
def new_rows():
    return make_mixture(20_000, P, mean_norm=MEAN_NORM, random_state=999)


def measures(fitted, y, new_rows):
    """Return accuracy of labels and predictions, the expected one, and its standard error."""
    right = fitted.label_posterior_.argmax(axis=1) == y
    return (
        right.mean(),
        fitted.score(*new_rows),
        fitted.expected_accuracy_,
        fitted.expected_accuracy_std_,
    )


def test_nothing_is_lost_if_errors_are_independent(new_rows, monkeypatch):
    """Against estimates that cannot share errors: accuracies within .2 points, same intervals."""
    draws = [drawn(seed, 0.0, 0.0) for seed in range(12)]
    shared = [measures(LPClassifier().fit(X, votes), y, new_rows) for X, y, votes in draws]
    monkeypatch.setattr(Crowd, "_can_share_errors", False)
    apart = [measures(LPClassifier().fit(X, votes), y, new_rows) for X, y, votes in draws]
    labels, new, _, width = np.mean(shared, axis=0) - np.mean(apart, axis=0)
    assert labels > -0.002
    assert new > -0.002
    assert abs(width) < 0.1 * np.mean(apart, axis=0)[3]


@pytest.mark.parametrize(("spread", "correlation"), [(0.7, 0.0), (0.7, 0.5)])
def test_shared_difficulty_is_estimated_and_covered(spread, correlation, new_rows, monkeypatch):
    draws = [drawn(seed, spread, correlation) for seed in range(12)]
    fits = [LPClassifier().fit(X, votes) for X, _, votes in draws]
    difficulties = [fitted.annotators_.difficulty for fitted in fits]
    assert np.mean([each.spread for each in difficulties]) == pytest.approx(spread, abs=0.1)
    correlations = [each.score_correlation for each in difficulties]
    assert np.mean(correlations) == pytest.approx(correlation, abs=0.1)
    shared = [measures(fit, y, new_rows) for fit, (_, y, _) in zip(fits, draws, strict=True)]
    labels, new, expected, error = np.transpose(shared)
    assert np.mean(np.abs(new - expected) <= 1.96 * error) >= 0.9
    claimed = np.mean([fit.label_posterior_.max(axis=1).mean() for fit in fits])
    assert claimed == pytest.approx(labels.mean(), abs=0.01)
    monkeypatch.setattr(Crowd, "_can_share_errors", False)
    apart = [LPClassifier().fit(X, votes).label_posterior_ for X, _, votes in draws[:4]]
    assert np.mean([posterior.max(axis=1).mean() for posterior in apart]) > labels.mean() + 0.015


def test_effective_votes_decrease_with_the_spread():
    worth = [
        np.mean([audit(*drawn(seed, spread, 0.0)[::2]).effective_votes for seed in range(3)])
        for spread in (0.0, 0.4, 0.8)
    ]
    assert worth[0] == pytest.approx(8, rel=0.1)
    assert worth[0] > worth[1] + 0.5 > worth[2] + 1


def test_checked_rows_cover_the_accuracy_of_annotators_and_of_labels():
    """Intervals of 8 annotators, and of the corrected labels, with 100 checked rows."""
    covered, covered_labels = [], []
    for seed in range(6):
        X, y, votes = drawn(seed, 0.7, 0.5)
        rows = audit(X, votes).check_next(100, random_state=seed)
        trusted = np.full(N, None)
        trusted[rows] = y[rows]
        result = audit(X, votes, trusted=trusted)
        table = result.annotators
        accuracy = np.array(
            [(votes.label == y[votes.row])[votes.annotator == w].mean() for w in table.annotator]
        )
        covered.append((table.low <= accuracy) & (accuracy <= table.high))
        interval = result.corrected_labels_interval
        right = np.mean(result.label_posterior.argmax(axis=1) == y)
        covered_labels.append(interval.low <= right <= interval.high)
        assert interval.width < 0.12
    assert np.mean(covered) > 0.85
    assert np.mean(covered_labels) >= 5 / 6
