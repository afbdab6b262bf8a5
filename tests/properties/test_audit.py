"""Properties of every audit: invariance to row order and class names, valid probabilities."""

import numpy as np
import pytest
from hypothesis import strategies as st

from support.strategies import (
    SEEDS,
    Instance,
    binary_noise,
    close,
    holds,
    instances,
    noise_models,
    permutation,
)
from unflip import LPClassifier, NoiseModel, Votes, audit, audit_scores

# Heuristic noise rates and few rows raise warnings.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

TWO = instances(rows=(30, 60), features=(1, 30))
ANY = st.one_of(TWO, instances(noise_models(st.just(3)), rows=(30, 50), features=(2, 15)))


@st.composite
def scored(draw):
    """Draw probabilities of observed labels, with the labels and their noise model."""
    noise = draw(noise_models(st.integers(2, 4)))
    seed = draw(SEEDS)
    n = draw(st.integers(20, 60))
    drawn = Instance("gaussian", noise, seed, n, 2)
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(noise.n_classes), size=n), drawn.y, noise


def assert_valid(result, n_rows, n_classes):
    """Assert that every number of an audit is in its range."""
    posterior = result.label_posterior
    assert posterior.shape == (n_rows, n_classes)
    assert ((posterior >= 0) & (posterior <= 1)).all()
    close(posterior.sum(axis=1), np.ones(n_rows), 1e-12)
    suspects = result.suspects
    assert ((suspects.probability >= 0) & (suspects.probability <= 1)).all()
    unchecked = ~np.isin(suspects.row, result.checked)  # checked rows come last
    assert (np.diff(suspects.probability[unchecked]) <= 0).all()
    assert (suspects.observed != suspects.proposed).all()
    assert len(set(suspects.row.tolist())) == len(suspects)
    assert result.n_suspects <= len(suspects)
    assert 0 <= result.expected_wrong <= n_rows
    assert result.expected_wrong_std >= 0
    assert 0 <= result.expected_accuracy <= 1
    assert result.expected_accuracy_std >= 0
    assert (result.noise_std >= 0).all()
    assert 0 <= result.dependence.p_value <= 1 or np.isnan(result.dependence.p_value)


@holds(drawn=ANY)
def test_every_number_is_in_its_range(drawn):
    result = audit(drawn.X, drawn.y, noise=drawn.noise)
    assert_valid(result, drawn.n, drawn.n_classes)
    assert str(result)


@holds(drawn=TWO)
def test_numbers_with_estimated_rates_are_in_their_range(drawn):
    assert_valid(audit(drawn.X, drawn.y), drawn.n, 2)


@holds(drawn=TWO, seed=SEEDS)
def test_order_of_rows_does_not_matter(drawn, seed):
    order = permutation(drawn.n, seed)
    now, then = (
        audit(X, y, noise=drawn.noise)
        for X, y in ((drawn.X, drawn.y), (drawn.X[order], drawn.y[order]))
    )
    close(then.label_posterior, now.label_posterior[order], 1e-5)
    close(then.expected_wrong, now.expected_wrong, 1e-5)


@holds(drawn=TWO)
def test_renaming_classes_renames_the_suspects(drawn):
    other = NoiseModel(drawn.noise.transition[::-1, ::-1], drawn.noise.priors[::-1])
    now = audit(drawn.X, drawn.y, noise=drawn.noise)
    then = audit(drawn.X, 1 - drawn.y, noise=other)
    close(then.label_posterior[:, ::-1], now.label_posterior, 1e-5)
    close(then.expected_accuracy, now.expected_accuracy, 1e-5)


@holds(drawn=ANY)
def test_checked_rows_are_certain(drawn):
    checked = np.where(np.arange(drawn.n) % 3 == 0, drawn.true, np.nan)
    result = audit(drawn.X, drawn.y, noise=drawn.noise, trusted=checked)
    assert_valid(result, drawn.n, drawn.n_classes)
    rows = np.flatnonzero(~np.isnan(checked))
    np.testing.assert_array_equal(
        result.label_posterior[rows], np.eye(drawn.n_classes)[drawn.true[rows]]
    )


@holds(drawn=scored(), power=st.floats(0.5, 2.0))
def test_the_slope_of_given_log_odds_hardly_matters(drawn, power):
    """It is calibrated, with a prior around the given slope that counts as one label."""
    probabilities, y, noise = drawn
    result = audit_scores(probabilities, y, noise=noise)
    assert_valid(result, len(y), noise.n_classes)
    assert_valid(audit_scores(probabilities, y), len(y), noise.n_classes)
    sharper = probabilities**power
    other = audit_scores(sharper / sharper.sum(axis=1, keepdims=True), y, noise=noise)
    np.testing.assert_allclose(other.label_posterior, result.label_posterior, atol=0.35)


@holds(drawn=scored(), seed=SEEDS)
def test_order_of_rows_and_classes_does_not_matter_for_scores(drawn, seed):
    probabilities, y, noise = drawn
    order = permutation(len(y), seed)
    names = permutation(noise.n_classes, seed)
    other = NoiseModel(noise.transition[np.ix_(names, names)], noise.priors[names])
    now = audit_scores(probabilities, y, noise=noise)
    then = audit_scores(
        probabilities[np.ix_(order, names)], np.argsort(names)[y][order], noise=other
    )
    close(then.label_posterior, now.label_posterior[np.ix_(order, names)], 1e-9)
    close(then.expected_accuracy, now.expected_accuracy, 1e-9)


@st.composite
def votes(draw):
    """Draw votes of several annotators on rows of two classes, at least one on each row."""
    drawn = draw(instances(binary_noise(rates=st.floats(0, 0.2)), rows=(30, 50), features=(1, 10)))
    n_annotators = draw(st.integers(3, 5))
    rng = np.random.default_rng(drawn.seed)
    cells = np.column_stack(
        [drawn.noise.flip(drawn.true, rng) for _ in range(n_annotators)]
    ).astype(float)
    missing = rng.random(cells.shape) < 0.4
    missing[np.arange(drawn.n), rng.integers(n_annotators, size=drawn.n)] = False
    cells[missing] = np.nan
    cells[:2, 0] = [0, 1]
    return drawn, cells


@holds(drawn_votes=votes(), seed=SEEDS)
def test_order_of_annotators_does_not_matter(drawn_votes, seed):
    drawn, cells = drawn_votes
    order = permutation(cells.shape[1], seed)
    now, then = (
        LPClassifier(reg=drawn.X.var()).fit(drawn.X, Votes.from_columns(v))
        for v in (cells, cells[:, order])
    )
    close(then.predict_proba(drawn.X), now.predict_proba(drawn.X), 1e-5)
    for clf in (now, then):
        assert (clf.annotators_.transitions >= 0).all()
        close(
            clf.annotators_.transitions.sum(axis=2),
            np.ones(clf.annotators_.transitions.shape[:2]),
            1e-9,
        )
    close(then.annotators_.transitions, now.annotators_.transitions[order], 1e-5)


@holds(drawn_votes=votes())
def test_counts_of_votes(drawn_votes):
    _, cells = drawn_votes
    result = Votes.from_columns(cells)
    counted = np.column_stack([(cells == label).sum(axis=1) for label in (0.0, 1.0)])
    np.testing.assert_array_equal(result.counts, counted)
    rows, annotators = np.nonzero(~np.isnan(cells))
    table = Votes.from_table(rows, annotators, cells[rows, annotators], n_rows=len(cells))
    np.testing.assert_array_equal(table.counts, counted)
