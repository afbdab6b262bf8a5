"""Say why a fit of given losses, targets and penalties has no finite minimum, before it is looked for."""

from __future__ import annotations

import numpy as np

from unflip._utils.typing import FloatArray
from unflip.losses import Loss, SoftmaxLoss, TargetLoss

_FARTHEST_SCORE = 100.0  # times 1 + the largest target
_GRID = 401
_ROUNDING = 1e-12


def refuse_unbounded(
    loss: Loss | type[SoftmaxLoss],
    targets: FloatArray,
    mean_target: FloatArray,
    *,
    fit_intercept: bool,
    smallest_reg: float,
) -> None:
    """Raise ValueError where the minimum does not exist or need not be one.

    ℓ_t is affine in t, so that what holds for the smallest and the largest target holds for all.
    """
    if isinstance(loss, Loss):
        extremes = np.concatenate([targets.min(axis=0), targets.max(axis=0)])
        if not _is_convex(loss, extremes):
            raise ValueError(
                f"The {loss.name} loss of targets from {extremes.min():g} to {extremes.max():g} is "
                "not convex: use targets within [-1, 1], or another loss."
            )
        bounded, reachable = (
            _is_bounded(loss, extremes, strictly=False),
            _is_bounded(loss, mean_target, strictly=True),
        )
        name = loss.name
    else:
        shares, mean = (
            SoftmaxLoss(targets).class_targets,
            SoftmaxLoss(mean_target[None, :]).class_targets,
        )
        bounded, reachable = bool(shares.min() >= -_ROUNDING), bool(mean.min() > _ROUNDING)
        name = "softmax"
    if fit_intercept and not reachable:
        advice = (
            "a class has next to no weight, so drop it, or use fit_intercept=False"
            if bounded
            else "use targets='optimized' or fit_intercept=False"
        )
        raise ValueError(
            f"The mean target is out of reach of the {name} loss, so no intercept is finite: "
            f"{advice}."
        )
    if smallest_reg == 0 and not bounded:
        raise ValueError(
            f"reg=0 leaves the {name} loss of these targets unbounded below, as some are not "
            "between those of the classes: use a positive reg, or targets='optimized'."
        )


def _is_convex(loss: Loss, targets: FloatArray) -> bool:
    reach = _reach(targets)
    scores = np.sinh(np.linspace(-np.arcsinh(reach), np.arcsinh(reach), _GRID))
    curvature = TargetLoss(loss, targets[:, None]).curvature(scores)
    return bool((curvature >= -_ROUNDING * np.abs(curvature).max()).all())


def _is_bounded(loss: Loss, targets: FloatArray, *, strictly: bool) -> bool:
    """Whether ℓ_t has a lower bound (strictly: a minimum), judged by its slopes far out."""
    ends = np.array([-1.0, 1.0]) * _reach(targets)
    outward = TargetLoss(loss, targets[:, None]).gradient(ends) * np.sign(ends)
    return bool((outward > _ROUNDING).all() if strictly else (outward >= -_ROUNDING).all())


def _reach(targets: FloatArray) -> float:
    return _FARTHEST_SCORE * (1 + float(np.abs(targets).max()))
