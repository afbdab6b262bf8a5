"""Eigenvalues of Gram matrices: which are rounding error, and their regularized inverses."""

from __future__ import annotations

from array_api_compat import array_namespace

from unflip._utils.typing import Array


def inverse(eigenvalues: Array, n: float, regs: Array, n_varying: int) -> Array:
    """Return 1/(s + nγ); at γ = 0 directions that no row reaches get 0.

    Raises ValueError if γ = 0 and the rank is below n_varying.
    """
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
    inverses = 1 / xp.where(usable, shifted, xp.ones_like(shifted))
    return xp.where(usable, inverses, xp.zeros_like(shifted))


def is_reached(eigenvalues: Array) -> Array:
    """Whether a direction carries more than rounding error."""
    xp = array_namespace(eigenvalues)
    return eigenvalues > xp.max(eigenvalues) * rounding(eigenvalues)


def rounding(eigenvalues: Array) -> float:
    """Return the rounding error of eigenvalues, relative to the largest."""
    xp = array_namespace(eigenvalues)
    return int(eigenvalues.shape[0]) * float(xp.finfo(eigenvalues.dtype).eps)


def count_varying(column_power: Array, mean: Array, n: float) -> int:
    """Count the columns that are not constant (with an intercept) or not zero (without).

    A constant column has a rounding error of its mean. A column that varies much less than others
    does count, so that a rank too low to resolve it raises an error.
    """
    xp = array_namespace(column_power)
    error = 32 * float(xp.finfo(mean.dtype).eps) * mean  # 32: margin for sums over many rows
    return int(xp.sum(xp.astype(column_power > n * error**2, xp.int64)))


def above_rounding(eigenvalues: Array, n_varying: int) -> Array:
    """Replace eigenvalues that are rounding error by 0: negative ones, all if no feature varies."""
    xp = array_namespace(eigenvalues)
    zeros = xp.zeros_like(eigenvalues)
    return xp.where(eigenvalues > 0, eigenvalues, zeros) if n_varying else zeros


def scale(eigenvalues: Array, n: float) -> float:
    """Return the typical eigenvalue of the covariance, Σs²/(nΣs); 0 if all are 0."""
    xp = array_namespace(eigenvalues)
    largest = float(xp.max(eigenvalues)) or 1.0  # divided out so that squares do not overflow
    relative = eigenvalues / largest
    total = float(xp.sum(relative))
    return largest * float(xp.sum(relative**2)) / total / n if total > 0 else 0.0
