"""Decompose the smaller Gram matrix of the rows."""

from __future__ import annotations

from unflip._utils.typing import Array, Rows
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.dual import DualSpectrum
from unflip.ridge.spectrum.krylov import KrylovSpectrum, is_out_of_reach
from unflip.ridge.spectrum.primal import PrimalSpectrum


def decompose(
    X: Rows,
    sample_weight: Array | None = None,
    *,
    fit_intercept: bool = True,
    shares: Array | None = None,
) -> Spectrum:
    """Decompose the smaller Gram matrix of the rows.

    It is m×m if the fit can reproduce every target, else p×p. If both are too large and the rows
    are sparse, fits and sums over the spectrum are computed without a decomposition.

    Parameters
    ----------
    X : array of shape (m, p), of any array-API namespace or of scipy.sparse
        Rows. Sparse rows stay sparse.
    sample_weight : array of shape (m,) or None
        Positive weights, 1 by default.
    fit_intercept : bool
        Whether rows and targets are centred by their mean.
    shares : array of shape (m, q), optional
        Columns that sum to 1 in each row, such as the class proportions of duplicates. Their sums
        are computed in the same pass over the rows, which saves a pass for targets that are
        mixtures of them.

    Examples
    --------
    >>> import numpy as np
    >>> spectrum = decompose(np.array([[0.0], [1.0], [2.0]]))
    >>> spectrum.leave_one_out(np.array([0.0, 1.0, 2.0]), [0.0]).scores[:, 0, 0].round(9)
    array([0., 1., 2.])
    """
    if is_out_of_reach(X):
        return KrylovSpectrum(X, sample_weight, fit_intercept=fit_intercept)
    if X.shape[0] > X.shape[1] + int(fit_intercept):
        return PrimalSpectrum(X, sample_weight, fit_intercept=fit_intercept, shares=shares)
    return DualSpectrum(X, sample_weight, fit_intercept=fit_intercept)
