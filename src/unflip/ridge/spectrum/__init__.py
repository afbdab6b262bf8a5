r"""One eigendecomposition that serves every ridge penalty, every target and every exact leave-one-out score.

The fit minimises (1/n)Σ wᵢ(tᵢ − b − βᵀxᵢ)² + γ‖β‖² with n = Σ wᵢ. Let A hold the rows √wᵢ(xᵢ − x̄)
(x̄ = 0 without an intercept). Either Gram matrix gives the whole path over γ:

* primal (p×p): AᵀA = V diag(s) Vᵀ, β = V diag(1/(s + nγ)) Vᵀ Aᵀ√w t,
* dual (m×m, where p is not below m, less one with an intercept): AAᵀ = U diag(s) Uᵀ, β = AᵀU
  diag(1/(s + nγ)) Uᵀ √w t.

The fit is linear in t with hat values Hᵢ, so leaving row i out, at the same penalty nγ, needs no
refit:

.. math:: \hat t_i^{(-i)} = t_i - \frac{t_i - \hat t_i}{1 - H_i}.

With rows zᵢ in the coordinates of V, hat values are Hᵢ = wᵢ Σⱼ zᵢⱼ²/(sⱼ + nγ) (and wᵢ/n for an
intercept). As functions of s, those of all penalties, and of products of hat matrices, are mixtures
of a few dozen, so that one pass over the rows, the one that costs as much as two Gram matrices,
serves them all.

Sparse rows with thousands of rows and of features are not decomposed: see
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
