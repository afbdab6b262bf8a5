"""Fits, predictions and audits of lazily read rows equal those of rows in memory."""

import tracemalloc

import numpy as np
import pytest

from support.lazy import Failing, Stored
from unflip import LPClassifier, NoiseModel, audit
from unflip.data import dense
from unflip.data.engines import blocks
from unflip.datasets import make_mixture
from unflip.estimation import Automatic, CrossMoment, TrustedSubset
from unflip.ridge import selection

pytestmark = pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")

NOISE = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1)
FITTED = (
    "coef_",
    "intercept_",
    "targets_",
    "loo_decision_",
    "label_posterior_",
    "loo_log_odds_",
    "noise_std_",
)
BLOCK = 2600  # numbers; larger than a sample of 128 rows


@pytest.fixture
def small_blocks(monkeypatch):
    """Use so small blocks that a few hundred rows need many."""
    monkeypatch.setattr(blocks, "BLOCK_VALUES", BLOCK)
    monkeypatch.setattr(dense, "_scatter_block", lambda size: BLOCK)
    monkeypatch.setattr(dense, "_KEPT_VALUES", 0)
    monkeypatch.setattr(selection, "_PART", 50)


def problem(shape=(1000, 12), k=2, mean=3.0, seed=0):
    """Rows with a duplicate, and their true and noisy labels of k classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=shape[0])
    X = rng.normal(size=shape) * np.linspace(1, 3, shape[1]) + mean
    X[np.arange(shape[0]), y] += 4
    X[7] = X[8]
    return X, y, np.where(rng.random(shape[0]) < 0.15, rng.integers(k, size=shape[0]), y)


def assert_alike(actual, expected, tolerance=1e-10):
    for name in FITTED:
        whole = getattr(expected, name)
        np.testing.assert_allclose(
            getattr(actual, name), whole, rtol=tolerance, atol=tolerance * np.abs(whole).max()
        )
    assert actual.reg_ == pytest.approx(expected.reg_, rel=tolerance)
    assert actual.expected_accuracy_ == pytest.approx(expected.expected_accuracy_, abs=tolerance)


@pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fit_intercept": False},
        {"noise": NOISE},
        {"noise": "trusted"},
        {"readout": "plain", "targets": "naive", "noise": NOISE},
        {"readout": "plain", "noise": NOISE, "reg": 0.3},
        {"loss": "logistic", "noise": NOISE},
    ],
    ids=str,
)
def test_fits_equal_those_in_memory(options, weighted, small_blocks):
    X, y, labels = problem()
    weights = np.random.default_rng(1).integers(3, size=len(X)).astype(float) if weighted else None
    if options.get("noise") == "trusted":
        options = options | {
            "noise": TrustedSubset(np.where(np.arange(len(y)) % 4 == 0, y, np.nan))
        }
    source = Stored(X)
    expected, actual = (LPClassifier(**options).fit(rows, labels, weights) for rows in (X, source))
    assert source.n_most <= BLOCK
    assert_alike(actual, expected)
    for method in ("predict", "predict_proba", "decision_function"):
        np.testing.assert_array_equal(getattr(actual, method)(source), getattr(actual, method)(X))
    assert source.n_most <= BLOCK


@pytest.mark.parametrize("shape", [(1000, 12), (60, 90)], ids=["primal", "dual"])
def test_several_classes(shape, small_blocks):
    X, _, labels = problem(shape, k=3)
    source = Stored(X)
    assert_alike(LPClassifier().fit(source, labels), LPClassifier().fit(X, labels))
    assert source.n_most <= BLOCK


@pytest.mark.parametrize("k", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_a_default_fit_reads_the_rows_seven_times(k, small_blocks):
    """For duplicates, the Gram matrix, leverages and scores, and twice in each of two rounds.

    Few rows of several classes need two more in each round, for the effect of labels on the scores
    of other rows.
    """
    X, _, labels = problem((10_000, 12), k=k, mean=0.0)
    X[7] += 1e-3  # removes the duplicate
    source = Stored(X)
    LPClassifier().fit(source, labels)
    assert 7 <= source.n_passes < 7.1
    assert source.n_most <= BLOCK
    before = source.n_passes
    LPClassifier(reg=0.1).fit(source, labels)
    assert source.n_passes - before < 7.1


def test_a_mixture_needs_two_more_passes(small_blocks):
    X, y = make_mixture(10_000, 50, mean_norm=2.0, random_state=0)
    source = Stored(X)
    fitted = LPClassifier().fit(source, NOISE.flip(y, random_state=0))
    assert fitted.noise_estimator_.source_ == "mixture"
    assert source.n_passes < 9.1


def test_a_prediction_reads_the_rows_once():
    X, _, labels = problem()
    fitted = LPClassifier(NOISE).fit(X, labels)
    source = Stored(X)
    fitted.predict(source)
    assert source.n_passes == 1


def test_many_duplicates(small_blocks):
    X, _, labels = problem((30, 5))
    many = np.tile(X, (20, 1))
    twice = np.tile(labels, 20)
    source = Stored(many)
    assert_alike(LPClassifier(NOISE).fit(source, twice), LPClassifier(NOISE).fit(many, twice))
    assert source.n_most <= BLOCK


def test_numbers_of_other_dtypes(small_blocks, tmp_path):
    X, _, labels = problem()
    for dtype in ("i1", "f2", "f4", ">f8"):
        stored = (4 * X).astype(dtype)
        np.save(tmp_path / "rows.npy", stored)
        held = stored.astype(np.float32 if dtype == "f4" else np.float64)
        actual = LPClassifier(NOISE).fit(np.load(tmp_path / "rows.npy", mmap_mode="r"), labels)
        assert_alike(actual, LPClassifier(NOISE).fit(held, labels))


def test_zarr(small_blocks):
    zarr = pytest.importorskip("zarr")
    X, _, labels = problem()
    assert_alike(
        LPClassifier(NOISE).fit(zarr.array(X, chunks=(100, 12)), labels),
        LPClassifier(NOISE).fit(X, labels),
    )


def test_hdf5_and_parquet(small_blocks, tmp_path):
    h5py = pytest.importorskip("h5py")
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    from unflip.data.parquet import ParquetRows

    X, _, labels = problem()
    expected = LPClassifier().fit(X, labels)
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        actual = LPClassifier().fit(file.create_dataset("rows", data=X, chunks=(37, 5)), labels)
        np.testing.assert_array_equal(actual.predict(file["rows"]), expected.predict(X))
    assert_alike(actual, expected)
    table = pa.table({f"x{index}": column for index, column in enumerate(X.T)})
    for name, part, size in (("a", table[:150], 40), ("b", table[150:], 97)):
        parquet.write_table(part, tmp_path / f"{name}.parquet", row_group_size=size)
    stored = ParquetRows([tmp_path / "a.parquet", tmp_path / "b.parquet"], dtype=np.float64)
    assert_alike(LPClassifier().fit(stored, labels), expected)


@pytest.mark.parametrize(
    "options",
    [{}, {"groups": np.arange(1000) // 2}, {"trusted": True}],
    ids=["", "groups", "trusted"],
)
def test_audits_equal_those_in_memory(options, small_blocks):
    X, y, labels = problem()
    options = (
        {"trusted": np.where(np.arange(len(y)) % 4 == 0, y, np.nan)}
        if "trusted" in options
        else options
    )
    source = Stored(X)
    actual, expected = (audit(rows, labels, **options) for rows in (source, X))
    np.testing.assert_allclose(actual.label_posterior, expected.label_posterior, rtol=0, atol=1e-9)
    assert actual.accuracy_after(10) == pytest.approx(expected.accuracy_after(10), abs=1e-9)
    assert source.n_most <= BLOCK


@pytest.mark.parametrize("estimator", [Automatic(), CrossMoment(), TrustedSubset()], ids=str)
def test_noise_estimators_read_in_blocks(estimator, small_blocks):
    X, y = make_mixture(1000, 20, mean_norm=2.0, random_state=0)
    source = Stored(X)
    labels = NOISE.flip(y, random_state=0)
    actual = estimator.fit(source, labels).noise_.transition
    np.testing.assert_allclose(
        actual, estimator.fit(X, labels).noise_.transition, rtol=0, atol=1e-9
    )
    assert source.n_most <= BLOCK


def test_a_failed_fit_does_not_change_the_estimator(small_blocks):
    X, _, labels = problem()
    fitted = LPClassifier(NOISE).fit(X, labels)
    before = dict(vars(fitted))
    for after in (0, 3 * X.size // 2, 4 * X.size):  # in the first pass, and in later ones
        with pytest.raises(RuntimeError, match="of X could not be read: the disk is gone"):
            fitted.fit(Failing(X, after), labels)
        assert vars(fitted).keys() == before.keys()
        assert all(vars(fitted)[name] is value for name, value in before.items())
    broken = X.copy()
    broken[999, 2] = np.nan
    weights = np.ones(1000)
    weights[999] = 0  # zero-weight rows are checked, too
    for sample_weight in (None, weights):
        with pytest.raises(ValueError, match="Input X contains NaN, in row 999 and column 2"):
            fitted.fit(Stored(broken), labels, sample_weight)
    assert fitted.coef_ is before["coef_"]
    with pytest.raises(ValueError, match="Input X contains NaN, in row 999 and column 2"):
        fitted.predict(Stored(broken))
    with pytest.raises(ValueError, match="X has 11 features, but LPClassifier is expecting 12"):
        fitted.predict(Stored(X[:, :11]))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_memory_is_a_few_numbers_per_row(dtype, tmp_path):
    X, _, labels = problem((30_000, 100), mean=0.0)
    np.save(tmp_path / "rows.npy", X.astype(dtype))
    stored = np.load(tmp_path / "rows.npy", mmap_mode="r")
    peaks = []
    for n in (10_000, 30_000):
        tracemalloc.start()
        LPClassifier().fit(stored[:n], labels[:n])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # Bytes per row; scores for all regularization strengths alone would take 400.
    assert (peaks[1] - peaks[0]) / 20_000 < 700
