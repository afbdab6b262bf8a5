"""Time of logistic fits against scikit-learn, and error of approximate leave-one-out."""

import argparse
import csv
import platform
import time
from pathlib import Path

import numpy as np
import sklearn
from scipy.linalg import helmert
from sklearn.linear_model import LogisticRegression

from unflip.losses import LOGISTIC, SoftmaxLoss
from unflip.ridge.solvers import ConvexFits
from unflip.ridge.spectrum import decompose

TARGET = 1.2  # times scikit-learn's time
FLIPPED = 0.2  # share of labels drawn at random
#: Standard deviation of the last principal direction; the first has 1.
FEATURES = {"isotropic": 1.0, "correlated": 0.03}


def draw(n, p, n_classes, smallest, rng):
    """Draw rows of overlapping classes, and labels of which a fifth is drawn at random."""
    codes = rng.integers(n_classes, size=n)
    rotation = np.linalg.qr(rng.normal(size=(p, p)))[0]
    X = rng.normal(size=(n, p)) * np.geomspace(1, smallest, p) @ rotation
    X += rng.normal(size=(n_classes, p))[codes] * (1.5 / np.sqrt(p))
    return X, np.where(rng.random(n) < FLIPPED, rng.integers(n_classes, size=n), codes)


def loss_and_targets(codes, n_classes):
    """Return the loss and its naive targets, the observed labels."""
    if n_classes == 2:
        return LOGISTIC, 2.0 * codes - 1
    return SoftmaxLoss, np.eye(n_classes)[codes] @ helmert(n_classes).T


def same_gradient(spectrum, loss, targets, reg, gradient):
    """Return the tolerance at which our largest gradient entry is below this one."""
    tolerance = gradient
    while (
        ConvexFits(spectrum, loss, tolerance=tolerance).fit(targets, [reg]).gradient[0] > gradient
    ):
        tolerance /= 2
    return tolerance


def tasks(X, codes, n_classes, reg, gradient):
    """Return the functions to time, by name; the first is scikit-learn."""
    loss, targets = loss_and_targets(codes, n_classes)
    decomposed = decompose(X)
    tolerance = same_gradient(decomposed, loss, targets, reg, gradient)

    def peer():
        model = LogisticRegression(
            C=1 / (2 * len(X) * reg), tol=gradient, max_iter=10_000, solver="lbfgs"
        )
        return model.fit(X, codes)

    def path(spectrum, **options):
        fits = ConvexFits(spectrum, loss, tolerance=tolerance, **options)
        fits.path(targets, [reg])
        return fits

    def all_scores(**options):
        return path(decompose(X), **options).leave_one_out(targets, [reg]).corrected_scores

    return {
        "scikit-learn, lbfgs": peer,
        "decompose": lambda: decompose(X),
        "fit, decomposition given": lambda: path(decomposed),
        "decompose and fit": lambda: path(decompose(X)),
        "both and leave-one-out, common": lambda: all_scores(largest_exact=0),
        "both and leave-one-out, exact step": all_scores,
    }


def measure(functions, n_repeats):
    """Time the functions in turns, after a warm-up; return seconds, (repeats, functions)."""
    for function in functions:
        function()
    seconds = np.empty((n_repeats, len(functions)))
    for i in range(n_repeats):
        for j, function in enumerate(functions):
            start = time.perf_counter()
            function()
            seconds[i, j] = time.perf_counter() - start
    return seconds


def refitted(X, loss, targets, reg, leaving):
    """Return leave-one-out scores by refitting, with the nγ of all rows."""
    scores = []
    for i in leaving:
        rest = np.arange(len(X)) != i
        path = ConvexFits(decompose(X[rest]), loss).path(
            targets[rest], [reg * len(X) / (len(X) - 1)]
        )
        scores.append(X[i] @ path.coef[:, 0] + path.intercept[0])
    return np.array(scores)


def leave_one_out_errors(n, p, n_classes, reg, n_left_out=50):
    """Return relative errors of fitted scores and of two approximate leave-one-out scores.

    Errors are root mean squares over the standard deviation of the refitted scores. The
    approximations use a common curvature, or the exact Newton step.
    """
    X, codes = draw(n, p, n_classes, 1.0, np.random.default_rng(1))
    loss, targets = loss_and_targets(codes, n_classes)
    leaving = np.arange(0, n, max(n // n_left_out, 1))
    truth = refitted(X, loss, targets, reg, leaving)
    spectrum = decompose(X)
    exact = ConvexFits(spectrum, loss).leave_one_out(targets, [reg])
    common = ConvexFits(spectrum, loss, largest_exact=0).leave_one_out(targets, [reg])
    approximations = [
        scores[leaving, 0].reshape(truth.shape)
        for scores in (exact.fitted, common.scores, exact.scores)
    ]
    return [
        float(np.sqrt(((scores - truth) ** 2).mean()) / truth.std()) for scores in approximations
    ]


def main():
    """Measure and print ratios and errors; store the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=10_000, help="rows (default: 10000)")
    parser.add_argument("--p", type=int, default=500, help="features (default: 500)")
    parser.add_argument("--reg", type=float, default=1e-3, help="regularization (default: 0.001)")
    parser.add_argument("--repeats", type=int, default=7, help="repetitions (default: 7)")
    parser.add_argument("--out", type=Path, default=Path("results/logistic.csv"), help="CSV file")
    options = parser.parse_args()

    print(
        f"n={options.n} p={options.p} reg={options.reg}, scikit-learn {sklearn.__version__}, "
        f"{platform.machine()}"
    )
    table = []
    reached = {}
    for n_classes in (2, 5):
        for kind, smallest in FEATURES.items():
            X, codes = draw(options.n, options.p, n_classes, smallest, np.random.default_rng(0))
            for gradient in (1e-4, 1e-8):
                named = tasks(X, codes, n_classes, options.reg, gradient)
                seconds = np.median(measure(list(named.values()), options.repeats), axis=0)
                print(
                    f"{n_classes} classes, {kind}, gradient {gradient:g}: scikit-learn "
                    f"{1e3 * seconds[0]:.0f} ms"
                )
                for name, median in zip(named, seconds, strict=True):
                    ratio = median / seconds[0]
                    table.append(
                        [n_classes, kind, gradient, name, round(1e3 * median, 1), round(ratio, 3)]
                    )
                    print(f"  {name:34s} {1e3 * median:8.1f} ms, ratio {ratio:6.2f}", flush=True)
                reached[n_classes, kind, gradient] = table[-3][-1]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["classes", "features", "gradient", "task", "milliseconds", "ratio"])
        writer.writerows(table)
    for setting, ratio in reached.items():
        print(f"target: decompose and fit, ratio at most {TARGET}; {setting}: {ratio:.2f}")

    print(
        "error of leave-one-out scores over their standard deviation: fitted scores, common "
        "curvature, exact Newton step"
    )
    for n, p, n_classes in [
        (200, 40, 2),
        (100, 150, 2),
        (400, 400, 2),
        (200, 40, 3),
        (400, 400, 5),
    ]:
        for reg in (0.01, 0.1, 1.0):
            not_left_out, common, exact = leave_one_out_errors(n, p, n_classes, reg)
            print(
                f"  n={n} p={p} k={n_classes} reg={reg:4g} {not_left_out:9.4f} {common:9.4f} "
                f"{exact:9.5f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
