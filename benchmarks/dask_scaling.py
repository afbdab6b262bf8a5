"""How fits of Dask rows scale with workers: the same fit by one process, by one worker and by two.

Parquet files of single-precision rows are made in a temporary folder and removed in the end. Fits are default ones,
with the noise rates given or estimated, of a DataFrame that is read from the files again in every pass. Workers are
processes of one thread; "one process" is the same code under Dask's synchronous scheduler. Times are by the clock, so
that other programs count: the load of the machine is stored beside them, and so are processor times, which they hardly
change. What these allow is the time of one process over that of the client and the busiest worker, one after the other.
Memory is what NumPy and Python hold at most in this process, which pages of the files and the workers' memory are no
part of, per row from two sizes.
"""
# ruff: noqa: E402 (Dask would take sparse.py, which lies beside this file, for the library of that name)

import sys
from pathlib import Path

sys.path = [folder for folder in sys.path if Path(folder).resolve() != Path(__file__).resolve().parent]

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
from unflip.centred import DenseRows
from unflip.parquet_rows import ParquetRows
from unflip.selection import candidate_regs
from unflip.spectrum import decompose

MEMORY = {"MALLOC_MMAP_THRESHOLD_": 2**25, "MALLOC_TRIM_THRESHOLD_": 2**28}  # workers keep memory that they use again
FULL, QUICK = (48, 5000, 512), (8, 10_000, 64)  # files, rows of each, features
MEMORY_SIZES, MEMORY_FEATURES = (40_000, 80_000), 32


@dataclass(frozen=True)
class Line:
    """One fit."""

    who: str
    workers: int
    n: int
    p: int
    seconds: float
    in_passes: float  # seconds of them that passes over the rows took; the rest is this process's own
    own: float  # processor seconds of this process, the scheduler among them
    busiest: float  # processor seconds of the busiest worker
    load: float  # of the machine, over the minute before
    coef_error: float  # largest difference from the fit by one process, relative to the largest coefficient

    def __str__(self):
        return (
            f"{self.who:28s} {self.n:9,d} × {self.p}: {self.seconds:7.1f} s, {self.in_passes:.1f} s of them in passes; "
            f"processor {self.own:.1f} s here and {self.busiest:.1f} s in the busiest worker "
            f"(load {self.load:.1f} before), coefficients differ by {self.coef_error:.1e}"
        )


def noise_of(k):
    """Flips of two classes at unequal rates, or 30% of the labels of more drawn anew."""
    return NoiseModel.binary(eps_pos=0.2, eps_neg=0.1) if k == 2 else NoiseModel(0.7 * np.eye(k) + 0.3 / k)


def written(folder, n_files, n_rows, p, k=2):
    """Write files of features that vary unequally, with labels of which the given shares are flipped."""
    rng, noise = np.random.default_rng(0), noise_of(k)
    scales = np.linspace(1, 2, p, dtype=np.float32)
    for index in range(n_files):
        y = rng.integers(k, size=n_rows)
        X = rng.standard_normal(size=(n_rows, p), dtype=np.float32) * scales
        X[:, :k] += np.eye(k, dtype=np.float32)[y]
        columns = {f"x{j:03d}": X[:, j] for j in range(p)}
        pq.write_table(pa.table(columns | {"label": noise.flip(y, rng)}), folder / f"part-{index:03d}.parquet")


def collections(folder, n_files, persisted=False):
    """Return rows and labels of the first files, read when they are needed or held by those who walk them."""
    table = dd.read_parquet(sorted(map(str, folder.glob("*.parquet")))[:n_files])
    if persisted:
        table = table.persist()
        len(table)  # waits until it is there
    return table.drop(columns="label"), table["label"]


class Passes(logging.Handler):
    """What the engine logs: seconds of every pass."""

    def __init__(self):
        super().__init__()
        self.seconds = []

    def emit(self, record):
        """Keep the seconds."""
        self.seconds.append(record.args[1])


def fitted(X, y, noise, client=None):
    """Return a fit and what it took: seconds, those in passes, processor times here and of a worker, the load."""
    passes, log = Passes(), logging.getLogger("unflip")
    log.addHandler(passes)
    log.setLevel(logging.INFO)
    load, own, others, start = os.getloadavg()[0], time.process_time(), processor_times(client), time.perf_counter()
    found = LPClassifier(noise).fit(X, y)
    seconds, own = time.perf_counter() - start, time.process_time() - own
    busiest = max((now - others[name] for name, now in processor_times(client).items()), default=0.0)
    log.removeHandler(passes)
    return found, (seconds, sum(passes.seconds), own, busiest, load)


def processor_times(client):
    """Return the processor time of each worker."""
    return {} if client is None else client.run(time.process_time)


def by_workers(n_workers, folder, n_files, persisted, noise):
    """Fit on so many workers of one thread, which have read a file before, so that their start does not count."""
    with (
        dask.config.set({f"distributed.nanny.pre-spawn-environ.{name}": value for name, value in MEMORY.items()}),
        LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        client.run(_warm, str(next(folder.glob("*.parquet"))))
        return fitted(*collections(folder, n_files, persisted), noise, client)


def _warm(path):
    import pandas

    import unflip  # noqa: F401 - importing it is what is wanted

    pandas.read_parquet(path)


def lines(folder, n_files, n_rows, p, persisted, noise):
    """Yield a line for each fit; the first is what the others are compared with."""
    halves = n_files // 2
    with dask.config.set(scheduler="synchronous"):
        one = {n: fitted(*collections(folder, n, persisted), noise) for n in (n_files, halves)}
    reference = {n: found.coef_ for n, (found, _) in one.items()}

    def line(who, workers, n, result):
        found, times = result
        error = np.abs(found.coef_ - reference[n]).max() / np.abs(reference[n]).max()
        return Line(who, workers, n * n_rows, p, *times, float(error))

    yield line("one process", 0, n_files, one[n_files])
    names = [f"x{j:03d}" for j in range(p)]
    labels = collections(folder, n_files)[1].compute(scheduler="synchronous").to_numpy()
    rows = ParquetRows(sorted(folder.glob("*.parquet")), columns=names)
    yield line("one process, ParquetRows", 0, n_files, fitted(rows, labels, noise))
    yield line("one worker", 1, n_files, by_workers(1, folder, n_files, persisted, noise))
    yield line("two workers", 2, n_files, by_workers(2, folder, n_files, persisted, noise))
    yield line("one worker, half the rows", 1, halves, by_workers(1, folder, halves, persisted, noise))


def rates(p, n=20_000):
    """Yield what a thread does in a second with a task's rows in memory, and with a file of them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal(size=(n, p), dtype=np.float32) * np.linspace(1, 2, p, dtype=np.float32)
    ones = np.ones((n, 1))
    for precision, in_single in (("double", False), ("single", True)):
        spent = best_of(lambda single=in_single: DenseRows.with_sums(X, ones, in_single=single))
        yield f"Gram matrix in {precision} precision: {2e-9 * n * p**2 / spent:.1f} GFLOP/s"
    spectrum = decompose(X)
    targets, regs = rng.standard_normal(n), candidate_regs(spectrum)
    start = time.perf_counter()
    spectrum.leave_one_out_parts(targets, regs)
    spent = time.perf_counter() - start
    yield f"hat values and scores of {len(regs)} penalties: {2e-9 * n * p**2 / spent:.1f} GFLOP/s by 2np²"
    columns = rng.standard_normal((p, 1))
    spent = best_of(lambda: DenseRows.of_given(X).times(columns))
    yield f"product with a column: {1e-9 * X.nbytes / spent:.2f} GB/s"
    with tempfile.TemporaryDirectory() as folder:
        written(Path(folder), 1, 5000, p)
        path = next(Path(folder).glob("*.parquet"))
        spent = best_of(lambda: dd.read_parquet(path).compute(scheduler="synchronous").to_numpy())
    yield f"Parquet file of 5000 rows: {1e-9 * 5000 * p * 4 / spent:.2f} GB/s"


def best_of(function, n_repeats=3):
    """Return the least seconds of a few calls."""
    seconds = []
    for _ in range(n_repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def bytes_per_row():
    """Return what this process holds at most, for each row."""
    peaks = []
    for n in MEMORY_SIZES:
        with tempfile.TemporaryDirectory() as folder:
            written(Path(folder), 4, n // 4, MEMORY_FEATURES)
            with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
                X, y = collections(Path(folder), 4)
                tracemalloc.start()
                LPClassifier(noise_of(2)).fit(X, y)
                peaks.append(tracemalloc.get_traced_memory()[1])
                tracemalloc.stop()
    return (peaks[1] - peaks[0]) / (MEMORY_SIZES[1] - MEMORY_SIZES[0])


def main():
    """Print the lines and what follows from them, and store them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="80,000 rows of 64 features instead of 240,000 of 512")
    parser.add_argument("--persist", action="store_true", help="hold the rows in memory instead of reading them again")
    parser.add_argument("--classes", type=int, default=2)
    parser.add_argument("--estimate", action="store_true", help="estimate the rates instead of giving them")
    parser.add_argument("--out", type=Path, default=Path("results/dask_scaling.csv"))
    options = parser.parse_args()
    sizes = QUICK if options.quick else FULL
    found = []
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        written(Path(folder), *sizes, options.classes)
        noise = "estimate" if options.estimate else noise_of(options.classes)
        for line in lines(Path(folder), *sizes, options.persist, noise):
            found.append(line)
            print(line, flush=True)
    seconds = {line.who: line.seconds for line in found}
    for who in ("one process", "one process, ParquetRows", "one worker"):
        print(f"two workers against {who}: {seconds[who] / seconds['two workers']:.2f} times as fast")
    one, two = (next(line for line in found if line.who == who) for who in ("one process", "two workers"))
    print(f"by processor times two workers allow {one.own / (two.own + two.busiest):.2f} times one process")
    weak = seconds["one worker, half the rows"] / seconds["two workers"]
    print(f"weak scaling: half the rows on one worker take {weak:.2f} of the time of all rows on two")
    with threadpool_limits(1):
        print(*rates(sizes[2]), sep="\n")
    print(f"held in this process: {bytes_per_row():.0f} bytes a row")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Line)])
        writer.writeheader()
        writer.writerows(map(asdict, found))


if __name__ == "__main__":
    main()
