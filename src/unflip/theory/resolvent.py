r"""The scalars that describe a large ridge problem with isotropic noise: δ, h and the bulk gain.

They come from the deterministic equivalent of the resolvent Q = (XᵀX/n + γI)⁻¹ (the paper's Lemma
DEQ). Write g = γ(1 + δ), A = 1 + η + γ and r = √(A² − 4η) = √((η + γ − 1)² + 4γ). Then g is the
positive root of g² − (η + γ − 1)g − γ = 0, 1 + g = (A + r)/2, and (1 + g)² − η = (1 + g)r, so that

.. math:: h = 1 - \frac{\eta}{(1 + g)^2} = \frac{r}{1 + g},

which has no cancellation. (The paper's main text prints 1 − η/(1 + γ(1 + δ)²), which is wrong:
docs/errata.md.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.typing import FloatArray
from unflip._utils.validation import as_floats

# Largest aspect and regularization strength: their squares do not overflow float64.
_LARGEST = 1e150


def delta(aspect: ArrayLike, reg: ArrayLike) -> FloatArray:
    """δ = tr(Q̄)/n, the bias that dimension adds to the resolvent (Lemma DEQ).

    Parameters
    ----------
    aspect : array-like
        η = p/n.
    reg : array-like
        γ. At γ = 0 the value is finite for η < 1 only, and infinite beyond.

    Returns
    -------
    ndarray
        δ = (η − γ − 1 + r)/(2γ), in the form 2η/(1 + γ − η + r) where that one does not cancel.
    """
    eta, gamma = _checked(aspect, reg)
    root = _root(eta, gamma)
    with np.errstate(all="ignore"):  # the limits γ = 0 and γ = ∞ are set below; δ may overflow
        value = np.where(
            1 + gamma > eta,
            2 * eta / ((1 - eta) + gamma + root),
            ((eta - 1) - gamma + root) / (2 * gamma),
        )
    value = np.where((gamma == 0) & (eta >= 1), np.inf, value)
    return np.where(np.isinf(gamma), 0.0, value)


def h(aspect: ArrayLike, reg: ArrayLike) -> FloatArray:
    """Return h = 1 − η/(1 + γ(1 + δ))²; its inverse is the variance inflation due to dimension.

    This is the form of the paper's appendix. It is 1 in low dimension or under strong
    regularization, and 0 at the interpolation threshold η = 1, γ = 0.
    """
    eta, gamma = _checked(aspect, reg)
    with np.errstate(invalid="ignore"):  # the limit γ = ∞ is set below
        value = 2 * _root(eta, gamma) / (1 + eta + gamma + _root(eta, gamma))
    return np.where(np.isinf(gamma), 1.0, value)


def bulk_gain(aspect: ArrayLike, reg: ArrayLike) -> FloatArray:
    """1/(1 + γ(1 + δ)), the factor by which noise directions are shrunk.

    It is Q̄/(1 + δ) on every direction except that of the means. It falls from 1 (γ = 0, η ≤ 1) to
    0 (γ = ∞). γ enters the theory through this number alone.
    """
    eta, gamma = _checked(aspect, reg)
    return 2 / (1 + eta + gamma + _root(eta, gamma))


def _root(eta: FloatArray, gamma: FloatArray) -> FloatArray:
    # η − 1 first: it is exact near the interpolation threshold, where its digits matter.
    root: FloatArray = np.hypot((eta - 1) + gamma, 2 * np.sqrt(gamma))
    return root


def _checked(aspect: ArrayLike, reg: ArrayLike) -> tuple[FloatArray, FloatArray]:
    eta = as_floats(aspect, "aspect")
    gamma = as_floats(reg, "reg")
    for value in eta[~(np.isfinite(eta) & (eta > 0))].ravel():
        raise ValueError(f"aspect = {value:g} must be positive and finite: it is p/n.")
    for value in eta[eta > _LARGEST].ravel():
        raise ValueError(f"aspect = {value:g} overflows float64 when squared: use a smaller p/n.")
    for value in gamma[~(gamma >= 0)].ravel():
        raise ValueError(
            f"reg = {value:g} must be zero or positive: it is the regularization strength γ."
        )
    for value in gamma[np.isfinite(gamma) & (gamma > _LARGEST)].ravel():
        raise ValueError(f"reg = {value:g} overflows float64 when squared: use inf, the limit.")
    return eta, gamma
