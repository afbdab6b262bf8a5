"""Votes of annotators that abstain: voting rates, one-sided rules, and what is reported of them."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from unflip import LPClassifier, NoiseModel, Votes, audit
from unflip.datasets import make_messages, make_mixture
from unflip.estimation import TrustedSubset
from unflip.labels.annotators import Annotators
from unflip.labels.codes import UNCHECKED
from unflip.labels.crowd import Crowd

# P(rule votes | true class) of six rules, each of which gives one label only.
RULE_LABELS = np.array([0, 0, 0, 1, 1, 1])
RULE_RATES = np.array([[0.3, 0.05], [0.2, 0.01], [0.5, 0.3], [0.02, 0.2], [0.05, 0.3], [0.3, 0.5]])


def rule_votes(y, rng, rates=RULE_RATES):
    """Return the votes of independent rules."""
    row, rule = np.nonzero(rng.random((len(y), len(rates))) < rates[:, y].T)
    return Votes.from_table(row, rule, RULE_LABELS[rule], n_rows=len(y), abstentions=True)


def crowd_of(votes, truth=None, **options):
    n = len(votes)
    known = np.full(n, UNCHECKED) if truth is None else truth
    return Crowd(votes=votes, weights=np.ones(n), truth=known, **options)


def with_truth(n=4000, seed=0):
    """Return true classes, votes of rules, and the annotators estimated with all true classes."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.3).astype(int)
    votes = rule_votes(y, rng)
    crowd = crowd_of(votes, truth=y)
    return y, votes, crowd.with_features(np.zeros((n, 2)), crowd.by_agreement())


class TestEstimates:
    def test_voting_rates_are_the_shares_of_the_rows_with_a_vote(self):
        y, votes, annotators = with_truth()
        has_vote = np.zeros((len(y), 6))
        has_vote[votes.row, votes.annotator] = 1
        shares = np.array([has_vote[y == a].mean(axis=0) for a in (0, 1)]).T
        error = np.sqrt(shares * (1 - shares) / np.bincount(y))
        # The precision of rules is shrunk towards that of all, by at least one vote.
        assert (np.abs(annotators.voting_rates - shares) < error).all()
        assert annotators.transitions[np.arange(6), :, RULE_LABELS] == pytest.approx(1)

    def test_a_vote_has_the_shrunk_precision_of_its_rule(self):
        """P(a | b) by Bayes' rule from the joint rates is the Dirichlet mean of its definition."""
        y, votes, annotators = with_truth()
        counts = np.zeros((6, 2))
        np.add.at(counts, (votes.annotator, y[votes.row]), 1)
        pooled = np.array([counts[b == RULE_LABELS].sum(axis=0) + 0.5 for b in (0, 1)])
        pooled = pooled / pooled.sum(axis=1, keepdims=True)
        precision = annotators.priors * annotators.joint[np.arange(6), :, RULE_LABELS]
        precision /= precision.sum(axis=1, keepdims=True)
        prior = pooled[RULE_LABELS]
        # The number of pseudo-votes is the same for all rules and classes.
        with np.errstate(divide="ignore"):
            strength = (counts - precision * counts.sum(axis=1, keepdims=True)) / (
                precision - prior
            )
        np.testing.assert_allclose(strength, strength[0, 0], rtol=1e-8)
        np.testing.assert_allclose(annotators.accuracy, precision[np.arange(6), RULE_LABELS])

    def test_a_row_with_one_vote_has_the_precision_of_its_rule(self):
        _, votes, annotators = with_truth()
        posterior = annotators.channel(votes).posterior
        rows = votes.row[votes.n_votes[votes.row] == 1]
        rules = votes.annotator[votes.n_votes[votes.row] == 1]
        right = posterior[rows, RULE_LABELS[rules]]
        np.testing.assert_allclose(right, annotators.accuracy[rules], rtol=1e-10)

    def test_a_row_without_votes_has_the_class_priors(self):
        _, votes, annotators = with_truth()
        posterior = annotators.channel(votes).posterior
        rows = np.flatnonzero(~votes.voted)
        np.testing.assert_allclose(
            posterior[rows], np.tile(annotators.priors, (len(rows), 1)), rtol=1e-12
        )

    def test_rates_without_true_classes(self):
        """Many rows whose features tell the class give the voting rates within their error."""
        rng = np.random.default_rng(1)
        n = 20_000
        y = (rng.random(n) < 0.3).astype(int)
        votes = rule_votes(y, rng)
        score = rng.normal(size=n) + 4 * y - 2
        log_odds = np.column_stack([np.zeros(n), 4 * score + np.log(3 / 7)])
        crowd = crowd_of(votes)
        annotators = crowd.with_features(log_odds, crowd.by_agreement())
        error = np.sqrt(RULE_RATES * (1 - RULE_RATES) / np.bincount(y))
        assert (np.abs(annotators.voting_rates - RULE_RATES) < 4 * error + 1 / np.sqrt(n)).all()

    def test_the_order_of_rules_does_not_matter(self):
        y, votes, annotators = with_truth(n=500)
        names = np.array([3, 5, 0, 1, 4, 2])
        other = Votes.from_table(
            votes.row, names[votes.annotator], votes.label, n_rows=500, abstentions=True
        )
        crowd = crowd_of(other, truth=y)
        moved = crowd.with_features(np.zeros((500, 2)), crowd.by_agreement())
        np.testing.assert_allclose(moved.joint[names], annotators.joint, rtol=1e-10)


class TestNoiseRates:
    @pytest.mark.parametrize("change", [-0.05, 0.1])
    def test_a_moved_rate_is_that_of_all_votes(self, change):
        _, _, annotators = with_truth()
        moved = annotators.moved(1, change)
        expected = annotators.noise_rates.copy()
        expected[:, 1] += change
        np.testing.assert_allclose(moved.noise_rates, expected, rtol=1e-10)
        np.testing.assert_allclose(moved.joint[:, 0], annotators.joint[:, 0], rtol=1e-10)

    @pytest.mark.parametrize("abstentions", [True, False])
    def test_derivatives_are_those_of_moved_rates(self, abstentions):
        rng = np.random.default_rng(0)
        y = rng.integers(3, size=300)
        labels = np.where(rng.random((300, 4)) < 0.7, y[:, None], rng.integers(3, size=(300, 4)))
        row, annotator = np.nonzero(rng.random((300, 4)) < 0.6)
        votes = Votes.from_table(
            row, annotator, labels[row, annotator], n_rows=300, abstentions=abstentions
        )
        crowd = crowd_of(votes)
        annotators = crowd.with_features(np.zeros((300, 3)), crowd.by_agreement())
        channel = annotators.channel(votes)
        step = 1e-6
        for a in range(3):
            up, down = (annotators.moved(a, s).channel(votes).transition for s in (step, -step))
            numerical = (up[a] - down[a]) / (2 * step)
            np.testing.assert_allclose(channel.rate_derivatives[a], numerical, rtol=1e-6)

    def test_the_noise_of_a_vote_is_that_of_all_rules_together(self):
        y, votes, annotators = with_truth()
        noise, errors = crowd_of(votes, truth=y).noise(annotators)
        counts = np.zeros((2, 2))
        np.add.at(counts, (y[votes.row], votes.label), 1)
        expected = counts / counts.sum(axis=1, keepdims=True)
        assert (np.abs(noise.transition - expected) < 2 * errors).all()


class TestFits:
    def test_one_sided_rules_beat_the_majority(self):
        """Relabelled rows are better, and class proportions are those of all rows."""
        options = {"mean_norm": 1.0, "priors": [0.7, 0.3]}
        relabelled, majority, priors = [], [], []
        for seed in range(4):
            X, y = make_mixture(900, 30, **options, random_state=seed)
            votes = rule_votes(y, np.random.default_rng(seed))
            majority.append((votes.counts.argmax(axis=1) == y).mean())
            fitted = LPClassifier().fit(X, votes)
            relabelled.append((fitted.label_posterior_.argmax(axis=1) == y).mean())
            priors.append(fitted.annotators_.priors[1])
        assert np.mean(relabelled) > np.mean(majority) + 0.02
        assert np.mean(priors) == pytest.approx(0.3, abs=0.04)  # rows with votes start at 0.45

    def test_one_sided_annotators_without_abstentions_are_an_error(self):
        X, y = make_mixture(300, 10, mean_norm=1.0, random_state=0)
        votes = replace(rule_votes(y, np.random.default_rng(0)), abstentions=False)
        for fit in (LPClassifier().fit, audit):
            with pytest.raises(ValueError, match="pass abstentions=True to Votes"):
                fit(X, votes)

    def test_rows_without_votes_have_weight_zero(self):
        X, y = make_mixture(300, 10, mean_norm=1.0, random_state=0)
        votes = rule_votes(y, np.random.default_rng(0))
        given = votes.voted.astype(float)
        fits = [LPClassifier().fit(X, votes, weights) for weights in (None, given)]
        np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
        # They still have a label posterior, by their features.
        assert np.ptp(fits[0].label_posterior_[~votes.voted, 1]) > 0.5

    def test_annotators_who_label_all_rows_lose_nothing(self):
        X, y = make_mixture(600, 100, mean_norm=1.5, random_state=0)
        rng = np.random.default_rng(0)
        skills = np.array([0.85, 0.75, 0.7, 0.65])
        labels = np.where(rng.random((600, 4)) < skills, y[:, None], 1 - y[:, None])
        accuracy = []
        for abstentions in (True, False):
            votes = Votes.from_columns(labels, abstentions=abstentions)
            fitted = LPClassifier().fit(X, votes)
            accuracy.append((fitted.label_posterior_.argmax(axis=1) == y).mean())
        assert accuracy[0] == pytest.approx(accuracy[1], abs=0.01)

    def test_at_most_one_vote_on_each_row(self):
        """Rules that never apply together are still told apart by the features."""
        X, y = make_mixture(800, 20, mean_norm=2.0, random_state=0)
        rng = np.random.default_rng(0)
        votes = rule_votes(y, rng)
        first = np.unique(votes.row, return_index=True)[1]
        alone = Votes.from_table(
            votes.row[first],
            votes.annotator[first],
            votes.label[first],
            n_rows=800,
            abstentions=True,
        )
        assert not alone.single
        fitted = LPClassifier().fit(X, alone)
        right = fitted.annotators_.accuracy
        truth = [(y[alone.row] == alone.label)[alone.annotator == w].mean() for w in range(6)]
        assert np.corrcoef(right, truth)[0, 1] > 0.9

    def test_given_noise_holds_for_every_rule(self):
        X, y = make_mixture(300, 20, mean_norm=2.0, random_state=0)
        votes = rule_votes(y, np.random.default_rng(0))
        noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1, pi_neg=0.5)
        fits = [
            LPClassifier(noise).fit(X, chosen, votes.voted.astype(float))
            for chosen in (votes, replace(votes, abstentions=False))
        ]
        np.testing.assert_array_equal(fits[0].label_posterior_, fits[1].label_posterior_)

    def test_an_audit_reports_the_annotators(self, tmp_path):
        X, y = make_mixture(600, 20, mean_norm=2.0, random_state=0)
        votes = rule_votes(y, np.random.default_rng(0))
        result = audit(X, votes)
        table = result.annotators
        assert table.annotator.tolist() == votes.summary().annotator.tolist()
        assert ((table.low < table.accuracy) & (table.accuracy < table.high)).all()
        precise = np.array(
            [(y == b)[votes.row[votes.annotator == w]].mean() for w, b in enumerate(RULE_LABELS)]
        )
        assert np.abs(table.accuracy - precise[table.annotator]).max() < 0.15
        result.to_html(tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert '<h2 id="annotators-heading">Annotators</h2>' in page
        assert page.count('<tr><th scope="row">') >= 6

    def test_labels_have_no_annotators(self, tmp_path):
        X, y = make_mixture(200, 20, mean_norm=2.0, random_state=0)
        noise = NoiseModel.binary(eps_pos=0.1, eps_neg=0.1)
        result = audit(X, noise.flip(y, random_state=0), noise=noise)
        assert result.annotators is None
        result.to_html(tmp_path / "page.html")
        assert "annotators-heading" not in (tmp_path / "page.html").read_text(encoding="utf-8")


class TestVotes:
    def test_parts_keep_abstentions(self):
        votes = Votes.from_columns([["a", None], [None, "b"], ["a", "b"]], abstentions=True)
        assert votes[[0, 2]].abstentions
        assert "abstentions" in repr(votes)
        assert not Votes.from_columns([["a", None]]).abstentions

    def test_a_summary_of_each_annotator(self):
        votes = Votes.from_columns(
            [
                ["a", "a", None],
                ["a", "b", None],
                ["b", "b", "b"],
                ["b", "b", None],
                ["a", None, None],
            ],
            ["Ann", "Bob", "Cem"],
        )
        summary = votes.summary()
        assert summary.annotator.tolist() == ["Ann", "Bob", "Cem"]
        assert summary.votes.tolist() == [5, 4, 1]
        np.testing.assert_allclose(summary.coverage, [1, 0.8, 0.2])
        assert summary.label.tolist() == ["a", "b", "b"]
        np.testing.assert_allclose(summary.label_share, [0.6, 0.75, 1])
        assert np.isnan(summary.kappa[2])  # all votes of its pairs are for one class

    def test_annotators_of_the_same_name(self):
        with pytest.raises(ValueError, match="annotators holds 'Ann' more than once"):
            Votes.from_columns([[0, 1, 0]], ["Ann", "Bob", "Ann"])

    def test_known_transitions_have_exact_accuracies(self):
        noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1, pi_neg=0.5)
        annotators = Annotators.from_noise(noise, Votes.from_columns([[0, 1], [1, 0]]))
        np.testing.assert_allclose(annotators.accuracy, 0.85)

    @pytest.mark.parametrize("seed", [1, 2, 3])
    def test_features_that_rules_look_at_are_no_proof_of_them(self, seed):
        """Words are rules and features: without checks, intervals are wide, with them valid."""
        texts, y = make_messages(1000, random_state=seed)
        words = {"charged": 0, "invoice": 0, "price": 0, "refund": 0}
        words |= {"address": 1, "courier": 1, "package": 1, "parcel": 1}
        labels = [[b if word in text else None for word, b in words.items()] for text in texts]
        votes = Votes.from_columns(labels, list(words), abstentions=True)
        X = TfidfVectorizer().fit_transform(texts)
        first = audit(X, votes)
        assert first.n_suspects == 0
        trusted = np.full(1000, None)
        rows = first.check_next(100, random_state=seed)
        trusted[rows] = y[rows]
        checked = audit(X, votes, trusted=trusted)
        for result in (first, checked):
            right = result.label_posterior.argmax(axis=1) == y
            predicted = result.evidence.probabilities.argmax(axis=1) == y
            labels, accuracy = result.corrected_labels_interval, result.expected_accuracy_interval
            assert labels.low <= right[votes.voted].mean() <= labels.high
            assert accuracy.low <= predicted.mean() <= accuracy.high
        assert checked.corrected_labels_interval.width < first.corrected_labels_interval.width
        # A classifier with the same checked rows expects the same.
        fitted = LPClassifier(TrustedSubset(trusted)).fit(X, votes)
        voted = checked.evidence.true_class.restricted(votes.voted).expected_accuracy
        assert fitted.expected_accuracy_ == pytest.approx(voted.value, abs=0.03)
