"""Means with their standard errors, and whether a target was reached."""

import numpy as np


def verdict(passed, target, reached):
    """Print whether a target was reached."""
    print(f"  {'PASS' if passed else 'MISS'}  {target}: {reached}")


def standard_error(values):
    """Return the standard error of the mean, NaN of fewer than two values."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def mean_and_error(values, digits=2, sign=""):
    """Write the mean of a column and its standard error; a sign of "+" is written before means above 0, too."""
    values = values.dropna()
    if values.empty:
        return ""
    error = standard_error(values)
    return f"{values.mean():{sign}.{digits}f}" + ("" if np.isnan(error) else f" ± {error:.{digits}f}")
