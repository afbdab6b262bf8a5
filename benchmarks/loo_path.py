"""What penalties, exact leave-one-out scores and fits cost beyond one Gram matrix and one eigendecomposition.

Times are ratios to that floor, `eigh(X.T @ X)` (`X @ X.T` for more features than rows) of the same rows in double
precision, in the same process and in turns. Each line has a limit, and says whether it is kept.
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
from unflip.moments import Moments
from unflip.spectrum import GramSpectrum, decompose

REGS = np.logspace(-3, 3, 50)
NOISE = NoiseModel.binary(eps_pos=0.2, eps_neg=0.2)
PATH, ESTIMATE, MIXED = "path from sums", "LPClassifier, noise estimated", ", single precision"
SCORES, FIT = "leave-one-out", "LPClassifier"
#: Most floors that each task may take, for each shape.
LIMITS = {
    (1600, 400): {PATH: 1.15, SCORES: 1.8, SCORES + MIXED: 1.45, FIT: 3.5},
    (10_000, 1000): {PATH: 1.15, SCORES: 2.2, SCORES + MIXED: 1.6},
    (100_000, 1000): {PATH: 1.15, SCORES: 3.2, SCORES + MIXED: 2.0, FIT: 5.0},
    (2000, 10_000): {SCORES: 1.1},
}
QUICK = [(1600, 400)]
SPEEDUP, SHARE, OVERHEAD = 1.7, 0.35, 1.1


@dataclass(frozen=True)
class Line:
    """One measurement: a ratio with its quartiles, and the limit that it should keep."""

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
        """PASS or MISS; empty where there is no limit."""
        if np.isnan(self.limit):
            return ""
        return "PASS" if (self.ratio >= self.limit if self.at_least else self.ratio <= self.limit) else "MISS"

    def __str__(self):
        limit = "" if np.isnan(self.limit) else f"{'≥' if self.at_least else '≤'} {self.limit:g}"
        span = f"({self.lower:.2f} to {self.upper:.2f})"
        return f"{self.n:7d} × {self.p:<6d} {self.task:40s} {self.ratio:6.2f} {span:16s} {limit:7s} {self.verdict}"


def path(X, y):
    """Fit all penalties from sums over the rows."""
    moments = Moments.from_rows(X, y, n_classes=2)
    return GramSpectrum.from_moments(moments, fit_intercept=True).solve(moments, np.array([-1.0, 1.0]), REGS)


def scores(X, targets):
    """Score every row by the fit to the others, for all penalties."""
    return decompose(X).leave_one_out(targets, REGS).scores


def tasks(n, p):
    """Return what to time, by name; the first is the floor."""
    X, y = draw(n, p)
    single, targets = X.astype(np.float32), 2.0 * y - 1
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
    """Compare all tasks of one shape with the floor, on one thread: in processor time, which is this process's own."""
    named = tasks(*shape)
    with threadpool_limits(1):
        seconds = measure(list(named.values()), n_repeats, time.process_time)
    ratios = seconds / seconds[:, :1]
    limits = LIMITS[shape]
    return [line(name, shape, ratios[:, j], limits.get(name, np.nan)) for j, name in enumerate(named) if j]


def two_threads(shape, n_repeats):
    """How much faster leave-one-out scores are on two threads than on one."""
    X, y = draw(*shape)

    def on(n_threads):
        with threadpool_limits(n_threads):
            scores(X, 2.0 * y - 1)

    seconds = measure([lambda: on(1), lambda: on(2)], n_repeats)
    return line("speed-up of two threads", shape, seconds[:, 0] / seconds[:, 1], SPEEDUP, at_least=True)


def other_namespace(shape, n_repeats):
    """Compare torch, or else the strict array-API namespace, with plain NumPy; None where neither is installed."""
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
        tried = [lambda: scores(X, targets), lambda: scores(*others)]
        seconds = measure(tried, n_repeats, time.process_time)
    return line(f"{xp.__name__} against NumPy", shape, seconds[:, 1] / seconds[:, 0], OVERHEAD)


def memory(shape):
    """Peak memory beyond the rows, as a share of theirs."""
    X, y = draw(*shape)
    peaks = {}
    for name, function in {
        SCORES: lambda: (decompose(X).path(2.0 * y - 1, REGS), scores(X, 2.0 * y - 1)),
        FIT: lambda: LPClassifier(NOISE).fit(X, y),
    }.items():
        peaks[name] = peak_memory(function) / X.nbytes
    return [line(f"memory beyond the rows, {name}", shape, [peak], SHARE) for name, peak in peaks.items()]


def lines(shapes, n_repeats):
    """Yield all lines for these shapes."""
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
    """Print the lines and store them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the smallest rows alone")
    parser.add_argument("--shape", nargs=2, type=int, action="append", help="rows and features, of those with limits")
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--out", type=Path, default=Path("results/loo_path.csv"))
    options = parser.parse_args()
    warnings.simplefilter("ignore", AssumedNoiseWarning)
    chosen = [tuple(shape) for shape in options.shape or []] or (QUICK if options.quick else list(LIMITS))

    print(f"{len(REGS)} penalties, NumPy {np.__version__}, {platform.machine()}; ratios with quartiles")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(field.name for field in fields(Line)), "verdict"])
        for found in lines(chosen, options.repeats):
            writer.writerow([*astuple(found), found.verdict])
            file.flush()
            print(found, flush=True)


if __name__ == "__main__":
    main()
