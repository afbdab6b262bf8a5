"""Reading numbers from whatever a caller gives, with an error that names the argument."""

from __future__ import annotations

import numpy as np

from unflip._typing import FloatArray

_LIMITS = np.finfo(float)


def as_floats(values: object, name: str) -> FloatArray:
    """Copy values into a new float array, or say which argument does not hold numbers."""
    try:
        return np.array(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} = {values!r} must hold numbers, all rows of one length.") from None


def check_squares(largest: float, n_values: int) -> None:
    """Raise where squares of features up to `largest`, or the sum of so many, are no numbers; all may be 0."""
    if largest and not np.sqrt(_LIMITS.tiny) < largest < np.sqrt(_LIMITS.max / n_values):
        raise ValueError(f"The largest feature of X is {largest:.2g}, and its square no number: rescale X.")
