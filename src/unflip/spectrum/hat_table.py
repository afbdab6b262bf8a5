"""Hat values of all rows for all penalties, from one pass over the rows."""

from __future__ import annotations

from dataclasses import dataclass

from array_api_compat import array_namespace

from unflip._typing import Array


@dataclass(frozen=True, eq=False)
class HatTable:
    r"""Σⱼ zᵢⱼ²vⱼ/sⱼ of every row i for an orthonormal set of functions v of the principal directions j.

    Hat values are such sums with v = s/(s + nγ), and diagonals of products of hat matrices with products of these. As
    functions of s they are so smooth that a few dozen span all of them to rounding, for any number of penalties.
    """

    functions: Array  # (p, r), orthonormal columns
    sums: Array  # (m, r)
    tolerance: float

    @classmethod
    def empty(cls, like: Array) -> HatTable:
        """Return a table that spans nothing."""
        return cls(like[:, :0], like[:0, :0], 0.0)

    def spans(self, values: Array) -> bool:
        """Whether all columns of values are mixtures of the functions."""
        xp = array_namespace(values)
        missed = values - xp.matmul(self.functions, mixture_of(self.functions, values))
        return bool(xp.all(xp.max(xp.abs(missed), axis=0) <= self.tolerance * xp.max(xp.abs(values), axis=0)))

    def at(self, values: Array) -> Array:
        """Return the sums for such mixtures."""
        return array_namespace(values).matmul(self.sums, mixture_of(self.functions, values))


def orthonormal(values: Array, resolved: float) -> Array:
    """Orthonormal functions that span the columns of `values`, each of them to rounding, however small it is."""
    xp = array_namespace(values)
    size = xp.sqrt(xp.sum(values**2, axis=0))
    left, singular, _ = xp.linalg.svd(values / xp.where(size > 0, size, xp.ones_like(size)), full_matrices=False)
    rank = int(xp.sum(xp.astype(singular > resolved * singular[0], xp.int64)))
    return left[:, :rank]


def mixture_of(functions: Array, values: Array) -> Array:
    """How orthonormal functions add up to the columns of `values`, (r, n_columns)."""
    return array_namespace(values).matmul(functions.T, values)


def mixed(stacked: Array, mixture: Array) -> Array:
    """Mix the middle axis of an (m, r, n_targets) stack."""
    xp = array_namespace(stacked)
    if stacked.shape[2] == 1:
        return xp.matmul(stacked[:, :, 0], mixture)[:, :, None]
    return xp.permute_dims(xp.matmul(xp.permute_dims(stacked, (2, 0, 1)), mixture), (1, 2, 0))
