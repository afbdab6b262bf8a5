"""Rows that are unlike all others, and rows that are nearly the same as another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, issparse
from scipy.sparse.csgraph import connected_components
from scipy.special import expit
from scipy.stats import norm
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from unflip._utils.alignment import check_aligned
from unflip._utils.record_tables import Table, table
from unflip._utils.typing import FloatArray, IntArray
from unflip._utils.validation import reading_rows
from unflip.data import NearRows, near_rows
from unflip.labels import encode
from unflip.ridge import RowMetric

# Rows nearest to a row that its distance is averaged over: as in cleanlab and in scikit-learn's
# LocalOutlierFactor, a choice between 5 and 20.
_N_NEAREST = 10
# Principal directions in which nearest rows are searched. 32 find fewer near-copies of texts.
_N_DIRECTIONS = 64
# γ in units of the typical eigenvalue. Small for outliers, which differ in directions in which
# rows vary little; larger for near-duplicates, whose differences in such directions are noise.
# A choice between 0.01 and 1, on the sets of benchmarks/outliers.py.
_OUTLIER_REG = 0.01
_DUPLICATE_REG = 0.3
# Weight of the class scores in the outlier score. A choice between 1 and 3, on the same sets.
_SCORE_WEIGHT = 3.0
# Outliers are this many standard deviations above the median, of the logarithm of the distance:
# 0.0003% of normally distributed values. A choice.
_LARGEST_DEVIATION = 4.5
# Near-duplicates are nearer to each other than this share of the distance to other near rows. A
# choice: copies of texts without a tenth of the words are found.
_SMALLEST_RATIO = 0.2
# Share of rows that may have another so near by chance. In p dimensions and at uniform density, a
# row has 10·rᵖ others within r times the distance to its 10 nearest.
_BY_CHANCE = 0.01
# Ratio, along leading directions, below which the distance of a pair is computed along all.
_CHECKED_RATIO = 0.75
# Quartiles of a normal distribution are this many standard deviations apart.
_QUARTILES_APART = 2 * norm.ppf(0.75)


@dataclass(frozen=True, eq=False, repr=False)
class UnusualRows:
    """Outliers and near-duplicates among rows; see `unusual_rows`.

    Attributes
    ----------
    outlier_score : array of shape (n,)
        Between 0 and 1, low for outliers, 0.5 for a typical row.
    is_outlier : array of shape (n,)
        Whether the row is an outlier.
    near_duplicate_score : array of shape (n,)
        Distance to the nearest row, relative to the distance to several near rows, at most 1. It is
        0 for a copy.
    is_near_duplicate : array of shape (n,)
        Whether the row is a near-duplicate of another.
    nearest : array of shape (n,)
        The nearest row of each row.
    order_p_value : float
        P-value of the hypothesis that the order of the rows is random: small if consecutive rows
        are more alike than others. NaN if the coordinates of the rows are not known.
    """

    outlier_score: FloatArray
    is_outlier: NDArray[np.bool_]
    near_duplicate_score: FloatArray
    is_near_duplicate: NDArray[np.bool_]
    nearest: IntArray
    order_p_value: float

    @classmethod
    def of(
        cls,
        deviations: FloatArray,
        nearest: IntArray,
        ratios: FloatArray,
        *,
        dimension: int | None = None,
        order_p_value: float = np.nan,
    ) -> UnusualRows:
        """Return scores, and which rows are outliers and near-duplicates.

        Parameters
        ----------
        deviations : array of shape (n,)
            Standard deviations by which rows are farther from others than a typical row.
        nearest : array of shape (n,)
            The nearest row of each row.
        ratios : array of shape (n,)
            Distance to the nearest row, relative to the distance to several near rows.
        dimension : int, optional
            Number of features, if it is known.
        order_p_value : float
            P-value of the order of the rows.
        """
        largest = _SMALLEST_RATIO
        if dimension is not None:
            largest = min(largest, (_BY_CHANCE / _N_NEAREST) ** (1 / dimension))
        is_near_duplicate = ratios < largest
        is_near_duplicate[nearest[is_near_duplicate]] = True
        return cls(
            outlier_score=expit(-deviations),
            is_outlier=deviations > _LARGEST_DEVIATION,
            near_duplicate_score=np.minimum(ratios, 1.0),
            is_near_duplicate=is_near_duplicate,
            nearest=nearest,
            order_p_value=order_p_value,
        )

    @cached_property
    def outliers(self) -> Table:
        """Outliers, the most unusual first, with fields ``row`` and ``score``."""
        rows = np.flatnonzero(self.is_outlier)
        rows = rows[np.argsort(self.outlier_score[rows], kind="stable")]
        return table(row=rows, score=self.outlier_score[rows])

    @cached_property
    def near_duplicates(self) -> Table:
        """Near-duplicates by group, those with the nearest rows first.

        Fields: ``row``, ``group`` (a number from 0), ``nearest`` (the nearest row), ``score``.
        """
        rows = np.flatnonzero(self.is_near_duplicate)
        groups = self.duplicate_groups[rows]
        order = np.lexsort((rows, groups))
        rows = rows[order]
        return table(
            row=rows,
            group=groups[order],
            nearest=self.nearest[rows],
            score=self.near_duplicate_score[rows],
        )

    @cached_property
    def duplicate_groups(self) -> IntArray:
        """Number of each row's group of near-duplicates, smallest score first; −1 for others."""
        n = len(self.nearest)
        numbers = np.full(n, -1)
        rows = np.flatnonzero(self.is_near_duplicate)
        if not len(rows):
            return numbers
        pairs = coo_array((np.ones(len(rows)), (rows, self.nearest[rows])), shape=(n, n))
        component = connected_components(pairs, directed=False)[1][rows]
        best = np.full(component.max() + 1, np.inf)
        np.minimum.at(best, component, self.near_duplicate_score[rows])
        distinct = np.unique(component)
        rank = np.empty(len(best), dtype=np.intp)
        rank[distinct[np.argsort(best[distinct], kind="stable")]] = np.arange(len(distinct))
        numbers[rows] = rank[component]
        return numbers

    def __repr__(self) -> str:
        n_groups = self.duplicate_groups.max(initial=-1) + 1
        return (
            f"<UnusualRows of {len(self.nearest)} rows: {self.is_outlier.sum()} outliers, "
            f"{self.is_near_duplicate.sum()} near-duplicates in {n_groups} groups>"
        )


def unusual_rows(X: ArrayLike, y: ArrayLike | None = None) -> UnusualRows:
    r"""Find rows that are unlike all others, and near-duplicates.

    Distances are those of a ridge fit, :math:`(x_i - x_j)^\top (S + \gamma)^{-1} (x_i - x_j)`,
    with the covariance S of the rows. An outlier is far from the ten nearest rows and, if the
    labels of three or more classes are passed, has a low leave-one-out score for every class. The
    nearest rows are searched along the first 64 principal directions, approximately; the leverage
    adds the others. A near-duplicate is much nearer to its nearest row than to the next ones.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Rows. Scale the features first; divide embeddings and vectors of words by their norm.
    y : array-like of shape (n,), optional
        Observed labels. They may be wrong.

    Returns
    -------
    UnusualRows
        A score of each row, and tables of outliers and near-duplicates.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 5))
    >>> X[7] = 9  # far from all others
    >>> X[11] = X[30] + 0.001  # nearly the same as another
    >>> unusual = unusual_rows(X)
    >>> unusual.outliers.row.tolist()
    [7]
    >>> unusual.near_duplicates.row.tolist(), unusual.near_duplicates.nearest.tolist()
    ([11, 30], [30, 11])
    """
    check_aligned(X=X, y=y)
    if issparse(X):
        raise ValueError(
            "X is sparse, and unusual_rows needs a dense array: reduce it to a few hundred columns "
            "first, for example by TruncatedSVD(300)."
        )
    with reading_rows(X):
        rows = check_array(X, dtype=[np.float64, np.float32], ensure_min_samples=2, input_name="X")
    codes = None
    if y is not None:
        check_consistent_length(rows, y)
        codes = encode(np.asarray(column_or_1d(y)), "unusual_rows")[1]
    metric = RowMetric.of(rows)
    if metric.scale == 0:
        return _all_equal(len(rows))
    coordinates, variances = metric.leading(_N_DIRECTIONS)
    scaled = coordinates / np.sqrt(variances + np.float32(_DUPLICATE_REG * metric.scale))
    near = near_rows(scaled, min(_N_NEAREST, len(rows) - 1))
    factor = metric.factor(_OUTLIER_REG)
    norms = metric.squared_norms(factor)
    # Along the other directions, a row is about as far from any row as from the mean.
    along_leading = coordinates**2 @ (1 / (variances + _OUTLIER_REG * metric.scale))
    deviations = distance_deviations(near.mean_square + np.maximum(norms - along_leading, 0))
    if codes is not None:
        deviations += _class_deviations(metric, factor, norms, codes)
    return UnusualRows.of(
        deviations,
        near.nearest,
        _duplicate_scores(metric, near, scaled),
        dimension=rows.shape[1],
        order_p_value=_order_p_value(scaled),
    )


def distance_deviations(squares: NDArray[Any]) -> FloatArray:
    """Return by how many standard deviations the logarithms of distances are above their median.

    Parameters
    ----------
    squares : array of shape (n,)
        Mean squared distances to several near rows.
    """
    least = np.finfo(np.float32).eps * float(squares.mean())  # logarithms of 0 are infinite
    return _deviations(np.log(np.maximum(squares, least)) / 2)


def _deviations(values: FloatArray) -> FloatArray:
    """Return deviations from the median in standard deviations, robust to outliers."""
    low, median, high = np.percentile(values, [25, 50, 75])
    spread = (high - low) / _QUARTILES_APART or float(values.std()) or 1.0
    return np.asarray((values - median) / spread, dtype=float)


def _class_deviations(
    metric: RowMetric, factor: NDArray[np.float32], norms: FloatArray, codes: IntArray
) -> FloatArray:
    """Return by how much the largest class score of a row is below that of others, weighted.

    The weight is the correlation of the scores with the labels. With two classes it is 0: a row
    that is in neither class has scores between those of rows in either.
    """
    n_classes = int(codes.max()) + 1
    indicators = np.eye(n_classes)[codes]
    scores = metric.leave_one_out_scores(factor, norms, indicators)
    centred = indicators - indicators.mean(axis=0)
    lengths = np.linalg.norm(scores) * np.linalg.norm(centred)
    correlation = max(float(np.vdot(scores, centred)), 0.0) / (lengths or 1.0)
    weight = _SCORE_WEIGHT * correlation * (n_classes - 2) / (n_classes - 1)
    return weight * _deviations(-scores.max(axis=1))


def _duplicate_scores(metric: RowMetric, near: NearRows, scaled: NDArray[np.float32]) -> FloatArray:
    """Return distances to the nearest row, relative to those to several near rows."""
    # The nearest rows of a group of ten duplicates are all duplicates: compare with other rows.
    usual = np.maximum(near.mean_square, float(np.median(near.mean_square)) / 2)
    squares = near.nearest_square / usual
    rows = np.flatnonzero(squares < _CHECKED_RATIO**2)
    factor = metric.factor(_DUPLICATE_REG)
    exact = metric.squared_distances(factor, rows, near.nearest[rows])
    outside = metric.squared_norms(factor, rows) - np.sum(scaled[rows] ** 2, axis=1)
    squares[rows] = exact / (usual[rows] + 2 * np.maximum(outside, 0))
    return np.asarray(np.sqrt(squares), dtype=float)


def _order_p_value(scaled: NDArray[np.float32]) -> float:
    """Return the p-value of the mean product of consecutive rows.

    Under any order of the rows, products of two rows have the mean −Σ‖x‖²/(n(n − 1)) and
    approximately the variance tr(S²).
    """
    n = len(scaled)
    consecutive = float(np.sum(scaled[1:] * scaled[:-1]))
    expected = -float(np.sum(scaled**2)) / n
    variance = (n - 1) * float(np.sum((scaled.T @ scaled / n) ** 2))
    return float(norm.sf((consecutive - expected) / np.sqrt(variance)))


def _all_equal(n: int) -> UnusualRows:
    """Return the result for rows that are all the same."""
    nearest = (np.arange(n) + 1) % n
    return UnusualRows.of(np.zeros(n), nearest, np.zeros(n))
