"""Chunks of labelled rows as iterators and files give them, checked one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj, to_device
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import _get_feature_names

from unflip._sparse import canonical
from unflip._typing import Array, IntArray, Rows
from unflip.labels import is_missing

_LARGEST = 1e140  # sums of squares of larger values may be no numbers
_BLOCK_VALUES, _FEWEST = 2**19, 2048  # numbers of a block of rows, and rows that it has at least


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows that have been checked.

    Attributes
    ----------
    X : array of shape (m, p), of any array-API namespace or of scipy.sparse
        Rows.
    codes : array of int, shape (m,)
        Observed class index of each.
    weights : array of shape (m,) or None
        Weights; None where all are 1.
    """

    X: Rows
    codes: Array
    weights: Array | None

    @property
    def n_rows(self) -> int:
        """Number of rows m."""
        return int(self.X.shape[0])

    def blocks(self) -> Iterator[Chunk]:
        """Yield the rows a block at a time, dense and of one namespace."""
        height = block_height(self.X.shape[1])
        for start in range(0, self.n_rows, height):
            part = slice(start, min(start + height, self.n_rows))
            X = self.X[part].toarray() if issparse(self.X) else self.X[part, :]
            yield Chunk(X, self.codes[part], None if self.weights is None else self.weights[part])

    def kept(self) -> Chunk:
        """Return a dense copy: who gave the rows may write the next ones over them."""
        X = self.X.toarray() if issparse(self.X) else array_namespace(self.X).asarray(self.X, copy=True)
        weights = None if self.weights is None else array_namespace(self.weights).asarray(self.weights, copy=True)
        return Chunk(X, self.codes, weights)

    @classmethod
    def joined(cls, chunks: Sequence[Chunk]) -> Chunk:
        """Stack dense chunks of one namespace."""
        xp = array_namespace(chunks[0].X)
        weights = None
        if any(chunk.weights is not None for chunk in chunks):
            weights = xp.concat([_weights_or_ones(chunk) for chunk in chunks])
        return cls(xp.concat([chunk.X for chunk in chunks]), xp.concat([chunk.codes for chunk in chunks]), weights)


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
        names = None if feature_names is None else np.asarray(feature_names, dtype=np.str_)
        known = None if classes is None else sorted_classes(as_numpy(classes))
        if known is not None and not len(known):
            raise ValueError("classes is empty: give all labels that there are, or None.")
        return cls(None if names is None else len(names), names, known)

    def with_rows(self, rows: Rows, names: NDArray[Any] | None) -> Layout:
        """Check rows, and learn from the first."""
        namespace = array_namespace(rows.data if issparse(rows) else rows)
        if self.namespace not in (None, namespace):
            raise ValueError(f"its rows are of {namespace.__name__}, those before it of {self.namespace.__name__}")
        return replace(self.with_columns(int(rows.shape[1]), names), namespace=namespace)

    def with_columns(self, n_features: int, names: NDArray[Any] | None) -> Layout:
        """Check the columns of a chunk, and learn from the first."""
        if self.n_features is not None and n_features != self.n_features:
            raise ValueError(f"it has {n_features} columns where {self.n_features} are expected")
        if names is None:
            return replace(self, n_features=n_features)
        names = names.astype(np.str_)
        if self.feature_names is not None and not np.array_equal(names, self.feature_names):
            j = int(np.flatnonzero(names != self.feature_names)[0])
            raise ValueError(f"its column {j} is {str(names[j])!r} where {str(self.feature_names[j])!r} is expected")
        return replace(self, n_features=n_features, feature_names=names)

    def column(self, j: int) -> str:
        """Name a column."""
        return f"column {j}" if self.feature_names is None else f"column {str(self.feature_names[j])!r}"


def block_height(n_features: int) -> int:
    """Return how many rows to add up at a time: enough for adding p×p matrices to cost little beside making them."""
    return max(_BLOCK_VALUES // max(n_features, 1), _FEWEST)


def read_chunk(given: Any, expected: Layout) -> tuple[Chunk, Layout]:
    """Check (X, y) or (X, y, sample_weight), and return it with the layout that later chunks must have.

    Errors say what is wrong with it as the end of a sentence.
    """
    X, y, sample_weight = _parts(given)
    rows = _as_rows(X)
    layout = expected.with_rows(rows, _names(X))
    labels = as_numpy(y)
    if labels.shape != (rows.shape[0],):
        raise ValueError(f"it has {rows.shape[0]} rows but labels of shape {labels.shape}")
    _check_index(X, y)
    _check_values(rows, layout)
    if layout.classes is None:
        layout = replace(layout, classes=sorted_classes(labels))
    assert layout.classes is not None
    codes = _beside(encode_labels(labels, layout.classes), rows)
    return Chunk(rows, codes, _as_weights(sample_weight, rows)), layout


def as_numpy(values: Any) -> NDArray[Any]:
    """Return values of any namespace, kind and device as a NumPy array."""
    try:
        return np.asarray(values)
    except TypeError:  # they are on another device
        return np.asarray(to_device(values, "cpu"))


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
        raise ValueError(f"labels of several kinds ({_some(distinct)}) have no order: make them alike") from None
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
        codes = np.fromiter((index.get(label, -1) for label in labels.tolist()), np.intp, len(labels))
        unseen = codes < 0
    for i in np.flatnonzero(unseen):
        label = labels.tolist()[i]
        if is_missing(label):
            raise ValueError(f"the label of its row {i} is missing: leave such rows out")
        raise ValueError(
            f"the label {label!r} of its row {i} is not among the classes {_some(classes.tolist())}: correct it, or "
            "give all classes from the start as classes="
        )
    return codes.astype(np.intp)


def _parts(given: Any) -> tuple[Any, Any, Any]:
    if not isinstance(given, tuple | list) or len(given) not in (2, 3):
        raise ValueError(f"it is {type(given).__name__}, not (X, y) or (X, y, sample_weight)")
    X, y, *weights = given
    return X, y, weights[0] if weights else None


def _names(X: Any) -> NDArray[Any] | None:
    try:
        return None if issparse(X) or is_array_api_obj(X) else _get_feature_names(X)
    except TypeError:
        raise ValueError("its columns have names that are strings and others that are not") from None


def _as_rows(X: Any) -> Rows:
    if issparse(X):
        rows = canonical(X)
    elif is_array_api_obj(X) and array_namespace(X).isdtype(X.dtype, ("real floating", "integral", "bool")):
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
    if not values.shape[0] or (float(xp.max(values)) < _LARGEST and float(xp.min(values)) > -_LARGEST):
        return
    for i, block in enumerate(Chunk(rows, np.zeros(rows.shape[0], dtype=np.intp), None).blocks()):
        xp = array_namespace(block.X)
        wrong = as_numpy(~(xp.abs(block.X) < _LARGEST))
        for row, j in np.argwhere(wrong):
            value = float(block.X[int(row), int(j)])
            where = f"{layout.column(int(j))} of its row {i * block_height(rows.shape[1]) + int(row)}"
            if np.isfinite(value):
                raise ValueError(f"{where} is {value:g}, whose square is too large: rescale the columns")
            raise ValueError(f"{where} is {value:g}: fill in missing values, or leave such rows out")


def _as_weights(sample_weight: Any, rows: Rows) -> Array | None:
    if sample_weight is None:
        return None
    try:
        weights = as_numpy(sample_weight).astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError("its weights are no numbers") from None
    if weights.shape != (rows.shape[0],):
        raise ValueError(f"it has {rows.shape[0]} rows but weights of shape {weights.shape}")
    for i in np.flatnonzero(~((weights >= 0) & (weights < _LARGEST))):
        raise ValueError(f"the weight of its row {i} is {weights[i]:g}: give finite weights, none below 0")
    return _beside(weights, rows)


def _beside(values: NDArray[Any], rows: Rows) -> Array:
    """Return values in the namespace and on the device of the rows."""
    return values if issparse(rows) else array_namespace(rows).asarray(values, device=device(rows))


def _weights_or_ones(chunk: Chunk) -> Array:
    xp = array_namespace(chunk.X)
    return xp.ones(chunk.n_rows, dtype=xp.float64, device=device(chunk.X)) if chunk.weights is None else chunk.weights


def _some(labels: Any) -> str:
    known = list(labels)
    return ", ".join(map(repr, known[:5])) + (", …" if len(known) > 5 else "")
