"""Fits on Dask workers in separate processes, some of which are killed during the fit."""

import os
import signal
import subprocess
import sys
import time
from threading import Thread

import numpy as np
import pytest

pytest.importorskip(
    "distributed", reason="workers in processes of their own need Dask's distributed"
)
import dask
from dask.distributed import Client, LocalCluster

from support.dask_rows import deadly, partitions, waiting
from support.processes import living, started, until
from unflip import LPClassifier, Moments, NoiseModel, audit
from unflip.data.engines import dask_rows, dask_tasks

NOISE = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1)
N = 1000
P = 12
PARTITIONS = 8


def cluster_of(n_workers):
    """Start workers that are processes of one thread each."""
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        memory_limit=0,
    )


@pytest.fixture(scope="module")
def workers():
    # Seconds until a killed worker counts as lost; 30 by default.
    quick = {"distributed.comm.timeouts.connect": "5s"}
    with dask.config.set(quick), cluster_of(2) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture
def client(workers, monkeypatch):
    """Return a client with two workers, and make tasks so small that both have some."""
    monkeypatch.setattr(dask_rows, "task_rows", lambda n_features: 100)
    monkeypatch.setattr("unflip.data.dense._KEPT_VALUES", 0)
    workers.wait_for_workers(2, timeout=60)
    return workers


def problem():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=N)
    X = rng.normal(size=(N, P)) * np.linspace(1, 3, P) + 3
    X[np.arange(N), y] += 2
    return X, np.where(rng.random(N) < 0.15, 1 - y, y)


def assert_same_coefficients(actual, expected):
    np.testing.assert_allclose(
        actual.coef_, expected.coef_, rtol=0, atol=1e-10 * np.abs(expected.coef_).max()
    )


def assert_idle(client):
    """Wait until workers are idle, which takes a moment after a task was cancelled."""
    for _ in range(100):
        if not any(client.processing().values()):
            return
        time.sleep(0.1)
    pytest.fail(f"tasks are still there: {client.processing()}")


@pytest.mark.parametrize(
    "at",
    [
        pytest.param(3, id="first pass", marks=pytest.mark.slow),
        pytest.param(2 * PARTITIONS + 3, id="Gram matrix", marks=pytest.mark.slow),
        pytest.param(3 * PARTITIONS + 3, id="leverages and scores", marks=pytest.mark.slow),
        pytest.param(5 * PARTITIONS + 3, id="second round"),
    ],
)
def test_a_killed_worker_does_not_change_a_fit(at, client, tmp_path):
    """The first pass finds duplicates, the second reads a sample, and so on."""
    X, labels = problem()
    expected = LPClassifier(NOISE).fit(X, labels)
    actual = LPClassifier(NOISE).fit(deadly(X, N // PARTITIONS, tmp_path, at), labels)
    assert (tmp_path / "killed").exists()
    assert_same_coefficients(actual, expected)
    np.testing.assert_allclose(actual.loo_decision_, expected.loo_decision_, rtol=0, atol=1e-9)


def test_a_killed_worker_does_not_change_moments(client, tmp_path):
    X, labels = problem()
    actual = Moments.from_chunks([(deadly(X, N // PARTITIONS, tmp_path, 3), labels)])
    assert (tmp_path / "killed").exists()
    fits = [
        LPClassifier.from_moments(moments, NOISE)
        for moments in (actual, Moments.from_chunks([(X, labels)]))
    ]
    assert_same_coefficients(*fits)


def test_predictions_and_audits_on_workers(client):
    X, labels = problem()
    rows = partitions(X, N // PARTITIONS).persist()
    fitted = LPClassifier(NOISE).fit(rows, labels)
    assert_same_coefficients(fitted, LPClassifier(NOISE).fit(X, labels))
    np.testing.assert_array_equal(fitted.predict(rows).compute(), fitted.predict(X))
    actual = audit(rows, labels, noise=NOISE)
    expected = audit(X, labels, noise=NOISE)
    assert actual.suspects.row.tolist() == expected.suspects.row.tolist()


def test_an_error_on_a_worker_is_raised_and_leaves_no_task(client):
    X, labels = problem()
    X[500, 3] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN, in row 500 and column 3"):
        LPClassifier(NOISE).fit(partitions(X, 50), labels)
    assert_idle(client)


def has_begun(folder):
    return any(folder.glob("read-*"))


def test_ctrl_c_leaves_no_task_and_the_next_fit_is_right(client, tmp_path):
    X, labels = problem()

    def press_ctrl_c():
        until(lambda: has_begun(tmp_path))
        os.kill(os.getpid(), signal.SIGINT)

    presser = Thread(target=press_ctrl_c)
    presser.start()
    # Tests in the background would ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            LPClassifier(NOISE).fit(waiting(X, 100, tmp_path), labels)
    finally:
        signal.signal(signal.SIGINT, before)
        (tmp_path / "go on").touch()
    presser.join()
    assert_idle(client)
    assert_same_coefficients(
        LPClassifier(NOISE).fit(partitions(X, 100), labels), LPClassifier(NOISE).fit(X, labels)
    )


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from dask.distributed import Client, LocalCluster
from support.dask_rows import waiting
from unflip import LPClassifier, NoiseModel
from unflip.datasets import make_mixture

if __name__ == "__main__":
    X, y = make_mixture(400, 10, mean_norm=2.0, random_state=0)
    noise = NoiseModel.binary(eps_pos=0.1, eps_neg=0.1)
    options = dict(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with LocalCluster(**options) as cluster, Client(cluster):
        LPClassifier(noise).fit(waiting(X, 100, Path(sys.argv[2])), y)
"""


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_the_program(ending, tmp_path):
    (tmp_path / "fit.py").write_text(SCRIPT)
    words = [
        sys.executable,
        "fit.py",
        os.path.join(os.path.dirname(__file__), os.pardir),
        str(tmp_path),
    ]
    process = started(words, cwd=tmp_path, start_new_session=True, stderr=subprocess.DEVNULL)
    until(lambda: has_begun(tmp_path), process)
    os.kill(process.pid, ending)
    process.wait(120)
    (tmp_path / "go on").touch()
    until(lambda: not living(process.pid))
    assert process.returncode != 0


def test_error_for_rows_that_kill_every_worker(client, monkeypatch):
    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 0)
    X, labels = problem()
    with pytest.raises(RuntimeError, match="Several Dask workers died on the same rows"):
        LPClassifier(NOISE).fit(deadly(X, 500, None, 0), labels)
    assert_idle(client)


def test_error_if_there_is_no_worker(monkeypatch):
    monkeypatch.setattr(dask_tasks, "_PATIENCE_SECONDS", 1.0)
    monkeypatch.setattr(dask_tasks, "_POLL_SECONDS", 0.2)
    X, labels = problem()
    missing = pytest.raises(RuntimeError, match="There was no Dask worker for 1 s: start workers")
    with cluster_of(0) as cluster, Client(cluster), missing:
        LPClassifier(NOISE).fit(partitions(X, 500), labels)
