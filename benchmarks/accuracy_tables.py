"""Tables of accuracy.py, with paired differences and their confidence intervals."""

import numpy as np
from scipy.stats import t as student

from cleanlab_grid import BEST_OF_ALL, BEST_OF_LEVEL, BEST_OF_SPLIT, print_points
from measures import DRAW, wide
from peers import (
    CLEANLAB,
    CLEANLAB_GIVEN,
    DEFAULT,
    HAS_CLEANLAB,
    LOGISTIC,
    LOGISTIC_AWARE,
    ORACLE,
    OURS,
    RATES,
    RIDGE,
    RIDGE_AWARE,
)

#: Parts whose data sets are similar; their tables pool them.
POOLED = ("amazon", "imbalanced")
SHOWN = (
    *OURS,
    RIDGE,
    RIDGE_AWARE,
    LOGISTIC,
    LOGISTIC_AWARE,
    CLEANLAB,
    CLEANLAB_GIVEN,
    BEST_OF_ALL,
    BEST_OF_LEVEL,
    BEST_OF_SPLIT,
    ORACLE,
)


def print_tables(part, frame, claims):
    """Print all tables of one part."""
    if part in POOLED:
        print_methods(frame, part)
    else:
        for name, rows in frame.groupby("set", sort=False):
            print_methods(rows, name)
    print_groups(part, frame)
    print_groups(part, frame, "auroc_wrong", 3)
    if HAS_CLEANLAB:
        print_points(frame)
    print_claims(claims, OURS[:3])
    print()
    print_oddities(frame)


def print_methods(frame, title):
    """Print the measures of each method, and the gain of this library over it."""
    n_draws = len(frame[DRAW].drop_duplicates())
    print(f"\n  {title}, {n_draws} draw{'s' if n_draws > 1 else ''}")
    print(
        f"  {'':26s} accuracy  gain, rates given  gain, default         balanced  AUC    wrong "
        "labels  relative time"
    )
    time_ours = frame.loc[frame["method"] == RATES, "seconds"].median()
    for method in SHOWN:
        mine = frame[frame["method"] == method]
        if len(mine):
            means = mine[["accuracy", "balanced", "auc", "auroc_wrong"]].mean()
            auroc = "" if np.isnan(means["auroc_wrong"]) else f"{means['auroc_wrong']:.3f}"
            print(
                f"  {method:26s} {means['accuracy']:7.2f}   "
                f"{interval(paired(frame, RATES, method)):16s}   "
                f"{interval(paired(frame, DEFAULT, method)):19s}  {means['balanced']:7.2f}  "
                f"{means['auc']:.3f}  {auroc:12s}  {mine['seconds'].median() / time_ours:6.1f}"
            )


def paired(frame, a, b, measure="accuracy"):
    """Return the mean of a − b over draws, and half of its 95% confidence interval."""
    table = wide(frame, measure)
    if a not in table or b not in table:
        return np.nan, np.nan
    difference = (table[a] - table[b]).dropna()
    n = len(difference)
    if n == 1:
        error = frame.loc[frame["method"] == b, "row_error"].iloc[0] if a == RATES else np.nan
        return difference.iloc[0], 1.96 * error
    return difference.mean(), student.ppf(0.975, n - 1) * difference.std() / np.sqrt(n)


def interval(difference):
    """Format a mean difference and half of its confidence interval."""
    middle, half = difference
    if np.isnan(middle):
        return ""
    error = "" if np.isnan(half) else f" ± {half:.2f}"
    return f"{middle:+6.2f}{error}"


def print_groups(part, frame, measure="accuracy", digits=2):
    """Print the mean of a measure by method and noise level, and by set if sets are not pooled."""
    by = ["level"] if part in POOLED else ["set", "level"]
    table = frame.groupby(["method", *by], sort=False)[measure].mean().unstack(by)
    names = [" ".join(column) if isinstance(column, tuple) else column for column in table.columns]
    widths = [max(7, len(name)) for name in names]
    print(
        f"\n  {measure:26s} "
        + "  ".join(f"{name:>{w}s}" for name, w in zip(names, widths, strict=True))
    )
    for method in SHOWN:
        if method in table.index and table.loc[method].notna().any():
            cells = [
                f"{value:{w}.{digits}f}" for value, w in zip(table.loc[method], widths, strict=True)
            ]
            print(f"  {method:26s} " + "  ".join(cells))


def print_claims(claims, methods):
    """Print stated probabilities beside true shares."""
    for kind in claims["kind"].unique():
        print(
            f"\n  {kind}: stated/true share in percent, and number of rows, by tenth of the "
            "stated probability"
        )
        for method in methods:
            mine = claims[(claims["method"] == method) & (claims["kind"] == kind)]
            shares = [
                f"{100 * row.claimed:3.0f}/{100 * row.true:3.0f}" if row.n else "   -   "
                for row in mine.itertuples()
            ]
            print(f"  {method:18s} " + "  ".join(shares))
            print(f"  {'':18s} " + "  ".join(f"{row.n:7d}" for row in mine.itertuples()))


def print_oddities(frame):
    """Print the range of reg and the warnings of this library's classifiers."""
    for method in OURS:
        mine = frame[frame["method"] == method]
        texts = mine["warnings"].dropna()
        print(
            f"  {method:18s} log10(reg) {np.log10(mine['reg']).min():.1f} to "
            f"{np.log10(mine['reg']).max():.1f}, {len(texts)} "
            "warnings" + "".join(f"; {text}" for text in texts.unique()[:3])
        )
