"""Arrays of other namespaces than NumPy's, taken as scikit-learn's estimators take them: everything follows X.

With ``sklearn.set_config(array_api_dispatch=True)`` rows stay in their namespace and on their
device, and labels and weights are put beside them. Otherwise scikit-learn makes NumPy arrays of
everything, which it cannot on a device.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device
from sklearn import get_config
from sklearn.utils.validation import _check_sample_weight

from unflip._utils.arrays import as_numpy, is_foreign, like, place
from unflip._utils.typing import Array, Rows
from unflip._utils.validation import as_floats


def takes_as_it_is(values: object) -> bool:
    """Whether this is an array of another namespace that is not to be made NumPy's."""
    return is_foreign(values) and bool(get_config()["array_api_dispatch"])


def check_reachable(**given: object) -> None:
    """Raise where an argument is on a device, and scikit-learn would take it for something to make NumPy's."""
    for name, values in given.items():
        if is_foreign(values) and not takes_as_it_is(values) and not _is_on_host(values):
            raise ValueError(
                f"{name} is a {place(values)}: call sklearn.set_config(array_api_dispatch=True) to "
                "work there, or move it to the CPU."
            )


def _is_on_host(values: Array) -> bool:
    try:
        np.asarray(values[:0, :] if values.ndim == 2 else values[:0])
    except (TypeError, RuntimeError):
        return False
    return True


def precisions(X: object) -> list[Any]:
    """Return the precisions of rows that are taken as they are; others become the first.

    Of rows that are read lazily, with a `precision` of their own, these are NumPy's, wherever the
    rows are used.
    """
    xp: Any = array_namespace(X) if takes_as_it_is(X) and not hasattr(X, "precision") else np
    return [xp.float64, xp.float32]


def beside(values: Any, X: Rows) -> Any:
    """Return an array of another namespace where the rows are; NumPy's are left as they are."""
    if not is_foreign(values) or (is_foreign(X) and place(values) == place(X)):
        return values
    return like(as_numpy(values), X) if is_foreign(X) else as_numpy(values)


@contextmanager
def reraise_out_of_memory(X: Rows) -> Iterator[None]:
    """Say what to do where a device runs out of memory; array libraries have errors of their own for that."""
    try:
        yield
    except Exception as error:
        if type(error).__name__ != "OutOfMemoryError":
            raise
        raise MemoryError(
            f"There is not enough memory beside X, a {place(X)} of shape {tuple(X.shape)}: give "
            "fewer rows, rows of single precision, or stream them from the host "
            "(unflip.data.streamed)."
        ) from error


def checked_weights(sample_weight: object, X: Rows) -> Array:
    """Return weights of the rows, 1 by default, in double precision where the rows are."""
    weights = beside(sample_weight, X)
    if weights is not None and not is_foreign(weights):
        weights = as_floats(weights, "sample_weight")
        if not np.isfinite(weights).all():
            raise ValueError(
                "sample_weight holds NaN or infinite values: give finite weights, none below 0."
            )
        weights = weights if weights.ndim else float(weights)
    if not is_foreign(X):
        return _check_sample_weight(weights, X, dtype=np.float64, ensure_non_negative=True)
    xp = array_namespace(X)
    if weights is None or isinstance(weights, Real):  # scikit-learn 1.7 would make ones on the host
        weights = xp.full(
            X.shape[0],
            1.0 if weights is None else float(weights),
            dtype=xp.float64,
            device=device(X),
        )
    elif not is_foreign(weights):
        weights = like(np.asarray(weights), X)
    return _check_sample_weight(weights, X, dtype=xp.float64, ensure_non_negative=True)


def check_together(fitted: Array, X: Rows, asked: str) -> None:
    """Raise where the rows of a method, by its full name, are not where its estimator was fitted."""
    known, found = _whereabouts(fitted), _whereabouts(X)
    if known != found:
        raise ValueError(
            f"{asked}() must use the same namespace and device as fit(), which was on {known}, but "
            f"X is on {found}: move X there, or fit where X is."
        )


def _whereabouts(values: Rows) -> str:
    return (
        f"{array_namespace(values).__name__.split('.')[-1]} {device(values)}"
        if is_foreign(values)
        else "numpy cpu"
    )
