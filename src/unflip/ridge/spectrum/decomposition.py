"""Choose the decomposition of the smaller Gram matrix."""

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
    """Decompose the smaller Gram matrix of the rows: p×p, or m×m where the fit could reproduce every target.

    Where it is that of sparse rows and too large, fits and sums over the spectrum are found without
    it.

    Parameters
    ----------
    X : array of shape (m, p), of any array-API namespace or of scipy.sparse
        Rows. Sparse ones are never made dense.
    sample_weight : array of shape (m,) or None
        Positive weights, 1 by default.
    fit_intercept : bool
        Whether rows and targets are centred by their mean.
    shares : array of shape (m, q), optional
        Columns that sum to 1 in each row, such as its shares of q classes, whose sums are taken
        along: targets that are mixtures of them then cost a pass over the rows less.
    """
    if is_out_of_reach(X):
        return KrylovSpectrum(X, sample_weight, fit_intercept=fit_intercept)
    if X.shape[0] > X.shape[1] + int(fit_intercept):
        return PrimalSpectrum(X, sample_weight, fit_intercept=fit_intercept, shares=shares)
    return DualSpectrum(X, sample_weight, fit_intercept=fit_intercept)
