"""Time and memory of this library and its peers, by rows, features and classes.

Times are compared with the floor: one Gram matrix and one eigendecomposition of the same rows. All
methods run in one process on the same data, in turns: CPU time on one thread, medians of five with
quartiles. A method that takes longer than ``--patience`` seconds runs once, and not at all on
larger data. Features are independent ("well"), or correlated with a condition number of 10⁶
("ill"). cleanlab is included if installed (`pip install "unflip[benchmark]"`).
"""

import argparse
import platform
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
)
from threadpoolctl import threadpool_limits

import speed_classes
from timing import cleanlab_fit, draw, floor, measure, peak_memory
from unflip import LPClassifier, NoiseModel
from unflip.plotting.style import as_png, legend_below, new_figure, set_title
from unflip.ridge.moments import Moments
from unflip.ridge.spectrum import GramSpectrum, decompose

REGS = np.logspace(-3, 3, 50)
CONDITIONS = {"well": 1.0, "ill": 1e6}
SHAPES = [(1600, 400), (10_000, 1000), (2000, 10_000), (100_000, 1000)]
GROWING_N = [(n, 200) for n in (1000, 3000, 10_000, 30_000, 100_000)]
GROWING_P = [(2000, p) for p in (100, 300, 1000, 3000, 10_000)]
# Names of the methods in tables.
FLOOR = "floor"
PATH = "50 γ from sums"
SCORES = "50 γ, exact leave-one-out"
SINGLE = "50 γ, leave-one-out, float32"
GIVEN = "LPClassifier, noise rates given"
DEFAULT = "LPClassifier"
OURS = [PATH, SCORES, SINGLE, GIVEN, DEFAULT]
RIDGE_CV = "RidgeClassifierCV, 50 γ"
LOGISTIC = "LogisticRegression"
CLEANLAB = "CleanLearning(LogisticRegression)"
#: Methods in the figures, in colours that are safe for colour blindness.
DRAWN = {
    FLOOR: "#9A9A9A",
    SCORES: "#009E73",
    DEFAULT: "#000000",
    RIDGE_CV: "#D55E00",
    LOGISTIC: "#56B4E9",
    "LogisticRegressionCV, 10 C": "#0072B2",
    CLEANLAB: "#CC79A7",
}


def methods(X, y):
    """Return the functions to time, by name."""
    n, p = X.shape
    single = X.astype(np.float32)
    targets = 2.0 * y - 1
    alpha = float(n)
    functions = {FLOOR: lambda: floor(X)}
    if n > p:
        functions[PATH] = lambda: path(X, y)
    functions |= {
        SCORES: lambda: decompose(X).leave_one_out(targets, REGS).scores,
        SINGLE: lambda: decompose(single).leave_one_out(targets, REGS).scores,
        GIVEN: lambda: LPClassifier(NoiseModel.binary(eps_pos=0.2, eps_neg=0.2)).fit(X, y),
        DEFAULT: lambda: LPClassifier().fit(X, y),
        "Ridge, one γ": lambda: Ridge(alpha).fit(X, targets),
        "RidgeClassifier, one γ": lambda: RidgeClassifier(alpha).fit(X, y),
        RIDGE_CV: lambda: RidgeClassifierCV(n * REGS).fit(X, y),
        LOGISTIC: lambda: LogisticRegression().fit(X, y),
        "LogisticRegressionCV, 10 C": lambda: LogisticRegressionCV(Cs=10, cv=5).fit(X, y),
    }
    peer = cleanlab_fit(X, y)
    return functions if peer is None else functions | {CLEANLAB: peer}


def path(X, y):
    """Fit all values of reg from sums over the rows."""
    moments = Moments.from_rows(X, y, n_classes=2)
    return GramSpectrum.from_moments(moments, fit_intercept=True).solve(
        moments, np.array([-1.0, 1.0]), REGS
    )


def compared(features, shape, patience, given_up):
    """Time all methods on one data set; add those slower than `patience` to `given_up`."""
    X, y = draw(*shape, CONDITIONS[features])
    named = {name: function for name, function in methods(X, y).items() if name not in given_up}
    with threadpool_limits(1):
        once = {name: seconds_of(function) for name, function in named.items()}
        quick = [name for name in named if once[name] <= patience]
        turns = measure([named[name] for name in quick], 5, time.process_time)
    given_up.update(name for name in named if once[name] > patience)
    seconds = {
        name: turns[:, quick.index(name)] if name in quick else np.array([once[name]])
        for name in named
    }
    base = np.median(seconds[FLOOR])
    lines = []
    for name, values in seconds.items():
        low, middle, high = np.percentile(values, [25, 50, 75])
        memory = peak_memory(named[name]) / X.nbytes if name in quick else np.nan
        measured = (len(values), middle, low, high, middle / base, memory)
        lines.append((features, *shape, name, *measured))
        print(
            f"{features:5} {shape[0]:7} × {shape[1]:<6} {name:36} {middle:9.4f} s "
            f"{middle / base:8.2f} floors ({low / base:.2f} to {high / base:.2f}), memory "
            f"{memory:6.2f} times the rows",
            flush=True,
        )
    return lines


def seconds_of(function):
    """Return the CPU time of one run."""
    start = time.process_time()
    function()
    return time.process_time() - start


def two_threads(shape, n_repeats=5):
    """Return the speed-up of two threads over one, in wall-clock time."""
    X, y = draw(*shape)
    lines = []
    for name, function in methods(X, y).items():
        if name not in (FLOOR, SCORES, GIVEN):
            continue

        def on(n_threads, function=function):
            with threadpool_limits(n_threads):
                function()

        seconds = measure([lambda on=on: on(1), lambda on=on: on(2)], n_repeats)
        low, middle, high = np.percentile(seconds[:, 0] / seconds[:, 1], [25, 50, 75])
        print(
            f"{shape[0]:7} × {shape[1]:<6} {name:36} speed-up of two threads {middle:.2f} "
            f"({low:.2f} to {high:.2f})"
        )
        lines.append((*shape, name, middle, low, high))
    return pd.DataFrame(lines, columns=["n", "p", "method", "speed_up", "lower", "upper"])


def pictures(table):
    """Draw time and memory against the number of rows and of features."""
    figure, axes = new_figure(9.5, 7.0, 2, 2)
    views = [
        ("n", GROWING_N, "cpu_seconds", "seconds"),
        ("p", GROWING_P, "cpu_seconds", "seconds"),
        ("n", GROWING_N, "memory", "memory beyond the rows / rows"),
        ("p", GROWING_P, "memory", "memory beyond the rows / rows"),
    ]
    for ax, (along, shapes, value, label) in zip(axes, views, strict=True):
        fixed = f"{shapes[0][1]} features" if along == "n" else f"{shapes[0][0]} rows"
        set_title(ax, fixed)
        for name, colour in DRAWN.items():
            part = table[(table.method == name) & (table.features == "well")].set_index(["n", "p"])
            part = part[part.index.isin(shapes)].reset_index().sort_values(along)
            ax.loglog(part[along], part[value], marker="o", color=colour, label=name)
        ax.set_xlabel("rows" if along == "n" else "features")
        ax.set_ylabel(label)
    legend_below(figure, axes[0], 4)
    (speed_classes.IMAGES / "speed.png").write_bytes(as_png(figure))


def main():
    """Measure, print, store and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="1600 × 400 only, no figures")
    parser.add_argument(
        "--patience",
        type=float,
        default=20.0,
        help="seconds above which a method runs once (default: 20)",
    )
    parser.add_argument("--out", type=Path, default=Path("results/speed.csv"), help="CSV file")
    parser.add_argument("--draw", action="store_true", help="draw the figures of stored results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # assumed noise rates, and peers that do not converge
    if options.draw:
        pictures(pd.read_csv(options.out))
        speed_classes.picture(pd.read_csv(options.out.with_name("speed_growth.csv")))
        return
    print(
        f"NumPy {np.__version__}, {platform.machine()}, {platform.python_implementation()} "
        f"{platform.python_version()}"
    )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    columns = [
        "features",
        "n",
        "p",
        "method",
        "repeats",
        "cpu_seconds",
        "lower",
        "upper",
        "floors",
        "memory",
    ]
    groups = [SHAPES[:1]] if options.quick else [SHAPES, GROWING_N, GROWING_P]
    lines = []
    for features in CONDITIONS:
        for shapes in groups[: 1 if features == "ill" else None]:
            given_up = set()
            for shape in shapes:
                lines += compared(features, shape, options.patience, given_up)
                pd.DataFrame(lines, columns=columns).to_csv(options.out, index=False)
    threads = two_threads(SHAPES[0] if options.quick else SHAPES[1])
    threads.to_csv(options.out.with_name("threads.csv"), index=False)
    if not options.quick:
        pictures(pd.read_csv(options.out))
        speed_classes.main(options.out)


if __name__ == "__main__":
    main()
