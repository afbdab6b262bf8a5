"""Moments: sums over rows add up, also far from the origin."""

import numpy as np
import pytest

from unflip.ridge.moments import Moments

RNG = np.random.default_rng(0)
X, CODES, WEIGHTS = RNG.normal(size=(60, 7)), RNG.integers(3, size=60), RNG.uniform(0.5, 2, size=60)


def test_sums_match_their_definitions():
    moments = Moments.from_rows(X, CODES, 3, WEIGHTS)
    weighted = X * WEIGHTS[:, None]
    np.testing.assert_allclose(moments.gram(centred=False), weighted.T @ X, rtol=1e-12)
    centred = X - weighted.sum(axis=0) / WEIGHTS.sum()
    np.testing.assert_allclose(
        moments.gram(centred=True), (centred * WEIGHTS[:, None]).T @ centred, rtol=1e-12
    )
    table = RNG.normal(size=(3, 2))
    np.testing.assert_allclose(
        moments.cross(table, centred=False), weighted.T @ table[CODES], rtol=1e-12
    )
    np.testing.assert_allclose(
        moments.cross(table, centred=True),
        (centred * WEIGHTS[:, None]).T @ table[CODES],
        rtol=1e-12,
        atol=1e-12,
    )
    assert moments.n == pytest.approx(WEIGHTS.sum())
    assert (
        repr(Moments.from_rows(X, CODES, 3))
        == "<Moments of 3 classes and 7 features, total weight 60>"
    )


def test_chunks_add_up_if_a_class_is_missing_from_one():
    whole = Moments.from_rows(X, CODES, 3, WEIGHTS)
    order = np.argsort(CODES, kind="stable")  # class 2 appears in the last chunk only
    chunks = np.array_split(order, 4)
    parts = [Moments.from_rows(X[c], CODES[c], 3, WEIGHTS[c]) for c in chunks]
    total = parts[0] + parts[1] + parts[2] + parts[3]
    for name in ("counts", "class_means", "scatter"):
        np.testing.assert_allclose(
            getattr(total, name), getattr(whole, name), rtol=1e-12, atol=1e-12
        )


def test_empty_and_zero_weight_chunks_add_nothing():
    whole = Moments.from_rows(X, CODES, 3, WEIGHTS)
    for chunk in (
        Moments.from_rows(X[:0], CODES[:0], 3),
        Moments.from_rows(X, CODES, 3, np.zeros(60)),
    ):
        for total in (whole + chunk, chunk + whole):
            np.testing.assert_allclose(total.scatter, whole.scatter)
            np.testing.assert_allclose(total.class_means, whole.class_means)
        assert (chunk + chunk).n == 0


def test_a_far_origin_loses_no_digits_of_the_scatter():
    near = Moments.from_rows(X, CODES, 3).scatter
    far = Moments.from_rows(X + 1e7, CODES, 3).scatter
    # A Gram matrix about 0 would have rounding errors of order 1.
    np.testing.assert_allclose(far, near, rtol=1e-7, atol=1e-7)
    halves = Moments.from_rows(X[:30] + 1e7, CODES[:30], 3) + Moments.from_rows(
        X[30:] + 1e7, CODES[30:], 3
    )
    np.testing.assert_allclose(halves.scatter, near, rtol=1e-6, atol=1e-6)


def test_any_array_api_namespace_works():
    xp = pytest.importorskip("array_api_strict")
    moments = Moments.from_rows(xp.asarray(X), xp.asarray(CODES), 3, xp.asarray(WEIGHTS))
    expected = Moments.from_rows(X, CODES, 3, WEIGHTS)
    total = moments + moments
    np.testing.assert_allclose(np.asarray(total.scatter), 2 * expected.scatter, rtol=1e-12)
    assert type(moments.cross(xp.ones((3, 1), dtype=xp.float64), centred=True)) is type(
        moments.counts
    )


def test_mismatched_shapes_raise():
    with pytest.raises(ValueError, match="one class index for each row"):
        Moments.from_rows(X, CODES[:-1], 3)
    with pytest.raises(ValueError, match=r"codes run from 0 to 2; they must be 0\.\.1"):
        Moments.from_rows(X, CODES, 2)
    with pytest.raises(ValueError, match="share their columns"):
        Moments.from_rows(X, CODES, 3) + Moments.from_rows(X[:, :5], CODES, 3)
    with pytest.raises(TypeError):
        Moments.from_rows(X, CODES, 3) + 1


@pytest.mark.parametrize("value", [1e200, np.inf, np.nan])
def test_rows_whose_squares_overflow_raise(value):
    X = np.ones((60, 3))
    X[7, 1] = value
    with pytest.raises(
        ValueError, match="not finite, or whose squares overflow float64: rescale X"
    ):
        Moments.from_rows(X, np.zeros(60, dtype=int), n_classes=2)
