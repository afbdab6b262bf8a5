"""The best and the worst choices according to the theory: ρ*, ρ̄ and γ*."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import elementwise

from unflip import targets as target_values
from unflip._typing import FloatArray
from unflip.noise import NoiseModel
from unflip.theory.isotropic import predict, target_moments
from unflip.theory.model import Mixture

_LOG_REGS = np.linspace(-8, 8, 81)


def optimal_rho(noise: NoiseModel, rho_neg: ArrayLike = 0.0) -> FloatArray:
    """ρ₊*(ρ₋), the paper's boxed optimum (Eq. optimal_rho): the most accurate ρ₊ for any given ρ₋.

    ρ₊* − ρ₋ = [π₂²ε₊(1 − ε₊) − π₁²ε₋(1 − ε₋)] / [π₁π₂(1 − ε₊ − ε₋)]. It exceeds 1 − ρ₋ in strong noise, where the
    loss as printed turns the classifier round; `unflip.targets.from_rho` keeps it upright.

    Parameters
    ----------
    noise : NoiseModel
        Flip rates and priors of two classes.
    rho_neg : array-like
        ρ₋.
    """
    pi_neg, pi_pos = noise.known_priors
    eps_pos, eps_neg = noise.eps_pos, noise.eps_neg
    excess = pi_pos**2 * eps_pos * (1 - eps_pos) - pi_neg**2 * eps_neg * (1 - eps_neg)
    return np.asarray(np.asarray(rho_neg) + excess / (pi_neg * pi_pos * (1 - eps_pos - eps_neg)))


def worst_rho(noise: NoiseModel, rho_neg: ArrayLike = 0.0) -> FloatArray:
    """ρ̄₊(ρ₋), where E[t·y] = 0 and the classifier without intercept is a coin toss.

    ρ̄₊ − ρ₋ = (1 − 2π₁ε₋ − 2π₂ε₊)/(2π₁ − 1). It does not exist for balanced classes.
    """
    pi_neg, pi_pos = noise.known_priors
    if pi_neg == pi_pos:
        raise ValueError("worst_rho does not exist for balanced classes (pi_neg = 0.5): no target is uninformative.")
    alignment = 1 - 2 * pi_neg * noise.eps_neg - 2 * pi_pos * noise.eps_pos
    return np.asarray(np.asarray(rho_neg) + alignment / (pi_neg - pi_pos))


def optimal_reg(
    mixture: Mixture,
    *,
    targets: str | ArrayLike = "optimized",
    objective: Literal["accuracy", "risk"] = "accuracy",
    fit_intercept: bool = False,
) -> FloatArray:
    """γ*, the ridge penalty with the best predicted accuracy or risk.

    In the isotropic mixture the accuracy of every target that leans the right way (E[t·y] > 0, or any target with an
    intercept) grows with γ (proof in docs/theory/isotropic.md), so γ* = ∞ for ``"accuracy"``: the difference of the
    class means is the best direction where the noise has none. Targets that lean the wrong way do least harm at
    γ* = 0. The risk, which also judges the scale of the scores, has a finite optimum as a rule.

    Parameters
    ----------
    mixture : Mixture
        May hold arrays; the answer has their broadcast shape.
    targets : {"naive", "unbiased", "optimized"} or (t_neg, t_pos)
        What the observed classes are regressed on.
    objective : {"accuracy", "risk"}
        What to optimise: accuracy (largest) or E[(score − y)²] (smallest).
    fit_intercept : bool
        As in `predict`.

    Returns
    -------
    ndarray
        γ*; 0 or ∞ where the objective is still improving at 1e-8 or 1e8.
    """
    shape = np.broadcast_shapes(np.shape(mixture.mean_norm), np.shape(mixture.aspect))
    values = target_values.resolve(targets, mixture.noise)
    if objective == "accuracy":
        alignment = target_moments(values, mixture.noise, fit_intercept=fit_intercept).alignment
        return np.full(shape, np.inf if alignment >= 0 else 0.0)
    if objective != "risk":
        raise ValueError(f"objective={objective!r} is not known: use 'accuracy' or 'risk'.")

    flat = [np.broadcast_to(value, shape).ravel() for value in (mixture.mean_norm, mixture.aspect)]

    def risk(log_reg: FloatArray, mean_norm: FloatArray, aspect: FloatArray) -> FloatArray:
        part = replace(mixture, mean_norm=mean_norm, aspect=aspect)
        return predict(part, targets=values, reg=10.0**log_reg, fit_intercept=fit_intercept).risk

    lowest = risk(_LOG_REGS[:, None], *flat).argmin(axis=0)
    middle = np.clip(lowest, 1, len(_LOG_REGS) - 2)
    bracket = tuple(_LOG_REGS[middle + step] for step in (-1, 0, 1))
    refined = 10.0 ** elementwise.find_minimum(risk, bracket, args=tuple(flat)).x
    refined = np.where(lowest == 0, 0.0, np.where(lowest == len(_LOG_REGS) - 1, np.inf, refined))
    return refined.reshape(shape)
