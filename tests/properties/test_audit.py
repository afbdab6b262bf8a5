"""What holds of every audit: rows in any order, classes by any name, probabilities throughout."""

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

pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning"
)  # guesses and few rows are said: not of numbers

TWO = instances(rows=(30, 60), features=(1, 30))
ANY = st.one_of(TWO, instances(noise_models(st.just(3)), rows=(30, 50), features=(2, 15)))


@st.composite
def scored(draw):
    """Probabilities of observed labels by some model, with the labels and their noise."""
    noise, seed, n = draw(noise_models(st.integers(2, 4))), draw(SEEDS), draw(st.integers(20, 60))
    drawn = Instance("gaussian", noise, seed, n, 2)
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(noise.n_classes), size=n), drawn.y, noise


def assert_sound(found, n_rows, n_classes):
    """Assert that every number of an audit is what it is called."""
    posterior = found.label_posterior
    assert posterior.shape == (n_rows, n_classes)
    assert ((posterior >= 0) & (posterior <= 1)).all()
    close(posterior.sum(axis=1), np.ones(n_rows), 1e-12)
    suspects = found.suspects
    assert ((suspects.probability >= 0) & (suspects.probability <= 1)).all()
    doubtful = suspects.probability[
        ~np.isin(suspects.row, found.checked)
    ]  # what was checked comes last
    assert (np.diff(doubtful) <= 0).all()
    assert (suspects.observed != suspects.proposed).all()
    assert len(set(suspects.row.tolist())) == len(suspects)
    assert found.n_suspects <= len(suspects)
    assert 0 <= found.expected_wrong <= n_rows
    assert found.expected_wrong_std >= 0
    assert 0 <= found.expected_accuracy <= 1
    assert found.expected_accuracy_std >= 0
    assert (found.noise_std >= 0).all()
    assert 0 <= found.dependence.p_value <= 1 or np.isnan(found.dependence.p_value)


@holds(drawn=ANY)
def test_every_number_is_what_it_is_called(drawn):
    found = audit(drawn.X, drawn.y, noise=drawn.noise)
    assert_sound(found, drawn.n, drawn.n_classes)
    assert str(found)


@holds(drawn=TWO)
def test_guessed_rates_are_rates(drawn):
    assert_sound(audit(drawn.X, drawn.y), drawn.n, 2)


@holds(drawn=TWO, seed=SEEDS)
def test_the_order_of_rows_does_not_count(drawn, seed):
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
    now, then = audit(drawn.X, drawn.y, noise=drawn.noise), audit(drawn.X, 1 - drawn.y, noise=other)
    close(then.label_posterior[:, ::-1], now.label_posterior, 1e-5)
    close(then.expected_accuracy, now.expected_accuracy, 1e-5)


@holds(drawn=ANY)
def test_rows_that_were_checked_are_certain(drawn):
    checked = np.where(np.arange(drawn.n) % 3 == 0, drawn.true, np.nan)
    found = audit(drawn.X, drawn.y, noise=drawn.noise, trusted=checked)
    assert_sound(found, drawn.n, drawn.n_classes)
    sure = np.flatnonzero(~np.isnan(checked))
    np.testing.assert_array_equal(
        found.label_posterior[sure], np.eye(drawn.n_classes)[drawn.true[sure]]
    )


@holds(drawn=scored())
def test_scores_of_any_model_are_audited_row_by_row(drawn):
    probabilities, y, noise = drawn
    found = audit_scores(probabilities, y, noise=noise)
    assert_sound(found, len(y), noise.n_classes)
    some = np.append(np.arange(2 * noise.n_classes), len(y) - 1)  # each class, and another row
    close(
        audit_scores(probabilities[some], y[some], noise=noise).label_posterior,
        found.label_posterior[some],
        1e-9,
    )


@holds(drawn=scored(), seed=SEEDS)
def test_scores_of_any_model_follow_names_and_order(drawn, seed):
    probabilities, y, noise = drawn
    order, names = permutation(len(y), seed), permutation(noise.n_classes, seed)
    other = NoiseModel(noise.transition[np.ix_(names, names)], noise.priors[names])
    now = audit_scores(probabilities, y, noise=noise)
    then = audit_scores(
        probabilities[np.ix_(order, names)], np.argsort(names)[y][order], noise=other
    )
    close(then.label_posterior, now.label_posterior[np.ix_(order, names)], 1e-9)
    close(then.expected_accuracy, now.expected_accuracy, 1e-9)


@st.composite
def votes(draw):
    """Votes of some annotators on rows of two classes, each row with at least one."""
    drawn = draw(instances(binary_noise(rates=st.floats(0, 0.2)), rows=(30, 50), features=(1, 10)))
    n_annotators, rng = draw(st.integers(3, 5)), np.random.default_rng(drawn.seed)
    said = np.column_stack([drawn.noise.flip(drawn.true, rng) for _ in range(n_annotators)]).astype(
        float
    )
    silent = rng.random(said.shape) < 0.4
    silent[np.arange(drawn.n), rng.integers(n_annotators, size=drawn.n)] = False
    said[silent] = np.nan
    said[:2, 0] = [0, 1]
    return drawn, said


@holds(given=votes(), seed=SEEDS)
def test_votes_may_be_cast_in_any_order_by_annotators_of_any_name(given, seed):
    drawn, said = given
    order = permutation(said.shape[1], seed)
    now, then = (
        LPClassifier(reg=drawn.X.var()).fit(drawn.X, Votes.from_columns(v))
        for v in (said, said[:, order])
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


@holds(given=votes())
def test_counts_of_votes_are_those_given(given):
    _, said = given
    found = Votes.from_columns(said)
    counted = np.column_stack([(said == label).sum(axis=1) for label in (0.0, 1.0)])
    np.testing.assert_array_equal(found.counts, counted)
    rows, annotators = np.nonzero(~np.isnan(said))
    table = Votes.from_table(rows, annotators, said[rows, annotators], n_rows=len(said))
    np.testing.assert_array_equal(table.counts, counted)
