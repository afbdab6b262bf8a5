"""Refinement: targets of single rows, scores corrected for leakage, and the choice of rounds."""

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
from unflip.model.refinement.refine import RELATIVE_REGS, RefinementLoop, refine
from unflip.model.refinement.rounds import NoisyLabels
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
    loop = RefinementLoop(spectrum, NoisyLabels(rows, codes, noise))
    rounds = [loop.first(candidate_regs(spectrum))]
    for _ in range(n_rounds):
        rounds.append(loop.next(rounds[-1], rounds[-1].reg * RELATIVE_REGS))
    return rounds


def test_contrasts_are_orthonormal_and_sum_to_zero():
    np.testing.assert_array_equal(contrasts(2), [[-1.0], [1.0]])
    for k in (3, 5):
        table = contrasts(k)
        np.testing.assert_allclose(table.T @ table, np.eye(k - 1), atol=1e-12)
        np.testing.assert_allclose(table.sum(axis=0), 0, atol=1e-12)


def test_targets_are_posterior_means_given_label_and_score():
    X, codes, _, noise = draw(150, 40)
    first, second = run(X, codes, noise, 1)
    np.testing.assert_allclose(
        first.targets[:, 0], (2 * noise.posterior[:, 1] - 1)[codes], atol=1e-12
    )
    q = first.calibration.posterior(codes, noise)
    np.testing.assert_allclose(second.targets[:, 0], q[:, 1] - q[:, 0], atol=1e-12)


def test_first_scores_are_exact_leave_one_out_scores():
    X, codes, _, noise = draw(60, 15)
    first = run(X, codes, noise, 0)[0]
    t = first.targets[:, 0]
    for i in range(0, 60, 7):
        rest = np.arange(60) != i
        fit = Ridge(alpha=60 * first.reg).fit(X[rest], t[rest])
        assert first.scores[i, 0] == pytest.approx(
            fit.predict(X[[i]])[0] - t[rest].mean() + t.mean(), abs=1e-9
        )


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("n", "p"), [(300, 60), (300, 300)])
def test_leakage_is_the_effect_of_a_changed_label(n, p, fit_intercept):
    """If one observed label changes, the plain score of its row moves by the predicted leakage.

    The prediction is of first order in one label, so many rows are compared.
    """
    X, codes, _, noise = draw(n, p, mean_norm=2.5)
    before = at_reg(X, codes, noise, 1.0, fit_intercept)
    predicted, moved = [], []
    for i in range(0, n, 5):
        other = codes.copy()
        other[i] = 1 - other[i]
        after = at_reg(X, other, noise, 1.0, fit_intercept)
        change = (
            before.scores + before.leakage - after.scores - after.leakage
        )  # of plain leave-one-out scores
        predicted.append(before.leakage[i, 0] - after.leakage[i, 0])
        moved.append(change[i, 0] - np.median(change))  # one label moves all scores a little
    slope = np.dot(predicted, moved) / np.dot(predicted, predicted)
    assert slope == pytest.approx(1, abs=0.25)
    assert np.linalg.norm(np.subtract(moved, predicted)) < 0.5 * np.linalg.norm(moved)


def at_reg(X, codes, noise, reg, fit_intercept):
    """Return the third round at one regularization strength."""
    rows, spectrum = DistinctRows.of(X), decompose(X, fit_intercept=fit_intercept)
    loop = RefinementLoop(spectrum, NoisyLabels(rows, codes, noise))
    round_ = loop.first(np.array([reg]))
    for _ in range(2):
        round_ = loop.next(round_, np.array([reg]))
    return round_


@pytest.mark.parametrize("rounds", [1, 2])
def test_leakage_of_rows_with_high_leverage(rounds):
    """A formula with the mean leverage for all rows would be too large for these."""
    X, codes, _, noise = draw(300, 200)
    X = X * np.exp(0.4 * np.random.default_rng(0).normal(size=(300, 1)))
    rows, spectrum = DistinctRows.of(X), decompose(X)

    def last(labels):
        loop = RefinementLoop(spectrum, NoisyLabels(rows, labels, noise))
        round_ = loop.first(np.array([1.0]))
        for _ in range(rounds):
            round_ = loop.next(round_, np.array([1.0]))
        return round_

    before = last(codes)
    heavy = np.argsort(spectrum.diagonal(spectrum.shrinkage([1.0]))[:, 0])[-30:]
    plain, corrected_values = [], []
    for i in heavy:
        other = codes.copy()
        other[i] = 1 - other[i]
        after = last(other)
        for round_, change in (
            (plain, before.scores + before.leakage - after.scores - after.leakage),
            (corrected_values, before.scores - after.scores),
        ):
            round_.append((change[i, 0] - np.median(change)) * (2 * codes[i] - 1))
    assert abs(np.mean(corrected_values)) < 0.3 * before.scores.std()
    if rounds == 1:
        assert np.mean(plain) > 0.5 * before.scores.std()


def test_trusted_rows_have_their_true_labels_as_targets():
    X, codes, y, _ = draw(200, 40)
    trusted = TrustedSubset(np.where(np.arange(200) < 50, y, np.nan))
    clf = LPClassifier(trusted).fit(X, codes)
    np.testing.assert_array_equal(clf.targets_[:50], 2 * y[:50] - 1)
    np.testing.assert_array_equal(clf.label_posterior_[np.arange(50), y[:50]], 1)
    assert (np.abs(clf.targets_[50:]) < 1).all()


def test_scores_do_not_depend_on_their_own_labels():
    """Within a true class, corrected scores must not correlate with the observed labels; plain
    scores do.
    """
    corrected_values, plain = [], []
    for seed in range(20):
        X, codes, y, noise = draw(400, 400, seed=seed)
        last = run(X, codes, noise, 1)[-1]
        for scores, correlations in (
            (last.scores, corrected_values),
            (last.scores + last.leakage, plain),
        ):
            correlations.append(
                np.mean([np.corrcoef(scores[y == a, 0], codes[y == a])[0, 1] for a in (0, 1)])
            )
    error = np.std(corrected_values) / np.sqrt(20)
    assert np.mean(plain) > 0.1
    assert abs(np.mean(corrected_values)) < 4 * error + 0.03


def test_refinement_improves_the_scores_and_leave_one_out_shows_it():
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


def test_clean_labels_are_not_refined():
    X, _, y, _ = draw(200, 50)
    clean = NoiseModel.none().with_priors([0.4, 0.6])
    rows, spectrum = DistinctRows.of(X), decompose(X)
    round_ = refine(spectrum, NoisyLabels(rows, y, clean), candidate_regs(spectrum), search=True)
    np.testing.assert_array_equal(round_.targets[:, 0], 2 * y - 1)
    assert round_.index == 0
    assert not round_.leakage.any()


def test_given_reg_is_kept():
    X, codes, _, noise = draw(200, 50)
    assert LPClassifier(noise, reg=0.7).fit(X, codes).reg_ == 0.7


def test_wrong_noise_model_does_little_harm():
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


def test_duplicates_equal_weights():
    X, codes, _, noise = draw(120, 30)
    counts = np.random.default_rng(0).integers(1, 4, size=120)
    weighted = LPClassifier(noise).fit(X, codes, sample_weight=counts.astype(float))
    repeated = LPClassifier(noise).fit(X.repeat(counts, axis=0), codes.repeat(counts))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-5, atol=1e-8)
    assert weighted.expected_accuracy_ == pytest.approx(repeated.expected_accuracy_, abs=1e-6)


def test_refinement_improves_three_classes():
    transition = np.full((3, 3), 0.25) + 0.25 * np.eye(3)
    noise = NoiseModel(transition, np.full(3, 1 / 3))
    X, y = make_mixture(600, 120, means=2.5 * np.eye(3, 120), random_state=0)
    codes = noise.flip(y, random_state=0)
    accuracy = [
        np.mean(round_.calibration.probabilities.argmax(axis=1) == y)
        for round_ in run(X, codes, noise, 2)
    ]
    assert accuracy[2] > accuracy[0] + 0.05
    plain = run(X, codes, noise, 2)[-1]
    wrong_label = codes != y
    own = plain.calibration.posterior(codes, noise)[np.arange(600), codes]
    assert roc_auc_score(wrong_label, 1 - own) > 0.85


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_of_another_loss_do_not_depend_on_their_own_labels(n_classes, fit_intercept):
    """Within a true class, scores of the logistic fit must not correlate with the labels."""
    noise = NoiseModel(0.4 * np.eye(n_classes) + 0.6 / n_classes, np.full(n_classes, 1 / n_classes))
    loss = LOGISTIC if n_classes == 2 else SoftmaxLoss
    corrected_values, plain = [], []
    for seed in range(24):
        X, y = make_mixture(300, 150, means=2.0 * np.eye(n_classes, 150), random_state=seed)
        codes = noise.flip(y, random_state=seed)
        fits = ConvexFits(decompose(X, fit_intercept=fit_intercept), loss)
        observed = NoisyLabels(DistinctRows.of(X), codes, noise)
        last = refine(fits, observed, np.array([0.1]), search=False)
        if last.index == 0:  # nothing was refined
            continue
        labels = contrasts(n_classes)[codes]
        for scores, correlations in (
            (last.scores, corrected_values),
            (last.scores + last.leakage, plain),
        ):
            correlations.append(
                np.mean([agreement(scores[y == a], labels[y == a]) for a in range(n_classes)])
            )
    assert len(plain) > 8
    assert np.mean(plain) > 0.08
    assert (
        abs(np.mean(corrected_values))
        < 4 * np.std(corrected_values) / np.sqrt(len(corrected_values)) + 0.03
    )


def agreement(scores, labels):
    """Return the correlation over all columns."""
    scores, labels = scores - scores.mean(axis=0), labels - labels.mean(axis=0)
    return (scores * labels).sum() / np.sqrt((scores**2).sum() * (labels**2).sum())


def test_reg_of_another_loss_is_searched_near_that_of_the_rounds():
    X, codes, _, noise = draw(200, 50)
    spectrum = decompose(X)
    fits = ConvexFits(spectrum, LOGISTIC)
    labels = NoisyLabels(DistinctRows.of(X), codes, noise)
    rounds = refine(spectrum, labels, candidate_regs(spectrum), search=True)
    last = refine(fits, labels, candidate_regs(spectrum) / 8, search=True)
    np.testing.assert_array_equal(last.targets, rounds.targets)
    assert np.isclose(last.reg, rounds.reg / 8 * RELATIVE_REGS).any()


def rounds_at(X, codes, noise, regs, fit_intercept, truth=None, is_local=False):
    """Return the loop, and rounds with one regularization strength each."""
    labels = NoisyLabels(DistinctRows.of(X), codes, noise, truth=truth, is_local=is_local)
    loop = RefinementLoop(decompose(X, fit_intercept=fit_intercept), labels)
    rounds = [loop.first(np.array(regs[:1]))]
    for reg in regs[1:]:
        rounds.append(loop.next(rounds[-1], np.array([reg])))
    return loop, rounds


class DenseLeftOut:
    """The matrix from targets to leave-one-out scores, computed by refits without each row."""

    def __init__(self, X, reg, fit_intercept):
        n = len(X)
        self.exact = np.zeros((n, n))
        for i in range(n):
            kept = np.arange(n) != i
            rows = X[kept]
            centre = rows.mean(axis=0) if fit_intercept else np.zeros(X.shape[1])
            rows = rows - centre
            weights = np.linalg.solve(rows.T @ rows + n * reg * np.eye(X.shape[1]), X[i] - centre)
            self.exact[i, kept] = rows @ weights
        rows = X - X.mean(axis=0) if fit_intercept else X
        hat = rows @ np.linalg.solve(rows.T @ rows + n * reg * np.eye(X.shape[1]), rows.T)
        centring = np.eye(n) - fit_intercept / n
        scale = 1 / (1 - fit_intercept / n)
        residual = centring - hat
        # Intermediate rows have the mean slack, so the diagonal is 0 on average.
        self.mean = scale * centring - residual / np.diag(residual).mean()


def label_effects(round_, before, noise, class_contrasts):
    """Return what its own label adds to each row's target, relative to priors or probabilities."""
    expected = noise.priors[None, :] if before is None else before.calibration.probabilities
    return round_.targets - expected @ class_contrasts


def target_derivatives(before, codes, noise, class_contrasts, left_out, is_local):
    """Return g around each row: the mean derivative of targets by scores, times Gᵢ if local."""
    q = before.calibration.posterior(codes, noise)
    covariance = np.mean([np.diag(row) - np.outer(row, row) for row in q], axis=0)
    derivative = before.calibration.model.slopes @ covariance @ class_contrasts
    if not is_local:
        return np.tile(derivative, (len(codes), 1, 1))
    uncertainty = 1 - (q**2).sum(axis=1)
    excess = uncertainty / uncertainty.mean() - 1
    predicted = left_out.exact @ excess
    slope = max(np.dot(predicted, excess) / np.dot(predicted, predicted), 0)
    factor = np.clip(1 + slope * predicted, 1 + excess.min(), 1 + excess.max())
    return factor[:, None, None] * derivative


def row_products(effects, derivatives):
    """Return the effect of each row times its own derivative."""
    return np.einsum("ia,iab->ib", effects, derivatives)


def three_classes(n, p):
    noise = NoiseModel(0.6 * np.eye(3) + 0.4 / 3, [0.3, 0.3, 0.4])
    X, y = make_mixture(n, p, means=2.5 * np.eye(3, p), priors=noise.priors, random_state=0)
    return X, noise.flip(y, random_state=0), y, noise


@pytest.mark.parametrize("is_local", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("data", [draw, three_classes])
def test_leakage_matches_dense_matrices(data, fit_intercept, is_local):
    """The last round is exact; intermediate rows have the mean slack."""
    X, codes, _, noise = data(70, 30)
    X = X * np.exp(0.3 * np.random.default_rng(0).normal(size=(70, 1)))
    check_leakage(X, codes, noise, [0.8, 0.5, 0.3], fit_intercept, is_local, rtol=1e-8)


@pytest.mark.parametrize("is_local", [True, False])
@pytest.mark.parametrize("reg", [1e-9, 1e-4, 1e4])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_leakage_matches_dense_matrices_at_extreme_reg(fit_intercept, reg, is_local):
    """With more features than rows.

    At small γ, the intercept's share of the slack is the larger part.
    """
    X, codes, _, noise = draw(40, 90)
    check_leakage(X, codes, noise, [reg, reg / 2, reg / 4], fit_intercept, is_local, rtol=1e-5)


def check_leakage(X, codes, noise, regs, fit_intercept, is_local, rtol):
    class_contrasts = contrasts(noise.n_classes)
    _, rounds = rounds_at(X, codes, noise, regs, fit_intercept, is_local=is_local)
    first, middle, last = (DenseLeftOut(X, reg, fit_intercept) for reg in regs)
    own = [
        label_effects(rounds[r], rounds[r - 1] if r else None, noise, class_contrasts)
        for r in (0, 1)
    ]
    g = [
        target_derivatives(rounds[r], codes, noise, class_contrasts, left_out, is_local)
        for r, left_out in enumerate((first, middle))
    ]
    assert not rounds[0].leakage.any()
    expected = np.diag(middle.exact @ first.mean)[:, None] * row_products(own[0], g[0])
    np.testing.assert_allclose(
        rounds[1].leakage, expected, rtol=rtol, atol=rtol * np.abs(expected).max()
    )
    there_and_back = last.exact @ middle.mean
    through_two = np.diag(there_and_back @ first.mean) - np.diag(there_and_back) * np.diag(
        first.mean
    )
    expected = np.diag(there_and_back)[:, None] * row_products(own[1], g[1])
    expected += through_two[:, None] * row_products(own[0], g[0] @ g[1])
    np.testing.assert_allclose(
        rounds[2].leakage, expected, rtol=rtol, atol=rtol * np.abs(expected).max()
    )


@pytest.mark.parametrize("is_local", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("data", [draw, three_classes])
def test_leakage_of_another_loss_matches_ridge_fits_along_its_curvature(
    data, fit_intercept, is_local
):
    X, codes, _, noise = data(70, 30)
    class_contrasts, reg = contrasts(noise.n_classes), 0.1
    loop, (before, current) = rounds_at(
        X, codes, noise, [0.8, 0.5], fit_intercept, is_local=is_local
    )
    loss = LOGISTIC if noise.n_classes == 2 else SoftmaxLoss
    fits = ConvexFits(decompose(X, fit_intercept=fit_intercept), loss)
    round_ = loop.last(current, fits, np.array([reg]))
    left_out = fits.leave_one_out(current.targets, [reg])
    first = DenseLeftOut(X, 0.8, fit_intercept)
    g = target_derivatives(before, codes, noise, class_contrasts, first, is_local)
    through = row_products(label_effects(before, None, noise, class_contrasts), g)
    expected = np.zeros_like(through)
    curvatures, axes = np.linalg.eigh(left_out.mean_curvature[0])
    for curvature, axis in zip(curvatures, axes.T, strict=True):
        last = DenseLeftOut(X, 2 * reg / curvature, fit_intercept)
        diagonal = np.diag(last.exact @ first.mean)
        expected += diagonal[:, None] * np.outer(
            through @ left_out.mean_response[0].T @ axis / curvature, axis
        )
    np.testing.assert_allclose(round_.leakage, expected, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(
        round_.scores, left_out.corrected_scores[:, 0, :] - expected, rtol=1e-8, atol=1e-12
    )
    assert (round_.reg, round_.index) == (reg, 1)
    assert np.isnan(round_.alignment)


@pytest.mark.parametrize("scale_free", [True, False])
def test_each_round_selects_the_best_reg(scale_free):
    """By correlation with the labels or, if the scale matters, by distance to the targets."""
    X, codes, _, noise = draw(150, 60, mean_norm=3.0)
    X = X * np.logspace(-1, 0.5, 60)  # anisotropic noise, so that neither end of the grid is best
    regs = np.array([1e-4, 0.01, 1.0, 100.0, 1e4])
    loop = RefinementLoop(decompose(X), NoisyLabels(DistinctRows.of(X), codes, noise), scale_free)
    chosen = [loop.first(regs)]
    chosen.append(loop.next(chosen[0], regs))
    for index, selected in enumerate(chosen):
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
        assert selected.reg == regs[np.argmax(merits)]
        assert 0 < np.argmax(merits) < 4
        correlation = np.corrcoef(selected.scores[:, 0], codes)[0, 1]
        assert selected.alignment == pytest.approx(correlation, rel=1e-9)


def test_targets_and_leakage_of_trusted_rows():
    """Trusted labels leak into scores as other labels do, so these scores are corrected, too."""
    X, codes, y, noise = draw(80, 30)
    truth = np.where(np.arange(80) % 4, -1, y)
    _, (first, second) = rounds_at(X, codes, noise, [0.5, 0.5], True, truth=truth)
    is_trusted = truth >= 0
    for round_ in (first, second):
        np.testing.assert_array_equal(round_.targets[is_trusted, 0], 2 * y[is_trusted] - 1)
    np.testing.assert_allclose(
        first.targets[~is_trusted, 0],
        (2 * noise.posterior[:, 1] - 1)[codes[~is_trusted]],
        atol=1e-12,
    )
    assert (second.leakage != 0).all()


@pytest.mark.parametrize(
    ("alignments", "taken"),
    [
        ((0.5, 0.31, 0.32), 2),  # a loss of two standard errors, of 0.1 each, is tolerated
        ((0.5, 0.29, 0.9), 0),
        ((0.5, 0.31, 0.29), 1),  # in total, not in each round
        ((0.5, 0.9, 0.69), 1),
        ((0.5, 0.9, 0.71), 2),
    ],
)
def test_round_that_loses_agreement_is_dropped(alignments, taken, monkeypatch):
    X, codes, _, noise = draw(
        100, 40, mean_norm=4.0, noise=NoiseModel.binary(eps_pos=0.2, eps_neg=0.1)
    )
    script = iter(alignments)
    monkeypatch.setattr(RefinementLoop, "_agreement", lambda *_, **__: next(script))
    monkeypatch.setattr(RefinementLoop, "_support", lambda *_: 10.0)
    labels = NoisyLabels(DistinctRows.of(X), codes, noise)
    round_ = refine(decompose(X), labels, np.array([0.5]), search=False)
    assert (round_.index, round_.alignment) == (taken, alignments[taken])


def test_later_rounds_do_not_go_below_the_smallest_reg():
    """Although smaller values would be better on these data."""
    X, codes, _, noise = draw(400, 60, mean_norm=4.0)
    X = X * np.logspace(-1, 0.5, 60)
    spectrum = decompose(X)
    free, held = (
        refine(spectrum, NoisyLabels(DistinctRows.of(X), codes, noise), regs, search=True)
        for regs in (np.array([1e-3, 1.0]), np.array([1.0]))
    )
    assert free.index == held.index == 2
    assert (free.reg < 1, held.reg) == (True, 1)


@pytest.mark.parametrize(("mean_norm", "seed"), [(2.0, 0), (0.0, 3)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_alignment_of_two_classes_is_a_correlation_or_a_cosine(fit_intercept, mean_norm, seed):
    """It is negative in the draw of identical classes."""
    X, codes, _, noise = draw(90, 30, seed=seed, mean_norm=mean_norm)
    _, rounds = rounds_at(X, codes, noise, [0.5, 0.5], fit_intercept)
    labels = 2.0 * codes - 1
    for round_ in rounds:
        scores, about = round_.scores[:, 0], float(fit_intercept)
        scores, references = scores - about * scores.mean(), labels - about * labels.mean()
        expected = scores @ references / np.linalg.norm(scores) / np.linalg.norm(references)
        assert round_.alignment == pytest.approx(expected, rel=1e-9)
    assert (rounds[1].alignment > 0) == (mean_norm > 0)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_alignment_of_several_classes_is_the_canonical_correlation(fit_intercept):
    X, codes, _, noise = three_classes(90, 30)
    _, rounds = rounds_at(X, codes, noise, [0.5, 0.5], fit_intercept)
    for round_ in rounds:
        columns = [round_.scores, contrasts(3)[codes]]
        bases = [np.linalg.qr(c - c.mean(axis=0) if fit_intercept else c)[0] for c in columns]
        expected = np.linalg.norm(bases[0].T @ bases[1]) / np.sqrt(2)
        assert round_.alignment == pytest.approx(expected, rel=1e-9)


def test_reg_of_another_loss_is_scaled_by_its_curvature():
    """By 1/6 for the softmax of three classes: half the curvature at 0 is 1/(2k)."""
    X, codes, _, noise = three_classes(60, 20)
    spectrum, rows = decompose(X), DistinctRows.of(X)
    labels = NoisyLabels(rows, codes, noise)
    rounds = refine(spectrum, labels, np.array([0.6]), search=False)
    last = refine(ConvexFits(spectrum, SoftmaxLoss), labels, np.array([0.1]), search=False)
    assert rounds.index == last.index == 2
    np.testing.assert_allclose(last.targets, rounds.targets, rtol=1e-9, atol=1e-12)
    assert last.reg == pytest.approx(0.1)


@pytest.mark.parametrize(("p", "best"), [(40, 1e-4), (80, 100.0)])
def test_reg_of_another_loss_is_the_one_with_the_best_scores(p, best):
    X, codes, _, noise = draw(150, p, mean_norm=3.0)
    X = X * np.logspace(-1, 0.5, p)
    loop, (_, current) = rounds_at(X, codes, noise, [0.1, 0.1], True)
    fits, regs = ConvexFits(decompose(X), LOGISTIC), np.array([100.0, 1e-4])
    alone = [
        np.corrcoef(loop.last(current, fits, np.array([reg])).scores[:, 0], codes)[0, 1]
        for reg in regs
    ]
    assert loop.last(current, fits, regs).reg == regs[np.argmax(alone)] == best


def test_defaults_are_scale_free_with_fixed_priors():
    X, codes, _, noise = draw(150, 60)
    regs = np.array([0.01, 1.0, 100.0])

    def last_round(*, infer_priors=False, **options):
        labels = NoisyLabels(DistinctRows.of(X), codes, noise, infer_priors=infer_priors)
        return refine(decompose(X), labels, regs, search=False, **options)

    assert last_round().reg == last_round(scale_free=True).reg != last_round(scale_free=False).reg
    np.testing.assert_array_equal(last_round().noise.priors, noise.priors)
    assert (last_round(infer_priors=True).noise.priors != noise.priors).all()
