"""Agreement between annotators: Cohen's kappas, Fleiss' kappa and Krippendorff's alpha."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from unflip import Votes
from unflip.labels.agreement import fleiss_kappa

#: Examples A to C of Krippendorff (2011), Computing Krippendorff's alpha-reliability, and that of
#: the Wikipedia article "Krippendorff's alpha": a line for each annotator, a character for each
#: row, "." for no vote. Printed there: 0.095, 0.692, 0.743, 0.691. More digits are from
#: krippendorff.alpha(..., level_of_measurement="nominal") of the package krippendorff 0.9.0.
PUBLISHED_ALPHAS = [
    (["0100000010", "1110010000"], 0.09523809523809534),
    (["aabbdcccedda", "babbbccceddd"], 0.6919642857142858),
    (["123321412...", "1233224125.3", ".3332342251.", "12332441251."], 0.743421052631579),
    ([".....34121133.3", "1.213343.......", "..21344.21133.4"], 0.691358024691358),
]

#: The example of the Wikipedia article "Fleiss' kappa": votes of 14 annotators on 10 rows, by
#: class. Printed there: 0.210. More digits: statsmodels 0.15.0, stats.inter_rater.fleiss_kappa.
PUBLISHED_COUNTS = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]
PUBLISHED_FLEISS = 0.20993070442195522


def mean_cohen_kappa(votes):
    kappas = votes.cohen_kappas()
    return kappas[np.triu_indices_from(kappas, k=1)].mean()


MEASURES = [mean_cohen_kappa, Votes.fleiss_kappa, Votes.krippendorff_alpha]


def votes_from_lines(lines):
    columns = np.array([list(line) for line in lines], dtype=object).T
    return Votes.from_columns(np.where(columns == ".", None, columns))


def votes_from_counts(counts):
    row, label = np.nonzero(counts)
    repeats = np.array(counts)[row, label]
    return Votes.from_table(np.repeat(row, repeats), None, np.repeat(label, repeats))


def drawn(seed, n=120, w=5, k=3, share=0.6, noise_rate=0.4):
    """Return votes of which some are missing; annotators prefer different classes when wrong."""
    rng = np.random.default_rng(seed)
    true = rng.choice(k, size=(n, 1), p=np.arange(1, k + 1) / np.arange(1, k + 1).sum())
    wrong = rng.random((n, w)) < noise_rate
    labels = np.where(wrong, rng.binomial(k - 1, np.linspace(0.2, 0.8, w), (n, w)), true)
    row, annotator = np.nonzero(rng.random((n, w)) < share)
    return Votes.from_table(row, annotator, labels[row, annotator], n_rows=n)


def with_repeated_votes(votes, seed):
    """Return the votes, and as many more of random annotators on the same rows."""
    rng = np.random.default_rng(seed)
    return Votes.from_table(
        np.tile(votes.row, 2),
        np.append(votes.annotator, rng.permutation(votes.annotator)),
        np.append(votes.label, rng.permutation(votes.label)),
        n_rows=len(votes),
    )


def pairs_of_votes(votes, a, b):
    """Return the labels of annotators a and b, one entry for each pair of votes on a row."""
    pairs = [
        (label_a, label_b)
        for row in range(len(votes))
        for label_a in votes.label[(votes.row == row) & (votes.annotator == a)]
        for label_b in votes.label[(votes.row == row) & (votes.annotator == b)]
    ]
    return np.array(pairs, dtype=int).reshape(-1, 2).T


def rows_of_labels(votes):
    """Return the labels on each row with at least two votes, as lists."""
    rows = [votes.label[votes.row == row].tolist() for row in range(len(votes))]
    return [labels for labels in rows if len(labels) > 1]


def share_differing(pairs):
    pairs = list(pairs)
    return Fraction(sum(a != b for a, b in pairs), len(pairs))


def enumerated_fleiss(votes):
    """Return Fleiss' kappa from all pairs of votes, in exact arithmetic."""
    rows = rows_of_labels(votes)
    shares = [share_differing(itertools.combinations(labels, 2)) for labels in rows]
    pooled = list(itertools.chain(*rows))
    by_chance = share_differing(itertools.product(pooled, repeat=2))
    return float(1 - sum(shares) / len(shares) / by_chance)


def enumerated_alpha(votes):
    """Return Krippendorff's alpha from his coincidence matrix, in exact arithmetic."""
    k = len(votes.classes)
    coincidences = [[Fraction(0)] * k for _ in range(k)]
    for labels in rows_of_labels(votes):
        for a, b in itertools.permutations(labels, 2):
            coincidences[a][b] += Fraction(1, len(labels) - 1)
    totals = [sum(line) for line in coincidences]
    total = sum(totals)
    different = list(itertools.permutations(range(k), 2))
    observed = sum(coincidences[a][b] for a, b in different)
    by_chance = sum(totals[a] * totals[b] for a, b in different) / (total - 1)
    return float(1 - observed / by_chance)


class TestCohenKappas:
    @pytest.mark.parametrize("k", [2, 3, 6])
    @pytest.mark.parametrize("seed", [0, 1])
    def test_equal_those_of_scikit_learn(self, seed, k):
        votes = drawn(seed, k=k)
        kappas = votes.cohen_kappas()
        for a, b in itertools.product(range(5), repeat=2):
            expected = cohen_kappa_score(*pairs_of_votes(votes, a, b))
            assert kappas[a, b] == pytest.approx(expected, abs=1e-12)

    def test_repeated_votes_count_by_pairs(self):
        votes = with_repeated_votes(drawn(0), seed=1)
        assert votes.table.max() > 1
        kappas = votes.cohen_kappas()
        for a, b in itertools.combinations(range(5), 2):
            expected = cohen_kappa_score(*pairs_of_votes(votes, a, b))
            assert kappas[a, b] == pytest.approx(expected, abs=1e-12)
            assert kappas[b, a] == kappas[a, b]
        np.testing.assert_array_equal(np.diag(kappas), 1)

    @pytest.mark.parametrize(
        ("confusion", "kappa"),
        [
            ([[20, 5], [10, 15]], 0.4),
            ([[45, 15], [25, 15]], 0.1304),
            ([[25, 35], [5, 35]], 0.2593),
        ],
    )
    def test_published_examples(self, confusion, kappa):
        """Examples of the Wikipedia article "Cohen's kappa"."""
        pairs = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], np.ravel(confusion), axis=0)
        assert Votes.from_columns(pairs).cohen_kappas()[0, 1] == pytest.approx(kappa, abs=5e-5)

    def test_marginals_are_those_of_the_shared_rows(self):
        """Annotator 1 has a vote for class "b", but not on the rows of annotator 0."""
        shared = [["a", "a"], ["a", "a"], ["b", "a"]]
        votes = Votes.from_columns([*shared, [None, "b"], [None, "b"]])
        assert votes.cohen_kappas()[0, 1] == 0  # 2/7 with the marginals of all votes

    def test_many_annotators_of_whom_few_share_rows(self):
        votes = drawn(2, n=200, w=30, k=4, share=0.08)
        kappas = votes.cohen_kappas()
        n_undefined = 0
        for a, b in itertools.combinations(range(30), 2):
            first, second = pairs_of_votes(votes, a, b)
            if len(np.union1d(first, second)) < 2:
                n_undefined += 1
                assert np.isnan(kappas[[a, b], [b, a]]).all()
            else:
                expected = cohen_kappa_score(first, second)
                np.testing.assert_allclose(kappas[[a, b], [b, a]], expected, atol=1e-12)
        assert 50 < n_undefined < 350  # of 435 pairs

    def test_undefined_for_one_class_or_no_shared_row(self):
        votes = Votes.from_columns(
            [["a", "a", None], ["a", "a", None], ["b", None, "a"], [None, "b", "a"]]
        )
        nan = np.nan
        expected = [[1, nan, 0], [nan, 1, 0], [0, 0, nan]]
        np.testing.assert_array_equal(votes.cohen_kappas(), expected)

    def test_opposite_constant_annotators_agree_as_by_chance(self):
        kappas = Votes.from_columns([["a", "b"]] * 3).cohen_kappas()
        np.testing.assert_array_equal(kappas, [[np.nan, 0], [0, np.nan]])

    def test_complementary_annotators_have_kappa_minus_one(self):
        kappas = Votes.from_columns([["a", "b"], ["b", "a"]]).cohen_kappas()
        np.testing.assert_array_equal(kappas, [[1, -1], [-1, 1]])

    def test_different_preferences_without_signal_are_no_agreement(self):
        kappas = np.array([drawn(s, noise_rate=1.0, n=300).cohen_kappas() for s in range(40)])
        pairs = kappas[:, *np.triu_indices(5, k=1)]
        standard_errors = pairs.std(axis=0, ddof=1) / np.sqrt(len(pairs))
        assert (np.abs(pairs.mean(axis=0)) < 4 * standard_errors).all()


class TestFleissKappa:
    def test_published_example(self):
        kappa = votes_from_counts(PUBLISHED_COUNTS).fleiss_kappa()
        assert kappa == pytest.approx(PUBLISHED_FLEISS, abs=1e-12)

    def test_counts_may_be_whole_numbers(self):
        kappa = fleiss_kappa(np.array(PUBLISHED_COUNTS))
        assert kappa == pytest.approx(PUBLISHED_FLEISS, abs=1e-12)

    @pytest.mark.parametrize("seed", range(4))
    def test_equals_enumeration_of_pairs(self, seed):
        votes = drawn(seed, n=40)
        assert len(np.unique(votes.n_votes)) > 3
        assert votes.fleiss_kappa() == pytest.approx(enumerated_fleiss(votes), abs=1e-12)
        repeated = with_repeated_votes(votes, seed)
        assert repeated.fleiss_kappa() == pytest.approx(enumerated_fleiss(repeated), abs=1e-12)

    def test_observed_disagreement_is_that_of_votes(self):
        votes = drawn(0)
        shares = votes[votes.n_votes > 1].counts.sum(axis=0)
        shares /= shares.sum()
        expected = 1 - votes.disagreement / (1 - shares @ shares)
        assert votes.fleiss_kappa() == pytest.approx(expected, abs=1e-12)


class TestKrippendorffAlpha:
    @pytest.mark.parametrize(("lines", "alpha"), PUBLISHED_ALPHAS)
    def test_published_examples(self, lines, alpha):
        votes = votes_from_lines(lines)
        assert votes.krippendorff_alpha() == pytest.approx(alpha, abs=1e-12)

    @pytest.mark.parametrize("seed", range(4))
    def test_equals_enumeration_of_pairs(self, seed):
        votes = drawn(seed, n=40)
        assert votes.krippendorff_alpha() == pytest.approx(enumerated_alpha(votes), abs=1e-12)
        repeated = with_repeated_votes(votes, seed)
        expected = enumerated_alpha(repeated)
        assert repeated.krippendorff_alpha() == pytest.approx(expected, abs=1e-12)

    def test_corrects_fleiss_kappa_for_small_samples(self):
        """For N votes in all, as many on each row, 1 − α = (1 − κ)(N − 1)/N."""
        votes = drawn(0, n=20, share=1.0)
        expected = 1 - (1 - votes.fleiss_kappa()) * 99 / 100
        assert votes.krippendorff_alpha() == pytest.approx(expected, abs=1e-12)


class TestEachMeasure:
    @pytest.mark.parametrize("measure", MEASURES)
    def test_perfect_agreement_is_one(self, measure):
        assert measure(drawn(0, noise_rate=0.0)) == 1

    @pytest.mark.parametrize("noise_rate", [0.5, 0.3, 0.1])
    @pytest.mark.parametrize("measure", MEASURES)
    def test_noise_rate_e_of_two_classes_gives_the_square_of_1_minus_2e(self, measure, noise_rate):
        """Votes are right independently with probability 1 − e; classes are as frequent."""
        estimates = []
        for seed in range(40):
            rng = np.random.default_rng(seed)
            wrong = rng.random((400, 4)) < noise_rate
            labels = (np.arange(400)[:, None] % 2) ^ wrong
            row, annotator = np.nonzero(rng.random((400, 4)) < 0.7)
            estimates.append(measure(Votes.from_table(row, annotator, labels[row, annotator])))
        standard_error = np.std(estimates, ddof=1) / np.sqrt(len(estimates))
        bias = 1 / 400  # chance agreement is estimated: of the order of 1/n
        error = np.mean(estimates) - (1 - 2 * noise_rate) ** 2
        assert abs(error) < 4 * standard_error + bias
        assert standard_error < 0.01

    @pytest.mark.parametrize(
        "votes",
        [
            Votes.from_table([0, 1, 2], ["x", "y", "x"], ["a", "b", "a"]),
            Votes.from_columns([["a", "a"], ["a", "a"], ["b", None]]),
            Votes.from_columns([["a", "a"], ["a", None], ["a", "a"]]),
        ],
        ids=["no row with two votes", "one class where there are two votes", "one class"],
    )
    @pytest.mark.parametrize("measure", MEASURES)
    def test_undefined_is_nan(self, measure, votes):
        assert np.isnan(measure(votes))

    def test_one_annotator(self):
        votes = Votes.from_columns(["a", "b", None, "a"])
        np.testing.assert_array_equal(votes.cohen_kappas(), [[1]])
        assert np.isnan([votes.fleiss_kappa(), votes.krippendorff_alpha()]).all()
        np.testing.assert_array_equal(Votes.from_columns(["a", "a"]).cohen_kappas(), [[np.nan]])

    def test_no_votes(self):
        votes = drawn(0)[[]]
        assert votes.cohen_kappas().shape == (0, 0)
        assert np.isnan([votes.fleiss_kappa(), votes.krippendorff_alpha()]).all()

    def test_unknown_annotators_count_as_different_votes(self):
        votes = drawn(0)
        anonymous = Votes.from_table(votes.row, None, votes.label, n_rows=len(votes))
        assert anonymous.fleiss_kappa() == votes.fleiss_kappa()
        assert anonymous.krippendorff_alpha() == votes.krippendorff_alpha()

    def test_names_and_order_do_not_matter(self):
        votes = drawn(0)
        rng = np.random.default_rng(1)
        lines = rng.permutation(len(votes.row))
        rows = rng.permutation(len(votes))
        names = rng.permutation(5)
        classes = np.array(["y", "z", "x"])
        other = Votes.from_table(
            rows[votes.row[lines]],
            names[votes.annotator[lines]],
            classes[votes.label[lines]],
            n_rows=len(votes),
        )
        kappas = other.cohen_kappas()[np.ix_(names, names)]
        np.testing.assert_allclose(kappas, votes.cohen_kappas(), atol=1e-12)
        for measure in MEASURES:
            assert measure(other) == pytest.approx(measure(votes), abs=1e-12)

    @pytest.mark.parametrize("measure", MEASURES)
    def test_rows_with_less_than_two_votes_do_not_matter(self, measure):
        votes = drawn(0)
        more = Votes.from_table(
            np.append(votes.row, 200 + np.arange(300)),
            np.append(votes.annotator, np.arange(300) % 5),
            np.append(votes.label, np.arange(300) % 4),  # and a class that is nowhere else
            n_rows=600,
        )
        assert measure(more) == pytest.approx(measure(votes), abs=1e-12)
        assert measure(votes[votes.n_votes > 1]) == pytest.approx(measure(votes), abs=1e-12)
