"""Refinement: targets of each row's own, scores that its own label has no part in, and rounds that do not drift."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score

from unflip import LPClassifier, NoiseModel
from unflip.datasets import make_mixture
from unflip.estimation import TrustedSubset
from unflip.losses import LOGISTIC, SoftmaxLoss
from unflip.refine import RELATIVE_REGS, _Loop, refine
from unflip.rounds import contrasts
from unflip.rows import DistinctRows
from unflip.selection import candidate_regs
from unflip.solvers import ConvexFits
from unflip.spectrum import decompose

NOISE = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3)


def draw(n, p, seed=0, mean_norm=2.0, noise=NOISE):
    X, y = make_mixture(n, p, mean_norm=mean_norm, priors=[0.4, 0.6], random_state=seed)
    codes = noise.flip(y, random_state=seed)
    return X, codes, y, noise.with_priors([0.4, 0.6])


def run(X, codes, noise, n_rounds, fit_intercept=True):
    rows = DistinctRows.of(X)
    spectrum = decompose(X, fit_intercept=fit_intercept)
    loop = _Loop(spectrum, rows, codes, noise)
    rounds = [loop.first(candidate_regs(spectrum))]
    for _ in range(n_rounds):
        rounds.append(loop.next(rounds[-1], rounds[-1].reg * RELATIVE_REGS))
    return rounds


def test_contrasts_tell_classes_apart_and_sum_to_zero():
    np.testing.assert_array_equal(contrasts(2), [[-1.0], [1.0]])
    for k in (3, 5):
        table = contrasts(k)
        np.testing.assert_allclose(table.T @ table, np.eye(k - 1), atol=1e-12)
        np.testing.assert_allclose(table.sum(axis=0), 0, atol=1e-12)


def test_targets_are_posterior_means_of_label_and_score():
    X, codes, _, noise = draw(150, 40)
    first, second = run(X, codes, noise, 1)
    np.testing.assert_allclose(first.targets[:, 0], (2 * noise.posterior[:, 1] - 1)[codes], atol=1e-12)
    q = first.reading.posterior(codes, noise)
    np.testing.assert_allclose(second.targets[:, 0], q[:, 1] - q[:, 0], atol=1e-12)


def test_first_scores_are_exact_leave_one_out_scores():
    X, codes, _, noise = draw(60, 15)
    found = run(X, codes, noise, 0)[0]
    t = found.targets[:, 0]
    for i in range(0, 60, 7):
        rest = np.arange(60) != i
        fit = Ridge(alpha=60 * found.reg).fit(X[rest], t[rest])
        assert found.scores[i, 0] == pytest.approx(fit.predict(X[[i]])[0] - t[rest].mean() + t.mean(), abs=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("n", "p"), [(300, 60), (300, 300)])
def test_the_leak_is_what_a_changed_label_really_does(n, p, fit_intercept):
    """Flip one row's observed label, run the loop again: its own plain score moves by the predicted leak, and no more.

    The prediction is first order in one label, so it is compared over many rows.
    """
    X, codes, _, noise = draw(n, p, mean_norm=2.5)
    before = at_reg(X, codes, noise, 1.0, fit_intercept)
    predicted, moved = [], []
    for i in range(0, n, 5):
        other = codes.copy()
        other[i] = 1 - other[i]
        after = at_reg(X, other, noise, 1.0, fit_intercept)
        change = before.scores + before.leak - after.scores - after.leak  # of plain leave-one-out scores
        predicted.append(before.leak[i, 0] - after.leak[i, 0])
        moved.append(change[i, 0] - np.median(change))  # one label also moves all scores a little
    slope = np.dot(predicted, moved) / np.dot(predicted, predicted)
    assert slope == pytest.approx(1, abs=0.25)
    assert np.linalg.norm(np.subtract(moved, predicted)) < 0.5 * np.linalg.norm(moved)


def at_reg(X, codes, noise, reg, fit_intercept):
    """Return the third round at one penalty."""
    rows, spectrum = DistinctRows.of(X), decompose(X, fit_intercept=fit_intercept)
    loop = _Loop(spectrum, rows, codes, noise)
    found = loop.first(np.array([reg]))
    for _ in range(2):
        found = loop.next(found, np.array([reg]))
    return found


@pytest.mark.parametrize("rounds", [1, 2])
def test_rows_that_weigh_heavily_do_not_see_their_labels_either(rounds):
    """Uneven leverage: a formula with one mean hat value for all rows overshoots for these."""
    X, codes, _, noise = draw(300, 200)
    X = X * np.exp(0.4 * np.random.default_rng(0).normal(size=(300, 1)))
    rows, spectrum = DistinctRows.of(X), decompose(X)

    def last(labels):
        loop = _Loop(spectrum, rows, labels, noise)
        found = loop.first(np.array([1.0]))
        for _ in range(rounds):
            found = loop.next(found, np.array([1.0]))
        return found

    before = last(codes)
    heavy = np.argsort(spectrum.diagonal(spectrum.shrinkage([1.0]))[:, 0])[-30:]
    plain, honest = [], []
    for i in heavy:
        other = codes.copy()
        other[i] = 1 - other[i]
        after = last(other)
        for found, change in (
            (plain, before.scores + before.leak - after.scores - after.leak),
            (honest, before.scores - after.scores),
        ):
            found.append((change[i, 0] - np.median(change)) * (2 * codes[i] - 1))
    assert abs(np.mean(honest)) < 0.3 * before.scores.std()
    if rounds == 1:
        assert np.mean(plain) > 0.5 * before.scores.std()


def test_trusted_rows_have_their_true_targets():
    X, codes, y, _ = draw(200, 40)
    trusted = TrustedSubset(np.where(np.arange(200) < 50, y, np.nan))
    clf = LPClassifier(trusted).fit(X, codes)
    np.testing.assert_array_equal(clf.targets_[:50], 2 * y[:50] - 1)
    np.testing.assert_array_equal(clf.label_posterior_[np.arange(50), y[:50]], 1)
    assert (np.abs(clf.targets_[50:]) < 1).all()


def test_own_labels_leave_no_trace_in_the_scores():
    """Within a true class scores must not correlate with the observed label; without the correction they do."""
    honest, plain = [], []
    for seed in range(20):
        X, codes, y, noise = draw(400, 400, seed=seed)
        last = run(X, codes, noise, 1)[-1]
        for scores, found in ((last.scores, honest), (last.scores + last.leak, plain)):
            found.append(np.mean([np.corrcoef(scores[y == a, 0], codes[y == a])[0, 1] for a in (0, 1)]))
    error = np.std(honest) / np.sqrt(20)
    assert np.mean(plain) > 0.1
    assert abs(np.mean(honest)) < 4 * error + 0.03


def test_refining_pays_and_its_scores_are_those_of_new_rows():
    gains, gaps = [], []
    for seed in range(10):
        X, codes, y, noise = draw(500, 250, seed=seed)
        X_new, y_new = make_mixture(4000, 250, mean_norm=2.0, priors=[0.4, 0.6], random_state=1000 + seed)
        once, refined = (LPClassifier(noise, targets=t).fit(X, codes) for t in ("optimized", "refined"))
        areas = [roc_auc_score(y_new, clf.decision_function(X_new)) for clf in (once, refined)]
        gains.append(areas[1] - areas[0])
        gaps.append(roc_auc_score(y, refined.loo_decision_) - areas[1])
    assert np.mean(gains) > 0.02
    assert abs(np.mean(gaps)) < 4 * np.std(gaps) / np.sqrt(10) + 0.005


def test_nothing_is_refined_where_labels_are_right():
    X, _, y, _ = draw(200, 50)
    clean = NoiseModel.none().with_priors([0.4, 0.6])
    rows, spectrum = DistinctRows.of(X), decompose(X)
    found = refine(spectrum, rows, y, clean, candidate_regs(spectrum), search=True)
    np.testing.assert_array_equal(found.targets[:, 0], 2 * y - 1)
    assert not found.leak.any()


def test_the_penalty_is_kept_where_it_is_given():
    X, codes, _, noise = draw(200, 50)
    assert LPClassifier(noise, reg=0.7).fit(X, codes).reg_ == 0.7


def test_a_wrong_noise_model_does_little_harm():
    right, wrong = [], []
    for seed in range(10):
        X, codes, _, noise = draw(500, 100, seed=seed)
        X_new, y_new = make_mixture(2000, 100, mean_norm=2.0, priors=[0.4, 0.6], random_state=500 + seed)
        guess = NoiseModel.binary(eps_pos=0.2, eps_neg=0.2, pi_neg=0.4)
        right.append(LPClassifier(noise).fit(X, codes).score(X_new, y_new))
        wrong.append(LPClassifier(guess).fit(X, codes).score(X_new, y_new))
    assert np.mean(wrong) > np.mean(right) - 0.03


def test_copies_and_weights_refine_alike():
    X, codes, _, noise = draw(120, 30)
    counts = np.random.default_rng(0).integers(1, 4, size=120)
    weighted = LPClassifier(noise).fit(X, codes, sample_weight=counts.astype(float))
    repeated = LPClassifier(noise).fit(X.repeat(counts, axis=0), codes.repeat(counts))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-5, atol=1e-8)
    assert weighted.expected_accuracy_ == pytest.approx(repeated.expected_accuracy_, abs=1e-6)


def test_three_classes_gain_as_well():
    transition = np.full((3, 3), 0.25) + 0.25 * np.eye(3)
    noise = NoiseModel(transition, np.full(3, 1 / 3))
    X, y = make_mixture(600, 120, means=2.5 * np.eye(3, 120), random_state=0)
    codes = noise.flip(y, random_state=0)
    accuracy = [np.mean(found.reading.probabilities.argmax(axis=1) == y) for found in run(X, codes, noise, 2)]
    assert accuracy[2] > accuracy[0] + 0.05
    plain = run(X, codes, noise, 2)[-1]
    wrong_label = codes != y
    own = plain.reading.posterior(codes, noise)[np.arange(600), codes]
    assert roc_auc_score(wrong_label, 1 - own) > 0.85


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_own_labels_leave_no_trace_in_the_scores_of_another_loss(n_classes, fit_intercept):
    """The last fit is logistic: within a true class its scores must not follow the row's own label."""
    noise = NoiseModel(0.4 * np.eye(n_classes) + 0.6 / n_classes, np.full(n_classes, 1 / n_classes))
    loss = LOGISTIC if n_classes == 2 else SoftmaxLoss
    honest, plain = [], []
    for seed in range(16):
        X, y = make_mixture(300, 150, means=2.0 * np.eye(n_classes, 150), random_state=seed)
        codes = noise.flip(y, random_state=seed)
        fits = ConvexFits(decompose(X, fit_intercept=fit_intercept), loss)
        last = refine(fits, DistinctRows.of(X), codes, noise, np.array([0.1]), search=False)
        if last.index == 0:  # nothing was refined
            continue
        labels = contrasts(n_classes)[codes]
        for scores, found in ((last.scores, honest), (last.scores + last.leak, plain)):
            found.append(np.mean([agreement(scores[y == a], labels[y == a]) for a in range(n_classes)]))
    assert len(plain) > 8
    assert np.mean(plain) > 0.08
    assert abs(np.mean(honest)) < 4 * np.std(honest) / np.sqrt(len(honest)) + 0.03


def agreement(scores, labels):
    """Correlation, all columns taken together."""
    scores, labels = scores - scores.mean(axis=0), labels - labels.mean(axis=0)
    return (scores * labels).sum() / np.sqrt((scores**2).sum() * (labels**2).sum())


def test_the_penalty_of_another_loss_is_searched_near_that_of_the_rounds():
    X, codes, _, noise = draw(200, 50)
    spectrum = decompose(X)
    fits = ConvexFits(spectrum, LOGISTIC)
    rounds = refine(spectrum, DistinctRows.of(X), codes, noise, candidate_regs(spectrum), search=True)
    last = refine(fits, DistinctRows.of(X), codes, noise, candidate_regs(spectrum) / 8, search=True)
    np.testing.assert_array_equal(last.targets, rounds.targets)
    assert np.isclose(last.reg, rounds.reg / 8 * RELATIVE_REGS).any()
