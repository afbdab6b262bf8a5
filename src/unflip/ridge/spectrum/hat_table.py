"""Hat values of all rows for all penalties, from one pass over the rows."""

from __future__ import annotations

from dataclasses import dataclass

from array_api_compat import array_namespace, device

from unflip._utils.typing import Array


@dataclass(frozen=True, eq=False)
class HatTable:
    r"""Σⱼ zᵢⱼ²vⱼ/sⱼ of every row i for an orthonormal set of functions v of the principal directions j.

    Hat values are such sums with v = s/(s + nγ), and diagonals of products of hat matrices with
    products of these. As functions of s they are so smooth that a few dozen span all of them to
    rounding, for any number of penalties.
    """

    functions: Array  # (p, r), orthonormal columns
    sums: Array  # (m, r), in the precision of the rows
    tolerance: float

    @classmethod
    def empty(cls, vectors: Array, n_rows: int) -> HatTable:
        """Return a table of so many rows that spans nothing."""
        none = array_namespace(vectors).empty(
            (n_rows, 0), dtype=vectors.dtype, device=device(vectors)
        )
        return cls(vectors[:, :0], none, 0.0)

    def spans(self, values: Array) -> bool:
        """Whether all columns of values are mixtures of the functions."""
        return is_spanned(values, self.functions, self.tolerance)

    def at(self, values: Array, rows: slice = slice(None)) -> Array:
        """Return the sums of some rows for such mixtures."""
        xp = array_namespace(values)
        return xp.matmul(
            xp.astype(self.sums[rows, :], values.dtype, copy=False),
            mixture_of(self.functions, values),
        )


def orthonormal(values: Array, resolved: float) -> Array:
    """Orthonormal functions that span the columns of `values`, each of them to rounding, however small it is."""
    xp = array_namespace(values)
    size = xp.sqrt(xp.sum(values**2, axis=0))
    left, singular, _ = xp.linalg.svd(
        values / xp.where(size > 0, size, xp.ones_like(size)), full_matrices=False
    )
    rank = int(xp.sum(xp.astype(singular > resolved * singular[0], xp.int64)))
    return left[:, :rank]


def is_spanned(values: Array, functions: Array, tolerance: float) -> bool:
    """Whether orthonormal functions mix to all columns of `values`, up to this share of their largest entry."""
    xp = array_namespace(values)
    missed = values - xp.matmul(functions, mixture_of(functions, values))
    return bool(
        xp.all(xp.max(xp.abs(missed), axis=0) <= tolerance * xp.max(xp.abs(values), axis=0))
    )


def mixture_of(functions: Array, values: Array) -> Array:
    """How orthonormal functions add up to the columns of `values`, (r, n_columns)."""
    return array_namespace(values).matmul(functions.T, values)


def mixed(stacked: Array, of_functions: Array, of_targets: Array) -> Array:
    """Mix the last two axes of an (m, r, q) stack, to (m, n_columns, n_targets)."""
    if of_functions.shape[1] < of_functions.shape[0]:
        return _last_mixed(_middle_mixed(stacked, of_functions), of_targets)
    return _middle_mixed(_last_mixed(stacked, of_targets), of_functions)


def _middle_mixed(stacked: Array, mixture: Array) -> Array:
    xp = array_namespace(stacked)
    return xp.permute_dims(xp.matmul(xp.permute_dims(stacked, (2, 0, 1)), mixture), (1, 2, 0))


def _last_mixed(stacked: Array, mixture: Array) -> Array:
    xp = array_namespace(stacked)
    return xp.reshape(
        xp.matmul(xp.reshape(stacked, (-1, stacked.shape[2])), mixture), (*stacked.shape[:2], -1)
    )
