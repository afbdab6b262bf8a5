"""Refinement: targets of each row's own, scores that its own label has no part in, and rounds that
do not drift."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score

from unflip import LPClassifier, NoiseModel
from unflip.data.duplicates import DistinctRows
from unflip.datasets import make_mixture
from unflip.estimation import TrustedSubset
from unflip.labels.classes import contrasts
from unflip.losses import LOGISTIC, SoftmaxLoss
from unflip.model.refinement.refine import RELATIVE_REGS, _Loop, refine
from unflip.ridge.selection import candidate_regs
from unflip.ridge.solvers import ConvexFits
from unflip.ridge.spectrum import decompose

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
    np.testing.assert_allclose(
        first.targets[:, 0], (2 * noise.posterior[:, 1] - 1)[codes], atol=1e-12
    )
    q = first.reading.posterior(codes, noise)
    np.testing.assert_allclose(second.targets[:, 0], q[:, 1] - q[:, 0], atol=1e-12)


def test_first_scores_are_exact_leave_one_out_scores():
    X, codes, _, noise = draw(60, 15)
    found = run(X, codes, noise, 0)[0]
    t = found.targets[:, 0]
    for i in range(0, 60, 7):
        rest = np.arange(60) != i
        fit = Ridge(alpha=60 * found.reg).fit(X[rest], t[rest])
        assert found.scores[i, 0] == pytest.approx(
            fit.predict(X[[i]])[0] - t[rest].mean() + t.mean(), abs=1e-9
        )


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("n", "p"), [(300, 60), (300, 300)])
def test_the_leak_is_what_a_changed_label_really_does(n, p, fit_intercept):
    """Flip one row's observed label, run the loop again: its own plain score moves by the predicted
    leak, and no more.

    The prediction is first order in one label, so it is compared over many rows.
    """
    X, codes, _, noise = draw(n, p, mean_norm=2.5)
    before = at_reg(X, codes, noise, 1.0, fit_intercept)
    predicted, moved = [], []
    for i in range(0, n, 5):
        other = codes.copy()
        other[i] = 1 - other[i]
        after = at_reg(X, other, noise, 1.0, fit_intercept)
        change = (
            before.scores + before.leak - after.scores - after.leak
        )  # of plain leave-one-out scores
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
    """Within a true class scores must not correlate with the observed label; without the correction
    they do."""
    honest, plain = [], []
    for seed in range(20):
        X, codes, y, noise = draw(400, 400, seed=seed)
        last = run(X, codes, noise, 1)[-1]
        for scores, found in ((last.scores, honest), (last.scores + last.leak, plain)):
            found.append(
                np.mean([np.corrcoef(scores[y == a, 0], codes[y == a])[0, 1] for a in (0, 1)])
            )
    error = np.std(honest) / np.sqrt(20)
    assert np.mean(plain) > 0.1
    assert abs(np.mean(honest)) < 4 * error + 0.03


def test_refining_pays_and_its_scores_are_those_of_new_rows():
    gains, gaps = [], []
    for seed in range(10):
        X, codes, y, noise = draw(500, 250, seed=seed)
        X_new, y_new = make_mixture(
            4000, 250, mean_norm=2.0, priors=[0.4, 0.6], random_state=1000 + seed
        )
        once, refined = (
            LPClassifier(noise, targets=t).fit(X, codes) for t in ("optimized", "refined")
        )
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
    assert found.index == 0
    assert not found.leak.any()


def test_the_penalty_is_kept_where_it_is_given():
    X, codes, _, noise = draw(200, 50)
    assert LPClassifier(noise, reg=0.7).fit(X, codes).reg_ == 0.7


def test_a_wrong_noise_model_does_little_harm():
    right, wrong = [], []
    for seed in range(10):
        X, codes, _, noise = draw(500, 100, seed=seed)
        X_new, y_new = make_mixture(
            2000, 100, mean_norm=2.0, priors=[0.4, 0.6], random_state=500 + seed
        )
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
    accuracy = [
        np.mean(found.reading.probabilities.argmax(axis=1) == y)
        for found in run(X, codes, noise, 2)
    ]
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
    for seed in range(24):
        X, y = make_mixture(300, 150, means=2.0 * np.eye(n_classes, 150), random_state=seed)
        codes = noise.flip(y, random_state=seed)
        fits = ConvexFits(decompose(X, fit_intercept=fit_intercept), loss)
        last = refine(fits, DistinctRows.of(X), codes, noise, np.array([0.1]), search=False)
        if last.index == 0:  # nothing was refined
            continue
        labels = contrasts(n_classes)[codes]
        for scores, found in ((last.scores, honest), (last.scores + last.leak, plain)):
            found.append(
                np.mean([agreement(scores[y == a], labels[y == a]) for a in range(n_classes)])
            )
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
    rounds = refine(
        spectrum, DistinctRows.of(X), codes, noise, candidate_regs(spectrum), search=True
    )
    last = refine(fits, DistinctRows.of(X), codes, noise, candidate_regs(spectrum) / 8, search=True)
    np.testing.assert_array_equal(last.targets, rounds.targets)
    assert np.isclose(last.reg, rounds.reg / 8 * RELATIVE_REGS).any()


def rounds_at(X, codes, noise, regs, fit_intercept, **options):
    """Return rounds that have a penalty each."""
    loop = _Loop(
        decompose(X, fit_intercept=fit_intercept), DistinctRows.of(X), codes, noise, **options
    )
    rounds = [loop.first(np.array(regs[:1]))]
    for reg in regs[1:]:
        rounds.append(loop.next(rounds[-1], np.array([reg])))
    return loop, rounds


class DenseLeftOut:
    """How leave-one-out scores answer to targets, as a matrix that is found by refits without each
    row."""

    def __init__(self, X, reg, fit_intercept):
        n = len(X)
        self.exact = np.zeros((n, n))
        for i in range(n):
            others = np.arange(n) != i
            rows = X[others]
            centre = rows.mean(axis=0) if fit_intercept else np.zeros(X.shape[1])
            rows = rows - centre
            weights = np.linalg.solve(rows.T @ rows + n * reg * np.eye(X.shape[1]), X[i] - centre)
            self.exact[i, others] = rows @ weights
        rows = X - X.mean(axis=0) if fit_intercept else X
        hat = rows @ np.linalg.solve(rows.T @ rows + n * reg * np.eye(X.shape[1]), rows.T)
        centring = np.eye(n) - fit_intercept / n
        scale = 1 / (1 - fit_intercept / n)
        residual = centring - hat
        # Rows in between have the mean slack: on average they have no part in their own scores.
        self.mean = scale * centring - residual / np.diag(residual).mean()


def own_parts(round_, before, noise, anchors):
    """What its own label adds to a row's target: the first to the priors, others to what the scores
    say."""
    known = noise.priors[None, :] if before is None else before.reading.probabilities
    return round_.targets - known @ anchors


def sensitivity(before, after_codes, noise, anchors):
    """g, the mean derivative of targets by scores: slopes times the mean covariance of one draw of
    the class."""
    q = before.reading.posterior(after_codes, noise)
    covariance = np.mean([np.diag(row) - np.outer(row, row) for row in q], axis=0)
    return before.reading.model.slopes @ covariance @ anchors


def three_classes(n, p):
    noise = NoiseModel(0.6 * np.eye(3) + 0.4 / 3, [0.3, 0.3, 0.4])
    X, y = make_mixture(n, p, means=2.5 * np.eye(3, p), priors=noise.priors, random_state=0)
    return X, noise.flip(y, random_state=0), y, noise


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("data", [draw, three_classes])
def test_the_leak_is_the_sum_of_paths_from_a_row_back_to_itself(data, fit_intercept):
    """As the module says, by dense matrices: the last round is exact, rows in between have the mean
    slack."""
    X, codes, _, noise = data(70, 30)
    X = X * np.exp(0.3 * np.random.default_rng(0).normal(size=(70, 1)))
    check_the_leak(X, codes, noise, [0.8, 0.5, 0.3], fit_intercept, rtol=1e-8)


@pytest.mark.parametrize("reg", [1e-9, 1e-4, 1e4])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_leak_of_rows_that_are_fitted_closely_or_hardly_at_all(fit_intercept, reg):
    """With more features than rows; with an intercept its share of the slack is the larger one
    where γ is small."""
    X, codes, _, noise = draw(40, 90)
    check_the_leak(X, codes, noise, [reg, reg / 2, reg / 4], fit_intercept, rtol=1e-5)


def check_the_leak(X, codes, noise, regs, fit_intercept, rtol):
    anchors = contrasts(noise.n_classes)
    _, rounds = rounds_at(X, codes, noise, regs, fit_intercept)
    first, middle, last = (DenseLeftOut(X, reg, fit_intercept) for reg in regs)
    own = [own_parts(rounds[r], rounds[r - 1] if r else None, noise, anchors) for r in (0, 1)]
    g = [sensitivity(rounds[r], codes, noise, anchors) for r in (0, 1)]
    assert not rounds[0].leak.any()
    expected = np.diag(middle.exact @ first.mean)[:, None] * (own[0] @ g[0])
    np.testing.assert_allclose(
        rounds[1].leak, expected, rtol=rtol, atol=rtol * np.abs(expected).max()
    )
    there_and_back = last.exact @ middle.mean
    through_two = np.diag(there_and_back @ first.mean) - np.diag(there_and_back) * np.diag(
        first.mean
    )
    expected = np.diag(there_and_back)[:, None] * (own[1] @ g[1]) + through_two[:, None] * (
        own[0] @ g[0] @ g[1]
    )
    np.testing.assert_allclose(
        rounds[2].leak, expected, rtol=rtol, atol=rtol * np.abs(expected).max()
    )


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("data", [draw, three_classes])
def test_the_leak_of_another_loss_is_that_of_ridge_fits_along_the_axes_of_its_curvature(
    data, fit_intercept
):
    X, codes, _, noise = data(70, 30)
    anchors, reg = contrasts(noise.n_classes), 0.1
    loop, (before, current) = rounds_at(X, codes, noise, [0.8, 0.5], fit_intercept)
    loss = LOGISTIC if noise.n_classes == 2 else SoftmaxLoss
    fits = ConvexFits(decompose(X, fit_intercept=fit_intercept), loss)
    found = loop.last(current, fits, np.array([reg]))
    left_out = fits.leave_one_out(current.targets, [reg])
    through = own_parts(before, None, noise, anchors) @ sensitivity(before, codes, noise, anchors)
    first, expected = DenseLeftOut(X, 0.8, fit_intercept), np.zeros_like(through)
    curvatures, axes = np.linalg.eigh(left_out.mean_curvature[0])
    for curvature, axis in zip(curvatures, axes.T, strict=True):
        last = DenseLeftOut(X, 2 * reg / curvature, fit_intercept)
        diagonal = np.diag(last.exact @ first.mean)
        expected += diagonal[:, None] * np.outer(
            through @ left_out.mean_response[0].T @ axis / curvature, axis
        )
    np.testing.assert_allclose(found.leak, expected, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(
        found.scores, left_out.corrected_scores[:, 0, :] - expected, rtol=1e-8, atol=1e-12
    )
    assert (found.reg, found.index) == (reg, 1)
    assert np.isnan(found.alignment)


@pytest.mark.parametrize("scale_free", [True, False])
def test_each_round_takes_the_penalty_whose_scores_are_best(scale_free):
    """By their correlation with the labels, or where their scale counts by the distance to the
    targets."""
    X, codes, _, noise = draw(150, 60, mean_norm=3.0)
    X = X * np.logspace(-1, 0.5, 60)  # noise that is worth whitening, so that no end is best
    regs = np.array([1e-4, 0.01, 1.0, 100.0, 1e4])
    loop = _Loop(decompose(X), DistinctRows.of(X), codes, noise, scale_free)
    chosen = [loop.first(regs)]
    chosen.append(loop.next(chosen[0], regs))
    for index, found in enumerate(chosen):
        alone = [
            rounds_at(X, codes, noise, [round_.reg for round_ in chosen[:index]] + [reg], True)[1][
                -1
            ]
            for reg in regs
        ]
        merits = [
            round_.alignment if scale_free else -np.mean((round_.scores - round_.targets) ** 2)
            for round_ in alone
        ]
        assert found.reg == regs[np.argmax(merits)]
        assert 0 < np.argmax(merits) < 4
        correlation = np.corrcoef(found.scores[:, 0], codes)[0, 1]
        assert found.alignment == pytest.approx(correlation, rel=1e-9)


def test_rows_of_known_class_have_its_target():
    """Their true labels leak back into their own scores as other labels do, so these are corrected,
    too."""
    X, codes, y, noise = draw(80, 30)
    truth = np.where(np.arange(80) % 4, -1, y)
    _, (first, second) = rounds_at(X, codes, noise, [0.5, 0.5], True, truth=truth)
    known = truth >= 0
    for round_ in (first, second):
        np.testing.assert_array_equal(round_.targets[known, 0], 2 * y[known] - 1)
    np.testing.assert_allclose(
        first.targets[~known, 0], (2 * noise.posterior[:, 1] - 1)[codes[~known]], atol=1e-12
    )
    assert (second.leak != 0).all()


@pytest.mark.parametrize(
    ("agreements", "taken"),
    [
        ((0.5, 0.31, 0.32), 2),  # two standard errors, of 0.1 each, may be lost
        ((0.5, 0.29, 0.9), 0),
        ((0.5, 0.31, 0.29), 1),  # in all, not in each round
        ((0.5, 0.9, 0.69), 1),
        ((0.5, 0.9, 0.71), 2),
    ],
)
def test_a_round_that_loses_more_agreement_than_chance_would_is_not_taken(
    agreements, taken, monkeypatch
):
    X, codes, _, noise = draw(
        100, 40, mean_norm=4.0, noise=NoiseModel.binary(eps_pos=0.2, eps_neg=0.1)
    )
    script = iter(agreements)
    monkeypatch.setattr(_Loop, "_agreement", lambda *_, **__: next(script))
    monkeypatch.setattr(_Loop, "_support", lambda *_: 10.0)
    found = refine(decompose(X), DistinctRows.of(X), codes, noise, np.array([0.5]), search=False)
    assert (found.index, found.alignment) == (taken, agreements[taken])


def test_no_round_has_a_smaller_penalty_than_the_first_may_have():
    """Though here the smaller the better."""
    X, codes, _, noise = draw(400, 60, mean_norm=4.0)
    X = X * np.logspace(-1, 0.5, 60)
    spectrum = decompose(X)
    free, held = (
        refine(spectrum, DistinctRows.of(X), codes, noise, regs, search=True)
        for regs in (np.array([1e-3, 1.0]), np.array([1.0]))
    )
    assert free.index == held.index == 2
    assert (free.reg < 1, held.reg) == (True, 1)


@pytest.mark.parametrize(("mean_norm", "seed"), [(2.0, 0), (0.0, 3)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_agreement_of_two_classes_is_a_correlation_or_about_the_origin_a_cosine(
    fit_intercept, mean_norm, seed
):
    """Of classes that are alike it is negative in this draw."""
    X, codes, _, noise = draw(90, 30, seed=seed, mean_norm=mean_norm)
    _, rounds = rounds_at(X, codes, noise, [0.5, 0.5], fit_intercept)
    labels = 2.0 * codes - 1
    for found in rounds:
        scores, about = found.scores[:, 0], float(fit_intercept)
        scores, wanted = scores - about * scores.mean(), labels - about * labels.mean()
        expected = scores @ wanted / np.linalg.norm(scores) / np.linalg.norm(wanted)
        assert found.alignment == pytest.approx(expected, rel=1e-9)
    assert (rounds[1].alignment > 0) == (mean_norm > 0)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_agreement_of_several_classes_is_their_canonical_correlation(fit_intercept):
    X, codes, _, noise = three_classes(90, 30)
    _, rounds = rounds_at(X, codes, noise, [0.5, 0.5], fit_intercept)
    for found in rounds:
        columns = [found.scores, contrasts(3)[codes]]
        bases = [np.linalg.qr(c - c.mean(axis=0) if fit_intercept else c)[0] for c in columns]
        expected = np.linalg.norm(bases[0].T @ bases[1]) / np.sqrt(2)
        assert found.alignment == pytest.approx(expected, rel=1e-9)


def test_another_loss_is_fitted_to_the_targets_of_the_penalty_that_bends_squared_fits_as_much():
    """Which is 1/6 of it for the softmax of three classes: half the curvature at 0 is 1/(2k)."""
    X, codes, _, noise = three_classes(60, 20)
    spectrum, rows = decompose(X), DistinctRows.of(X)
    rounds = refine(spectrum, rows, codes, noise, np.array([0.6]), search=False)
    last = refine(
        ConvexFits(spectrum, SoftmaxLoss), rows, codes, noise, np.array([0.1]), search=False
    )
    assert rounds.index == last.index == 2
    np.testing.assert_allclose(last.targets, rounds.targets, rtol=1e-9, atol=1e-12)
    assert last.reg == pytest.approx(0.1)


@pytest.mark.parametrize(("p", "best"), [(40, 1e-4), (80, 100.0)])
def test_the_penalty_of_another_loss_is_the_one_whose_scores_agree_best(p, best):
    X, codes, _, noise = draw(150, p, mean_norm=3.0)
    X = X * np.logspace(-1, 0.5, p)
    loop, (_, current) = rounds_at(X, codes, noise, [0.1, 0.1], True)
    fits, regs = ConvexFits(decompose(X), LOGISTIC), np.array([100.0, 1e-4])
    alone = [
        np.corrcoef(loop.last(current, fits, np.array([reg])).scores[:, 0], codes)[0, 1]
        for reg in regs
    ]
    assert loop.last(current, fits, regs).reg == regs[np.argmax(alone)] == best


def test_unless_said_otherwise_scales_do_not_count_and_priors_are_taken_as_given():
    X, codes, _, noise = draw(150, 60)
    regs = np.array([0.01, 1.0, 100.0])

    def found(**options):
        return refine(decompose(X), DistinctRows.of(X), codes, noise, regs, search=False, **options)

    assert found().reg == found(scale_free=True).reg != found(scale_free=False).reg
    np.testing.assert_array_equal(found().noise.priors, noise.priors)
    assert (found(infer_priors=True).noise.priors != noise.priors).all()
