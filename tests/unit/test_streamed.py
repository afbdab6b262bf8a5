"""Rows streamed to a device give the same fits, and errors name the remedy."""

import array_api_strict
import numpy as np
import pytest
import sklearn
from scipy.sparse import csr_array

from unflip import LPClassifier, NoiseModel
from unflip._utils.arrays import as_numpy
from unflip.data.engines import blocks, transfers
from unflip.data.streamed import streamed
from unflip.datasets import make_mixture
from unflip.ridge.spectrum import decompose

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
REGS = np.logspace(-3, 3, 7)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "_DEVICE_VALUES", (1000, 1000))
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # scikit-learn asks for it


@pytest.fixture(params=["strict", "torch"])
def like(request):
    """Return an array on a device without implicit conversion to NumPy, or an array of torch."""
    if request.param == "strict":
        return array_api_strict.zeros(1, device=array_api_strict.Device("device1"))
    return pytest.importorskip("torch").empty(0)


def problem(n=600, p=20):
    X, y = make_mixture(n, p, mean_norm=2.0, random_state=0)
    return X, NOISE.flip(y, random_state=1)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_leave_one_out_equals_that_in_memory(like, dtype, fit_intercept):
    X, y = problem()
    X = X.astype(dtype)
    rows = streamed(X, like)
    targets = rows.__array_namespace__().asarray(2.0 * y - 1, device=rows.device)
    actual = decompose(rows, fit_intercept=fit_intercept).leave_one_out(targets, REGS).scores
    expected = decompose(X, fit_intercept=fit_intercept).leave_one_out(2.0 * y - 1, REGS).scores
    np.testing.assert_allclose(
        as_numpy(actual), expected, atol=1e-10 if dtype is np.float64 else 1e-5
    )


def test_fits_equal_those_in_memory_and_stay_on_the_device(like, tmp_path):
    X, y = problem()
    np.save(tmp_path / "rows.npy", X)
    rows = streamed(np.load(tmp_path / "rows.npy", mmap_mode="r"), like)
    expected = LPClassifier(NOISE).fit(X, y)
    with sklearn.config_context(array_api_dispatch=True):
        actual = LPClassifier(NOISE).fit(rows, y)
        labels = actual.predict(rows)
    assert type(actual.loo_decision_) is type(like)
    np.testing.assert_allclose(as_numpy(actual.coef_), expected.coef_, rtol=1e-9)
    np.testing.assert_allclose(as_numpy(actual.loo_decision_), expected.loo_decision_, atol=1e-8)
    np.testing.assert_array_equal(as_numpy(labels), expected.predict(X))


def test_duplicates_and_zero_weight_rows(like):
    X, y = problem()
    X[300:310] = X[:10]
    weights = np.ones(len(y))
    weights[5:25] = 0.0
    expected = LPClassifier(NOISE).fit(X, y, weights)
    with sklearn.config_context(array_api_dispatch=True):
        actual = LPClassifier(NOISE).fit(streamed(X, like), y, weights)
    np.testing.assert_allclose(as_numpy(actual.coef_), expected.coef_, rtol=1e-9)


def test_errors_name_the_row_and_the_column(like):
    X, _ = problem()
    X[411, 3] = np.nan
    with pytest.raises(ValueError, match="NaN, in row 411 and column 3"):
        decompose(streamed(X, like))


class Recorded(transfers.Transfer):
    """Transfers that record what was begun and what was waited for."""

    def __init__(self, like):
        self.plain = transfers.Transfer.to(like)
        self.events = []

    def begin(self, read, shape, dtype):
        number = sum(kind == "begun" for kind, _ in self.events)
        self.events.append(("begun", number))
        wait = self.plain.begin(read, shape, dtype)
        assert read().shape == shape
        assert read().dtype == dtype

        def waited():
            self.events.append(("waited", number))
            return wait()

        return waited


def test_the_next_block_is_copied_in_advance(monkeypatch):
    like = array_api_strict.zeros(1)
    recorded = Recorded(like)
    monkeypatch.setattr(transfers.Transfer, "to", lambda like: recorded)
    rows = streamed(np.arange(40.0).reshape(10, 4), like)
    parts = [np.asarray(rows[start : start + 4, :]) for start in (0, 4, 8)]
    np.testing.assert_array_equal(np.concatenate(parts), np.arange(40.0).reshape(10, 4))
    assert recorded.events == [
        ("begun", 0),
        ("begun", 1),
        ("waited", 0),
        ("begun", 2),
        ("waited", 1),
        ("waited", 2),
    ]


def test_blocks_can_be_read_in_any_order():
    like = array_api_strict.zeros(1)
    X = np.arange(40.0).reshape(10, 4)
    rows = streamed(X, like)
    for part in (slice(0, 4), slice(6, 10), slice(2, 6), slice(0, 10, 3)):
        np.testing.assert_array_equal(np.asarray(rows[part, :]), X[part])
    np.testing.assert_array_equal(np.asarray(rows[:, 1:3]), X[:, 1:3])


def test_unused_transfers_are_waited_for(monkeypatch):
    """Otherwise their memory would be reused during the copy."""
    recorded = Recorded(array_api_strict.zeros(1))
    monkeypatch.setattr(transfers.Transfer, "to", lambda like: recorded)
    rows = streamed(np.zeros((10, 4)), array_api_strict.zeros(1))
    for start in (0, 6):
        rows[start : start + 4, :]
    assert recorded.events == [
        ("begun", 0),
        ("begun", 1),
        ("waited", 0),
        ("waited", 1),
        ("begun", 2),
        ("waited", 2),
    ]


def test_rows_are_checked_in_every_fit(like):
    X, y = problem()
    rows = streamed(X, like)
    with sklearn.config_context(array_api_dispatch=True):
        LPClassifier(NOISE).fit(rows, y)
        X[411, 3] = np.nan
        with pytest.raises(ValueError, match="NaN, in row 411 and column 3"):
            LPClassifier(NOISE).fit(rows, y)
        weights = np.ones(len(y))
        weights[5] = 0.0
        with pytest.raises(ValueError, match="NaN, in row 411 and column 3"):
            LPClassifier(NOISE).fit(rows, y, weights)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (csr_array(np.eye(3)), "X of type csr_array cannot be streamed: pass a NumPy array"),
        (array_api_strict.zeros((3, 2)), "X of type Array cannot be streamed"),
        (np.zeros(3), r"X has shape \(3,\): pass a 2-D array"),
    ],
)
def test_errors_for_other_kinds_of_rows(X, message):
    with pytest.raises(ValueError, match=message):
        streamed(X, array_api_strict.zeros(1))


def test_lists_can_be_streamed():
    rows = streamed([[1, 2], [3, 4]], array_api_strict.zeros(1))
    np.testing.assert_array_equal(np.asarray(rows[:, :]), [[1.0, 2.0], [3.0, 4.0]])


def test_error_without_array_api_dispatch():
    X, y = problem()
    far = array_api_strict.zeros(1, device=array_api_strict.Device("device1"))
    with pytest.raises(
        ValueError, match=r"call sklearn.set_config\(array_api_dispatch=True\) to work there"
    ):
        LPClassifier(NOISE).fit(streamed(X, far), y)
