"""Model of leverages: its equations, and products of hat matrices from leverages."""

import numpy as np
import pytest
from scipy import sparse

from unflip.data.sparse_rows import SparseRows
from unflip.ridge.spectrum import decompose
from unflip.ridge.spectrum.leverage_model import LeverageModel, kept_apart, product_diagonal


def draw(shape=(40, 15), seed=0):
    """Counts, some rows and columns empty, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(np.geomspace(0.1, 3, shape[1]), size=shape).astype(float)
    X[:, 3], X[[5, 11]] = 0.0, 0.0
    return sparse.csr_array(X), rng.uniform(0.5, 2, size=shape[0])


def model_of(X, weights, *, centre):
    rows = SparseRows.of(X, weights, centre=centre)
    return LeverageModel(rows, rows.column_powers(), 1 - centre * weights / weights.sum())


@pytest.mark.parametrize("centre", [True, False])
def test_odds_of_leverages_are_weighted_quadratic_forms(centre):
    X, weights = draw()
    model = model_of(X, weights, centre=centre)
    rows = X.toarray() - centre * np.average(X.toarray(), axis=0, weights=weights)
    powers = weights @ rows**2
    shifts, totals = powers.mean() * np.geomspace(1e-3, 1e3, 10), np.linspace(0.1, 35, 10)
    for actual, shift, total in zip(model.values(totals, shifts), shifts, totals, strict=True):
        delta = 0.0
        for _ in range(200):
            delta = (powers / (powers / (1 + delta) + shift)).sum() / len(weights)
        forms = weights * (rows**2 @ (1 / (powers / (1 + delta) + shift)))
        factors = (actual / (model.most - actual))[forms > 0] / forms[forms > 0]
        np.testing.assert_allclose(factors, factors[0], rtol=1e-8)
        np.testing.assert_array_equal(actual[forms == 0], 0)
        assert actual.sum() == pytest.approx(total, rel=1e-10)


def test_leverages_are_between_0_and_their_maximum():
    X, weights = draw()
    model = model_of(X, weights, centre=True)
    most = model.most.sum()
    none, few, nearly_all, more = model.values(
        np.array([0.0, 1e-60, most - 0.5, most + 1]), np.ones(4)
    )
    np.testing.assert_array_equal(none, 0)
    assert 0 < few.sum() < 1e-40
    assert nearly_all.sum() == pytest.approx(most - 0.5, rel=1e-12)
    np.testing.assert_allclose(more, model.most, rtol=1e-15)


def test_zero_rows_have_zero_leverage():
    empty = model_of(sparse.csr_array((4, 3)), np.ones(4), centre=False)
    np.testing.assert_array_equal(empty.values(np.array([1e-9]), np.ones(1)), np.zeros((1, 4)))


@pytest.mark.parametrize(("unit", "reg"), [(1e-150, 1e10), (1e150, 1e-10)])
def test_leverages_do_not_depend_on_the_unit_of_the_rows(unit, reg):
    X, weights = draw()
    one, other = (model_of(u * X, weights, centre=True) for u in (1.0, unit))
    totals, shifts = np.array([3.0, 5.0]), one.column_powers.mean() * np.array([1.0, reg])
    actual = other.values(totals, unit**2 * shifts)
    np.testing.assert_allclose(actual, one.values(totals, shifts), rtol=1e-9, atol=1e-12)


def test_products_of_hat_matrices_are_divided_differences_of_them():
    X, weights = draw((25, 60))
    whole = decompose(X.toarray(), weights)
    for relative in (
        [1.0],
        [1.0, 3.0],
        [3.0, 1.0, 0.2],
        [1.0, 1.0],
        [1.0, 1.0, 1.0],
        [1.0, 2.0, 1.0],
        [1.0, 1.003],
    ):
        factors = [np.array([r * whole.scale, 0.1 * r * whole.scale]) for r in relative]
        regs = kept_apart(np.array(factors))
        actual = product_diagonal(regs, [whole.hat_diagonals([row])[0] for row in regs])
        apart = len(set(relative)) == len(relative) and 1.003 not in relative
        expected = whole.hat_diagonals(factors)[0]
        np.testing.assert_allclose(actual, expected, rtol=1e-10 if apart else 5e-3)


@pytest.mark.parametrize("unit", [1e-160, 1e160])
def test_products_of_hat_matrices_do_not_depend_on_the_unit_of_reg(unit):
    regs, leverages = (
        np.array([[1.0, 0.5], [2.0, 3.0], [7.0, 4.0]]),
        list(np.random.default_rng(0).uniform(size=(3, 9, 2))),
    )
    np.testing.assert_allclose(
        product_diagonal(unit * regs, leverages), product_diagonal(regs, leverages), rtol=1e-12
    )
