"""Rows of a fitted transformer, in memory if they are few and computed block by block otherwise."""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import numpy as np
from scipy.sparse import issparse

from unflip._utils.arrays import is_foreign
from unflip._utils.typing import Rows
from unflip.data.lazy import LazyRows, RowMapping

# Most numbers of transformed rows that are kept in memory, 256 MiB in double precision. A choice:
# beyond, each pass over the rows computes them again.
_KEPT_VALUES = 2**25


class Transformer(Protocol):
    """A fitted transformer that treats each row on its own."""

    def transform(self, X: Any) -> Any:
        """Return the features of samples, one row for each."""


def transformed_rows(transformer: Transformer, X: Rows) -> Rows:
    """Return the features of rows of any kind, as rows that fits can pass over.

    Rows that are read lazily stay lazy. Rows on a device are transformed there.

    Parameters
    ----------
    transformer : Transformer
        A fitted transformer.
    X : array, sparse array or LazyRows of shape (n, p)
        Validated rows.
    """
    is_lazy = isinstance(X, LazyRows)
    if is_foreign(X) and not is_lazy:
        return transformer.transform(X)
    example = _transformed(transformer, (X.hosted if is_lazy else X)[:1, :])
    n_columns = int(example.shape[1])
    is_large = X.shape[0] * n_columns > _KEPT_VALUES
    if not is_lazy and (issparse(X) or issparse(example) or not is_large):
        return _transformed(transformer, X)
    rows = X if is_lazy else LazyRows.of(X, [np.float64, np.float32])
    return rows.mapped(RowMapping(partial(_transformed, transformer), n_columns))


def _transformed(transformer: Transformer, rows: Any) -> Rows:
    """Return features as an array, whatever container they come in, or as a sparse array."""
    output = transformer.transform(rows)
    features = output.tocsr() if issparse(output) else np.asarray(output)
    name = type(transformer).__name__
    if features.ndim != 2 or features.shape[0] != rows.shape[0]:
        raise ValueError(
            f"features: {name}.transform returned an array of shape {features.shape} for "
            f"{rows.shape[0]} rows, but must return one row of features for each row."
        )
    if not np.isfinite(features.data if issparse(features) else features).all():
        raise ValueError(
            f"features: {name}.transform returned numbers that are not finite: impute or scale the "
            "rows first."
        )
    return features
