"""The nearest other rows of every row, approximately, by trees of random splits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import IntArray

# Choices, on the sets of benchmarks/outliers.py: more and larger leaves find more of the nearest
# rows, and take longer. A leaf holds between half of this number of rows and all of it.
_LEAF = 64
_N_TREES = 8
# Trees whose leaves give the mean distance to several rows: two come within a few percent of all.
_N_AVERAGED = 2
# Numbers in the distances of the leaves that are computed together (1 MiB).
_CHUNK = 2**18

SingleArray = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class NearRows:
    """The nearest other rows of each row.

    Attributes
    ----------
    mean_square : array of shape (n,)
        Mean squared distance to the `k` nearest rows.
    nearest : array of shape (n,)
        Index of the nearest row.
    nearest_square : array of shape (n,)
        Squared distance to it.
    """

    mean_square: NDArray[Any]
    nearest: IntArray
    nearest_square: NDArray[Any]


def near_rows(coordinates: SingleArray, k: int) -> NearRows:
    """Find the nearest rows approximately, in time n log n.

    Each of several trees splits the rows at the median along random directions, until few are left.
    Nearest rows are then searched among those of the same leaf. Close rows are rarely separated in
    every tree. Up to one leaf of rows, the result is exact.

    Parameters
    ----------
    coordinates : array of shape (n, q)
        Coordinates of at least two rows.
    k : int
        Number of nearest rows, less than n, in the mean distance.
    """
    n, q = coordinates.shape
    depth = max(0, int(np.ceil(np.log2(n / _LEAF))))
    # Leaves are of one size, so they hold a few absent rows, very far from all others.
    n_absent = -n % 2**depth
    norms = np.einsum("ij,ij->i", coordinates, coordinates)
    padded = np.pad(coordinates, ((0, n_absent), (0, 0)))
    padded_norms = np.pad(norms, (0, n_absent), constant_values=np.finfo(np.float32).max)
    found = NearRows(
        np.full(n + n_absent, np.inf, dtype=np.float32),
        np.zeros(n + n_absent, dtype=np.intp),
        np.full(n + n_absent, np.inf, dtype=np.float32),
    )
    # A seed of its own, so that the same rows have the same result.
    rng = np.random.default_rng(0)
    for tree in range(_N_TREES if depth else 1):
        directions = rng.normal(size=(q, depth)).astype(np.float32)
        projections = coordinates @ directions
        of_absent = rng.choice(projections, n_absent)
        leaves = _leaves(np.concatenate([projections, of_absent]))
        step = max(1, _CHUNK // leaves.shape[1] ** 2)
        for start in range(0, len(leaves), step):
            some = leaves[start : start + step]
            rows = padded[some]
            # ‖b‖² − 2aᵀb = ‖a − b‖² − ‖a‖², from row a to each row b
            squares = np.matmul(rows, rows.transpose(0, 2, 1))
            squares *= -2
            squares += padded_norms[some][:, None, :]
            itself = np.arange(squares.shape[1])
            squares[:, itself, itself] = np.inf
            _keep_nearest(found, some, squares)
            if tree < _N_AVERAGED:
                _keep_means(found, some, squares, k)
    return NearRows(
        np.maximum(found.mean_square[:n] + norms, 0),
        found.nearest[:n],
        np.maximum(found.nearest_square[:n] + norms, 0),
    )


def _leaves(projections: SingleArray) -> IntArray:
    """Return the rows of each leaf, (n_leaves, rows), split along each column in turn."""
    n, depth = projections.shape
    leaves = np.arange(n)[None, :]
    for level in range(depth):
        half = leaves.shape[1] // 2
        order = np.argpartition(projections[leaves, level], half, axis=1)
        leaves = np.take_along_axis(leaves, order, axis=1).reshape(-1, half)
    return leaves


def _keep_nearest(found: NearRows, leaves: IntArray, squares: SingleArray) -> None:
    """Replace the nearest rows where a leaf has a nearer one."""
    position = squares.argmin(axis=2)
    square = np.take_along_axis(squares, position[:, :, None], axis=2).ravel()
    other = np.take_along_axis(leaves, position, axis=1).ravel()
    rows = leaves.ravel()
    nearer = square < found.nearest_square[rows]
    found.nearest[rows[nearer]] = other[nearer]
    found.nearest_square[rows[nearer]] = square[nearer]


def _keep_means(found: NearRows, leaves: IntArray, squares: SingleArray, k: int) -> None:
    """Replace mean distances where those in a leaf are less; reorder `squares`."""
    squares.partition(k - 1, axis=2)
    rows = leaves.ravel()
    means = squares[:, :, :k].mean(axis=2).ravel()
    found.mean_square[rows] = np.minimum(found.mean_square[rows], means)
