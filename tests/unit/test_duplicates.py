"""DistinctRows: duplicates are found exactly, for any order, sign of zero and scale."""

import numpy as np
import pytest

from unflip.data.duplicates import DistinctRows, relative_weights

RNG = np.random.default_rng(0)


def test_rows_without_duplicates_are_unchanged():
    X = RNG.normal(size=(50, 4))
    rows = DistinctRows.of(X)
    assert rows.X is X
    assert rows.spectrum_weights is None
    np.testing.assert_array_equal(rows.owner, np.arange(50))
    values = RNG.normal(size=50)
    np.testing.assert_array_equal(rows.average(values), values)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e12])
@pytest.mark.parametrize("p", [1, 7, 130])
def test_duplicates_are_found_and_near_duplicates_are_not(p, scale, order):
    base = scale * RNG.normal(size=(40, p))
    X = np.asarray(np.vstack([base, base[[5, 5, 9]], np.nextafter(base[[7]], np.inf)]), order=order)
    rows = DistinctRows.of(X)
    assert len(rows.X) == 41
    np.testing.assert_array_equal(rows.owner, [*range(40), 5, 5, 9, 40])
    np.testing.assert_array_equal(rows.weights[[5, 9, 7, 40]], [3, 2, 1, 1])


def test_duplicates_are_left_out_together_unless_there_are_many():
    few = DistinctRows.of(np.repeat(np.arange(4.0)[:, None], [1, 5, 6, 100], axis=0))
    np.testing.assert_allclose(few.leaving_share, [1, 1, 5 / 6, 5 / 100])
    many = DistinctRows.of(np.repeat(np.arange(3.0)[:, None], [1, 9, 1990], axis=0))
    np.testing.assert_allclose(many.leaving_share, [1, 1, 20 / 1990])  # 1% of 2000
    # Without duplicates, whole rows are left out.
    weighted = DistinctRows.of(np.arange(3.0)[:, None], np.array([1.0, 100.0, 1e6]))
    np.testing.assert_array_equal(weighted.leaving_share, 1)


@pytest.mark.parametrize("factor", [1e-300, 1e-9, 3.7, 1e9, 1e200, 1e300])
def test_scale_of_the_weights_does_not_matter(factor):
    X = np.repeat(np.arange(4.0)[:, None], [1, 2, 6, 100], axis=0)
    weights = np.random.default_rng(0).uniform(0.5, 2, size=109)
    first, second = (DistinctRows.of(X, scale * weights) for scale in (1.0, factor))
    np.testing.assert_allclose(second.leaving_share, first.leaving_share)
    np.testing.assert_allclose(second.n_effective, first.n_effective)
    np.testing.assert_allclose(second.counts, first.counts)
    np.testing.assert_allclose(relative_weights(factor * weights), relative_weights(weights))


def test_negative_zero_is_zero():
    rows = DistinctRows.of(np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, 2.0]]))
    np.testing.assert_array_equal(rows.owner, [0, 0, 1])


def test_weights_are_added_up_and_zero_weight_rows_are_dropped():
    X = np.array([[1.0], [2.0], [1.0], [3.0], [2.0]])
    rows = DistinctRows.of(X, np.array([1.0, 0.0, 2.0, 1.0, 4.0]))
    np.testing.assert_array_equal(rows.X, [[1.0], [3.0], [2.0]])
    np.testing.assert_array_equal(rows.weights, [3, 1, 4])
    np.testing.assert_array_equal(rows.members, [0, 2, 3, 4])
    np.testing.assert_allclose(rows.average(np.array([1.0, 4.0, 5.0, 6.0])), [3.0, 5.0, 6.0])
