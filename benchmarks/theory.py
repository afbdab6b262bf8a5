"""Time of predictions: the closed form, one and many settings, and the other theories."""

import argparse
import csv
import platform
import time
from pathlib import Path

import numpy as np

from unflip import NoiseModel, theory

NOISE = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)


def isotropic(n_settings):
    """Return a function that predicts this many settings in one call."""
    rng = np.random.default_rng(0)
    mixture = theory.Mixture(
        mean_norm=rng.uniform(0.5, 3, n_settings),
        aspect=rng.uniform(0.1, 5, n_settings),
        noise=NOISE,
    )
    regs = rng.uniform(0.01, 10, n_settings)
    return lambda: theory.predict(mixture, reg=regs).accuracy


def logistic():
    """Return a prediction for the logistic loss, with n = p and γ = 1."""
    mixture = theory.Mixture(mean_norm=2.0, aspect=1.0, noise=NOISE)
    return lambda: theory.predict(mixture, reg=1.0, loss="logistic").accuracy


def ten_classes():
    """Return a prediction for ten classes, with a nine-dimensional orthant probability."""
    rng = np.random.default_rng(0)
    transition = 0.7 * np.eye(10) + 0.3 * rng.dirichlet(np.ones(10), size=10)
    noise = NoiseModel(transition, rng.dirichlet(5 * np.ones(10)))
    means = rng.normal(size=(10, 200)) / 5
    return lambda: (
        theory.predict_multiclass(
            means=means, n=1000, noise=noise, reg=1.0, fit_intercept=True
        ).accuracy
    )


def general(p):
    """Return a prediction for two covariances that do not commute."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(2, p, p))
    covariances = factors @ factors.transpose(0, 2, 1) / p
    mean = rng.normal(size=p) / np.sqrt(p)
    return lambda: (
        theory.predict_general(
            mean=mean, cov_neg=covariances[0], cov_pos=covariances[1], n=2 * p, noise=NOISE, reg=0.1
        ).accuracy
    )


def median_seconds(function, n_repeats):
    """Return the median time of a call, after a warm-up."""
    function()
    seconds = []
    for _ in range(n_repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def main():
    """Measure, print and store the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7, help="repetitions (default: 7)")
    parser.add_argument("--out", type=Path, default=Path("results/theory.csv"), help="CSV file")
    options = parser.parse_args()

    one, many = (median_seconds(isotropic(n), 10 * options.repeats) for n in (1, 10_000))
    rows = [
        ("isotropic, one setting", one, None),
        ("isotropic, 10,000 settings in one call", many, 100 * one),
        ("logistic, one setting", median_seconds(logistic(), options.repeats), 0.050),
        ("ten classes with accuracy", median_seconds(ten_classes(), options.repeats), 0.300),
        ("two covariances, p = 500", median_seconds(general(500), options.repeats), 1.0),
    ]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["prediction", "milliseconds", "target_milliseconds"])
        writer.writerows(
            (name, round(1e3 * s, 3), None if t is None else round(1e3 * t, 3))
            for name, s, t in rows
        )
    print(
        f"NumPy {np.__version__}, {platform.machine()}; 10,000 settings in one call take as long "
        f"as {many / one:.1f} single calls"
    )
    for name, seconds, target in rows:
        print(f"  {name:40s} {1e3 * seconds:8.2f} ms{verdict(seconds, target)}")


def verdict(seconds, target):
    """Return PASS or MISS with the target, or an empty text without one."""
    if target is None:
        return ""
    return f"  {'PASS' if seconds < target else 'MISS'} (target {1e3 * target:.1f} ms)"


if __name__ == "__main__":
    main()
