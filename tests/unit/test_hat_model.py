"""How rows share a sum of hat values, by the equations of the model; products of hat matrices by
hat values alone."""

import numpy as np
import pytest
from scipy import sparse

from unflip.data.centred import SparseRows
from unflip.ridge.spectrum import decompose
from unflip.ridge.spectrum.hat_model import HatModel, kept_apart, product_diagonal


def draw(shape=(40, 15), seed=0):
    """Counts, some rows and columns empty, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(np.geomspace(0.1, 3, shape[1]), size=shape).astype(float)
    X[:, 3], X[[5, 11]] = 0.0, 0.0
    return sparse.csr_array(X), rng.uniform(0.5, 2, size=shape[0])


def model_of(X, weights, *, centre):
    rows = SparseRows.of(X, weights, centre=centre)
    return HatModel(rows, rows.column_powers(), 1 - centre * weights / weights.sum())


@pytest.mark.parametrize("centre", [True, False])
def test_odds_of_hat_values_are_weighted_forms_of_the_rows(centre):
    X, weights = draw()
    model = model_of(X, weights, centre=centre)
    rows = X.toarray() - centre * np.average(X.toarray(), axis=0, weights=weights)
    powers = weights @ rows**2
    penalties, totals = powers.mean() * np.geomspace(1e-3, 1e3, 10), np.linspace(0.1, 35, 10)
    for found, penalty, total in zip(
        model.values(totals, penalties), penalties, totals, strict=True
    ):
        delta = 0.0
        for _ in range(200):
            delta = (powers / (powers / (1 + delta) + penalty)).sum() / len(weights)
        forms = weights * (rows**2 @ (1 / (powers / (1 + delta) + penalty)))
        factors = (found / (model.most - found))[forms > 0] / forms[forms > 0]
        np.testing.assert_allclose(factors, factors[0], rtol=1e-8)
        np.testing.assert_array_equal(found[forms == 0], 0)
        assert found.sum() == pytest.approx(total, rel=1e-10)


def test_no_row_has_more_than_its_most_nor_less_than_nothing():
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


def test_rows_without_length_share_nothing():
    empty = model_of(sparse.csr_array((4, 3)), np.ones(4), centre=False)
    np.testing.assert_array_equal(empty.values(np.array([1e-9]), np.ones(1)), np.zeros((1, 4)))


@pytest.mark.parametrize(("unit", "reg"), [(1e-150, 1e10), (1e150, 1e-10)])
def test_shares_do_not_depend_on_the_unit_of_the_rows(unit, reg):
    X, weights = draw()
    one, other = (model_of(u * X, weights, centre=True) for u in (1.0, unit))
    totals, penalties = np.array([3.0, 5.0]), one.column_powers.mean() * np.array([1.0, reg])
    found = other.values(totals, unit**2 * penalties)
    np.testing.assert_allclose(found, one.values(totals, penalties), rtol=1e-9, atol=1e-12)


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
        found = product_diagonal(regs, [whole.hat_diagonals([row])[0] for row in regs])
        apart = len(set(relative)) == len(relative) and 1.003 not in relative
        expected = whole.hat_diagonals(factors)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-10 if apart else 5e-3)


@pytest.mark.parametrize("unit", [1e-160, 1e160])
def test_products_of_hat_matrices_do_not_depend_on_the_unit_of_penalties(unit):
    regs, hats = (
        np.array([[1.0, 0.5], [2.0, 3.0], [7.0, 4.0]]),
        list(np.random.default_rng(0).uniform(size=(3, 9, 2))),
    )
    np.testing.assert_allclose(
        product_diagonal(unit * regs, hats), product_diagonal(regs, hats), rtol=1e-12
    )
