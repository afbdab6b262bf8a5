"""How well each annotator's own skill is told from votes and features, and how far that is known."""

import numpy as np
import pytest

from unflip import LPClassifier, Votes
from unflip.datasets import make_mixture

SKILLS = np.array([0.9, 0.7, 0.6, 0.5])


def tables(seed, n=180):
    """Tables of four annotators who vote on every row, and their standard errors: the diagonals,
    (4, 2) each."""
    X, y = make_mixture(n, 60, mean_norm=1.5, random_state=seed)
    rng = np.random.default_rng((seed, 5))
    votes = np.stack([np.where(rng.random(n) < skill, y, 1 - y) for skill in SKILLS], axis=1)
    annotators = LPClassifier().fit(X, Votes.from_columns(votes)).annotators_
    return (
        np.diagonal(part, axis1=1, axis2=2)
        for part in (annotators.transitions, annotators.transitions_std)
    )


def test_skills_that_differ_are_not_drawn_to_their_mean():
    found = np.mean([next(iter(tables(seed))) for seed in range(20)], axis=(0, 2))
    np.testing.assert_allclose(found, SKILLS, atol=0.06)


def test_most_skills_lie_within_their_intervals():
    covered = []
    for seed in range(20):
        skills, errors = tables(seed)
        covered.append(np.abs(skills - SKILLS[:, None]) <= 1.96 * errors)
    assert np.mean(covered) > 0.85


def test_errors_shrink_with_the_votes():
    few, many = (list(tables(0, n))[1] for n in (100, 1600))
    assert (many < few).all()
    assert many.mean() / few.mean() == pytest.approx(1 / 4, rel=0.25)
