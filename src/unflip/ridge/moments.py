"""Sums over rows that every closed-form fit needs; they add up across chunks and machines."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any
from zipfile import BadZipFile

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import ArrayLike, NDArray

from unflip._utils.arrays import as_numpy, is_foreign
from unflip._utils.typing import Array
from unflip._utils.validation import as_array, as_count, as_flag, as_floats, as_path, shown
from unflip.data.chunks import (
    Block,
    Layout,
    block_height,
    checked_classes,
    feature_names_of,
    read_chunk,
    sorted_classes,
    split_chunk,
)
from unflip.data.dense import DenseRows
from unflip.data.engines.engine import dask_engine, is_dask
from unflip.data.parquet import Path, as_paths, column_names, parquet_chunks

# Version of the files that `Moments.save` writes.
_VERSION = 1
# Relative rounding error allowed in the sums of a file: about the square root of float64's.
_ROUNDING = 1e-8


class ChunkError(ValueError):
    """A chunk could not be added; the sum of the chunks before it is kept.

    Attributes
    ----------
    moments : Moments or None
        Sum of the chunks before it; None if it is the first.
    n_chunks : int
        Number of chunks before it: the position, from 0, of the chunk that could not be added.
    """

    def __init__(self, reason: str, moments: Moments | None, n_chunks: int) -> None:
        self.moments = moments
        self.n_chunks = n_chunks
        message = f"Chunk {n_chunks + 1} was not added: {reason}."
        if n_chunks:
            message += f" The sum of the {n_chunks} before it is in this error's attribute moments."
        super().__init__(message)


@dataclass(frozen=True, eq=False)
class Moments:
    """Class weights, class means and scatter of a set of rows.

    Labels enter the squared loss only through per-class sums, so these serve every target, every
    regularization strength, and fits with and without an intercept. The scatter is about the mean,
    not the origin: with features far from 0 the difference Gram − n·mean·meanᵀ would lose its
    digits.

    ``+`` and `sum` merge the moments of different rows.

    Attributes
    ----------
    counts : array of shape (k,)
        Total weight of each observed class.
    class_means : array of shape (k, p)
        Mean row of each observed class.
    scatter : array of shape (p, p)
        Σ wᵢ (xᵢ − x̄)(xᵢ − x̄)ᵀ.
    classes : ndarray of shape (k,)
        Labels of the classes; 0, …, k − 1 by default.
    squared_weights : float
        Σ wᵢ².
    feature_names : ndarray of str, shape (p,), or None
        Names of the columns, if available.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]])
    >>> codes = np.array([0, 1, 1])
    >>> whole = Moments.from_rows(X, codes, n_classes=2)
    >>> parts = Moments.from_rows(X[:1], codes[:1], 2) + Moments.from_rows(X[1:], codes[1:], 2)
    >>> bool(np.allclose(whole.scatter, parts.scatter)), whole.class_means.tolist()
    (True, [[1.0, 2.0], [4.0, 2.0]])
    """

    counts: Array
    class_means: Array
    scatter: Array
    classes: NDArray[Any]
    squared_weights: float
    feature_names: NDArray[Any] | None = None

    @classmethod
    def from_rows(
        cls, X: Array, codes: Array, n_classes: int, sample_weight: Array | None = None
    ) -> Moments:
        """Sum over the rows of one array of any array-API namespace.

        Parameters
        ----------
        X : array of shape (n, p)
            Rows of floats.
        codes : array of int, shape (n,)
            Observed class index of each row.
        n_classes : int
            Number of classes k; a class may be absent from these rows.
        sample_weight : array of shape (n,), optional
            Weight of each row, 1 by default.
        """
        X = _as_numbers(X, "X", "biuf")
        codes = _as_numbers(codes, "codes", "biu")
        k = as_count(n_classes, "n_classes", least=1)
        xp = array_namespace(X)
        if X.ndim != 2 or codes.shape != (X.shape[0],):
            raise ValueError(
                f"X has shape {X.shape} and codes {codes.shape}: pass one class index for each row."
            )
        if X.shape[0] and not 0 <= int(xp.min(codes)) <= int(xp.max(codes)) < k:
            raise ValueError(
                f"codes run from {int(xp.min(codes))} to {int(xp.max(codes))}; they must be "
                f"0..{k - 1}, for n_classes = {k}."
            )
        if sample_weight is not None:
            sample_weight = _as_numbers(sample_weight, "sample_weight", "biuf")
            if sample_weight.shape != codes.shape:
                raise ValueError(
                    f"sample_weight has shape {sample_weight.shape}: pass one weight for each row."
                )
        classes = xp.arange(k, device=device(X))
        membership = xp.astype(codes[:, None] == classes[None, :], xp.float64)
        if sample_weight is not None:
            membership = membership * sample_weight[:, None]
        with np.errstate(over="ignore", invalid="ignore"):  # reported by the error below
            rows, scatter, sums = DenseRows.with_sums(X, membership, sample_weight)
        if not bool(xp.all(xp.isfinite(scatter))):
            raise ValueError(
                "X holds values that are not finite, or whose squares overflow float64: rescale X."
            )
        counts = xp.sum(membership, axis=0)
        means = rows.mean[None, :] + sums / _or_one(counts)[:, None]
        squared = X.shape[0] if sample_weight is None else xp.sum(sample_weight**2)
        return cls(counts, means, scatter, np.arange(k), float(squared))

    @classmethod
    def from_chunks(
        cls,
        chunks: Iterable[Any],
        classes: ArrayLike | None = None,
        *,
        feature_names: ArrayLike | None = None,
    ) -> Moments:
        """Sum over chunks of rows, with one chunk in memory at a time.

        Parameters
        ----------
        chunks : iterable of (X, y) or (X, y, sample_weight)
            Rows of any array-API namespace, data frames, memory maps or sparse rows (made dense a
            block at a time), with labels of any kind. The Dask workers sum over a chunk of Dask
            collections (see docs/dask.md).
        classes : array-like, optional
            All labels. By default those of the first chunk. A later chunk with another label raises
            `ChunkError`, so that a misspelt label does not become a class.
        feature_names : array-like of str, optional
            Names of the columns. By default those of the data frames among the chunks.

        Returns
        -------
        Moments
            Moments of all rows, with classes in sorted order.

        Raises
        ------
        ChunkError
            If a chunk cannot be read or added. It holds the sum of the chunks before it. Continue
            with ``error.moments + Moments.from_chunks(rest, error.moments.classes)``.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> def chunk():
        ...     return rng.normal(size=(1000, 3)), rng.choice(["ham", "spam"], size=1000)
        >>> moments = Moments.from_chunks(chunk() for _ in range(20))
        >>> moments.n, moments.classes.tolist()
        (20000.0, ['ham', 'spam'])
        """
        running = _RunningSum(Layout.of(classes, feature_names))
        try:
            iterator = iter(chunks)
        except TypeError:
            raise ValueError(
                f"chunks = {shown(chunks)} must be an iterable of (X, y) or (X, y, sample_weight)."
            ) from None
        while True:
            try:
                chunk = next(iterator)
            except StopIteration:
                break
            except Exception as error:
                reason = f"reading it failed ({type(error).__name__}: {error})"
                raise ChunkError(reason, running.total(), running.n_chunks) from error
            try:
                running.add(chunk)
            except ValueError as error:
                raise ChunkError(
                    str(error).removesuffix("."), running.total(), running.n_chunks
                ) from error
        total = running.total()
        if total is None:
            raise ValueError("There is no chunk: pass at least one.")
        return total

    @classmethod
    def from_parquet(
        cls,
        paths: Path | Iterable[Path],
        *,
        label: str,
        features: Sequence[str] | None = None,
        sample_weight: str | None = None,
        classes: ArrayLike | None = None,
    ) -> Moments:
        """Sum over the rows of Parquet files, with a few thousand rows in memory at a time.

        Needs ``pip install "unflip[parquet]"``.

        Parameters
        ----------
        paths : path or iterable of paths
            Files with the same columns, in any order.
        label : str
            Column of the observed labels.
        features : sequence of str, optional
            Columns of numbers to use. By default all columns of the first file but the label and
            the weights.
        sample_weight : str, optional
            Column of the weights.
        classes : array-like, optional
            As in `from_chunks`, which also describes the error of a chunk that cannot be added.
        """
        files = as_paths(paths)
        names = column_names(files[0]) if features is None else list(features)
        names = [name for name in names if features or name not in (label, sample_weight)]
        if not names:
            raise ValueError(
                f"There are no feature columns in {files[0]}: name some with features=."
            )
        chunks = parquet_chunks(files, label=label, features=names, sample_weight=sample_weight)
        return cls.from_chunks(chunks, classes, feature_names=names)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Moments:
        """Read a file that `save` has written.

        Raises ValueError if the file is damaged or does not hold Moments.
        """
        source = as_path(path, "path")
        try:
            with source.open("rb") as file:
                arrays = dict(np.load(file, allow_pickle=False))
        except (BadZipFile, EOFError, KeyError, TypeError, ValueError, zlib.error) as error:
            raise ValueError(
                f"{path} holds no Moments or is damaged ({error}): create it again."
            ) from error
        return cls(**_checked_fields(arrays, path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file that `load` reads, atomically, in NumPy's .npz format without pickle."""
        arrays: dict[str, Any] = {
            name: as_numpy(value) for name, value in vars(self).items() if value is not None
        }
        for name, array in arrays.items():
            if array.dtype == object:  # NumPy would pickle these
                raise ValueError(
                    f"{name}={array.tolist()} cannot be saved: use strings or numbers."
                )
        target = as_path(path, "path")
        part = target.with_name(f"{target.name}.{os.getpid()}.part")
        try:
            with part.open("wb") as file:
                np.savez(file, version=np.asarray(_VERSION), **arrays)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)

    def with_classes(self, classes: ArrayLike) -> Moments:
        """Return the same sums for a longer list of classes, which includes all those of the rows.

        Examples
        --------
        >>> moments = Moments.from_rows(np.ones((2, 1)), np.array([0, 1]), n_classes=2)
        >>> moments.with_classes([0, 1, 2]).counts.tolist()
        [1.0, 1.0, 0.0]
        """
        new_classes = checked_classes(classes)
        position = {label: i for i, label in enumerate(new_classes.tolist())}
        old_classes = self.classes.tolist()
        for label in old_classes:
            if label not in position:
                raise ValueError(
                    f"classes={new_classes.tolist()} leave out {label!r}, which rows here have: "
                    "add it."
                )
        xp = array_namespace(self.counts)
        selection = np.zeros((len(new_classes), len(old_classes)))
        selection[[position[label] for label in old_classes], np.arange(len(old_classes))] = 1
        onto = xp.asarray(selection, device=device(self.counts))
        return replace(
            self,
            counts=xp.matmul(onto, self.counts),
            class_means=xp.matmul(onto, self.class_means),
            classes=new_classes,
        )

    @property
    def n(self) -> float:
        """Total weight n."""
        return float(array_namespace(self.counts).sum(self.counts))

    @property
    def n_effective(self) -> float:
        """Effective sample size (Kish), (Σw)²/Σw²; it does not depend on the scale of w."""
        return self.n**2 / self.squared_weights if self.squared_weights else 0.0

    @property
    def n_features(self) -> int:
        """Number of features p."""
        return int(self.class_means.shape[1])

    @property
    def mean(self) -> Array:
        """Mean row x̄."""
        return array_namespace(self.counts).matmul(self.counts, self.class_means) / (self.n or 1.0)

    def gram(self, *, centred: bool) -> Array:
        """Return Σ wᵢ xᵢxᵢᵀ, about the mean or about the origin."""
        if as_flag(centred, "centred"):
            return self.scatter
        mean = self.mean
        return self.scatter + self.n * mean[:, None] * mean[None, :]

    def cross(self, targets: Array, *, centred: bool) -> Array:
        """Return Σ wᵢ xᵢ t(ỹᵢ) for targets of each class, (k,) or (k, r).

        Rows are taken about the mean or about the origin.
        """
        xp = array_namespace(self.counts)
        values = targets if is_foreign(targets) else as_floats(targets, "targets")
        if values.ndim not in (1, 2) or values.shape[0] != self.counts.shape[0]:
            raise ValueError(
                f"targets has shape {values.shape}: pass a value, or a row, for each class."
            )
        origin = self.mean if as_flag(centred, "centred") else xp.zeros_like(self.mean)
        return xp.matmul((self.class_means - origin[None, :]).T * self.counts[None, :], values)

    def __repr__(self) -> str:
        k, p = self.class_means.shape
        return f"<Moments of {k} classes and {p} features, total weight {self.n:.15g}>"

    def __add__(self, other: Moments) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        _check_same_layout(self, other)
        return _merged(self, other, overwrite=False)

    def __radd__(self, other: object) -> Moments:
        if isinstance(other, int) and other == 0:  # `sum` starts from 0
            return self
        return NotImplemented


def add_chunk(
    moments: Moments | None,
    chunk: Any,
    *,
    classes: ArrayLike | None,
    feature_names: ArrayLike | None = None,
) -> Moments:
    """Return the sum of moments and one more chunk, as scikit-learn's `partial_fit` needs it.

    Parameters
    ----------
    moments : Moments or None
        Sum of the rows before; None in the first call.
    chunk : (X, y) or (X, y, sample_weight)
        New rows.
    classes : array-like or None
        All labels; needed in the first call.
    feature_names : array-like of str or None
        Names of the columns, if available.
    """
    if classes is None:
        if moments is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        classes = moments.classes
    running = _RunningSum(Layout.of(classes, feature_names))
    try:
        running.add(chunk)
    except ValueError as error:
        raise ValueError(f"The rows were not added: {error}.") from error
    part = running.total()
    assert part is not None  # add() has not raised
    return part if moments is None else moments + part


class _RunningSum:
    """A sum over chunks; rows are collected until they fill a block."""

    def __init__(self, layout: Layout) -> None:
        self.n_chunks = 0
        self._layout = layout
        self._total: Moments | None = None
        self._block: Block | None = None

    def add(self, chunk: Any) -> None:
        """Add a chunk; if that raises, the sum is unchanged."""
        if is_dask(split_chunk(chunk)[0]):
            part, self._layout = _sum_partitions(chunk, self._layout)
            self._merge(part)
            self.n_chunks += 1
            return
        rows, self._layout = read_chunk(chunk, self._layout)
        if self._block is None:
            self._block = Block(block_height(rows.X.shape[1]), rows)
        start = 0
        while start < rows.n_rows:
            start = self._block.fill(rows, start)
            if self._block.is_full:
                self._merge(self._sum_block(self._block))
        self.n_chunks += 1

    def total(self) -> Moments | None:
        """Return the sum of all chunks so far."""
        if self._block is not None and self._block.n_rows:
            self._merge(self._sum_block(self._block))
        if self._total is None:
            return None
        return replace(self._total, feature_names=self._layout.feature_names)

    def _sum_block(self, block: Block) -> Moments:
        classes = self._layout.classes
        assert classes is not None  # read_chunk has set them
        counts, means, scatter, squared = block.sums(len(classes))
        return Moments(counts, means, scatter, classes, squared)

    def _merge(self, part: Moments) -> None:
        self._total = part if self._total is None else _merged(self._total, part, overwrite=True)


def _sum_partitions(chunk: Any, layout: Layout) -> tuple[Moments, Layout]:
    """Sum over the partitions of Dask collections, on the workers; also return the new layout."""
    dask_rows = dask_engine()
    X, y, sample_weight = split_chunk(chunk)
    classes = layout.classes
    if classes is None and is_dask(y):
        classes = dask_rows.over_parts(_distinct, _all_distinct, y)
    elif classes is None:
        classes = _distinct(y)
    columns = (X, y) if sample_weight is None else (X, y, sample_weight)
    names = feature_names_of(X._meta)
    total: Moments = dask_rows.over_partitions(partial(_sum_group, classes, names), sum, *columns)
    return total, replace(layout.with_columns(total.n_features, names), classes=classes)


def _sum_group(
    classes: NDArray[Any], names: NDArray[Any] | None, partitions: list[tuple[Any, ...]]
) -> Moments:
    """Sum over partitions (position, X, y) or (position, X, y, sample_weight); skip empty ones."""
    filled = [(position, chunk) for position, *chunk in partitions if len(chunk[0])]
    try:
        return Moments.from_chunks((chunk for _, chunk in filled), classes, feature_names=names)
    except ChunkError as error:
        raise ValueError(f"of partition {filled[error.n_chunks][0]}, {error.__cause__}") from None


def _distinct(labels: Any) -> NDArray[Any]:
    return sorted_classes(as_numpy(labels))


def _all_distinct(parts: list[NDArray[Any]]) -> NDArray[Any]:
    return sorted_classes(np.concatenate(parts))


def _merged(one: Moments, other: Moments, *, overwrite: bool) -> Moments:
    """Add up, about the common mean (Chan's update); `overwrite` reuses the first scatter."""
    xp = array_namespace(one.counts)
    counts = one.counts + other.counts
    share = (other.counts / _or_one(counts))[:, None]
    gap = (one.mean - other.mean) * (one.n * other.n / (one.n + other.n or 1.0)) ** 0.5
    scatter = one.scatter if overwrite else xp.asarray(one.scatter, copy=True)
    scatter += other.scatter
    height = 256  # rows at a time: the whole product would be one more p×p matrix
    for start in range(0, one.n_features, height):
        strip = slice(start, min(start + height, one.n_features))
        scatter[strip, :] += gap[strip, None] * gap[None, :]
    names = one.feature_names if other.feature_names is None else other.feature_names
    squared = one.squared_weights + other.squared_weights
    means = one.class_means + share * (other.class_means - one.class_means)
    return Moments(counts, means, scatter, one.classes, squared, names)


def _check_same_layout(one: Moments, other: Moments) -> None:
    if one.n_features != other.n_features:
        raise ValueError(
            f"Moments of {one.n_features} and {other.n_features} features cannot be added: they "
            "must share their columns."
        )
    if not np.array_equal(one.classes, other.classes):
        raise ValueError(
            f"Moments of the classes {one.classes.tolist()} and {other.classes.tolist()} cannot be "
            "added: use with_classes() to give both the same list."
        )
    names = one.feature_names
    other_names = other.feature_names
    if names is None or other_names is None or np.array_equal(names, other_names):
        return
    j = int(np.flatnonzero(names != other_names)[0])
    raise ValueError(
        f"Column {j} of these Moments is {str(names[j])!r} and {str(other_names[j])!r}: order them "
        "alike."
    )


def _checked_fields(
    arrays: dict[str, NDArray[Any]], path: str | os.PathLike[str]
) -> dict[str, Any]:
    """Return the arrays of a file as arguments of `Moments`.

    Raises ValueError if they are none.
    """
    version = arrays.pop("version", None)
    if version is None or version.shape or not np.issubdtype(version.dtype, np.integer):
        raise ValueError(
            f"{path} holds other arrays than Moments: pass a file that Moments.save has written."
        )
    if int(version) != _VERSION:
        raise ValueError(
            f"{path} is of version {int(version)}, but this release reads version {_VERSION}: "
            "create the file again, or use the release that wrote it."
        )
    shapes = {name: array.shape for name, array in arrays.items()}
    k, p = shapes["class_means"] if len(shapes.get("class_means", ())) == 2 else (0, 0)
    expected_shapes = {
        "counts": (k,),
        "class_means": (k, p),
        "scatter": (p, p),
        "classes": (k,),
        "squared_weights": (),
    }
    if "feature_names" in shapes:
        expected_shapes["feature_names"] = (p,)
    numbers = ("counts", "class_means", "scatter", "squared_weights")
    if shapes != expected_shapes or not all(_are_finite(arrays[name]) for name in numbers):
        raise ValueError(f"{path} holds Moments that do not fit together: create it again.")
    _check_sums(arrays, path)
    return {**arrays, "squared_weights": float(arrays["squared_weights"])}


def _are_finite(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "biuf" and bool(np.isfinite(values).all())


def _check_sums(arrays: dict[str, NDArray[Any]], path: str | os.PathLike[str]) -> None:
    """Raise ValueError if the numbers of a file cannot be sums over rows."""
    counts = arrays["counts"]
    scatter = arrays["scatter"]
    largest_squares = float(counts.sum()) ** 2 * (1 + _ROUNDING)
    variances = np.diag(scatter)
    deviations = np.sqrt(np.maximum(variances, 0.0))
    slack = _ROUNDING * float(variances.max(initial=0.0))
    is_symmetric = (np.abs(scatter - scatter.T) <= slack).all()
    is_bounded = (np.abs(scatter) <= np.outer(deviations, deviations) + slack).all()
    is_sorted = all(low < high for low, high in pairwise(arrays["classes"].tolist()))
    is_valid = {
        "a class of negative weight": (counts >= 0).all(),
        "squared weights that its weights do not have": (
            0 <= arrays["squared_weights"] <= largest_squares
        ),
        "classes that are not sorted, or repeat": is_sorted,
        "a scatter of negative variance": (variances >= 0).all(),
        "a scatter that is not symmetric": is_symmetric,
        "a scatter with a correlation beyond 1": is_bounded,
    }
    for defect, valid in is_valid.items():
        if not valid:
            raise ValueError(f"{path} holds Moments with {defect}: create it again.")


def _as_numbers(values: Any, name: str, kinds: str) -> Array:
    """Return an array of any namespace, or a NumPy array of one of these kinds of dtype."""
    if is_foreign(values):
        return values
    array = as_array(values, name)
    if array.dtype.kind not in kinds:
        raise ValueError(
            f"{name} = {shown(values)} must be an array of numbers, not of dtype {array.dtype}."
        )
    return array


def _or_one(counts: Array) -> Array:
    """Replace zeros by ones, to divide by; sums of an absent class are 0 and stay 0."""
    xp = array_namespace(counts)
    return xp.where(counts > 0, counts, xp.ones_like(counts))
