r"""Estimated noise rates under known class priors: πᵀT must equal the observed proportions.

For two classes this is one equation for two rates. It matters most: the threshold of a classifier
depends on the rates mainly through the class proportions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import lsq_linear

from unflip._utils.typing import FloatArray
from unflip.estimation.anchors import (
    LARGEST_RATE_SUM,
    RateEstimate,
    with_diagonal,
    with_diagonal_errors,
)
from unflip.labels.noise import NoiseModel

#: Misfit of priors that contradict the data, in standard errors; a choice.
LARGEST_MISFIT = 5.0


def constrain_by_priors(
    noise: NoiseModel,
    errors: FloatArray,
    priors: ArrayLike,
    observed: FloatArray,
    n_effective: float,
) -> tuple[NoiseModel, FloatArray]:
    """Return estimated rates and their standard errors under known class priors.

    Parameters are those of `constrain_rates`.
    """
    known_priors = noise.with_priors(priors).known_priors
    rates = RateEstimate(noise.transition, errors)
    estimate = constrain_rates(rates, known_priors, observed, n_effective)
    return NoiseModel(_limited(estimate.transition), known_priors), estimate.errors


def constrain_rates(
    estimate: RateEstimate, priors: FloatArray, observed: FloatArray, n: float
) -> RateEstimate:
    """Combine estimated rates with the observed proportions by weighted least squares.

    Minimizes Σ(ε − ε₀)²/s² + Σ(πᵀT − P)²/(P/n) over rates ε in [0, 1]. Raises `ValueError` if the
    priors contradict the data.

    Parameters
    ----------
    estimate : RateEstimate
        Rates ε₀ and their standard errors s.
    priors, observed : ndarray of shape (k,)
        Proportions π of the true classes, and P of the observed ones.
    n : float
        Effective number of rows behind P.
    """
    off_diagonal = ~np.eye(len(priors), dtype=bool)
    rates = estimate.transition[off_diagonal]
    errors = np.maximum(estimate.errors[off_diagonal], 1e-6)  # finite weights of known rates
    counting_errors = np.sqrt(np.maximum(observed, 1 / n) / n)
    gains = _proportion_gains(priors)[:, off_diagonal.ravel()] / counting_errors[:, None]
    design = np.vstack([np.diag(1 / errors), gains])
    aim = np.concatenate([rates / errors, (observed - priors) / counting_errors])
    solution = lsq_linear(design, aim, bounds=(0, 1))
    if float(np.linalg.norm(solution.fun)) > LARGEST_MISFIT:
        raise ValueError(
            f"priors {priors.round(3).tolist()} contradict the observed class proportions "
            f"{observed.round(3).tolist()}: they require much higher noise rates than "
            "high-confidence rows show. Check the priors and the order of their classes (sorted)."
        )
    covariance = np.linalg.inv(design.T @ design)
    transition = np.zeros_like(estimate.transition)
    transition[off_diagonal] = solution.x
    new_errors = np.zeros_like(estimate.errors)
    new_errors[off_diagonal] = np.sqrt(np.diag(covariance))
    return RateEstimate(with_diagonal(transition), with_diagonal_errors(new_errors))


def _limited(transition: FloatArray) -> FloatArray:
    """Return the transition with ε₊ + ε₋ limited, as `NoiseModel` requires for two classes."""
    if len(transition) > 2:
        return transition
    total = float(transition[0, 1] + transition[1, 0])
    factor = LARGEST_RATE_SUM / max(total, LARGEST_RATE_SUM)
    return np.asarray(np.eye(2) + factor * (transition - np.eye(2)))


def _proportion_gains(priors: FloatArray) -> FloatArray:
    """Return the derivative of each observed proportion by each off-diagonal rate, k×k²."""
    k = len(priors)
    gains = np.zeros((k, k, k))
    for a in range(k):
        gains[np.arange(k), a, np.arange(k)] += priors[a]  # class b gains what a loses
        gains[a, a, :] -= priors[a]
    return gains.reshape(k, k * k)
