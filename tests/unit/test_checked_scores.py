"""Scores of rows with trusted labels: the trusted label of a row has no part in its own score."""

import numpy as np
import pytest

from unflip import LPClassifier, NoiseModel, Votes
from unflip.estimation import TrustedSubset


def draw(k, n=150, p=30, seed=0):
    """Return rows, noisy labels, true classes and trusted labels of every third row."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % k)
    X = rng.normal(size=(n, p)) + 1.5 * np.eye(k, p)[y]
    labels = NoiseModel(0.7 * np.eye(k) + 0.3 / k).flip(y, random_state=seed)
    return X, labels, y, np.where(np.arange(n) % 3 == 0, y, np.nan)


def with_another(trusted, row, k):
    """Return the trusted labels with another class for one row."""
    other = trusted.copy()
    other[row] = (other[row] + 1) % k
    return other


@pytest.mark.parametrize("options", [{}, {"loss": "logistic"}, {"fit_intercept": False}])
@pytest.mark.parametrize("k", [2, 3])
def test_own_trusted_label_does_not_move_the_score(k, options):
    X, labels, _, trusted = draw(k)
    before = LPClassifier(TrustedSubset(trusted), **options).fit(X, labels).loo_log_odds_
    row = 30
    other = with_another(trusted, row, k)
    after = LPClassifier(TrustedSubset(other), **options).fit(X, labels).loo_log_odds_
    np.testing.assert_allclose(after[row], before[row], rtol=1e-10, atol=1e-12)
    assert np.abs(after - before).max() > 1e-3  # it moves others


def test_own_trusted_label_does_not_move_the_score_with_votes():
    X, _, y, trusted = draw(2)
    rng = np.random.default_rng(1)
    row, annotator = np.indices((150, 3)).reshape(2, -1)
    label = np.where(rng.random(450) < 0.3, 1 - y[row], y[row])
    votes = Votes.from_table(row, annotator, label)
    before = LPClassifier(TrustedSubset(trusted)).fit(X, votes).loo_log_odds_
    other = with_another(trusted, 30, 2)
    after = LPClassifier(TrustedSubset(other)).fit(X, votes).loo_log_odds_
    np.testing.assert_allclose(after[30], before[30], rtol=1e-10, atol=1e-12)
    assert np.abs(after - before).max() > 1e-4


def test_duplicates_of_a_row_share_its_fold():
    X, labels, _, trusted = draw(2)
    X[33] = X[30]  # both are checked
    before = LPClassifier(TrustedSubset(trusted)).fit(X, labels).loo_log_odds_
    after = LPClassifier(TrustedSubset(with_another(trusted, 30, 2))).fit(X, labels).loo_log_odds_
    np.testing.assert_allclose(after[[30, 33]], before[[30, 33]], rtol=1e-10, atol=1e-12)


def test_one_checked_row_is_scored_without_any_trusted_label():
    X, labels, y, _ = draw(2)
    trusted = np.full(150, np.nan)
    trusted[7] = y[7]
    with pytest.warns(UserWarning, match="No trusted label is"):
        before = LPClassifier(TrustedSubset(trusted)).fit(X, labels).loo_log_odds_
    with pytest.warns(UserWarning, match="No trusted label is"):
        other = LPClassifier(TrustedSubset(with_another(trusted, 7, 2))).fit(X, labels)
    np.testing.assert_allclose(other.loo_log_odds_[7], before[7], rtol=1e-10, atol=1e-12)


def test_checked_rows_are_predicted_as_well_as_others():
    """Of rows of pure noise: a leak would predict checked rows better than chance."""
    hits = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(200, 100))
        y = rng.integers(2, size=200)
        labels = np.where(rng.random(200) < 0.2, 1 - y, y)
        trusted = np.where(np.arange(200) % 2 == 0, y, np.nan)
        odds = LPClassifier(TrustedSubset(trusted)).fit(X, labels).loo_log_odds_
        hits.append(np.mean((odds[::2] > 0) == y[::2]))
    error = np.std(hits, ddof=1) / np.sqrt(20)
    assert abs(np.mean(hits) - 0.5) < 3 * error
