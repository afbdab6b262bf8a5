"""Errors of estimated noise rates, and coverage of their confidence intervals."""

import numpy as np
from scipy.stats import binom

from verdicts import verdict


def rms(errors):
    """Return the root mean square."""
    return float(np.sqrt(np.mean(np.square(errors))))


def covers(estimator, truth):
    """Return whether the 95% confidence interval of each transition entry covers the truth."""
    low, high = estimator.interval(0.95)
    return (low <= truth) & (truth <= high)


def coverage_verdict(rows, repeats, keys):
    """Check that the coverage of every point is 90 to 99%; compare with exact intervals."""
    outside = [row for row in rows if not 0.9 <= row["covered"] <= 0.99]
    low = sum(row["covered"] < 0.9 for row in rows)
    total = len(rows)
    expected = sum(
        chance_outside(repeats, 0.975 if row.get("eps_pos") == 0 else 0.95) for row in rows
    )
    pooled = 100 * np.mean([row["covered"] for row in rows])
    verdict(
        not outside,
        "coverage of the 95% confidence interval is 90 to 99% at every point",
        f"{len(outside)} of {total} points outside ({low} below, {len(outside) - low} above), "
        f"{expected:.1f} expected of exact intervals; pooled {pooled:.1f}%",
    )
    for key in keys:
        print(f"        pooled by {key}: {tally(rows, key)}")


def chance_outside(repeats, level):
    """Return the probability that exact intervals show a coverage below 90% or above 99%."""
    seen = np.arange(repeats + 1)
    outside = (seen < 0.9 * repeats) | (seen > 0.99 * repeats)
    return float(binom.pmf(seen, repeats, level)[outside].sum())


def tally(rows, key):
    """Return the coverage in percent, pooled by the values of a column."""
    values = sorted({row[key] for row in rows})
    return ", ".join(
        f"{v:g}: {100 * np.mean([r['covered'] for r in rows if r[key] == v]):.1f}" for v in values
    )
