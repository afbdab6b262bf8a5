"""Regression targets of the observed classes: one value each, or one row of values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.typing import FloatArray
from unflip._utils.validation import as_count, as_floats, as_number
from unflip.labels.noise import NoiseModel, check_noise


def naive(k: int = 2) -> FloatArray:
    """Return the observed labels as targets: (−1, +1) for two classes, one-hot rows for more.

    Examples
    --------
    >>> naive()
    array([-1.,  1.])
    """
    n_classes = as_count(k, "k", least=2)
    return np.array([-1.0, 1.0]) if n_classes == 2 else np.eye(n_classes)


def unbiased(noise: NoiseModel) -> FloatArray:
    """Return targets whose mean given the TRUE class is the clean label: E[t | y] = y.

    They solve ``transition @ t = naive``, the choice ρ± = ε± of Natarajan et al.

    Examples
    --------
    >>> unbiased(NoiseModel.binary(eps_pos=0.4, eps_neg=0.2)).round(2)
    array([-2.,  3.])
    """
    check_noise(noise)
    table: FloatArray = noise.inverse_transition @ naive(noise.n_classes)
    return table


def optimized(noise: NoiseModel) -> FloatArray:
    """Return the most accurate targets: t(ỹ) = E[y | ỹ], the posterior mean of the true label.

    For two classes their ρ₊ − ρ₋ is the paper's boxed optimum (Eq. optimal_rho); see docs/theory.

    Examples
    --------
    >>> optimized(NoiseModel.binary(eps_pos=0.4, eps_neg=0.2, pi_neg=0.5)).round(2)
    array([-0.33,  0.5 ])
    """
    check_noise(noise)
    table: FloatArray = noise.posterior @ naive(noise.n_classes)
    return table


def from_rho(rho_pos: float, rho_neg: float) -> FloatArray:
    """Return the targets of the Labels-Perturbed Classifier with parameters (ρ₊, ρ₋).

    t₊ = (1 − ρ₋ + ρ₊)|β| and t₋ = −(1 − ρ₊ + ρ₋)|β| with β = 1/(1 − ρ₊ − ρ₋). The paper prints β
    without the absolute value, which inverts the classifier if β < 0. Here t₊ > t₋ always.

    Parameters
    ----------
    rho_pos, rho_neg : float
        ρ₊ and ρ₋; their sum must not be 1.

    Examples
    --------
    >>> from_rho(0.5, 0.0)
    array([-1.,  3.])
    """
    of_pos = as_number(rho_pos, "rho_pos")
    of_neg = as_number(rho_neg, "rho_neg")
    remainder = 1 - of_pos - of_neg
    if not np.isfinite(remainder) or remainder == 0:
        raise ValueError(
            f"rho_pos + rho_neg = {of_pos:g} + {of_neg:g} must be finite and differ from 1, where "
            "the perturbed loss is undefined: move either one."
        )
    return np.array([of_pos - of_neg - 1, of_pos - of_neg + 1]) / abs(remainder)


def to_rho(targets: ArrayLike) -> tuple[float, float]:
    """Return (ρ₊, ρ₋) with ρ₊ + ρ₋ < 1 that have these targets; the inverse of `from_rho`.

    Examples
    --------
    >>> to_rho([-1.0, 3.0])
    (0.5, 0.0)
    """
    t_neg, t_pos = checked(targets)
    total = 1 - 2 / (t_pos - t_neg)
    difference = (t_pos + t_neg) / (t_pos - t_neg)
    return float((total + difference) / 2), float((total - difference) / 2)


def multi_lpc(alpha: ArrayLike, beta: ArrayLike) -> FloatArray:
    """Return the targets of the paper's Multi-LPC.

    Score j has target α_j if label j is observed, and β_j otherwise.

    Parameters
    ----------
    alpha, beta : array-like of shape (k,)
        (1, …, 1) and (0, …, 0) give the naive one-hot targets.

    Examples
    --------
    >>> multi_lpc([1.0, 2.0], [0.0, -1.0])
    array([[ 1., -1.],
           [ 0.,  2.]])
    """
    own = as_floats(alpha, "alpha")
    other = as_floats(beta, "beta")
    if own.ndim != 1 or own.shape != other.shape or len(own) < 2:
        raise ValueError(
            f"alpha and beta need one value each per class (k ≥ 2); their shapes are {own.shape} "
            f"and {other.shape}."
        )
    return np.where(np.eye(len(own), dtype=bool), own, other)


#: Named targets, each a function of the noise model.
NAMED: dict[str, Callable[[NoiseModel], FloatArray]] = {
    "naive": lambda noise: naive(noise.n_classes),
    "unbiased": unbiased,
    "optimized": optimized,
}

_TABLES: dict[str, Callable[[NoiseModel], FloatArray]] = {
    "naive": lambda noise: np.eye(noise.n_classes),
    "unbiased": lambda noise: noise.inverse_transition,
    "optimized": lambda noise: noise.posterior,
}


def resolve(targets: str | ArrayLike, noise: NoiseModel) -> FloatArray:
    """Return the binary targets of a name, or explicit values after validation.

    Examples
    --------
    >>> resolve("naive", NoiseModel.binary(eps_pos=0.4, eps_neg=0.2))
    array([-1.,  1.])
    """
    check_noise(noise)
    if isinstance(targets, str):
        if targets not in NAMED:
            raise ValueError(
                f"targets={targets!r} is not a valid value: use {_choices()} or the values (t_neg, "
                "t_pos)."
            )
        return NAMED[targets](noise)
    return checked(targets)


def resolve_table(targets: str | ArrayLike, noise: NoiseModel) -> FloatArray:
    """Return the k×k table of a name, or an explicit table after validation.

    Rows are observed classes, columns are scores. Two classes have a 2×2 table here.

    Examples
    --------
    >>> resolve_table("naive", NoiseModel.binary(eps_pos=0.4, eps_neg=0.2))
    array([[1., 0.],
           [0., 1.]])
    """
    check_noise(noise)
    if isinstance(targets, str):
        if targets not in _TABLES:
            raise ValueError(
                f"targets={targets!r} is not a valid value: use {_choices()} or a table."
            )
        return _TABLES[targets](noise)
    table = as_floats(targets, "targets")
    if table.ndim != 2 or len(table) != noise.n_classes or not table.shape[1]:
        raise ValueError(
            f"targets has shape {table.shape}: give a table with one row for each of the "
            f"{noise.n_classes} observed classes, or {_choices()}."
        )
    if not np.isfinite(table).all():
        raise ValueError("targets hold a value that is not finite: give finite numbers.")
    return table


def resolve_classes(targets: str | ArrayLike, noise: NoiseModel) -> FloatArray:
    """Return the targets of a classifier: (t_neg, t_pos) for two classes, a k×k table for more.

    Raises ValueError if they are the same for every observed class.

    Examples
    --------
    >>> resolve_classes("naive", NoiseModel.none(3))
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    check_noise(noise)
    k = noise.n_classes
    if k == 2:
        return resolve(targets, noise)
    table = resolve_table(targets, noise)
    if table.shape != (k, k):
        raise ValueError(
            f"targets has shape {table.shape}: {k} classes need {k} scores, so give a {k}×{k} "
            "table."
        )
    if np.ptp(table, axis=0).max() <= 1e-10 * np.abs(table).max():  # a difference by rounding
        if isinstance(targets, str):
            raise ValueError(
                f"targets={targets!r} are the same for every observed class, because observed and "
                "true classes are independent under this noise model: give another noise model."
            )
        raise ValueError(
            "targets has the same row for every observed class: give a table whose rows differ."
        )
    return table


def checked(targets: ArrayLike) -> FloatArray:
    """Return explicit binary targets as an array; raises ValueError if they are not valid.

    A 2×2 table, such as that of `multi_lpc`, has two scores, and the larger one decides. The
    targets of their difference are returned.

    Examples
    --------
    >>> checked([[1.0, 0.0], [0.0, 1.0]])
    array([-1.,  1.])
    """
    values = as_floats(targets, "targets")
    if values.shape == (2, 2):
        values = values[:, 1] - values[:, 0]
    if values.shape != (2,):
        raise ValueError(
            f"targets has shape {values.shape}: give the two values (t_neg, t_pos), or "
            f"{_choices()}."
        )
    if not np.isfinite(values).all() or values[0] >= values[1]:
        raise ValueError(
            f"targets (t_neg, t_pos) = ({values[0]:g}, {values[1]:g}) must be finite with t_neg < "
            "t_pos: the positive class gets the larger value."
        )
    return values


def _choices() -> str:
    return ", ".join(map(repr, NAMED))
