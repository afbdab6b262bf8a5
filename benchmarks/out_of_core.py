"""Time, memory and passes of fits to rows in a file, compared with rows in memory.

A file of single-precision rows is written to a temporary folder. `LPClassifier().fit` is run on its
first n rows. Times are CPU times of one thread, without other processes and the disk. A disk adds
its reading time, once per pass. Memory is the peak of NumPy and Python, without pages of the file,
measured in a separate fit.
"""

import argparse
import csv
import tempfile
import time
import tracemalloc
import warnings
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from unflip import LPClassifier
from unflip.estimation import AssumedNoiseWarning
from unflip.plotting.style import COLOURS, INK, as_png, new_figure, set_title

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
IN_MEMORY = 100_000  # largest size that is also fitted in memory
FEATURES = 200
QUICK = 100_000  # largest size of a quick run
FLIPPED = 0.2  # share of labels drawn at random


@dataclass(frozen=True)
class Line:
    """One size of the data."""

    n: int
    p: int
    passes: float
    seconds: float
    seconds_in_memory: float  # NaN above IN_MEMORY rows
    bytes_per_row: float  # peak memory of the fit beyond the file
    megabytes: float

    def __str__(self):
        ratio = (
            f"{self.seconds / self.seconds_in_memory:6.2f}"
            if self.seconds_in_memory > 0
            else "     –"
        )
        return (
            f"{self.n:9,d} × {self.p}: {self.passes:5.2f} passes, {self.seconds:7.1f} s "
            f"({1e6 * self.seconds / self.n:5.1f} µs per row), {ratio} times the fit in memory, "
            f"{self.megabytes:7.1f} MB ({self.bytes_per_row:5.0f} bytes per row)"
        )


class Counting:
    """Rows of a file that count how many values are read."""

    def __init__(self, rows):
        self._rows = rows
        self.shape = rows.shape
        self.dtype = rows.dtype
        self.n_read = 0

    def __getitem__(self, key):
        block = self._rows[key]
        self.n_read += block.size
        return block


def written(path, n, p):
    """Write rows with features of unequal variance; return labels, a fifth drawn at random."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, p))
    scales = np.linspace(1, 2, p, dtype=np.float32)
    for start in range(0, n, 10_000):
        part = slice(start, start + 10_000)
        block = rng.standard_normal(size=(len(y[part]), p), dtype=np.float32) * scales
        block[:, 0] += y[part]
        rows[part] = block
    rows.flush()
    return np.where(rng.random(n) < FLIPPED, rng.integers(2, size=n), y)


def seconds(rows, labels):
    """Fit, and return the CPU time."""
    start = time.process_time()
    LPClassifier().fit(rows, labels)
    return time.process_time() - start


def peak(rows, labels):
    """Fit, and return the peak memory in bytes."""
    tracemalloc.start()
    LPClassifier().fit(rows, labels)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def lines(path, labels, sizes):
    """Yield a line for each size."""
    for n in sizes:
        stored = np.load(path, mmap_mode="r")[:n]
        counting = Counting(stored)
        spent = seconds(counting, labels[:n])
        held = seconds(np.array(stored), labels[:n]) if n <= IN_MEMORY else np.nan
        most = peak(stored, labels[:n])
        yield Line(
            n, stored.shape[1], counting.n_read / stored.size, spent, held, most / n, most / 1e6
        )


def draw(results, path):
    """Plot time and memory against the number of rows, with lines of slope one."""
    figure, (left, right) = new_figure(7.4, 3.0, 1, 2)
    sizes = np.array([line.n for line in results])
    for axes, name, title in (
        (left, "seconds", "CPU time (s)"),
        (right, "megabytes", "memory beyond the file (MB)"),
    ):
        values = np.array([getattr(line, name) for line in results])
        axes.loglog(
            sizes,
            values[-1] * sizes / sizes[-1],
            color=INK,
            linewidth=0.8,
            linestyle="--",
            label="∝ rows",
        )
        axes.loglog(sizes, values, color=COLOURS["unbiased"], marker="s", label="rows in a file")
        set_title(axes, title)
        axes.set_xlabel("rows")
    held = np.array([line.seconds_in_memory for line in results])
    left.loglog(
        sizes,
        held,
        color=COLOURS["naive"],
        marker="o",
        linestyle="none",
        fillstyle="none",
        label="in memory",
    )
    right.loglog(
        sizes,
        [4e-6 * line.n * line.p for line in results],
        color=COLOURS["oracle"],
        label="the file itself",
    )
    for axes in (left, right):
        axes.legend(frameon=False, fontsize=9)
    path.write_bytes(as_png(figure))


def stored_lines(path):
    """Read the lines of an earlier run."""
    with path.open(newline="") as file:
        return [
            Line(int(row.pop("n")), int(row.pop("p")), *map(float, row.values()))
            for row in csv.DictReader(file)
        ]


def main():
    """Measure and store the lines, or read stored ones; print and draw them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 100,000 rows (80 MB)")
    parser.add_argument(
        "--out", type=Path, default=Path("results/out_of_core.csv"), help="CSV file"
    )
    parser.add_argument(
        "--stored", action="store_true", help="print and draw stored results, measure nothing"
    )
    parser.add_argument(
        "--picture", type=Path, help="file of the figure, such as docs/images/out_of_core.png"
    )
    options = parser.parse_args()
    if options.stored:
        results = stored_lines(options.out)
        print(*results, sep="\n")
    else:
        results = measured([n for n in SIZES if not options.quick or n <= QUICK])
        store(results, options.out)
    if options.picture is not None:
        draw(results, options.picture)


def measured(sizes):
    """Write the file, print a line for each size and return the lines."""
    warnings.simplefilter("ignore", AssumedNoiseWarning)
    results = []
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        path = Path(folder) / "rows.npy"
        labels = written(path, sizes[-1], FEATURES)
        for line in lines(path, labels, sizes):
            results.append(line)
            print(line, flush=True)
    return results


def store(results, path):
    """Write the lines to a CSV file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Line)])
        writer.writeheader()
        writer.writerows(map(asdict, results))


if __name__ == "__main__":
    main()
