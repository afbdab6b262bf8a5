"""Time of leave-one-out and fits, relative to one Gram matrix and one eigendecomposition.

Times are ratios to this floor, `eigh(X.T @ X)` (`X @ X.T` for more features than rows) of the same
rows in double precision, in the same process and in turns. Lines with a limit say PASS or MISS.
"""

import argparse
import csv
import platform
import time
import warnings
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
from sklearn.linear_model import RidgeClassifierCV
from threadpoolctl import threadpool_limits

from timing import cleanlab_fit, draw, floor, measure, peak_memory
from unflip import LPClassifier, NoiseModel
from unflip.estimation import AssumedNoiseWarning
from unflip.ridge.moments import Moments
from unflip.ridge.spectrum import GramSpectrum, decompose

REGS = np.logspace(-3, 3, 50)
NOISE = NoiseModel.binary(eps_pos=0.2, eps_neg=0.2)
PATH = "path from sums"
SCORES = "leave-one-out"
MIXED = ", single precision"
FIT = "LPClassifier"
ESTIMATE = "LPClassifier, noise rates estimated"
#: Largest ratio to the floor, by shape and task.
LIMITS = {
    (1600, 400): {PATH: 1.15, SCORES: 1.8, SCORES + MIXED: 1.45, FIT: 3.5},
    (10_000, 1000): {PATH: 1.15, SCORES: 2.2, SCORES + MIXED: 1.6},
    (100_000, 1000): {PATH: 1.15, SCORES: 3.2, SCORES + MIXED: 2.0, FIT: 5.0},
    (2000, 10_000): {SCORES: 1.1},
}
QUICK = [(1600, 400)]
SPEEDUP = 1.7  # of two threads over one, at least
SHARE = 0.35  # memory beyond the rows over that of the rows, at most
OVERHEAD = 1.1  # of another array library over NumPy, at most


@dataclass(frozen=True)
class Line:
    """One measurement: a ratio with its quartiles, and its limit."""

    task: str
    n: int
    p: int
    ratio: float
    lower: float
    upper: float
    limit: float = np.nan
    at_least: bool = False

    @property
    def verdict(self):
        """PASS or MISS; empty without a limit."""
        if np.isnan(self.limit):
            return ""
        passed = self.ratio >= self.limit if self.at_least else self.ratio <= self.limit
        return "PASS" if passed else "MISS"

    def __str__(self):
        limit = "" if np.isnan(self.limit) else f"{'≥' if self.at_least else '≤'} {self.limit:g}"
        span = f"({self.lower:.2f} to {self.upper:.2f})"
        return (
            f"{self.n:7d} × {self.p:<6d} {self.task:40s} {self.ratio:6.2f} {span:16s} {limit:7s} "
            f"{self.verdict}"
        )


def path(X, y):
    """Fit all values of reg from sums over the rows."""
    moments = Moments.from_rows(X, y, n_classes=2)
    return GramSpectrum.from_moments(moments, fit_intercept=True).solve(
        moments, np.array([-1.0, 1.0]), REGS
    )


def scores(X, targets):
    """Return the leave-one-out scores for all values of reg."""
    return decompose(X).leave_one_out(targets, REGS).scores


def tasks(n, p):
    """Return the functions to time, by name; the first is the floor."""
    X, y = draw(n, p)
    single = X.astype(np.float32)
    targets = 2.0 * y - 1
    named = {"floor": lambda: floor(X)}
    if n > p:
        named[PATH] = lambda: path(X, y)
    named[SCORES] = lambda: scores(X, targets)
    named[SCORES + MIXED] = lambda: scores(single, targets)
    named[FIT] = lambda: LPClassifier(NOISE).fit(X, y)
    if n * p <= 10**6:
        named[ESTIMATE] = lambda: LPClassifier().fit(X, y)
        named["peer: RidgeClassifierCV"] = lambda: RidgeClassifierCV(n * REGS).fit(X, y)
        peer = cleanlab_fit(X, y)
        if peer is not None:
            named["peer: CleanLearning(LogisticRegression)"] = peer
    return named


def line(task, shape, ratios, limit=np.nan, *, at_least=False):
    """Summarise repeated ratios."""
    low, middle, high = np.percentile(ratios, [25, 50, 75])
    return Line(task, *shape, float(middle), float(low), float(high), limit, at_least)


def times(shape, n_repeats):
    """Compare all tasks of one shape with the floor, in CPU time on one thread."""
    named = tasks(*shape)
    with threadpool_limits(1):
        seconds = measure(list(named.values()), n_repeats, time.process_time)
    ratios = seconds / seconds[:, :1]
    limits = LIMITS[shape]
    return [
        line(name, shape, ratios[:, j], limits.get(name, np.nan))
        for j, name in enumerate(named)
        if j
    ]


def two_threads(shape, n_repeats):
    """Return the speed-up of leave-one-out scores by two threads."""
    X, y = draw(*shape)

    def on(n_threads):
        with threadpool_limits(n_threads):
            scores(X, 2.0 * y - 1)

    seconds = measure([lambda: on(1), lambda: on(2)], n_repeats)
    return line(
        "speed-up of two threads", shape, seconds[:, 0] / seconds[:, 1], SPEEDUP, at_least=True
    )


def other_namespace(shape, n_repeats):
    """Compare torch, or array-api-strict, with NumPy; None if neither is installed."""
    X, y = draw(*shape)
    targets = 2.0 * y - 1
    try:
        import torch as xp

        xp.set_num_threads(1)
    except ImportError:
        try:
            import array_api_strict as xp
        except ImportError:
            return None
    others = xp.asarray(X), xp.asarray(targets)
    with threadpool_limits(1):
        compared = [lambda: scores(X, targets), lambda: scores(*others)]
        seconds = measure(compared, n_repeats, time.process_time)
    return line(f"{xp.__name__} against NumPy", shape, seconds[:, 1] / seconds[:, 0], OVERHEAD)


def memory(shape):
    """Return the peak memory beyond the rows, as a multiple of the rows."""
    X, y = draw(*shape)
    peaks = {}
    for name, function in {
        SCORES: lambda: (decompose(X).path(2.0 * y - 1, REGS), scores(X, 2.0 * y - 1)),
        FIT: lambda: LPClassifier(NOISE).fit(X, y),
    }.items():
        peaks[name] = peak_memory(function) / X.nbytes
    return [
        line(f"memory beyond the rows, {name}", shape, [peak], SHARE)
        for name, peak in peaks.items()
    ]


def lines(shapes, n_repeats):
    """Yield the lines of these shapes."""
    for shape in shapes:
        yield from times(shape, n_repeats if shape in QUICK else max(n_repeats // 8, 2))
    middle = (10_000, 1000) if (10_000, 1000) in shapes else shapes[0]
    yield two_threads(middle, max(n_repeats // 4, 3))
    other = other_namespace(middle, max(n_repeats // 4, 3))
    if other is not None:
        yield other
    if (100_000, 1000) in shapes:
        yield from memory((100_000, 1000))


def main():
    """Measure, print and store the lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the smallest shape")
    parser.add_argument(
        "--shape",
        nargs=2,
        type=int,
        action="append",
        help="rows and features, one of the shapes with limits",
    )
    parser.add_argument("--repeats", type=int, default=21, help="repetitions (default: 21)")
    parser.add_argument("--out", type=Path, default=Path("results/loo_path.csv"), help="CSV file")
    options = parser.parse_args()
    warnings.simplefilter("ignore", AssumedNoiseWarning)
    chosen = [tuple(shape) for shape in options.shape or []] or (
        QUICK if options.quick else list(LIMITS)
    )

    print(
        f"{len(REGS)} values of reg, NumPy {np.__version__}, {platform.machine()}; ratios with "
        "quartiles"
    )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(field.name for field in fields(Line)), "verdict"])
        for measured in lines(chosen, options.repeats):
            writer.writerow([*astuple(measured), measured.verdict])
            file.flush()
            print(measured, flush=True)


if __name__ == "__main__":
    main()
