"""Eigenvalues of Gram matrices: which are rounding error, and their inverses under a penalty."""

from __future__ import annotations

from array_api_compat import array_namespace

from unflip._utils.typing import Array


def inverse(eigenvalues: Array, n: float, regs: Array, n_varying: int) -> Array:
    """1/(s + nγ); at γ = 0 the directions that no row reaches get 0, and a rank below n_varying is an error."""
    xp = array_namespace(eigenvalues)
    shifted = eigenvalues[:, None] + n * regs[None, :]
    if float(xp.min(regs)) > 0:
        return 1 / shifted
    reached = is_reached(eigenvalues)
    rank = int(xp.sum(xp.astype(reached, xp.int64)))
    if rank < n_varying:
        raise ValueError(
            f"reg=0 needs a Gram matrix of full rank, but the rows span {rank} of {n_varying} "
            "varying features: use a positive reg, drop collinear features, or add rows."
        )
    usable = reached[:, None] | (regs[None, :] > 0)
    return xp.where(
        usable, 1 / xp.where(usable, shifted, xp.ones_like(shifted)), xp.zeros_like(shifted)
    )


def is_reached(eigenvalues: Array) -> Array:
    """Whether a direction carries more than rounding error."""
    xp = array_namespace(eigenvalues)
    return eigenvalues > xp.max(eigenvalues) * rounding(eigenvalues)


def rounding(eigenvalues: Array) -> float:
    """Return the rounding error of eigenvalues, relative to the largest."""
    return int(eigenvalues.shape[0]) * float(
        array_namespace(eigenvalues).finfo(eigenvalues.dtype).eps
    )


def count_varying(column_power: Array, mean: Array, n: float) -> int:
    """Count the columns that are not constant (with an intercept) or not zero (without).

    A constant column keeps a rounding error of its mean. One that merely varies little beside
    others must count, so that a rank too low to resolve it is found out.
    """
    xp = array_namespace(column_power)
    rounding = 32 * float(xp.finfo(mean.dtype).eps) * mean
    return int(xp.sum(xp.astype(column_power > n * rounding**2, xp.int64)))


def above_rounding(eigenvalues: Array, n_varying: int) -> Array:
    """Put 0 for eigenvalues that rounding alone makes: negative ones, and all where no feature varies."""
    xp = array_namespace(eigenvalues)
    none = xp.zeros_like(eigenvalues)
    return xp.where(eigenvalues > 0, eigenvalues, none) if n_varying else none


def scale(eigenvalues: Array, n: float) -> float:
    """Typical eigenvalue of the covariance, Σs²/(nΣs); 0 where all are."""
    xp = array_namespace(eigenvalues)
    top = float(xp.max(eigenvalues)) or 1.0  # divided out so that squares do not overflow
    relative = eigenvalues / top
    total = float(xp.sum(relative))
    return top * float(xp.sum(relative**2)) / total / n if total > 0 else 0.0
