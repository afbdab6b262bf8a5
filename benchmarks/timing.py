"""Rows to time on, the floor that times are compared with, and clocks."""

import time
import tracemalloc

import numpy as np
from sklearn.linear_model import LogisticRegression


def draw(n, p, condition=1.0):
    """Return rows and weakly related labels.

    With a condition number above 1 the features are correlated: their covariance has eigenvalues
    from 1 down to its inverse, evenly spaced on a logarithmic scale, in random directions.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    y = rng.integers(2, size=n)
    X[:, 0] += y
    if condition > 1:
        X *= np.logspace(0, -np.log10(condition) / 2, p)
        for _ in range(2):  # two reflections: a rotation without the p³ cost of a random one
            axis = rng.normal(size=p)
            axis /= np.linalg.norm(axis)
            X -= 2 * (X @ axis)[:, None] * axis
    return X, y


def floor(X):
    """Compute the smaller Gram matrix and its eigendecomposition."""
    np.linalg.eigh(X.T @ X if X.shape[0] > X.shape[1] else X @ X.T)


def cleanlab_fit(X, y):
    """Return a function that fits cleanlab in one process, or None if it is not installed."""
    try:
        from cleanlab.classification import CleanLearning
    except ImportError:
        return None
    one_process = {"n_jobs": 1}
    return lambda: CleanLearning(LogisticRegression(), find_label_issues_kwargs=one_process).fit(
        X, y
    )


def measure(functions, n_repeats, clock=time.perf_counter):
    """Time the functions in turns, after a warm-up; return seconds, (repeats, functions)."""
    for function in functions:
        function()
    seconds = np.empty((n_repeats, len(functions)))
    for i in range(n_repeats):
        for j, function in enumerate(functions):
            start = clock()
            function()
            seconds[i, j] = clock() - start
    return seconds


def peak_memory(function):
    """Return the peak memory of a call in bytes, as traced by NumPy and Python."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
