"""Labels of any kind as class indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import helmert

from unflip._utils.arrays import as_numpy, is_foreign, is_numpy
from unflip._utils.typing import Array, FloatArray, IntArray

#: Class index of a row whose true label is not known.
UNCHECKED = -1


def encode(y: Array, owner: str) -> tuple[NDArray[Any], Array]:
    """Return the sorted classes and the class index of each row, or an error where there is only one.

    The indices are where the labels are; the classes are on the host.

    Parameters
    ----------
    y : array of shape (n,)
        Labels.
    owner : str
        Who asks, for the error.
    """
    kind, classes, codes = (_of_numpy if is_numpy(y) else _of_others)(y)
    if kind not in ("binary", "multiclass"):
        raise ValueError(
            f"{owner} needs class labels, but the type of the target is {kind}. Unknown label type."
        )
    if len(classes) < 2:
        raise ValueError(
            f"{owner} needs at least two classes, but y holds only {classes.tolist()} in rows of "
            "positive weight."
        )
    return classes, codes


def _of_numpy(y: NDArray[Any]) -> tuple[str, NDArray[Any], IntArray]:
    """Return scikit-learn's type of the target, the classes and the indices."""
    from sklearn.utils.multiclass import type_of_target  # the theory loads without scikit-learn

    if y.dtype == object:
        _check_comparable(y)
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind not in ("binary", "multiclass"):
        return kind, y[:0], np.empty(0, dtype=np.intp)
    classes, codes = np.unique(y, return_inverse=True)
    return kind, classes, codes.astype(np.intp)


def _check_comparable(y: NDArray[Any]) -> None:
    """Raise where labels are missing or have no order; what is no label at all is left to scikit-learn."""
    try:
        distinct = set(y.tolist())
    except TypeError:
        return
    if any(map(is_missing, distinct)):
        raise ValueError(
            "y holds a missing label: leave such rows out, or give Votes.from_columns(y), where "
            "labels may be missing."
        )
    try:
        sorted(distinct)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in distinct})
        raise ValueError(
            f"y holds labels of several kinds ({', '.join(kinds)}), which have no order: make them "
            "alike."
        ) from None


def _of_others(y: Array) -> tuple[str, NDArray[Any], Array]:
    """Do the same with labels of other namespaces, which are numbers, in one sort."""
    xp = array_namespace(y)
    found = xp.unique_inverse(y)
    classes, codes = (
        as_numpy(found.values),
        xp.astype(xp.reshape(found.inverse_indices, (-1,)), xp.int64, copy=False),
    )
    is_whole = classes.dtype.kind != "f" or bool((classes == np.round(classes)).all())
    return "multiclass" if is_whole else "continuous", classes, codes


def true_codes(
    y_trusted: ArrayLike | None, n: int, rows: IntArray, classes: NDArray[Any], name: str
) -> IntArray:
    """Return the class index of the true label of each of the rows, `UNCHECKED` where it is missing.

    Parameters
    ----------
    y_trusted : array-like of shape (n,) or None
        True labels; None, NaN, pandas.NA or a mask where they are missing. None: all are.
    n : int
        Number of all rows.
    rows : ndarray of int
        The rows asked for.
    classes : ndarray of shape (k,)
        Observed labels, sorted.
    name : str
        What the caller calls `y_trusted`, for the error.
    """
    if y_trusted is None:
        return np.full(len(rows), UNCHECKED)
    labels = np.asarray(as_numpy(y_trusted) if is_foreign(y_trusted) else y_trusted, dtype=object)
    if labels.shape != (n,):
        raise ValueError(
            f"{name} has shape {labels.shape} but there are {n} rows: give one entry for each, "
            "None where the true label is not known (cross-validation and searches do not split it "
            "with the rows)."
        )
    missing = (
        np.ma.getmaskarray(y_trusted)
        if isinstance(y_trusted, np.ma.MaskedArray)
        else np.zeros(n, dtype=bool)
    )
    index = {label: code for code, label in enumerate(classes.tolist())}
    return np.array(
        [UNCHECKED if missing[i] else _true_code(labels[i], index, name) for i in rows],
        dtype=np.intp,
    )


def _true_code(label: Any, index: dict[Any, int], name: str) -> int:
    if is_missing(label):
        return UNCHECKED
    try:
        return index[label]
    except (KeyError, TypeError):
        raise ValueError(
            f"{name} holds the label {label!r}, which is not among the observed classes "
            f"{list(index)}: correct it, or put None where the true label is not known."
        ) from None


def is_missing(label: Any) -> bool:
    """Whether this stands for a missing value: None, NaN, NaT or pandas.NA."""
    if label is None:
        return True
    try:
        return bool(label != label)  # NaN and NaT alone are unlike themselves
    except (TypeError, ValueError):
        return True  # pandas.NA does not know whether it is


def contrasts(n_classes: int) -> FloatArray:
    """Return k × (k − 1) values that tell classes apart: −1 and +1 for two, orthonormal contrasts for more."""
    return np.array([[-1.0], [1.0]]) if n_classes == 2 else np.asarray(helmert(n_classes).T)
