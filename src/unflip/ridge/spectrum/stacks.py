"""Products and shapes of (rows or features, penalties, targets) stacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import ArrayLike

from unflip._utils.typing import Array


@dataclass(frozen=True, eq=False)
class RidgePath:
    """Coefficients for every (γ, target)."""

    coef: Array  # (p, n_regs, n_targets)
    intercept: Array  # (n_regs, n_targets)


def with_intercept(coef: Array, mean: Array, mean_target: Array, fit_intercept: bool) -> RidgePath:
    """Add the intercepts that send the mean row to the mean target, or zeros."""
    offset = mean_target[None, :] - times(mean[None, :], coef)[0, :, :]
    return RidgePath(coef, offset if fit_intercept else array_namespace(offset).zeros_like(offset))


def as_columns(targets: Array) -> Array:
    """Return one target as a column, several as they are."""
    return targets[:, None] if targets.ndim == 1 else targets


def as_regs(regs: ArrayLike, like: Array) -> Array:
    """Return penalties as an array like another one; errors name one that is none."""
    values = np.atleast_1d(np.asarray(regs, dtype=float))
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError(
            f"reg={values[~(np.isfinite(values) & (values >= 0))][0]:g} must be finite and not "
            "negative."
        )
    return array_namespace(like).asarray(values, dtype=like.dtype, device=device(like))


def times(matrix: Array, stacked: Array) -> Array:
    """Multiply a matrix with a (q, n_regs, n_targets) stack along its first axis, in one product."""
    return in_one(lambda flat: array_namespace(matrix).matmul(matrix, flat), stacked)


def in_one(product: Callable[[Array], Array], stacked: Array) -> Array:
    """Apply a product with columns to all columns of a stack at once."""
    xp = array_namespace(stacked)
    found = product(xp.reshape(stacked, (stacked.shape[0], -1)))
    return xp.reshape(found, (found.shape[0], *stacked.shape[1:]))
