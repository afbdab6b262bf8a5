"""Fits of convex losses against scikit-learn and the closed form, leave-one-out against refits."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import helmert
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from unflip.datasets import make_mixture
from unflip.losses import LOGISTIC, SQUARED, Loss, SeparateLoss, SoftmaxLoss, TargetLoss
from unflip.model.refinement.rounds import _merits, _usable, best_convex_reg
from unflip.ridge.solvers import ConvexFits, gradient_descent
from unflip.ridge.spectrum import CannotLeaveOutError, decompose

SHAPES = pytest.mark.parametrize(("n", "p"), [(80, 12), (30, 60)])
WEIGHTED = pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])
INTERCEPT = pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "origin"])
REGS = [0.1, 1e-3, 10.0]  # not sorted

#: √(1 + (s − y)²), whose slope is bounded and whose curvatures for the two labels differ.
PSEUDO_HUBER = Loss(
    "pseudo-Huber",
    lambda s, y: np.sqrt(1 + (s - y) ** 2),
    lambda s, y: (s - y) / np.sqrt(1 + (s - y) ** 2),
    lambda s, y: (1 + (s - y) ** 2) ** -1.5,
)


def problem(n, p, weighted=False, n_classes=2, seed=0):
    """Return rows about 0.5, codes of overlapping classes, and weights."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(n_classes, size=n)
    X = rng.normal(size=(n, p)) + 0.5
    X += rng.normal(size=(n_classes, p))[codes] * (1 / np.sqrt(p))
    return X, codes, rng.uniform(0.5, 2, size=n) if weighted else None


def classes_in_contrasts(codes, n_classes):
    return np.eye(n_classes)[codes] @ helmert(n_classes).T


def scikit_learn(X, codes, reg, fit_intercept, weights):
    n = len(X) if weights is None else weights.sum()
    model = LogisticRegression(
        C=1 / (2 * n * reg),
        tol=1e-10,
        max_iter=2000,
        fit_intercept=fit_intercept,
        solver="newton-cholesky",
    )
    return model.fit(X, codes, sample_weight=weights)


def assert_relative(actual, expected, tolerance):
    assert np.abs(actual - expected).max() <= tolerance * np.abs(expected).max()


@WEIGHTED
@INTERCEPT
@SHAPES
def test_two_classes_equal_scikit_learns_logistic_regression(n, p, fit_intercept, weighted):
    X, codes, weights = problem(n, p, weighted)
    path = ConvexFits(decompose(X, weights, fit_intercept=fit_intercept), LOGISTIC).path(
        2.0 * codes - 1, REGS
    )
    for j, reg in enumerate(REGS):
        model = scikit_learn(X, codes, reg, fit_intercept, weights)
        assert_relative(path.coef[:, j, 0], model.coef_[0], 1e-6)
        np.testing.assert_allclose(path.intercept[j], model.intercept_, rtol=1e-6, atol=1e-7)


@WEIGHTED
@INTERCEPT
@SHAPES
def test_three_classes_equal_scikit_learns_multinomial_regression(n, p, fit_intercept, weighted):
    X, codes, weights = problem(n, p, weighted, n_classes=3)
    fits = ConvexFits(decompose(X, weights, fit_intercept=fit_intercept), SoftmaxLoss)
    path = fits.path(classes_in_contrasts(codes, 3), REGS)
    for j, reg in enumerate(REGS):
        model = scikit_learn(X, codes, reg, fit_intercept, weights)
        assert_relative(path.coef[:, j] @ helmert(3), model.coef_.T, 1e-6)
        centred = model.intercept_ - model.intercept_.mean()
        np.testing.assert_allclose(path.intercept[j] @ helmert(3), centred, rtol=1e-6, atol=1e-7)


def test_softmax_of_two_classes_is_the_logistic_loss_at_half_the_reg():
    """One orthonormal contrast is the score over √2, so the coefficients have half the square."""
    X, codes, _ = problem(60, 8)
    spectrum = decompose(X)
    logistic = ConvexFits(spectrum, LOGISTIC).path(2.0 * codes - 1, [0.05])
    softmax = ConvexFits(spectrum, SoftmaxLoss).path(classes_in_contrasts(codes, 2), [0.1])
    difference = helmert(2)[0, 1] - helmert(2)[0, 0]
    assert_relative(softmax.coef * difference, logistic.coef, 1e-7)
    assert_relative(softmax.intercept * difference, logistic.intercept, 1e-6)


def test_soft_targets_equal_weighted_duplicates():
    X, _, weights = problem(50, 6, weighted=True)
    share = np.random.default_rng(1).uniform(size=50)
    path = ConvexFits(decompose(X, weights), LOGISTIC).path(2 * share - 1, [0.03])
    both = np.concatenate([weights * share, weights * (1 - share)])
    model = scikit_learn(np.vstack([X, X]), np.repeat([1, 0], 50), 0.03, True, both)
    assert_relative(path.coef[:, 0, 0], model.coef_[0], 1e-6)
    np.testing.assert_allclose(path.intercept[0], model.intercept_, rtol=1e-6)


@WEIGHTED
@INTERCEPT
@pytest.mark.parametrize(("n", "p"), [(40, 12), (12, 40), (20, 20)])
def test_the_squared_loss_gives_the_closed_form(n, p, fit_intercept, weighted):
    X, _, weights = problem(n, p, weighted)
    rng = np.random.default_rng(2)
    t, regs = rng.normal(size=(n, 2)), [1e-2, 0.1, 10.0]
    spectrum = decompose(X, weights, fit_intercept=fit_intercept)
    fits = ConvexFits(spectrum, SQUARED)
    np.testing.assert_allclose(
        fits.path(t, regs).coef, spectrum.path(t, regs).coef, rtol=0, atol=1e-10
    )
    np.testing.assert_allclose(
        fits.path(t, regs).intercept, spectrum.path(t, regs).intercept, rtol=0, atol=1e-10
    )
    ours, exact = fits.leave_one_out(t, regs), spectrum.leave_one_out(t, regs)
    owner, share = np.repeat(np.arange(n), 2), rng.uniform(0.2, 0.8, size=2 * n)
    own = rng.normal(size=(2 * n, 2))
    for a, b in [
        (ours, exact),
        (ours.of_duplicates(owner, own, share), exact.of_duplicates(owner, own, share)),
    ]:
        np.testing.assert_allclose(a.scores, b.scores, rtol=0, atol=1e-9)
        np.testing.assert_allclose(a.corrected_scores, b.corrected_scores, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(a.targets, b.targets)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_the_gradient_at_the_solution_vanishes_at_any_scale(scale):
    X, codes, weights = problem(60, 10, weighted=True)
    t, regs = 2.0 * codes - 1, scale**2 * np.array(REGS)
    fits = ConvexFits(decompose(scale * X, weights), LOGISTIC)
    actual, path = fits.fit(t, regs), fits.path(t, regs)
    assert actual.converged.all()
    assert (actual.n_iterations <= 10).all()
    for j, reg in enumerate(regs):
        scores = scale * X @ path.coef[:, j] + path.intercept[j]
        np.testing.assert_allclose(scores, actual.minima[j].scores, atol=1e-10)
        pulls = weights * TargetLoss(LOGISTIC, t).gradient(scores[:, 0]) / weights.sum()
        assert np.abs(scale * X.T @ pulls + 2 * reg * path.coef[:, j, 0]).max() < 1e-7 * scale
        assert abs(pulls.sum()) < 1e-8


@pytest.mark.parametrize("shape", [(200, 200), (300, 60)])
def test_warm_and_cold_starts_agree(shape):
    """Also for large targets, for which the loss is flat almost everywhere."""
    X, codes, _ = problem(*shape)
    spectrum, t = decompose(X, fit_intercept=False), np.array([-3.0, 3.67])[codes]
    regs = np.logspace(-2, 2, 9)
    path = ConvexFits(spectrum, LOGISTIC).path(t, regs)
    for j, reg in enumerate(regs):
        assert_relative(
            ConvexFits(spectrum, LOGISTIC).path(t, [reg]).coef[:, 0], path.coef[:, j], 1e-6
        )


def test_path_and_leave_one_out_share_one_fit():
    X, codes, _ = problem(40, 6)
    fits, t = ConvexFits(decompose(X), LOGISTIC), 2.0 * codes - 1
    assert fits.fit(t, REGS) is fits.fit(t.copy(), list(REGS))
    assert fits.fit(t, REGS) is not fits.fit(-t, REGS)
    np.testing.assert_allclose(fits.path(-t, REGS).coef, -fits.path(t, REGS).coef, atol=1e-8)
    before = fits.fit(t, REGS)
    assert fits.leave_one_out(t, REGS) is fits.leave_one_out(t, REGS)
    t *= 0.5
    assert fits.fit(t, REGS) is not before


def test_a_custom_loss():
    X, codes, _ = problem(60, 8)
    t = 1.4 * codes - 0.7
    path = ConvexFits(decompose(X), PSEUDO_HUBER).path(t, [0.01, 0.1])
    for j, reg in enumerate([0.01, 0.1]):
        pulls = (
            TargetLoss(PSEUDO_HUBER, t).gradient(X @ path.coef[:, j, 0] + path.intercept[j]) / 60
        )
        assert np.abs(X.T @ pulls + 2 * reg * path.coef[:, j, 0]).max() < 1e-8


def refitted(X, targets, weights, loss, reg, fit_intercept, leaving):
    """Return scores of the rows by fits to the others, at the nγ of all rows."""
    weights = np.ones(len(X)) if weights is None else weights
    scores = []
    for i in leaving:
        rest = np.arange(len(X)) != i
        kept = reg * weights.sum() / weights[rest].sum()
        fits = ConvexFits(decompose(X[rest], weights[rest], fit_intercept=fit_intercept), loss)
        path = fits.path(targets[rest], [kept])
        scores.append(X[i] @ path.coef[:, 0] + path.intercept[0])
    return np.array(scores)


def errors(X, targets, weights, loss, reg, fit_intercept, leaving):
    """Return root mean square errors of approximate and fitted scores, relative to the spread."""
    left_out = ConvexFits(decompose(X, weights, fit_intercept=fit_intercept), loss).leave_one_out(
        targets, [reg]
    )
    exact = refitted(X, targets, weights, loss, reg, fit_intercept, leaving)
    apart = np.array([left_out.scores[leaving, 0], left_out.fitted[leaving, 0]]) - exact
    return np.sqrt((apart**2).mean(axis=(1, 2))) / exact.std(axis=0).mean()


@INTERCEPT
@pytest.mark.parametrize(("n", "p"), [(200, 40), (100, 150)])
@pytest.mark.parametrize(("reg", "bound"), [(0.01, 0.015), (0.1, 0.005), (1.0, 1e-3)])
def test_approximate_leave_one_out_is_close_to_refitting(n, p, reg, bound, fit_intercept):
    X, codes, weights = problem(n, p, weighted=True)
    leaving = np.arange(0, n, 5)
    ours, none = errors(X, 2.0 * codes - 1, weights, LOGISTIC, reg, fit_intercept, leaving)
    assert ours < bound
    assert ours < none / 10


@INTERCEPT
@pytest.mark.parametrize(("reg", "bound"), [(0.01, 0.04), (0.1, 0.01)])
def test_approximate_leave_one_out_of_three_classes(reg, bound, fit_intercept):
    X, codes, weights = problem(120, 30, weighted=True, n_classes=3)
    leaving = np.arange(0, 120, 5)
    ours, none = errors(
        X, classes_in_contrasts(codes, 3), weights, SoftmaxLoss, reg, fit_intercept, leaving
    )
    assert ours < bound
    assert ours < none / 10


@INTERCEPT
def test_common_curvature_is_close_with_many_directions(fit_intercept):
    X, codes, weights = problem(120, 30, weighted=True, n_classes=3)
    spectrum, targets = (
        decompose(X, weights, fit_intercept=fit_intercept),
        classes_in_contrasts(codes, 3),
    )
    exact = ConvexFits(spectrum, SoftmaxLoss).leave_one_out(targets, [0.03])
    common = ConvexFits(spectrum, SoftmaxLoss, largest_exact=0).leave_one_out(targets, [0.03])
    apart, moved = (
        np.std(a.scores - b) for a, b in [(common, exact.scores), (exact, exact.fitted)]
    )
    assert 0 < apart < 0.1 * moved
    squared = ConvexFits(spectrum, SQUARED, largest_exact=0).leave_one_out(targets, [0.03])
    np.testing.assert_allclose(
        squared.scores, spectrum.leave_one_out(targets, [0.03]).scores, atol=1e-9
    )


def test_separate_columns_are_separate_fits():
    X, codes, _ = problem(60, 8)
    spectrum, t = decompose(X), 2.0 * codes - 1
    both = np.column_stack([t, 0.5 * t])
    together, alone = (
        ConvexFits(spectrum, LOGISTIC).leave_one_out(targets, [0.1]) for targets in (both, 0.5 * t)
    )
    np.testing.assert_allclose(
        together.corrected_scores[:, :, 1:], alone.corrected_scores, atol=1e-7
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_corrected_scores_do_not_depend_on_their_own_label_at_large_reg(n_classes):
    X, codes, _ = problem(60, 5, n_classes=n_classes)
    X = np.random.default_rng(3).normal(size=X.shape)  # nothing to learn
    loss = LOGISTIC if n_classes == 2 else SoftmaxLoss
    targets = 2.0 * codes[:, None] - 1 if n_classes == 2 else classes_in_contrasts(codes, n_classes)
    left_out = ConvexFits(decompose(X), loss).leave_one_out(targets, [1e5])
    for column in range(n_classes - 1):
        own = targets[:, column]
        assert np.corrcoef(left_out.scores[:, 0, column], own)[0, 1] < -0.99
        assert abs(np.corrcoef(left_out.corrected_scores[:, 0, column], own)[0, 1]) < 0.3


def test_leaving_out_a_share_of_a_row_is_leaving_out_a_duplicate():
    """Leaving out a third of a row of weight 3 is leaving out one of three duplicates."""
    rng = np.random.default_rng(0)
    X, repeats = rng.normal(size=(40, 4)), rng.integers(1, 4, size=40)
    owner = np.repeat(np.arange(40), repeats)
    labels = rng.choice([-1.0, 1.0], size=len(owner))
    pooled = np.bincount(owner, labels) / repeats
    duplicates = ConvexFits(decompose(X[owner]), LOGISTIC).leave_one_out(labels, REGS)
    parts = ConvexFits(decompose(X, repeats.astype(float)), LOGISTIC).leave_one_out(pooled, REGS)
    parts = parts.of_duplicates(owner, labels, (1 / repeats)[owner])
    np.testing.assert_allclose(parts.scores, duplicates.scores, atol=1e-6)
    np.testing.assert_allclose(parts.corrected_scores, duplicates.corrected_scores, atol=1e-6)


def test_mean_curvature_and_response():
    X, codes, _ = problem(60, 5)
    left_out = ConvexFits(decompose(X), LOGISTIC).leave_one_out(2.0 * codes - 1, [0.1, 1e6])
    probability = expit(left_out.fitted[:, 0, 0])
    assert left_out.mean_curvature[0, 0, 0] == pytest.approx(
        (probability * (1 - probability)).mean()
    )
    share = codes.mean()
    assert left_out.mean_curvature[1, 0, 0] == pytest.approx(share * (1 - share), rel=1e-4)
    np.testing.assert_allclose(left_out.mean_response, 0.5)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (
            lambda X, t: ConvexFits(decompose(X, fit_intercept=False), LOGISTIC).path(
                1.2 * t, [0.0]
            ),
            "unbounded",
        ),
        (
            lambda X, t: ConvexFits(decompose(X), LOGISTIC).path(3 * t + 2, [0.1]),
            "no intercept is finite",
        ),
        (
            lambda X, t: ConvexFits(decompose(X), LOGISTIC).path(0 * t + 1, [0.1]),
            "fit_intercept=False",
        ),
        (
            lambda X, t: ConvexFits(decompose(X), LOGISTIC).path(np.sign(X[:, 0] - 0.5), [0.0]),
            "separable",
        ),
        (
            lambda X, t: ConvexFits(decompose(X), PSEUDO_HUBER).path(2 * t, [0.1]),
            "pseudo-Huber .* is not convex",
        ),
        (lambda X, t: ConvexFits(decompose(X), LOGISTIC).path(t, [-1.0]), "reg=-1 must be finite"),
        (lambda X, t: ConvexFits(decompose(X), LOGISTIC).path(t[:5], [1.0]), "one row for each"),
        (lambda X, t: ConvexFits(decompose(X), LOGISTIC).path(np.nan * t, [1.0]), "must be finite"),
        (
            lambda X, t: ConvexFits(decompose(np.hstack([X, X])), LOGISTIC).path(t, [0.0]),
            "full rank",
        ),
        (lambda X, t: ConvexFits(decompose(X[:6]), LOGISTIC).path(t[:6], [0.0]), "full rank"),
    ],
)
def test_impossible_fits_raise(act, message):
    X, codes, _ = problem(80, 8)
    with pytest.raises(ValueError, match=message):
        act(X, 2.0 * codes - 1)


def test_impossible_softmax_fits_raise():
    X, codes, _ = problem(80, 8, n_classes=3)
    beyond = (1.5 * np.eye(3)[codes] - 0.5 / 3) @ helmert(3).T
    with pytest.raises(ValueError, match="unbounded"):
        ConvexFits(decompose(X, fit_intercept=False), SoftmaxLoss).path(beyond, [0.0])
    with pytest.raises(ValueError, match="no intercept is finite"):
        ConvexFits(decompose(X), SoftmaxLoss).path(
            classes_in_contrasts(np.minimum(codes, 1), 3), [0.1]
        )


def test_rows_that_cannot_be_left_out_raise():
    X, codes, _ = problem(80, 8)
    X = np.column_stack([X, np.eye(80)[7]])
    left_out = ConvexFits(decompose(X, fit_intercept=False), SQUARED).leave_one_out(
        2.0 * codes - 1, [0.0]
    )
    with pytest.raises(CannotLeaveOutError, match="alone determines a direction"):
        _ = left_out.scores


def usable_regs(fits, means, regs, corrected):
    usable, scores = zip(*_usable(fits, means, regs, corrected), strict=True)
    return np.array(usable), np.concatenate(scores, axis=1)


@pytest.mark.parametrize(
    "error", [CannotLeaveOutError(), ValueError("something else")], ids=["a row", "else"]
)
def test_only_rows_that_cannot_be_left_out_stop_the_search_of_smaller_regs(error):
    X, codes, _ = problem(40, 6)
    fits, t = ConvexFits(decompose(X), LOGISTIC), 2.0 * codes[:, None] - 1

    def corrected(reg):
        if reg < 0.05:
            raise error
        return fits.leave_one_out(t, [reg]).corrected_scores

    if isinstance(error, CannotLeaveOutError):
        usable, scores = usable_regs(fits, t, np.array([0.01, 1.0, 0.1]), corrected)
        np.testing.assert_array_equal(usable, [1.0, 0.1])
        assert scores.shape == (40, 2, 1)
    else:
        with pytest.raises(ValueError, match="something else"):
            usable_regs(fits, t, np.array([0.01, 1.0, 0.1]), corrected)


def test_the_search_stops_where_smaller_regs_are_no_better():
    X, codes, _ = problem(100, 60, seed=1)
    fits, t, tried = ConvexFits(decompose(X), LOGISTIC), 2.0 * codes[:, None] - 1, []

    def corrected(compared, reg):
        tried.append(reg)
        return compared.leave_one_out(t, [reg]).corrected_scores

    regs = np.logspace(-5, 4, 28)
    for scale_free in (True, False):
        tried.clear()
        actual = best_convex_reg(fits, t, regs, corrected, t, np.ones(100), scale_free)
        assert tried[-5] == actual
        assert tried[-1] > regs[0]
        usable, scores = usable_regs(
            fits.with_common_curvature(),
            t,
            regs,
            lambda reg: corrected(fits.with_common_curvature(), reg),
        )
        assert actual == usable[np.argmax(_merits(fits, t, scores, t, np.ones(100), scale_free))]


@pytest.mark.parametrize("seed", range(4))
def test_the_search_stops_where_scores_diverge(seed):
    """There is no signal here, and fits at small reg still separate the classes."""
    X, codes, _ = problem(60, 100, seed=seed)
    X = np.random.default_rng(seed).normal(size=X.shape)
    fits, t = ConvexFits(decompose(X), LOGISTIC), 2.0 * codes[:, None] - 1

    def corrected(reg):
        return fits.leave_one_out(t, [reg]).corrected_scores

    usable, scores = usable_regs(fits, t, np.logspace(-5, 3, 17), corrected)
    assert usable[-1] > 1e-4
    assert np.corrcoef(np.column_stack([t, scores[:, :, 0]]).T)[0, 1:].max() < 0.4


def test_reg_0_is_maximum_likelihood():
    X, codes, _ = problem(300, 4)
    path = ConvexFits(decompose(X), LOGISTIC).path(2.0 * codes - 1, [0.0])
    model = LogisticRegression(C=np.inf, tol=1e-10, solver="newton-cholesky").fit(X, codes)
    assert_relative(path.coef[:, 0, 0], model.coef_[0], 1e-6)


def test_fits_that_have_not_converged_warn():
    X, codes, _ = problem(80, 8)
    fits = ConvexFits(decompose(X), LOGISTIC, max_iterations=1)
    with pytest.warns(
        ConvergenceWarning,
        match=r"reg=1e-06 has not converged in 1 steps .* reg, or scale the features\.$",
    ):
        fits.path(2.0 * codes - 1, [1e-6])
    actual = fits.fit(2.0 * codes - 1, [1e-6])
    assert not actual.converged.any()
    assert actual.n_iterations[0] == 1
    assert actual.gradient[0] > 1e-6


def test_constant_columns_and_equal_rows():
    X, codes, _ = problem(40, 4)
    t = 2.0 * codes - 1
    padded = np.column_stack([X, np.full(40, 3.0)])
    for reg in (0.0, 0.1):
        path = ConvexFits(decompose(padded), LOGISTIC).path(t, [reg])
        assert_relative(path.coef[:4], ConvexFits(decompose(X), LOGISTIC).path(t, [reg]).coef, 1e-6)
        np.testing.assert_allclose(path.coef[4], 0, atol=1e-9)
    alike = ConvexFits(decompose(np.full((40, 4), 0.3)), LOGISTIC).path(t, [0.1])
    np.testing.assert_allclose(alike.coef, 0, atol=1e-12)
    assert expit(alike.intercept[0, 0]) == pytest.approx(codes.mean())


def test_gradient_descent_takes_gradient_steps():
    X, codes, _ = problem(50, 6)
    t = 2.0 * codes - 1
    coef = np.zeros(6)
    for _ in range(3):
        coef -= 0.4 * (X.T @ (expit(X @ coef) - (1 + t) / 2) / 50 + 0.2 * coef)
    np.testing.assert_allclose(
        gradient_descent(X, t, LOGISTIC, step=0.4, n_steps=3, reg=0.1)[:, 0], coef, atol=1e-14
    )
    steps, columns = np.array([0.4, 0.1]), np.column_stack([t, t])
    both = gradient_descent(X, columns, LOGISTIC, step=steps, n_steps=3)
    for j, step in enumerate(steps):
        alone = gradient_descent(X, t, LOGISTIC, step=float(step), n_steps=3)[:, 0]
        np.testing.assert_allclose(both[:, j], alone, atol=1e-14)
    many = gradient_descent(X, t, LOGISTIC, step=0.4, n_steps=2000, reg=0.1)
    fitted = ConvexFits(decompose(X, fit_intercept=False), LOGISTIC).path(t, [0.1])
    np.testing.assert_allclose(many, fitted.coef[:, 0], atol=1e-8)


@pytest.mark.parametrize(
    "loss",
    [
        SeparateLoss(LOGISTIC, np.array([[0.3, 2.0]] * 4)),
        SoftmaxLoss(np.array([[0.3, -0.2, 0.4]] * 4)),
    ],
    ids=["separate", "softmax"],
)
def test_derivatives_of_losses_of_several_scores(loss):
    scores, step = np.random.default_rng(0).normal(size=(4, loss.n_scores)), 1e-5
    for j in range(loss.n_scores):
        shift = step * np.eye(loss.n_scores)[j]
        slope = (loss.value(scores + shift) - loss.value(scores - shift)) / (2 * step)
        bend = (loss.gradient(scores + shift) - loss.gradient(scores - shift)) / (2 * step)
        pull = (
            replace(loss, target=loss.target + shift).gradient(scores)
            - replace(loss, target=loss.target - shift).gradient(scores)
        ) / (2 * step)
        np.testing.assert_allclose(loss.gradient(scores)[:, j], slope, atol=1e-8)
        np.testing.assert_allclose(loss.curvature(scores)[:, :, j], bend, atol=1e-8)
        np.testing.assert_allclose(loss.response(scores)[:, :, j], -pull, atol=1e-8)


def test_softmax_returns_the_targets_of_the_classes():
    shares = np.array([[0.2, 0.5, 0.3], [1.5, -0.5, 0.0]])
    np.testing.assert_allclose(SoftmaxLoss(shares @ helmert(3).T).class_targets, shares, atol=1e-15)


def test_corrected_scores_of_saturated_fits_do_not_depend_on_their_own_labels():
    """Where the loss is almost straight, the intercept must not follow one label without bound."""
    X, y = make_mixture(60, 100, mean_norm=0.1, random_state=0)
    t = 2.0 * y - 1
    spectrum = decompose(X)
    left_out = ConvexFits(spectrum, LOGISTIC).leave_one_out(t, [1e-4 * spectrum.scale / 8])
    plain, free = (
        np.corrcoef(s[:, 0, 0], t)[0, 1] for s in (left_out.scores, left_out.corrected_scores)
    )
    assert free < plain + 0.1
