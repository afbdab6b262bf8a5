"""The sums over rows that every closed-form fit needs, and that add up across chunks and machines."""

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
from unflip.data.centred import DenseRows
from unflip.data.chunks import (
    Block,
    Layout,
    block_height,
    checked_classes,
    names_of,
    parts_of,
    read_chunk,
    sorted_classes,
)
from unflip.data.engines.engine import dask_engine, is_dask
from unflip.data.parquet import Path, as_paths, column_names, parquet_chunks

_VERSION = 1  # of the files that `Moments.save` writes
_STRIP = 256  # rows of a p×p matrix made at a time
_ROUNDING = 1e-8  # relative, of sums over many rows


class ChunkError(ValueError):
    """A chunk could not be added; what was added before it is not lost.

    Attributes
    ----------
    moments : Moments or None
        Sum of the chunks before it; None where it is the first.
    n_chunks : int
        How many these are: the position, from 0, of the chunk that could not be added.
    """

    def __init__(self, reason: str, moments: Moments | None, n_chunks: int) -> None:
        self.moments, self.n_chunks = moments, n_chunks
        before = (
            f" The sum of the {n_chunks} before it is in this error's attribute moments."
            if n_chunks
            else ""
        )
        super().__init__(f"Chunk {n_chunks + 1} was not added: {reason}.{before}")


@dataclass(frozen=True, eq=False)
class Moments:
    """Class weights, class means and scatter of a set of rows.

    Labels enter the squared loss only through per-class sums, so these serve every target, every
    penalty and both choices of the intercept. The scatter is kept about the mean, not the origin:
    with features far from 0 the difference Gram − n·mean·meanᵀ would lose its digits.

    ``+`` and `sum` merge those of different rows.

    Attributes
    ----------
    counts : array of shape (k,)
        Total weight of each observed class.
    class_means : array of shape (k, p)
        Mean row of each observed class.
    scatter : array of shape (p, p)
        Σ wᵢ (xᵢ − x̄)(xᵢ − x̄)ᵀ.
    classes : ndarray of shape (k,)
        Their labels; 0, …, k − 1 where none are known.
    squared_weights : float
        Σ wᵢ².
    feature_names : ndarray of str, shape (p,), or None
        Names of the columns, where known.

    Examples
    --------
    >>> import numpy as np
    >>> X, codes = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]]), np.array([0, 1, 1])
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
        X, codes = _numbers(X, "X", "biuf"), _numbers(codes, "codes", "biu")
        xp, k = array_namespace(X), as_count(n_classes, "n_classes", least=1)
        if X.ndim != 2 or codes.shape != (X.shape[0],):
            raise ValueError(
                f"X has shape {X.shape} and codes {codes.shape}: give one class index for each row."
            )
        if X.shape[0] and not 0 <= int(xp.min(codes)) <= int(xp.max(codes)) < k:
            raise ValueError(
                f"codes run from {int(xp.min(codes))} to {int(xp.max(codes))}; they must be "
                f"0..{k - 1}, for n_classes = {k}."
            )
        if sample_weight is not None:
            sample_weight = _numbers(sample_weight, "sample_weight", "biuf")
            if sample_weight.shape != codes.shape:
                raise ValueError(
                    f"sample_weight has shape {sample_weight.shape}: give a weight for each of the "
                    "rows."
                )
        classes = xp.arange(k, device=device(X))
        membership = xp.astype(codes[:, None] == classes[None, :], xp.float64)
        if sample_weight is not None:
            membership = membership * sample_weight[:, None]
        with np.errstate(over="ignore", invalid="ignore"):  # told below
            rows, scatter, sums = DenseRows.with_sums(X, membership, sample_weight)
        if not bool(xp.all(xp.isfinite(scatter))):
            raise ValueError(
                "X holds values that are not finite, or whose squares are no numbers: rescale X."
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
        """Sum over chunks of rows, of which one is held at a time.

        Parameters
        ----------
        chunks : iterable of (X, y) or (X, y, sample_weight)
            Rows of any array-API namespace, data frames, memory maps or sparse rows (made dense a
            block at a time), with labels of any kind. A chunk of Dask collections is added up by
            the workers (see docs/dask.md).
        classes : array-like, optional
            All labels that there are. By default those of the first chunk: a later one with another
            label is refused, so that a misspelt label does not become a class.
        feature_names : array-like of str, optional
            Names of the columns. By default those of the data frames among the chunks.

        Returns
        -------
        Moments
            With classes in sorted order.

        Raises
        ------
        ChunkError
            Where a chunk cannot be read or added. It holds the sum of those before it, so that you
            can go on with ``error.moments + Moments.from_chunks(rest, error.moments.classes)``.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> chunks = ((rng.normal(size=(1000, 3)), rng.choice(["ham", "spam"], size=1000)) for _ in range(20))
        >>> moments = Moments.from_chunks(chunks)
        >>> moments.n, moments.classes.tolist()
        (20000.0, ['ham', 'spam'])
        """
        running = _Running(Layout.of(classes, feature_names))
        try:
            iterator = iter(chunks)
        except TypeError:
            raise ValueError(
                f"chunks = {shown(chunks)} must be an iterable of (X, y) or (X, y, sample_weight)."
            ) from None
        while True:
            try:
                given = next(iterator)
            except StopIteration:
                break
            except Exception as error:
                reason = f"reading it failed ({type(error).__name__}: {error})"
                raise ChunkError(reason, running.total(), running.n_chunks) from error
            try:
                running.add(given)
            except ValueError as error:
                raise ChunkError(
                    str(error).removesuffix("."), running.total(), running.n_chunks
                ) from error
        total = running.total()
        if total is None:
            raise ValueError("There is no chunk: give at least one.")
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
        """Sum over the rows of Parquet files, of which a few thousand are held at a time.

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
            As in `from_chunks`, which also says what happens to a chunk that cannot be added.
        """
        files = as_paths(paths)
        names = column_names(files[0]) if features is None else list(features)
        names = [name for name in names if features or name not in (label, sample_weight)]
        if not names:
            raise ValueError(
                f"There are no columns of features in {files[0]}: name some as features=."
            )
        chunks = parquet_chunks(files, label=label, features=names, sample_weight=sample_weight)
        return cls.from_chunks(chunks, classes, feature_names=names)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Moments:
        """Read what `save` has written."""
        source = as_path(path, "path")
        try:
            with source.open("rb") as file:
                found = dict(np.load(file, allow_pickle=False))
        except (BadZipFile, EOFError, KeyError, TypeError, ValueError, zlib.error) as error:
            raise ValueError(
                f"{path} holds no Moments or is damaged ({error}): make it again."
            ) from error
        return cls(**_checked_fields(found, path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file that `load` reads, in NumPy's .npz format without pickle; all of it or nothing."""
        arrays: dict[str, Any] = {
            name: as_numpy(value) for name, value in vars(self).items() if value is not None
        }
        for name, array in arrays.items():
            if array.dtype == object:  # which NumPy would pickle
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
        """Return the same sums with room for more classes: those here, and others that no row has yet."""
        wanted = checked_classes(classes)
        own, place = self.classes.tolist(), {label: i for i, label in enumerate(wanted.tolist())}
        for label in own:
            if label not in place:
                raise ValueError(
                    f"classes={wanted.tolist()} leave out {label!r}, which rows here have: add it."
                )
        xp = array_namespace(self.counts)
        spread = np.zeros((len(wanted), len(own)))
        spread[[place[label] for label in own], np.arange(len(own))] = 1
        onto = xp.asarray(spread, device=device(self.counts))
        counts, means = xp.matmul(onto, self.counts), xp.matmul(onto, self.class_means)
        return replace(self, counts=counts, class_means=means, classes=wanted)

    @property
    def n(self) -> float:
        """Total weight n."""
        return float(array_namespace(self.counts).sum(self.counts))

    @property
    def n_effective(self) -> float:
        """How many rows of equal weight stand for as much (Kish), at any scale of the weights."""
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
        """Σ wᵢ xᵢxᵢᵀ about the mean or about the origin."""
        if as_flag(centred, "centred"):
            return self.scatter
        mean = self.mean
        return self.scatter + self.n * mean[:, None] * mean[None, :]

    def cross(self, targets: Array, *, centred: bool) -> Array:
        """Σ wᵢ xᵢ t(ỹᵢ) for a target value, or a row of them, per class; about the mean or about the origin."""
        xp = array_namespace(self.counts)
        values = targets if is_foreign(targets) else as_floats(targets, "targets")
        if values.ndim not in (1, 2) or values.shape[0] != self.counts.shape[0]:
            raise ValueError(
                f"targets has shape {values.shape}: give a value, or a row, for each class."
            )
        origin = self.mean if as_flag(centred, "centred") else xp.zeros_like(self.mean)
        return xp.matmul((self.class_means - origin[None, :]).T * self.counts[None, :], values)

    def __repr__(self) -> str:
        k, p = self.class_means.shape
        return f"<Moments of {k} classes and {p} features, total weight {self.n:.15g}>"

    def __add__(self, other: Moments) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        _check_alike(self, other)
        return _merged(self, other, overwrite=False)

    def __radd__(self, other: object) -> Moments:
        # `sum` starts from 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented


def with_chunk(
    known: Moments | None,
    chunk: Any,
    *,
    classes: ArrayLike | None,
    feature_names: ArrayLike | None = None,
) -> Moments:
    """Add one chunk to what is known, and return a new sum; scikit-learn's contract of `partial_fit`.

    Parameters
    ----------
    known : Moments or None
        Sum of the rows before; None in the first call.
    chunk : (X, y) or (X, y, sample_weight)
        New rows.
    classes : array-like or None
        All labels; needed in the first call.
    feature_names : array-like of str or None
        Names of the columns, where known.
    """
    if known is None and classes is None:
        raise ValueError("classes must be passed on the first call to partial_fit.")
    layout = Layout.of(
        known.classes if classes is None and known is not None else classes, feature_names
    )
    running = _Running(layout)
    try:
        running.add(chunk)
    except ValueError as error:
        raise ValueError(f"The rows were not added: {error}.") from error
    part = running.total()
    assert part is not None  # add() has not raised
    return part if known is None else known + part


class _Running:
    """A sum over chunks; the last rows wait until there are enough for a block."""

    def __init__(self, layout: Layout) -> None:
        self.n_chunks = 0
        self._layout = layout
        self._total: Moments | None = None
        self._block: Block | None = None

    def add(self, given: Any) -> None:
        """Add a chunk, or raise and stay as before."""
        if is_dask(parts_of(given)[0]):
            part, self._layout = _of_partitions(given, self._layout)
            self._merge(part)
            self.n_chunks += 1
            return
        chunk, self._layout = read_chunk(given, self._layout)
        if self._block is None:
            self._block = Block(block_height(chunk.X.shape[1]), chunk)
        start = 0
        while start < chunk.n_rows:
            start = self._block.fill(chunk, start)
            if self._block.is_full:
                self._merge(self._of_block(self._block))
        self.n_chunks += 1

    def total(self) -> Moments | None:
        """Return the sum of all chunks so far."""
        if self._block is not None and self._block.n_rows:
            self._merge(self._of_block(self._block))
        return self._total and replace(self._total, feature_names=self._layout.feature_names)

    def _of_block(self, block: Block) -> Moments:
        classes = self._layout.classes
        assert classes is not None  # read_chunk has found them
        counts, means, scatter, squared = block.sums(len(classes))
        return Moments(counts, means, scatter, classes, squared)

    def _merge(self, part: Moments) -> None:
        self._total = part if self._total is None else _merged(self._total, part, overwrite=True)


def _of_partitions(given: Any, layout: Layout) -> tuple[Moments, Layout]:
    """Sum over the partitions of Dask collections, on the workers, and return it with the layout of later chunks."""
    dask_rows = dask_engine()
    X, y, sample_weight = parts_of(given)
    classes = layout.classes
    if classes is None:
        classes = dask_rows.over_parts(_distinct, _all_distinct, y) if is_dask(y) else _distinct(y)
    columns = (X, y) if sample_weight is None else (X, y, sample_weight)
    names = names_of(X._meta)
    total: Moments = dask_rows.over_partitions(partial(_of_group, classes, names), sum, *columns)
    return total, replace(layout.with_columns(total.n_features, names), classes=classes)


def _of_group(
    classes: NDArray[Any], names: NDArray[Any] | None, partitions: list[tuple[Any, ...]]
) -> Moments:
    """Sum over (position, X, y) or (position, X, y, sample_weight) of some partitions; empty ones are left out."""
    filled = [(position, chunk) for position, *chunk in partitions if len(chunk[0])]
    try:
        return Moments.from_chunks((chunk for _, chunk in filled), classes, feature_names=names)
    except ChunkError as error:
        raise ValueError(f"of partition {filled[error.n_chunks][0]}, {error.__cause__}") from None


def _distinct(labels: Any) -> NDArray[Any]:
    return sorted_classes(as_numpy(labels))


def _all_distinct(found: list[NDArray[Any]]) -> NDArray[Any]:
    return sorted_classes(np.concatenate(found))


def _merged(one: Moments, other: Moments, *, overwrite: bool) -> Moments:
    """Add up (Chan's update, about the common mean), in the memory of the first scatter if that may be overwritten."""
    xp = array_namespace(one.counts)
    counts = one.counts + other.counts
    share = (other.counts / _or_one(counts))[:, None]
    gap = one.mean - other.mean
    gap = gap * (one.n * other.n / (one.n + other.n or 1.0)) ** 0.5
    scatter = one.scatter if overwrite else xp.asarray(one.scatter, copy=True)
    scatter += other.scatter
    for start in range(0, one.n_features, _STRIP):  # a product of all would be one more p×p matrix
        strip = slice(start, min(start + _STRIP, one.n_features))
        scatter[strip, :] += gap[strip, None] * gap[None, :]
    names = one.feature_names if other.feature_names is None else other.feature_names
    squared = one.squared_weights + other.squared_weights
    means = one.class_means + share * (other.class_means - one.class_means)
    return Moments(counts, means, scatter, one.classes, squared, names)


def _check_alike(one: Moments, other: Moments) -> None:
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
    names, others = one.feature_names, other.feature_names
    if names is not None and others is not None and not np.array_equal(names, others):
        j = int(np.flatnonzero(names != others)[0])
        raise ValueError(
            f"Column {j} of these Moments is {str(names[j])!r} and {str(others[j])!r}: order them "
            "alike."
        )


def _checked_fields(found: dict[str, NDArray[Any]], path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a file holds as arguments of `Moments`, or say why it cannot."""
    version = found.pop("version", None)
    if version is None or version.shape or not np.issubdtype(version.dtype, np.integer):
        raise ValueError(
            f"{path} holds other arrays than Moments: give a file that Moments.save has written."
        )
    if int(version) != _VERSION:
        raise ValueError(
            f"{path} is of version {int(version)}, and this library reads {_VERSION}: use the "
            "other one."
        )
    shapes = {name: array.shape for name, array in found.items()}
    k, p = shapes["class_means"] if len(shapes.get("class_means", ())) == 2 else (0, 0)
    wanted = {
        "counts": (k,),
        "class_means": (k, p),
        "scatter": (p, p),
        "classes": (k,),
        "squared_weights": (),
    }
    if "feature_names" in shapes:
        wanted["feature_names"] = (p,)
    numbers = ("counts", "class_means", "scatter", "squared_weights")
    if shapes != wanted or not all(_are_finite(found[name]) for name in numbers):
        raise ValueError(f"{path} holds Moments that do not fit together: make it again.")
    _check_sums(found, path)
    return {**found, "squared_weights": float(found["squared_weights"])}


def _are_finite(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "biuf" and bool(np.isfinite(values).all())


def _check_sums(found: dict[str, NDArray[Any]], path: str | os.PathLike[str]) -> None:
    """Raise where numbers of a file are no sums over rows: weights below 0, or a scatter that no rows have."""
    counts, scatter, n = found["counts"], found["scatter"], float(found["counts"].sum())
    classes, diagonal = found["classes"].tolist(), np.diag(scatter)
    reach = np.sqrt(np.maximum(diagonal, 0.0))
    slack = _ROUNDING * float(diagonal.max(initial=0.0))
    wrong = {
        "a class of negative weight": (counts < 0).any(),
        "squared weights that its weights do not have": not 0
        <= found["squared_weights"]
        <= n**2 * (1 + _ROUNDING),
        "classes that are not sorted, or repeat": any(
            not low < high for low, high in pairwise(classes)
        ),
        "a scatter of negative variance": (diagonal < 0).any(),
        "a scatter that is not symmetric": (np.abs(scatter - scatter.T) > slack).any(),
        "a scatter with a correlation beyond 1": (
            np.abs(scatter) > np.outer(reach, reach) + slack
        ).any(),
    }
    for what, is_so in wrong.items():
        if is_so:
            raise ValueError(f"{path} holds Moments with {what}: make it again.")


def _numbers(values: Any, name: str, kinds: str) -> Array:
    """Return an array of any namespace, or of what else NumPy reads as numbers of these kinds."""
    if is_foreign(values):
        return values
    array = as_array(values, name)
    if array.dtype.kind not in kinds:
        raise ValueError(
            f"{name} = {shown(values)} must be an array of numbers, not of dtype {array.dtype}."
        )
    return array


def _or_one(counts: Array) -> Array:
    """Replace zeros by ones, to divide by: an absent class has sums of zero, which stay zero."""
    xp = array_namespace(counts)
    return xp.where(counts > 0, counts, xp.ones_like(counts))
