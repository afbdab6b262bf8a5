"""Gram matrices of rows of single precision, in single precision where that is precise enough."""

from __future__ import annotations

import numpy as np
from array_api_compat import array_namespace, device

from unflip._typing import Array, Rows
from unflip.centred import DenseRows, SparseRows
from unflip.lazy import sample
from unflip.spectrum.gram import GramSpectrum
from unflip.spectrum.known import KnownSums

# Gram matrices of so many numbers in single precision may be made in it, where eigenvalues differ by no more than this.
_FEW_VALUES, _EVEN, _LARGEST_SINGLE = 2**19, 16.0, 1e20


def decomposed(
    X: Array, weights: Array | None, shares: Array | None, fit_intercept: bool, *, in_single: bool
) -> tuple[DenseRows, GramSpectrum, KnownSums]:
    """Return the rows, their spectrum and the sums for `shares`; products in single precision must not be too rough."""
    xp = array_namespace(X)
    ones = xp.ones(X.shape[0], dtype=xp.float64, device=device(X))
    known = (ones if weights is None else weights)[:, None]
    columns, weighted = (ones[:, None], known) if shares is None else (shares, known * shares)
    rows, scatter, sums = DenseRows.with_sums(X, weighted, weights, centre=fit_intercept, in_single=in_single)
    if not in_single or _looks_even(scatter):
        n = float(xp.sum(rows.weights))
        found = GramSpectrum.from_gram(scatter, rows.mean, n, fit_intercept=fit_intercept)
        if not in_single or _is_even(found.eigenvalues):
            return rows, found, KnownSums(columns, sums.T)
    return decomposed(X, weights, shares, fit_intercept, in_single=False)


def decomposed_sparse(
    X: Rows, weights: Array | None, shares: Array | None, fit_intercept: bool
) -> tuple[SparseRows, GramSpectrum, KnownSums]:
    """Return sparse rows, their spectrum and the sums for `shares`, in double precision."""
    rows = SparseRows.of(X, weights, centre=fit_intercept)
    n = float(rows.weights.sum())
    found = GramSpectrum.from_gram(rows.scatter(), rows.mean, n, fit_intercept=fit_intercept)
    columns = np.ones((X.shape[0], 1)) if shares is None else shares
    return rows, found, KnownSums(columns, rows.transposed_times(rows.weights[:, None] * columns))


def may_be_even(X: Array) -> bool:
    """Whether rows are of single precision, many, and no feature varies much more than another."""
    xp = array_namespace(X)
    if X.dtype != xp.float32 or X.shape[0] * X.shape[1] <= _FEW_VALUES:
        return False
    variances = xp.var(xp.astype(sample(X), xp.float64), axis=0)
    in_range = bool(xp.all((variances > 1 / _LARGEST_SINGLE) & (variances < _LARGEST_SINGLE)))
    return in_range and _is_even(variances)


def _looks_even(gram: Array) -> bool:
    """Whether the mean of the squared eigenvalues is at most twice the square of their mean."""
    xp = array_namespace(gram)
    return int(gram.shape[0]) * float(xp.sum(gram**2)) <= 2 * float(xp.sum(xp.linalg.diagonal(gram))) ** 2


def _is_even(eigenvalues: Array) -> bool:
    """Whether errors of 1e-7 of the largest are small beside the smallest."""
    xp = array_namespace(eigenvalues)
    return float(xp.max(eigenvalues)) <= _EVEN * float(xp.min(eigenvalues))
