"""The nearest rows of suspects, among rows whose label is confident."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from unflip._utils.typing import FloatArray, IntArray, Rows

# Rows that are compared at a time: with 500 queries their similarities take 16 MB. A choice.
_BLOCK_ROWS = 4096


@dataclass(frozen=True, eq=False)
class NearestRows:
    """The nearest rows of some queries, the nearest first.

    Attributes
    ----------
    rows : ndarray of shape (n_queries, m)
        The nearest rows; −1 if there are fewer than m candidates.
    distances : ndarray of shape (n_queries, m)
        Their distances: Euclidean for dense rows, 1 − cosine similarity for sparse rows.
    """

    rows: IntArray
    distances: FloatArray


def nearest_rows(
    X: Rows, queries: IntArray, candidates: NDArray[np.bool_], n_nearest: int
) -> NearestRows:
    """Return the nearest candidates of each query, never the query itself.

    Parameters
    ----------
    X : array or sparse array of shape (n, p)
        Rows in memory.
    queries : ndarray of shape (n_queries,)
        Rows whose neighbours are wanted.
    candidates : ndarray of shape (n,)
        Whether each row can be a neighbour.
    n_nearest : int
        Number m of neighbours.
    """
    best = np.full((len(queries), n_nearest), np.inf)
    rows = np.full((len(queries), n_nearest), -1)
    places = np.flatnonzero(candidates)
    query_rows = X[queries]
    for start in range(0, len(places), _BLOCK_ROWS):
        block = places[start : start + _BLOCK_ROWS]
        distances = _distances(query_rows, X[block])
        distances[queries[:, None] == block] = np.inf
        distances = np.hstack([best, distances])
        numbers = np.hstack([rows, np.broadcast_to(block, (len(queries), len(block)))])
        order = _smallest(distances, n_nearest)
        best = np.take_along_axis(distances, order, axis=1)
        rows = np.take_along_axis(numbers, order, axis=1)
    return NearestRows(np.where(np.isfinite(best), rows, -1), best)


def _smallest(distances: FloatArray, count: int) -> IntArray:
    """Return the places of the smallest distances of each row, the smallest first.

    A few times the minimum is much faster than a partition; of equal distances the first wins.
    """
    remaining = distances.copy()
    places = np.empty((len(distances), count), dtype=np.intp)
    for rank in range(count):
        places[:, rank] = remaining.argmin(axis=1)
        np.put_along_axis(remaining, places[:, rank : rank + 1], np.inf, axis=1)
    return places


def _distances(queries: Rows, block: Rows) -> FloatArray:
    """Return the distances of queries (q, p) and rows (m, p), as of `NearestRows`."""
    lengths = _squared_norms(queries)[:, None], _squared_norms(block)
    products = queries @ block.T
    if issparse(products):
        # Documents of different lengths: the direction tells what they are about.
        scale = np.sqrt(lengths[0] * lengths[1])
        return np.asarray(1 - products.toarray() / np.where(scale > 0, scale, 1.0))
    squares = np.maximum(lengths[0] + lengths[1] - 2 * products, 0.0)
    return np.asarray(np.sqrt(squares), dtype=np.float64)


def _squared_norms(rows: Rows) -> FloatArray:
    if issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", rows, rows))
