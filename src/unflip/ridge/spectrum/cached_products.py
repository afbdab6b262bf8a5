"""Cached products with the rows, and those that follow by linearity without another pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace, device

from unflip._utils.arrays import as_numpy, like
from unflip._utils.typing import Array
from unflip.ridge.spectrum.leverage_table import is_spanned


@dataclass(frozen=True, eq=False)
class CachedSums:
    """Sums Σ wᵢxᵢtᵢ over the rows, for some columns t."""

    columns: Array  # (m, q)
    sums: Array  # (p, q)

    def of(self, targets: Array) -> Array | None:
        """Return the sums for other columns; None unless the cached columns mix to them."""
        mixture = mixture_to(targets, self.columns)
        return None if mixture is None else array_namespace(targets).matmul(self.sums, mixture)


@dataclass(frozen=True, eq=False)
class CachedFits:
    """Fitted values of all rows, for orthonormal functions of the principal directions."""

    targets: Array  # (m, q)
    functions: Array  # (n_directions, r)
    fitted: Callable[[slice], Array]  # (m, r, q), of the rows in a slice
    tolerance: float

    def mixture(self, targets: Array, functions: Array) -> Array | None:
        """Return how the cached targets mix to others, (q, n_targets).

        None unless the targets and the functions both mix to the others.
        """
        if not is_spanned(functions, self.functions, self.tolerance):
            return None
        return mixture_to(targets, self.targets)


def mixture_to(targets: Array, columns: Array) -> Array | None:
    """Return M with columns·M = targets up to rounding, or None."""
    xp = array_namespace(targets)
    if targets.shape == columns.shape and bool(xp.all(targets == columns)):
        return xp.eye(columns.shape[1], dtype=columns.dtype, device=device(columns))
    if not 0 < columns.shape[1] <= 16:  # try few columns only: the test takes time, too
        return None
    inverse = like(np.linalg.pinv(as_numpy(xp.matmul(columns.T, columns))), columns)
    mixture = xp.matmul(inverse, xp.matmul(columns.T, targets))
    missed = targets - xp.matmul(columns, mixture)
    # A second step of refinement recovers digits that the inverse has lost.
    mixture = mixture + xp.matmul(inverse, xp.matmul(columns.T, missed))
    missed = xp.max(xp.abs(targets - xp.matmul(columns, mixture)), axis=0)
    rounding = 1e-12 * xp.max(xp.abs(targets), axis=0)
    return mixture if bool(xp.all(missed <= rounding)) else None
