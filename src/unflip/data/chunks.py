"""Chunks of labelled rows as iterators and files give them, checked one at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import _get_feature_names

from unflip._utils.arrays import as_numpy, is_foreign
from unflip._utils.sparse import canonical
from unflip._utils.typing import Array, FloatArray, IntArray, Rows
from unflip._utils.validation import as_array, as_floats, check_unmasked, reading_rows, shown
from unflip.labels.classes import is_missing

_LARGEST = 1e140  # sums of squares of larger values may be no numbers
_BLOCK_VALUES, _FEWEST = 2**18, 2048  # numbers of a block of rows, and rows that it has at least


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows that have been checked.

    Attributes
    ----------
    X : array of shape (m, p), of any array-API namespace or of scipy.sparse
        Rows.
    codes : ndarray of int, shape (m,)
        Observed class index of each.
    weights : ndarray of shape (m,) or None
        Weights; None where all are 1.
    """

    X: Rows
    codes: IntArray
    weights: FloatArray | None

    @property
    def n_rows(self) -> int:
        """Number of rows m."""
        return int(self.X.shape[0])


class Block:
    """Memory for some rows of chunks, which are added up together: few large products are faster than many small ones.

    It is used again and again, as new memory costs as much time as products do.

    Parameters
    ----------
    height : int
        Number of rows that it holds.
    chunk : Chunk
        A chunk like those to come.
    """

    def __init__(self, height: int, chunk: Chunk) -> None:
        like = chunk.X.data if issparse(chunk.X) else chunk.X
        xp = array_namespace(like)
        self.height, self.n_rows = height, 0
        self._rows = xp.empty((height, chunk.X.shape[1]), dtype=xp.float64, device=device(like))
        self._codes, self._weights = np.empty(height, dtype=np.intp), np.empty(height)

    def fill(self, chunk: Chunk, start: int) -> int:
        """Take rows of a chunk from `start` on, as many as there is room for, and return where it stopped."""
        stop = min(start + self.height - self.n_rows, chunk.n_rows)
        own, theirs = slice(self.n_rows, self.n_rows + stop - start), slice(start, stop)
        self._rows[own, :] = dense_rows(chunk.X, theirs)
        self._codes[own] = chunk.codes[theirs]
        self._weights[own] = 1.0 if chunk.weights is None else chunk.weights[theirs]
        self.n_rows = own.stop
        return stop

    @property
    def is_full(self) -> bool:
        """Whether there is no more room."""
        return self.n_rows == self.height

    def sums(self, n_classes: int) -> tuple[Array, Array, Array, float]:
        """Return class weights, class means, scatter and the sum of squared weights, and forget the rows."""
        rows, codes, given = (
            self._rows[: self.n_rows, :],
            self._codes[: self.n_rows],
            self._weights[: self.n_rows],
        )
        xp = array_namespace(rows)
        weights = xp.asarray(given, device=device(rows))
        total = float(given.sum()) or 1.0
        mean = xp.matmul(weights, rows) / total
        rows -= mean[None, :]
        membership = xp.asarray(
            (codes[:, None] == np.arange(n_classes)) * given[:, None], device=device(rows)
        )
        counts, class_sums = xp.sum(membership, axis=0), xp.matmul(membership.T, rows)
        if not (given == 1).all():
            rows *= xp.sqrt(weights)[:, None]
        scatter = xp.matmul(rows.T, rows)
        self.n_rows = 0
        means = (
            mean[None, :] + class_sums / xp.where(counts > 0, counts, xp.ones_like(counts))[:, None]
        )
        return counts, means, scatter, float(given @ given)


@dataclass(frozen=True, eq=False)
class Layout:
    """What chunks must have in common; None where that is not known yet.

    Attributes
    ----------
    n_features : int or None
        Number of columns.
    feature_names : ndarray of str or None
        Their names.
    classes : ndarray or None
        Labels, sorted.
    namespace : module or None
        The array library, NumPy for rows that are not arrays.
    """

    n_features: int | None = None
    feature_names: NDArray[Any] | None = None
    classes: NDArray[Any] | None = None
    namespace: Any = None

    @classmethod
    def of(cls, classes: ArrayLike | None, feature_names: ArrayLike | None) -> Layout:
        """Take what the caller knows."""
        names = (
            None
            if feature_names is None
            else as_array(feature_names, "feature_names").astype(np.str_)
        )
        if names is not None and names.ndim != 1:
            raise ValueError(
                f"feature_names = {shown(feature_names)} must be a list of names: give one per "
                "column."
            )
        known = None if classes is None else checked_classes(classes)
        if known is not None and not len(known):
            raise ValueError("classes is empty: give all labels that there are, or None.")
        return cls(None if names is None else len(names), names, known)

    def with_rows(self, rows: Rows, names: NDArray[Any] | None) -> Layout:
        """Check rows, and learn from the first."""
        namespace = array_namespace(rows.data if issparse(rows) else rows)
        if self.namespace not in (None, namespace):
            raise ValueError(
                f"its rows are of {namespace.__name__}, those before it of "
                f"{self.namespace.__name__}"
            )
        return replace(self.with_columns(int(rows.shape[1]), names), namespace=namespace)

    def with_columns(self, n_features: int, names: NDArray[Any] | None) -> Layout:
        """Check the columns of a chunk, and learn from the first."""
        if self.n_features is not None and n_features != self.n_features:
            why = "are expected" if self.feature_names is None else "have feature_names"
            raise ValueError(f"it has {n_features} columns where {self.n_features} {why}")
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
        """Name a column."""
        return (
            f"column {j}"
            if self.feature_names is None
            else f"column {str(self.feature_names[j])!r}"
        )


def block_height(n_features: int) -> int:
    """Return how many rows to add up at a time: enough for adding p×p matrices to cost little beside making them."""
    return max(_BLOCK_VALUES // max(n_features, 1), _FEWEST)


def read_chunk(given: Any, expected: Layout) -> tuple[Chunk, Layout]:
    """Check (X, y) or (X, y, sample_weight), and return it with the layout that later chunks must have.

    Errors say what is wrong with it as the end of a sentence.
    """
    X, y, sample_weight = parts_of(given)
    rows = _as_rows(X)
    layout = expected.with_rows(rows, names_of(X))
    check_unmasked(y=y)
    labels = as_numpy(y)
    if labels.shape != (rows.shape[0],):
        raise ValueError(f"it has {rows.shape[0]} rows but y of shape {labels.shape}")
    _check_index(X, y)
    _check_values(rows, layout)
    if layout.classes is None:
        layout = replace(layout, classes=sorted_classes(labels))
    assert layout.classes is not None
    return Chunk(
        rows, encode_labels(labels, layout.classes), _as_weights(sample_weight, rows.shape[0])
    ), layout


def checked_classes(classes: ArrayLike) -> NDArray[Any]:
    """Return all labels that a caller names, sorted, or say what is wrong with them."""
    labels = as_array(as_numpy(classes) if is_foreign(classes) else classes, "classes")
    if labels.ndim != 1:
        raise ValueError(f"classes = {shown(classes)} must be a list of labels.")
    try:
        return sorted_classes(labels)
    except ValueError as error:
        raise ValueError(f"classes = {shown(classes)} cannot be used, because {error}.") from None


def sorted_classes(labels: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct labels, sorted; strings in an array of their own kind."""
    if labels.dtype.kind == "f" and not (labels == np.round(labels)).all():
        raise ValueError("labels are fractions or missing: give classes")
    if labels.dtype != object:
        return np.unique(labels)
    distinct = set(labels.tolist())
    if any(map(is_missing, distinct)):
        raise ValueError("a label is missing: leave such rows out")
    try:
        classes = np.array(sorted(distinct))
    except TypeError:
        raise ValueError(
            f"labels of several kinds ({_some(distinct)}) have no order: make them alike"
        ) from None
    if classes.ndim != 1:
        raise ValueError(f"labels such as {_some(distinct)} are no classes: use strings or numbers")
    return classes


def encode_labels(labels: NDArray[Any], classes: NDArray[Any]) -> IntArray:
    """Return the class index of each label, or an error that names one that is no class."""
    alike = {labels.dtype.kind, classes.dtype.kind}
    if alike <= set("biuf") or alike == {"U"}:
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
            raise ValueError(f"the label of its row {i} is missing: leave such rows out")
        raise ValueError(
            f"the label {label!r} of its row {i} is not among the classes "
            f"{_some(classes.tolist())}: correct it, or give all classes from the start as classes="
        )
    return codes.astype(np.intp)


def parts_of(given: Any) -> tuple[Any, Any, Any]:
    """Return rows, labels and weights of a chunk, None where it has no weights."""
    if not isinstance(given, tuple | list) or len(given) not in (2, 3):
        raise ValueError(f"it is {type(given).__name__}, not (X, y) or (X, y, sample_weight)")
    X, y, *weights = given
    return X, y, weights[0] if weights else None


def names_of(X: Any) -> NDArray[Any] | None:
    """Return the names of the columns of a data frame; None where they have none."""
    try:
        return None if issparse(X) or is_array_api_obj(X) else _get_feature_names(X)
    except TypeError:
        raise ValueError(
            "its columns have names that are strings and others that are not"
        ) from None


def _as_rows(X: Any) -> Rows:
    with reading_rows(X):
        return _read_rows(X)


def _read_rows(X: Any) -> Rows:
    if issparse(X):
        rows = canonical(X)
    elif is_array_api_obj(X) and array_namespace(X).isdtype(
        X.dtype, ("real floating", "integral", "bool")
    ):
        rows = X
    else:
        try:
            rows = np.asarray(X)
            rows = rows if rows.dtype.kind in "fiub" else rows.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"its rows are no numbers ({error})") from None
    if rows.ndim != 2 or not rows.shape[1]:
        raise ValueError(f"its rows have shape {rows.shape}, not (rows, columns)")
    if not rows.shape[0]:
        raise ValueError("it has no rows: skip empty chunks")
    if issparse(rows):
        return rows
    xp = array_namespace(rows)
    return rows if rows.dtype in (xp.float32, xp.float64) else xp.astype(rows, xp.float64)


def _check_index(X: Any, y: Any) -> None:
    index: Any = getattr(X, "index", None)
    other: Any = getattr(y, "index", None)
    if hasattr(index, "equals") and hasattr(other, "equals") and not index.equals(other):
        raise ValueError("the index of y is not that of X: align them, or give y as an array")


def _check_values(rows: Rows, layout: Layout) -> None:
    """Raise where a value is not finite or its square may be no number: then so is the smallest or the largest."""
    values = rows.data if issparse(rows) else rows
    xp = array_namespace(values)
    if not values.shape[0] or (
        float(xp.max(values)) < _LARGEST and float(xp.min(values)) > -_LARGEST
    ):
        return
    height = block_height(rows.shape[1])
    for start in range(0, rows.shape[0], height):
        block = dense_rows(rows, slice(start, min(start + height, rows.shape[0])))
        for i, j in np.argwhere(as_numpy(~(xp.abs(block) < _LARGEST))):
            value, where = (
                float(block[int(i), int(j)]),
                f"{layout.column(int(j))} of its row {start + int(i)}",
            )
            if np.isfinite(value):
                raise ValueError(
                    f"{where} is {value:g}, whose square is too large: rescale the columns"
                )
            raise ValueError(
                f"{where} is {value:g}: fill in missing values, or leave such rows out"
            )


def dense_rows(X: Rows, part: slice) -> Array:
    """Return some rows as a dense array of doubles."""
    if issparse(X):
        return X[part].toarray()
    return array_namespace(X).astype(X[part, :], array_namespace(X).float64, copy=False)


def _as_weights(sample_weight: Any, n_rows: int) -> FloatArray | None:
    if sample_weight is None:
        return None
    given = as_numpy(sample_weight) if is_foreign(sample_weight) else sample_weight
    weights = as_floats(given, "sample_weight")
    if weights.shape != (n_rows,):
        raise ValueError(f"it has {n_rows} rows but sample_weight of shape {weights.shape}")
    for i in np.flatnonzero(~((weights >= 0) & (weights < _LARGEST))):
        raise ValueError(
            f"the weight of its row {i} is {weights[i]:g}: give finite weights, none below 0"
        )
    for i in np.flatnonzero((weights > 0) & (weights < 1 / _LARGEST)):
        raise ValueError(
            f"the weight of its row {i} is {weights[i]:g}, whose square is no number: rescale the "
            "weights"
        )
    return weights


def _some(labels: Any) -> str:
    known = list(labels)
    return ", ".join(map(repr, known[:5])) + (", …" if len(known) > 5 else "")
