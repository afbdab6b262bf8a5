"""`reg` chosen from sums (mean leverage) against `reg` chosen by exact leave-one-out.

For each kind of rows, three errors on clean labels are compared: fits to rows with exact
leave-one-out, the same fits at the `reg` chosen from sums, and fits from sums alone. Reviews are
included if UNFLIP_DATA is set.
"""

import argparse
import csv
import os
import warnings
from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from unflip import LPClassifier, NoiseModel
from unflip.datasets import AMAZON_DOMAINS, load_amazon_reviews
from unflip.ridge.moments import Moments

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
SHAPES = ((1000, 60), (500, 100), (300, 250))
OPTIONS = (
    {"readout": "gaussian", "targets": "optimized"},
    {"readout": "plain", "targets": "unbiased"},
)
N_TEST = 8000

Shape = Callable[[np.random.Generator, np.ndarray, int], np.ndarray]


def _scaled(scale):
    """Return a function that draws isotropic rows with random lengths."""
    return lambda rng, y, p: rng.normal(size=(len(y), p)) * scale(rng, y)[:, None]


KINDS: dict[str, Shape] = {
    "isotropic": lambda rng, y, p: rng.normal(size=(len(y), p)),
    "decaying variances": lambda rng, y, p: (
        rng.normal(size=(len(y), p)) * 3 / np.sqrt(np.arange(1, p + 1))
    ),
    "counts, mean 0.1": lambda rng, y, p: (
        4.0 * rng.poisson(0.05 * (1 + 2 * rng.random(p)), size=(len(y), p))
    ),
    "rare 0/1 features": lambda rng, y, p: (
        5.0 * (rng.random((len(y), p)) < np.linspace(0.002, 0.2, p))
    ),
    "t entries, 3 degrees": lambda rng, y, p: rng.standard_t(3, size=(len(y), p)) / np.sqrt(3),
    "t rows, 5 degrees": _scaled(lambda rng, y: np.sqrt(3 / rng.chisquare(5, size=len(y)))),
    "t rows, 3 degrees": _scaled(lambda rng, y: np.sqrt(1 / rng.chisquare(3, size=len(y)))),
    "log-normal lengths": _scaled(lambda rng, y: np.exp(rng.normal(size=len(y)) - 1)),
    "one class 8 times the variance": _scaled(lambda rng, y: np.where(y == 1, 1.7, 0.6)),
}


@dataclass(frozen=True)
class Line:
    """Mean errors over draws, and the effect of the choice of reg, with its standard error."""

    kind: str
    n: int
    p: int
    readout: str
    exact: float
    penalty_from_sums: float
    all_from_sums: float
    difference: float
    difference_std: float
    decades: float  # mean distance of the two values of reg, in powers of 10


def draw(kind, n, p, seed):
    """Return training rows, true labels, test rows and test labels."""
    rng = np.random.default_rng([seed, n, p])
    mean = rng.normal(size=p)
    mean *= 1.2 / np.linalg.norm(mean)
    y = rng.integers(2, size=n + N_TEST)
    X = KINDS[kind](rng, y, p) + np.where(y == 1, 1, -1)[:, None] * mean
    return X[:n], y[:n], X[n:], y[n:]


def reviews(name, seed):
    """Return a split of the paper's reviews, standardised as in the paper."""
    X, y = load_amazon_reviews(name)
    order = np.random.default_rng(seed).permutation(len(y))
    train = order[:1600]
    test = order[1600:]
    X = StandardScaler().fit_transform(X)
    return X[train], y[train], X[test], y[test]


def compare(data, options, seed):
    """Return the three errors, and the distance of the values of reg in powers of 10."""
    X, true, X_test, y_test = data
    y = NOISE.flip(true, seed)
    exact = LPClassifier(NOISE, **options).fit(X, y)
    sums = LPClassifier.from_moments(Moments.from_rows(X, y, 2), NOISE, **options)
    chosen = LPClassifier(NOISE, reg=sums.reg_, **options).fit(X, y)
    errors = [1 - fit.score(X_test, y_test) for fit in (exact, chosen, sums)]
    return [*errors, abs(np.log10(sums.reg_ / exact.reg_))]


def line(kind, n, p, options, draws):
    """Summarise the draws of one setting."""
    draws = np.array(draws)
    difference = draws[:, 1] - draws[:, 0]
    error = float(difference.std(ddof=1) / np.sqrt(len(draws)))
    means = draws.mean(axis=0)
    return Line(
        kind,
        n,
        p,
        options["readout"],
        *map(float, means[:3]),
        float(difference.mean()),
        error,
        float(means[3]),
    )


def lines(n_draws):
    """Yield a line for each setting."""
    for kind in KINDS:
        for n, p in SHAPES:
            for options in OPTIONS:
                draws = [compare(draw(kind, n, p, seed), options, seed) for seed in range(n_draws)]
                yield line(kind, n, p, options, draws)
    if "UNFLIP_DATA" not in os.environ:
        return
    for name in AMAZON_DOMAINS:
        for options in OPTIONS:
            draws = [compare(reviews(name, seed), options, seed) for seed in range(n_draws)]
            yield line(f"reviews of {name}", 1600, 400, options, draws)


def main():
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=12, help="draws per setting (default: 12)")
    parser.add_argument(
        "--out", type=Path, default=Path("results/penalty_from_sums.csv"), help="CSV file"
    )
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1), warnings.catch_warnings(), options.out.open("w", newline="") as file:
        warnings.simplefilter("ignore", UserWarning)
        writer = csv.writer(file)
        writer.writerow(field.name for field in fields(Line))
        for result in lines(options.draws):
            writer.writerow(astuple(result))
            file.flush()
            errors = f"{result.exact:.3f} {result.penalty_from_sums:.3f} {result.all_from_sums:.3f}"
            change = f"{100 * result.difference:+.2f} ± {100 * result.difference_std:.2f} points"
            print(
                f"{result.kind:31s} {result.n:5d} × {result.p:<4d} {result.readout:8s} {errors}  "
                f"{change}, {result.decades:.2f} decades",
                flush=True,
            )


if __name__ == "__main__":
    main()
