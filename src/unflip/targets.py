"""What to regress on: a value, or a row of values, for each observed class."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.typing import FloatArray
from unflip._utils.validation import as_count, as_floats, as_number
from unflip.labels.noise import NoiseModel, check_noise

_SAME = 1e-10  # difference of rows, relative to the largest entry, that may be rounding
_SIGNS = np.array([-1.0, 1.0])


def naive(k: int = 2) -> FloatArray:
    """Take the observed label at its word: (−1, +1) for two classes, one-hot rows for more."""
    n_classes = as_count(k, "k", least=2)
    return _SIGNS.copy() if n_classes == 2 else np.eye(n_classes)


def unbiased(noise: NoiseModel) -> FloatArray:
    """Targets whose mean given the TRUE class is the clean label: E[t | y] = y.

    Solves ``transition @ t = naive``, the choice ρ± = ε± of Natarajan et al.
    """
    check_noise(noise)
    table: FloatArray = noise.inverse_transition @ naive(noise.n_classes)
    return table


def optimized(noise: NoiseModel) -> FloatArray:
    """Targets that maximise the accuracy: t(ỹ) = E[y | ỹ], the posterior mean of the true label.

    For two classes its ρ₊ − ρ₋ is the paper's boxed optimum (Eq. optimal_rho); see docs/theory.
    """
    check_noise(noise)
    table: FloatArray = noise.posterior @ naive(noise.n_classes)
    return table


def from_rho(rho_pos: float, rho_neg: float) -> FloatArray:
    """Targets of the Labels-Perturbed Classifier with parameters (ρ₊, ρ₋).

    t₊ = λ₊ = (1 − ρ₋ + ρ₊)β and t₋ = −λ₋ = −(1 − ρ₊ + ρ₋)β with β = 1/(1 − ρ₊ − ρ₋), turned round
    where β < 0 so that t₊ > t₋ always: the formula as printed flips the classifier there.

    Parameters
    ----------
    rho_pos, rho_neg : float
        ρ₊ and ρ₋; their sum must not be 1.
    """
    of_pos, of_neg = as_number(rho_pos, "rho_pos"), as_number(rho_neg, "rho_neg")
    remainder = 1 - of_pos - of_neg
    if not np.isfinite(remainder) or remainder == 0:
        raise ValueError(
            f"rho_pos + rho_neg = {of_pos:g} + {of_neg:g} must be finite and differ from 1, where "
            "the perturbed loss is undefined: move either one."
        )
    return np.array([of_pos - of_neg - 1, of_pos - of_neg + 1]) / abs(remainder)


def to_rho(targets: ArrayLike) -> tuple[float, float]:
    """Return the one pair (ρ₊, ρ₋) with ρ₊ + ρ₋ < 1 whose targets these are; the inverse of `from_rho`."""
    t_neg, t_pos = checked(targets)
    total, difference = 1 - 2 / (t_pos - t_neg), (t_pos + t_neg) / (t_pos - t_neg)
    return float((total + difference) / 2), float((total - difference) / 2)


def multi_lpc(alpha: ArrayLike, beta: ArrayLike) -> FloatArray:
    """Targets of the paper's Multi-LPC: score j regresses on α_j where label j is observed, on β_j elsewhere.

    Parameters
    ----------
    alpha, beta : array-like of shape (k,)
        (1, …, 1) and (0, …, 0) give the naive one-hot targets.
    """
    own, other = as_floats(alpha, "alpha"), as_floats(beta, "beta")
    if own.ndim != 1 or own.shape != other.shape or len(own) < 2:
        raise ValueError(
            f"alpha and beta need one value each per class (k ≥ 2); their shapes are {own.shape} "
            f"and {other.shape}."
        )
    return np.where(np.eye(len(own), dtype=bool), own, other)


#: Targets that have a name, each a function of the noise model.
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
    """Return the binary target values that a name stands for, or the given values once checked."""
    check_noise(noise)
    if isinstance(targets, str):
        if targets not in NAMED:
            raise ValueError(
                f"targets={targets!r} is not known: use {_choices()} or the values (t_neg, t_pos)."
            )
        return NAMED[targets](noise)
    return checked(targets)


def resolve_table(targets: str | ArrayLike, noise: NoiseModel) -> FloatArray:
    """Return the table (row = observed class, column = score) that a name stands for, or the given one once checked.

    Two classes get a 2×2 table here, as more get a k×k one: the naive one-hot rows weighed as the
    name says.
    """
    check_noise(noise)
    if isinstance(targets, str):
        if targets not in _TABLES:
            raise ValueError(f"targets={targets!r} is not known: use {_choices()} or a table.")
        return _TABLES[targets](noise)
    table = as_floats(targets, "targets")
    if table.ndim != 2 or len(table) != noise.n_classes or not table.shape[1]:
        raise ValueError(
            f"targets has shape {table.shape}: give a table with one row for each of the "
            f"{noise.n_classes} observed classes, or {_choices()}."
        )
    if not np.isfinite(table).all():
        raise ValueError("targets hold a value that is not finite: give numbers.")
    return table


def resolve_classes(targets: str | ArrayLike, noise: NoiseModel) -> FloatArray:
    """Return what a classifier regresses on: (t_neg, t_pos) for two classes, a k×k table for more."""
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
    if np.ptp(table, axis=0).max() <= _SAME * np.abs(table).max():
        raise ValueError(
            f"targets={targets!r} are the same for every observed class, as labels say nothing of "
            "the true class under this noise model: nothing can be learnt from them."
            if isinstance(targets, str)
            else "targets has the same row for every observed class, so nothing can be learnt from labels."
        )
    return table


def checked(targets: ArrayLike) -> FloatArray:
    """Return explicit binary targets as an array, or say what is wrong with them.

    A 2×2 table, such as that of `multi_lpc`, has two scores, and the larger decides: its targets
    are their difference.
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
