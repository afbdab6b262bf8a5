"""Labels of any kind as class indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from unflip._typing import IntArray


def encode(y: NDArray[Any], owner: str) -> tuple[NDArray[Any], IntArray]:
    """Return the sorted classes and the class index of each row, or an error where there are not two classes.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels.
    owner : str
        Who asks, for the error.
    """
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind not in ("binary", "multiclass"):
        raise ValueError(f"{owner} needs class labels, but the type of the target is {kind}. Unknown label type.")
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"{owner} needs two classes, but y holds only {classes.tolist()} in rows of positive weight.")
    return classes, codes.astype(np.intp)
