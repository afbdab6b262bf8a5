"""Spectrum: ridge fits and exact leave-one-out scores, primal and dual, against brute force."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge

from unflip.ridge.moments import Moments
from unflip.ridge.spectrum import (
    CannotLeaveOutError,
    DualSpectrum,
    GramSpectrum,
    PrimalSpectrum,
    decompose,
)

SHAPES = [(40, 12), (12, 40), (20, 20), (15, 1)]
REGS = [1e-3, 0.1, 10.0]
WEIGHTED = pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])
INTERCEPT = pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "origin"])


def problem(n, p, weighted, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 2, size=n) if weighted else None
    return rng.normal(size=(n, p)) + 0.5, rng.normal(size=(n, 2)), weights


def total(weights, n):
    return n if weights is None else weights.sum()


def centred_rows(X, weights, fit_intercept):
    return X - np.average(X, axis=0, weights=weights) if fit_intercept else X


@WEIGHTED
@INTERCEPT
@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_fits_equal_scikit_learns_ridge(n, p, fit_intercept, weighted):
    X, t, weights = problem(n, p, weighted)
    path = decompose(X, weights, fit_intercept=fit_intercept).path(t, REGS)
    for j, reg in enumerate(REGS):
        ridge = Ridge(alpha=total(weights, n) * reg, fit_intercept=fit_intercept).fit(
            X, t, sample_weight=weights
        )
        np.testing.assert_allclose(path.coef[:, j, :].T, ridge.coef_, rtol=0, atol=1e-10)
        np.testing.assert_allclose(path.intercept[j], ridge.intercept_, rtol=0, atol=1e-10)


@WEIGHTED
@INTERCEPT
@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_leave_one_out_equals_refitting(n, p, fit_intercept, weighted):
    X, t, weights = problem(n, p, weighted)
    scores = decompose(X, weights, fit_intercept=fit_intercept).leave_one_out(t, REGS).scores
    for i in range(n):
        rest = np.arange(n) != i
        for j, reg in enumerate(REGS):
            ridge = Ridge(alpha=total(weights, n) * reg, fit_intercept=fit_intercept)
            ridge.fit(X[rest], t[rest], sample_weight=None if weights is None else weights[rest])
            np.testing.assert_allclose(scores[i, j], ridge.predict(X[[i]])[0], rtol=0, atol=1e-8)


@WEIGHTED
@INTERCEPT
@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_primal_and_dual_agree(n, p, fit_intercept, weighted):
    X, t, weights = problem(n, p, weighted)
    primal, dual = (
        kind(X, weights, fit_intercept=fit_intercept) for kind in (PrimalSpectrum, DualSpectrum)
    )
    np.testing.assert_allclose(
        primal.path(t, REGS).coef, dual.path(t, REGS).coef, rtol=0, atol=1e-8
    )
    np.testing.assert_allclose(
        primal.path(t, REGS).intercept, dual.path(t, REGS).intercept, rtol=0, atol=1e-8
    )
    first, second = primal.leave_one_out(t, REGS), dual.leave_one_out(t, REGS)
    np.testing.assert_allclose(first.scores, second.scores, rtol=0, atol=1e-8)
    np.testing.assert_allclose(first.slack, second.slack, rtol=0, atol=1e-8)
    assert primal.scale == pytest.approx(dual.scale, rel=1e-10)


@WEIGHTED
@INTERCEPT
@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_the_scale_is_the_mean_eigenvalue_of_the_covariance_weighted_by_itself(
    n, p, fit_intercept, weighted
):
    X, _, weights = problem(n, p, weighted)
    centred = centred_rows(X, weights, fit_intercept)
    covariance = (centred.T * (1 if weights is None else weights)) @ centred / total(weights, n)
    expected = np.trace(covariance @ covariance) / np.trace(covariance)
    assert decompose(X, weights, fit_intercept=fit_intercept).scale == pytest.approx(
        expected, rel=1e-12
    )


@pytest.mark.parametrize("shape", [(4, 2), (2, 3)], ids=["primal", "dual"])
def test_a_shift_equal_to_an_eigenvalue_keeps_half_of_its_direction(shape):
    X = np.zeros(shape)
    X[0, 0], X[1, 1] = 0.5, 1.0
    spectrum = decompose(X, fit_intercept=False)
    regs = np.array([0.0, 0.25, 1.0]) / shape[0]
    np.testing.assert_allclose(spectrum.shrinkage(regs), [[1, 0.5, 0.2], [1, 0.8, 0.5]], rtol=1e-14)
    without_rows = decompose(np.zeros(shape), fit_intercept=False)
    np.testing.assert_array_equal(without_rows.shrinkage(regs), np.zeros((2, 3)))
    assert without_rows.scale == 0


@INTERCEPT
@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_a_constant_added_to_the_targets_loses_no_digits(n, p, fit_intercept):
    """With an intercept coefficients and leave-one-out errors stay; without, they add up."""
    X, t, weights = problem(n, p, True)
    t, constant = np.round(100 * t[:, :1]), np.full((n, 1), 2.0**40)
    spectrum = decompose(X, weights, fit_intercept=fit_intercept)
    near, far, alone = (spectrum.path(values, REGS).coef for values in (t, t + constant, constant))
    atol = 1e-12 if fit_intercept else 2.0**40 * 1e-14
    np.testing.assert_allclose(
        far, near if fit_intercept else near + alone, rtol=0, atol=atol * 100
    )


@INTERCEPT
def test_fits_from_sums_equal_fits_from_rows(fit_intercept):
    X, _, weights = problem(50, 8, True)
    codes, table = (
        np.random.default_rng(1).integers(3, size=50),
        np.random.default_rng(2).normal(size=(3, 2)),
    )
    parts = [
        Moments.from_rows(X[s], codes[s], 3, weights[s]) for s in (slice(0, 20), slice(20, 50))
    ]
    moments = parts[0] + parts[1]
    from_sums = GramSpectrum.from_moments(moments, fit_intercept=fit_intercept).solve(
        moments, table, REGS
    )
    from_rows = decompose(X, weights, fit_intercept=fit_intercept).path(table[codes], REGS)
    np.testing.assert_allclose(from_sums.coef, from_rows.coef, rtol=0, atol=1e-12)
    np.testing.assert_allclose(from_sums.intercept, from_rows.intercept, rtol=0, atol=1e-12)


@INTERCEPT
@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_corrected_scores_do_not_depend_on_their_own_label(n, p, fit_intercept):
    """Changing one row's target moves its corrected score by the change of the mean target only."""
    X, t, weights = problem(n, p, True)
    spectrum = decompose(X, weights, fit_intercept=fit_intercept)
    changed = t.copy()
    changed[3] += 5
    before, after = (
        spectrum.leave_one_out(values, REGS).corrected_scores for values in (t, changed)
    )
    mean_change = 5 * weights[3] / weights.sum() if fit_intercept else 0.0
    np.testing.assert_allclose(after[3] - before[3], mean_change, rtol=0, atol=1e-10)


def test_plain_leave_one_out_scores_depend_on_their_own_label_at_large_reg():
    """At large γ plain scores sort the rows by their own label; corrected scores do not."""
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(30, 5)), np.repeat([-1.0, 1.0], 15)
    left_out = decompose(X, fit_intercept=True).leave_one_out(t, [1e6])
    assert np.corrcoef(left_out.scores[:, 0, 0], t)[0, 1] < -0.999
    assert abs(np.corrcoef(left_out.corrected_scores[:, 0, 0], t)[0, 1]) < 0.5


@INTERCEPT
def test_tiny_regs_keep_their_digits_in_the_dual(fit_intercept):
    """1 − H is of order γ with fewer rows than features, so it must not be a difference."""
    X, t, _ = problem(12, 40, False)
    reg = 1e-12
    left_out = decompose(X, fit_intercept=fit_intercept).leave_one_out(t, [reg])
    for i in range(12):
        rest = np.arange(12) != i
        centre = X[rest].mean(axis=0) if fit_intercept else 0.0
        mean = t[rest].mean(axis=0) if fit_intercept else 0.0
        limit = (
            mean
            + (X[i] - centre) @ np.linalg.lstsq(X[rest] - centre, t[rest] - mean, rcond=1e-10)[0]
        )
        np.testing.assert_allclose(left_out.scores[i, 0], limit, rtol=0, atol=1e-6)


@INTERCEPT
def test_reg_0_is_least_squares_with_constant_columns(fit_intercept):
    X, t, _ = problem(40, 6, False)
    X[:, 2] = 3.0 if fit_intercept else 0.0
    kept = np.arange(6) != 2
    least_squares = LinearRegression(fit_intercept=fit_intercept).fit(X[:, kept], t)
    spectrum = decompose(X, fit_intercept=fit_intercept)
    path = spectrum.path(t, [0.0])
    np.testing.assert_allclose(path.coef[kept, 0, :].T, least_squares.coef_, atol=1e-10)
    np.testing.assert_allclose(path.coef[2, 0, :], 0, atol=1e-12)
    scores = spectrum.leave_one_out(t, [0.0]).scores
    for i in range(5):
        rest = np.arange(40) != i
        refit = LinearRegression(fit_intercept=fit_intercept).fit(X[rest][:, kept], t[rest])
        np.testing.assert_allclose(scores[i, 0], refit.predict(X[[i]][:, kept])[0], atol=1e-8)


def test_reg_0_in_the_dual_with_few_varying_columns():
    rng = np.random.default_rng(0)
    X, t = np.ones((20, 50)), rng.normal(size=20)
    X[:, :3] = rng.normal(size=(20, 3))
    dual = decompose(X)
    assert isinstance(dual, DualSpectrum)
    few = PrimalSpectrum(X[:, :3], fit_intercept=True)
    np.testing.assert_allclose(
        dual.leave_one_out(t, [0.0, 0.1]).scores, few.leave_one_out(t, [0.0, 0.1]).scores, atol=1e-9
    )


@pytest.mark.parametrize(("n", "p"), SHAPES)
@INTERCEPT
def test_any_array_api_namespace_works(n, p, fit_intercept):
    xp = pytest.importorskip("array_api_strict")
    X, t, weights = problem(n, p, True)
    strict = decompose(xp.asarray(X), xp.asarray(weights), fit_intercept=fit_intercept)
    plain = decompose(X, weights, fit_intercept=fit_intercept)
    np.testing.assert_allclose(
        np.asarray(strict.path(xp.asarray(t), REGS).coef),
        plain.path(t, REGS).coef,
        rtol=0,
        atol=1e-12,
    )
    left_out = strict.leave_one_out(xp.asarray(t), REGS)
    assert type(left_out.scores) is type(strict.path(xp.asarray(t), REGS).coef)
    np.testing.assert_allclose(
        np.asarray(left_out.corrected_scores),
        plain.leave_one_out(t, REGS).corrected_scores,
        rtol=0,
        atol=1e-10,
    )


def test_a_path_equals_single_fits():
    X, t, _ = problem(40, 12, False)
    spectrum = decompose(X)
    whole = spectrum.leave_one_out(t, REGS)
    np.testing.assert_allclose(
        whole.scores[:, 1:2], spectrum.leave_one_out(t, [REGS[1]]).scores, atol=1e-13
    )


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda X, t: decompose(X).path(t, [-1.0]), "reg=-1 must be finite and not negative"),
        (lambda X, t: decompose(X).path(t, [np.nan]), "reg=nan"),
        (lambda X, t: decompose(X[:5]).path(t[:5], [0.0]), "the rows span 4 of 8 varying features"),
        (lambda X, t: decompose(np.hstack([X, X])).path(t, [0.0]), "full rank"),
        (
            lambda X, t: decompose(X * np.logspace(0, 9, 8)).path(t, [0.0]),
            "full rank",
        ),  # below the resolution of a Gram matrix
        (lambda X, t: decompose(X, np.ones(3)), "sample_weight has shape"),
    ],
)
def test_impossible_fits_raise(act, message):
    X, t, _ = problem(40, 8, False)
    with pytest.raises(ValueError, match=message):
        act(X, t)


@WEIGHTED
@pytest.mark.parametrize("value", [0.5, 1e5 / 3])
@pytest.mark.parametrize("p", [20, 300])
def test_equal_rows_are_fitted_by_their_mean_target(p, value, weighted):
    """At any reg: centred rows are rounding errors, which must not be fitted."""
    _, t, weights = problem(101, 1, weighted)
    reference = np.ones(101) if weights is None else weights
    spectrum = decompose(np.full((101, p), value), weights)
    path = spectrum.path(t, [0.0, 0.1])
    np.testing.assert_allclose(path.coef, 0, atol=1e-15)
    np.testing.assert_allclose(
        path.intercept, np.stack([np.average(t, axis=0, weights=weights)] * 2), rtol=1e-12
    )
    scores = spectrum.leave_one_out(t, [0.0, 0.1]).scores
    others = (reference @ t - reference[:, None] * t) / (reference.sum() - reference)[:, None]
    np.testing.assert_allclose(scores, np.stack([others] * 2, axis=1), atol=1e-12)
    np.testing.assert_array_equal(spectrum.hat_diagonals([[0.0, 0.1]])[0], np.zeros((101, 2)))
    assert spectrum.scale == spectrum.n_varying == 0


@pytest.mark.parametrize("n_constant", [0, 50], ids=["primal", "dual"])
def test_a_row_that_alone_determines_a_direction_cannot_be_left_out(n_constant):
    X, t, _ = problem(40, 8, False)
    X = np.hstack([X, np.zeros((40, 1 + n_constant))])
    X[7, 8] = 1.0
    for seed in range(20):  # the result must not depend on rounding
        noisy = X + np.random.default_rng(seed).normal(size=X.shape) * (
            np.arange(9 + n_constant) < 8
        )
        with pytest.raises(ValueError, match="alone determines a direction"):
            _ = decompose(noisy).leave_one_out(t, [0.0]).scores


@INTERCEPT
@pytest.mark.parametrize(("scale", "reg"), [(1e6, 1e-6), (1e3, 1e-12), (1.0, 1e-20)])
def test_any_positive_reg_allows_leave_one_out_in_the_dual(scale, reg, fit_intercept):
    X, t, _ = problem(20, 60, False)
    scores = decompose(scale * X, fit_intercept=fit_intercept).leave_one_out(t, [reg]).scores
    assert np.isfinite(scores).all()
    assert np.abs(scores).max() < 100


def test_a_reg_lost_in_rounding_raises():
    X, t, _ = problem(20, 60, False)
    with pytest.raises(CannotLeaveOutError):
        _ = decompose(1e3 * X).leave_one_out(t, [5e-324]).scores


def test_a_constant_column_of_many_rows_is_still_constant():
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [rng.normal(size=(200_000, 2)), np.full(200_000, 123.456), np.full(200_000, 1 / 3)]
    )
    path = decompose(X).path(rng.normal(size=200_000), [0.0])
    np.testing.assert_allclose(path.coef[2:], 0, atol=1e-12)


@pytest.mark.parametrize("n_constant", [0, 50], ids=["primal", "dual"])
def test_a_column_counts_as_varying_however_little_it_varies(n_constant):
    rng = np.random.default_rng(0)
    little = 1 + 1e-10 * rng.normal(size=(40, 1))
    X = np.hstack([rng.normal(size=(40, 2)), little, np.full((40, 1 + n_constant), 1 / 3)])
    assert decompose(X).n_varying == 3
    assert (
        decompose(X * (np.arange(4 + n_constant) != 1), fit_intercept=False).n_varying
        == 3 + n_constant
    )


def test_leaving_out_a_share_of_a_row_is_leaving_out_a_duplicate():
    """Leaving out a third of a row of weight 3 is leaving out one of three duplicates."""
    rng = np.random.default_rng(0)
    repeats = rng.integers(1, 4, size=30)
    owner = np.repeat(np.arange(30), repeats)
    X, t = rng.normal(size=(30, 4)), rng.normal(size=(len(owner), 2))
    mean_targets = np.add.reduceat(t, np.cumsum(repeats) - repeats) / repeats[:, None]
    duplicates = decompose(X[owner]).leave_one_out(t, REGS)
    pooled = decompose(X, repeats.astype(float)).leave_one_out(mean_targets, REGS)
    parts = pooled.of_duplicates(owner, t, (1 / repeats)[owner])
    np.testing.assert_allclose(parts.scores, duplicates.scores, atol=1e-10)
    np.testing.assert_allclose(parts.corrected_scores, duplicates.corrected_scores, atol=1e-10)


@pytest.mark.parametrize(("n", "p"), [(30, 8), (12, 20)])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_shrinkage_and_diagonal_give_the_leverages(n, p, fit_intercept, weighted):
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(n, p)), rng.uniform(0.5, 2, size=n) if weighted else None
    spectrum = decompose(X, weights, fit_intercept=fit_intercept)
    regs = np.array([0.1, 3.0])
    hat = spectrum.diagonal(spectrum.shrinkage(regs))
    own_weight = np.ones(n) if weights is None else weights
    intercept_share = own_weight[:, None] / spectrum.n if fit_intercept else 0.0
    np.testing.assert_allclose(
        hat + intercept_share, 1 - spectrum.leave_one_out(np.ones(n), regs).slack, atol=1e-10
    )
    np.testing.assert_allclose(hat.sum(axis=0), spectrum.shrinkage(regs).sum(axis=0), atol=1e-9)


@pytest.mark.parametrize(("n", "p"), [(30, 8), (12, 20)])
def test_diagonals_of_products_of_hat_matrices(n, p):
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(n, p)), rng.uniform(0.5, 2, size=n)
    spectrum = decompose(X, weights, fit_intercept=False)
    root = np.sqrt(weights)[:, None] * X
    a, b, c = (
        root @ np.linalg.solve(root.T @ root + spectrum.n * g * np.eye(p), root.T)
        for g in (0.1, 3.0, 0.5)
    )
    pair, three = spectrum.hat_diagonals(
        [[0.1, 3.0], [0.5]], [[0.1], [3.0], [0.5]], rows=slice(2, 9)
    )
    np.testing.assert_allclose(
        pair, np.column_stack([np.diag(a @ c), np.diag(b @ c)])[2:9], atol=1e-10
    )
    np.testing.assert_allclose(three[:, 0], np.diag(a @ b @ c)[2:9], atol=1e-10)


def test_leverages_of_many_regs_are_exact_to_rounding():
    rng = np.random.default_rng(0)
    X, regs = rng.normal(size=(200, 60)) * np.geomspace(1, 0.01, 60), np.logspace(-6, 4, 50)
    left, singular, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    expected = left**2 @ (1 / (1 + 200 * regs / singular[:, None] ** 2))
    np.testing.assert_allclose(decompose(X).hat_diagonals([regs])[0], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("n", "p"), [(30, 8), (12, 20)])
def test_leverages_keep_their_digits_at_any_reg(n, p):
    """They fall with 1/γ, and their squares may underflow float64."""
    X = np.random.default_rng(0).normal(size=(n, p))
    regs = [1e-3, 1.0, 1e40, 1e200]
    single, squared = decompose(X, fit_intercept=False).hat_diagonals([regs], [regs, regs])
    for j, reg in enumerate(regs):
        hat = X @ np.linalg.solve(X.T @ X + n * reg * np.eye(p), X.T)
        np.testing.assert_allclose(single[:, j], np.diag(hat), rtol=1e-9)
        np.testing.assert_allclose(squared[:, j], np.diag(hat @ hat), rtol=1e-9)


@pytest.mark.parametrize(("n", "p"), [(30, 8), (12, 20)])
def test_targets_changed_in_place_are_not_cached(n, p):
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(n, p)), rng.normal(size=(n, 2))
    spectrum = decompose(X, fit_intercept=False)
    for actual in (
        lambda spectrum: spectrum.kernel_sums(t),
        lambda spectrum: spectrum.path(t, REGS).coef,
        lambda spectrum: spectrum.leave_one_out(t, REGS).scores,
    ):
        actual(spectrum)
        t[:] = rng.normal(size=t.shape)
        np.testing.assert_allclose(
            actual(spectrum), actual(decompose(X, fit_intercept=False)), atol=1e-8
        )


@pytest.mark.parametrize(("n", "p"), [(30, 8), (12, 20)])
def test_kernel_sums_leave_the_row_itself_out(n, p):
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(n, p)), rng.normal(size=n)
    centred = X - X.mean(axis=0)
    kernel = centred @ centred.T
    np.fill_diagonal(kernel, 0)
    np.testing.assert_allclose(decompose(X).kernel_sums(t)[:, 0], kernel @ t, atol=1e-10)


@INTERCEPT
@pytest.mark.parametrize("shape", [(40, 12), (12, 20)])
@WEIGHTED
def test_principal_rows_are_rotated_rows(shape, fit_intercept, weighted):
    X, t, weights = problem(*shape, weighted)
    spectrum = decompose(X, weights, fit_intercept=fit_intercept)
    rows, turned = centred_rows(X, weights, fit_intercept), spectrum.principal_rows
    np.testing.assert_allclose(turned @ turned.T, rows @ rows.T, atol=1e-10)
    coef = np.random.default_rng(1).normal(size=(turned.shape[1], 2))
    np.testing.assert_allclose(rows @ spectrum.from_principal(coef), turned @ coef, atol=1e-10)
    # A spectrum that has not computed the principal rows gets leverages another way.
    without = decompose(X, weights, fit_intercept=fit_intercept)
    left_out, expected = (each.leave_one_out(t, REGS).scores for each in (spectrum, without))
    np.testing.assert_allclose(left_out, expected, atol=1e-9)


@INTERCEPT
@pytest.mark.parametrize("shape", [(30, 8), (12, 20)])
@WEIGHTED
def test_principal_directions_are_uncorrelated_and_coordinates_along_them_have_variance_1(
    shape, fit_intercept, weighted
):
    X, _, weights = problem(*shape, weighted)
    spectrum = decompose(X, weights, fit_intercept=fit_intercept)
    rows, reference = (
        centred_rows(X, weights, fit_intercept),
        np.ones(len(X)) if weights is None else weights,
    )
    variances = np.linalg.eigvalsh((rows.T * reference) @ rows / reference.sum())[
        -len(spectrum.variances) :
    ]
    np.testing.assert_allclose(spectrum.variances, variances, atol=1e-10)
    for count in (3, 2):
        actual = spectrum.coordinates(count)
        np.testing.assert_allclose(
            (actual.T * reference) @ actual / reference.sum(), np.eye(count), atol=1e-10
        )
        along = (rows.T * reference) @ actual / reference.sum()
        np.testing.assert_allclose(
            np.linalg.norm(along, axis=0) ** 2, variances[::-1][:count], atol=1e-10
        )
    assert spectrum.n_varying == shape[1]


@pytest.mark.parametrize(
    ("size", "dtypes"), [(0.0, (np.float64, np.float32)), (1e-5, (np.float32,))]
)
def test_a_row_that_nearly_alone_determines_a_direction_can_be_left_out_in_double_precision_only(
    size, dtypes
):
    """Its slack is about 6e-8, below the rounding error of sums in single precision."""
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(600, 21)), rng.normal(size=600)
    X[:, -1] *= size
    X[7, -1] = 1
    for dtype in dtypes:
        with pytest.raises(CannotLeaveOutError):
            _ = decompose(X.astype(dtype)).leave_one_out(t, [0.0]).scores
    if size:
        rest = np.arange(600) != 7
        expected = LinearRegression().fit(X[rest], t[rest]).predict(X[[7]])
        np.testing.assert_allclose(
            decompose(X).leave_one_out(t, [0.0]).scores[7, 0], expected, rtol=1e-5
        )
