"""Chunks of labelled rows from iterators and files, checked one at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import _get_feature_names

from unflip._utils.alignment import check_aligned
from unflip._utils.arrays import as_numpy, is_foreign
from unflip._utils.sparse import canonical
from unflip._utils.typing import Array, FloatArray, IntArray, Rows
from unflip._utils.validation import as_array, as_floats, check_unmasked, reading_rows, shown
from unflip.labels.classes import is_missing

#: Bound on values and weights: sums of 1e28 of its squares, 1e280, do not overflow float64.
LARGEST = 1e140


@dataclass(frozen=True, eq=False)
class Chunk:
    """Checked rows with their labels and weights.

    Attributes
    ----------
    X : array of shape (m, p), of any array-API namespace or of scipy.sparse
        Rows.
    codes : ndarray of int, shape (m,)
        Index of the observed class of each row.
    weights : ndarray of shape (m,) or None
        Weights; None if all are 1.
    """

    X: Rows
    codes: IntArray
    weights: FloatArray | None

    @property
    def n_rows(self) -> int:
        """Number of rows m."""
        return int(self.X.shape[0])


class Block:
    """A buffer that collects rows of chunks, because few large products are faster than many small.

    The memory is reused: to allocate it takes as long as the products.

    Parameters
    ----------
    height : int
        Number of rows that fit into the buffer.
    chunk : Chunk
        A chunk with the namespace, device and columns of all chunks.
    """

    def __init__(self, height: int, chunk: Chunk) -> None:
        like = chunk.X.data if issparse(chunk.X) else chunk.X
        xp = array_namespace(like)
        self.height = height
        self.n_rows = 0
        self._rows = xp.empty((height, chunk.X.shape[1]), dtype=xp.float64, device=device(like))
        self._codes = np.empty(height, dtype=np.intp)
        self._weights = np.empty(height)

    def fill(self, chunk: Chunk, start: int) -> int:
        """Copy rows of a chunk from `start` on, as many as fit, and return where it stopped."""
        stop = min(start + self.height - self.n_rows, chunk.n_rows)
        part = slice(start, stop)
        target = slice(self.n_rows, self.n_rows + stop - start)
        self._rows[target, :] = _dense_part(chunk.X, part)
        self._codes[target] = chunk.codes[part]
        self._weights[target] = 1.0 if chunk.weights is None else chunk.weights[part]
        self.n_rows = target.stop
        return stop

    @property
    def is_full(self) -> bool:
        """Whether no more rows fit."""
        return self.n_rows == self.height

    def sums(self, n_classes: int) -> tuple[Array, Array, Array, float]:
        """Return class weights, class means, scatter and Σ wᵢ², and empty the buffer."""
        rows = self._rows[: self.n_rows, :]
        codes = self._codes[: self.n_rows]
        row_weights = self._weights[: self.n_rows]
        xp = array_namespace(rows)
        weights = xp.asarray(row_weights, device=device(rows))
        total = float(row_weights.sum()) or 1.0
        mean = xp.matmul(weights, rows) / total
        rows -= mean[None, :]
        membership = xp.asarray(
            (codes[:, None] == np.arange(n_classes)) * row_weights[:, None], device=device(rows)
        )
        counts = xp.sum(membership, axis=0)
        class_sums = xp.matmul(membership.T, rows)
        if not (row_weights == 1).all():
            rows *= xp.sqrt(weights)[:, None]
        scatter = xp.matmul(rows.T, rows)
        self.n_rows = 0
        divisors = xp.where(counts > 0, counts, xp.ones_like(counts))
        means = mean[None, :] + class_sums / divisors[:, None]
        return counts, means, scatter, float(row_weights @ row_weights)


@dataclass(frozen=True, eq=False)
class Layout:
    """Properties that all chunks must share; None if not known yet.

    Attributes
    ----------
    n_features : int or None
        Number of columns.
    feature_names : ndarray of str or None
        Names of the columns.
    classes : ndarray or None
        Labels, sorted.
    namespace : module or None
        The array namespace, NumPy for rows that are not arrays.
    """

    n_features: int | None = None
    feature_names: NDArray[Any] | None = None
    classes: NDArray[Any] | None = None
    namespace: Any = None

    @classmethod
    def of(cls, classes: ArrayLike | None, feature_names: ArrayLike | None) -> Layout:
        """Return a layout with the classes and feature names that the user passes."""
        names = None
        if feature_names is not None:
            names = as_array(feature_names, "feature_names").astype(np.str_)
            if names.ndim != 1:
                raise ValueError(
                    f"feature_names = {shown(feature_names)} must be a list of names: pass one per "
                    "column."
                )
        labels = None if classes is None else checked_classes(classes)
        if labels is not None and not len(labels):
            raise ValueError("classes is empty: pass all labels that occur, or None.")
        return cls(None if names is None else len(names), names, labels)

    def with_rows(self, rows: Rows, names: NDArray[Any] | None) -> Layout:
        """Return the layout with that of a chunk; raise ValueError if they differ."""
        namespace = array_namespace(rows.data if issparse(rows) else rows)
        if self.namespace not in (None, namespace):
            raise ValueError(
                f"its rows are arrays of {namespace.__name__}, those of earlier chunks of "
                f"{self.namespace.__name__}"
            )
        return replace(self.with_columns(int(rows.shape[1]), names), namespace=namespace)

    def with_columns(self, n_features: int, names: NDArray[Any] | None) -> Layout:
        """Return the layout with a chunk's columns; raise ValueError if they differ."""
        if self.n_features is not None and n_features != self.n_features:
            expected = "are expected" if self.feature_names is None else "have feature_names"
            raise ValueError(f"it has {n_features} columns where {self.n_features} {expected}")
        if names is None:
            return replace(self, n_features=n_features)
        names = names.astype(np.str_)
        if self.feature_names is not None and not np.array_equal(names, self.feature_names):
            j = int(np.flatnonzero(names != self.feature_names)[0])
            raise ValueError(
                f"its column {j} is {str(names[j])!r} where {str(self.feature_names[j])!r} is "
                "expected"
            )
        return replace(self, n_features=n_features, feature_names=names)

    def column(self, j: int) -> str:
        """Return the name of a column for error messages."""
        name = j if self.feature_names is None else str(self.feature_names[j])
        return f"column {name!r}"


def block_height(n_features: int) -> int:
    """Return the number of rows to sum at a time.

    At least 2**18 numbers and 2048 rows, so that adding p×p matrices costs little beside making
    them.
    """
    return max(2**18 // max(n_features, 1), 2048)


def read_chunk(chunk: Any, expected: Layout) -> tuple[Chunk, Layout]:
    """Check (X, y) or (X, y, sample_weight); return it with the layout of later chunks.

    Messages of its ValueErrors complete a sentence about the chunk.
    """
    X, y, sample_weight = split_chunk(chunk)
    rows = _as_rows(X)
    n_rows = rows.shape[0]
    layout = expected.with_rows(rows, feature_names_of(X))
    check_unmasked(y=y)
    labels = as_numpy(y)
    if labels.shape != (n_rows,):
        raise ValueError(f"it has {n_rows} rows but y of shape {labels.shape}")
    check_aligned(X=X, y=y, sample_weight=sample_weight)
    _check_values(rows, layout)
    classes = sorted_classes(labels) if layout.classes is None else layout.classes
    codes = _encode_labels(labels, classes)
    weights = _as_weights(sample_weight, n_rows)
    return Chunk(rows, codes, weights), replace(layout, classes=classes)


def checked_classes(classes: ArrayLike) -> NDArray[Any]:
    """Return the labels that a user passes as `classes`, sorted; raise ValueError if invalid."""
    labels = as_array(as_numpy(classes) if is_foreign(classes) else classes, "classes")
    if labels.ndim != 1:
        raise ValueError(f"classes = {shown(classes)} must be a list of labels.")
    try:
        return sorted_classes(labels)
    except ValueError as error:
        raise ValueError(f"classes = {shown(classes)} cannot be used, because {error}.") from None


def sorted_classes(labels: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct labels, sorted; raise ValueError if they are not classes."""
    if labels.dtype.kind == "f" and not (labels == np.round(labels)).all():
        raise ValueError("labels are fractions or missing: pass class labels")
    if labels.dtype != object:
        return np.unique(labels)
    distinct = set(labels.tolist())
    if any(map(is_missing, distinct)):
        raise ValueError("a label is missing: drop such rows")
    try:
        classes = np.array(sorted(distinct))
    except TypeError:
        raise ValueError(
            f"labels of several types ({_first_few(distinct)}) cannot be sorted: use one type"
        ) from None
    if classes.ndim != 1:
        raise ValueError(
            f"labels such as {_first_few(distinct)} are not class labels: use strings or numbers"
        )
    return classes


def _encode_labels(labels: NDArray[Any], classes: NDArray[Any]) -> IntArray:
    """Return the class index of each label; raise ValueError if a label is not a class."""
    kinds = {labels.dtype.kind, classes.dtype.kind}
    if kinds <= set("biuf") or kinds == {"U"}:
        codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        unseen = classes[codes] != labels
    else:
        index = {label: code for code, label in enumerate(classes.tolist())}
        codes = np.fromiter(
            (index.get(label, -1) for label in labels.tolist()), np.intp, len(labels)
        )
        unseen = codes < 0
    for i in np.flatnonzero(unseen):
        label = labels.tolist()[i]
        if is_missing(label):
            raise ValueError(f"the label of its row {i} is missing: drop such rows")
        raise ValueError(
            f"the label {label!r} of its row {i} is not among the classes "
            f"{_first_few(classes.tolist())}: correct it, or pass all classes from the start as "
            "classes="
        )
    return codes.astype(np.intp)


def split_chunk(chunk: Any) -> tuple[Any, Any, Any]:
    """Return rows, labels and weights of a chunk; None if it has no weights."""
    if not isinstance(chunk, tuple | list) or len(chunk) not in (2, 3):
        raise ValueError(f"it is {type(chunk).__name__}, not (X, y) or (X, y, sample_weight)")
    X, y, *weights = chunk
    return X, y, weights[0] if weights else None


def feature_names_of(X: Any) -> NDArray[Any] | None:
    """Return the column names of a data frame; None for other rows."""
    if issparse(X) or is_array_api_obj(X):
        return None
    try:
        names: NDArray[Any] | None = _get_feature_names(X)
    except TypeError:
        raise ValueError("some of its column names are strings and others are not") from None
    return names


def _as_rows(X: Any) -> Rows:
    """Return rows as a 2-D array of floats, or in canonical sparse format."""
    with reading_rows(X):
        rows = _as_numbers(X)
    if rows.ndim != 2 or not rows.shape[1]:
        raise ValueError(f"its rows have shape {rows.shape}, not (rows, columns)")
    if not rows.shape[0]:
        raise ValueError("it has no rows: skip empty chunks")
    if issparse(rows):
        return rows
    xp = array_namespace(rows)
    return rows if rows.dtype in (xp.float32, xp.float64) else xp.astype(rows, xp.float64)


def _as_numbers(X: Any) -> Rows:
    if issparse(X):
        return canonical(X)
    if is_array_api_obj(X) and array_namespace(X).isdtype(
        X.dtype, ("real floating", "integral", "bool")
    ):
        return X
    try:
        rows = np.asarray(X)
        return rows if rows.dtype.kind in "fiub" else rows.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"its rows are not numeric ({error})") from None


def _check_values(rows: Rows, layout: Layout) -> None:
    """Raise ValueError if a value is not finite or too large to be squared and summed."""
    values = rows.data if issparse(rows) else rows
    xp = array_namespace(values)
    # NaN fails both comparisons.
    if not values.shape[0] or (
        float(xp.max(values)) < LARGEST and float(xp.min(values)) > -LARGEST
    ):
        return
    height = block_height(rows.shape[1])
    for start in range(0, rows.shape[0], height):
        block = _dense_part(rows, slice(start, min(start + height, rows.shape[0])))
        for i, j in np.argwhere(as_numpy(~(xp.abs(block) < LARGEST))):
            value = float(block[int(i), int(j)])
            cell = f"{layout.column(int(j))} of its row {start + int(i)} is {value:g}"
            if np.isfinite(value):
                raise ValueError(f"{cell}, whose square is too large: rescale the columns")
            raise ValueError(f"{cell}: impute missing values, or drop such rows")


def _dense_part(X: Rows, part: slice) -> Array:
    """Return a slice of the rows as a dense array in double precision."""
    if issparse(X):
        return X[part].toarray()
    xp = array_namespace(X)
    return xp.astype(X[part, :], xp.float64, copy=False)


def _as_weights(sample_weight: Any, n_rows: int) -> FloatArray | None:
    if sample_weight is None:
        return None
    weights = as_floats(
        as_numpy(sample_weight) if is_foreign(sample_weight) else sample_weight, "sample_weight"
    )
    if weights.shape != (n_rows,):
        raise ValueError(f"it has {n_rows} rows but sample_weight of shape {weights.shape}")
    for i in np.flatnonzero(~((weights >= 0) & (weights < LARGEST))):
        raise ValueError(
            f"the weight of its row {i} is {weights[i]:g}: weights must be finite and not negative"
        )
    for i in np.flatnonzero((weights > 0) & (weights < 1 / LARGEST)):
        raise ValueError(
            f"the weight of its row {i} is {weights[i]:g}, whose square underflows float64: "
            "rescale the weights"
        )
    return weights


def _first_few(labels: Any) -> str:
    """Return the first five labels, for error messages."""
    names = [repr(label) for label in labels]
    if len(names) > 5:
        names = [*names[:5], "…"]
    return ", ".join(names)
