"""Votes: how they are read, how annotators' tables are found, and what rows without any are told."""

import numpy as np
import pytest

from unflip import NoiseModel, Votes
from unflip.labels.annotators import Annotators, Crowd
from unflip.labels.classes import UNCHECKED
from unflip.labels.votes import UNLABELLED

LIAR, PARROT = 4, 5  # annotators of `drawn` who say the other class, and always the second


def drawn(n=400, seed=0, share=0.7):
    """Votes of four honest annotators of different skill, a liar and one who always says 1, on rows of
    two classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    right = np.array([0.9, 0.8, 0.7, 0.65, 0.1, 0.5])
    said = np.where(rng.random((n, 6)) < right, y[:, None], 1 - y[:, None])
    said[:, PARROT] = 1
    row, annotator = np.nonzero(rng.random((n, 6)) < share)
    return y, Votes.from_table(row, annotator, said[row, annotator], n_rows=n)


def crowd_of(votes, **known):
    n = len(votes)
    return Crowd(**{"votes": votes, "weights": np.ones(n), "truth": np.full(n, UNCHECKED), **known})


def tables_of(votes, **known):
    """Tables by votes alone: features that say nothing."""
    return crowd_of(votes, **known).with_features(
        np.zeros((len(votes), 2)), crowd_of(votes, **known).by_agreement()
    )


def test_columns_and_table_are_the_same_votes():
    pd = pytest.importorskip("pandas")
    columns = pd.DataFrame({"ann": ["a", None, "b", None], "bob": ["b", "a", pd.NA, None]})
    wide = Votes.from_columns(columns, annotators=columns.columns)
    long = Votes.from_table(
        [2, 0, 1, 0], ["ann", "bob", "bob", "ann"], ["b", "b", "a", "a"], n_rows=4
    )
    for votes in (wide, long):
        assert votes.classes.tolist() == ["a", "b"]
        assert votes.annotators.tolist() == ["ann", "bob"]
        np.testing.assert_array_equal(votes.counts, [[1, 1], [1, 0], [0, 1], [0, 0]])
        np.testing.assert_array_equal(votes.voted, [True, True, True, False])
    np.testing.assert_array_equal(wide.table.toarray(), long.table.toarray())


@pytest.mark.parametrize(
    "column",
    [
        [0.0, np.nan, 1.0],
        [0, None, 1],
        np.ma.masked_array([0, 7, 1], [False, True, False]),
        "pandas",
    ],
)
def test_missing_votes_of_every_kind(column):
    if isinstance(column, str):
        pandas = pytest.importorskip(column)
        column = pandas.array([0, pandas.NA, 1])
    votes = Votes.from_columns(column)
    assert votes.classes.tolist() == [0, 1]
    np.testing.assert_array_equal(votes.n_votes, [1, 0, 1])


def test_some_rows_have_the_classes_and_annotators_of_their_votes():
    votes = Votes.from_table([0, 0, 1, 2], ["x", "y", "y", "z"], ["b", "c", "a", "b"])
    part = votes[[2, 0, 2]]
    assert part.classes.tolist() == ["b", "c"]
    assert part.annotators.tolist() == ["x", "y", "z"]
    np.testing.assert_array_equal(part.counts, [[1, 0], [1, 1], [1, 0]])
    np.testing.assert_array_equal(votes[np.array([False, True, False])].counts, [[1]])


def test_majority_breaks_ties_by_likelihood_and_leaves_rows_without_votes():
    votes = Votes.from_columns([["a", "b", "b"], ["a", "b", None], [None] * 3])
    likelihoods = np.array([[0.9, 0.1], [0.2, 0.3], [1.0, 1.0]])
    np.testing.assert_array_equal(votes.majority(likelihoods), [1, 1, UNLABELLED])


def test_a_row_of_votes_has_the_product_of_their_likelihoods():
    noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.1, pi_neg=0.3)
    votes = Votes.from_columns([[0, 1, 1], [1, None, None], [None, None, None]])
    channel = Annotators.alike(noise, votes).channel(votes)
    np.testing.assert_allclose(
        channel.transition.T, [[0.9 * 0.1**2, 0.4 * 0.6**2], [0.1, 0.6], [1, 1]], rtol=1e-12
    )
    np.testing.assert_allclose(channel.posterior[2], [0.3, 0.7])


def test_thousands_of_votes_on_a_row_do_not_underflow():
    noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.4, pi_neg=0.5)
    votes = Votes.from_table(np.zeros(4001, dtype=int), None, np.arange(4001) % 2)
    np.testing.assert_allclose(
        Annotators.alike(noise, votes).channel(votes).posterior, [[0.6, 0.4]]
    )


def test_tables_of_honest_annotators_a_liar_and_a_parrot_are_found():
    y, votes = drawn(n=4000)
    found = tables_of(votes)
    for w in range(6):
        mine = votes.annotator == w
        said, true = votes.label[mine], y[votes.row[mine]]
        exact = [[np.mean(said[true == a] == b) for b in (0, 1)] for a in (0, 1)]
        np.testing.assert_allclose(found.transitions[w], exact, atol=0.05)
    assert found.transitions[LIAR, 0, 0] < 0.2
    posterior = found.channel(votes).posterior
    majority = votes.majority(posterior)
    voted = votes.voted
    assert (posterior.argmax(axis=1) == y)[voted].mean() > (majority == y)[voted].mean() + 0.03


def test_a_annotator_of_one_vote_is_like_the_others():
    _, votes = drawn()
    more = Votes.from_table(
        np.append(votes.row, 0),
        np.append(votes.annotator, 99),
        np.append(votes.label, 1),
        n_rows=len(votes),
    )
    found = tables_of(more)
    sizes = np.bincount(more.annotator)
    common = np.tensordot(sizes / sizes.sum(), found.transitions, axes=1)
    assert np.abs(found.transitions[-1] - common).max() < 0.2


def test_the_order_of_votes_and_the_names_of_annotators_and_classes_do_not_matter():
    _, votes = drawn()
    rng = np.random.default_rng(1)
    order, names = rng.permutation(len(votes.row)), rng.permutation(6)
    other = Votes.from_table(
        votes.row[order], names[votes.annotator[order]], 1 - votes.label[order], n_rows=len(votes)
    )
    a, b = tables_of(votes), tables_of(other)
    np.testing.assert_allclose(b.transitions[names], a.transitions[:, ::-1, ::-1], atol=1e-5)
    np.testing.assert_allclose(
        b.channel(other).posterior, a.channel(votes).posterior[:, ::-1], atol=1e-5
    )


def test_a_repeated_row_is_a_row_of_twice_the_weight():
    _, votes = drawn(n=200)
    twice = np.append(np.arange(200), np.arange(50))
    repeated = tables_of(votes[twice])
    weighted = tables_of(votes, weights=1.0 + (np.arange(200) < 50))
    np.testing.assert_allclose(repeated.transitions, weighted.transitions, atol=1e-8)
    np.testing.assert_allclose(repeated.priors, weighted.priors, atol=1e-8)


def test_rows_of_one_vote_do_not_make_annotators_look_better():
    _, votes = drawn(n=300)
    single = Votes.from_table(
        np.append(votes.row, 300 + np.arange(3000)),
        np.append(votes.annotator, np.arange(3000) % 6),
        np.append(votes.label, np.arange(3000) % 2),
    )
    several = votes[votes.n_votes > 1]
    found, expected = crowd_of(single).by_agreement(), crowd_of(several).by_agreement()
    np.testing.assert_allclose(found.transitions, expected.transitions, rtol=1e-12)


def test_checked_rows_teach_how_annotators_vote():
    y, votes = drawn(n=600, seed=3)
    alone = votes[votes.n_votes > 0]
    truth = y[votes.n_votes > 0]
    taught = tables_of(alone, truth=truth)
    for w in range(6):
        mine = alone.annotator == w
        exact = np.mean(alone.label[mine & (truth[alone.row] == 1)] == 1)
        assert taught.transitions[w, 1, 1] == pytest.approx(exact, abs=0.03)


def test_moved_annotators_flip_more_of_one_class():
    noise = NoiseModel(np.full((3, 3), 0.1) + 0.7 * np.eye(3), np.full(3, 1 / 3))
    annotators = Annotators.alike(noise, Votes.from_columns([[0, 1], [1, 2]]))
    moved = annotators.moved(1, 0.1).transitions
    np.testing.assert_allclose(moved[:, 1], [[0.15, 0.7, 0.15]] * 2)
    np.testing.assert_array_equal(moved[:, [0, 2]], annotators.transitions[:, [0, 2]])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Votes.from_table([0, 1], None, ["a"]), "2, 2 and 1 entries"),
        (
            lambda: Votes.from_table([0, 5], None, ["a", "b"], n_rows=3),
            "rows holds 5, which is no row of X",
        ),
        (lambda: Votes.from_table([0, -1], None, ["a", "b"]), "rows holds -1"),
        (
            lambda: Votes.from_table(["x", "y"], None, ["a", "b"]),
            "give the number of a row of X for each vote",
        ),
        (lambda: Votes.from_table([0.5], None, ["a"]), "give the number of a row"),
        (lambda: Votes.from_columns([[None], [None]]), "no vote at all"),
        (
            lambda: Votes.from_columns([["a"], [1]]),
            "labels holds int and str, which cannot be sorted",
        ),
        (lambda: Votes.from_columns([[0.5], [0.25]]), "which are no classes"),
        (lambda: Votes.from_columns(np.zeros((2, 2, 2))), "columns has shape"),
        (
            lambda: Votes.from_columns([["a", "b"]], annotators=["x"]),
            "1 names but there are 2 columns",
        ),
        (lambda: Votes.from_table([0], [["w"]], ["a"]), "annotators has shape"),
    ],
)
def test_bad_votes_are_refused_in_one_sentence(make, said):
    with pytest.raises(ValueError, match=said) as error:
        make()
    assert "\n" not in str(error.value)


def test_votes_of_other_annotators_are_refused():
    votes = Votes.from_columns([[0, 1], [1, 0]])
    annotators = Annotators.alike(NoiseModel.binary(eps_pos=0.1, eps_neg=0.1, pi_neg=0.5), votes)
    with pytest.raises(ValueError, match="other annotators"):
        annotators.channel(Votes.from_columns([[0, 1], [1, 0]], annotators=["a", "b"]))
