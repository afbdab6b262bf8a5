"""How fits of Dask rows scale with workers: the same fit by one process, by one worker and by two.

Parquet files of single-precision rows are made in a temporary folder and removed in the end. Fits are default ones with
the noise rates given, of a DataFrame that is read from the files again in every pass. Workers are processes of one
thread; "one process" is the same code under Dask's synchronous scheduler. Times are by the clock, so that other
programs count: the load of the machine is stored beside them. Memory is what NumPy and Python hold at most in this
process, which pages of the files and the workers' memory are no part of, per row from two sizes.
"""
# ruff: noqa: E402 (Dask would take sparse.py, which lies beside this file, for the library of that name)

import sys
from pathlib import Path

sys.path = [folder for folder in sys.path if Path(folder).resolve() != Path(__file__).resolve().parent]

import argparse
import csv
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
from unflip.parquet_rows import ParquetRows

NOISE = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1)
FULL, QUICK = (48, 5000, 512), (8, 2500, 128)  # files, rows of each, features
MEMORY_SIZES, MEMORY_FEATURES = (40_000, 80_000), 32


@dataclass(frozen=True)
class Line:
    """One fit."""

    who: str
    workers: int
    n: int
    p: int
    seconds: float
    load: float  # of the machine, over the minute before
    coef_error: float  # largest difference from the fit by one process, relative to the largest coefficient

    def __str__(self):
        return (
            f"{self.who:28s} {self.n:9,d} × {self.p}: {self.seconds:7.1f} s (load {self.load:.1f} before), "
            f"coefficients differ by {self.coef_error:.1e}"
        )


def written(folder, n_files, n_rows, p):
    """Write files of features that vary unequally, with labels of which the given shares are flipped."""
    rng = np.random.default_rng(0)
    scales = np.linspace(1, 2, p, dtype=np.float32)
    for index in range(n_files):
        y = rng.integers(2, size=n_rows)
        X = rng.standard_normal(size=(n_rows, p), dtype=np.float32) * scales
        X[:, 0] += y
        columns = {f"x{j:03d}": X[:, j] for j in range(p)}
        pq.write_table(pa.table(columns | {"label": NOISE.flip(y, rng)}), folder / f"part-{index:03d}.parquet")


def collections(folder, n_files):
    """Return rows and labels of the first files, read when they are needed."""
    table = dd.read_parquet(sorted(map(str, folder.glob("*.parquet")))[:n_files])
    return table.drop(columns="label"), table["label"]


def fitted(X, y):
    """Return a fit, the seconds that it took, and the load before."""
    load, start = os.getloadavg()[0], time.perf_counter()
    found = LPClassifier(NOISE).fit(X, y)
    return found, time.perf_counter() - start, load


def by_workers(n_workers, folder, n_files):
    """Fit on so many workers of one thread, which have read a file before, so that their start does not count."""
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        client.run(_warm, str(next(folder.glob("*.parquet"))))
        return fitted(*collections(folder, n_files))


def _warm(path):
    import pandas

    import unflip  # noqa: F401

    pandas.read_parquet(path)


def lines(folder, n_files, n_rows, p):
    """Yield a line for each fit; the first is what the others are compared with."""
    halves = n_files // 2
    with dask.config.set(scheduler="synchronous"):
        one = {n: fitted(*collections(folder, n)) for n in (n_files, halves)}
    reference = {n: found.coef_ for n, (found, _, _) in one.items()}

    def line(who, workers, n, result):
        found, seconds, load = result
        error = np.abs(found.coef_ - reference[n]).max() / np.abs(reference[n]).max()
        return Line(who, workers, n * n_rows, p, seconds, load, float(error))

    yield line("one process", 0, n_files, one[n_files])
    names = [f"x{j:03d}" for j in range(p)]
    labels = collections(folder, n_files)[1].compute(scheduler="synchronous").to_numpy()
    rows = ParquetRows(sorted(folder.glob("*.parquet")), columns=names)
    yield line("one process, ParquetRows", 0, n_files, fitted(rows, labels))
    yield line("one worker", 1, n_files, by_workers(1, folder, n_files))
    yield line("two workers", 2, n_files, by_workers(2, folder, n_files))
    yield line("one worker, half the rows", 1, halves, by_workers(1, folder, halves))


def bytes_per_row():
    """Return what this process holds at most, for each row."""
    peaks = []
    for n in MEMORY_SIZES:
        with tempfile.TemporaryDirectory() as folder:
            written(Path(folder), 4, n // 4, MEMORY_FEATURES)
            with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
                X, y = collections(Path(folder), 4)
                tracemalloc.start()
                LPClassifier(NOISE).fit(X, y)
                peaks.append(tracemalloc.get_traced_memory()[1])
                tracemalloc.stop()
    return (peaks[1] - peaks[0]) / (MEMORY_SIZES[1] - MEMORY_SIZES[0])


def main():
    """Print the lines and what follows from them, and store them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="20,000 rows of 128 features instead of 240,000 of 512")
    parser.add_argument("--out", type=Path, default=Path("results/dask_scaling.csv"))
    options = parser.parse_args()
    sizes = QUICK if options.quick else FULL
    found = []
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        written(Path(folder), *sizes)
        for line in lines(Path(folder), *sizes):
            found.append(line)
            print(line, flush=True)
    seconds = {line.who: line.seconds for line in found}
    for who in ("one process", "one process, ParquetRows", "one worker"):
        print(f"two workers against {who}: {seconds[who] / seconds['two workers']:.2f} times as fast")
    weak = seconds["one worker, half the rows"] / seconds["two workers"]
    print(f"weak scaling: half the rows on one worker take {weak:.2f} of the time of all rows on two")
    print(f"held in this process: {bytes_per_row():.0f} bytes a row")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Line)])
        writer.writeheader()
        writer.writerows(map(asdict, found))


if __name__ == "__main__":
    main()
