"""Estimated transition matrices of annotators, and the coverage of their standard errors."""

import numpy as np
import pytest

from unflip import LPClassifier, Votes
from unflip.datasets import make_mixture

SKILLS = np.array([0.9, 0.7, 0.6, 0.5])


def skills(seed, n=180):
    """Return the estimated skills of four annotators and their standard errors, (4, 2) each."""
    X, y = make_mixture(n, 60, mean_norm=1.5, random_state=seed)
    rng = np.random.default_rng((seed, 5))
    votes = np.stack([np.where(rng.random(n) < skill, y, 1 - y) for skill in SKILLS], axis=1)
    annotators = LPClassifier().fit(X, Votes.from_columns(votes)).annotators_
    estimates = np.diagonal(annotators.transitions, axis1=1, axis2=2)
    errors = np.diagonal(annotators.transitions_std, axis1=1, axis2=2)
    return estimates, errors


def test_estimates_of_different_skills_are_not_shrunk_to_their_mean():
    estimates = np.mean([skills(seed)[0] for seed in range(20)], axis=(0, 2))
    np.testing.assert_allclose(estimates, SKILLS, atol=0.06)


def test_intervals_of_skills_have_coverage():
    covered = []
    for seed in range(20):
        estimates, errors = skills(seed)
        covered.append(np.abs(estimates - SKILLS[:, None]) <= 1.96 * errors)
    assert np.mean(covered) > 0.85


def test_standard_errors_decrease_with_the_number_of_votes():
    few, many = (skills(0, n)[1] for n in (100, 1600))
    assert (many < few).all()
    assert many.mean() / few.mean() == pytest.approx(1 / 4, rel=0.25)
