"""Shared difficulty: likelihoods and derivatives by sums written out, and tetrachoric errors."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from unflip import Votes
from unflip.labels import shared_difficulty
from unflip.labels.annotators import Annotators
from unflip.labels.shared_difficulty import SharedDifficulty, standardized_margins

K, W, N = 3, 4, 40


def draw(seed=0):
    """Return transition matrices, margins and votes of four annotators of three classes."""
    rng = np.random.default_rng(seed)
    transitions = rng.dirichlet(np.ones(K), size=(W, K)) * 0.4 + 0.6 * np.eye(K)
    labels = rng.integers(K, size=(N, W)).astype(object)
    labels[rng.random((N, W)) < 0.3] = None
    labels[0] = None
    return transitions, rng.normal(size=(N, K)), Votes.from_columns(labels)


def written_out(transitions, margins, votes, spread, correlation, loadings=None):
    """Return log P(votes | true class), (n, k), one row, class and value of z at a time."""
    z = np.linspace(-3.6, 3.6, 13)
    logs = np.empty(margins.shape)
    for i in range(len(margins)):
        for a in range(K):
            weights = norm.pdf(z, correlation * margins[i, a], np.sqrt(1 - correlation**2))
            product = weights / weights.sum()
            for w, b in zip(
                votes.annotator[votes.row == i], votes.label[votes.row == i], strict=True
            ):
                right = transitions[w, a, a]
                false = np.delete(transitions[w, :, a], a).mean()
                loading = spread * (norm.ppf(right) - norm.ppf(false)) / 2
                if loadings is not None:
                    loading = loadings[w, a]
                p = norm.cdf((norm.ppf(right) + loading * z) / np.sqrt(1 - loading**2))
                product = product * (p if a == b else (1 - p) * transitions[w, a, b] / (1 - right))
            logs[i, a] = np.log(product.sum())
    return logs


@pytest.mark.parametrize(("spread", "correlation"), [(0.3, 0.0), (0.6, 0.5), (0.7, 0.25)])
def test_likelihoods_are_the_sums_over_z(spread, correlation):
    transitions, margins, votes = draw()
    difficulty = SharedDifficulty.of(spread, correlation, margins, transitions)
    np.testing.assert_allclose(
        difficulty.log_likelihoods(votes.table, transitions),
        written_out(transitions, margins, votes, spread, correlation),
        rtol=1e-10,
        atol=1e-10,
    )


def test_without_spread_errors_are_independent():
    transitions, margins, votes = draw()
    annotators = Annotators(
        votes.annotators, transitions, np.full(K, 1 / K), np.zeros_like(transitions)
    )
    none = SharedDifficulty.of(0.0, 0.5, margins, transitions)
    np.testing.assert_allclose(
        none.log_likelihoods(votes.table, transitions),
        annotators.log_likelihoods(votes),
        rtol=1e-10,
        atol=1e-10,
    )
    assert none.correlation(transitions, np.full(K, 1 / K), np.full(W, 1 / W)) == pytest.approx(0)


def test_the_mean_over_z_is_the_transition_matrix():
    transitions, margins, _ = draw()
    by_difficulty, shares = SharedDifficulty.of(
        0.9, 0.0, margins, transitions
    ).transitions_by_difficulty(transitions)
    np.testing.assert_allclose(by_difficulty.sum(axis=2), 1, rtol=1e-10)
    np.testing.assert_allclose(by_difficulty @ shares, transitions, atol=2e-4)


def test_two_annotators_have_the_tetrachoric_correlation():
    """P(both right) is that of two normal variables with correlation λλ'."""
    transitions, margins, _ = draw()
    difficulty = SharedDifficulty.of(0.8, 0.0, margins, transitions)
    by_difficulty, shares = difficulty.transitions_by_difficulty(transitions)
    for a in range(K):
        first, second = difficulty.loadings[:2, a]
        thresholds = norm.ppf(transitions[:2, a, a])
        both = multivariate_normal([0, 0], [[1, first * second], [first * second, 1]])
        right = by_difficulty[:2, a, a]
        assert (right[0] * right[1]) @ shares == pytest.approx(both.cdf(thresholds), abs=5e-4)


def test_derivatives_are_finite_differences():
    """Of the likelihood by the noise rate of one class, with loadings kept."""
    transitions, margins, votes = draw()
    difficulty = SharedDifficulty.of(0.6, 0.5, margins, transitions)
    derivatives = difficulty.log_derivatives(votes.table, transitions)
    step = 1e-5
    for a in range(K):
        moved = []
        for change in (step, -step):
            other = transitions.copy()
            rate = 1 - other[:, a, a]
            other[:, a] *= ((rate + change) / rate)[:, None]
            other[:, a, a] = 1 - rate - change
            logs = written_out(other, margins, votes, 0.6, 0.5, difficulty.loadings)
            moved.append(logs[:, a])
        expected = (moved[0] - moved[1]) / (2 * step)
        np.testing.assert_allclose(derivatives[:, a], expected, rtol=1e-5, atol=1e-6)


def test_batches_do_not_matter(monkeypatch):
    transitions, margins, votes = draw()
    difficulty = SharedDifficulty.of(0.6, 0.5, margins, transitions)
    expected = difficulty.log_likelihoods(votes.table, transitions)
    monkeypatch.setattr(shared_difficulty, "_BATCH", 7)
    np.testing.assert_array_equal(
        SharedDifficulty.of(0.6, 0.5, margins, transitions).log_likelihoods(
            votes.table, transitions
        ),
        expected,
    )


def test_margins_have_mean_0_and_variance_1_within_classes():
    rng = np.random.default_rng(0)
    truth = np.eye(2)[rng.integers(2, size=5000)]
    log_odds = np.column_stack([np.zeros(5000), rng.normal(size=5000) + 2 * truth[:, 1]])
    margins = standardized_margins(log_odds, truth)
    for a in (0, 1):
        own = margins[truth[:, a] == 1, a]
        assert own.mean() == pytest.approx(0, abs=0.01)  # clipped at 3
        assert own.std() == pytest.approx(1, abs=0.02)


def test_other_rows_than_those_of_the_difficulty_are_an_error():
    transitions, margins, votes = draw()
    annotators = Annotators(
        votes.annotators,
        transitions,
        np.full(K, 1 / K),
        np.zeros_like(transitions),
        difficulty=SharedDifficulty.of(0.6, 0.5, margins, transitions),
    )
    several = votes.on_rows(np.arange(10))
    with pytest.raises(ValueError, match=r"known for the 40 training rows: pass their votes"):
        annotators.log_likelihoods(several)
    assert annotators.independent.log_likelihoods(several).shape == (10, K)
