"""Optimal and worst choices of ρ and γ according to the theory: ρ*, ρ̄ and γ*."""

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

# The search covers γ from 10⁻⁸ to 10⁸, times the variance of the features. A choice: at the ends,
# s/(s + γ) is within 10⁻⁸ of its limits 1 and 0 for eigenvalues s of that variance.
_DECADES = 8.0


def optimal_rho(noise: NoiseModel, rho_neg: ArrayLike = 0.0) -> FloatArray:
    """Return ρ₊*(ρ₋), the paper's boxed optimum: the most accurate ρ₊ at a fixed ρ₋.

    ρ₊* − ρ₋ = [π₂²ε₊(1 − ε₊) − π₁²ε₋(1 − ε₋)] / [π₁π₂(1 − ε₊ − ε₋)]. Under strong noise it exceeds
    1 − ρ₋. There the loss as printed inverts the classifier; `unflip.targets.from_rho` corrects
    the sign.

    Parameters
    ----------
    noise : NoiseModel
        Noise rates and priors of two classes.
    rho_neg : array-like
        ρ₋.

    Examples
    --------
    >>> noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
    >>> print(optimal_rho(noise).round(2))
    1.57
    """
    check_binary_noise(noise, "optimal_rho")
    pi_neg, pi_pos = noise.known_priors
    eps_pos, eps_neg = noise.eps_pos, noise.eps_neg
    excess = pi_pos**2 * eps_pos * (1 - eps_pos) - pi_neg**2 * eps_neg * (1 - eps_neg)
    return np.asarray(
        as_floats(rho_neg, "rho_neg") + excess / (pi_neg * pi_pos * (1 - eps_pos - eps_neg))
    )


def worst_rho(noise: NoiseModel, rho_neg: ArrayLike = 0.0) -> FloatArray:
    """Return ρ̄₊(ρ₋), where E[t·y] = 0 and the classifier without intercept guesses at random.

    ρ̄₊ − ρ₋ = (1 − 2π₁ε₋ − 2π₂ε₊)/(2π₁ − 1). Raises ValueError for balanced classes, where it does
    not exist.

    Examples
    --------
    >>> noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
    >>> print(worst_rho(noise).round(2))
    -0.65
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
    """Return γ*, the regularization strength with the best predicted accuracy or risk.

    In the isotropic mixture the accuracy grows with γ for all targets with E[t·y] > 0, and for any
    targets with an intercept (proof in docs/theory/isotropic.md). So γ* = ∞ for ``"accuracy"``:
    without correlated features, the difference of the class means is the best direction. For
    targets with E[t·y] < 0, γ* = 0. With general covariances, and for the risk, which also depends
    on the scale of the scores, the optimum is usually finite.

    Parameters
    ----------
    mixture : Mixture or GeneralMixture
        A Mixture may hold arrays; the result has their broadcast shape.
    targets : {"naive", "unbiased", "optimized"} or (t_neg, t_pos)
        Regression targets of the two observed classes.
    objective : {"accuracy", "risk"}
        Maximise the accuracy with the best threshold, or minimise E[(score − y)²].
    loss, fit_intercept
        As in `predict`; general covariances support the squared loss only.

    Returns
    -------
    ndarray
        γ*. In the isotropic mixture with the squared loss it may be 0 or ∞. Otherwise it is
        limited to 1e-8 to 1e8 times the variance of the features (1e-3 to 1e3 for other losses).

    Examples
    --------
    >>> noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
    >>> mixture = Mixture(mean_norm=2.0, aspect=1.0, noise=noise)
    >>> print(optimal_reg(mixture), optimal_reg(mixture, objective="risk").round(2))
    inf 0.86
    """
    check_kind(mixture, (Mixture, GeneralMixture), "mixture", "give one of these")
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
    mixtures = [
        replace(mixture, mean_norm=norm, aspect=aspect)
        for norm, aspect in zip(norms, aspects, strict=True)
    ]
    regs = [
        _isotropic_reg(one, values, objective, resolve(loss), fit_intercept) for one in mixtures
    ]
    return np.reshape(regs, shape)


def optimal_multiclass_reg(
    *,
    means: ArrayLike,
    n: int,
    noise: NoiseModel,
    targets: str | ArrayLike = "optimized",
    readout: Literal["plain", "best"] = "best",
    fit_intercept: bool = False,
) -> float:
    """Return γ* of k classes, for the largest score or for the best linear rule on the scores.

    Parameters
    ----------
    means, n, noise, targets, fit_intercept
        As in `predict_multiclass`.
    readout : {"plain", "best"}
        "plain" maximises the accuracy of the largest score, "best" that of Fisher's discriminants,
        which is the same for every invertible table of targets.

    Examples
    --------
    >>> noise = NoiseModel([[0.7, 0.3, 0.0], [0.0, 0.6, 0.4], [0.5, 0.0, 0.5]], [0.3, 0.3, 0.4])
    >>> means = np.outer([-2.0, 0.0, 2.0], np.eye(20)[0])
    >>> options = {"targets": "unbiased", "readout": "plain", "fit_intercept": True}
    >>> round(optimal_multiclass_reg(means=means, n=100, noise=noise, **options), 1)
    4.9
    """
    check_choice(readout, ("plain", "best"), "readout")

    def cost(reg: float) -> float:
        prediction = predict_multiclass(
            means=means, n=n, noise=noise, targets=targets, reg=reg, fit_intercept=fit_intercept
        )
        return -(prediction.accuracy if readout == "plain" else prediction.readout_accuracy)

    return search_reg(cost, decades=5.0)


def search_reg(
    cost: Callable[[float], float], scale: float = 1.0, decades: float = _DECADES
) -> float:
    """Return the γ of least cost, by a grid around `scale` and a local refinement.

    Grid points are half a decade apart. The first or last of them is returned as it is.
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
        # The accuracy at the midpoint breaks ties where a constant rule is best at every γ.
        return -float(pair.best_accuracy) - 1e-6 * float(pair.accuracy)

    typical = mixture.class_moments(fit_intercept=fit_intercept).variances().mean()
    return search_reg(cost, float(typical) or 1.0)


def _isotropic_reg(
    mixture: Mixture, values: FloatArray, objective: Objective, loss: Loss, fit_intercept: bool
) -> float:
    def cost(reg: float) -> float:
        law = predict(mixture, targets=values, reg=reg, loss=loss, fit_intercept=fit_intercept)
        return -float(law.separation) if objective == "accuracy" else float(law.risk)

    if loss is not SQUARED:
        return search_reg(cost, decades=3.0)  # tests find the fixed point from γ = 10⁻³ to 10³
    # The closed form has limits at both ends: a result at the edge of the grid is 0 or ∞.
    reg = search_reg(cost)
    if reg <= 10**-_DECADES:
        return 0.0
    if reg >= 10**_DECADES:
        return np.inf
    return reg
