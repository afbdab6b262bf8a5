"""Time and memory of sums over chunks, compared with one Gram matrix in memory.

Times are CPU times. Each chunk size is timed in turns with `X.T @ X` of the same rows, so that the
speed of the machine cancels. Longer streams repeat the same rows.
"""

import argparse
import csv
import platform
import time
import tracemalloc
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from unflip import LPClassifier, NoiseModel
from unflip.plotting.style import INK, as_png, legend_below, new_figure, set_title
from unflip.ridge.moments import Moments

P = 100
HEIGHTS = (100, 1000, 10_000, 100_000)
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7")
SOURCE = 100_000  # rows in memory
NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)


@dataclass(frozen=True)
class Line:
    """Sums over n rows in chunks of ``height`` rows."""

    n: int
    p: int
    height: int
    seconds: float
    ratio: float
    lower: float
    upper: float
    peak_mib: float


def rows(n):
    """Return rows with a mean far from the origin, and labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(min(n, SOURCE), P)) + rng.uniform(-5, 5, size=P)
    return X, rng.integers(2, size=len(X))


def chunks(X, y, n, height):
    """Yield n rows in chunks, repeating the rows if there are fewer."""
    for start in range(0, n, height):
        first = start % len(X)
        last = min(first + height, len(X), first + n - start)
        yield X[first:last], y[first:last]


def grams(X, n):
    """Return the sum of Gram matrices of n rows, repeating the rows if there are fewer."""
    return sum(
        X[: min(len(X), n - start)].T @ X[: min(len(X), n - start)] for start in range(0, n, len(X))
    )


def cpu_time(task):
    """Return the CPU time of a task in seconds."""
    start = time.process_time()
    task()
    return time.process_time() - start


def peak_mib(task):
    """Return the peak memory of a task in MiB."""
    tracemalloc.start()
    task()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def measure(n, height, repeats):
    """Time sums over chunks and Gram matrices in turns."""
    X, y = rows(n)

    def stream():
        return Moments.from_chunks(chunks(X, y, n, height), classes=[0, 1])

    loops = max(1, 10**5 // n)
    both = [
        (
            cpu_time(lambda: [stream() for _ in range(loops)]),
            cpu_time(lambda: [grams(X, n) for _ in range(loops)]),
        )
        for _ in range(repeats)
    ]
    seconds, floors = np.array(both).T / loops
    lower, ratio, upper = np.percentile(seconds / floors, [25, 50, 75])
    return Line(
        n,
        P,
        height,
        float(np.median(seconds)),
        float(ratio),
        float(lower),
        float(upper),
        peak_mib(stream),
    )


def picture(lines):
    """Draw time and memory against the number of rows."""
    figure, (times, memory) = new_figure(8.0, 3.6, 1, 2)
    for height, colour in zip(HEIGHTS, COLOURS, strict=True):
        chosen = [line for line in lines if line.height == height]
        n = [line.n for line in chosen]
        times.plot(
            n,
            [line.seconds for line in chosen],
            "o-",
            color=colour,
            label=f"chunks of {height:,} rows",
        )
        memory.plot(n, [line.peak_mib for line in chosen], "o-", color=colour)
    floor = [(line.n, line.seconds / line.ratio) for line in lines if line.height == HEIGHTS[1]]
    times.plot(*zip(*floor, strict=True), "--", color=INK, label="Gram matrix in memory")
    in_memory = [n for n, _ in floor]
    memory.plot(in_memory, [n * P * 8 / 2**20 for n in in_memory], "--", color=INK)
    for axes, title, label in ((times, "Time", "CPU seconds"), (memory, "Peak memory", "MiB")):
        axes.set(xscale="log", yscale="log", xlabel="rows", ylabel=label)
        set_title(axes, title)
    memory.annotate(
        "all rows",
        (in_memory[-1], in_memory[-1] * P * 8 / 2**20),
        (-52, -4),
        textcoords="offset points",
    )
    legend_below(figure, times, 3)
    return as_png(figure)


def main():
    """Measure, print, store and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 100,000 rows")
    parser.add_argument("--repeats", type=int, default=7, help="repetitions (default: 7)")
    parser.add_argument("--out", type=Path, default=Path("results/streaming.csv"), help="CSV file")
    parser.add_argument("--picture", type=Path, help="file of the figure")
    options = parser.parse_args()
    sizes = [10**3, 10**4, 10**5] if options.quick else [10**3, 10**4, 10**5, 10**6]
    print(
        f"{P} features, NumPy {np.__version__}, {platform.machine()}; ratios to the Gram matrix "
        "with quartiles"
    )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    results = []
    with threadpool_limits(1), options.out.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(field.name for field in fields(Line))
        for n in sizes:
            for height in HEIGHTS:
                line = measure(n, min(height, n), options.repeats)
                line = Line(n, P, height, *astuple(line)[3:])
                results.append(line)
                writer.writerow(astuple(line))
                span = f"({line.lower:.2f} to {line.upper:.2f})"
                print(
                    f"{n:8d} rows, chunks of {height:6d}: {line.seconds:8.4f} s, {line.ratio:5.2f} "
                    f"{span}, {line.peak_mib:6.1f} MiB",
                    flush=True,
                )
        X, y = rows(SOURCE)
        moments = Moments.from_chunks([(X, y)])
        seconds = min(
            cpu_time(lambda: LPClassifier.from_moments(moments, NOISE))
            for _ in range(options.repeats)
        )
        print(f"LPClassifier.from_moments: {seconds:.4f} s")
    if options.picture:
        options.picture.write_bytes(picture(results))


if __name__ == "__main__":
    main()
