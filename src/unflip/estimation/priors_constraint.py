r"""What the true class proportions add to uncertain rates: πᵀT must be the observed proportions.

For two classes this is one equation for two rates, and the one that matters most: the threshold of
a classifier depends on the rates mainly through the class proportions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import lsq_linear

from unflip._utils.typing import Array, FloatArray
from unflip.data.duplicates import DistinctRows
from unflip.estimation.anchors import RoughRates, with_diagonal, with_diagonal_errors
from unflip.labels.noise import NoiseModel

_LARGEST_MISFIT = 5.0  # standard errors
_SMALLEST_ERROR = 1e-6
_LARGEST_SUM = 0.999  # of ε₊ + ε₋


def given_proportions(
    rough: RoughRates, priors: FloatArray, observed: FloatArray, n: float
) -> RoughRates:
    """Move the rates, each as far as it is in doubt, to where they explain the observed proportions.

    Minimises Σ(ε − ε₀)²/s² + Σ(πᵀT − P)²/(P/n) over rates ε ≥ 0: two sources of evidence, the
    second that of counts.

    Parameters
    ----------
    rough : RoughRates
        Rates ε₀ and their standard errors s.
    priors, observed : ndarray of shape (k,)
        ClassProportions π of the true classes, and P of the observed ones.
    n : float
        Number of rows that P was counted in.
    """
    off_diagonal = ~np.eye(len(priors), dtype=bool)
    rates, errors = (
        rough.transition[off_diagonal],
        np.maximum(rough.errors[off_diagonal], _SMALLEST_ERROR),
    )
    counting = np.sqrt(np.maximum(observed, 1 / n) / n)
    flows = _flows(priors)[:, off_diagonal.ravel()] / counting[:, None]
    design = np.vstack([np.diag(1 / errors), flows])
    aim = np.concatenate([rates / errors, (observed - priors) / counting])
    solution = lsq_linear(design, aim, bounds=(0, 1))
    _check_misfit(solution.fun, priors, observed)
    covariance = np.linalg.inv(design.T @ design)
    transition, spread = np.zeros_like(rough.transition), np.zeros_like(rough.errors)
    transition[off_diagonal], spread[off_diagonal] = solution.x, np.sqrt(np.diag(covariance))
    return RoughRates(with_diagonal(transition), with_diagonal_errors(spread))


def narrowed(
    noise: NoiseModel, errors: FloatArray, priors: ArrayLike, rows: DistinctRows, codes: Array
) -> tuple[NoiseModel, FloatArray]:
    """Return uncertain rates and their standard errors once the true class proportions are known."""
    known = noise.with_priors(priors).known_priors
    found = given_proportions(
        RoughRates(noise.transition, errors), known, rows.shares(codes), rows.n_effective
    )
    return NoiseModel(informative(found.transition), known), found.errors


def informative(transition: FloatArray) -> FloatArray:
    """Return the transition with rates lowered, if need be, until the labels still tell two classes apart."""
    if len(transition) > 2:
        return transition
    total = float(transition[0, 1] + transition[1, 0])
    return np.asarray(
        np.eye(2) + min(1.0, _LARGEST_SUM / max(total, _LARGEST_SUM)) * (transition - np.eye(2))
    )


def _flows(priors: FloatArray) -> FloatArray:
    """Return by how much each entry of the transition, off the diagonal, raises each observed proportion, k×k²."""
    k = len(priors)
    gains = np.zeros((k, k, k))
    for a in range(k):
        gains[np.arange(k), a, np.arange(k)] += priors[a]  # class b gains what a loses
        gains[a, a, :] -= priors[a]
    return gains.reshape(k, k * k)


def _check_misfit(residuals: FloatArray, priors: FloatArray, observed: FloatArray) -> None:
    if float(np.linalg.norm(residuals)) > _LARGEST_MISFIT:
        raise ValueError(
            f"priors {priors.round(3).tolist()} contradict the observed class proportions "
            f"{observed.round(3).tolist()}: they would take far more flips than the labels of the "
            "surest rows show. Check the priors and the order of their classes (sorted)."
        )
