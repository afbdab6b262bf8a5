"""Array operations that work for NumPy and for any array-API namespace and device.

Small tables (classes, scores, regularization strengths) are NumPy arrays on the host. Arrays with
one entry per row stay in the namespace and on the device of the rows. Only `as_numpy` copies from a
device to the host; `like` copies small tables to a device. For NumPy arrays both return their
input, and the other functions call NumPy or SciPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import (
    array_namespace,
    device,
    is_array_api_obj,
    is_dask_array,
    is_numpy_namespace,
    to_device,
)
from numpy.typing import NDArray
from scipy import special

from unflip._utils.typing import Array, FloatArray

#: Numbers in a block of intermediate results on a device, where few large steps are fast.
LARGE_BLOCK = 2**26
#: Smallest positive float64 with full precision.
TINY = float(np.finfo(float).tiny)


def is_numpy(values: Array) -> bool:
    """Whether this is a NumPy array."""
    return isinstance(values, np.ndarray)


def is_foreign(values: object) -> bool:
    """Whether this is an array of another namespace than NumPy; lazily read rows are not."""
    if not is_array_api_obj(values) or is_dask_array(values):
        return False
    return not is_numpy_namespace(array_namespace(values))


def namespace(values: Array) -> Any:
    """Return the namespace of an array, without a search for NumPy arrays."""
    return np if isinstance(values, np.ndarray) else array_namespace(values)


def place(values: Array) -> str:
    """Return type and device of an array in words, such as "torch tensor on cuda:0"."""
    kind = type(values)
    return f"{kind.__module__.split('.')[0]} {kind.__name__.lower()} on {device(values)}"


def as_numpy(values: Any) -> NDArray[Any]:
    """Return values of any namespace and device as a NumPy array."""
    try:
        return np.asarray(values)
    except (TypeError, RuntimeError):  # the values are on a device
        return np.asarray(_on_host(values))


def _on_host(values: Array) -> Array:
    try:
        return to_device(values, "cpu")
    except ValueError:  # the namespace has another name for the host
        info = array_namespace(values).__array_namespace_info__()
        return to_device(values, info.default_device())


def numbers(*values: Array) -> list[float]:
    """Return 0-D arrays as floats, copied to the host at once: every copy waits for the device."""
    if not is_foreign(values[0]):
        return [float(value) for value in values]
    return [float(value) for value in as_numpy(array_namespace(*values).stack(values))]


def like(table: Any, rows: Array) -> Array:
    """Return a small table in the namespace and on the device of an array; its dtype stays.

    A table that is not a NumPy array is returned unchanged.
    """
    if is_numpy(rows):
        return np.asarray(table)
    if is_foreign(table):
        return table
    # A copy, because some namespaces share memory with NumPy and warn of read-only tables.
    return array_namespace(rows).asarray(np.array(table), device=device(rows))


def pick(table: FloatArray, codes: Array) -> Array:
    """Return the row of a table (k,) or (k, m) for each code, stored column by column."""
    if is_numpy(codes):
        return np.take(table.T, codes, axis=-1).T
    return array_namespace(codes).take(like(table, codes), codes, axis=0)


def times_table(rows: Array, table: FloatArray) -> Array:
    """Return the product of (n, r) rows and a table (r, k), stored column by column."""
    return (like(table, rows).T @ rows.T).T


def in_columns(values: Array) -> Array:
    """Return an array (n, k) stored column by column.

    For small k, sums and maxima over the k entries of each row are then several times as fast.
    """
    return np.asfortranarray(values) if is_numpy(values) else values


def take(values: Array, indices: Array) -> Array:
    """Return these entries of an array, along its first axis."""
    if is_numpy(values):
        return values[indices]
    return array_namespace(values).take(values, indices, axis=0)


def _equals_code(codes: Array, k: int) -> Array:
    """Whether each code equals each of 0 … k − 1, (n, k)."""
    xp = namespace(codes)
    return codes[:, None] == xp.arange(k, dtype=codes.dtype, device=device(codes))[None, :]


def one_hot(codes: Array, k: int) -> Array:
    """Return 1 in the column of each code and 0 elsewhere, (n, k)."""
    if is_numpy(codes):
        return np.eye(k)[codes]
    xp = namespace(codes)
    return xp.astype(_equals_code(codes, k), xp.float64)


def own_entries(values: Array, codes: Array) -> Array:
    """Return the entry of each row (n, k) in the column of its code, (n,)."""
    if is_numpy(values):
        return values[np.arange(len(codes)), codes]
    xp = namespace(values)
    return xp.sum(xp.where(_equals_code(codes, values.shape[1]), values, 0.0), axis=1)


def sums_by_code(codes: Array, weights: Array, k: int) -> FloatArray:
    """Return the sum of the weights of each code 0 … k − 1, on the host."""
    if is_numpy(codes):
        return np.bincount(codes, weights, minlength=k).astype(float)
    return as_numpy(weights @ one_hot(codes, k))


def row_products(first: Array, second: Array) -> Array:
    """Return the row-wise inner products of two arrays (n, k), (n,)."""
    if is_numpy(first):
        return np.einsum("nk,nk->n", first, second)
    return array_namespace(first).sum(first * second, axis=1)


def at_least(values: Array, smallest: float) -> Array:
    """Return the values clipped from below."""
    if is_numpy(values):
        return np.maximum(values, smallest)
    return namespace(values).clip(values, min=smallest)


def largest_magnitude(values: Array) -> float:
    """Return the largest absolute value, without a temporary array of absolute values."""
    if is_numpy(values):
        return max(float(values.max()), -float(values.min()))
    xp = namespace(values)
    return float(xp.linalg.vector_norm(values, ord=float("inf")))


def expit(log_odds: Array) -> Array:
    """Return probabilities from log-odds, accurate in both tails."""
    if is_numpy(log_odds):
        return special.expit(log_odds)
    xp = namespace(log_odds)
    if hasattr(xp, "sigmoid"):  # not in the standard, but one pass
        return xp.sigmoid(log_odds)
    smaller = xp.exp(-xp.abs(log_odds))
    return xp.where(log_odds >= 0, 1.0, smaller) / (1 + smaller)


def softmax(logits: Array) -> Array:
    """Return the softmax of each row; faster than SciPy's for small arrays."""
    xp = namespace(logits)
    if not is_numpy(logits) and hasattr(xp, "softmax"):  # not in the standard, but one pass
        return xp.softmax(logits, axis=1)
    return softmax_and_logsumexp(logits)[0]


def softmax_and_logsumexp(logits: Array) -> tuple[Array, Array]:
    """Return the softmax of each row, (n, k), and the log-sum-exp, (n,)."""
    xp = namespace(logits)
    largest = xp.max(logits, axis=1, keepdims=True)
    positive = xp.exp(logits - largest)
    total = xp.sum(positive, axis=1, keepdims=True)
    positive /= total
    return positive, (largest + xp.log(total))[:, 0]
