"""Dense rows in blocks and in single precision, and cached leverages, give the same fits."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import hadamard
from scipy.sparse import csr_array

from unflip import LPClassifier, NoiseModel
from unflip.data import dense
from unflip.data.dense import DenseRows
from unflip.data.engines import blocks
from unflip.data.rows import product
from unflip.datasets import make_mixture
from unflip.ridge.selection import candidate_regs
from unflip.ridge.spectrum import PrimalSpectrum, decompose, gram

GRID = np.logspace(-4, 4, 50)
NEARBY = np.array([0.25, 0.5, 1.0, 2.0, 4.0])


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(dense, "_KEPT_VALUES", 0)
    monkeypatch.setattr(blocks, "BLOCK_VALUES", 100)
    monkeypatch.setattr(dense, "_scatter_block", lambda size: 150)


def stored(X, kind, folder):
    if kind == "memory map":
        np.save(folder / "rows.npy", X)
        return np.load(folder / "rows.npy", mmap_mode="r")
    if kind == "strided":
        wide = np.zeros((2 * X.shape[0], 3 * X.shape[1]))
        wide[::2, ::3] = X
        return wide[::2, ::3]
    return np.asarray(X, order=kind)


@pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])
@pytest.mark.parametrize("centre", [False, True], ids=["origin", "centred"])
@pytest.mark.parametrize("mean", [0.1, 1e3])
@pytest.mark.parametrize("kind", ["C", "F", "strided", "memory map"])
def test_products_do_not_depend_on_blocks(kind, mean, centre, weighted, small_blocks, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(203, 7)) + mean
    weights = rng.uniform(0.5, 2, size=203) if weighted else None
    row_weights = np.ones(203) if weights is None else weights
    centre_of = row_weights @ X / row_weights.sum()
    expected = X - centre_of if centre else X
    storage = stored(X, kind, tmp_path)
    rows = DenseRows.of(storage, weights, centre=centre)
    summed, scatter, sums = DenseRows.with_sums(
        storage, row_weights[:, None], weights, centre=centre
    )
    columns = rng.normal(size=(7, 3))
    row_columns = rng.normal(size=(203, 2))
    size = 1.0 if centre else mean
    for actual in (rows, summed):
        np.testing.assert_allclose(actual.mean, centre_of, rtol=1e-14)
        np.testing.assert_allclose(
            actual.times(columns), expected @ columns, rtol=0, atol=1e-11 * size
        )
        np.testing.assert_allclose(
            actual.transposed_times(row_columns),
            expected.T @ row_columns,
            rtol=0,
            atol=1e-10 * size,
        )
        np.testing.assert_allclose(
            actual.gram(), expected @ expected.T, rtol=0, atol=1e-10 * size**2
        )
        np.testing.assert_allclose(actual.column_powers(), row_weights @ expected**2, rtol=1e-11)
        np.testing.assert_allclose(
            actual.times_and_squared_norms(columns)[1], (expected**2).sum(axis=1), rtol=1e-11
        )
    np.testing.assert_allclose(
        scatter, (expected.T * row_weights) @ expected, rtol=0, atol=1e-10 * size**2
    )
    np.testing.assert_allclose(sums[0], row_weights @ expected, rtol=0, atol=1e-9 * size)
    np.testing.assert_allclose(
        product(storage, columns), X @ columns, rtol=0, atol=1e-12 * max(mean, 1)
    )


@pytest.mark.parametrize("mean", [0.0, 1e4])
def test_leave_one_out_does_not_depend_on_blocks(mean, small_blocks, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 12)) + mean
    t = rng.normal(size=(150, 2))
    in_blocks = decompose(X).leave_one_out(t, GRID).scores
    monkeypatch.undo()
    np.testing.assert_allclose(
        in_blocks, decompose(X).leave_one_out(t, GRID).scores, rtol=0, atol=1e-9
    )


def spectrum_of(decay, n=600, p=120):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p)) * np.arange(1.0, p + 1) ** -decay
    return X, rng.choice([-1.0, 1.0], size=n)


@pytest.mark.parametrize("regs", [GRID, np.array([0.3])], ids=["grid", "one"])
@pytest.mark.parametrize("decay", [0.0, 1.0, 2.0, 3.0])
def test_products_of_hat_matrices_are_cached(decay, regs, monkeypatch):
    """Also for other regularization strengths, down to a quarter of the smallest."""
    X, t = spectrum_of(decay)
    fresh = decompose(X)
    used = decompose(X)
    regs = used.scale * regs
    used.leave_one_out(t, regs)
    monkeypatch.setattr(
        used, "_fitted_and_sums", lambda *_: pytest.fail("another pass over the rows")
    )
    for reg in regs[::7]:
        steps = NEARBY if len(regs) > 1 else np.ones(1)
        last = fresh.shrinkage(reg * steps)
        first = fresh.shrinkage([reg])
        for values in (last, last * first, last * last * first):
            direct = fresh.diagonal(values)
            np.testing.assert_allclose(
                used.diagonal(values), direct, rtol=0, atol=1e-10 * values.max()
            )


@pytest.mark.parametrize(
    "regs", [GRID, np.geomspace(0.1, 10, 12), GRID[::12]], ids=["wide", "narrow", "few"]
)
def test_squares_and_cubes_of_hat_matrices_are_cached_for_a_wide_spectrum(regs, monkeypatch):
    """Eigenvalues over twelve decades are the hardest to interpolate."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 120)) * np.logspace(0, -6, 120)
    t = rng.normal(size=600)
    fresh = decompose(X)
    used = decompose(X)
    regs = used.scale * regs
    used.leave_one_out(t, regs)
    monkeypatch.setattr(
        used, "_fitted_and_sums", lambda *_: pytest.fail("another pass over the rows")
    )
    kept = fresh.shrinkage(regs)
    for values in (kept, kept**2, kept**3):
        np.testing.assert_allclose(used.diagonal(values), fresh.diagonal(values), rtol=0, atol=1e-9)


@pytest.mark.parametrize("decay", [0.0, 1.0, 3.0])
def test_leverages_are_interpolated_between_regularization_strengths(decay):
    X, t = spectrum_of(decay)
    used = decompose(X)
    used.leave_one_out(t, candidate_regs(used))
    for reg in used.scale * np.array([3e-4, 0.0123, 1.7, 4e4]):
        direct = decompose(X).leave_one_out(t, [reg]).scores
        np.testing.assert_allclose(
            used.leave_one_out(t, [reg]).scores, direct, rtol=0, atol=1e-9 * direct.std()
        )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [1.0, 1e-12])
def test_diagonals_that_cannot_be_interpolated_are_computed(size, dtype):
    X, t = spectrum_of(0.0)
    X = X.astype(dtype)
    used = decompose(X)
    used.leave_one_out(t, GRID)
    values = size * np.random.default_rng(1).uniform(size=(120, 2))
    np.testing.assert_allclose(
        used.diagonal(values), decompose(X).diagonal(values), rtol=0, atol=1e-13 * size
    )


def test_diagonals_of_zero_need_no_pass(monkeypatch):
    spectrum = decompose(spectrum_of(0.0)[0])
    monkeypatch.setattr(
        spectrum, "_fitted_and_sums", lambda *_: pytest.fail("a pass over the rows")
    )
    np.testing.assert_array_equal(spectrum.diagonal(np.zeros((120, 2))), np.zeros((600, 2)))


@pytest.mark.parametrize("mean", [0.0, 30.0])
@pytest.mark.parametrize(
    ("decay", "shape"), [(0.0, (400, 100)), (0.0, (4000, 200)), (1.0, (4000, 200))]
)
def test_rounding_errors_of_single_precision_are_small(decay, shape, mean):
    """Relative to scores in double precision, in units of their standard deviation."""
    X, t = spectrum_of(decay, *shape)
    single = (X + mean).astype(np.float32)
    actual, exact = (
        decompose(rows).leave_one_out(t, GRID).scores for rows in (single, single.astype(float))
    )
    assert (np.abs(actual - exact).max(axis=0) < 3e-6 * exact.std(axis=0)).all()
    assert actual.dtype == np.float64


def test_ill_conditioned_gram_matrices_are_computed_in_double_precision():
    """Very different eigenvalues need double precision, even for features of equal variance."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 100)) + 10 * rng.normal(size=(6000, 1))
    X = X.astype(np.float32)
    t = rng.normal(size=6000)
    actual, exact = (decompose(rows).path(t, GRID).coef for rows in (X, X.astype(float)))
    np.testing.assert_allclose(actual, exact, rtol=0, atol=1e-10)


def with_eigenvalues(counts, n=64):
    """Rows with an exactly diagonal covariance, from pairs (variance, number of columns)."""
    scales = np.concatenate([np.full(count, variance**0.5) for variance, count in counts])
    return hadamard(n)[:, 1 : 1 + len(scales)] * scales


EVEN = with_eigenvalues([(1.0, 30)])
COLLINEAR = np.column_stack([EVEN, EVEN[:, 0] + 0.1 * hadamard(64)[:, 40]])


@pytest.mark.parametrize(
    ("X", "tried"),
    [
        (EVEN, [True]),
        (EVEN[:, :10], [False]),  # no more numbers than are few
        (EVEN[:, :11], [True]),
        (
            with_eigenvalues([(1.0, 16), (gram._LARGEST_RATIO, 16)]),
            [True],
        ),  # mean square 1.8 times the squared mean
        (with_eigenvalues([(1.0, 22), (gram._LARGEST_RATIO, 10)]), [True, False]),  # 2.5 times
        (with_eigenvalues([(1.0, 16), (1.01 * gram._LARGEST_RATIO, 16)]), [False]),
        (COLLINEAR, [True, False]),
        (1e-12 * EVEN, [False]),
        (1e12 * EVEN, [False]),
    ],
    ids=["even", "few", "many", "half", "third", "uneven", "collinear", "small", "large"],
)
def test_products_are_in_single_precision_if_eigenvalues_are_similar(X, tried, monkeypatch):
    """If the eigenvalues turn out to differ, the products are computed again in double."""
    monkeypatch.setattr(gram, "_FEW_VALUES", 640)
    made = []
    with_sums = DenseRows.with_sums
    monkeypatch.setattr(
        DenseRows,
        "with_sums",
        lambda *args, **named: made.append(named["in_single"]) or with_sums(*args, **named),
    )
    decompose(X.astype(np.float32))
    assert made == tried
    decompose(X)
    assert made == [*tried, False]


@pytest.mark.parametrize(("n", "errs"), [(400, False), (6000, True)], ids=["few", "many"])
def test_small_data_in_single_precision_are_multiplied_in_double(n, errs):
    """Products of few rows are fast in double precision; those of many are rounded."""
    X, t = spectrum_of(0.0, n, 100)
    single = X.astype(np.float32)
    actual, exact = (decompose(rows).path(t, GRID).coef for rows in (single, single.astype(float)))
    error = np.abs(actual - exact).max() / np.abs(exact).max()
    assert 1e-10 < error < 1e-6 if errs else error < 1e-12


@pytest.mark.parametrize("unit", [1e-25, 1e25])
def test_single_precision_at_any_scale(unit):
    X, t = spectrum_of(0.0, 6000, 100)
    small = X.astype(np.float32)
    actual = decompose(small * np.float32(unit)).leave_one_out(t, unit**2 * GRID).scores
    np.testing.assert_allclose(
        actual, decompose(small).leave_one_out(t, GRID).scores, rtol=0, atol=1e-5
    )


def test_single_precision_of_subnormal_numbers():
    X, t = spectrum_of(0.0)
    small = (1e-40 * X).astype(np.float32)
    actual, exact = (
        decompose(rows).leave_one_out(t, 1e-80 * GRID).scores
        for rows in (small, small.astype(float))
    )
    np.testing.assert_allclose(actual, exact, rtol=0, atol=1e-9)


def test_classifiers_agree_in_single_and_double_precision():
    X, y = make_mixture(1500, 60, mean_norm=1.5, random_state=0)
    noise = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
    codes = noise.flip(y, random_state=0)
    single = X.astype(np.float32)
    actual, exact = (
        LPClassifier(noise).fit(rows, codes) for rows in (single, single.astype(float))
    )
    assert actual.reg_ == pytest.approx(exact.reg_, rel=1e-6)
    np.testing.assert_allclose(
        actual.coef_, exact.coef_, rtol=0, atol=1e-5 * np.abs(exact.coef_).max()
    )
    np.testing.assert_allclose(
        actual.decision_function(single), exact.decision_function(single), atol=1e-4
    )


@pytest.mark.parametrize("mean", [0.0, 50.0])
def test_rows_are_not_copied(mean):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 200)) + mean
    y = rng.integers(2, size=60_000)
    tracemalloc.start()
    spectrum = PrimalSpectrum(X, fit_intercept=True)
    spectrum.leave_one_out(2.0 * y - 1, [0.1, 1.0, 10.0])
    LPClassifier(NoiseModel.binary(eps_pos=0.2, eps_neg=0.2), reg=1.0).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.35 * X.nbytes


@pytest.mark.parametrize("shape", [(150, 12), (12, 30)], ids=["primal", "dual"])
def test_scores_of_slices_equal_slices_of_scores(shape):
    rng = np.random.default_rng(0)
    spectrum = decompose(rng.normal(size=shape), rng.uniform(1, 2, size=shape[0]))
    t = rng.normal(size=(shape[0], 2))
    whole = spectrum.leave_one_out(t, GRID)
    parts = spectrum.leave_one_out_parts(t, GRID)
    for rows in (slice(0, 5), slice(5, 12)):
        np.testing.assert_allclose(
            parts(rows).corrected_scores, whole.corrected_scores[rows], rtol=0, atol=1e-13
        )
        values = spectrum.shrinkage(GRID)
        np.testing.assert_allclose(
            spectrum.diagonal(values, rows), spectrum.diagonal(values)[rows], rtol=0, atol=1e-13
        )


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_linear_combinations_of_fitted_targets_need_no_pass(fit_intercept, monkeypatch):
    """No pass for sums of the shares passed to `decompose`; no pass at all for fitted targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 8)) + 1
    codes = rng.integers(3, size=500)
    weights = rng.uniform(1, 2, size=500)
    shares = np.eye(3)[codes]
    table = rng.normal(size=(3, 2))
    plain = decompose(X, weights, fit_intercept=fit_intercept)
    spectrum = decompose(X, weights, fit_intercept=fit_intercept, shares=shares)
    monkeypatch.setattr(
        DenseRows, "transposed_times", lambda *_: pytest.fail("another pass over the rows")
    )
    path = spectrum.path(table[codes], GRID).coef
    spectrum.leave_one_out(table[codes], GRID)
    monkeypatch.setattr(DenseRows, "fill", lambda *_: pytest.fail("another pass over the rows"))
    other = table @ rng.normal(size=(2, 1))
    scores = spectrum.leave_one_out(other[codes], GRID[[20]]).scores
    monkeypatch.undo()
    np.testing.assert_allclose(path, plain.path(table[codes], GRID).coef, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        scores, plain.leave_one_out(other[codes], GRID[[20]]).scores, rtol=0, atol=1e-11
    )
    unknown = rng.normal(size=500)  # no mixture of them
    expected = plain.leave_one_out(unknown, GRID).scores
    np.testing.assert_allclose(
        spectrum.leave_one_out(unknown, GRID).scores, expected, rtol=0, atol=1e-11
    )


@pytest.mark.parametrize("n_targets", [1, 3, 20])
def test_fitted_targets_need_no_second_pass(n_targets, monkeypatch):
    """Also for nearly equal or zero targets; combinations are not searched among many targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 8)) + 1
    first = rng.normal(size=(500, 1))
    targets = first + 1e-3 * rng.normal(size=(500, n_targets))
    spectrum = decompose(X, fit_intercept=False)
    coef = spectrum.path(targets, GRID).coef
    scores = spectrum.leave_one_out(targets, GRID).scores
    for name in ("transposed_times", "fill"):
        monkeypatch.setattr(DenseRows, name, lambda *_: pytest.fail("another pass over the rows"))
    np.testing.assert_allclose(spectrum.path(targets, GRID).coef, coef, rtol=0, atol=1e-13)
    np.testing.assert_allclose(
        spectrum.leave_one_out(targets, GRID).scores, scores, rtol=0, atol=1e-12
    )
    if n_targets < 20:
        mixture = np.column_stack([2 * targets[:, 0] - 3 * targets[:, -1], np.zeros(500)])
        expected = 2 * coef[..., 0] - 3 * coef[..., -1]
        actual = spectrum.path(mixture, GRID).coef
        np.testing.assert_allclose(actual[..., 0], expected, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(actual[..., 1], 0)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_constant_targets_need_no_pass(store, monkeypatch):
    X = np.random.default_rng(0).normal(size=(50, 4))
    spectrum = decompose(store(X), fit_intercept=False)
    monkeypatch.setattr(
        type(spectrum._rows),
        "transposed_times",
        lambda *_: pytest.fail("another pass over the rows"),
    )
    actual = spectrum.path(np.full(50, 3.0), [0.1]).coef[:, 0, 0]
    np.testing.assert_allclose(
        actual, np.linalg.solve(X.T @ X + 5 * np.eye(4), 3 * X.sum(axis=0)), rtol=1e-12
    )


def test_sums_of_two_sets_of_targets_are_cached(monkeypatch):
    rng = np.random.default_rng(0)
    spectrum = decompose(rng.normal(size=(50, 4)))
    targets = rng.normal(size=(4, 50))
    passes = []
    transposed_times = DenseRows.transposed_times
    monkeypatch.setattr(
        DenseRows,
        "transposed_times",
        lambda rows, columns: passes.append(1) or transposed_times(rows, columns),
    )
    for indices, n_passes in [
        ((0, 1), 2),
        ((0, 1), 2),
        ((3, 1), 3),
        ((0,), 4),
        ((3,), 4),
        ((1,), 5),
    ]:
        for index in indices:
            spectrum.path(targets[index], [0.1])
        assert len(passes) == n_passes


@pytest.mark.parametrize("sparse", [False, True])
def test_fitted_values_beyond_the_cache_are_recomputed(monkeypatch, sparse):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    targets = rng.normal(size=(60, 3))
    regs = np.logspace(-2, 2, 7)
    rows = csr_array(X) if sparse else X
    expected_scores = decompose(rows).leave_one_out(targets, regs).scores
    monkeypatch.setattr("unflip.ridge.spectrum.primal._MOST_KEPT", 60 * 3)
    spectrum = decompose(rows)
    np.testing.assert_allclose(
        spectrum.leave_one_out(targets, regs).scores, expected_scores, rtol=1e-12
    )
    part = spectrum.leave_one_out_parts(targets, regs)(slice(7, 19)).scores
    np.testing.assert_allclose(part, expected_scores[7:19], rtol=1e-12)
    one = spectrum.leave_one_out(targets, regs[:1]).scores
    np.testing.assert_allclose(one, expected_scores[:, :1], rtol=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", [(50, 9), (20, 30)], ids=["primal", "dual"])
def test_residuals_equal_those_of_the_path(shape, fit_intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape)
    targets = rng.normal(size=(shape[0], 2))
    weights = rng.random(shape[0])
    spectrum = decompose(X, weights, fit_intercept=fit_intercept)
    path = spectrum.path(targets, [0.3])
    fitted = X @ path.coef[:, 0, :] + path.intercept[0]
    np.testing.assert_allclose(
        spectrum.residuals(targets, 0.3), targets - fitted, rtol=1e-9, atol=1e-12
    )
