"""Chunks of Parquet files, for `Moments.from_chunks`; needs ``unflip[parquet]``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unflip._parquet import Path, check_columns, opened
from unflip._typing import FloatArray
from unflip.moments import Moments

_VALUES = 2**21  # numbers of a chunk


def moments_from_parquet(
    paths: Path | Iterable[Path],
    *,
    label: str,
    features: Sequence[str] | None = None,
    sample_weight: str | None = None,
    classes: ArrayLike | None = None,
) -> Moments:
    """Sum over the rows of Parquet files, of which a few thousand are held at a time.

    Parameters
    ----------
    paths : path or iterable of paths
        Files with the same columns, in any order.
    label : str
        Column of the observed labels.
    features : sequence of str, optional
        Columns of numbers to use. By default all of the first file but the label and the weights.
    sample_weight : str, optional
        Column of the weights.
    classes : array-like, optional
        That of `Moments.from_chunks`, which also says what happens to a chunk that cannot be added.
    """
    files = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not files:
        raise ValueError("paths is empty: give at least one Parquet file.")
    names = [name for name in opened(files[0]).schema_arrow.names if name not in (label, sample_weight)]
    names = names if features is None else list(features)
    if not names:
        raise ValueError(f"There are no columns of features in {files[0]}: name some as features=.")
    chunks = parquet_chunks(files, label=label, features=names, sample_weight=sample_weight)
    return Moments.from_chunks(chunks, classes, feature_names=names)


def parquet_chunks(
    paths: Iterable[Path], *, label: str, features: Sequence[str], sample_weight: str | None = None
) -> Iterator[tuple[FloatArray, NDArray[Any], FloatArray | None]]:
    """Yield (X, y, sample_weight) of some rows at a time; parameters are those of `moments_from_parquet`."""
    wanted = [*features, label, *([] if sample_weight is None else [sample_weight])]
    for path in paths:
        file = opened(path)
        check_columns(path, file, wanted)
        height = max(_VALUES // max(len(features), 1), 1)
        for batch in file.iter_batches(batch_size=height, columns=wanted):
            X = np.column_stack([_numbers(batch, name, path) for name in features])
            weights = None if sample_weight is None else _numbers(batch, sample_weight, path)
            yield X, _values(batch, label), weights


def _values(batch: Any, name: str) -> NDArray[Any]:
    column = batch.column(name)
    column = column.dictionary_decode() if hasattr(column, "dictionary_decode") else column
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _numbers(batch: Any, name: str, path: Path) -> FloatArray:
    try:
        return np.asarray(_values(batch, name), dtype=np.float64)
    except (TypeError, ValueError):
        kind = batch.schema.field(name).type
        raise ValueError(
            f"Column {name!r} of {path} holds {kind}, not numbers: leave it out of features, or encode it."
        ) from None
