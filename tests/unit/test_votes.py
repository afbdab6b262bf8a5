"""Votes: input formats, estimated transition matrices of annotators, and invalid input."""

import numpy as np
import pytest

from unflip import NoiseModel, Votes
from unflip.labels.annotators import Annotators
from unflip.labels.codes import UNCHECKED, UNLABELLED
from unflip.labels.crowd import Crowd

#: Annotators of `drawn`: one mostly votes for the wrong class, one always votes for class 1.
ADVERSARY, CONSTANT = 4, 5


def drawn(n=400, seed=0, share=0.7):
    """Return true classes, and votes of four good annotators and two bad ones."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    skills = np.array([0.9, 0.8, 0.7, 0.65, 0.1, 0.5])
    labels = np.where(rng.random((n, 6)) < skills, y[:, None], 1 - y[:, None])
    labels[:, CONSTANT] = 1
    row, annotator = np.nonzero(rng.random((n, 6)) < share)
    return y, Votes.from_table(row, annotator, labels[row, annotator], n_rows=n)


def crowd_of(votes, **options):
    n = len(votes)
    defaults = {"votes": votes, "weights": np.ones(n), "truth": np.full(n, UNCHECKED)}
    return Crowd(**{**defaults, **options})


def estimated(votes, **options):
    """Return annotators estimated from votes alone: log-odds of the features are 0."""
    crowd = crowd_of(votes, **options)
    return crowd.with_features(np.zeros((len(votes), 2)), crowd.by_agreement())


def test_columns_and_table_give_the_same_votes():
    pd = pytest.importorskip("pandas")
    columns = pd.DataFrame({"ann": ["a", None, "b", None], "bob": ["b", "a", pd.NA, None]})
    wide = Votes.from_columns(columns)
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
def test_types_of_missing_votes(column):
    if isinstance(column, str):
        pandas = pytest.importorskip(column)
        column = pandas.array([0, pandas.NA, 1])
    votes = Votes.from_columns(column)
    assert votes.classes.tolist() == [0, 1]
    np.testing.assert_array_equal(votes.n_votes, [1, 0, 1])


def test_indexing_keeps_the_classes_and_annotators_of_the_selected_rows():
    votes = Votes.from_table([0, 0, 1, 2], ["x", "y", "y", "z"], ["b", "c", "a", "b"])
    part = votes[[2, 0, 2]]
    assert part.classes.tolist() == ["b", "c"]
    assert part.annotators.tolist() == ["x", "y", "z"]
    np.testing.assert_array_equal(part.counts, [[1, 0], [1, 1], [1, 0]])
    np.testing.assert_array_equal(votes[np.array([False, True, False])].counts, [[1]])


def test_majority_breaks_ties_by_likelihood():
    votes = Votes.from_columns([["a", "b", "b"], ["a", "b", None], [None] * 3])
    likelihoods = np.array([[0.9, 0.1], [0.2, 0.3], [1.0, 1.0]])
    np.testing.assert_array_equal(votes.majority(likelihoods), [1, 1, UNLABELLED])


def test_likelihoods_of_votes_multiply():
    noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.1, pi_neg=0.3)
    votes = Votes.from_columns([[0, 1, 1], [1, None, None], [None, None, None]])
    channel = Annotators.from_noise(noise, votes).channel(votes)
    np.testing.assert_allclose(
        channel.transition.T, [[0.9 * 0.1**2, 0.4 * 0.6**2], [0.1, 0.6], [1, 1]], rtol=1e-12
    )
    np.testing.assert_allclose(channel.posterior[2], [0.3, 0.7])


def test_thousands_of_votes_on_a_row_do_not_underflow():
    noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.4, pi_neg=0.5)
    votes = Votes.from_table(np.zeros(4001, dtype=int), None, np.arange(4001) % 2)
    np.testing.assert_allclose(
        Annotators.from_noise(noise, votes).channel(votes).posterior, [[0.6, 0.4]]
    )


def test_transition_matrices_of_good_and_bad_annotators():
    y, votes = drawn(n=4000)
    annotators = estimated(votes)
    for w in range(6):
        own = votes.annotator == w
        labels = votes.label[own]
        true = y[votes.row[own]]
        exact = [[np.mean(labels[true == a] == b) for b in (0, 1)] for a in (0, 1)]
        np.testing.assert_allclose(annotators.transitions[w], exact, atol=0.05)
    assert annotators.transitions[ADVERSARY, 0, 0] < 0.2
    posterior = annotators.channel(votes).posterior
    majority = votes.majority(posterior)
    voted = votes.voted
    assert (posterior.argmax(axis=1) == y)[voted].mean() > (majority == y)[voted].mean() + 0.03


def test_an_annotator_with_one_vote_is_close_to_the_average():
    _, votes = drawn()
    more = Votes.from_table(
        np.append(votes.row, 0),
        np.append(votes.annotator, 99),
        np.append(votes.label, 1),
        n_rows=len(votes),
    )
    annotators = estimated(more)
    sizes = np.bincount(more.annotator)
    average = np.tensordot(sizes / sizes.sum(), annotators.transitions, axes=1)
    assert np.abs(annotators.transitions[-1] - average).max() < 0.2


def test_order_of_votes_and_names_do_not_matter():
    _, votes = drawn()
    rng = np.random.default_rng(1)
    order = rng.permutation(len(votes.row))
    names = rng.permutation(6)
    other = Votes.from_table(
        votes.row[order], names[votes.annotator[order]], 1 - votes.label[order], n_rows=len(votes)
    )
    a, b = estimated(votes), estimated(other)
    np.testing.assert_allclose(b.transitions[names], a.transitions[:, ::-1, ::-1], atol=1e-5)
    np.testing.assert_allclose(
        b.channel(other).posterior, a.channel(votes).posterior[:, ::-1], atol=1e-5
    )


def test_a_repeated_row_equals_a_row_of_weight_two():
    _, votes = drawn(n=200)
    twice = np.append(np.arange(200), np.arange(50))
    repeated = estimated(votes[twice])
    weighted = estimated(votes, weights=1.0 + (np.arange(200) < 50))
    np.testing.assert_allclose(repeated.transitions, weighted.transitions, atol=1e-8)
    np.testing.assert_allclose(repeated.priors, weighted.priors, atol=1e-8)


def test_rows_with_one_vote_do_not_change_agreement():
    _, votes = drawn(n=300)
    single = Votes.from_table(
        np.append(votes.row, 300 + np.arange(3000)),
        np.append(votes.annotator, np.arange(3000) % 6),
        np.append(votes.label, np.arange(3000) % 2),
    )
    several = votes[votes.n_votes > 1]
    annotators = crowd_of(single).by_agreement()
    expected = crowd_of(several).by_agreement()
    np.testing.assert_allclose(annotators.transitions, expected.transitions, rtol=1e-12)


def test_trusted_labels_improve_the_transition_matrices():
    y, votes = drawn(n=600, seed=3)
    voted = votes[votes.n_votes > 0]
    truth = y[votes.n_votes > 0]
    annotators = estimated(voted, truth=truth)
    for w in range(6):
        own = voted.annotator == w
        exact = np.mean(voted.label[own & (truth[voted.row] == 1)] == 1)
        assert annotators.transitions[w, 1, 1] == pytest.approx(exact, abs=0.03)


def test_moved_annotators_have_a_higher_noise_rate_of_one_class():
    noise = NoiseModel(np.full((3, 3), 0.1) + 0.7 * np.eye(3), np.full(3, 1 / 3))
    annotators = Annotators.from_noise(noise, Votes.from_columns([[0, 1], [1, 2]]))
    moved = annotators.moved(1, 0.1).transitions
    np.testing.assert_allclose(moved[:, 1], [[0.15, 0.7, 0.15]] * 2)
    np.testing.assert_array_equal(moved[:, [0, 2]], annotators.transitions[:, [0, 2]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Votes.from_table([0, 1], None, ["a"]), "2, 2 and 1 entries"),
        (
            lambda: Votes.from_table([0, 5], None, ["a", "b"], n_rows=3),
            "rows holds 5, which is not a row of X",
        ),
        (lambda: Votes.from_table([0, -1], None, ["a", "b"]), "rows holds -1"),
        (
            lambda: Votes.from_table(["x", "y"], None, ["a", "b"]),
            "pass the number of a row of X for each vote",
        ),
        (lambda: Votes.from_table([0.5], None, ["a"]), "pass the number of a row"),
        (lambda: Votes.from_columns([[None], [None]]), "There are no votes"),
        (
            lambda: Votes.from_columns([["a"], [1]]),
            "labels holds int and str, which cannot be sorted",
        ),
        (lambda: Votes.from_columns([[0.5], [0.25]]), "which are not classes"),
        (lambda: Votes.from_columns(np.zeros((2, 2, 2))), "columns has shape"),
        (
            lambda: Votes.from_columns([["a", "b"]], annotators=["x"]),
            "1 names but there are 2 columns",
        ),
        (lambda: Votes.from_table([0], [["w"]], ["a"]), "annotators has shape"),
    ],
)
def test_invalid_votes_raise_one_sentence(make, message):
    with pytest.raises(ValueError, match=message) as error:
        make()
    assert "\n" not in str(error.value)


def test_votes_of_other_annotators_raise():
    votes = Votes.from_columns([[0, 1], [1, 0]])
    annotators = Annotators.from_noise(
        NoiseModel.binary(eps_pos=0.1, eps_neg=0.1, pi_neg=0.5), votes
    )
    with pytest.raises(ValueError, match="other annotators"):
        annotators.channel(Votes.from_columns([[0, 1], [1, 0]], annotators=["a", "b"]))


class TestDisagreement:
    def test_share_of_pairs_that_differ(self):
        votes = Votes.from_table([0, 0, 0, 1, 1, 2], list("abcaba"), list("xxyyyx"))
        assert votes.disagreement == pytest.approx((2 / 3 + 0) / 2, abs=1e-15)

    def test_single_votes_have_none(self):
        votes = Votes.from_table([0, 1, 2], ["a", "b", "a"], ["x", "y", "x"])
        assert np.isnan([votes.disagreement, *votes.noise_bounds()]).all()

    @pytest.mark.parametrize("k", [2, 5])
    def test_independent_votes_are_within_the_bounds(self, k):
        rng = np.random.default_rng(k)
        true = rng.integers(k, size=20_000)
        rates = rng.uniform(0.05, 0.45, size=20_000)  # harder and easier rows
        wrong = rng.random((20_000, 3)) < rates[:, None]
        labels = (true[:, None] + wrong * rng.integers(1, k, (20_000, 3))) % k
        row, annotator = np.indices(labels.shape).reshape(2, -1)
        low, high = Votes.from_table(row, annotator, labels.ravel()).noise_bounds()
        assert low < wrong.mean() < high

    def test_annotators_of_unequal_skill_are_within_the_bounds(self):
        """One annotator who is always right and one who errs: the lower bound is reached."""
        rng = np.random.default_rng(0)
        true = rng.integers(2, size=20_000)
        for rates in ([0.0, 0.4], [0.01, 0.01, 0.45], [0.05, 0.1, 0.3, 0.4, 0.4]):
            wrong = rng.random((20_000, len(rates))) < rates
            labels = np.where(wrong, 1 - true[:, None], true[:, None])
            low, high = Votes.from_columns(labels).noise_bounds()
            assert low <= wrong.mean() + 1e-12
            assert wrong.mean() < high
        perfect = Votes.from_columns(np.column_stack([true, np.where(wrong[:, 0], 1 - true, true)]))
        assert perfect.noise_bounds()[0] == pytest.approx(wrong[:, 0].mean() / 2, abs=1e-12)


def test_repeated_votes_of_an_annotator_count_as_one():
    """As in an export with resubmissions; those of unknown annotators count each."""
    _, votes = drawn(n=300)
    again = np.flatnonzero(votes.annotator == 2)
    lines = np.concatenate([np.arange(len(votes.row)), again, again])
    repeated = Votes.from_table(
        votes.row[lines], votes.annotator[lines], votes.label[lines], n_rows=len(votes)
    )
    once, thrice = estimated(votes), estimated(repeated)
    np.testing.assert_allclose(thrice.transitions, once.transitions, atol=1e-8)
    np.testing.assert_allclose(
        thrice.log_likelihoods(repeated), once.log_likelihoods(votes), atol=1e-8
    )
    assert thrice.effective_votes(repeated) == pytest.approx(once.effective_votes(votes))
    unknown = Votes.from_table([0, 0, 1], None, ["a", "a", "b"])
    np.testing.assert_array_equal(unknown.weights, 1)
