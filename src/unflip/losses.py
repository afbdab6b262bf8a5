r"""Convex losses of a score and a label, and the one loss that targets make of each.

The paper's perturbed loss with parameters (ρ₊, ρ₋) is

.. math:: \tilde\ell(s, \tilde y) =
    \frac{(1 - \rho_{-\tilde y})\,\ell(s, \tilde y) - \rho_{\tilde y}\,\ell(s, -\tilde y)}{1 - \rho_+ - \rho_-}.

Its two weights sum to 1, so that one number per observed class says it all, and that number is the target which
`unflip.targets` gives for the squared loss:

.. math:: \ell_t(s) = \tfrac{1 + t}{2}\,\ell(s, +1) + \tfrac{1 - t}{2}\,\ell(s, -1), \qquad t = t(\tilde y).

For the squared loss this is (s − t)² + const; for the logistic loss, softplus(s) − τs with τ = (1 + t)/2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from unflip._typing import FloatArray

#: A function of scores s and labels y = ±1 that broadcast against each other.
LossFunction: TypeAlias = Callable[[FloatArray, ArrayLike], FloatArray]


@dataclass(frozen=True)
class Loss:
    """A convex loss ℓ(s, y) of a score s and a label y = ±1, with its first two derivatives in s.

    Parameters
    ----------
    name : str
        What errors call it.
    value, gradient, curvature : callable
        ℓ, ∂ℓ/∂s and ∂²ℓ/∂s² as functions of (s, y), vectorised. The theory needs a continuous curvature.

    Examples
    --------
    >>> LOGISTIC.value(np.array([-1.0, 0.0, 1.0]), 1).round(3)
    array([1.313, 0.693, 0.313])
    """

    name: str
    value: LossFunction
    gradient: LossFunction
    curvature: LossFunction


@dataclass(frozen=True)
class TargetLoss:
    """ℓ_t(s) = (1 + t)/2 · ℓ(s, +1) + (1 − t)/2 · ℓ(s, −1), the perturbed loss of an observed class with target t.

    Parameters
    ----------
    loss : Loss
        The loss ℓ of clean labels.
    target : array-like
        t; broadcasts against the scores. Beyond ±1 one of the weights is negative, and ℓ_t is convex only if the
        curvatures of ℓ(·, +1) and ℓ(·, −1) allow it: those of the squared and the logistic loss are equal, so they do.

    Examples
    --------
    >>> float(TargetLoss(SQUARED, 0.5).gradient(2.0))  # 2(s − t)
    3.0
    """

    loss: Loss
    target: ArrayLike

    def value(self, s: ArrayLike) -> FloatArray:
        """ℓ_t(s)."""
        return self._combined(self.loss.value, s)

    def gradient(self, s: ArrayLike) -> FloatArray:
        """ℓ_t′(s)."""
        return self._combined(self.loss.gradient, s)

    def curvature(self, s: ArrayLike) -> FloatArray:
        """ℓ_t″(s)."""
        return self._combined(self.loss.curvature, s)

    def _combined(self, function: LossFunction, s: ArrayLike) -> FloatArray:
        scores, target = np.asarray(s, dtype=float), np.asarray(self.target, dtype=float)
        return np.asarray((1 + target) / 2 * function(scores, 1.0) + (1 - target) / 2 * function(scores, -1.0))


def _squared(s: FloatArray, y: ArrayLike) -> FloatArray:
    return np.asarray((s - np.asarray(y)) ** 2)


def _squared_gradient(s: FloatArray, y: ArrayLike) -> FloatArray:
    return np.asarray(2 * (s - np.asarray(y)))


def _squared_curvature(s: FloatArray, y: ArrayLike) -> FloatArray:
    return np.full(np.broadcast_shapes(np.shape(s), np.shape(y)), 2.0)


def _logistic(s: FloatArray, y: ArrayLike) -> FloatArray:
    return np.asarray(np.logaddexp(0, -np.asarray(y) * s))


def _logistic_gradient(s: FloatArray, y: ArrayLike) -> FloatArray:
    label = np.asarray(y)
    return np.asarray(-label * expit(-label * s))


def _logistic_curvature(s: FloatArray, y: ArrayLike) -> FloatArray:
    margin = np.asarray(y) * s
    return np.asarray(expit(margin) * expit(-margin))


#: (s − y)²
SQUARED = Loss("squared", _squared, _squared_gradient, _squared_curvature)
#: log(1 + exp(−ys))
LOGISTIC = Loss("logistic", _logistic, _logistic_gradient, _logistic_curvature)

_NAMED = {loss.name: loss for loss in (SQUARED, LOGISTIC)}


def resolve(loss: str | Loss) -> Loss:
    """Return the loss that a name stands for, or the given one."""
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str) or loss not in _NAMED:
        raise ValueError(f"loss={loss!r} is not known: use {', '.join(map(repr, _NAMED))} or an unflip.losses.Loss.")
    return _NAMED[loss]
