"""The best and the worst choices according to the theory: ρ*, ρ̄ and γ*."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from unflip import targets as target_values
from unflip._utils.typing import FloatArray
from unflip._utils.validation import as_flag, as_floats, check_choice, check_kind
from unflip.labels.noise import NoiseModel
from unflip.losses import SQUARED, Loss, resolve
from unflip.theory.covariance import GeneralMixture, predict_mixture
from unflip.theory.isotropic import target_moments
from unflip.theory.model import Mixture, check_binary_noise
from unflip.theory.multiclass import predict_multiclass
from unflip.theory.prediction import predict

Objective: TypeAlias = Literal["accuracy", "risk"]

_DECADES = 8.0
_MULTICLASS_DECADES = 5.0
_TIE_BREAK = 1e-6
_CONVEX_DECADES = 3.0  # where the fixed point of a convex loss is known to converge


def optimal_rho(noise: NoiseModel, rho_neg: ArrayLike = 0.0) -> FloatArray:
    """ρ₊*(ρ₋), the paper's boxed optimum: the most accurate ρ₊ for any given ρ₋.

    ρ₊* − ρ₋ = [π₂²ε₊(1 − ε₊) − π₁²ε₋(1 − ε₋)] / [π₁π₂(1 − ε₊ − ε₋)]. It exceeds 1 − ρ₋ in strong
    noise, where the loss as printed turns the classifier round; `unflip.targets.from_rho` keeps it
    upright.

    Parameters
    ----------
    noise : NoiseModel
        Flip rates and priors of two classes.
    rho_neg : array-like
        ρ₋.
    """
    check_binary_noise(noise, "optimal_rho")
    pi_neg, pi_pos = noise.known_priors
    eps_pos, eps_neg = noise.eps_pos, noise.eps_neg
    excess = pi_pos**2 * eps_pos * (1 - eps_pos) - pi_neg**2 * eps_neg * (1 - eps_neg)
    return np.asarray(
        as_floats(rho_neg, "rho_neg") + excess / (pi_neg * pi_pos * (1 - eps_pos - eps_neg))
    )


def worst_rho(noise: NoiseModel, rho_neg: ArrayLike = 0.0) -> FloatArray:
    """ρ̄₊(ρ₋), where E[t·y] = 0 and the classifier without intercept is a coin toss.

    ρ̄₊ − ρ₋ = (1 − 2π₁ε₋ − 2π₂ε₊)/(2π₁ − 1). It does not exist for balanced classes.
    """
    check_binary_noise(noise, "worst_rho")
    pi_neg, pi_pos = noise.known_priors
    if pi_neg == pi_pos:
        raise ValueError(
            "worst_rho does not exist for balanced classes (pi_neg = 0.5): no target is "
            "uninformative."
        )
    alignment = 1 - 2 * pi_neg * noise.eps_neg - 2 * pi_pos * noise.eps_pos
    return np.asarray(as_floats(rho_neg, "rho_neg") + alignment / (pi_neg - pi_pos))


def optimal_reg(
    mixture: Mixture | GeneralMixture,
    *,
    targets: str | ArrayLike = "optimized",
    objective: Objective = "accuracy",
    loss: str | Loss = "squared",
    fit_intercept: bool = False,
) -> FloatArray:
    """γ*, the ridge penalty with the best predicted accuracy or risk.

    In the isotropic mixture the accuracy of every target that leans the right way (E[t·y] > 0, or
    any target with an intercept) grows with γ (proof in docs/theory/isotropic.md), so γ* = ∞ for
    ``"accuracy"``: the difference of the class means is the best direction where the noise has
    none. Targets that lean the wrong way do least harm at γ* = 0. With general covariances, and for
    the risk, which also judges the scale of the scores, the optimum is finite as a rule.

    Parameters
    ----------
    mixture : Mixture or GeneralMixture
        A Mixture may hold arrays; the answer has their broadcast shape.
    targets : {"naive", "unbiased", "optimized"} or (t_neg, t_pos)
        What the observed classes are regressed on.
    objective : {"accuracy", "risk"}
        What to optimise: accuracy with the best threshold (largest) or E[(score − y)²] (smallest).
    loss, fit_intercept
        As in `predict`; general covariances have the squared loss only.

    Returns
    -------
    ndarray
        γ*. In the isotropic mixture with the squared loss it may be 0 or ∞. Otherwise it lies
        between 1e-8 and 1e8 times the variance of the features (1e-3 and 1e3 for other losses), and
        is that bound where more would be better still.
    """
    check_kind(mixture, (Mixture, GeneralMixture), "mixture", "give one of the two")
    check_choice(objective, ("accuracy", "risk"), "objective")
    as_flag(fit_intercept, "fit_intercept")
    values = target_values.resolve(targets, mixture.noise)
    squared = resolve(loss) is SQUARED
    if isinstance(mixture, GeneralMixture):
        if not squared:
            raise ValueError(
                f"loss={loss!r} is not available for a GeneralMixture: use loss='squared'."
            )
        return np.asarray(_general_reg(mixture, values, objective, fit_intercept))
    shape = np.broadcast_shapes(np.shape(mixture.mean_norm), np.shape(mixture.aspect))
    if squared and objective == "accuracy":
        alignment = target_moments(values, mixture.noise, fit_intercept=fit_intercept).alignment
        return np.full(shape, np.inf if alignment >= 0 else 0.0)
    norms, aspects = (
        np.broadcast_to(value, shape).ravel() for value in (mixture.mean_norm, mixture.aspect)
    )
    found = [
        _isotropic_reg(
            replace(mixture, mean_norm=norm, aspect=aspect),
            values,
            objective,
            resolve(loss),
            fit_intercept,
        )
        for norm, aspect in zip(norms, aspects, strict=True)
    ]
    return np.reshape(found, shape)


def optimal_multiclass_reg(
    *,
    means: ArrayLike,
    n: int,
    noise: NoiseModel,
    targets: str | ArrayLike = "optimized",
    readout: Literal["plain", "best"] = "best",
    fit_intercept: bool = False,
) -> float:
    """γ* of k classes, for the largest score or for the best linear rule on the scores.

    Parameters
    ----------
    means, n, noise, targets, fit_intercept
        As in `predict_multiclass`.
    readout : {"plain", "best"}
        "plain" judges the accuracy of the largest score, "best" that of Fisher's discriminants,
        which is the same for every invertible table of targets.
    """
    check_choice(readout, ("plain", "best"), "readout")

    def cost(reg: float) -> float:
        found = predict_multiclass(
            means=means, n=n, noise=noise, targets=targets, reg=reg, fit_intercept=fit_intercept
        )
        return -(found.accuracy if readout == "plain" else found.readout_accuracy)

    return search_reg(cost, decades=_MULTICLASS_DECADES)


def search_reg(cost: Callable[[float], float], scale: float = 1.0, decades: float = 8.0) -> float:
    """Return the penalty of least cost: the best of a grid around `scale`, half a decade apart, then refined.

    Where the grid's first or last point is the best, that point.
    """
    log_regs = np.log10(scale) + np.linspace(-decades, decades, round(4 * decades) + 1)
    lowest = int(np.argmin([cost(10.0**log_reg) for log_reg in log_regs]))
    if lowest in (0, len(log_regs) - 1):
        return float(10.0 ** log_regs[lowest])
    bounds = (log_regs[lowest - 1], log_regs[lowest + 1])
    refined = minimize_scalar(
        lambda log_reg: cost(10.0**log_reg),
        bounds=bounds,
        method="bounded",
        options={"xatol": 1e-8},
    )
    return float(10.0**refined.x)


def _general_reg(
    mixture: GeneralMixture, values: FloatArray, objective: Objective, fit_intercept: bool
) -> float:
    def cost(reg: float) -> float:
        pair = predict_mixture(mixture, targets=values, reg=reg, fit_intercept=fit_intercept)
        if objective == "risk":
            return float(pair.risk)
        # Where a constant rule is best at every penalty, the midpoint's accuracy tells the
        # penalties apart.
        return -float(pair.best_accuracy) - _TIE_BREAK * float(pair.accuracy)

    typical = mixture.class_moments(fit_intercept=fit_intercept).variances().mean()
    return search_reg(cost, float(typical) or 1.0)


def _isotropic_reg(
    mixture: Mixture, values: FloatArray, objective: Objective, loss: Loss, fit_intercept: bool
) -> float:
    def cost(reg: float) -> float:
        found = predict(mixture, targets=values, reg=reg, loss=loss, fit_intercept=fit_intercept)
        return -float(found.separation) if objective == "accuracy" else float(found.risk)

    if loss is not SQUARED:
        return search_reg(cost, decades=_CONVEX_DECADES)
    # The closed form has limits at both ends, so the search need not stop at them.
    found = search_reg(cost, decades=_DECADES)
    return 0.0 if found <= 10**-_DECADES else np.inf if found >= 10**_DECADES else found
