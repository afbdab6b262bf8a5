"""Time of the paper's Table 1: one Cholesky factor per draw against one inverse per level.

Rows are simulated, 2000 × 400 as in the paper's data. The time does not depend on their values.
"""

import statistics
import time

import numpy as np

from unflip.cli.paper import reviews, table1
from unflip.cli.paper.variants import targets_of

N_DRAWS = 10
REPEATS = 7
VARIANT = "unbiased"


def refit_each(X, y, samples):
    """Fit every noise level of every draw separately: Gram matrix, inverse, product."""
    accuracies = []
    for sample in samples:
        for e, flips in zip(table1.SETUP.eps_pos, sample.flips, strict=True):
            rows = X[sample.rows]
            inverse = np.linalg.inv(rows.T @ rows / len(rows) + reviews.REG * np.eye(X.shape[1]))
            targets = targets_of(VARIANT, table1.noise_at(e))[y[sample.rows] ^ flips]
            coef = inverse @ (rows.T @ targets / len(rows))
            accuracies.append(np.mean((X[sample.unseen] @ coef > 0) == (y[sample.unseen] == 1)))
    return accuracies


def factor_once(X, y, samples):
    """Fit the noise levels of a draw together, with duplicates merged."""
    accuracies = []
    for sample in samples:
        labels = [y[sample.rows] ^ flips for flips in sample.flips]
        columns = [
            targets_of(VARIANT, table1.noise_at(e))[seen]
            for e, seen in zip(table1.SETUP.eps_pos, labels, strict=True)
        ]
        coef = table1.Fitted.of(X, sample.rows).coef(sample.rows, np.column_stack(columns))
        accuracies += (
            ((X[sample.unseen] @ coef > 0) == (y[sample.unseen] == 1)[:, None])
            .mean(axis=0)
            .tolist()
        )
    return accuracies


def seconds(function, *arguments):
    """Time one call."""
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def main():
    """Time both in turns, and print the ratio of medians."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 1000)
    X = rng.normal(size=(2000, 400)) + 0.06 * (2 * y[:, None] - 1)
    stream = reviews.Stream(y, eps_pos=table1.SETUP.eps_pos, eps_neg=table1.SETUP.eps_neg, seed=0)
    samples = [stream.draw() for _ in range(N_DRAWS)]
    np.testing.assert_array_equal(refit_each(X, y, samples), factor_once(X, y, samples))
    times = np.array(
        [[seconds(f, X, y, samples) for f in (refit_each, factor_once)] for _ in range(REPEATS)]
    )
    each, once = (1000 * statistics.median(column) / N_DRAWS for column in times.T)
    print(
        f"one inverse per noise level          {each:7.1f} ms per draw "
        f"({len(table1.SETUP.eps_pos)} noise levels)"
    )
    print(f"one factor for all levels            {once:7.1f} ms per draw")
    print(f"ratio                                {each / once:7.1f}")


if __name__ == "__main__":
    main()
