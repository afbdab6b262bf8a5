"""Dask collections: results equal those of rows in memory, and errors name the remedy."""

import logging
import subprocess
import sys
from io import StringIO

import numpy as np
import pytest

dask = pytest.importorskip("dask", reason="Dask collections need Dask")
pandas = pytest.importorskip("pandas", reason="DataFrames need pandas")
# ruff: noqa: E402 (the other imports need Dask and pandas)
import dask.array as da
import dask.dataframe as dd
from dask.diagnostics import ProgressBar
from scipy import sparse
from sklearn.base import clone

from support.dask_rows import partitions
from unflip import LPClassifier, Moments, NoiseModel, Votes, audit
from unflip.data.engines import dask_rows
from unflip.data.lazy import LazyRows
from unflip.estimation import Automatic, CrossMoment, TrustedSubset

NOISE = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1)
OF_ROWS = ("targets_", "loo_decision_", "label_posterior_", "loo_log_odds_")
N = 1000
P = 12
NAMES = [f"x{j}" for j in range(P)]


@pytest.fixture(autouse=True)
def _several_tasks(monkeypatch):
    """Use small tasks, in this process, and keep no rows in memory."""
    monkeypatch.setattr(dask_rows, "task_rows", lambda n_features: 300)
    monkeypatch.setattr("unflip.data.dense._KEPT_VALUES", 0)
    with dask.config.set(scheduler="synchronous"):
        yield


def problem(k=2, mean=3.0):
    """Rows with a duplicate, and noisy labels of k classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(k, size=N)
    X = rng.normal(size=(N, P)) * np.linspace(1, 3, P) + mean
    X[np.arange(N), y] += 4
    X[7] = X[8]
    return X, np.where(rng.random(N) < 0.15, rng.integers(k, size=N), y)


def frame(X, labels):
    table = pandas.DataFrame(X, columns=NAMES)
    return table.assign(label=np.array(["no", "yes", "maybe"])[labels])


def assert_alike(actual, expected, tolerance=1e-10):
    assert actual.reg_ == pytest.approx(expected.reg_, rel=tolerance)
    for name in ("coef_", "intercept_", *OF_ROWS):
        whole = getattr(expected, name)
        np.testing.assert_allclose(
            getattr(actual, name), whole, rtol=0, atol=tolerance * np.abs(whole).max()
        )


def assert_same(actual, expected):
    """Compare labels, or numbers up to the rounding of products of blocks of another height."""
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-13)
    else:
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("k", [2, 3])
def test_fits_equal_those_in_memory(k, dtype, fit_intercept, weighted):
    X, labels = problem(k)
    X = X.astype(dtype)
    weights = np.random.default_rng(1).integers(3, size=N).astype(float) if weighted else None
    noise = NOISE if k == 2 else NoiseModel(np.full((3, 3), 0.05) + 0.85 * np.eye(3))
    options = {"noise": noise, "fit_intercept": fit_intercept}
    expected = LPClassifier(**options).fit(X, labels, weights)
    dask_weights = None if weights is None else da.from_array(weights, chunks=400)
    actual = LPClassifier(**options).fit(
        partitions(X, 130), da.from_array(labels, chunks=77), dask_weights
    )
    # Products within blocks of other heights round in the precision of the rows.
    assert_alike(actual, expected, tolerance=max(1e-10, float(np.finfo(dtype).eps)))
    for name in OF_ROWS:
        assert getattr(actual, name).chunks[0] == (130,) * 7 + (90,)


def test_single_precision_rounds_like_single_precision():
    """Gram matrices of other blocks than in memory differ by rounding in single precision."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=9000)
    X = rng.normal(size=(9000, 64)).astype(np.float32) + labels[:, None]
    actual, expected = (
        LPClassifier(NOISE).fit(rows, labels).coef_ for rows in (partitions(X, 1001), X)
    )
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"targets": "optimized", "noise": NOISE},
        {"loss": "logistic", "noise": NOISE},
        {"noise": "trusted"},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
def test_fits_with_options_equal_those_in_memory(options):
    X, labels = problem()
    if options.get("noise") == "trusted":
        options = {
            "noise": TrustedSubset(np.where(np.arange(N) % 4 == 0, X[:, 1] > X[:, 0], np.nan))
        }
    expected, actual = (
        LPClassifier(**options).fit(rows, labels) for rows in (X, partitions(X, 130))
    )
    assert_alike(actual, expected)


@pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
@pytest.mark.parametrize(
    "estimator", [Automatic(), CrossMoment()], ids=lambda one: type(one).__name__
)
def test_noise_rates_equal_those_in_memory(estimator):
    X, labels = problem()
    expected, actual = (
        clone(estimator).fit(rows, labels).noise_.transition for rows in (X, partitions(X, 130))
    )
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-10)


def test_votes():
    X, labels = problem()
    rng = np.random.default_rng(1)
    votes = Votes.from_columns(
        np.column_stack([labels, rng.integers(2, size=N), 1 - labels ^ (rng.random(N) < 0.8)])
    )
    expected, actual = (LPClassifier().fit(rows, votes) for rows in (X, partitions(X, 130)))
    np.testing.assert_allclose(
        actual.coef_, expected.coef_, rtol=0, atol=1e-9 * np.abs(expected.coef_).max()
    )


def test_more_features_than_rows():
    X, labels = problem()
    X = np.random.default_rng(0).normal(size=(60, 90)) + labels[:60, None]
    actual = LPClassifier(NOISE).fit(da.from_array(X, chunks=(25, 40)), labels[:60])
    assert_alike(actual, LPClassifier(NOISE).fit(X, labels[:60]))


def test_data_frames():
    X, labels = problem()
    table = frame(X, labels)
    stored = dd.from_pandas(table, npartitions=7)
    actual = LPClassifier(NOISE).fit(stored[NAMES], stored["label"])
    expected = LPClassifier(NOISE).fit(table[NAMES], table["label"])
    assert_alike(actual, expected)
    assert actual.feature_names_in_.tolist() == NAMES
    for method in ("predict", "predict_proba", "decision_function"):
        lazy = getattr(actual, method)(stored[NAMES])
        assert isinstance(lazy, da.Array)
        assert_same(lazy.compute(), getattr(actual, method)(table[NAMES]))
    assert actual.score(stored[NAMES], stored["label"]) == actual.score(
        table[NAMES], table["label"]
    )
    with pytest.raises(ValueError, match="feature names should match"):
        actual.predict(stored[NAMES].rename(columns={"x0": "z"}))


def test_columns_of_several_dtypes_and_missing_values():
    X, labels = problem()
    table = pandas.DataFrame(
        {"a": X[:, 0], "b": X[:, 1] > 3, "c": np.round(X[:, 2]).astype("int8")}
    )
    table["d"] = table["c"].astype("Int64")
    stored = dd.from_pandas(table, npartitions=3)
    expected = LPClassifier(NOISE).fit(table.astype(float), labels)
    assert_alike(LPClassifier(NOISE).fit(stored, labels), expected)
    table.loc[700, "d"] = pandas.NA
    with pytest.raises(ValueError, match="Input X contains NaN, in row 700 and column 3"):
        LPClassifier(NOISE).fit(dd.from_pandas(table, npartitions=3), labels)


@pytest.mark.parametrize("k", [2, 3])
def test_predictions_are_lazy_and_partitioned_like_the_rows(k):
    X, labels = problem(k)
    rows = da.from_array(X, chunks=(130, 5))
    fitted = LPClassifier(None).fit(X, labels)
    for method in ("predict", "predict_proba", "decision_function"):
        lazy = getattr(fitted, method)(rows)
        assert lazy.chunks[0] == rows.chunks[0]
        assert lazy.dtype == getattr(fitted, method)(X[:1]).dtype
        assert_same(lazy.compute(), getattr(fitted, method)(X))
    filtered = rows[rows[:, 0] > 4]  # chunks of unknown size, maybe empty
    np.testing.assert_array_equal(
        fitted.predict(filtered).compute(), fitted.predict(X[X[:, 0] > 4])
    )
    with pytest.raises(ValueError, match="X has 5 features, but LPClassifier is expecting 12"):
        fitted.predict(rows[:, :5])


def test_the_estimator_sent_to_workers_holds_no_rows():
    X, labels = problem()
    fitted = LPClassifier(TrustedSubset(np.where(np.arange(N) % 3, np.nan, labels))).fit(X, labels)
    assert not any(np.shape(value)[:1] == (N,) for value in vars(fitted._alone()).values())
    assert fitted._alone().noise == "estimate"


def test_audits_equal_those_in_memory():
    X, labels = problem()
    table = frame(X, labels)
    stored = dd.from_pandas(table, npartitions=7)
    noise = NoiseModel.binary(eps_pos=0.075, eps_neg=0.075)  # that of `problem`
    actual = audit(stored[NAMES], stored["label"], noise=noise)
    expected = audit(X, table["label"].to_numpy(), noise=noise)
    assert actual.suspects.row.tolist() == expected.suspects.row.tolist()
    np.testing.assert_allclose(actual.label_posterior, expected.label_posterior, rtol=0, atol=1e-9)
    groups = np.arange(N) // 2
    grouped = [audit(rows, labels, noise=noise, groups=groups) for rows in (partitions(X, 130), X)]
    np.testing.assert_allclose(*(one.label_posterior for one in grouped), rtol=0, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])
def test_moments_equal_those_in_memory(weighted):
    X, labels = problem(3, mean=1e3)
    weights = [np.random.default_rng(1).uniform(1, 2, size=N)] if weighted else []
    expected = Moments.from_chunks([(X, labels, *weights)])
    table = dd.from_pandas(frame(X, labels), npartitions=7)
    columns = [da.from_array(column, chunks=99) for column in (labels, *weights)]
    as_array = Moments.from_chunks([(da.from_array(X, chunks=(130, 5)), *columns)])
    as_frame = Moments.from_chunks([(table[NAMES], table["label"], *weights)])
    in_two = Moments.from_chunks(
        [
            (partitions(X[:500], 130), labels[:500], *(w[:500] for w in weights)),
            (X[500:], labels[500:], *(w[500:] for w in weights)),
        ]
    )
    for actual in (as_array, in_two):
        assert actual.classes.tolist() == [0, 1, 2]
        for name in ("counts", "class_means", "scatter", "squared_weights"):
            whole = getattr(expected, name)
            np.testing.assert_allclose(
                getattr(actual, name), whole, rtol=0, atol=1e-13 * np.max(np.abs(whole))
            )
    assert as_frame.classes.tolist() == ["maybe", "no", "yes"]
    assert as_frame.feature_names.tolist() == NAMES
    noise = NoiseModel(np.full((3, 3), 0.05) + 0.85 * np.eye(3))
    fits = [LPClassifier.from_moments(actual, noise) for actual in (as_array, expected)]
    np.testing.assert_allclose(*(fit.coef_ for fit in fits), rtol=0, atol=1e-10)


def test_a_fit_reads_the_rows_eight_times():
    """Seven times as from a file, and once for a sample, which spans all partitions."""
    X, labels = problem(mean=0.0)
    X[7] += 1e-3  # removes the duplicate
    reads = []

    def read(part):
        reads.append(len(part))
        return part

    parts = [
        da.from_delayed(dask.delayed(read)(X[i : i + 100]), (100, P), dtype=float)
        for i in range(0, N, 100)
    ]
    LPClassifier(NOISE).fit(da.concatenate(parts), labels)
    assert sum(reads) == 8 * N


def test_small_partitions_are_grouped_and_none_is_split():
    rows = dask_rows.Partitions.of(partitions(np.ones((N, 2)), 130))
    assert [(group.start, group.stop) for group in rows.groups()] == [
        (0, 390),
        (390, 780),
        (780, 1000),
    ]
    large = dask_rows.Partitions.of(partitions(np.ones((N, 2)), 400))
    assert [tuple(group.lengths) for group in large.groups()] == [(400,), (400,), (200,)]


def test_slices_and_selections_equal_those_of_the_array():
    X, _ = problem()
    rows = LazyRows.of(da.from_array(X, chunks=(130, 5)))
    chosen = np.array([0, 1, 1, 5, 200, 201, 999])
    np.testing.assert_array_equal(rows[10:20], X[10:20])
    np.testing.assert_array_equal(rows[::7, 2:4], X[::7, 2:4])
    np.testing.assert_array_equal(rows[:, 3:5], X[:, 3:5])
    assert rows[5:5, :].shape == (0, P)
    np.testing.assert_array_equal(rows[chosen][2:6, 1:], X[chosen][2:6, 1:])
    np.testing.assert_array_equal(
        rows[X[:, 0] > 4][np.array([1, 3, 6])][:, :], X[X[:, 0] > 4][[1, 3, 6]]
    )
    np.testing.assert_allclose(
        rows.rescaled()[:, :], (X - X[0]) / np.abs(X - X[0]).max(), atol=1e-14
    )


def broken(X):
    X = X.copy()
    X[500, 3] = np.nan
    return X


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda X, y: (partitions(broken(X), 130), y),
            "Input X contains NaN, in row 500 and column 3",
        ),
        (
            lambda X, y: (partitions(X, 130)[partitions(X, 130)[:, 0] > 4], y),
            r"call X.compute_chunk_sizes\(\) first",
        ),
        (
            lambda X, y: (partitions(X, 130), y[:-1]),
            r"inconsistent numbers of samples: \[1000, 999\]",
        ),
        (
            lambda X, y: (partitions(X, 130), da.from_array(y[:-1])),
            r"inconsistent numbers of samples: \[1000, 999\]",
        ),
        (lambda X, y: (partitions(X, 130), y, np.ones(999)), r"sample_weight.shape == \(999,\)"),
        (
            lambda X, y: (dd.from_pandas(frame(X, y), npartitions=3), y),
            "Column 'label' of X has dtype .*, which is not numeric",
        ),
        (lambda X, y: (dd.from_pandas(frame(X, y), npartitions=3)[[]], y), "without columns"),
        (lambda X, y: (dd.from_pandas(frame(X, y), npartitions=3)["x0"], y), "without columns"),
        (lambda X, y: (partitions(X, 130)[:, 0], y), "pass a 2-D Dask array"),
        (lambda X, y: (dask.delayed(X), y), "pass a 2-D Dask array"),
        (
            lambda X, y: (partitions(X, 130).map_blocks(sparse.csr_array), y),
            "The chunks of X are of type csr_array",
        ),
        (
            lambda X, y: (
                partitions(X, 500).map_blocks(lambda part: part[:-1], chunks=((500, 500), P)),
                y,
            ),
            "were counted",
        ),
        (
            lambda X, y: (partitions(X.astype(complex), 130), y),
            "dtype complex128, which is not numeric",
        ),
    ],
)
def test_errors_for_invalid_collections(spoil, message):
    fitted = LPClassifier(NOISE).fit(*problem())
    before = dict(vars(fitted))
    with pytest.raises((ValueError, RuntimeError), match=message):
        fitted.fit(*spoil(*problem()))
    assert vars(fitted) == before


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda X, y: (partitions(broken(X), 130), y),
            "added: of partition 3, column 3 of its row 110 is nan",
        ),
        (
            lambda X, y: (partitions(X, 130), da.from_array(y[:-1])),
            r"1000 rows but labels or weights of shape \(999,\)",
        ),
        (
            lambda X, y: (partitions(X, 130), y, y[:-1]),
            r"1000 rows but labels or weights of shape \(999,\)",
        ),
        (
            lambda X, y: (
                dd.from_pandas(frame(X, y), npartitions=3)[NAMES],
                dd.from_pandas(frame(X, y).label, 2),
            ),
            "X has 3 partitions but its labels or weights have 2",
        ),
        (
            lambda X, y: (
                dd.from_pandas(frame(X, y), npartitions=3)[NAMES],
                dd.from_pandas(frame(X, y).label[1:], npartitions=3),
            ),
            "rows but y of shape",
        ),
        (
            lambda X, y: (partitions(X, 130), np.where(y > 0, np.nan, y)),
            "labels are fractions or missing",
        ),
    ],
)
def test_errors_for_chunks_of_invalid_collections(spoil, message):
    X, labels = problem()
    with pytest.raises(ValueError, match=message):
        Moments.from_chunks([spoil(X, labels)])


def test_a_progress_bar_shows_every_pass():
    X, labels = problem()
    shown = StringIO()
    with ProgressBar(out=shown):
        LPClassifier(NOISE).fit(partitions(X, 130), labels)
    assert shown.getvalue().count("100% Completed") >= 8


def test_dask_is_imported_only_if_it_is_used():
    code = (
        "import sys, unflip; unflip.LPClassifier(None).fit([[0.], [1.], [2.]], [0, 1, 1]); "
        "print('dask' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


def test_passes_are_logged(caplog):
    X, labels = problem()
    with caplog.at_level(logging.INFO, logger="unflip"):
        LPClassifier(NOISE).fit(partitions(X, 130), labels)
    passes = [
        line for line in caplog.messages if line.startswith("Rows ") and "in 3 tasks: " in line
    ]
    assert len(passes) >= 7


def test_empty_last_partitions_are_ignored():
    X = np.arange(600.0).reshape(300, 2)
    y = np.arange(300) % 2
    table = pandas.DataFrame(X).assign(label=y)
    rows = dd.concat(
        [dd.from_pandas(table, npartitions=2), dd.from_pandas(table[:0], npartitions=1)]
    )
    actual = Moments.from_chunks([(rows[[0, 1]], rows["label"])])
    np.testing.assert_allclose(actual.scatter, Moments.from_chunks([(X, y)]).scatter, rtol=1e-12)
