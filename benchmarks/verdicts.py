"""Means with standard errors, and PASS or MISS lines."""

import numpy as np


def verdict(passed, target, reached):
    """Print PASS or MISS for a target."""
    print(f"  {'PASS' if passed else 'MISS'}  {target}: {reached}")


def standard_error(values):
    """Return the standard error of the mean; NaN for fewer than two values."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def mean_and_error(values, digits=2, sign=""):
    """Format the mean of a column and its standard error; sign="+" always shows the sign."""
    values = values.dropna()
    if values.empty:
        return ""
    error = standard_error(values)
    suffix = "" if np.isnan(error) else f" ± {error:.{digits}f}"
    return f"{values.mean():{sign}.{digits}f}{suffix}"
