"""Leverages of all rows for all regularization strengths, from one pass over the rows."""

from __future__ import annotations

from dataclasses import dataclass

from array_api_compat import array_namespace, device

from unflip._utils.typing import Array


@dataclass(frozen=True, eq=False)
class LeverageTable:
    r"""Σⱼ zᵢⱼ²vⱼ/sⱼ of every row i, for orthonormal functions v of the principal directions j.

    Leverages are such sums with v = s/(s + nγ), and diagonals of products of hat matrices with
    products of these. As functions of s they are so smooth that a few dozen span all of them up to
    rounding, for any number of regularization strengths.
    """

    functions: Array  # (p, r), orthonormal columns
    sums: Array  # (m, r), in the precision of the rows
    tolerance: float  # of `is_spanned`

    @classmethod
    def empty(cls, vectors: Array, n_rows: int) -> LeverageTable:
        """Return a table for this number of rows that spans nothing."""
        xp = array_namespace(vectors)
        sums = xp.empty((n_rows, 0), dtype=vectors.dtype, device=device(vectors))
        return cls(vectors[:, :0], sums, 0.0)

    def spans(self, values: Array) -> bool:
        """Whether all columns of values are mixtures of the functions."""
        return is_spanned(values, self.functions, self.tolerance)

    def at(self, values: Array, rows: slice = slice(None)) -> Array:
        """Return the sums for such mixtures, for the rows in a slice."""
        xp = array_namespace(values)
        sums = xp.astype(self.sums[rows, :], values.dtype, copy=False)
        return xp.matmul(sums, mixture_of(self.functions, values))


def orthonormal(values: Array, resolved: float) -> Array:
    """Return orthonormal functions that span the columns of `values`, up to rounding of each.

    Singular values below the share `resolved` of the largest count as rounding error.
    """
    xp = array_namespace(values)
    norms = xp.sqrt(xp.sum(values**2, axis=0))
    left, singular, _ = xp.linalg.svd(
        values / xp.where(norms > 0, norms, xp.ones_like(norms)), full_matrices=False
    )
    rank = int(xp.sum(xp.astype(singular > resolved * singular[0], xp.int64)))
    return left[:, :rank]


def is_spanned(values: Array, functions: Array, tolerance: float) -> bool:
    """Whether orthonormal functions mix to all columns of `values`.

    An error up to this share of a column's largest entry is tolerated.
    """
    xp = array_namespace(values)
    missed = xp.abs(values - xp.matmul(functions, mixture_of(functions, values)))
    largest = xp.max(xp.abs(values), axis=0)
    return bool(xp.all(xp.max(missed, axis=0) <= tolerance * largest))


def mixture_of(functions: Array, values: Array) -> Array:
    """Return how orthonormal functions add up to the columns of `values`, (r, n_columns)."""
    return array_namespace(values).matmul(functions.T, values)


def mixed(stacked: Array, of_functions: Array, of_targets: Array) -> Array:
    """Mix the last two axes of an (m, r, q) stack, to (m, n_columns, n_targets)."""
    if of_functions.shape[1] < of_functions.shape[0]:  # the order with fewer multiplications
        return _last_mixed(_middle_mixed(stacked, of_functions), of_targets)
    return _middle_mixed(_last_mixed(stacked, of_targets), of_functions)


def _middle_mixed(stacked: Array, mixture: Array) -> Array:
    xp = array_namespace(stacked)
    return xp.permute_dims(xp.matmul(xp.permute_dims(stacked, (2, 0, 1)), mixture), (1, 2, 0))


def _last_mixed(stacked: Array, mixture: Array) -> Array:
    xp = array_namespace(stacked)
    flat = xp.matmul(xp.reshape(stacked, (-1, stacked.shape[2])), mixture)
    return xp.reshape(flat, (*stacked.shape[:2], -1))
