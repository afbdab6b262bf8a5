"""Sparse rows give the same results as dense rows, and stay sparse if there are many features."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from unflip import NoiseModel
from unflip._utils.sparse import canonical
from unflip.data.duplicates import DistinctRows
from unflip.data.rows import centred_rows
from unflip.data.sparse_rows import SparseRows
from unflip.datasets import make_mixture
from unflip.estimation import Automatic, CrossMoment, SecondMomentMatching, TrustedSubset
from unflip.estimation.mean_norm import mean_norm_from_rows
from unflip.estimation.mixture_parameters import estimate_mixture
from unflip.estimation.spectral import spectral_mixture
from unflip.ridge.spectrum import DualSpectrum, PrimalSpectrum, decompose

REGS = [1e-3, 0.1, 10.0]
SHAPES = pytest.mark.parametrize(
    "shape", [(15, 60), (20, 20), (60, 15)], ids=["dual", "square", "primal"]
)
WEIGHTED = pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])
INTERCEPT = pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "origin"])
KINDS = pytest.mark.parametrize(
    "kind",
    [
        sparse.csr_array,
        sparse.csr_matrix,
        sparse.csc_array,
        sparse.csc_matrix,
        sparse.coo_array,
        sparse.coo_matrix,
        sparse.lil_matrix,
        sparse.dok_array,
    ],
)


def counts(shape, seed=0):
    """Return counts in columns from almost empty to full; the last is constant, one is 0."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(np.geomspace(0.05, 5, shape[1]), size=shape).astype(float)
    X[:, -1], X[:, -2] = 3.7, 0.0
    return X


def problem(shape, weighted, seed=0):
    rng = np.random.default_rng(seed + 1)
    weights = rng.uniform(0.5, 2, size=shape[0]) if weighted else None
    return counts(shape, seed), rng.normal(size=(shape[0], 2)), weights


def noncanonical_rows(X, *, wide_indices=False):
    """Return CSR rows with explicit zeros, entries in two parts, and unsorted indices."""
    rows, columns = np.nonzero(X + np.eye(*X.shape))  # stores some zeros
    whole = X[rows, columns]
    order = np.random.default_rng(0).permutation(2 * len(rows))
    order = order[np.argsort(np.tile(rows, 2)[order], kind="stable")]
    data = np.concatenate([np.floor(whole / 2), whole - np.floor(whole / 2)])[order]
    indices = np.tile(columns, 2)[order]
    indptr = np.append(0, np.cumsum(2 * np.bincount(rows, minlength=len(X))))
    if wide_indices:
        indices, indptr = indices.astype(np.int64), indptr.astype(np.int64)
    return sparse.csr_array((data, indices, indptr), shape=X.shape)


def assert_same_spectrum(from_sparse, dense, t):
    assert type(from_sparse) is type(dense)
    assert from_sparse.n_varying == dense.n_varying
    assert (from_sparse.n_rows, from_sparse.n) == (dense.n_rows, pytest.approx(dense.n))
    assert from_sparse.scale == pytest.approx(dense.scale, rel=1e-12)
    unit = float(dense.variances.max())
    np.testing.assert_allclose(from_sparse.variances, dense.variances, rtol=0, atol=1e-12 * unit)
    regs = np.multiply(REGS, unit)
    for name in ("coef", "intercept"):
        actual, expected = (
            getattr(spectrum.path(t, regs), name) for spectrum in (from_sparse, dense)
        )
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-10)
    one, other = from_sparse.leave_one_out(t, regs), dense.leave_one_out(t, regs)
    np.testing.assert_allclose(one.scores, other.scores, rtol=0, atol=1e-10)
    np.testing.assert_allclose(one.corrected_scores, other.corrected_scores, rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        from_sparse.kernel_sums(t), dense.kernel_sums(t), rtol=0, atol=1e-11 * unit * dense.n
    )
    shrunk = from_sparse.diagonal(from_sparse.shrinkage(regs))
    np.testing.assert_allclose(shrunk, dense.diagonal(dense.shrinkage(regs)), rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        np.abs(from_sparse.coordinates(3)), np.abs(dense.coordinates(3)), rtol=0, atol=1e-10
    )


@SHAPES
@WEIGHTED
@INTERCEPT
def test_spectra_equal_those_of_dense_rows(shape, weighted, fit_intercept):
    X, t, weights = problem(shape, weighted)
    from_sparse = decompose(sparse.csr_array(X), weights, fit_intercept=fit_intercept)
    assert_same_spectrum(from_sparse, decompose(X, weights, fit_intercept=fit_intercept), t)
    rows = X - np.average(X, axis=0, weights=weights) if fit_intercept else X
    turned = from_sparse.principal_rows
    np.testing.assert_allclose(turned @ turned.T, rows @ rows.T, rtol=0, atol=1e-9)
    coef = np.random.default_rng(2).normal(size=(turned.shape[1], 2))
    # Directions that no row reaches, except for rounding.
    coef[from_sparse.variances < 1e-12 * from_sparse.variances.max()] = 0
    np.testing.assert_allclose(
        rows @ from_sparse.from_principal(coef), turned @ coef, rtol=0, atol=1e-9
    )


@KINDS
@pytest.mark.parametrize("shape", [(15, 60), (60, 15)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_every_format_and_dtype_works(kind, shape, dtype):
    X, t, _ = problem(shape, False)
    X = np.floor(X)
    assert_same_spectrum(decompose(kind(X.astype(dtype))), decompose(X), t)


@SHAPES
@pytest.mark.parametrize("wide_indices", [False, True])
def test_noncanonical_storage_changes_nothing_and_is_not_modified(shape, wide_indices):
    X, t, weights = problem(shape, True)
    noncanonical = noncanonical_rows(X, wide_indices=wide_indices)
    before = [
        part.copy() for part in (noncanonical.data, noncanonical.indices, noncanonical.indptr)
    ]
    np.testing.assert_allclose(noncanonical.toarray(), X)
    assert_same_spectrum(decompose(noncanonical, weights), decompose(X, weights), t)
    labels = np.arange(len(X)) % 2
    for use in (DistinctRows.of, decompose):
        use(noncanonical, weights)
    mean_norm_from_rows(noncanonical, labels)
    TrustedSubset().fit(noncanonical, labels)
    for part, old in zip(
        (noncanonical.data, noncanonical.indices, noncanonical.indptr), before, strict=True
    ):
        np.testing.assert_array_equal(part, old)


def test_canonical_rows_are_shared_and_others_are_sorted():
    X = counts((10, 20))
    tidy = sparse.csr_array(X)
    assert np.shares_memory(canonical(tidy).data, tidy.data)
    actual = canonical(noncanonical_rows(X))
    np.testing.assert_array_equal(actual.indices, tidy.indices)
    np.testing.assert_allclose(actual.data, tidy.data)


@WEIGHTED
@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_columns_far_from_zero_lose_no_digits(offset, weighted):
    """Sparse columns, full ones, and one that is full except for a row, all far from 0."""
    X, t, weights = problem((15, 60), weighted)
    rng = np.random.default_rng(3)
    X[:, :20] = offset + rng.normal(size=(15, 20))
    X[0, 0] = offset - 1
    assert_same_spectrum(decompose(sparse.csr_array(X), weights), decompose(X, weights), t)


def test_very_unequal_weights_lose_few_digits():
    X, t, _ = problem((15, 60), False)
    weights = np.geomspace(1e-3, 1e3, 15)
    regs = [0.1, 10.0]
    from_sparse, dense = decompose(sparse.csr_array(X), weights), decompose(X, weights)
    assert from_sparse.n_varying == dense.n_varying
    np.testing.assert_allclose(
        from_sparse.leave_one_out(t, regs).scores,
        dense.leave_one_out(t, regs).scores,
        rtol=0,
        atol=1e-8,
    )


@INTERCEPT
@pytest.mark.parametrize(("rows", "features"), [(15, 60), (60, 15)])
def test_features_that_vary_are_counted(rows, features, fit_intercept):
    X = np.zeros((rows, features))
    X[:, 0] = 1 / 3  # constant, stored in full
    X[0, 1] = 1e-9  # varies very little
    X[:, 2] = 123.456 + np.arange(rows)
    X[: rows // 2 + 1, 3] = 0.1  # just more than half are stored
    X[: rows // 2, 4] = 0.1
    stored = sparse.csr_array(X)
    assert decompose(stored, fit_intercept=fit_intercept).n_varying == 4 + (not fit_intercept)
    weights = np.random.default_rng(0).uniform(size=rows)
    assert decompose(stored, weights, fit_intercept=fit_intercept).n_varying == 4 + (
        not fit_intercept
    )


def test_reg_0_needs_full_rank():
    X, t, _ = problem((15, 60), False)
    n_varying = decompose(X).n_varying
    with pytest.raises(ValueError, match=f"the rows span 14 of {n_varying} varying features"):
        decompose(sparse.csr_array(X)).path(t, [0.0])
    few = sparse.csr_array(
        np.hstack([np.ones((15, 40)), np.random.default_rng(0).normal(size=(15, 3))])
    )
    dense = decompose(few.toarray()).leave_one_out(t, [0.0]).scores
    np.testing.assert_allclose(
        decompose(few).leave_one_out(t, [0.0]).scores, dense, rtol=0, atol=1e-8
    )


def test_weights_of_another_length_raise():
    X = sparse.csr_array(counts((15, 60)))
    with pytest.raises(ValueError, match="X has 15 rows but sample_weight has shape"):
        decompose(X, np.ones(3))


@pytest.mark.parametrize("p", [2, 20])
def test_empty_rows_are_fitted_by_the_mean_target(p):
    t = np.arange(9.0)
    spectrum = decompose(sparse.csr_array((9, p)))
    path = spectrum.path(t, [0.1])
    np.testing.assert_array_equal(path.coef, 0)
    np.testing.assert_allclose(path.intercept, t.mean())
    np.testing.assert_allclose(spectrum.leave_one_out(t, [0.1]).scores[:, 0, 0], (t.sum() - t) / 8)


@WEIGHTED
@INTERCEPT
def test_products_of_centred_rows(weighted, fit_intercept):
    X, t, weights = problem((15, 60), weighted)
    from_sparse, dense = (
        centred_rows(rows, weights, centre=fit_intercept) for rows in (sparse.csr_array(X), X)
    )
    assert isinstance(from_sparse, SparseRows)
    assert 0 < len(from_sparse.filled) < 60
    B = np.random.default_rng(0).normal(size=(60, 3))
    for actual, expected in [
        (from_sparse.mean, dense.mean),
        (from_sparse.times(B), dense.times(B)),
        (from_sparse.transposed_times(t), dense.transposed_times(t)),
        (from_sparse.gram(), dense.gram()),
        (from_sparse.column_powers(), dense.column_powers()),
        (from_sparse.times_and_squared_norms(B)[1], dense.times_and_squared_norms(B)[1]),
    ]:
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("kind", [PrimalSpectrum, DualSpectrum])
@pytest.mark.parametrize("shape", [(15, 60), (60, 15)])
def test_primal_and_dual_accept_sparse_rows(kind, shape):
    X, t, weights = problem(shape, True)
    from_sparse, dense = (
        kind(rows, weights, fit_intercept=True) for rows in (sparse.csr_array(X), X)
    )
    np.testing.assert_allclose(
        from_sparse.path(t, REGS).coef, dense.path(t, REGS).coef, rtol=0, atol=1e-9
    )


@KINDS
@pytest.mark.parametrize("weighted", [False, True])
def test_duplicates_equal_those_of_dense_rows(kind, weighted):
    X = counts((40, 70))
    X[:, :60] *= np.random.default_rng(0).uniform(size=(40, 60))
    X[30] = 0
    X = np.vstack([X, X[[5, 5, 9, 30]], np.nextafter(X[[7]], np.inf), -X[[3]]])
    weights = np.random.default_rng(1).integers(3, size=len(X)).astype(float) if weighted else None
    from_sparse, dense = DistinctRows.of(kind(X), weights), DistinctRows.of(X, weights)
    np.testing.assert_array_equal(from_sparse.X.toarray(), dense.X)
    for name in ("weights", "members", "owner", "member_weights", "leaving_share", "counts"):
        np.testing.assert_array_equal(getattr(from_sparse, name), getattr(dense, name))
    values = np.random.default_rng(2).normal(size=(len(dense.members), 2))
    np.testing.assert_array_equal(from_sparse.average(values), dense.average(values))


def test_duplicates_are_found_in_any_storage():
    X = np.repeat(counts((6, 30)), 2, axis=0)
    rows = DistinctRows.of(noncanonical_rows(X))
    np.testing.assert_array_equal(rows.owner, np.repeat(np.arange(6), 2))
    zeros = sparse.csr_array(
        (np.array([-0.0, 1.0, 1.0, 0.0]), np.array([0, 1, 1, 0]), np.array([0, 2, 3, 4]))
    )
    np.testing.assert_array_equal(DistinctRows.of(zeros).owner, [0, 0, 1])


def noisy(shape, seed=0):
    """Return rows of a mixture, clean labels and noisy labels."""
    X, y = make_mixture(*shape, mean_norm=2.5, random_state=seed)
    noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1)
    return X, y, noise.flip(y, random_state=seed)


def thinned(shape, seed=0):
    """Return the same with most entries dropped."""
    X, y, labels = noisy(shape, seed)
    return np.where(np.random.default_rng(seed).uniform(size=shape) < 0.2, X, 0.0), y, labels


def trusted(y):
    reference = np.full(len(y), np.nan)
    reference[::4] = y[::4]
    return reference


@pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.coo_matrix])
@pytest.mark.parametrize("shape", [(80, 200), (300, 40)])
@pytest.mark.parametrize("weighted", [False, True])
def test_estimators_for_any_rows_give_the_same_rates(kind, shape, weighted):
    X, y, labels = thinned(shape)
    X[7] = X[8]
    weights = (
        np.random.default_rng(0).integers(1, 3, size=len(X)).astype(float) if weighted else None
    )
    for estimator in (
        TrustedSubset(trusted(y)),
        Automatic(y_trusted=trusted(y)),
        Automatic(priors=[0.5, 0.5]),
    ):
        dense, from_sparse = (
            type(estimator)(**estimator.get_params()).fit(rows, labels, weights)
            for rows in (X, kind(X))
        )
        np.testing.assert_allclose(
            from_sparse.noise_.transition, dense.noise_.transition, rtol=0, atol=1e-9
        )
        np.testing.assert_allclose(from_sparse.noise_std_, dense.noise_std_, rtol=0, atol=1e-9)
        assert getattr(from_sparse, "mean_norm_", 0) == pytest.approx(
            getattr(dense, "mean_norm_", 0), rel=1e-9
        )


@pytest.mark.parametrize("shape", [(300, 320), (600, 60)])
@pytest.mark.parametrize(
    "estimator",
    [
        CrossMoment(),
        CrossMoment(mean_norm=2.5, pi_neg=0.5),
        SecondMomentMatching(mean_norm=2.5, pi_neg=0.5),
        Automatic(),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings(
    "ignore::unflip.estimation.AssumedNoiseWarning", "ignore:No noise rates:UserWarning"
)
def test_estimators_for_mixtures_give_the_same_rates(estimator, shape):
    X, _, labels = noisy(shape)
    dense, from_sparse = (
        type(estimator)(**estimator.get_params()).fit(rows, labels)
        for rows in (X, sparse.csc_array(X))
    )
    np.testing.assert_allclose(
        from_sparse.noise_.transition, dense.noise_.transition, rtol=0, atol=1e-7
    )
    np.testing.assert_allclose(from_sparse.noise_std_, dense.noise_std_, rtol=0, atol=1e-6)


def test_functions_of_rows_accept_sparse_rows():
    X, y, labels = noisy((300, 60))
    stored = sparse.csr_matrix(X)
    assert mean_norm_from_rows(stored, y) == pytest.approx(mean_norm_from_rows(X, y), rel=1e-10)
    assert spectral_mixture(stored).mean_norm == pytest.approx(
        spectral_mixture(X).mean_norm, rel=1e-6
    )
    noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1)
    actual, expected = (estimate_mixture(rows, labels, noise) for rows in (stored, X))
    np.testing.assert_allclose(actual.mean, expected.mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(actual.cov_pos, expected.cov_pos, rtol=0, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-140, 1e140])
def test_trusted_rows_of_any_scale(scale):
    X, y, labels = thinned((80, 200))
    reference = trusted(y)
    one, other = (
        TrustedSubset(reference).fit(sparse.csr_array(s * X), labels) for s in (1.0, scale)
    )
    np.testing.assert_allclose(one.noise_.transition, other.noise_.transition, rtol=0, atol=1e-9)
    assert one.mean_norm_ == pytest.approx(other.mean_norm_, rel=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_entries_that_are_not_finite_raise(bad):
    X, _, labels = thinned((80, 200))
    X[3, 4] = bad
    with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
        Automatic().fit(sparse.csr_array(X), labels)


@pytest.mark.parametrize("estimator", [TrustedSubset, Automatic, CrossMoment])
def test_estimators_are_tagged_to_accept_sparse_rows(estimator):
    assert estimator().__sklearn_tags__().input_tags.sparse


@pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
def test_many_features_never_become_dense():
    rng = np.random.default_rng(0)
    m, p, stored = 800, 200_000, 100
    columns = rng.integers(p, size=m * stored)
    columns[::stored] = 7  # a column that every row has
    entries = sparse.coo_array(
        (rng.uniform(size=m * stored), (np.repeat(np.arange(m), stored), columns)), shape=(m, p)
    )
    X, labels = entries.tocsr(), rng.integers(2, size=m)
    tracemalloc.start()
    try:
        Automatic(priors=[0.5, 0.5]).fit(X, labels)
        spectrum = decompose(X)
        spectrum.path(labels.astype(float), REGS)
        spectrum.kernel_sums(labels.astype(float))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * 8 * (m * m + p)  # a dense copy of the rows is 1.3 GB, this 67 MB
