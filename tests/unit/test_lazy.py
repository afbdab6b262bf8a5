"""Lazily read rows: slices, selections, and errors."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator

from support.lazy import Failing, Shrinking, Stored
from unflip import LPClassifier
from unflip.data.duplicates import DistinctRows
from unflip.data.engines import blocks
from unflip.data.input_rows import unchanged_on_error, validated
from unflip.data.lazy import LazyRows, is_lazy
from unflip.data.parquet import ParquetRows

pq = pytest.importorskip("pyarrow.parquet", reason="Parquet files need pyarrow")
pa = pytest.importorskip("pyarrow")

X = np.random.default_rng(0).normal(size=(300, 5))


def mapped(values, folder, order="C"):
    np.save(folder / "rows.npy", np.asarray(values, order=order))
    return np.load(folder / "rows.npy", mmap_mode="r")


def test_kinds_of_rows_that_are_read_lazily(tmp_path):
    assert is_lazy(Stored(X))
    assert is_lazy(LazyRows.of(Stored(X)))
    assert is_lazy(mapped(X, tmp_path))
    pandas = pytest.importorskip("pandas")
    for held in (
        X,
        X.tolist(),
        sparse.csr_array(X),
        pandas.DataFrame(X),
        pandas.Series(X[0]),
        Stored(X[0]),
    ):
        assert not is_lazy(held)
    assert not is_lazy(mapped(X[0], tmp_path))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    ("stored", "actual"),
    [("f4", "f4"), ("f8", "f8"), (">f4", "f4"), ("f2", "f8"), ("i1", "f8"), ("?", "f8")],
)
def test_memory_maps_of_any_kind_are_read_in_blocks(stored, actual, order, tmp_path):
    values = (3 * X).astype(stored)
    rows = validated(
        BaseEstimator(), mapped(values, tmp_path, order), dtype=[np.float64, np.float32]
    )
    assert isinstance(rows, LazyRows)
    assert rows.dtype == rows[3:40, 1:].dtype == np.dtype(actual)
    np.testing.assert_array_equal(rows[3:40, 1:], values[3:40, 1:])


def test_slices_and_selections_equal_those_of_an_array():
    rows = LazyRows.of(Stored(X))
    chosen = np.array([0, 1, 1, 5, 200, 201, 299])
    np.testing.assert_array_equal(rows[10:20], X[10:20])
    np.testing.assert_array_equal(rows[::7, 2:4], X[::7, 2:4])
    np.testing.assert_array_equal(rows[290:400, :], X[290:])
    assert rows[5:5, :].shape == (0, 5)
    np.testing.assert_array_equal(rows[chosen][:, :], X[chosen])
    np.testing.assert_array_equal(rows[X[:, 0] > 0][2:9, 1:], X[X[:, 0] > 0][2:9, 1:])
    np.testing.assert_array_equal(rows[chosen][np.array([1, 3, 6])][:, :], X[chosen][[1, 3, 6]])
    assert rows[chosen].shape == (7, 5)
    with pytest.raises(ValueError, match="sort the indices"):
        rows[np.array([3, 1])]


def test_selections_skip_other_rows():
    source = Stored(np.random.default_rng(0).normal(size=(10_000, 2)))
    chosen = np.concatenate([np.arange(50), 5000 + 2 * np.arange(50), [9999]])
    LazyRows.of(source)[chosen][:, :]
    assert source.n_read < 2 * 200


def test_rescaled_rows():
    actual = LazyRows.of(Stored(1e3 * X)).rescaled()[:, :]
    np.testing.assert_allclose(actual, (X - X[0]) / np.abs(X - X[0]).max(), atol=1e-14)


@pytest.mark.parametrize(("value", "kind"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_errors_name_the_row_and_the_column(value, kind):
    broken = X.copy()
    broken[123, 4] = value
    rows = LazyRows.of(Stored(broken))
    assert np.isfinite(rows[:100, :]).all()
    with pytest.raises(ValueError, match=f"Input X contains {kind}, in row 123 and column 4"):
        rows[100:200, :]
    with pytest.raises(ValueError, match="in row 123 and column 4"):
        rows[100:200, 2:]
    with pytest.raises(ValueError, match="in row 123 and column 4"):
        rows[np.array([7, 123])][:, :]


def test_errors_for_invalid_sources():
    rows = LazyRows.of(Shrinking(X, 600))
    assert rows[:100].shape == (100, 5)
    with pytest.raises(
        RuntimeError,
        match=r"X has shape \(300, 5\), but the block of shape \(100, 5\) from row 100",
    ):
        rows[100:200]
    with pytest.raises(RuntimeError, match="Rows 0 to 9 of X could not be read: the disk is gone"):
        LazyRows.of(Failing(X, -1))[:10]
    with pytest.raises(ValueError, match="X has dtype <U1, which is not numeric"):
        LazyRows.of(Stored(np.full((3, 2), "a")))
    for shape, message in [((1, 5), "minimum of 2 is required"), ((300, 0), "0 feature")]:
        with pytest.raises(ValueError, match=message):
            validated(
                BaseEstimator(),
                Stored(X[: shape[0], : shape[1]]),
                dtype=np.float64,
                ensure_min_samples=2,
            )
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        validated(BaseEstimator(), Stored(X), np.zeros(299), dtype=np.float64)


def test_the_number_of_features_is_stored_and_checked():
    estimator = BaseEstimator()
    validated(estimator, Stored(X), dtype=np.float64)
    assert estimator.n_features_in_ == 5
    with pytest.raises(
        ValueError, match="X has 4 features, but BaseEstimator is expecting 5 features"
    ):
        validated(estimator, Stored(X[:, :4]), dtype=np.float64, reset=False)


def test_an_estimator_keeps_its_state_if_fitting_fails():
    estimator = BaseEstimator()
    estimator.kept_ = 1
    estimator.changed_ = 2

    def fit():
        with unchanged_on_error(estimator):
            estimator.changed_ = 3
            estimator.new_ = 4
            raise OSError

    with pytest.raises(OSError, match=r"^$"):
        fit()
    assert vars(estimator) == {"kept_": 1, "changed_": 2}


@pytest.mark.parametrize("weighted", [False, True])
def test_distinct_rows_equal_those_of_an_array(weighted, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_VALUES", 100)
    rng = np.random.default_rng(0)
    repeated = np.concatenate([X, X[rng.integers(300, size=500)], -0.0 * X[:2], 0.0 * X[:2]])
    weights = rng.integers(3, size=len(repeated)).astype(float) if weighted else None
    expected = DistinctRows.of(repeated, weights)
    actual = DistinctRows.of(LazyRows.of(Stored(repeated)), weights)
    assert len(actual.weights) <= 301
    for name in ("weights", "members", "owner", "member_weights", "largest"):
        np.testing.assert_array_equal(getattr(actual, name), getattr(expected, name))
    np.testing.assert_array_equal(actual.X[:, :], expected.X)
    assert isinstance(actual.X, LazyRows)


def written(folder, sizes, values, names="abcde", **options):
    ends = np.cumsum([0, *sizes])
    paths = [folder / f"{index}.parquet" for index in range(len(sizes))]
    for path, start, stop, group in zip(paths, ends[:-1], ends[1:], (7, 1000, 50), strict=False):
        columns = {name: values[start:stop, index] for index, name in enumerate(names)}
        pq.write_table(pa.table(columns), path, row_group_size=group, **options)
    return paths


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parquet_files_are_one_array(dtype, tmp_path):
    rows = ParquetRows(written(tmp_path, (100, 150, 50), X), dtype=dtype)
    assert rows.shape == X.shape
    assert len(rows) == 300
    assert rows.columns == list("abcde")
    for key in (
        (slice(None), slice(None)),
        (slice(95, 260), slice(1, 4)),
        (slice(7, 14), slice(None)),
        slice(250, 251),
    ):
        actual = rows[key]
        assert actual.dtype == dtype
        np.testing.assert_array_equal(actual, X.astype(dtype)[key])
    assert rows[300:, :].shape == (0, 5)
    chosen = np.array([3, 99, 100, 299])
    np.testing.assert_array_equal(LazyRows.of(rows, dtype)[chosen][:, :], X.astype(dtype)[chosen])


def test_parquet_columns_are_selected_in_order(tmp_path):
    (path,) = written(tmp_path, (300,), X)
    np.testing.assert_array_equal(
        ParquetRows(path, ["d", "a"], np.float64)[10:20], X[10:20, [3, 0]]
    )


def test_parquet_row_groups_are_read_once_per_pass(tmp_path, monkeypatch):
    rows = ParquetRows(written(tmp_path, (100, 150, 50), X))
    read = []
    one = pq.ParquetFile.read_row_group
    monkeypatch.setattr(
        pq.ParquetFile,
        "read_row_group",
        lambda *args, **named: read.append(1) or one(*args, **named),
    )
    for start in range(0, 300, 10):
        rows[start : start + 10]
    assert len(read) == len(rows._groups) == 15 + 1 + 1


def test_errors_for_invalid_parquet_files(tmp_path):
    (path,) = written(tmp_path, (300,), X)
    with pytest.raises(ValueError, match="has no column 'z'"):
        ParquetRows(path, ["a", "z"])
    with pytest.raises(ValueError, match="dtype='i4' is not supported"):
        ParquetRows(path, dtype="i4")
    with pytest.raises(ValueError, match="paths is empty"):
        ParquetRows([])
    with pytest.raises(ValueError, match="columns is empty"):
        ParquetRows(path, [])
    with pytest.raises(TypeError, match="takes slices"):
        ParquetRows(path)[3]
    with pytest.raises(ValueError, match="a step of 2"):
        ParquetRows(path)[::2]
    pq.write_table(pa.table({"a": ["x", "y"]}), tmp_path / "words.parquet")
    with pytest.raises(
        ValueError, match=r"Column 'a' of .*words.parquet holds string, not numbers"
    ):
        ParquetRows(tmp_path / "words.parquet")
    pq.write_table(pa.table({"a": [1, None, 3]}), tmp_path / "holes.parquet")
    with pytest.raises(ValueError, match="Input X contains NaN, in row 1 and column 0"):
        LazyRows.of(ParquetRows(tmp_path / "holes.parquet"))[:, :]


class TestParquetPrecision:
    def rows(self, folder, **columns):
        pq.write_table(pa.table(columns), folder / "rows.parquet")
        return ParquetRows(folder / "rows.parquet")

    def test_numbers_keep_their_stored_precision(self, tmp_path):
        double = self.rows(tmp_path, a=np.array([1e9 + 0.5, 2.0]), b=np.array([True, False]))
        assert double.dtype == np.float64
        np.testing.assert_array_equal(double[:], [[1e9 + 0.5, 1], [2, 0]])
        single = self.rows(tmp_path, a=np.array([1.5, 2], np.float32), b=np.array([3, 4], np.int8))
        assert single.dtype == np.float32

    def test_other_files_raise(self, tmp_path):
        (tmp_path / "notes.parquet").write_text("no table")
        with pytest.raises(ValueError, match="is not a Parquet file or is damaged"):
            ParquetRows(tmp_path / "notes.parquet")


class _CountingRows(LazyRows):
    n_passes = 0

    def engine(self, offset=()):
        type(self).n_passes += 1
        return super().engine(offset)


def test_a_classifier_passes_over_rows_with_their_own_engine():
    y = (X[:, 0] > 0).astype(int)
    fitted = LPClassifier(noise=None).fit(_CountingRows.of(Stored(X)), y)
    assert _CountingRows.n_passes > 2
    in_memory = LPClassifier(noise=None).fit(X, y)
    np.testing.assert_allclose(fitted.coef_, in_memory.coef_, rtol=1e-10, atol=1e-12)


def test_an_array_of_the_rows_reads_them_all():
    np.testing.assert_array_equal(np.asarray(LazyRows.of(Stored(X))), X)
