"""Reading numbers from whatever a caller gives, with an error that names the argument."""

from __future__ import annotations

import numpy as np

from unflip._typing import FloatArray


def as_floats(values: object, name: str) -> FloatArray:
    """Copy values into a new float array, or say which argument does not hold numbers."""
    try:
        return np.array(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} = {values!r} must hold numbers, all rows of one length.") from None
