"""Rows and labels as users pass them to estimators, validated like scikit-learn does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from unflip._utils.arrays import place
from unflip._utils.namespaces import is_dispatched
from unflip._utils.typing import Rows
from unflip._utils.validation import check_unmasked, reading_rows
from unflip.data.engines.engine import dask_engine, is_dask
from unflip.data.lazy import LazyRows, is_lazy

_NO_LABELS = "no_validation"  # scikit-learn's default for y; None means that labels are missing


def validated(
    estimator: object,
    X: object,
    y: ArrayLike | None = _NO_LABELS,
    *,
    dtype: DTypeLike | list[type],
    reset: bool = True,
    ensure_min_samples: int = 1,
) -> Any:
    """Validate rows of any kind, and labels if there are any, like scikit-learn's `validate_data`.

    Rows that are read lazily are returned as `LazyRows`. They are checked to be finite when they
    are first read, which saves a pass.
    """
    y = in_memory(y)
    check_unmasked(y=y)
    # Estimators that work in any namespace pass a list of its precisions.
    if is_dispatched(X) and not isinstance(dtype, list):
        raise ValueError(
            f"{type(estimator).__name__} needs NumPy arrays, but X is a {place(X)}: convert X to "
            "NumPy first."
        )
    if not is_lazy(X):
        options = {"accept_sparse": "csr", "dtype": dtype, "ensure_min_samples": ensure_min_samples}
        # scikit-learn checks the sum of all numbers first, and each number if the sum is NaN.
        with (
            reading_rows(X),
            _reading_labels(),
            np.errstate(invalid="ignore"),  # sums of large numbers may be NaN
        ):
            return validate_data(estimator, X, y, reset=reset, **options)
    rows = LazyRows.of(X, dtype)
    _check_size(rows.shape, ensure_min_samples)
    has_labels = not (isinstance(y, str) and y == _NO_LABELS)
    with _reading_labels():
        labels = validate_data(estimator, y=y) if has_labels else None
    # Last, because it stores the feature names on the estimator.
    validate_data(estimator, rows.header, reset=reset, skip_check_array=True)
    if labels is None:
        return rows
    check_consistent_length(rows, labels)
    return rows, labels


@contextmanager
def _reading_labels() -> Iterator[None]:
    """Add a remedy to scikit-learn's error for missing labels."""
    try:
        yield
    except ValueError as error:
        if str(error) != "Input y contains NaN.":
            raise
        raise ValueError("Input y contains NaN: remove the unlabelled samples.") from None


def _check_size(shape: tuple[int, int], min_samples: int) -> None:
    """Raise scikit-learn's errors for too few rows and for no features."""
    if shape[0] < min_samples:
        raise ValueError(
            f"Found array with {shape[0]} sample(s) (shape={shape}) while a minimum of "
            f"{min_samples} is required."
        )
    if shape[1] < 1:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required."
        )


def in_memory(values: Any) -> Any:
    """Return labels or weights of a Dask collection as an array, and others unchanged."""
    return dask_engine().in_memory(values) if is_dask(values) else values


def open_dask(X: Any) -> Any:
    """Return a Dask collection as `LazyRows`, and other rows unchanged."""
    return LazyRows.of(X, [np.float64, np.float32]) if is_dask(X) else X


def as_rows(X: Any) -> Rows:
    """Return lazily read rows as `LazyRows` in double precision, others as an array of floats."""
    if is_lazy(X):
        return LazyRows.of(X)
    is_single = getattr(X, "dtype", None) == np.float32
    return np.asarray(X, dtype=np.float32 if is_single else np.float64)


class Portable(Protocol):
    """An estimator whose predictions workers of Dask can compute."""

    def _alone(self) -> Any:
        """Return an estimator with the same predictions, and no attribute of the samples."""


def lazy_for_dask(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Let a method of a fitted `Portable` return a lazy Dask array for a Dask collection."""

    @wraps(method)
    def for_any_rows(estimator: Portable, X: Any) -> Any:
        if not is_dask(X):
            return method(estimator, X)
        check_is_fitted(estimator)
        return dask_engine().lazily(getattr(estimator._alone(), method.__name__), X)

    return for_any_rows


@contextmanager
def unchanged_on_error(estimator: object) -> Iterator[None]:
    """Restore the attributes of an estimator if the body raises."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
