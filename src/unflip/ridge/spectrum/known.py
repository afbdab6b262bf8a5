"""Products that were made before, and what follows from them by linearity: another pass over the rows is saved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace, device

from unflip._utils.arrays import as_numpy, like
from unflip._utils.typing import Array
from unflip.ridge.spectrum.hat_table import is_spanned

_FEW_COLUMNS = 16  # more are not looked into
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class KnownSums:
    """Sums Σ wᵢxᵢtᵢ over the rows, for some columns t."""

    columns: Array  # (m, q)
    sums: Array  # (p, q)

    def of(self, wanted: Array) -> Array | None:
        """Return the sums for other columns, where these mix to them."""
        mixture = mixture_to(wanted, self.columns)
        return None if mixture is None else array_namespace(wanted).matmul(self.sums, mixture)


@dataclass(frozen=True, eq=False)
class KnownFits:
    """Fitted values of all rows, for some targets and orthonormal functions of the principal directions."""

    targets: Array  # (m, q)
    functions: Array  # (n_directions, r)
    fitted: Callable[[slice], Array]  # (m, r, q), of the rows in a slice
    tolerance: float

    def mixture(self, targets: Array, functions: Array) -> Array | None:
        """Return how the targets mix to others, (q, n_targets), where they do and the functions mix to others too."""
        spanned = is_spanned(functions, self.functions, self.tolerance)
        return mixture_to(targets, self.targets) if spanned else None


def mixture_to(wanted: Array, columns: Array) -> Array | None:
    """Return M with columns·M = wanted, each up to rounding, or None."""
    xp = array_namespace(wanted)
    if wanted.shape == columns.shape and bool(xp.all(wanted == columns)):
        return xp.eye(columns.shape[1], dtype=columns.dtype, device=device(columns))
    if not 0 < columns.shape[1] <= _FEW_COLUMNS:
        return None
    inverse = like(np.linalg.pinv(as_numpy(xp.matmul(columns.T, columns))), columns)
    mixture = xp.matmul(inverse, xp.matmul(columns.T, wanted))
    missed = wanted - xp.matmul(columns, mixture)
    mixture = mixture + xp.matmul(
        inverse, xp.matmul(columns.T, missed)
    )  # once more, for the digits of the inverse
    missed = xp.abs(wanted - xp.matmul(columns, mixture))
    largest = xp.max(xp.abs(wanted), axis=0)
    return mixture if bool(xp.all(xp.max(missed, axis=0) <= _ROUNDING * largest)) else None
