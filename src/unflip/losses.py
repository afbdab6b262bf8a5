r"""Convex losses of a score and a label, and the corrected loss for noisy labels.

The paper's perturbed loss with parameters (ρ₊, ρ₋) is

.. math:: \tilde\ell(s, \tilde y) =
    \frac{(1 - \rho_{-\tilde y})\,\ell(s, \tilde y) - \rho_{\tilde y}\,\ell(s, -\tilde y)}
    {1 - \rho_+ - \rho_-}.

Its two weights sum to 1, so it depends on one number per observed class. That number is the target
which `unflip.targets` gives for the squared loss:

.. math:: \ell_t(s) = \tfrac{1 + t}{2}\,\ell(s, +1) + \tfrac{1 - t}{2}\,\ell(s, -1),
    \qquad t = t(\tilde y).

For the squared loss this is (s − t)² + const; for the logistic loss, softplus(s) − τs with τ = (1 +
t)/2.

With more than two classes, the loss is the softmax loss, in scores of k − 1 orthonormal contrasts C
of the classes:

.. math:: \ell_t(s) = \log \sum_a e^{(C s)_a} - t^\top s, \qquad t = C^\top \tau,

where τ are the k targets of the classes, which sum to one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import helmert
from scipy.special import expit, logsumexp, softmax

from unflip._utils.typing import FloatArray
from unflip._utils.validation import shown

#: A function of scores s and labels y = ±1 that broadcast against each other.
LossFunction: TypeAlias = Callable[[FloatArray, ArrayLike], FloatArray]

# Slopes, class targets and curvatures (relative) above −1e-12 count as not negative: rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Loss:
    """A convex loss ℓ(s, y) of a score s and a label y = ±1, with its first two derivatives in s.

    Parameters
    ----------
    name : str
        Name in error messages.
    value, gradient, curvature : callable
        ℓ, ∂ℓ/∂s and ∂²ℓ/∂s² as functions of (s, y), vectorised. The theory needs a continuous
        curvature.

    Examples
    --------
    >>> LOGISTIC.value(np.array([-1.0, 0.0, 1.0]), 1).round(3)
    array([1.313, 0.693, 0.313])
    """

    name: str
    value: LossFunction
    gradient: LossFunction
    curvature: LossFunction

    def __post_init__(self) -> None:
        for name in ("value", "gradient", "curvature"):
            if not callable(getattr(self, name)):
                raise ValueError(
                    f"{name} = {shown(getattr(self, name))} must be a function of scores and "
                    "labels."
                )

    def of_targets(self, target: FloatArray) -> SeparateLoss:
        """Return the loss of rows with these targets, (m, r): of each column separately."""
        return SeparateLoss(self, target)


@dataclass(frozen=True)
class TargetLoss:
    """ℓ_t(s) = (1 + t)/2 · ℓ(s, +1) + (1 − t)/2 · ℓ(s, −1), the perturbed loss with target t.

    Parameters
    ----------
    loss : Loss
        The loss ℓ of clean labels.
    target : array-like
        Target t of the observed class; broadcasts against the scores. If t is not in [−1, 1], one
        of the weights is negative, and ℓ_t may not be convex. It is convex for the squared and the
        logistic loss, because ℓ(·, +1) and ℓ(·, −1) have the same second derivative.

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
        scores = np.asarray(s, dtype=float)
        target = np.asarray(self.target, dtype=float)
        return np.asarray(
            (1 + target) / 2 * function(scores, 1.0) + (1 - target) / 2 * function(scores, -1.0)
        )


class ScoreLoss(Protocol):
    """A convex loss of r scores in each of m rows, which holds the targets of the rows."""

    @property
    def name(self) -> str:
        """Name in error messages."""

    @property
    def is_convex(self) -> bool:
        """Whether the loss is convex for every target."""

    def is_bounded(self, *, strictly: bool) -> bool:
        """Whether the loss of each row has a lower bound (strictly: a minimum)."""

    @property
    def n_scores(self) -> int:
        """Number of scores r of each row."""

    def value(self, s: FloatArray) -> FloatArray:
        """Loss of each row, (m,)."""

    def gradient(self, s: FloatArray) -> FloatArray:
        """First derivatives in the scores, (m, r)."""

    def curvature(self, s: FloatArray) -> FloatArray:
        """Second derivatives in the scores, (m, r, r)."""

    def response(self, s: FloatArray) -> FloatArray:
        """Minus the derivatives of the gradient in the targets, (m, r, r)."""


@dataclass(frozen=True)
class SeparateLoss:
    """Σⱼ ℓ_t(sⱼ) with t = tᵢⱼ: a loss of one score for each column of targets.

    Parameters
    ----------
    loss : Loss
        The loss ℓ of clean labels.
    target : ndarray of shape (m, r)
        Targets of the rows.

    Examples
    --------
    >>> SeparateLoss(SQUARED, np.array([[0.5]])).gradient(np.array([[2.0]]))  # 2(s − t)
    array([[3.]])
    """

    loss: Loss
    target: FloatArray

    @property
    def name(self) -> str:
        """Name in error messages."""
        return self.loss.name

    @property
    def is_convex(self) -> bool:
        """Whether ℓ_t has no negative curvature on a grid that is denser near 0."""
        largest = np.arcsinh(self._large_score)
        scores = np.sinh(np.linspace(-largest, largest, 401))
        curvature = self._of_extremes.curvature(scores)
        return bool((curvature >= -_ROUNDING * np.abs(curvature).max()).all())

    def is_bounded(self, *, strictly: bool) -> bool:
        """Whether ℓ_t has a lower bound (strictly: a minimum), by its slopes at large scores."""
        ends = np.array([-1.0, 1.0]) * self._large_score
        outward_slopes = self._of_extremes.gradient(ends) * np.sign(ends)
        return _is_positive(outward_slopes, strictly=strictly)

    @property
    def n_scores(self) -> int:
        """Number of columns of targets."""
        return int(self.target.shape[1])

    def value(self, s: FloatArray) -> FloatArray:
        """Loss of each row."""
        return np.asarray(self._of_target.value(s).sum(axis=1))

    def gradient(self, s: FloatArray) -> FloatArray:
        """First derivatives in the scores."""
        return self._of_target.gradient(s)

    def curvature(self, s: FloatArray) -> FloatArray:
        """Second derivatives: diagonal matrices."""
        return _diagonal_matrices(self._of_target.curvature(s))

    def response(self, s: FloatArray) -> FloatArray:
        """(ℓ′(s, −1) − ℓ′(s, +1))/2, in diagonal matrices."""
        return _diagonal_matrices((self.loss.gradient(s, -1.0) - self.loss.gradient(s, 1.0)) / 2)

    @property
    def _of_target(self) -> TargetLoss:
        return TargetLoss(self.loss, self.target)

    @property
    def _of_extremes(self) -> TargetLoss:
        """ℓ_t of the smallest and the largest target; it is affine in t, so they stand for all."""
        extremes = np.concatenate([self.target.min(axis=0), self.target.max(axis=0)])
        return TargetLoss(self.loss, extremes[:, None])

    @property
    def _large_score(self) -> float:
        """A score far beyond all targets, where losses have their limiting slope."""
        return 100.0 * (1 + float(np.abs(self.target).max()))


@dataclass(frozen=True)
class SoftmaxLoss:
    """log Σ exp(Cs) − tᵀs, the softmax loss in k − 1 orthonormal (Helmert) contrasts C of k scores.

    The coefficients of the contrasts have the same norm as the coefficients of the k classes,
    which sum to zero.

    Parameters
    ----------
    target : ndarray of shape (m, k − 1)
        Cᵀτ for each row, where τ are the targets of the k classes. They sum to one, so their
        contrasts determine them.

    Examples
    --------
    >>> loss = SoftmaxLoss(np.array([[0.0, 1.0, 0.0]]) @ helmert(3).T)
    >>> loss.value(np.zeros((1, 2))).round(4)  # log 3
    array([1.0986])
    """

    target: FloatArray

    name: ClassVar[str] = "softmax"
    is_convex: ClassVar[bool] = True

    @classmethod
    def of_targets(cls, target: FloatArray) -> Self:
        """Return the loss of rows with these targets."""
        return cls(target)

    def is_bounded(self, *, strictly: bool) -> bool:
        """Whether no class has a negative target (strictly: all have a positive one)."""
        return _is_positive(self.class_targets, strictly=strictly)

    @property
    def n_scores(self) -> int:
        """Number of contrasts k − 1."""
        return int(self.target.shape[1])

    def value(self, s: FloatArray) -> FloatArray:
        """Loss of each row."""
        return np.asarray(logsumexp(s @ self._contrasts, axis=1) - np.sum(self.target * s, axis=1))

    def gradient(self, s: FloatArray) -> FloatArray:
        """First derivatives: contrasts of the probabilities minus the targets."""
        return np.asarray(self._probabilities(s) @ self._contrasts.T - self.target)

    def curvature(self, s: FloatArray) -> FloatArray:
        """Second derivatives: contrasts of the covariance of the class indicators."""
        probabilities = self._probabilities(s)
        # Centred first: a difference of second moments could be negative by rounding.
        means = probabilities @ self._contrasts.T
        centred = self._contrasts.T[None, :, :] - means[:, None, :]
        weighted = probabilities[:, :, None] * centred
        return np.asarray(np.matmul(np.swapaxes(centred, 1, 2), weighted))

    def response(self, s: FloatArray) -> FloatArray:
        """Identity matrices."""
        return np.broadcast_to(np.eye(self.n_scores), (len(s), self.n_scores, self.n_scores))

    @property
    def class_targets(self) -> FloatArray:
        """Targets τ of the classes, (m, k)."""
        return np.asarray(1 / (self.n_scores + 1) + self.target @ self._contrasts)

    @property
    def _contrasts(self) -> FloatArray:
        return np.asarray(helmert(self.n_scores + 1))

    def _probabilities(self, s: FloatArray) -> FloatArray:
        return np.asarray(softmax(s @ self._contrasts, axis=1))


def _is_positive(values: FloatArray, *, strictly: bool) -> bool:
    """Whether no value is negative (strictly: all are positive), up to rounding."""
    return bool((values > _ROUNDING if strictly else values >= -_ROUNDING).all())


def _diagonal_matrices(values: FloatArray) -> FloatArray:
    return np.asarray(values[:, :, None] * np.eye(values.shape[1]))


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
    """Return the loss with a name, or the loss itself.

    Examples
    --------
    >>> resolve("logistic") is LOGISTIC
    True
    """
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str) or loss not in _NAMED:
        raise ValueError(
            f"loss={shown(loss)} is not a valid value: use {', '.join(map(repr, _NAMED))} or an "
            "unflip.losses.Loss."
        )
    return _NAMED[loss]
