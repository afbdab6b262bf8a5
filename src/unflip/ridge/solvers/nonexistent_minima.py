"""Errors for fits that have no finite minimum, raised before the minimisation starts."""

from __future__ import annotations

from unflip._utils.typing import FloatArray
from unflip.losses import Loss, SoftmaxLoss


def check_minimum_exists(
    loss: Loss | type[SoftmaxLoss],
    targets: FloatArray,
    mean_target: FloatArray,
    *,
    fit_intercept: bool,
    smallest_reg: float,
) -> None:
    """Raise ValueError if the loss is not convex or has no finite minimum.

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
    of_rows = loss.of_targets(targets)
    if not of_rows.is_convex:
        raise ValueError(
            f"The {loss.name} loss of targets from {targets.min():g} to {targets.max():g} is not "
            "convex: use targets within [-1, 1], or another loss."
        )
    is_bounded = of_rows.is_bounded(strictly=False)
    has_finite_intercept = loss.of_targets(mean_target[None, :]).is_bounded(strictly=True)
    if fit_intercept and not has_finite_intercept:
        advice = "use targets='optimized' or fit_intercept=False"
        if is_bounded:
            advice = "a class has almost no weight, so drop it, or use fit_intercept=False"
        raise ValueError(
            f"The mean target is out of reach of the {loss.name} loss, so no intercept is finite: "
            f"{advice}."
        )
    if smallest_reg == 0 and not is_bounded:
        raise ValueError(
            f"reg=0 leaves the {loss.name} loss of these targets unbounded below, because some are "
            "not between those of the classes: use a positive reg, or targets='optimized'."
        )
