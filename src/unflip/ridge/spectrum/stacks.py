"""Products and shapes of (rows or features, regularization strengths, targets) stacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import ArrayLike

from unflip._utils.typing import Array, FloatArray


@dataclass(frozen=True, eq=False)
class RidgePath:
    """Coefficients for every (γ, target)."""

    coef: Array  # (p, n_regs, n_targets)
    intercept: Array  # (n_regs, n_targets)


def with_intercept(coef: Array, mean: Array, mean_target: Array, fit_intercept: bool) -> RidgePath:
    """Add the intercepts that map the mean row to the mean target, or zeros."""
    intercept = mean_target[None, :] - times(mean[None, :], coef)[0, :, :]
    if not fit_intercept:
        intercept = array_namespace(intercept).zeros_like(intercept)
    return RidgePath(coef, intercept)


def as_columns(targets: Array) -> Array:
    """Return targets of shape (m,) or (m, n_targets) as (m, n_targets)."""
    return targets[:, None] if targets.ndim == 1 else targets


def as_regs(regs: ArrayLike, like: Array) -> Array:
    """Return regularization strengths as an array of the kind of another one.

    Raises ValueError if one is negative or not finite.
    """
    values = checked_regs(regs)
    return array_namespace(like).asarray(values, dtype=like.dtype, device=device(like))


def checked_regs(regs: ArrayLike) -> FloatArray:
    """Return regularization strengths as a 1-d array; ValueError if negative or not finite."""
    values = np.atleast_1d(np.array(regs, dtype=float))
    is_valid = np.isfinite(values) & (values >= 0)
    if not is_valid.all():
        raise ValueError(f"reg={values[~is_valid][0]:g} must be finite and not negative.")
    return values


def times(matrix: Array, stacked: Array) -> Array:
    """Multiply a matrix with a (q, n_regs, n_targets) stack along its first axis."""
    return in_one(lambda flat: array_namespace(matrix).matmul(matrix, flat), stacked)


def in_one(product: Callable[[Array], Array], stacked: Array) -> Array:
    """Apply a product with columns to all columns of a stack at once."""
    xp = array_namespace(stacked)
    flat = product(xp.reshape(stacked, (stacked.shape[0], -1)))
    return xp.reshape(flat, (flat.shape[0], *stacked.shape[1:]))
