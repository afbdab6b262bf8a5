"""Annotators that copy each other: which ones are found, and what their votes count."""

import numpy as np
import pytest
from scipy.stats import norm

from unflip import LPClassifier, Votes, audit
from unflip.datasets import make_mixture
from unflip.labels.annotator_groups import AnnotatorGroups

SKILL = 0.75


def voted(seed, n=800, n_copies=5, n_annotators=8, copying=1.0):
    """Return samples, true classes and votes; the first annotators copy the first one."""
    X, y = make_mixture(n, 20, mean_norm=1.2, random_state=seed)
    rng = np.random.default_rng((seed, 3))
    labels = np.where(rng.random((n, n_annotators)) < SKILL, y[:, None], 1 - y[:, None])
    copied = rng.random((n, n_copies)) < copying
    labels[:, :n_copies] = np.where(copied, labels[:, :1], labels[:, :n_copies])
    return X, y, Votes.from_columns(labels)


@pytest.mark.parametrize("copying", [1.0, 0.9])
def test_copies_count_as_one(copying):
    for seed in range(4):
        X, y, votes = voted(seed, copying=copying)
        result = audit(X, votes)
        groups = result.evidence.noise.annotators.groups
        assert [members.tolist() for members in groups.members] == [[0, 1, 2, 3, 4]]
        if copying == 1:
            assert groups.copying.max() == pytest.approx(1, abs=0.05)
            assert result.effective_votes == pytest.approx(4, rel=0.2)
        else:
            assert 3 < result.effective_votes < 6
        majority = np.mean(votes.counts.argmax(axis=1) == y)
        assert np.mean(result.label_posterior.argmax(axis=1) == y) > majority + 0.02
        weight = result.annotators.weight[np.argsort(result.annotators.annotator)]
        assert (weight[:5] < 0.3).all()
        assert (weight[5:] == 1).all()


def test_annotators_on_their_own_are_no_group():
    for seed in range(10):
        X, _, votes = voted(seed, n_copies=1)
        annotators = LPClassifier().fit(X, votes).annotators_
        assert annotators.groups is None
        assert annotators.effective_votes(votes) == pytest.approx(8, rel=0.2)


def test_shared_difficulty_is_no_copying():
    """Two good annotators err on the same difficult rows, and so do four worse ones."""
    skills = np.array([0.95, 0.95, 0.65, 0.65, 0.65, 0.65])
    loading = np.sqrt(0.6)
    for seed in range(4):
        X, y = make_mixture(600, 20, mean_norm=1.2, random_state=seed)
        rng = np.random.default_rng((seed, 4))
        z = rng.normal(size=(600, 1))
        own = rng.normal(size=(600, 6))
        right = loading * z + np.sqrt(1 - loading**2) * own < norm.ppf(skills)
        votes = Votes.from_columns(np.where(right, y[:, None], 1 - y[:, None]))
        fitted = LPClassifier().fit(X, votes)
        assert fitted.annotators_.groups is None
        assert np.mean(fitted.label_posterior_.argmax(axis=1) == y) > 0.9


def test_weights_of_votes():
    """The m votes of a group on a row count as m / (1 + (m − 1)κ)."""
    votes = Votes.from_columns([["a", "a", "b"], ["b", None, "b"], ["a", "b", None]])
    groups = AnnotatorGroups(np.array([0, 0, 1]), np.array([0.5, 0.0]))
    np.testing.assert_allclose(
        groups.vote_weights(votes), [1 / 1.5, 1 / 1.5, 1, 1, 1, 1 / 1.5, 1 / 1.5]
    )
    np.testing.assert_allclose(
        groups.next_vote_weights(votes, np.array([1, 2])),
        [[2 / 1.5 - 1, 2 / 1.5 - 1, 1], [3 / 2 - 2 / 1.5, 3 / 2 - 2 / 1.5, 1]],
    )
