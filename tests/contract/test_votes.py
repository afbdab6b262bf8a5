"""Votes in place of labels: `LPClassifier.fit` and `audit`."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from unflip import LPClassifier, NoiseModel, Votes, audit
from unflip._utils.record_tables import lines_of
from unflip.datasets import make_mixture
from unflip.estimation import AssumedNoiseWarning, CrossMoment, TrustedSubset

NOISE = NoiseModel.binary(eps_pos=0.35, eps_neg=0.2)
SKILLS = np.array([0.9, 0.8, 0.7, 0.6, 0.55])
ATTRIBUTES = (
    "coef_",
    "intercept_",
    "label_posterior_",
    "loo_log_odds_",
    "loo_decision_",
    "targets_",
)


def drawn(n=300, p=40, seed=0, n_votes=3, mean_norm=1.5):
    """Return rows, true classes, and `n_votes` votes on each row by annotators of unequal skill."""
    X, y = make_mixture(n, p, mean_norm=mean_norm, random_state=seed)
    rng = np.random.default_rng(seed)
    annotator = np.argsort(rng.random((n, len(SKILLS))), axis=1)[:, :n_votes].ravel()
    row = np.repeat(np.arange(n), n_votes)
    labels = np.where(rng.random(n * n_votes) < SKILLS[annotator], y[row], 1 - y[row])
    return X, y, Votes.from_table(row, annotator, labels)


def assert_same_fit(a, b, tolerance=1e-10):
    for name in (*ATTRIBUTES, "expected_accuracy_", "expected_accuracy_std_", "reg_"):
        np.testing.assert_allclose(
            getattr(a, name), getattr(b, name), rtol=tolerance, atol=tolerance, err_msg=name
        )


@pytest.mark.parametrize(
    "options",
    [{}, {"readout": "plain"}, {"loss": "logistic"}, {"fit_intercept": False, "reg": 0.1}],
)
@pytest.mark.parametrize("priors", [None, [0.5, 0.5]])
def test_one_vote_per_row_equals_a_label(options, priors):
    X, y = make_mixture(200, 30, mean_norm=1.5, random_state=0)
    labels = NOISE.flip(y, random_state=0)
    plain = LPClassifier(NOISE, priors=priors, **options).fit(X, labels)
    votes = LPClassifier(NOISE, priors=priors, **options).fit(X, Votes.from_columns(labels))
    assert_same_fit(votes, plain)
    assert votes.noise_ == plain.noise_


def test_one_vote_per_row_equals_a_label_of_several_classes():
    means = 2.5 * np.eye(3, 20)
    X, y = make_mixture(240, 20, means=means, random_state=0)
    noise = NoiseModel(np.full((3, 3), 0.15) + 0.55 * np.eye(3), np.full(3, 1 / 3))
    labels = noise.flip(y, random_state=0)
    plain = LPClassifier(noise, reg=0.1).fit(X, labels)
    assert_same_fit(LPClassifier(noise, reg=0.1).fit(X, Votes.from_columns(labels)), plain)


def test_annotator_of_a_single_vote_does_not_matter():
    X, y = make_mixture(200, 30, mean_norm=1.5, random_state=0)
    labels = NOISE.flip(y, random_state=0)
    many = Votes.from_table(np.arange(200), np.arange(200) % 7, labels)
    assert_same_fit(LPClassifier(NOISE).fit(X, many), LPClassifier(NOISE).fit(X, labels))


def test_rates_of_single_votes_are_estimated_as_those_of_labels():
    X, y = make_mixture(600, 30, mean_norm=2.0, random_state=0)
    labels = NOISE.flip(y, random_state=0)
    plain = LPClassifier().fit(X, labels)
    votes = LPClassifier().fit(X, Votes.from_columns(labels))
    assert_same_fit(votes, plain)
    np.testing.assert_array_equal(votes.noise_std_, plain.noise_std_)


def test_more_votes_improve_accuracy_and_expected_accuracy_is_unbiased():
    X_new, y_new = make_mixture(4000, 100, mean_norm=1.5, random_state=99)
    scores, gains, gaps = [], [], []
    for seed in range(6):
        X, y, votes = drawn(n=300, p=100, seed=seed, n_votes=4)
        clf = LPClassifier().fit(X, votes)
        one = LPClassifier(np.mean([[[s, 1 - s], [1 - s, s]] for s in SKILLS], axis=0)).fit(
            X, votes.label[::4]
        )
        scores.append(clf.score(X_new, y_new))
        gains.append(scores[-1] - one.score(X_new, y_new))
        gaps.append(clf.score(X_new, y_new) - clf.expected_accuracy_)
        assert (clf.label_posterior_.argmax(axis=1) == y).mean() > (
            votes.counts.argmax(axis=1) == y
        ).mean()
    assert np.mean(scores) > 0.905
    assert np.mean(gains) > 0.015
    assert abs(np.mean(gaps)) < 0.03
    assert clf.annotators_.names.tolist() == [0, 1, 2, 3, 4]
    assert np.diag(clf.noise_.transition).mean() == pytest.approx(SKILLS.mean(), abs=0.05)


def test_a_row_of_weight_two_equals_two_rows():
    X, _, votes = drawn(n=150)
    twice = np.append(np.arange(150), np.arange(40))
    repeated = LPClassifier().fit(X[twice], votes[twice])
    weighted = LPClassifier().fit(X, votes, sample_weight=1.0 + (np.arange(150) < 40))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        weighted.label_posterior_, repeated.label_posterior_[:150], atol=1e-4
    )


def test_zero_weight_rows_are_ignored():
    X, _, votes = drawn(n=150)
    kept = np.arange(150) >= 30
    absent = LPClassifier().fit(X[kept], votes[kept])
    zero_weight = LPClassifier().fit(X, votes, kept.astype(float))
    np.testing.assert_allclose(zero_weight.coef_, absent.coef_, rtol=1e-6, atol=1e-9)
    assert zero_weight.label_posterior_.shape == (150, 2)


def test_order_and_names_do_not_matter():
    X, _, votes = drawn()
    rng = np.random.default_rng(0)
    order, names = rng.permutation(len(votes.row)), rng.permutation(5)
    labels = np.array(["yes", "no"])[votes.label[order]]  # sorted the other way round
    other = Votes.from_table(votes.row[order], names[votes.annotator[order]], labels)
    a, b = LPClassifier().fit(X, votes), LPClassifier().fit(X, other)
    np.testing.assert_allclose(
        b.decision_function(X), -a.decision_function(X), rtol=1e-3, atol=1e-3
    )
    np.testing.assert_allclose(b.label_posterior_[:, ::-1], a.label_posterior_, atol=1e-3)


def test_adversarial_and_constant_annotators_do_no_harm():
    X, y, votes = drawn(n=400)
    adversary = 1 - y
    constant = np.ones(400, dtype=int)
    more = Votes.from_table(
        np.append(votes.row, np.tile(np.arange(400), 2)),
        np.append(votes.annotator, np.repeat([5, 6], 400)),
        np.concatenate([votes.label, adversary, constant]),
    )
    clf = LPClassifier().fit(X, more)
    assert clf.annotators_.transitions[5, 0, 0] < 0.1
    assert clf.annotators_.transitions[5, 1, 1] < 0.1
    assert (clf.annotators_.transitions[6, :, 1] > 0.95).all()
    assert (clf.label_posterior_.argmax(axis=1) == y).mean() > 0.97  # the adversary is informative


def test_rows_without_votes_get_a_proposed_label():
    X, y, votes = drawn(n=400, n_votes=3)
    asked = np.arange(400) % 2 == 0
    part = asked[votes.row]
    partial = Votes.from_table(
        votes.row[part], votes.annotator[part], votes.label[part], n_rows=400
    )
    result = audit(X, partial)
    np.testing.assert_array_equal(np.sort(result.unlabelled.row), np.flatnonzero(~asked))
    assert asked[result.suspects.row].all()
    right = result.unlabelled.proposed == y[result.unlabelled.row]
    assert right.mean() == pytest.approx(result.unlabelled.probability.mean(), abs=0.06)
    assert right.mean() > 0.85
    assert (np.diff(result.unlabelled.probability) <= 0).all()
    assert "200 rows have no vote" in str(result)


def test_missing_labels():
    """Rates are estimated from the rows with labels, the fit uses all rows."""
    X, y = make_mixture(600, 30, mean_norm=2.0, random_state=1)
    labels = NOISE.flip(y, random_state=1).astype(float)
    labels[::3] = np.nan
    clf = LPClassifier().fit(X, Votes.from_columns(labels))
    has_label = np.isfinite(labels)
    plain = LPClassifier().fit(X[has_label], labels[has_label])
    np.testing.assert_allclose(clf.noise_.transition, plain.noise_.transition, atol=1e-12)
    assert (clf.label_posterior_.argmax(axis=1) == y)[~has_label].mean() > 0.9


def test_audit_of_votes_finds_wrong_majority_labels():
    X, y, votes = drawn(n=500, mean_norm=2.0)
    result = audit(X, votes)
    assert result.noise_source == "votes"
    majority = votes.counts.argmax(axis=1)
    odd = votes.n_votes % 2 == 1  # no ties
    rows = result.suspects.row[odd[result.suspects.row]]
    np.testing.assert_array_equal(result.classes[result.evidence.codes[rows]], majority[rows])
    n = result.n_suspects
    assert (result.suspects.proposed[:n] == y[result.suspects.row[:n]]).mean() > 0.85
    assert result.expected_wrong == pytest.approx(
        (majority != y).sum(), abs=3 * result.expected_wrong_std + 10
    )
    assert "majority labels are wrong" in str(result)
    assert "not tested" in str(result)
    assert np.isnan(result.dependence.p_value)
    assert len(result.sensitivity) == 5
    assert len(result.unlabelled) == 0
    assert result.accuracy_after(500) >= result.expected_accuracy
    assert len(result.check_next(7)) == 7


def test_audit_of_single_votes_equals_that_of_labels():
    X, y = make_mixture(300, 30, mean_norm=1.5, random_state=0)
    labels = NOISE.flip(y, random_state=0)
    plain, votes = audit(X, labels, noise=NOISE), audit(X, Votes.from_columns(labels), noise=NOISE)
    assert (votes.noise_source, votes.n_suspects) == (plain.noise_source, plain.n_suspects)
    np.testing.assert_allclose(votes.label_posterior, plain.label_posterior, atol=1e-10)
    np.testing.assert_array_equal(votes.suspects.row, plain.suspects.row)
    assert votes.expected_wrong == pytest.approx(plain.expected_wrong, rel=1e-10)


def test_audit_with_groups():
    X, y, votes = drawn(n=300)
    twice = np.repeat(np.arange(300), 2)
    jitter = 1e-3 * np.random.default_rng(0).normal(size=(600, X.shape[1]))
    result = audit(X[twice] + jitter, votes[twice], groups=twice)
    majority = result.evidence.codes
    assert result.noise_source == "votes"
    assert (result.label_posterior.argmax(axis=1) == y[twice]).mean() > (
        majority == y[twice]
    ).mean()


def test_trusted_labels_are_certain():
    X, y, votes = drawn(n=300)
    trusted = np.full(300, None)
    trusted[:60] = y[:60]
    clf = LPClassifier(TrustedSubset(trusted)).fit(X, votes)
    np.testing.assert_array_equal(clf.label_posterior_[:60], np.eye(2)[y[:60]])
    assert clf.noise_estimator_ is not clf.noise
    audited = audit(X, votes, trusted=trusted)
    np.testing.assert_allclose(audited.label_posterior, clf.label_posterior_, atol=1e-10)


def test_known_priors_are_kept():
    X, _, votes = drawn()
    np.testing.assert_allclose(
        LPClassifier(priors=[0.3, 0.7]).fit(X, votes).noise_.priors, [0.3, 0.7]
    )


def test_classes_are_those_with_votes():
    X, _, votes = drawn()
    named = Votes.from_table(votes.row, votes.annotator, np.array(["a", "c"])[votes.label])
    assert LPClassifier().fit(X, named).classes_.tolist() == ["a", "c"]
    with pytest.raises(ValueError, match="has 3 classes but y has 2"):
        LPClassifier(np.eye(3)).fit(X, named)


def test_clone_and_sparse_rows():
    from scipy.sparse import csr_array

    X, _, votes = drawn(n=80)
    dense = LPClassifier(NOISE).fit(X, votes)
    np.testing.assert_allclose(
        clone(dense).fit(csr_array(X), votes).coef_, dense.coef_, rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize(
    ("options", "rows", "message"),
    [
        ({"targets": "optimized"}, 60, "Votes need targets='refined'"),
        ({"reg": "theory"}, 60, "Votes need targets='refined'"),
        ({}, 59, "The votes are on 60 rows but X has 59"),
        ({"noise": CrossMoment()}, 60, "with votes use 'estimate' or TrustedSubset"),
        ({"noise": None}, 60, "have probability 0 for every class"),
        ({"priors": [0.2, 0.9]}, 60, "priors sum to"),
    ],
)
def test_invalid_input_raises(options, rows, message):
    X, _, votes = drawn(n=60)
    with pytest.raises(ValueError, match=message):
        LPClassifier(**options).fit(X[:rows], votes)


def test_votes_for_one_class_raise():
    X, _, _ = drawn(n=60)
    with pytest.raises(ValueError, match="at least two classes"):
        LPClassifier().fit(X, Votes.from_columns(np.ones(60, dtype=int)))


def test_rates_of_single_votes_are_those_of_labels():
    X, y = make_mixture(200, 30, mean_norm=1.5, random_state=0)
    labels = NOISE.flip(y, random_state=0)
    stretched = X * np.linspace(0.2, 2, 30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumedNoiseWarning)
        votes = LPClassifier().fit(stretched, Votes.from_columns(labels))
        single = LPClassifier().fit(stretched, labels)
        result = audit(stretched, Votes.from_columns(labels))
    for name in ("noise_std_", "coef_", "label_posterior_", "expected_accuracy_"):
        np.testing.assert_array_equal(getattr(votes, name), getattr(single, name))
    assert votes.noise_ == single.noise_
    assert votes.annotators_ is not None
    assert result.noise_source == "label likelihood"


def test_single_votes_give_one_warning():
    X, y = make_mixture(200, 30, mean_norm=1.5, random_state=0)
    shuffled = np.random.default_rng(0).permutation(y)
    with pytest.warns(AssumedNoiseWarning) as caught:
        LPClassifier().fit(X, Votes.from_columns(shuffled))
    assert len(caught) == 1


def test_odd_annotators_do_no_harm():
    """One vote, always the same label, a copy, and rows without votes, beside five others."""
    X, y = make_mixture(500, 20, mean_norm=1.5, random_state=0)
    rng = np.random.default_rng(0)
    labels = np.where(
        rng.random((500, 5)) < [0.8, 0.75, 0.7, 0.7, 0.65], y[:, None], 1 - y[:, None]
    )
    plain = Votes.from_columns(labels)
    columns = np.column_stack([labels, np.full((500, 2), None), labels[:, 0]]).astype(object)
    columns[3, 5] = 1 - y[3]
    columns[:, 6] = 1
    columns[10:13] = None
    names = ["a", "b", "c", "d", "e", "once", "constant", "copy of a"]
    odd = Votes.from_columns(columns, names)
    right = [
        np.mean(LPClassifier().fit(X, votes).label_posterior_.argmax(axis=1) == y)
        for votes in (plain, odd)
    ]
    assert right[1] > right[0] - 0.015
    result = audit(X, odd)
    assert "a and copy of a copy each other" in result.summary["Votes"]
    table = {line.annotator: line for line in lines_of(result.annotators)}
    assert table["constant"].information < 0.02
    assert table["once"].low < 0.3 < 0.7 < table["once"].high
    assert len(result.unlabelled) == 3
