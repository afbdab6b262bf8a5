"""Time of fits and audits with several classes, by rows, features and classes.

`LPClassifier` with given noise rates, with default settings, and an audit with its printed summary
and its HTML page are compared with the floor (one Gram matrix and one eigendecomposition of the
same rows) and with cleanlab around logistic regression. CPU time on one thread, medians of runs in
one process, in turns.
"""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from timing import cleanlab_fit, floor, measure, peak_memory
from unflip import LPClassifier, NoiseModel, audit
from unflip.datasets import make_mixture
from unflip.plotting.style import as_png, legend_below, new_figure, set_title
from verdicts import verdict

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"

# Names of the tasks in tables, and units of the limits.
FLOOR = "floor"
GIVEN = "noise rates given"
DEFAULT = "default"
AUDIT = "audit, summary, page"
PRINT = "summary"
CLEANLAB = "CleanLearning"
SECOND = "seconds"


@dataclass(frozen=True)
class Case:
    """Rows to time on, and the limit of each task, relative to another task or in seconds."""

    n: int
    p: int
    k: int
    kind: str
    limits: dict

    @property
    def name(self):
        """Shape, number of classes and kind of features."""
        return f"{self.n:,} × {self.p}, {self.k} classes, {self.kind}"


FEW = {GIVEN: (2.8, FLOOR), DEFAULT: (3.5, FLOOR), AUDIT: (6, FLOOR)}
TEN = {GIVEN: (6, FLOOR), DEFAULT: (10, FLOOR), AUDIT: (15, FLOOR)}
CASES = [
    Case(1600, 400, 2, "correlated", FEW),
    Case(1600, 400, 2, "mixture", FEW | {DEFAULT: (4.5, FLOOR)}),
    Case(1600, 400, 10, "correlated", TEN),
    Case(1600, 400, 10, "mixture", TEN),
    Case(
        10_000, 768, 10, "correlated", {GIVEN: (4.5, FLOOR), DEFAULT: (6, FLOOR), AUDIT: (9, FLOOR)}
    ),
    Case(50_000, 100, 10, "correlated", {GIVEN: (0.25, CLEANLAB), DEFAULT: (0.35, CLEANLAB)}),
    Case(2000, 300, 50, "correlated", {GIVEN: (2, SECOND), DEFAULT: (1.5, SECOND)}),
    Case(700, 124, 10, "correlated", {GIVEN: (1, CLEANLAB), DEFAULT: (1.5, CLEANLAB)}),
    Case(
        5000,
        50,
        10,
        "correlated",
        {GIVEN: (1, CLEANLAB), DEFAULT: (1.5, CLEANLAB), AUDIT: (3, CLEANLAB)},
    ),
    Case(1200, 617, 26, "correlated", {DEFAULT: (2, SECOND), PRINT: (0.1, SECOND)}),
    Case(2000, 50, 40, "correlated", {DEFAULT: (2, SECOND), PRINT: (0.1, SECOND)}),
    Case(1000, 500, 2, "mixture", {GIVEN: (3, FLOOR), DEFAULT: (8, FLOOR)}),
    Case(1600, 400, 2, "u = 1", {GIVEN: (3, FLOOR), DEFAULT: (8, FLOOR)}),
    Case(1600, 400, 2, "u = 2", {GIVEN: (3, FLOOR), DEFAULT: (8, FLOOR)}),
    Case(5000, 100, 2, "u = 1", {DEFAULT: (20, FLOOR)}),
    Case(20_000, 50, 2, "u = 1", {DEFAULT: (40, FLOOR)}),
]
LARGE = [Case(2000, 200, 1000, "correlated", {}), Case(1_000_000, 20, 10, "correlated", {})]
GROWTH = {
    "n": [(n, 100, 5) for n in (1000, 2000, 4000, 8000, 16_000)],
    "p": [(4000, p, 5) for p in (50, 100, 200, 400, 800)],
    "k": [(4000, 100, k) for k in (4, 8, 16, 32, 64)],
}


def problem(case, seed=0):
    """Return rows, labels of which 30% are drawn at random, and the noise model."""
    rng = np.random.default_rng(seed)
    if case.kind.startswith("u"):
        X, y = make_mixture(case.n, case.p, mean_norm=float(case.kind[-1]), random_state=rng)
        noise = NoiseModel.binary(eps_pos=0.3, eps_neg=0.2, pi_neg=0.5)
        return X, noise.flip(y, random_state=rng), noise
    means = rng.normal(size=(case.k, case.p))
    means *= 3 / np.linalg.norm(means, axis=1, keepdims=True)
    # The first k rows have one label each, so that every class occurs.
    y = np.append(np.arange(case.k), rng.integers(case.k, size=case.n - case.k))
    X = rng.normal(size=(case.n, case.p)) + means[y]
    if case.kind == "correlated":
        X *= np.logspace(0, -1, case.p)
    noise = NoiseModel(0.7 * np.eye(case.k) + 0.3 / case.k, np.full(case.k, 1 / case.k))
    observed = noise.flip(y, random_state=rng)
    observed[: case.k] = np.arange(case.k)
    return X, observed, noise


def tasks(X, y, noise, folder):
    """Return the functions to time, by name."""

    def audited():
        report = audit(X, y)
        str(report)
        report.to_html(folder / "page.html")

    named = {
        FLOOR: lambda: floor(X),
        GIVEN: lambda: LPClassifier(noise).fit(X, y),
        DEFAULT: lambda: LPClassifier().fit(X, y),
        AUDIT: audited,
    }
    peer = cleanlab_fit(X, y)
    return named if peer is None else named | {CLEANLAB: peer}


def compared(case, n_repeats=5):
    """Time all tasks on one data set; print times in floors, and PASS or MISS."""
    X, y, noise = problem(case)
    with tempfile.TemporaryDirectory() as folder:
        named = tasks(X, y, noise, Path(folder))
        turns = measure(list(named.values()), n_repeats, time.process_time)
    seconds = dict(zip(named, np.median(turns, axis=0), strict=True)) | {SECOND: 1.0}
    report = audit(X, y)
    start = time.process_time()
    str(report)
    seconds[PRINT] = time.process_time() - start
    print(f"{case.name}: floor {1e3 * seconds[FLOOR]:.1f} ms", flush=True)
    for name in (GIVEN, DEFAULT, AUDIT, PRINT, CLEANLAB):
        if name in seconds:
            print(
                f"    {name:20} {seconds[name] / seconds[FLOOR]:8.2f} floors {seconds[name]:8.3f} s"
            )
    for name, (limit, unit) in case.limits.items():
        if unit in seconds:
            verdict(
                seconds[name] <= limit * seconds[unit],
                f"{name} ≤ {limit:g} {unit}",
                f"{seconds[name] / seconds[unit]:.2f}",
            )
    ratio = seconds[DEFAULT] / seconds[GIVEN]
    verdict(ratio <= 1.6, f"{DEFAULT} ≤ 1.6 times {GIVEN}", f"{ratio:.2f}")
    return [
        (case.n, case.p, case.k, case.kind, name, spent, spent / seconds[FLOOR])
        for name, spent in seconds.items()
        if name != SECOND
    ]


def large(case):
    """Fit many rows or many classes with given noise rates; print time and memory."""
    X, y, noise = problem(case)
    start = time.process_time()
    memory = peak_memory(lambda: LPClassifier(noise).fit(X, y))
    seconds = time.process_time() - start
    limit = 4 * X.nbytes + 1e9
    reached = f"{memory / 1e9:.2f} of {limit / 1e9:.2f} GB, {seconds:.0f} s with memory traced"
    verdict(memory <= limit, f"{case.name}: memory beyond the rows ≤ 4 X + 1 GB", reached)


def fits(case):
    """Return the seconds of fits with given noise rates and with default settings."""
    X, y, noise = problem(case)
    functions = [lambda: LPClassifier(noise).fit(X, y), lambda: LPClassifier().fit(X, y)]
    return measure(functions, 3, time.process_time).min(axis=0)


def growth():
    """Time fits of growing size; return the table and the log-log slopes."""
    lines = []
    for along, shapes in GROWTH.items():
        for shape in shapes:
            given_seconds, default_seconds = fits(Case(*shape, "correlated", {}))
            lines.append((along, *shape, GIVEN, given_seconds))
            lines.append((along, *shape, DEFAULT, default_seconds))
    table = pd.DataFrame(lines, columns=["along", "n", "p", "k", "method", "cpu_seconds"])
    for (along, method), part in table.groupby(["along", "method"], sort=False):
        last = part.iloc[-2:]
        slope = np.diff(np.log(last.cpu_seconds)) / np.diff(np.log(last[along]))
        overall = np.polyfit(np.log(part[along]), np.log(part.cpu_seconds), 1)[0]
        slopes = f"{overall:.2f} over all sizes, {slope[0]:.2f} between the two largest"
        if along == "k":
            verdict(overall <= 2.2, f"time against {along}, {method}: slope ≤ 2.2", slopes)
        else:
            print(f"        time against {along}, {method}: slope {slopes}")
    return table


def picture(table):
    """Draw the time of fits against the number of rows, features and classes."""
    figure, axes = new_figure(9.5, 3.6, 1, 3)
    fixed = {
        "n": "100 features, 5 classes",
        "p": "4000 rows, 5 classes",
        "k": "4000 rows, 100 features",
    }
    names = {"n": "rows", "p": "features", "k": "classes"}
    for ax, (along, part) in zip(axes, table.groupby("along", sort=False), strict=True):
        set_title(ax, fixed[along])
        for (method, line), colour in zip(
            part.groupby("method", sort=False), ("#009E73", "#000000"), strict=True
        ):
            ax.loglog(
                line[along],
                line.cpu_seconds,
                marker="o",
                color=colour,
                label=f"LPClassifier, {method}",
            )
        sizes = part[along].unique()
        ax.minorticks_off()
        ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
        ax.set_yticks([0.03, 0.1, 0.3, 1, 3], ["0.03", "0.1", "0.3", "1", "3"])
        ax.set_ylim(0.025, 5)
        ax.set_xlabel(names[along])
        ax.set_ylabel("seconds")
    legend_below(figure, axes[0], 2)
    (IMAGES / "speed_growth.png").write_bytes(as_png(figure))


def main(out):
    """Measure, print, store and draw."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1):
        lines = [line for case in CASES for line in compared(case)]
        columns = ["n", "p", "k", "kind", "method", "cpu_seconds", "floors"]
        pd.DataFrame(lines, columns=columns).to_csv(out.with_name("speed_classes.csv"), index=False)
        for case in LARGE:
            large(case)
        table = growth()
        table.to_csv(out.with_name("speed_growth.csv"), index=False)
    picture(table)
