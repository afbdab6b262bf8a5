"""Array API dispatch as in scikit-learn: everything follows the namespace and device of X.

With ``sklearn.set_config(array_api_dispatch=True)`` rows stay in their namespace and on their
device, and labels and weights are moved there. Otherwise scikit-learn converts all arrays to NumPy,
which fails for arrays on a device.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any, Protocol, runtime_checkable

import numpy as np
from array_api_compat import array_namespace, device
from sklearn import get_config
from sklearn.utils.validation import _check_sample_weight

from unflip._utils.arrays import as_numpy, is_foreign, like, place
from unflip._utils.typing import Array, Rows
from unflip._utils.validation import as_floats


@runtime_checkable
class ReadLazily(Protocol):
    """Rows that are read in blocks and converted to a NumPy dtype on the host first."""

    precision: Any


def is_dispatched(values: object) -> bool:
    """Whether this array of another namespace stays there, by array API dispatch."""
    return is_foreign(values) and bool(get_config()["array_api_dispatch"])


def check_reachable(**arrays: object) -> None:
    """Raise ValueError if an array is on a device and array API dispatch is off."""
    for name, values in arrays.items():
        if is_foreign(values) and not is_dispatched(values) and not _is_on_host(values):
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
    """Return the dtypes of X that are kept; other dtypes are converted to the first.

    For lazily read rows these are NumPy dtypes, even if their blocks are on a device.
    """
    is_array = is_dispatched(X) and not isinstance(X, ReadLazily)
    xp: Any = array_namespace(X) if is_array else np
    return [xp.float64, xp.float32]


def to_device_of(X: Rows, values: Any) -> Any:
    """Return values of another namespace in that of X and on its device; NumPy arrays unchanged."""
    if not is_foreign(values) or (is_foreign(X) and place(values) == place(X)):
        return values
    return like(as_numpy(values), X) if is_foreign(X) else as_numpy(values)


@contextmanager
def reraise_out_of_memory(X: Rows) -> Iterator[None]:
    """Raise MemoryError with a remedy if the device of X runs out of memory.

    Array libraries raise an ``OutOfMemoryError`` of their own.
    """
    try:
        yield
    except Exception as error:
        if type(error).__name__ != "OutOfMemoryError":
            raise
        raise MemoryError(
            f"Out of memory for X, a {place(X)} of shape {tuple(X.shape)}: pass fewer rows, use "
            "single precision, or stream the rows from the host (unflip.data.streamed)."
        ) from error


def checked_weights(sample_weight: object, X: Rows) -> Array:
    """Return the weights of the rows, 1 by default, as float64 in the namespace and device of X."""
    weights = to_device_of(X, sample_weight)
    if weights is not None and not is_foreign(weights):
        weights = as_floats(weights, "sample_weight")
        if not np.isfinite(weights).all():
            raise ValueError(
                "sample_weight holds NaN or infinite values: pass finite, non-negative weights."
            )
        weights = weights if weights.ndim else float(weights)
    if not is_foreign(X):
        return _check_sample_weight(weights, X, dtype=np.float64, ensure_non_negative=True)
    xp = array_namespace(X)
    if weights is None or isinstance(weights, Real):  # scikit-learn 1.7 makes these on the host
        weight = 1.0 if weights is None else float(weights)
        weights = xp.full(X.shape[0], weight, dtype=xp.float64, device=device(X))
    elif not is_foreign(weights):
        weights = like(np.asarray(weights), X)
    return _check_sample_weight(weights, X, dtype=xp.float64, ensure_non_negative=True)


def check_same_device(fitted: Array, X: Rows, method: str) -> None:
    """Raise ValueError if X of a method is not in the namespace and device of the fit."""
    fit_device = _namespace_and_device(fitted)
    own_device = _namespace_and_device(X)
    if fit_device != own_device:
        raise ValueError(
            f"{method}() must use the same namespace and device as fit(), which was on "
            f"{fit_device}, but X is on {own_device}: move X there, or fit on {own_device}."
        )


def _namespace_and_device(values: Rows) -> str:
    if not is_foreign(values):
        return "numpy cpu"
    return f"{array_namespace(values).__name__.split('.')[-1]} {device(values)}"
