r"""One eigendecomposition that serves every ridge penalty, every target and every exact leave-one-out score.

The fit minimises (1/n)Σ wᵢ(tᵢ − b − βᵀxᵢ)² + γ‖β‖² with n = Σ wᵢ. Let A hold the rows √wᵢ(xᵢ − x̄) (x̄ = 0 without
an intercept). Either Gram matrix gives the whole path over γ:

* primal (p×p): AᵀA = V diag(s) Vᵀ, β = V diag(1/(s + nγ)) Vᵀ Aᵀ√w t,
* dual (m×m, where p is not below m, less one with an intercept): AAᵀ = U diag(s) Uᵀ, β = AᵀU diag(1/(s + nγ)) Uᵀ √w t.

The fit is linear in t with hat values Hᵢ, so leaving row i out, at the same penalty nγ, needs no refit:

.. math:: \hat t_i^{(-i)} = t_i - \frac{t_i - \hat t_i}{1 - H_i}.

With rows zᵢ in the coordinates of V, hat values are Hᵢ = wᵢ Σⱼ zᵢⱼ²/(sⱼ + nγ) (and wᵢ/n for an intercept). As functions
of s, those of all penalties, and of products of hat matrices, are mixtures of a few dozen, so that one pass over the
rows, the one that costs as much as two Gram matrices, serves them all.

Sparse rows with thousands of rows and of features are not decomposed: see `unflip.spectrum.krylov`.
"""

from __future__ import annotations

from unflip._typing import Array, Rows
from unflip.spectrum.base import Spectrum
from unflip.spectrum.dual import DualSpectrum
from unflip.spectrum.gram import GramSpectrum
from unflip.spectrum.krylov import KrylovSpectrum, is_out_of_reach, sums_of_eigenvalues
from unflip.spectrum.left_out import CannotLeaveOutError, LeaveOneOut, LeftOut
from unflip.spectrum.primal import PrimalSpectrum
from unflip.spectrum.stacks import RidgePath

__all__ = [
    "CannotLeaveOutError",
    "DualSpectrum",
    "GramSpectrum",
    "KrylovSpectrum",
    "LeaveOneOut",
    "LeftOut",
    "PrimalSpectrum",
    "RidgePath",
    "Spectrum",
    "decompose",
    "sums_of_eigenvalues",
]


def decompose(
    X: Rows, sample_weight: Array | None = None, *, fit_intercept: bool = True, shares: Array | None = None
) -> Spectrum:
    """Decompose the smaller Gram matrix of the rows: p×p, or m×m where the fit could reproduce every target.

    Where it is that of sparse rows and too large, fits and sums over the spectrum are found without it.

    Parameters
    ----------
    X : array of shape (m, p), of any array-API namespace or of scipy.sparse
        Rows. Sparse ones are never made dense.
    sample_weight : array of shape (m,) or None
        Positive weights, 1 by default.
    fit_intercept : bool
        Whether rows and targets are centred by their mean.
    shares : array of shape (m, q), optional
        Columns that sum to 1 in each row, such as its shares of q classes, whose sums are taken along: targets that
        are mixtures of them then cost a pass over the rows less.
    """
    if is_out_of_reach(X):
        return KrylovSpectrum(X, sample_weight, fit_intercept=fit_intercept)
    if X.shape[0] > X.shape[1] + int(fit_intercept):
        return PrimalSpectrum(X, sample_weight, fit_intercept=fit_intercept, shares=shares)
    return DualSpectrum(X, sample_weight, fit_intercept=fit_intercept)
