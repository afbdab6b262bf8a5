"""Estimates of ‖μ‖, half the distance of two class means, from true and from noisy labels."""

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
from unflip.data.duplicates import DistinctRows, take_rows
from unflip.data.lazy import LazyRows
from unflip.data.rows import centred_rows
from unflip.estimation.strata import Posterior
from unflip.labels.classes import encode
from unflip.labels.codes import UNCHECKED


def mean_norm_from_rows(X: ArrayLike, y: ArrayLike) -> float:
    r"""Estimate ‖μ‖ from rows with true labels of two classes.

    ‖μ‖ is half the distance between the class means, in units of the standard deviation σ within a
    class (σ² is averaged over features, as in the isotropic theory). The squared distance is
    corrected for the noise of the means, which dominates it in high dimension:

    .. math:: \widehat{\|\mu\|^2} = \frac{\|\bar x_+ - \bar x_-\|^2 - \mathrm{tr} S_+/n_+ -
              \mathrm{tr} S_-/n_-}{4 \hat\sigma^2}.

    The numerator is the mean of (x_i − x_k)ᵀ(x_j − x_l) over distinct positive rows i, j and
    distinct negative rows k, l. It is unbiased in any dimension.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, p)
        Rows.
    y : array-like of shape (n,)
        True labels of two classes, at least two rows of each.

    Returns
    -------
    float
        ‖μ‖; 0 if the estimate of its square is negative.

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
        raise ValueError(f"mean_norm_from_rows requires two classes; y has {len(classes)}.")
    counts = np.bincount(codes)
    if counts.min() < 2:
        raise ValueError(
            f"Class {classes.tolist()[counts.argmin()]!r} has one row only: pass at least two rows "
            "of each class."
        )
    gap = _gap(rescaled(rows), codes, np.ones(len(codes)))
    if not gap.within > 0:
        raise ValueError(
            "The rows of each class are identical, so ‖μ‖ has no unit: pass rows that vary within "
            "the classes."
        )
    return _root(gap.square / gap.within)


def mean_norm_from_trusted(
    rows: DistinctRows, codes: IntArray, true: IntArray, posterior: Posterior
) -> float:
    """Combine the estimate from trusted labels with that from all observed labels.

    The observed classes are D = P(+|+) − P(+|−) times as far apart as the true ones. The first
    estimate is noisy if few labels are trusted, the second if D is uncertain: they are weighted by
    their inverse variances. Returns NaN if a class has fewer than two distinct rows.
    """
    checked = _rows_with_class(rows, true)
    everything = _rows_with_class(rows, codes)
    if checked is None or everything is None:
        return float("nan")
    trusted = _gap(*checked)
    observed = _gap(*everything)
    if not trusted.within > 0:
        return float("nan")
    positive = posterior.true_given_observed[:, :, 1]
    contrast = positive[:, 1] - positive[:, 0]  # D
    attenuation = float(contrast.mean()) ** 2
    corrected = observed.square / attenuation
    likely = max(corrected, 0.0)
    corrected_variance = (
        observed.variance(likely * attenuation) / attenuation**2
        + 4 * likely**2 * float(contrast.var()) / attenuation
    )
    weights = [1 / trusted.variance(likely), 1 / corrected_variance]
    square = float(np.average([trusted.square, corrected], weights=weights))
    return _root(square / trusted.within)


@dataclass(frozen=True, eq=False)
class _ClassMoments:
    """Mean, trace of the unbiased covariance, and effective sample size (Kish) of one class."""

    mean: FloatArray
    trace: float
    n_effective: float


@dataclass(frozen=True)
class _Gap:
    """Distance of two classes, in the units of the rows."""

    square: float  # unbiased for ‖μ‖²
    within: float  # σ²
    v: float  # 1/n₊ + 1/n₋
    n_features: int

    def variance(self, square: float) -> float:
        """Return the variance of the estimate if ‖μ‖² is `square`: σ²‖μ‖²v + pσ⁴v²/8."""
        return self.within * square * self.v + self.n_features * (self.within * self.v) ** 2 / 8


def _rows_with_class(
    rows: DistinctRows, codes: IntArray
) -> tuple[Rows, IntArray, FloatArray] | None:
    """Return distinct rows with a class, their class and weight; None if a class has fewer than 2.

    A distinct row whose duplicates have both classes occurs twice.
    """
    has_class = codes != UNCHECKED
    owner = as_numpy(rows.owner)[has_class]
    weights = as_numpy(rows.member_weights)[has_class]
    cells, position = np.unique(2 * owner + codes[has_class], return_inverse=True)
    classes = cells % 2
    if np.bincount(classes, minlength=2).min() < 2:
        return None
    return take_rows(rows.X, cells // 2), classes, np.bincount(position, weights).astype(float)


def _gap(X: Rows, codes: IntArray, weights: FloatArray) -> _Gap:
    """Return the distance of the two classes; see `mean_norm_from_rows`."""
    parts = [
        _moments(take_rows(X, np.flatnonzero(codes == a)), weights[codes == a]) for a in (0, 1)
    ]
    distance = parts[1].mean - parts[0].mean
    noise = sum(part.trace / part.n_effective for part in parts)
    degrees_of_freedom = [part.n_effective - 1 for part in parts]
    trace = float(np.average([part.trace for part in parts], weights=degrees_of_freedom))
    return _Gap(
        square=(float(distance @ distance) - noise) / 4,
        within=trace / X.shape[1],
        v=sum(1 / part.n_effective for part in parts),
        n_features=X.shape[1],
    )


def _moments(X: Rows, weights: FloatArray) -> _ClassMoments:
    share = weights / weights.sum()
    rows = centred_rows(X, like(share, X) if is_foreign(X) else share)
    n_effective = 1 / float(share @ share)
    trace = float(as_numpy(rows.column_powers()).sum()) * n_effective / (n_effective - 1)
    return _ClassMoments(as_numpy(rows.mean), trace, n_effective)


def _root(square: float) -> float:
    return float(np.sqrt(max(square, 0.0)))


def rescaled(X: Rows) -> Rows:
    """Return rows relative to the first and scaled to at most 1, so that squares fit float64.

    Estimates from them do not depend on origin and unit. Sparse rows keep their origin,
    so that they stay sparse.
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
