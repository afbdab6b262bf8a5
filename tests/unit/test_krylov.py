"""Fits without an eigendecomposition are the same, and leverages are as close as documented."""

import tracemalloc
from math import prod

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from support.text import draw_texts
from unflip.auditing.outlook import effective_dimension
from unflip.data.sparse_rows import SparseRows
from unflip.ridge.selection import candidate_regs
from unflip.ridge.spectrum import DualSpectrum, KrylovSpectrum, PrimalSpectrum, decompose, krylov

SHAPES = pytest.mark.parametrize(
    "shape", [(60, 25), (25, 60), (40, 40)], ids=["features", "rows", "square"]
)
WEIGHTED = pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])
INTERCEPT = pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "origin"])
TEXTS = pytest.mark.parametrize("shape", [(700, 400), (400, 700)], ids=["features", "rows"])


def problem(shape, weighted=False, seed=0):
    """Return counts (an empty, a constant and two equal columns), two targets, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(np.geomspace(0.1, 3, shape[1]), size=shape).astype(float)
    X[:, 3], X[:, 4], X[:, 6] = 0.0, 2.5, X[:, 5]
    weights = rng.uniform(0.5, 2, size=shape[0]) if weighted else None
    return sparse.csr_array(X), rng.normal(size=(shape[0], 2)), weights


def exact(X, weights=None, fit_intercept=True):
    return decompose(X.toarray(), weights, fit_intercept=fit_intercept)


@SHAPES
@WEIGHTED
@INTERCEPT
def test_fits_equal_those_of_the_exact_spectrum(shape, weighted, fit_intercept):
    X, t, weights = problem(shape, weighted)
    whole = exact(X, weights, fit_intercept)
    regs = whole.scale * np.array([1e-6, 1e-3, 1.0, 1e6])
    actual = KrylovSpectrum(X, weights, fit_intercept=fit_intercept, tolerance=1e-13).path(t, regs)
    expected = whole.path(t, regs)
    np.testing.assert_allclose(
        actual.coef, expected.coef, rtol=1e-7, atol=1e-9 * np.abs(expected.coef).max()
    )
    np.testing.assert_allclose(actual.intercept, expected.intercept, rtol=1e-7, atol=1e-8)


@TEXTS
@INTERCEPT
@pytest.mark.parametrize(
    ("options", "tolerance"), [({}, 1e-6), ({"tolerance": 1e-5}, 1e-5)], ids=["default", "custom"]
)
def test_residuals_of_the_normal_equations_keep_the_tolerance(
    shape, fit_intercept, options, tolerance
):
    X, classes = draw_texts(*shape, length=40)
    weights = np.random.default_rng(1).uniform(0.5, 2, size=shape[0])
    spectrum = KrylovSpectrum(X, weights, fit_intercept=fit_intercept, **options)
    regs = spectrum.scale * np.array([1e-3, 0.1, 10.0])
    coef = spectrum.path(2.0 * classes - 1, regs).coef[:, :, 0]
    t = 2.0 * classes - 1 - fit_intercept * np.average(2.0 * classes - 1, weights=weights)
    rows = X.toarray() - fit_intercept * np.average(X.toarray(), axis=0, weights=weights)
    A, b = np.sqrt(weights)[:, None] * rows, np.sqrt(weights) * t
    if shape[0] > shape[1]:
        left, right = A.T @ (A @ coef) + spectrum.n * regs * coef, A.T @ b
    else:
        dual = np.linalg.lstsq(A.T, coef, rcond=None)[0]
        left, right = A @ (A.T @ dual) + spectrum.n * regs * dual, b
        right = right - fit_intercept * np.sqrt(weights) * (np.sqrt(weights) @ b) / spectrum.n
    residuals = np.linalg.norm(left - right[:, None], axis=0) / np.linalg.norm(right)
    assert residuals.max() <= 1.001 * tolerance
    assert residuals[0] > 0.01 * tolerance  # no more work than needed


@SHAPES
def test_left_out_residuals_are_exact(shape):
    X, t, weights = problem(shape, weighted=True)
    whole, actual = (
        exact(X, weights),
        KrylovSpectrum(X, weights, fit_intercept=True, tolerance=1e-13),
    )
    regs = whole.scale * np.array([1.0, 10.0])
    expected = whole.leave_one_out(t, regs).residuals
    np.testing.assert_allclose(actual.leave_one_out(t, regs).residuals, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("shape", [(300, 200), (200, 300)], ids=["features", "rows"])
def test_one_space_serves_all_regs_and_multiples_of_a_target(shape):
    X, classes = draw_texts(*shape, length=30)
    spectrum = KrylovSpectrum(X, fit_intercept=True)
    products = count_products(spectrum)
    one = spectrum.path(classes.astype(float), spectrum.scale * np.array([0.1, 1.0]))
    n_products = len(products)
    other = spectrum.path(3.0 - 2.0 * classes, spectrum.scale * np.array([0.1, 0.5, 1.0]))
    spectrum.path(classes.astype(float), [spectrum.scale])
    assert len(products) == n_products
    np.testing.assert_allclose(other.coef[:, [0, 2]], -2 * one.coef, rtol=1e-9, atol=1e-12)
    spectrum.path(classes.astype(float), [0.01 * spectrum.scale])
    assert n_products < len(products)  # continues from where it stopped
    fresh = KrylovSpectrum(X, fit_intercept=True)
    again = count_products(fresh)
    at_once = fresh.path(classes.astype(float), [0.01 * spectrum.scale])
    assert len(again) == len(products)
    np.testing.assert_array_equal(
        at_once.coef, spectrum.path(classes.astype(float), [0.01 * spectrum.scale]).coef
    )


def count_products(spectrum):
    _ = spectrum.scale  # needs products, too
    products, inner = [], spectrum._gram_times

    def counted(columns):
        products.append(columns.shape)
        return inner(columns)

    spectrum._gram_times = counted
    return products


def test_many_targets_equal_single_targets():
    X, _, weights = problem((60, 25), weighted=True)
    t = np.random.default_rng(0).normal(size=(60, 11))
    t[:, 4] = 1.0  # zero after centring
    together = (
        KrylovSpectrum(X, weights, fit_intercept=True, tolerance=1e-12).path(t, [0.1, 1.0]).coef
    )
    for column in (0, 4, 7, 10):
        alone = (
            KrylovSpectrum(X, weights, fit_intercept=True, tolerance=1e-12)
            .path(t[:, column], [0.1, 1.0])
            .coef
        )
        np.testing.assert_allclose(together[:, :, [column]], alone, rtol=1e-8, atol=1e-10)


def test_similar_targets_have_separate_fits():
    X, t, _ = problem((60, 25))
    spectrum = KrylovSpectrum(X, fit_intercept=True)
    for target in (t[:, 0], t[:, 0] + 1e-3 * t[:, 1]):
        expected = KrylovSpectrum(X, fit_intercept=True).path(target, [0.1])
        np.testing.assert_array_equal(spectrum.path(target, [0.1]).coef, expected.coef)


@pytest.mark.parametrize("scale", [1e-140, 1e140, -1e140])
def test_rows_of_any_scale(scale):
    X, t, _ = problem((60, 25))
    one, other = (KrylovSpectrum(s * X, fit_intercept=True, tolerance=1e-12) for s in (1.0, scale))
    assert other.scale == pytest.approx(scale**2 * one.scale, rel=1e-9)
    regs = one.scale * np.array([1.0, 10.0])
    scores = [s.leave_one_out(t, u * u * regs).scores for s, u in ((one, 1.0), (other, scale))]
    np.testing.assert_allclose(scores[1], scores[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("factor", [1e-150, 1e150])
@SHAPES
def test_only_ratios_of_weights_matter(shape, factor):
    X, t, weights = problem(shape, weighted=True)
    one, other = (
        KrylovSpectrum(X, u * weights, fit_intercept=True, tolerance=1e-12) for u in (1.0, factor)
    )
    regs = one.scale * np.array([1.0, 10.0])
    np.testing.assert_allclose(
        other.path(t, regs).coef, one.path(t, regs).coef, rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(
        other.hat_diagonals([regs])[0], one.hat_diagonals([regs])[0], rtol=1e-9
    )
    assert other.scale == pytest.approx(one.scale, rel=1e-9)
    assert other.least_reg == pytest.approx(one.least_reg, rel=2e-3)


@TEXTS
def test_fits_and_scores_are_the_same_each_time(shape):
    X, classes = draw_texts(*shape, length=30)
    actual = [KrylovSpectrum(X, fit_intercept=True) for _ in range(2)]
    scores = [
        s.leave_one_out(2.0 * classes - 1, s.scale * np.array([1.0, 5.0])).scores for s in actual
    ]
    np.testing.assert_array_equal(*scores)


@pytest.mark.parametrize("shape", [(9, 5), (5, 9)])
def test_empty_rows_are_fitted_by_the_mean_target(shape):
    t = np.arange(float(shape[0]))
    spectrum = KrylovSpectrum(sparse.csr_array(shape), fit_intercept=True)
    path = spectrum.path(t, [0.1])
    np.testing.assert_array_equal(path.coef, 0)
    np.testing.assert_allclose(path.intercept, t.mean())
    assert (spectrum.scale, spectrum.n_varying) == (0.0, 0)
    np.testing.assert_allclose(
        spectrum.leave_one_out(t, [0.1]).scores[:, 0, 0], (t.sum() - t) / (len(t) - 1)
    )


@TEXTS
@INTERCEPT
def test_sums_over_the_spectrum_are_within_their_error(shape, fit_intercept):
    errors = []
    for seed in range(4):
        X, _ = draw_texts(*shape, length=40, seed=seed)
        whole, actual = (
            exact(X, fit_intercept=fit_intercept),
            KrylovSpectrum(X, fit_intercept=fit_intercept),
        )
        doubt = actual._quadrature.errors(actual._eigenvalues**2) / actual.total / actual.n
        assert abs(actual.scale - whole.scale) < 4 * doubt < 0.1 * whole.scale
        regs = whole.scale * np.logspace(-4, 2, 13)
        mean, error = actual.mean_leverage(regs)
        expected = whole.shrinkage(regs).sum(axis=0) / shape[0]
        errors.append((mean - expected) / np.maximum(error, 1e-4 * expected))
        assert (error < 0.01 * expected).all()
    assert np.abs(errors).max() < 4
    assert np.sqrt(np.mean(np.square(errors))) < 1.5


@TEXTS
@WEIGHTED
@INTERCEPT
def test_leverages_are_close_and_sum_to_the_trace(shape, weighted, fit_intercept):
    X, _ = draw_texts(*shape, length=40)
    weights = np.random.default_rng(0).uniform(0.2, 3, size=shape[0]) if weighted else None
    whole = exact(X, weights, fit_intercept)
    actual = KrylovSpectrum(X, weights, fit_intercept=fit_intercept)
    regs = whole.scale * np.array([0.5, 1.0, 10.0])
    values = actual.hat_diagonals([regs])[0]
    np.testing.assert_allclose(values.mean(axis=0), actual.mean_leverage(regs)[0], rtol=1e-9)
    expected = whole.diagonal(whole.shrinkage(regs))
    missed = np.sqrt(((values - expected) ** 2).mean(axis=0))
    assert (missed < 0.5 * expected.std(axis=0)).all()  # half the error of their mean
    squares = actual.hat_diagonals([regs, regs])[0]
    expected = whole.diagonal(whole.shrinkage(regs) ** 2)
    assert (np.sqrt(((squares - expected) ** 2).mean(axis=0)) < 0.5 * expected.std(axis=0)).all()


@TEXTS
@INTERCEPT
def test_products_of_hat_matrices_for_rows_of_large_weight(shape, fit_intercept):
    X, _ = draw_texts(*shape, length=40)
    weights = np.exp(np.random.default_rng(0).normal(size=shape[0]))
    whole = exact(X, weights, fit_intercept)
    actual = KrylovSpectrum(X, weights, fit_intercept=fit_intercept)
    regs, one = whole.scale * np.array([0.5, 1.0, 4.0]), whole.scale * np.ones(1)
    products = [regs, one], [regs, regs], [regs, one, one]
    heavy = weights > np.quantile(weights, 0.9)
    for product, values, expected in zip(
        products, actual.hat_diagonals(*products), whole.hat_diagonals(*products), strict=True
    ):
        others = [prod(s.hat_diagonals([r])[0] for r in product) for s in (actual, whole)]
        # What is left is the part that passes through other rows.
        values = values - others[0]
        expected = expected - others[1]
        for column in range(3):
            assert np.corrcoef(values[:, column], expected[:, column])[0, 1] > 0.9
        np.testing.assert_allclose(
            values[heavy].mean(axis=0), expected[heavy].mean(axis=0), rtol=0.2
        )
    sums = actual._quadrature.sums(actual.shrinkage(regs) * actual.shrinkage(one))
    np.testing.assert_allclose(actual.hat_diagonals([regs, one])[0].sum(axis=0), sums, rtol=1e-2)


@INTERCEPT
def test_interpolated_rows_have_leverage_1_minus_the_intercepts_share(fit_intercept):
    X, _, weights = problem((25, 60), weighted=True)
    spectrum = KrylovSpectrum(X, weights, fit_intercept=fit_intercept)
    regs = [1e-9 * spectrum.scale]
    most = 1 - fit_intercept * weights / weights.sum()
    np.testing.assert_allclose(spectrum.hat_diagonals([regs])[0][:, 0], most, rtol=1e-5)
    assert spectrum.mean_leverage(regs)[0] == pytest.approx(most.mean(), rel=1e-5)


@SHAPES
def test_parts_of_the_rows_equal_slices_of_all(shape):
    X, t, weights = problem(shape, weighted=True)
    spectrum = KrylovSpectrum(X, weights, fit_intercept=True)
    regs, rows = spectrum.least_reg + spectrum.scale * np.array([1.0, 10.0]), slice(7, 19)
    part, whole = spectrum.leave_one_out_parts(t, regs)(rows), spectrum.leave_one_out(t, regs)
    np.testing.assert_allclose(part.residuals, whole.residuals[rows], rtol=0, atol=1e-13)
    np.testing.assert_array_equal(part.slack, whole.slack[rows])
    products = [regs], [regs, regs[:1]]
    for some, all_rows in zip(
        spectrum.hat_diagonals(*products, rows=rows), spectrum.hat_diagonals(*products), strict=True
    ):
        np.testing.assert_array_equal(some, all_rows[rows])


def test_scores_of_a_part_do_not_use_the_memory_of_all():
    X, _ = draw_texts(6000, 120, length=10)
    t = np.random.default_rng(0).normal(size=(6000, 8))
    spectrum = KrylovSpectrum(X, fit_intercept=True)
    regs = spectrum.scale * np.linspace(1, 10, 40)
    tracemalloc.start()
    try:
        spectrum.leave_one_out_parts(t, regs)(slice(0, 100))
        assert tracemalloc.get_traced_memory()[1] < 0.5 * 6000 * 40 * 8 * 8
    finally:
        tracemalloc.stop()


def test_leverages_are_cached():
    X, _, _ = problem((60, 25))
    spectrum = KrylovSpectrum(X, fit_intercept=True)
    regs = spectrum.scale * np.array([1.0, 2.0])
    first = spectrum.hat_diagonals([regs])[0]
    cached = dict(spectrum._leverages)
    spectrum.leave_one_out(np.arange(60.0), regs)
    assert all(spectrum._leverages[reg] is values for reg, values in cached.items())
    spectrum.hat_diagonals([3 * regs])
    assert all(spectrum._leverages[reg] is values for reg, values in cached.items())
    regs *= 2  # by the caller
    assert np.abs(spectrum.hat_diagonals([regs])[0] - first).max() > 0.01
    spectrum.hat_diagonals([spectrum.scale * np.linspace(1, 2, 100)])
    assert len(spectrum._leverages) == krylov._MOST_CACHED


@TEXTS
def test_leave_one_out_scores_are_close(shape):
    X, classes = draw_texts(*shape, length=40)
    t = (
        2.0 * np.where(np.random.default_rng(0).uniform(size=shape[0]) < 0.3, 1 - classes, classes)
        - 1
    )
    whole, actual = exact(X), KrylovSpectrum(X, fit_intercept=True)
    regs = candidate_regs(actual)[::6]
    scores, expected = (s.leave_one_out(t, regs).corrected_scores[:, :, 0] for s in (actual, whole))
    missed = np.sqrt(((scores - expected) ** 2).mean(axis=0)) / expected.std(axis=0)
    assert missed.max() < 0.1
    assert missed[actual.mean_leverage(regs)[0] < 0.1].max() < 0.02
    moved = np.abs(np.corrcoef(scores.T, t)[-1] - np.corrcoef(expected.T, t)[-1])
    assert moved.max() < 0.5 / np.sqrt(shape[0])  # half a standard error of a correlation


def test_unreliable_regs_are_not_compared_and_warn():
    X, classes = draw_texts(400, 900, length=40)
    spectrum = KrylovSpectrum(X, fit_intercept=True)
    regs = candidate_regs(spectrum)
    assert spectrum.mean_leverage(regs[:1])[0] <= 0.7
    spectrum.leave_one_out(classes.astype(float), [spectrum.least_reg])  # reliable: no warning
    assert len(regs) < len(candidate_regs(exact(X)))
    with pytest.warns(UserWarning, match="are inaccurate: rows are fitted so closely"):
        spectrum.leave_one_out(classes.astype(float), [0.1 * regs[0]])
    spectrum.leave_one_out(1.0 - classes, [0.1 * regs[0]])  # warns only once
    with pytest.warns(UserWarning, match="are inaccurate"):
        spectrum.leave_one_out(classes.astype(float), [0.05 * regs[0]])
    few, _ = draw_texts(900, 100, length=40)
    assert KrylovSpectrum(few, fit_intercept=True).least_reg == 0.0


@WEIGHTED
def test_least_reg_has_the_largest_mean_leverage_and_scales_with_the_rows(weighted):
    X, _, weights = problem((25, 60), weighted)
    spectrum = KrylovSpectrum(X, weights, fit_intercept=True)
    leverages = spectrum.hat_diagonals([[spectrum.least_reg]])[0][:, 0]
    assert np.average(leverages, weights=weights) == pytest.approx(
        0.7, abs=1e-3 if weighted else 1e-9
    )
    scaled = KrylovSpectrum(1e5 * X, weights, fit_intercept=True)
    assert scaled.least_reg == pytest.approx(1e10 * spectrum.least_reg, rel=2e-3)


def test_least_reg_weights_the_mean_leverage():
    X, _ = draw_texts(400, 900, length=40)
    weights = np.exp(np.random.default_rng(0).normal(size=400))
    spectrum = KrylovSpectrum(X, weights, fit_intercept=True)
    leverages = exact(X, weights).hat_diagonals([[spectrum.least_reg]])[0][:, 0]
    assert np.average(leverages, weights=weights) == pytest.approx(0.7, abs=0.01)
    assert KrylovSpectrum(X, 2 * np.ones(400), fit_intercept=True).least_reg == pytest.approx(
        KrylovSpectrum(X, fit_intercept=True).least_reg
    )
    few, _ = draw_texts(900, 100, length=40)
    weights = np.random.default_rng(0).uniform(0.5, 2, size=900)
    assert KrylovSpectrum(few, weights, fit_intercept=True).least_reg == 0.0


@SHAPES
@WEIGHTED
def test_directions_and_kernel_sums_equal_those_of_the_exact_spectrum(shape, weighted):
    X, t, weights = problem(shape, weighted)
    whole, actual = exact(X, weights), KrylovSpectrum(X, weights, fit_intercept=True)
    assert actual.n_varying == whole.n_varying
    np.testing.assert_allclose(
        np.abs(actual.coordinates(3)), np.abs(whole.coordinates(3)), rtol=0, atol=1e-7
    )
    assert actual.coordinates(0).shape == (shape[0], 0)
    np.testing.assert_allclose(actual.kernel_sums(t), whole.kernel_sums(t), rtol=1e-9, atol=1e-7)


def test_unavailable_quantities_raise():
    X, t, _ = problem((25, 60))
    spectrum = KrylovSpectrum(X, fit_intercept=True)
    assert not spectrum.is_whole
    with pytest.raises(
        ValueError, match=r"mixture .* too many for sparse rows of 25 × 60: pass a NoiseModel"
    ):
        _ = spectrum.variances
    with pytest.raises(ValueError, match="use loss='squared'"):
        _ = spectrum.principal_rows
    with pytest.raises(ValueError, match="use loss='squared'"):
        spectrum.from_principal(np.ones((3, 1)))
    with pytest.raises(
        ValueError, match=r"reg=0 needs every principal direction.*use a positive reg"
    ):
        spectrum.path(t, [0.0, 1.0])
    with pytest.raises(ValueError, match="use a positive reg"):
        spectrum.hat_diagonals([[0.0]])
    with pytest.raises(ValueError, match="use hat_diagonals"):
        spectrum.diagonal(np.ones((25, 1)))


@pytest.mark.parametrize(("memory", "n_steps"), [(5, 5), (5.9, 5), (0.1, 1)])
def test_fits_that_run_out_of_memory_warn(monkeypatch, memory, n_steps):
    X, t, _ = problem((60, 25))
    monkeypatch.setattr(krylov, "_MOST_BYTES", memory * 25 * 2 * 8)
    spectrum = KrylovSpectrum(X, fit_intercept=True)
    stopped = (
        rf"stopped at a relative residual of .* because {n_steps} steps fill the available memory"
    )
    with pytest.warns(ConvergenceWarning, match=stopped):
        spectrum.path(t, [1e-6])


def test_an_invariant_space_does_not_warn_about_memory():
    X = sparse.random_array((30, 8), density=0.5, rng=np.random.default_rng(0), format="csr")
    t = np.random.default_rng(1).normal(size=30)
    actual, expected = (
        s.path(t, [1e-6]) for s in (KrylovSpectrum(X, fit_intercept=True, tolerance=0.0), exact(X))
    )
    np.testing.assert_allclose(actual.coef, expected.coef, rtol=1e-7)


@pytest.mark.parametrize(("memory", "n_kept"), [(2, 2), (1, 1), (0.5, 1)])
def test_old_bases_are_dropped_beyond_the_memory_limit(monkeypatch, memory, n_kept):
    X, _, _ = problem((60, 25))
    monkeypatch.setattr(krylov, "_MOST_BYTES", memory * 64 * 25 * 8)  # so many spaces of one target
    spectrum = KrylovSpectrum(X, fit_intercept=True)
    targets = np.random.default_rng(0).normal(size=(4, 60))
    for n_before, target in enumerate(targets):
        spectrum.path(target, [spectrum.scale])
        assert len(spectrum._spaces) == min(n_before + 1, n_kept)
    products = count_products(spectrum)
    for target in targets[-n_kept:]:
        spectrum.path(target, [spectrum.scale])
    assert not products  # the latest are cached
    spectrum.path(targets[0], [spectrum.scale])
    assert products


def test_sparse_rows_beyond_the_limit_are_not_decomposed(monkeypatch):
    X, _, _ = problem((60, 25))
    monkeypatch.setattr(krylov, "LARGEST_EXACT", 24)
    assert type(decompose(X)) is KrylovSpectrum
    assert type(decompose(X.toarray())) is PrimalSpectrum
    monkeypatch.setattr(krylov, "LARGEST_EXACT", 25)
    assert type(decompose(X)) is PrimalSpectrum
    assert type(decompose(X.T.tocsr())) is DualSpectrum


def test_more_than_4000_sparse_rows_and_features_are_not_decomposed():
    assert krylov.is_out_of_reach(sparse.csr_array((4001, 4001)))
    assert not krylov.is_out_of_reach(sparse.csr_array((4000, 10**6)))
    assert not krylov.is_out_of_reach(sparse.csr_array((10**6, 4000)))


@pytest.mark.parametrize("shape", [(900, 500), (500, 900)])
@pytest.mark.parametrize("limit", [100, 2000])
def test_sparse_rows_never_become_dense(monkeypatch, shape, limit):
    X, classes = draw_texts(*shape, length=20)
    inner = sparse.csr_array.toarray

    def few_only(self, *options, **more):
        assert np.prod(self.shape) <= 0.6 * np.prod(shape)
        return inner(self, *options, **more)

    monkeypatch.setattr(sparse.csr_array, "toarray", few_only)
    monkeypatch.setattr(krylov, "LARGEST_EXACT", limit)
    spectrum = decompose(X)
    spectrum.path(classes.astype(float), [spectrum.scale])
    spectrum.leave_one_out(classes.astype(float), candidate_regs(spectrum))
    effective_dimension(X)


@WEIGHTED
@INTERCEPT
def test_sums_over_sparse_rows(weighted, fit_intercept):
    X, _, weights = problem((60, 25), weighted)
    rows = SparseRows.of(X, weights, centre=fit_intercept)
    assert 0 < len(rows.filled) < 25
    reference = np.ones(60) if weights is None else weights
    dense = X.toarray() - fit_intercept * np.average(X.toarray(), axis=0, weights=weights)
    np.testing.assert_allclose(rows.scatter(), (dense.T * reference) @ dense, rtol=0, atol=1e-10)
    rng = np.random.default_rng(0)
    scales, axes = rng.uniform(size=(25, 3)), rng.normal(size=(25, 4))
    np.testing.assert_allclose(rows.squared_norms_by(scales), dense**2 @ scales, rtol=0, atol=1e-10)
    sums = (dense @ axes) ** 2 @ scales[:4]
    np.testing.assert_allclose(rows.sums_of_squares(axes, scales[:4]), sums, rtol=0, atol=1e-9)


def test_effective_dimension_of_many_sparse_rows(monkeypatch):
    for shape in ((900, 500), (500, 900)):
        X, _ = draw_texts(*shape, length=40)
        expected = effective_dimension(X.toarray())
        assert effective_dimension(X) == pytest.approx(expected, rel=1e-9)
        with monkeypatch.context() as patched:
            patched.setattr(krylov, "LARGEST_EXACT", 100)
            assert effective_dimension(X) == pytest.approx(expected, rel=0.05)
