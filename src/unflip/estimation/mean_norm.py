"""How far apart two classes are: ‖μ‖ from rows with true labels, and from all rows with noisy ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils.validation import check_X_y

from unflip._utils.arrays import as_numpy, is_foreign, like
from unflip._utils.sparse import canonical
from unflip._utils.typing import FloatArray, IntArray, Rows
from unflip._utils.validation import check_unmasked, reading_rows
from unflip.data.centred import CentredRows
from unflip.data.duplicates import DistinctRows, chosen
from unflip.data.lazy import LazyRows
from unflip.estimation.strata import Posterior
from unflip.labels.classes import UNCHECKED, encode


def mean_norm_from_rows(X: ArrayLike, y: ArrayLike) -> float:
    r"""Estimate ‖μ‖ from rows with true labels of two classes.

    Half the distance between the class means, in units of the standard deviation σ within a class
    (its mean square over features, so that it is the ‖μ‖ of the isotropic theory). The square of
    the distance is freed of the noise in the means, which in high dimension would be most of it:

    .. math:: \widehat{\|\mu\|^2} = \frac{\|\bar x_+ - \bar x_-\|^2 - \mathrm{tr} S_+/n_+ - \mathrm{tr} S_-/n_-}
              {4 \hat\sigma^2},

    whose numerator is the mean of (x_i − x_k)ᵀ(x_j − x_l) over distinct positive rows i, j and
    distinct negative rows k, l: unbiased whatever the dimension.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, p)
        Rows.
    y : array-like of shape (n,)
        True labels of two classes, at least two rows of each.

    Returns
    -------
    float
        ‖μ‖; 0 where the estimate of its square is negative.

    Examples
    --------
    >>> from unflip.datasets import make_mixture
    >>> X, y = make_mixture(400, 1000, mean_norm=2.0, random_state=0)
    >>> print(f"{mean_norm_from_rows(X, y):.1f}")
    2.0
    """
    check_unmasked(y=y)
    with reading_rows(X):
        rows, labels = check_X_y(X, y, accept_sparse="csr", dtype=np.float64)
    classes, codes = encode(labels, "mean_norm_from_rows")
    if len(classes) != 2:
        raise ValueError(f"mean_norm_from_rows takes two classes; y has {len(classes)}.")
    counts = np.bincount(codes)
    if counts.min() < 2:
        raise ValueError(
            f"Class {classes.tolist()[counts.argmin()]!r} has one row only: two are needed to see "
            "how it varies."
        )
    gap = _gap(rescaled(rows), codes, np.ones(len(codes)))
    if not gap.within > 0:
        raise ValueError(
            "The rows of each class are all alike, so there is no unit for ‖μ‖: give rows that "
            "vary."
        )
    return _root(gap.square / gap.within)


def mean_norm_of(
    rows: DistinctRows, codes: IntArray, true: IntArray, posterior: Posterior
) -> float:
    """Combine the checked rows with all rows, whose observed classes are D = P(+|+) − P(+|−) times as far apart.

    The first is noisy where few rows were checked, the second where D is not well known: inverse
    variances weigh them.
    """
    checked, everything = _merged(rows, true), _merged(rows, codes)
    if checked is None or everything is None:
        return float("nan")
    trusted, observed = _gap(*checked), _gap(*everything)
    if not trusted.within > 0:
        return float("nan")
    positive = posterior.true_given_observed[:, :, 1]
    contrast = positive[:, 1] - positive[:, 0]  # D
    blurring = float(contrast.mean()) ** 2
    unblurred = observed.square / blurring
    likely = max(unblurred, 0.0)
    doubt = (
        observed.variance(likely * blurring) / blurring**2
        + 4 * likely**2 * float(contrast.var()) / blurring
    )
    weights = [1 / trusted.variance(likely), 1 / doubt]
    return _root(float(np.average([trusted.square, unblurred], weights=weights)) / trusted.within)


@dataclass(frozen=True, eq=False)
class _ClassMoments:
    """Mean, trace of the covariance (unbiased), and number of rows (Kish) of one class."""

    mean: FloatArray
    trace: float
    n_effective: float


@dataclass(frozen=True)
class _Gap:
    """How far apart two classes are, in the units of the rows."""

    square: float  # unbiased for ‖μ‖²
    within: float  # σ²
    v: float  # 1/n₊ + 1/n₋
    n_features: int

    def variance(self, square: float) -> float:
        """Variance of `square` where this is the truth, σ²‖μ‖²v + pσ⁴v²/8."""
        return self.within * square * self.v + self.n_features * (self.within * self.v) ** 2 / 8


def _merged(rows: DistinctRows, codes: IntArray) -> tuple[Rows, IntArray, FloatArray] | None:
    """Distinct rows, class and weight of those that have a class; None unless both classes have two of them."""
    known, owner, weights = codes != UNCHECKED, as_numpy(rows.owner), as_numpy(rows.member_weights)
    cells, position = np.unique(2 * owner[known] + codes[known], return_inverse=True)
    if np.bincount(cells % 2, minlength=2).min() < 2:
        return None
    return (
        chosen(rows.X, cells // 2),
        cells % 2,
        np.bincount(position, weights[known]).astype(float),
    )


def _gap(X: Rows, codes: IntArray, weights: FloatArray) -> _Gap:
    """Compare the two classes; see `mean_norm_from_rows`."""
    parts = [_moments(chosen(X, np.flatnonzero(codes == a)), weights[codes == a]) for a in (0, 1)]
    distance = parts[1].mean - parts[0].mean
    noise = sum(part.trace / part.n_effective for part in parts)
    freedom = [part.n_effective - 1 for part in parts]
    within = float(np.average([part.trace for part in parts], weights=freedom)) / X.shape[1]
    return _Gap(
        (float(distance @ distance) - noise) / 4,
        within,
        sum(1 / part.n_effective for part in parts),
        X.shape[1],
    )


def _moments(X: Rows, weights: FloatArray) -> _ClassMoments:
    share = weights / weights.sum()
    rows = CentredRows.of(X, like(share, X) if is_foreign(X) else share)
    n_effective = 1 / float(share @ share)
    trace = float(as_numpy(rows.column_powers()).sum()) * n_effective / (n_effective - 1)
    return _ClassMoments(as_numpy(rows.mean), trace, n_effective)


def _root(square: float) -> float:
    return float(np.sqrt(max(square, 0.0)))


def rescaled(X: Rows) -> Rows:
    """Rows about the first and up to 1, so that no square overflows or vanishes; origin and unit have no part here.

    Sparse rows keep their origin, without which they would not be sparse.
    """
    if issparse(X):
        return _up_to_one(canonical(X))
    if isinstance(X, LazyRows):
        return X.rescaled()
    rows = _up_to_one(X)
    return _up_to_one(rows - rows[0])


def _up_to_one(X: Rows) -> Rows:
    largest = float(abs(X).max())
    return X / largest if largest > 0 else X
