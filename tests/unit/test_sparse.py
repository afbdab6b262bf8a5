"""Sparse rows give what the same rows give as a dense array, and never become one where features
are many."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from unflip import NoiseModel
from unflip._utils.sparse import canonical
from unflip.data.centred import CentredRows, SparseRows
from unflip.data.duplicates import DistinctRows
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
    """Counts in columns from nearly empty to full, the last of them constant, one of them always 0."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(np.geomspace(0.05, 5, shape[1]), size=shape).astype(float)
    X[:, -1], X[:, -2] = 3.7, 0.0
    return X


def problem(shape, weighted, seed=0):
    rng = np.random.default_rng(seed + 1)
    weights = rng.uniform(0.5, 2, size=shape[0]) if weighted else None
    return counts(shape, seed), rng.normal(size=(shape[0], 2)), weights


def untidy(X, *, wide_indices=False):
    """Rows as compressed rows with explicit zeros, entries in two parts, and indices out of order."""
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


def assert_same_spectrum(thin, dense, t):
    assert type(thin) is type(dense)
    assert thin.n_varying == dense.n_varying
    assert (thin.n_rows, thin.n) == (dense.n_rows, pytest.approx(dense.n))
    assert thin.scale == pytest.approx(dense.scale, rel=1e-12)
    unit = float(dense.variances.max())
    np.testing.assert_allclose(thin.variances, dense.variances, rtol=0, atol=1e-12 * unit)
    regs = np.multiply(REGS, unit)
    for name in ("coef", "intercept"):
        found, expected = (getattr(spectrum.path(t, regs), name) for spectrum in (thin, dense))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-10)
    one, other = thin.leave_one_out(t, regs), dense.leave_one_out(t, regs)
    np.testing.assert_allclose(one.scores, other.scores, rtol=0, atol=1e-10)
    np.testing.assert_allclose(one.corrected_scores, other.corrected_scores, rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        thin.kernel_sums(t), dense.kernel_sums(t), rtol=0, atol=1e-11 * unit * dense.n
    )
    shrunk = thin.diagonal(thin.shrinkage(regs))
    np.testing.assert_allclose(shrunk, dense.diagonal(dense.shrinkage(regs)), rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        np.abs(thin.coordinates(3)), np.abs(dense.coordinates(3)), rtol=0, atol=1e-10
    )


@SHAPES
@WEIGHTED
@INTERCEPT
def test_spectra_are_those_of_the_dense_rows(shape, weighted, fit_intercept):
    X, t, weights = problem(shape, weighted)
    thin = decompose(sparse.csr_array(X), weights, fit_intercept=fit_intercept)
    assert_same_spectrum(thin, decompose(X, weights, fit_intercept=fit_intercept), t)
    rows = X - np.average(X, axis=0, weights=weights) if fit_intercept else X
    turned = thin.principal_rows
    np.testing.assert_allclose(turned @ turned.T, rows @ rows.T, rtol=0, atol=1e-9)
    coef = np.random.default_rng(2).normal(size=(turned.shape[1], 2))
    coef[thin.variances < 1e-12 * thin.variances.max()] = (
        0  # directions that no row reaches, but for rounding
    )
    np.testing.assert_allclose(rows @ thin.from_principal(coef), turned @ coef, rtol=0, atol=1e-9)


@KINDS
@pytest.mark.parametrize("shape", [(15, 60), (60, 15)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_every_format_and_type_will_do(kind, shape, dtype):
    X, t, _ = problem(shape, False)
    X = np.floor(X)
    assert_same_spectrum(decompose(kind(X.astype(dtype))), decompose(X), t)


@SHAPES
@pytest.mark.parametrize("wide_indices", [False, True])
def test_untidy_storage_changes_nothing_and_is_left_alone(shape, wide_indices):
    X, t, weights = problem(shape, True)
    given = untidy(X, wide_indices=wide_indices)
    before = [part.copy() for part in (given.data, given.indices, given.indptr)]
    np.testing.assert_allclose(given.toarray(), X)
    assert_same_spectrum(decompose(given, weights), decompose(X, weights), t)
    labels = np.arange(len(X)) % 2
    for use in (DistinctRows.of, decompose):
        use(given, weights)
    mean_norm_from_rows(given, labels)
    TrustedSubset().fit(given, labels)
    for part, old in zip((given.data, given.indices, given.indptr), before, strict=True):
        np.testing.assert_array_equal(part, old)


def test_tidy_rows_are_shared_and_untidy_ones_put_in_order():
    X = counts((10, 20))
    tidy = sparse.csr_array(X)
    assert np.shares_memory(canonical(tidy).data, tidy.data)
    found = canonical(untidy(X))
    np.testing.assert_array_equal(found.indices, tidy.indices)
    np.testing.assert_allclose(found.data, tidy.data)


@WEIGHTED
@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_columns_far_from_zero_lose_no_digits(offset, weighted):
    """Beside sparse columns, some that are full, and one that is but for a row, all far from 0."""
    X, t, weights = problem((15, 60), weighted)
    rng = np.random.default_rng(3)
    X[:, :20] = offset + rng.normal(size=(15, 20))
    X[0, 0] = offset - 1
    assert_same_spectrum(decompose(sparse.csr_array(X), weights), decompose(X, weights), t)


def test_very_unequal_weights_lose_few_digits():
    X, t, _ = problem((15, 60), False)
    weights = np.geomspace(1e-3, 1e3, 15)
    regs = [0.1, 10.0]
    thin, dense = decompose(sparse.csr_array(X), weights), decompose(X, weights)
    assert thin.n_varying == dense.n_varying
    np.testing.assert_allclose(
        thin.leave_one_out(t, regs).scores, dense.leave_one_out(t, regs).scores, rtol=0, atol=1e-8
    )


@INTERCEPT
@pytest.mark.parametrize(("rows", "features"), [(15, 60), (60, 15)])
def test_features_that_vary_are_counted(rows, features, fit_intercept):
    X = np.zeros((rows, features))
    X[:, 0] = 1 / 3  # constant, all stored
    X[0, 1] = 1e-9  # varies, hardly
    X[:, 2] = 123.456 + np.arange(rows)
    X[: rows // 2 + 1, 3] = 0.1  # just more than half are stored
    X[: rows // 2, 4] = 0.1
    stored = sparse.csr_array(X)
    assert decompose(stored, fit_intercept=fit_intercept).n_varying == 4 + (not fit_intercept)
    weights = np.random.default_rng(0).uniform(size=rows)
    assert decompose(stored, weights, fit_intercept=fit_intercept).n_varying == 4 + (
        not fit_intercept
    )


def test_no_penalty_needs_full_rank():
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


def test_weights_of_another_length_are_refused():
    X = sparse.csr_array(counts((15, 60)))
    with pytest.raises(ValueError, match="X has 15 rows but sample_weight has shape"):
        decompose(X, np.ones(3))


@pytest.mark.parametrize("p", [2, 20])
def test_rows_without_any_entry_are_fitted_by_their_mean_target(p):
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
    thin, dense = (
        CentredRows.of(rows, weights, centre=fit_intercept) for rows in (sparse.csr_array(X), X)
    )
    assert isinstance(thin, SparseRows)
    assert 0 < len(thin.filled) < 60
    B = np.random.default_rng(0).normal(size=(60, 3))
    for found, expected in [
        (thin.mean, dense.mean),
        (thin.times(B), dense.times(B)),
        (thin.transposed_times(t), dense.transposed_times(t)),
        (thin.gram(), dense.gram()),
        (thin.column_powers(), dense.column_powers()),
        (thin.times_and_squared_norms(B)[1], dense.times_and_squared_norms(B)[1]),
    ]:
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("kind", [PrimalSpectrum, DualSpectrum])
@pytest.mark.parametrize("shape", [(15, 60), (60, 15)])
def test_either_route_takes_sparse_rows(kind, shape):
    X, t, weights = problem(shape, True)
    thin, dense = (kind(rows, weights, fit_intercept=True) for rows in (sparse.csr_array(X), X))
    np.testing.assert_allclose(thin.path(t, REGS).coef, dense.path(t, REGS).coef, rtol=0, atol=1e-9)


@KINDS
@pytest.mark.parametrize("weighted", [False, True])
def test_copies_are_those_of_the_dense_rows(kind, weighted):
    X = counts((40, 70))
    X[:, :60] *= np.random.default_rng(0).uniform(size=(40, 60))
    X[30] = 0
    X = np.vstack([X, X[[5, 5, 9, 30]], np.nextafter(X[[7]], np.inf), -X[[3]]])
    weights = np.random.default_rng(1).integers(3, size=len(X)).astype(float) if weighted else None
    thin, dense = DistinctRows.of(kind(X), weights), DistinctRows.of(X, weights)
    np.testing.assert_array_equal(thin.X.toarray(), dense.X)
    for name in ("weights", "members", "owner", "member_weights", "leaving_share", "counts"):
        np.testing.assert_array_equal(getattr(thin, name), getattr(dense, name))
    values = np.random.default_rng(2).normal(size=(len(dense.members), 2))
    np.testing.assert_array_equal(thin.average(values), dense.average(values))


def test_copies_are_found_however_they_are_stored():
    X = np.repeat(counts((6, 30)), 2, axis=0)
    rows = DistinctRows.of(untidy(X))
    np.testing.assert_array_equal(rows.owner, np.repeat(np.arange(6), 2))
    zeros = sparse.csr_array(
        (np.array([-0.0, 1.0, 1.0, 0.0]), np.array([0, 1, 1, 0]), np.array([0, 2, 3, 4]))
    )
    np.testing.assert_array_equal(DistinctRows.of(zeros).owner, [0, 0, 1])


def noisy(shape, seed=0):
    """Rows of a mixture, true labels and noisy ones."""
    X, y = make_mixture(*shape, mean_norm=2.5, random_state=seed)
    noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1)
    return X, y, noise.flip(y, random_state=seed)


def thinned(shape, seed=0):
    """Return the same with most entries dropped."""
    X, y, labels = noisy(shape, seed)
    return np.where(np.random.default_rng(seed).uniform(size=shape) < 0.2, X, 0.0), y, labels


def trusted(y):
    known = np.full(len(y), np.nan)
    known[::4] = y[::4]
    return known


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
        dense, thin = (
            type(estimator)(**estimator.get_params()).fit(rows, labels, weights)
            for rows in (X, kind(X))
        )
        np.testing.assert_allclose(
            thin.noise_.transition, dense.noise_.transition, rtol=0, atol=1e-9
        )
        np.testing.assert_allclose(thin.noise_std_, dense.noise_std_, rtol=0, atol=1e-9)
        assert getattr(thin, "mean_norm_", 0) == pytest.approx(
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
    "ignore::unflip.estimation.AssumedNoiseWarning", "ignore:No flip rates:UserWarning"
)
def test_estimators_for_mixtures_give_the_same_rates(estimator, shape):
    X, _, labels = noisy(shape)
    dense, thin = (
        type(estimator)(**estimator.get_params()).fit(rows, labels)
        for rows in (X, sparse.csc_array(X))
    )
    np.testing.assert_allclose(thin.noise_.transition, dense.noise_.transition, rtol=0, atol=1e-7)
    np.testing.assert_allclose(thin.noise_std_, dense.noise_std_, rtol=0, atol=1e-6)


def test_functions_of_rows_take_sparse_ones():
    X, y, labels = noisy((300, 60))
    stored = sparse.csr_matrix(X)
    assert mean_norm_from_rows(stored, y) == pytest.approx(mean_norm_from_rows(X, y), rel=1e-10)
    assert spectral_mixture(stored).mean_norm == pytest.approx(
        spectral_mixture(X).mean_norm, rel=1e-6
    )
    noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1)
    found, expected = (estimate_mixture(rows, labels, noise) for rows in (stored, X))
    np.testing.assert_allclose(found.mean, expected.mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.cov_pos, expected.cov_pos, rtol=0, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-140, 1e140])
def test_trusted_rows_of_any_scale(scale):
    X, y, labels = thinned((80, 200))
    known = trusted(y)
    one, other = (TrustedSubset(known).fit(sparse.csr_array(s * X), labels) for s in (1.0, scale))
    np.testing.assert_allclose(one.noise_.transition, other.noise_.transition, rtol=0, atol=1e-9)
    assert one.mean_norm_ == pytest.approx(other.mean_norm_, rel=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_entries_that_are_no_numbers_are_refused(bad):
    X, _, labels = thinned((80, 200))
    X[3, 4] = bad
    with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
        Automatic().fit(sparse.csr_array(X), labels)


@pytest.mark.parametrize("estimator", [TrustedSubset, Automatic, CrossMoment])
def test_estimators_say_that_they_take_sparse_rows(estimator):
    assert estimator().__sklearn_tags__().input_tags.sparse


@pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
def test_many_features_never_become_dense():
    rng = np.random.default_rng(0)
    m, p, stored = 800, 200_000, 100
    columns = rng.integers(p, size=m * stored)
    columns[::stored] = 7  # one that every row has
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
