r"""One eigendecomposition for every regularization strength, target and leave-one-out score.

The fit minimises (1/n)Σ wᵢ(tᵢ − b − βᵀxᵢ)² + γ‖β‖² with n = Σ wᵢ. Let A hold the rows √wᵢ(xᵢ − x̄)
(x̄ = 0 without an intercept). Either Gram matrix gives the whole path over γ:

* primal (p×p): AᵀA = V diag(s) Vᵀ, β = V diag(1/(s + nγ)) Vᵀ Aᵀ√w t,
* dual (m×m, if p ≥ m, or p ≥ m − 1 with an intercept): AAᵀ = U diag(s) Uᵀ, β = AᵀU
  diag(1/(s + nγ)) Uᵀ √w t.

The fit is linear in t with leverages Hᵢ, so leaving row i out, at the same nγ, needs no refit:

.. math:: \hat t_i^{(-i)} = t_i - \frac{t_i - \hat t_i}{1 - H_i}.

With rows zᵢ in the coordinates of V, leverages are Hᵢ = wᵢ Σⱼ zᵢⱼ²/(sⱼ + nγ) (plus wᵢ/n for an
intercept). As functions of s, those for all γ, and diagonals of products of hat matrices, are
mixtures of a few dozen functions. So one pass over the rows, which costs as much as two Gram
matrices, serves them all.

Sparse data with thousands of rows and of features is not decomposed: see
`unflip.ridge.spectrum.krylov`.
"""

from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.decomposition import decompose
from unflip.ridge.spectrum.dual import DualSpectrum
from unflip.ridge.spectrum.gram import GramSpectrum
from unflip.ridge.spectrum.krylov import KrylovSpectrum, sums_of_eigenvalues
from unflip.ridge.spectrum.left_out import CannotLeaveOutError, LeaveOneOut, LeftOut
from unflip.ridge.spectrum.primal import PrimalSpectrum
from unflip.ridge.spectrum.stacks import RidgePath

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
