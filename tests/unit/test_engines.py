"""Engines: every pass uses two primitives, whose functions can be sent to another process."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from array_api_compat import numpy as numpy_namespace

from unflip.data.dense import DenseRows
from unflip.data.duplicates import DistinctRows
from unflip.data.engines import Blocks, engine_of
from unflip.data.engines.blocks import every_nth_row
from unflip.ridge.spectrum import decompose

cloudpickle = pytest.importorskip(
    "cloudpickle", reason="functions are sent to workers by Dask's cloudpickle"
)

GRID = np.logspace(-3, 3, 20)
N = 400
P = 7
# Bytes; less than a column in double precision of the rows of `test_functions…`.
LARGEST_MESSAGE = 20_000


class ElsewhereRows:
    """Rows whose engine takes uneven blocks, last to first, and pickles each function."""

    ndim = 2
    device = "cpu"

    def __init__(self, X):
        self.X = X
        self.shape = X.shape
        self.dtype = X.dtype
        self.largest_message = 0

    def __array_namespace__(self, api_version=None):
        return numpy_namespace

    def __getitem__(self, key):
        assert (key[0].step or 1) > 1, "more than a sample was read"
        return self.X[key]

    def engine(self, offset=()):
        return _Elsewhere(self, offset)

    def sample(self):
        return every_nth_row(self.X)


class _Elsewhere:
    def __init__(self, rows, offset):
        self._rows = rows
        self._offset = offset

    def _parts(self, columns):
        ends = [0, 1, 50, 333, len(self._rows.X)]
        for start, stop in reversed(list(pairwise(ends))):
            part = slice(start, stop)
            yield (
                part,
                Blocks(self._rows.X[part], self._offset),
                [column[part] for column in columns],
            )

    def _sent(self, function):
        message = cloudpickle.dumps(function)
        self._rows.largest_message = max(self._rows.largest_message, len(message))
        return pickle.loads(message)

    def fill(self, function, *results, columns=()):
        for part, blocks, own in self._parts(columns):
            blocks.fill(self._sent(function), *(result[part] for result in results), columns=own)

    def summed(self, function, *columns, n_values=None):
        sums = [
            blocks.summed(self._sent(function), *own) for _, blocks, own in self._parts(columns)
        ]
        return tuple(sum(values) for values in zip(*sums, strict=True))


@pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])
@pytest.mark.parametrize("mean", [0.0, 30.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_fits_are_equal_for_all_engines(fit_intercept, mean, weighted, monkeypatch):
    monkeypatch.setattr("unflip.data.dense._KEPT_VALUES", 0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, P)) + mean
    t = rng.normal(size=(N, 2))
    weights = rng.uniform(1, 2, size=N) if weighted else None
    here, elsewhere = (
        decompose(rows, weights, fit_intercept=fit_intercept) for rows in (X, ElsewhereRows(X))
    )
    for name in ("scores", "corrected_scores"):
        actual, expected = (getattr(one.leave_one_out(t, GRID), name) for one in (elsewhere, here))
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        elsewhere.path(t, GRID).coef, here.path(t, GRID).coef, rtol=0, atol=1e-11
    )
    np.testing.assert_allclose(elsewhere.coordinates(2), here.coordinates(2), rtol=0, atol=1e-10)
    np.testing.assert_allclose(elsewhere.principal_rows, here.principal_rows, rtol=0, atol=1e-10)


def test_functions_hold_no_array_as_long_as_the_rows(monkeypatch):
    monkeypatch.setattr("unflip.data.dense._KEPT_VALUES", 0)
    rng = np.random.default_rng(0)
    rows = ElsewhereRows(rng.normal(size=(5000, 3)))
    spectrum = decompose(rows, rng.uniform(1, 2, size=5000))
    spectrum.leave_one_out(rng.normal(size=5000), GRID)
    dense = DenseRows.of(rows, rng.uniform(1, 2, size=5000))
    dense.times_and_squared_norms(np.eye(3))
    dense.column_powers()
    assert 0 < rows.largest_message < LARGEST_MESSAGE


@pytest.mark.parametrize("repeated", [False, True])
def test_duplicates_are_found_by_any_engine(repeated):
    X = np.random.default_rng(0).normal(size=(N, P))
    X[N - 3] = X[2] if repeated else X[N - 3]

    class Choosing(ElsewhereRows):
        def __getitem__(self, key):
            return super().__getitem__(key) if isinstance(key, tuple) else Choosing(self.X[key])

    actual, expected = (DistinctRows.of(rows) for rows in (Choosing(X), X))
    assert len(expected.weights) == N - repeated
    for name in ("weights", "members", "owner", "largest"):
        np.testing.assert_array_equal(getattr(actual, name), getattr(expected, name))


def test_sums_over_no_rows_are_zero():
    (total,) = engine_of(np.empty((0, 3))).summed(lambda block: (block.T @ block,))
    np.testing.assert_array_equal(total, np.zeros((3, 3)))


def test_a_scalar_fills_all_rows_of_a_block():
    values = np.empty(5)
    engine_of(np.arange(10.0).reshape(5, 2)).fill(lambda block: (block.max(),), values)
    np.testing.assert_array_equal(values, np.full(5, 9.0))
