"""Properties of moments under cutting, ordering, weighting and naming of the rows."""

import array_api_strict
import numpy as np
from hypothesis import strategies as st
from scipy.sparse import csr_array

from support.strategies import (
    REGS,
    SEEDS,
    close,
    cuts,
    holds,
    instances,
    permutation,
    rotation,
    several_classes,
)
from unflip import LPClassifier, Moments

EXACT = 1e-11
ANY = st.one_of(instances(), several_classes())


def summed(drawn, X=None, y=None, weights=None):
    return Moments.from_rows(
        drawn.X if X is None else X,
        drawn.y if y is None else y,
        drawn.n_classes,
        sample_weight=weights,
    )


def assert_same(actual, expected, digits=EXACT):
    for name in ("counts", "class_means", "scatter"):
        close(getattr(actual, name), getattr(expected, name), digits)
    close(actual.squared_weights, expected.squared_weights, digits)


@holds(drawn=ANY, seed=SEEDS)
def test_chunks_add_up_to_the_whole(drawn, seed):
    X, y, weights = drawn.X, drawn.y, drawn.weights
    parts = cuts(drawn.n, seed)
    chunks = [(X[part], y[part], weights[part]) for part in parts]
    whole = summed(drawn, weights=weights)
    assert_same(Moments.from_chunks(chunks, classes=range(drawn.n_classes)), whole)
    sparse = [(csr_array(X), *rest) for X, *rest in chunks]
    assert_same(Moments.from_chunks(sparse, classes=range(drawn.n_classes)), whole)
    assert_same(sum(summed(drawn, X[part], y[part], weights[part]) for part in parts), whole)


@holds(drawn=ANY, seed=SEEDS)
def test_sums_may_be_merged_in_any_order(drawn, seed):
    X, y = drawn.X, drawn.y
    first, second, third, *_ = (summed(drawn, X[part], y[part]) for part in cuts(drawn.n, seed))
    assert_same((first + second) + third, third + (second + first))


@holds(drawn=ANY, seed=SEEDS)
def test_the_order_of_rows_does_not_matter(drawn, seed):
    order = permutation(drawn.n, seed)
    assert_same(
        summed(drawn, drawn.X[order], drawn.y[order], drawn.weights[order]),
        summed(drawn, weights=drawn.weights),
    )


@holds(drawn=ANY, duplicates=st.integers(2, 4))
def test_a_row_of_weight_two_equals_two_rows(drawn, duplicates):
    weights = np.ones(drawn.n)
    weights[3] = duplicates
    repeated = np.append(np.arange(drawn.n), np.full(duplicates - 1, 3))
    actual, expected = (
        summed(drawn, weights=weights),
        summed(drawn, drawn.X[repeated], drawn.y[repeated]),
    )
    for name in ("counts", "class_means", "scatter"):
        close(getattr(actual, name), getattr(expected, name), EXACT)


@holds(
    drawn=ANY, seed=SEEDS, scale=st.floats(-4, 4).map(lambda e: 10.0**e), shift=st.floats(-1e3, 1e3)
)
def test_sums_move_with_the_rows(drawn, seed, scale, shift):
    axes = rotation(drawn.p, seed)
    actual, whole = summed(drawn, scale * (drawn.X @ axes) + shift), summed(drawn)
    size = max(np.abs(whole.scatter).max(), 1.0)
    rounding = 1e-13 * drawn.n * (shift / scale) ** 2 if abs(shift) > scale else 0.0
    close(actual.scatter / scale**2, axes.T @ whole.scatter @ axes, 1e-10 + rounding / size)
    close(actual.class_means, scale * (whole.class_means @ axes) + shift, EXACT)


@holds(drawn=ANY)
def test_scatter_is_positive_and_class_means_average_to_the_mean(drawn):
    actual = summed(drawn, weights=drawn.weights)
    eigenvalues = np.linalg.eigvalsh(actual.scatter)
    assert eigenvalues.min() >= -1e-12 * eigenvalues.max()
    np.testing.assert_array_equal(actual.scatter, actual.scatter.T)
    close(actual.mean, drawn.weights @ drawn.X / drawn.weights.sum(), EXACT)
    close(actual.counts.sum(), drawn.weights.sum(), EXACT)
    assert 1 <= actual.n_effective <= drawn.n + 1e-9


@holds(drawn=several_classes(), seed=SEEDS)
def test_renaming_classes_permutes_the_means(drawn, seed):
    order = permutation(drawn.n_classes, seed)  # class order[b] is called b
    renamed, whole = summed(drawn, y=np.argsort(order)[drawn.y]), summed(drawn)
    close(renamed.counts, whole.counts[order], EXACT)
    close(renamed.class_means, whole.class_means[order], EXACT)
    close(renamed.scatter, whole.scatter, EXACT)


@holds(drawn=ANY)
def test_other_namespaces_and_precisions_sum_alike(drawn):
    whole, strict = summed(drawn), array_api_strict.asarray
    other = Moments.from_rows(strict(drawn.X), strict(drawn.y), drawn.n_classes)
    assert_same(other, whole, 1e-12)
    single = summed(drawn, drawn.X.astype(np.float32))
    assert_same(single, whole, 1e-5)
    exact = summed(drawn, drawn.X.astype(np.float32).astype(np.float64))
    assert_same(single, exact, 1e-6)


@holds(drawn=ANY, seed=SEEDS, reg=REGS)
def test_fits_in_parts_are_fits_of_the_whole(drawn, seed, reg):
    options = {"noise": drawn.noise, "targets": "unbiased", "readout": "plain", "reg": reg}
    X, y = drawn.X, drawn.y
    whole = LPClassifier(**options).fit(X, y)
    of_sums = LPClassifier.from_moments(Moments.from_chunks([(X, y)]), **options)
    in_parts = LPClassifier(**options)
    for part in cuts(drawn.n, seed):
        in_parts.partial_fit(X[part], y[part], classes=range(drawn.n_classes))
    for fitted in (of_sums, in_parts):
        close(fitted.coef_, whole.coef_, 1e-8)
        close(fitted.decision_function(X), whole.decision_function(X), 1e-8)
