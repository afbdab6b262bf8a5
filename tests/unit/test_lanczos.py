"""Krylov spaces: identities of exact arithmetic, and sums over eigenvalues from quadrature."""

import tracemalloc

import numpy as np
import pytest

from unflip.ridge.spectrum import traces
from unflip.ridge.spectrum.lanczos import Lanczos
from unflip.ridge.spectrum.traces import Quadrature, random_signs


def operator(values, seed=0):
    """Return a symmetric matrix with these eigenvalues, and its product with columns."""
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))[0]
    matrix = (basis * values) @ basis.T
    return matrix, lambda columns: matrix @ columns


def unit_columns(size, count, seed=1):
    columns = np.random.default_rng(seed).normal(size=(size, count))
    return columns / np.linalg.norm(columns, axis=0)


def test_a_space_as_large_as_the_operator_holds_the_solutions_for_all_shifts():
    matrix, times = operator(np.geomspace(1e-3, 1, 150))
    starts = np.hstack([unit_columns(150, 2), np.zeros((150, 1))])
    space = Lanczos(times, starts, keep=True)
    assert space.grow(1e-4, 1e-14, most=150) <= 1e-12
    shifts = np.array([1e-4, 0.1, 3.0])
    expected = [np.linalg.solve(matrix + shift * np.eye(150), starts) for shift in shifts]
    np.testing.assert_allclose(
        space.solutions(shifts), np.stack(expected, axis=1), rtol=0, atol=1e-8
    )


@pytest.mark.parametrize("most", [1, 7, 70])
def test_the_residual_is_that_of_the_solutions(most):
    matrix, times = operator(np.geomspace(1e-3, 1, 90))
    starts = unit_columns(90, 3)
    space = Lanczos(times, starts, keep=True)
    residual = space.grow(1e-3, 0.0, most)
    assert space.n_steps == most
    left = starts - (matrix + 1e-3 * np.eye(90)) @ space.solutions(np.array([1e-3]))[:, 0]
    assert residual == pytest.approx(np.linalg.norm(left, axis=0).max(), rel=1e-6)
    assert space.grow(1e-3, residual, most + 1) == residual  # already converged
    assert space.n_steps == most


def test_an_invariant_space_ends_the_search():
    matrix, start = np.diag([3.0, 2.0, 1.0, 1.0]), np.array([[0.6], [0.8], [0.0], [0.0]])
    space = Lanczos(lambda columns: matrix @ columns, start, keep=True)
    assert space.grow(1e-3, 1e-12, most=4) <= 1e-12
    assert space.n_steps == 2
    np.testing.assert_allclose(
        space.solutions(np.array([1.0]))[:, 0, 0], [0.15, 0.8 / 3, 0, 0], atol=1e-14
    )


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("n_steps", [1, 4])
def test_quadrature_is_exact_for_polynomials_of_degree_below_twice_the_steps(keep, n_steps):
    matrix, times = operator(np.linspace(0.1, 1, 30))
    starts = unit_columns(30, 2)
    space = Lanczos(times, starts, keep=keep)
    for _ in range(n_steps):
        space.step()
    nodes, weights = space.quadrature()
    assert nodes.shape == weights.shape == (2, n_steps)
    forms = [
        ((np.linalg.matrix_power(matrix, k) @ starts) * starts).sum(axis=0)
        for k in range(2 * n_steps + 1)
    ]
    actual = [(weights * nodes**k).sum(axis=1) for k in range(2 * n_steps + 1)]
    np.testing.assert_allclose(actual[:-1], forms[:-1], rtol=1e-10)
    assert (np.abs(actual[-1] / forms[-1] - 1) > 1e-10).all()


def test_sums_over_nodes_estimate_sums_over_eigenvalues():
    # One eigenvalue is so large that the random vectors must not estimate it.
    values = np.append(np.linspace(0.5, 1.5, 299), 1000.0)
    actual = Quadrature.of(operator(values)[1], random_signs(300), 300)
    nodes = actual.nodes.ravel()
    assert actual.sums(nodes**0) == pytest.approx(300.0)
    for power in (1, 2):
        assert actual.sums(nodes**power) == pytest.approx((values**power).sum(), rel=1e-3)
    total = float(actual.sums(nodes / (nodes + 0.3)))
    assert total == pytest.approx(
        (values / (values + 0.3)).sum(), abs=3 * float(actual.errors(nodes / (nodes + 0.3)))
    )
    assert actual.shift_of(total) == pytest.approx(0.3, rel=1e-9)
    assert actual.shift_of(301.0) == 0.0


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_smaller_eigenvalues_need_more_nodes_in_any_unit(unit):
    narrow, wide, in_unit = (
        Quadrature.of(operator(values)[1], random_signs(150)[:, :16], 150)
        for values in (
            np.linspace(0.5, 1.5, 150),
            np.geomspace(3e-5, 1, 150),
            unit * np.geomspace(3e-5, 1, 150),
        )
    )
    assert narrow.nodes.shape[1] < wide.nodes.shape[1] < 150
    # Rounding may end the iteration up to two rounds of 8 steps earlier or later.
    assert abs(in_unit.nodes.shape[1] - wide.nodes.shape[1]) <= 16
    sums = [
        actual.sums(actual.nodes.ravel() / (actual.nodes.ravel() + u * 1e-4))
        for actual, u in ((wide, 1), (in_unit, unit))
    ]
    assert sums[1] == pytest.approx(sums[0], rel=1e-3)


def test_sums_that_do_not_converge_stop_and_store_no_vectors(monkeypatch):
    monkeypatch.setattr(traces, "_MOST_STEPS", 32)
    values = np.geomspace(1e-12, 1, 2000)[:, None]
    probes = random_signs(2000)[:, : traces._LEADING + 1]
    tracemalloc.start()
    try:
        actual = Quadrature.of(lambda columns: values * columns, probes, 2000)
        assert tracemalloc.get_traced_memory()[1] < 0.25 * actual.nodes.size * 2000 * 8
    finally:
        tracemalloc.stop()
    assert actual.nodes.shape[1] == 32


@pytest.mark.parametrize(
    "values", [range(1, 10), [2.0, 1.0, 0.5], [5.0, 0.0, 0.0, 0.0], [0.0, 0.0]], ids=str
)
def test_few_eigenvalues_are_found_exactly(values):
    actual = Quadrature.of(operator(np.array(values))[1], random_signs(len(values)), len(values))
    nodes = actual.nodes.ravel()
    for shift in (0.1, 1.0):
        expected = (np.array(values) / (np.array(values) + shift)).sum()
        assert actual.sums(nodes / (nodes + shift)) == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_errors_are_standard_errors_over_probes():
    weights = np.array([[5.0, 5.0], [0.5, 0.5], [1.0, 1.0], [1.5, 1.5]])
    actual = Quadrature(np.ones((4, 2)), weights, n_leading=1)
    values = np.ones((8, 2)) * [1.0, 10.0]
    np.testing.assert_allclose(actual.sums(values), [16.0, 160.0])
    # The probes add 1, 2 and 3.
    np.testing.assert_allclose(actual.errors(values), np.sqrt(3) * np.array([1.0, 10.0]))
    assert actual.errors(values[:, 0]) == pytest.approx(np.sqrt(3))


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_shifts_scale_with_the_eigenvalues(unit):
    actual = Quadrature(unit * np.array([[1.0, 2.0], [3.0, 0.0]]), np.ones((2, 2)), n_leading=1)
    for shift in (0.01, 1.0, 100.0):
        total = sum(value / (value + shift) for value in (1, 2, 3))
        assert actual.shift_of(total) == pytest.approx(unit * shift, rel=1e-9)


def test_there_are_more_probes_of_shorter_length():
    counts = [random_signs(size).shape for size in (1, 2**12, 2**15)]
    most, between, fewest = (count - traces._LEADING for _, count in counts)
    assert fewest == traces._FEWEST_PROBES < between < most == traces._MOST_PROBES
    assert between * 2**12 == traces._PROBE_VALUES
    assert set(np.unique(random_signs(50))) == {-1.0, 1.0}
