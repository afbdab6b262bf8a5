"""Errors for fits that have no finite minimum, raised before the minimisation starts."""

from __future__ import annotations

import numpy as np

from unflip._utils.typing import FloatArray
from unflip.losses import Loss, SoftmaxLoss, TargetLoss

# Slopes and curvatures above −1e-12 (relative, for curvatures) count as not negative: rounding.
_ROUNDING = 1e-12


def check_minimum_exists(
    loss: Loss | type[SoftmaxLoss],
    targets: FloatArray,
    mean_target: FloatArray,
    *,
    fit_intercept: bool,
    smallest_reg: float,
) -> None:
    """Raise ValueError if the loss is not convex or has no finite minimum.

    ℓ_t is affine in t, so that a property of the smallest and the largest target holds for all.

    Parameters
    ----------
    loss : Loss or SoftmaxLoss
        As in `unflip.ridge.solvers.ConvexFits`.
    targets : ndarray of shape (m, r)
        Targets of the rows.
    mean_target : ndarray of shape (r,)
        Their weighted mean.
    fit_intercept : bool
        Whether there is an intercept.
    smallest_reg : float
        Smallest regularization strength.
    """
    if isinstance(loss, Loss):
        extremes = np.concatenate([targets.min(axis=0), targets.max(axis=0)])
        if not _is_convex(loss, extremes):
            raise ValueError(
                f"The {loss.name} loss of targets from {extremes.min():g} to {extremes.max():g} is "
                "not convex: use targets within [-1, 1], or another loss."
            )
        is_bounded = _is_bounded(loss, extremes, strictly=False)
        has_finite_intercept = _is_bounded(loss, mean_target, strictly=True)
        name = loss.name
    else:
        class_targets = SoftmaxLoss(targets).class_targets
        mean_class_targets = SoftmaxLoss(mean_target[None, :]).class_targets
        is_bounded = bool(class_targets.min() >= -_ROUNDING)
        has_finite_intercept = bool(mean_class_targets.min() > _ROUNDING)
        name = "softmax"
    if fit_intercept and not has_finite_intercept:
        advice = "use targets='optimized' or fit_intercept=False"
        if is_bounded:
            advice = "a class has almost no weight, so drop it, or use fit_intercept=False"
        raise ValueError(
            f"The mean target is out of reach of the {name} loss, so no intercept is finite: "
            f"{advice}."
        )
    if smallest_reg == 0 and not is_bounded:
        raise ValueError(
            f"reg=0 leaves the {name} loss of these targets unbounded below, because some are not "
            "between those of the classes: use a positive reg, or targets='optimized'."
        )


def _is_convex(loss: Loss, targets: FloatArray) -> bool:
    """Whether ℓ_t has no negative curvature on a grid that is denser near 0."""
    largest = _large_score(targets)
    scores = np.sinh(np.linspace(-np.arcsinh(largest), np.arcsinh(largest), 401))
    curvature = TargetLoss(loss, targets[:, None]).curvature(scores)
    return bool((curvature >= -_ROUNDING * np.abs(curvature).max()).all())


def _is_bounded(loss: Loss, targets: FloatArray, *, strictly: bool) -> bool:
    """Whether ℓ_t has a lower bound (strictly: a minimum), by its slopes at large scores."""
    ends = np.array([-1.0, 1.0]) * _large_score(targets)
    outward_slopes = TargetLoss(loss, targets[:, None]).gradient(ends) * np.sign(ends)
    if strictly:
        return bool((outward_slopes > _ROUNDING).all())
    return bool((outward_slopes >= -_ROUNDING).all())


def _large_score(targets: FloatArray) -> float:
    """Return a score far beyond all targets, where losses have their limiting slope."""
    return 100.0 * (1 + float(np.abs(targets).max()))
