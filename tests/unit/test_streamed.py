"""Rows of the host streamed through a device: the same fits, block by block, and what goes wrong is
told."""

import array_api_strict
import numpy as np
import pytest
import sklearn
from scipy.sparse import csr_array

from unflip import LPClassifier, NoiseModel
from unflip._utils.arrays import as_numpy
from unflip.data.engines import blocks, copies
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
    """Return an array of a device from which nothing comes to NumPy by itself, or one of torch."""
    if request.param == "strict":
        return array_api_strict.zeros(1, device=array_api_strict.Device("device1"))
    return pytest.importorskip("torch").empty(0)


def problem(n=600, p=20):
    X, y = make_mixture(n, p, mean_norm=2.0, random_state=0)
    return X, NOISE.flip(y, random_state=1)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_leave_one_out_is_that_of_rows_in_memory(like, dtype, fit_intercept):
    X, y = problem()
    X, rows = X.astype(dtype), streamed(X.astype(dtype), like)
    targets = rows.__array_namespace__().asarray(2.0 * y - 1, device=rows.device)
    found = decompose(rows, fit_intercept=fit_intercept).leave_one_out(targets, REGS).scores
    expected = decompose(X, fit_intercept=fit_intercept).leave_one_out(2.0 * y - 1, REGS).scores
    np.testing.assert_allclose(
        as_numpy(found), expected, atol=1e-10 if dtype is np.float64 else 1e-5
    )


def test_a_fit_and_its_predictions_are_those_of_rows_in_memory_and_stay_on_the_device(
    like, tmp_path
):
    X, y = problem()
    np.save(tmp_path / "rows.npy", X)
    rows = streamed(np.load(tmp_path / "rows.npy", mmap_mode="r"), like)
    expected = LPClassifier(NOISE).fit(X, y)
    with sklearn.config_context(array_api_dispatch=True):
        found = LPClassifier(NOISE).fit(rows, y)
        labels = found.predict(rows)
    assert type(found.loo_decision_) is type(like)
    np.testing.assert_allclose(as_numpy(found.coef_), expected.coef_, rtol=1e-9)
    np.testing.assert_allclose(as_numpy(found.loo_decision_), expected.loo_decision_, atol=1e-8)
    np.testing.assert_array_equal(as_numpy(labels), expected.predict(X))


def test_copies_and_rows_of_no_weight_are_found_on_the_way(like):
    X, y = problem()
    X[300:310] = X[:10]
    weights = np.ones(len(y))
    weights[5:25] = 0.0
    expected = LPClassifier(NOISE).fit(X, y, weights)
    with sklearn.config_context(array_api_dispatch=True):
        found = LPClassifier(NOISE).fit(streamed(X, like), y, weights)
    np.testing.assert_allclose(as_numpy(found.coef_), expected.coef_, rtol=1e-9)


def test_a_number_that_is_none_is_named(like):
    X, _ = problem()
    X[411, 3] = np.nan
    with pytest.raises(ValueError, match="NaN, in row 411 and column 3"):
        decompose(streamed(X, like))


class Recorded(copies.Copies):
    """Copies to an array library that note what was begun and what was waited for."""

    def __init__(self, like):
        self.plain, self.events = copies.Copies.to(like), []

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


def test_the_next_block_is_on_its_way_before_one_is_used(monkeypatch):
    like = array_api_strict.zeros(1)
    recorded = Recorded(like)
    monkeypatch.setattr(copies.Copies, "to", lambda like: recorded)
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


def test_blocks_out_of_turn_are_read_anew():
    like = array_api_strict.zeros(1)
    X = np.arange(40.0).reshape(10, 4)
    rows = streamed(X, like)
    for part in (slice(0, 4), slice(6, 10), slice(2, 6), slice(0, 10, 3)):
        np.testing.assert_array_equal(np.asarray(rows[part, :]), X[part])
    np.testing.assert_array_equal(np.asarray(rows[:, 1:3]), X[:, 1:3])


def test_a_block_that_is_not_wanted_any_more_is_waited_for(monkeypatch):
    """Otherwise its memory would be used for something else while the copy goes on."""
    recorded = Recorded(array_api_strict.zeros(1))
    monkeypatch.setattr(copies.Copies, "to", lambda like: recorded)
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


def test_numbers_are_checked_again_in_every_fit_and_in_rows_that_are_chosen(like):
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
        (csr_array(np.eye(3)), "A csr_array cannot be streamed: give an array of the host"),
        (array_api_strict.zeros((3, 2)), "A Array cannot be streamed"),
        (np.zeros(3), r"X has shape \(3,\): give rows and columns"),
    ],
)
def test_what_cannot_be_streamed_is_refused(X, message):
    with pytest.raises(ValueError, match=message):
        streamed(X, array_api_strict.zeros(1))


def test_lists_and_frames_are_taken():
    rows = streamed([[1, 2], [3, 4]], array_api_strict.zeros(1))
    np.testing.assert_array_equal(np.asarray(rows[:, :]), [[1.0, 2.0], [3.0, 4.0]])


def test_without_dispatch_a_device_is_told_of():
    X, y = problem()
    far = array_api_strict.zeros(1, device=array_api_strict.Device("device1"))
    with pytest.raises(
        ValueError, match=r"call sklearn.set_config\(array_api_dispatch=True\) to work there"
    ):
        LPClassifier(NOISE).fit(streamed(X, far), y)
