"""Class indices of labels, trusted labels included."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import helmert

from unflip._utils.arrays import as_numpy, is_foreign, is_numpy, like
from unflip._utils.typing import Array, FloatArray, IntArray
from unflip._utils.validation import as_floats
from unflip.labels.codes import UNCHECKED


def encode(
    y: Array, owner: str, *, all_rows: bool = True, name: str = "y"
) -> tuple[NDArray[Any], Array]:
    """Return the sorted classes on the host, and class indices on the device of the labels.

    Raises `ValueError` if there are fewer than two classes, or `y` does not hold class labels.

    Parameters
    ----------
    y : array of shape (n,)
        Labels.
    owner : str
        Name of the caller, for the error message.
    all_rows : bool
        Whether `y` are the labels of all rows, zero-weight and unlabelled rows included.
    name : str
        Name of the argument, for errors.
    """
    kind, classes, codes = _encode_numpy(y) if is_numpy(y) else _encode_array_api(y)
    if kind not in ("binary", "multiclass"):
        raise ValueError(
            f"{owner} needs class labels, but the type of the target is {kind}. Unknown label type."
        )
    if len(classes) < 2:
        content = f"only one class, {classes.tolist()[0]!r}" if len(classes) else "no class"
        where = "" if all_rows else ", in labelled rows of positive weight"
        raise ValueError(f"{owner} needs at least two classes, but {name} has {content}{where}.")
    return classes, codes


def _encode_numpy(y: NDArray[Any]) -> tuple[str, NDArray[Any], IntArray]:
    """Return scikit-learn's type of the target, the classes and the class indices."""
    # Imported here, because `unflip.theory` loads without scikit-learn.
    from sklearn.utils.multiclass import type_of_target

    if y.dtype == object:
        _check_comparable(y)
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind not in ("binary", "multiclass"):
        return kind, y[:0], np.empty(0, dtype=np.intp)
    classes, codes = np.unique(y, return_inverse=True)
    return kind, classes, codes.astype(np.intp)


def _check_comparable(y: NDArray[Any]) -> None:
    """Raise `ValueError` if labels are missing or cannot be sorted."""
    try:
        distinct = set(y.tolist())
    except TypeError:  # not labels: scikit-learn raises its own error
        return
    if any(map(is_missing, distinct)):
        raise ValueError(
            "y holds a missing label: leave such rows out, or pass Votes.from_columns(y), where "
            "labels may be missing."
        )
    try:
        sorted(distinct)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in distinct})
        raise ValueError(
            f"y holds labels of several types ({', '.join(kinds)}), which cannot be sorted: "
            "convert them to one type."
        ) from None


def _encode_array_api(y: Array) -> tuple[str, NDArray[Any], Array]:
    """Return the same for arrays of other namespaces, which hold numbers."""
    xp = array_namespace(y)
    unique = xp.unique_inverse(y)
    classes = as_numpy(unique.values)
    codes = xp.astype(xp.reshape(unique.inverse_indices, (-1,)), xp.int64, copy=False)
    is_whole = classes.dtype.kind != "f" or bool((classes == np.round(classes)).all())
    return "multiclass" if is_whole else "continuous", classes, codes


def true_codes(
    y_trusted: ArrayLike | None, n: int, rows: IntArray, classes: NDArray[Any], name: str
) -> IntArray:
    """Return the class index of the trusted label of each row, `UNCHECKED` if it is missing.

    Parameters
    ----------
    y_trusted : array-like of shape (n,) or None
        Trusted labels; None, NaN, pandas.NA, "" or a mask if missing. None: all are missing.
    n : int
        Number of all rows.
    rows : ndarray of int
        Rows to return.
    classes : ndarray of shape (k,)
        Observed labels, sorted.
    name : str
        Name of `y_trusted` in the caller, for the error message.
    """
    if y_trusted is None:
        return np.full(len(rows), UNCHECKED)
    labels = np.asarray(as_numpy(y_trusted) if is_foreign(y_trusted) else y_trusted, dtype=object)
    if labels.shape != (n,):
        raise ValueError(
            f"The trusted labels ({name}) have shape {labels.shape} but there are {n} rows: pass "
            "one entry for each row, None if the true label is unknown."
        )
    if isinstance(y_trusted, np.ma.MaskedArray):
        labels = labels.copy()
        labels[np.ma.getmaskarray(y_trusted)] = None
    index = {label: code for code, label in enumerate(classes.tolist())}
    return np.array([_true_code(labels[i], index, name) for i in rows], dtype=np.intp)


def _true_code(label: Any, index: dict[Any, int], name: str) -> int:
    if is_missing(label):
        return UNCHECKED
    try:
        return index[label]
    except (KeyError, TypeError):
        raise ValueError(
            f"The trusted labels ({name}) contain {label!r}, which is not among the observed "
            f"classes {list(index)}: correct it, or use None if the true label is unknown."
        ) from None


def inclusion_probabilities(
    inclusion: ArrayLike | None, n: int, rows: IntArray, truth: IntArray
) -> FloatArray | None:
    """Return the probability with which each row was chosen for a check; None if unknown.

    Parameters
    ----------
    inclusion : array-like of shape (n,) or None
        The probabilities; those of unchecked rows are ignored.
    n : int
        Number of all rows.
    rows : ndarray of int
        Rows to return.
    truth : ndarray of int
        True class of these rows, `UNCHECKED` for the others.
    """
    if inclusion is None:
        return None
    probabilities = as_floats(inclusion, "inclusion")
    if probabilities.shape != (n,):
        raise ValueError(
            f"inclusion has shape {probabilities.shape} but there are {n} rows: pass for each row "
            "the probability with which it was chosen for a check."
        )
    chosen = probabilities[rows]
    is_bad = (truth != UNCHECKED) & ~((chosen > 0) & (chosen <= 1))
    if is_bad.any():
        row = int(rows[is_bad][0])
        raise ValueError(
            f"inclusion[{row}] = {probabilities[row]:g} must be above 0 and at most 1: pass the "
            "probability with which this checked row was chosen."
        )
    return np.asarray(np.where(truth == UNCHECKED, 1.0, chosen))


def split_missing(y: Any) -> tuple[Any, NDArray[np.bool_] | None]:
    """Return labels with a value for each row, and on the host which of them were missing.

    Missing labels are replaced by one that occurs, so that labels keep their type: give such rows
    weight 0. If no label is missing, `y` is returned unchanged, with None.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels; None, NaN, NaT, pandas.NA or an empty string if missing. Anything else, such as a
        table or a masked array, is returned unchanged.
    """
    labels = _in_one_column(y)
    if labels is None:
        return y, None
    missing = _missing_entries(labels)
    if not missing.any():
        return y, None
    if missing.all():
        raise ValueError(f"y has no label: all {len(labels)} are missing.")
    present = _of_one_type(labels[~missing])
    filled = np.full(len(labels), present[0], dtype=present.dtype)
    filled[~missing] = present
    return like(filled, y) if is_foreign(y) else filled, missing


def _in_one_column(y: Any) -> NDArray[Any] | None:
    """Return labels as an array (n,) on the host; None if they are not such an array."""
    if y is None or isinstance(y, np.ma.MaskedArray):
        return None
    if is_foreign(y) and not _has_nan(y):  # no copy of labels that stay on their device
        return None
    dtype = object if isinstance(y, list | tuple) else None  # keeps NaN between strings
    try:
        labels = as_numpy(y) if is_foreign(y) else np.asarray(y, dtype=dtype)
    except (TypeError, ValueError):
        return None
    return labels if labels.ndim == 1 and len(labels) else None


def _has_nan(y: Array) -> bool:
    """Whether an array of another namespace has missing numbers."""
    xp = array_namespace(y)
    return bool(xp.isdtype(y.dtype, "real floating") and xp.any(xp.isnan(y)))


def _missing_entries(labels: NDArray[Any]) -> NDArray[np.bool_]:
    kind = labels.dtype.kind
    if kind in "fc":
        return np.asarray(np.isnan(labels))
    if kind in "mM":
        return np.asarray(np.isnat(labels))
    if kind == "U":
        return np.asarray(labels == "")
    if kind == "O":
        return np.array([is_missing(label) for label in labels], dtype=bool)
    return np.zeros(len(labels), dtype=bool)


def _of_one_type(labels: NDArray[Any]) -> NDArray[Any]:
    """Return objects that are numbers as an array of numbers, and other labels unchanged."""
    if labels.dtype != object:
        return labels
    converted = np.array(labels.tolist())
    return converted if converted.dtype.kind in "biuf" else labels


def is_missing(label: Any) -> bool:
    """Whether this is a missing value: None, NaN, NaT, pandas.NA or an empty string."""
    if label is None or (isinstance(label, str) and not label):
        return True
    try:
        return bool(label != label)  # only NaN and NaT differ from themselves
    except (TypeError, ValueError):
        return True  # the truth value of pandas.NA is undefined


def contrasts(n_classes: int) -> FloatArray:
    """Return k × (k − 1) contrasts of the classes: ∓1 for two, orthonormal ones for more."""
    if n_classes == 2:
        return np.array([[-1.0], [1.0]])
    return np.asarray(helmert(n_classes).T)
