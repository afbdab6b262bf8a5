"""Scaling of fits on Dask: the same fit by one process, by one worker and by two.

Parquet files of single-precision rows are written to a temporary folder. Fits use default settings,
with noise rates given or estimated, on a DataFrame that is read again in every pass. Workers are
processes with one thread. "One process" is the same code with Dask's synchronous scheduler.

Times are wall-clock times, so other programs affect them: the load of the machine and CPU times are
stored as well. The speed-up that CPU times allow is the time of one process over the sum of the
client and the busiest worker. Memory is the peak of NumPy and Python in the client, without the
files and the workers, per row from two sizes.
"""
# ruff: noqa: E402 (Dask would import sparse.py of this folder instead of the library sparse)

import sys
from pathlib import Path

sys.path = [
    folder for folder in sys.path if Path(folder).resolve() != Path(__file__).resolve().parent
]

import argparse
import csv
import logging
import os
import tempfile
import time
import tracemalloc
from dataclasses import asdict, dataclass, fields

import dask
import dask.dataframe as dd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from dask.distributed import Client, LocalCluster
from threadpoolctl import threadpool_limits

from unflip import LPClassifier, NoiseModel
from unflip.data.dense import DenseRows
from unflip.data.parquet import ParquetRows
from unflip.ridge.selection import candidate_regs
from unflip.ridge.spectrum import decompose

# Allocator settings of the workers: they keep freed memory.
MEMORY = {"MALLOC_MMAP_THRESHOLD_": 2**25, "MALLOC_TRIM_THRESHOLD_": 2**28}
FULL = (48, 5000, 512)  # files, rows per file, features
QUICK = (8, 10_000, 64)
MEMORY_SIZES = (40_000, 80_000)  # rows of the two fits that measure memory per row
MEMORY_FEATURES = 32


@dataclass(frozen=True)
class Line:
    """One fit."""

    who: str
    workers: int
    n: int
    p: int
    seconds: float
    in_passes: float  # seconds in passes over the rows; the client needs the rest
    own: float  # CPU seconds of this process, including the scheduler
    busiest: float  # CPU seconds of the busiest worker
    load: float  # load of the machine over the minute before
    coef_error: float  # largest difference from one process, relative to the largest coefficient

    def __str__(self):
        return (
            f"{self.who:28s} {self.n:9,d} × {self.p}: {self.seconds:7.1f} s, {self.in_passes:.1f} "
            f"s in passes; CPU time {self.own:.1f} s of the client, {self.busiest:.1f} s of the "
            f"busiest worker (load before: {self.load:.1f}); coefficients differ by "
            f"{self.coef_error:.1e}"
        )


def noise_of(k):
    """Return unequal noise rates for two classes, or 30% uniform noise for more."""
    return (
        NoiseModel.binary(eps_pos=0.2, eps_neg=0.1)
        if k == 2
        else NoiseModel(0.7 * np.eye(k) + 0.3 / k)
    )


def written(folder, n_files, n_rows, p, k=2):
    """Write Parquet files with features of unequal variance and noisy labels."""
    rng = np.random.default_rng(0)
    noise = noise_of(k)
    scales = np.linspace(1, 2, p, dtype=np.float32)
    for index in range(n_files):
        y = rng.integers(k, size=n_rows)
        X = rng.standard_normal(size=(n_rows, p), dtype=np.float32) * scales
        X[:, :k] += np.eye(k, dtype=np.float32)[y]
        columns = {f"x{j:03d}": X[:, j] for j in range(p)}
        pq.write_table(
            pa.table(columns | {"label": noise.flip(y, rng)}), folder / f"part-{index:03d}.parquet"
        )


def collections(folder, n_files, persisted=False):
    """Return rows and labels of the first files, read on demand or persisted."""
    table = dd.read_parquet(sorted(map(str, folder.glob("*.parquet")))[:n_files])
    if persisted:
        table = table.persist()
        len(table)  # waits until it is loaded
    return table.drop(columns="label"), table["label"]


class Passes(logging.Handler):
    """Log handler that collects the seconds of every pass."""

    def __init__(self):
        super().__init__()
        self.seconds = []

    def emit(self, record):
        """Store the seconds of a log record."""
        self.seconds.append(record.args[1])


def fitted(X, y, noise, client=None):
    """Fit; return the classifier, and (seconds, in passes, own CPU, busiest CPU, load)."""
    passes = Passes()
    log = logging.getLogger("unflip")
    log.addHandler(passes)
    log.setLevel(logging.INFO)
    load = os.getloadavg()[0]
    own_before = time.process_time()
    before = cpu_times(client)
    start = time.perf_counter()
    classifier = LPClassifier(noise).fit(X, y)
    seconds = time.perf_counter() - start
    own = time.process_time() - own_before
    busiest = max((now - before[name] for name, now in cpu_times(client).items()), default=0.0)
    log.removeHandler(passes)
    return classifier, (seconds, sum(passes.seconds), own, busiest, load)


def cpu_times(client):
    """Return the CPU time of each worker."""
    return {} if client is None else client.run(time.process_time)


def by_workers(n_workers, folder, n_files, persisted, noise):
    """Fit on workers with one thread; they read a file first, so their start does not count."""
    with (
        dask.config.set(
            {f"distributed.nanny.pre-spawn-environ.{name}": value for name, value in MEMORY.items()}
        ),
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        client.run(_warm, str(next(folder.glob("*.parquet"))))
        return fitted(*collections(folder, n_files, persisted), noise, client)


def _warm(path):
    import pandas

    import unflip  # noqa: F401 - imported for its side effect

    pandas.read_parquet(path)


def lines(folder, n_files, n_rows, p, persisted, noise):
    """Yield a line for each fit; the others are compared with the first."""
    halves = n_files // 2
    with dask.config.set(scheduler="synchronous"):
        one = {n: fitted(*collections(folder, n, persisted), noise) for n in (n_files, halves)}
    reference = {n: classifier.coef_ for n, (classifier, _) in one.items()}

    def line(who, workers, n, result):
        classifier, times = result
        error = np.abs(classifier.coef_ - reference[n]).max() / np.abs(reference[n]).max()
        return Line(who, workers, n * n_rows, p, *times, float(error))

    yield line("one process", 0, n_files, one[n_files])
    names = [f"x{j:03d}" for j in range(p)]
    labels = collections(folder, n_files)[1].compute(scheduler="synchronous").to_numpy()
    rows = ParquetRows(sorted(folder.glob("*.parquet")), columns=names)
    yield line("one process, ParquetRows", 0, n_files, fitted(rows, labels, noise))
    yield line("one worker", 1, n_files, by_workers(1, folder, n_files, persisted, noise))
    yield line("two workers", 2, n_files, by_workers(2, folder, n_files, persisted, noise))
    yield line(
        "one worker, half the rows", 1, halves, by_workers(1, folder, halves, persisted, noise)
    )


def rates(p, n=20_000):
    """Yield the rates of one thread: with rows in memory, and with a Parquet file."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal(size=(n, p), dtype=np.float32) * np.linspace(1, 2, p, dtype=np.float32)
    ones = np.ones((n, 1))
    for precision, in_single in (("double", False), ("single", True)):
        spent = best_of(lambda single=in_single: DenseRows.with_sums(X, ones, in_single=single))
        yield f"Gram matrix in {precision} precision: {2e-9 * n * p**2 / spent:.1f} GFLOP/s"
    spectrum = decompose(X)
    targets = rng.standard_normal(n)
    regs = candidate_regs(spectrum)
    start = time.perf_counter()
    spectrum.leave_one_out_parts(targets, regs)
    spent = time.perf_counter() - start
    rate = 2e-9 * n * p**2 / spent
    yield f"leverages and scores, {len(regs)} values of reg: {rate:.1f} GFLOP/s by 2np²"
    columns = rng.standard_normal((p, 1))
    spent = best_of(lambda: DenseRows.uncentred(X).times(columns))
    yield f"product with a column: {1e-9 * X.nbytes / spent:.2f} GB/s"
    with tempfile.TemporaryDirectory() as folder:
        written(Path(folder), 1, 5000, p)
        path = next(Path(folder).glob("*.parquet"))
        spent = best_of(lambda: dd.read_parquet(path).compute(scheduler="synchronous").to_numpy())
    yield f"Parquet file of 5000 rows: {1e-9 * 5000 * p * 4 / spent:.2f} GB/s"


def best_of(function, n_repeats=3):
    """Return the shortest time of a few calls, in seconds."""
    seconds = []
    for _ in range(n_repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def bytes_per_row():
    """Return the peak memory of this process in bytes per row."""
    peaks = []
    for n in MEMORY_SIZES:
        with tempfile.TemporaryDirectory() as folder:
            written(Path(folder), 4, n // 4, MEMORY_FEATURES)
            with (
                LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
                Client(cluster),
            ):
                X, y = collections(Path(folder), 4)
                tracemalloc.start()
                LPClassifier(noise_of(2)).fit(X, y)
                peaks.append(tracemalloc.get_traced_memory()[1])
                tracemalloc.stop()
    return (peaks[1] - peaks[0]) / (MEMORY_SIZES[1] - MEMORY_SIZES[0])


def main():
    """Measure, print the lines and ratios, and store the lines."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="80,000 × 64 instead of 240,000 × 512")
    parser.add_argument(
        "--persist",
        action="store_true",
        help="keep the rows in memory instead of reading them in every pass",
    )
    parser.add_argument("--classes", type=int, default=2, help="number of classes (default: 2)")
    parser.add_argument(
        "--estimate", action="store_true", help="estimate the noise rates instead of passing them"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("results/dask_scaling.csv"), help="CSV file"
    )
    options = parser.parse_args()
    sizes = QUICK if options.quick else FULL
    fits = []
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        written(Path(folder), *sizes, options.classes)
        noise = "estimate" if options.estimate else noise_of(options.classes)
        for line in lines(Path(folder), *sizes, options.persist, noise):
            fits.append(line)
            print(line, flush=True)
    seconds = {line.who: line.seconds for line in fits}
    for who in ("one process", "one process, ParquetRows", "one worker"):
        print(f"two workers: {seconds[who] / seconds['two workers']:.2f} times as fast as {who}")
    by_name = {line.who: line for line in fits}
    two = by_name["two workers"]
    possible = by_name["one process"].own / (two.own + two.busiest)
    print(f"by CPU times two workers could be {possible:.2f} times as fast as one process")
    weak = seconds["one worker, half the rows"] / seconds["two workers"]
    print(
        f"weak scaling: half the rows on one worker take {weak:.2f} of the time of all rows on two"
    )
    with threadpool_limits(1):
        print(*rates(sizes[2]), sep="\n")
    print(f"memory of the client: {bytes_per_row():.0f} bytes per row")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Line)])
        writer.writeheader()
        writer.writerows(map(asdict, fits))


if __name__ == "__main__":
    main()
