"""Between small tables, which are NumPy's on the host, and arrays that are as long as the rows, wherever these live.

Tables of a few classes, scores or penalties are worked on by NumPy and SciPy. Arrays with an entry
for each row stay in the namespace and on the device of the rows; what they come down to is brought
to the host by `as_numpy`, by name, and tables are put beside them by `like`. For NumPy's arrays
both do nothing, and all else here is a function of NumPy's or SciPy's own.
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

#: Numbers of a block of what is made of many rows at once, off the CPU: there few large steps are fast.
LARGE_BLOCK = 2**26
#: The smallest number with all digits.
TINY = float(np.finfo(float).tiny)


def is_numpy(values: Array) -> bool:
    """Whether an array is NumPy's."""
    return isinstance(values, np.ndarray)


def is_foreign(values: object) -> bool:
    """Whether this is an array of another namespace than NumPy's, which what is read lazily is not."""
    if not is_array_api_obj(values) or is_dask_array(values):
        return False
    return not is_numpy_namespace(array_namespace(values))


def namespace(values: Array) -> Any:
    """Return the namespace of an array: what array_api_compat finds, at once where it is NumPy."""
    return np if isinstance(values, np.ndarray) else array_namespace(values)


def place(values: Array) -> str:
    """Say in words what an array is and where: "torch tensor on cuda:0"."""
    kind = type(values)
    return f"{kind.__module__.split('.')[0]} {kind.__name__.lower()} on {device(values)}"


def as_numpy(values: Any) -> NDArray[Any]:
    """Return values of any namespace, kind and device as a NumPy array: the one way from a device to the host."""
    try:
        return np.asarray(values)
    except (TypeError, RuntimeError):  # they are on another device
        return np.asarray(_on_host(values))


def _on_host(values: Array) -> Array:
    try:
        return to_device(values, "cpu")
    except ValueError:  # the namespace has a name of its own for the host
        return to_device(
            values, array_namespace(values).__array_namespace_info__().default_device()
        )


def numbers(*values: Array) -> list[float]:
    """Return arrays of one number each as numbers, brought to the host together: each time it waits for the device."""
    if not is_foreign(values[0]):
        return [float(value) for value in values]
    return [float(value) for value in as_numpy(array_namespace(*values).stack(values))]


def like(table: Any, rows: Array) -> Array:
    """Return a small table in the namespace and on the device of an array, with a dtype of its own.

    A table that is no NumPy array is taken to be there already.
    """
    if is_numpy(rows):
        return np.asarray(table)
    if is_foreign(table):
        return table
    # A copy: some namespaces share memory with NumPy, and warn of tables that must not be written
    # to.
    return array_namespace(rows).asarray(np.array(table), device=device(rows))


def pick(table: FloatArray, codes: Array) -> Array:
    """Return the row of a table (k,) or (k, m) that each code names, (n,) or (n, m); see `in_columns`."""
    if is_numpy(codes):
        return np.take(table.T, codes, axis=-1).T
    return array_namespace(codes).take(like(table, codes), codes, axis=0)


def times_table(rows: Array, table: FloatArray) -> Array:
    """Return the product of (n, r) and a table (r, k); see `in_columns`."""
    return (like(table, rows).T @ rows.T).T


def in_columns(values: Array) -> Array:
    """Return an array (n, k) that is in memory column after column.

    Sums and maxima over the k entries of each row are then those of columns: for small k several
    times as fast.
    """
    return np.asfortranarray(values) if is_numpy(values) else values


def taken(values: Array, indices: Array) -> Array:
    """Return these entries of an array, along its first axis."""
    return (
        values[indices]
        if is_numpy(values)
        else array_namespace(values).take(values, indices, axis=0)
    )


def is_of(codes: Array, k: int) -> Array:
    """Whether each code is each of 0 … k − 1, (n, k)."""
    xp = namespace(codes)
    return codes[:, None] == xp.arange(k, dtype=codes.dtype, device=device(codes))[None, :]


def one_hot(codes: Array, k: int) -> Array:
    """1 in the column that each code names, 0 elsewhere, (n, k)."""
    if is_numpy(codes):
        return np.eye(k)[codes]
    xp = namespace(codes)
    return xp.astype(is_of(codes, k), xp.float64)


def own_entries(values: Array, codes: Array) -> Array:
    """Return the entry of each row (n, k) that its code names, (n,)."""
    if is_numpy(values):
        return values[np.arange(len(codes)), codes]
    xp = namespace(values)
    return xp.sum(xp.where(is_of(codes, values.shape[1]), values, 0.0), axis=1)


def sums_by_code(codes: Array, weights: Array, k: int) -> FloatArray:
    """Sum of the weights of each code 0 … k − 1, on the host."""
    if is_numpy(codes):
        return np.bincount(codes, weights, minlength=k).astype(float)
    return as_numpy(weights @ one_hot(codes, k))


def row_products(first: Array, second: Array) -> Array:
    """Σ over the columns of the products of two arrays (n, k), (n,)."""
    if is_numpy(first):
        return np.einsum("nk,nk->n", first, second)
    return array_namespace(first).sum(first * second, axis=1)


def at_least(values: Array, smallest: float) -> Array:
    """Raise entries below the smallest to it."""
    return (
        np.maximum(values, smallest)
        if is_numpy(values)
        else namespace(values).clip(values, min=smallest)
    )


def largest_magnitude(values: Array) -> float:
    """Return the largest absolute value, without an array of all of them."""
    if is_numpy(values):
        return max(float(values.max()), -float(values.min()))
    xp = namespace(values)
    return float(xp.linalg.vector_norm(values, ord=float("inf")))


def expit(log_odds: Array) -> Array:
    """Return probabilities of log-odds, with all digits of small ones."""
    if is_numpy(log_odds):
        return special.expit(log_odds)
    xp = namespace(log_odds)
    if hasattr(xp, "sigmoid"):  # not in the standard; where it exists it is one pass
        return xp.sigmoid(log_odds)
    smaller = xp.exp(-xp.abs(log_odds))
    return xp.where(log_odds >= 0, 1.0, smaller) / (1 + smaller)


def softmax(logits: Array) -> Array:
    """Probabilities of each row's classes; SciPy's function, without what small arrays would pay for its generality."""
    if not is_numpy(logits) and hasattr(
        namespace(logits), "softmax"
    ):  # not in the standard; one pass where it exists
        return namespace(logits).softmax(logits, axis=1)
    return softmax_and_logsumexp(logits)[0]


def softmax_and_logsumexp(logits: Array) -> tuple[Array, Array]:
    """Probabilities of each row's classes, (n, k), and the log of the sum that they were divided by, (n,)."""
    xp = namespace(logits)
    largest = xp.max(logits, axis=1, keepdims=True)
    positive = xp.exp(logits - largest)
    total = xp.sum(positive, axis=1, keepdims=True)
    positive /= total
    return positive, (largest + xp.log(total))[:, 0]
