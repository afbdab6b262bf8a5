"""How much 50 penalties and all exact leave-one-out scores cost beyond one Gram matrix and one eigendecomposition."""

import argparse
import csv
import platform
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import RidgeClassifierCV

from unflip import LPClassifier, NoiseModel
from unflip.estimation import AssumedNoiseWarning
from unflip.spectrum import Spectrum

N_REGS, TARGET = 50, 2.5
NOISE = NoiseModel.binary(eps_pos=0.2, eps_neg=0.2)


def tasks(n, p):
    """Return what to time, by name; the first is the floor that the others are measured against."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, p)), rng.integers(2, size=n)
    X[:, 0] += y
    t, regs = 2.0 * y - 1, np.logspace(-3, 3, N_REGS)

    def floor():
        np.linalg.eigh(X.T @ X if n > p else X @ X.T)

    def path(fit_intercept):
        spectrum = Spectrum.of(X, fit_intercept=fit_intercept)
        spectrum.path(t, regs)
        return spectrum.leave_one_out(t, regs).scores

    return {
        "floor: Gram + eigh": floor,
        "path and leave-one-out, intercept": lambda: path(True),
        "path and leave-one-out, origin": lambda: path(False),
        "LPClassifier, targets of each class": lambda: LPClassifier(NOISE, targets="optimized").fit(X, y),
        "LPClassifier, refined": lambda: LPClassifier(NOISE).fit(X, y),
        "LPClassifier, refined, noise estimated": lambda: LPClassifier().fit(X, y),
        "peer: RidgeClassifierCV": lambda: RidgeClassifierCV(n * regs).fit(X, y),
    }


def measure(functions, n_repeats):
    """Time the functions in turns; seconds of shape (repeats, functions)."""
    warnings.simplefilter("ignore", AssumedNoiseWarning)
    for function in functions:
        function()
    seconds = np.empty((n_repeats, len(functions)))
    for i in range(n_repeats):
        for j, function in enumerate(functions):
            start = time.perf_counter()
            function()
            seconds[i, j] = time.perf_counter() - start
    return seconds


def main():
    """Print the ratios and store them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1600)
    parser.add_argument("--p", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--out", type=Path, default=Path("results/loo_path.csv"))
    options = parser.parse_args()

    named = tasks(options.n, options.p)
    seconds = measure(list(named.values()), options.repeats)
    floor = np.median(seconds[:, 0])
    quartiles = np.percentile(seconds, [25, 50, 75], axis=0) / floor
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["task", "n", "p", "regs", "milliseconds", "ratio", "ratio_lower_quartile", "ratio_upper_quartile"]
        )
        for j, name in enumerate(named):
            low, middle, high = quartiles[:, j].round(3)
            writer.writerow(
                [name, options.n, options.p, N_REGS, round(1e3 * np.median(seconds[:, j]), 2), middle, low, high]
            )

    machine = f"NumPy {np.__version__}, {platform.machine()}"
    print(f"n={options.n} p={options.p}, {N_REGS} penalties, {machine}, floor {1e3 * floor:.1f} ms")
    for j, name in enumerate(named):
        low, middle, high = quartiles[:, j]
        print(f"  {name:36s} {middle:6.2f} floors  (quartiles {low:.2f} to {high:.2f})")
    reached = quartiles[1, 1:4].max()
    print(f"target: below {TARGET} floors; reached {reached:.2f}: {'yes' if reached < TARGET else 'NO'}")


if __name__ == "__main__":
    main()
