"""Noise rates and class proportions by the name of the class: {"yes": 0.2, "no": 0.1}."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import FloatArray
from unflip._utils.validation import as_floats, shown
from unflip.labels.noise import NoiseModel

#: Value of each class by its name.
ByClass: TypeAlias = Mapping[Any, float]

_N_NAMES = 8  # classes that an error names; a choice
# Largest distance from 1 of a sum of proportions: typed digits may be rounded. A choice.
_ROUNDING = 1e-6


def values_in_order(
    by_class: Mapping[Any, Any], classes: Sequence[Any], name: str, *, source: str = "y"
) -> FloatArray:
    """Return the value of each class, between 0 and 1, in the order of the classes.

    Parameters
    ----------
    by_class : mapping
        Value by class; each class must be named.
    classes : sequence
        The classes, sorted.
    name : str
        Name of the parameter or option, for errors.
    source : str
        Where the classes come from, for errors.
    """
    for label in by_class:
        if label not in classes:
            raise ValueError(
                f"{name} names the class {label!r}, which is not in {source}: "
                f"{_closest(label, classes)}"
            )
    for label in classes:
        if label not in by_class:
            raise ValueError(f"{name} has no value for the class {label!r}: give one for each.")
    return np.array([_share(by_class[label], label, name) for label in classes])


def noise_of_rates(
    rates: Mapping[Any, Any], classes: Sequence[Any], name: str, *, source: str = "y"
) -> NoiseModel:
    """Return the noise model with these noise rates; wrong labels are spread evenly.

    Parameters are those of `values_in_order`; the rate of a class is P(wrong label | true class).
    """
    k = len(classes)
    in_order = values_in_order(rates, classes, name, source=source)
    if k == 2 and in_order.sum() >= 1:
        raise ValueError(
            f"{name} sums to {in_order.sum():g}: noise rates of two classes must sum to less "
            "than 1, so lower them."
        )
    limit = (k - 1) / k
    for label, rate in zip(classes, in_order, strict=True):
        if k > 2 and rate >= limit:
            raise ValueError(
                f"{name} has the rate {rate:g} for the class {label!r}, but it must be below "
                f"{limit:.2f}, the noise rate of random labels: lower it."
            )
    transition = np.tile(in_order[:, None] / (k - 1), (1, k))
    np.fill_diagonal(transition, 1 - in_order)
    return NoiseModel(transition)


def proportions_in_order(
    proportions: Mapping[Any, Any], classes: Sequence[Any], name: str, *, source: str = "y"
) -> FloatArray:
    """Return class proportions in the order of the classes; parameters as in `values_in_order`."""
    in_order = values_in_order(proportions, classes, name, source=source)
    total = float(in_order.sum())
    if abs(total - 1) > _ROUNDING:
        raise ValueError(f"{name} sums to {total:g}: the class proportions must sum to 1.")
    for label, share in zip(classes, in_order, strict=True):
        if share == 0:
            raise ValueError(
                f"{name} has the proportion 0 for the class {label!r}, so no row would have this "
                "true class: pass a proportion above 0."
            )
    return in_order / total


def noise_in_order(noise: Any, classes: NDArray[Any]) -> Any:
    """Return the parameter `noise=`, with rates by class as a `NoiseModel`."""
    if not isinstance(noise, Mapping):
        return noise
    return noise_of_rates(noise, classes.tolist(), f"noise = {shown(noise)}")


def priors_in_order(priors: Any, classes: NDArray[Any], name: str = "priors") -> Any:
    """Return a parameter such as `priors=`, with proportions by class as an array."""
    if not isinstance(priors, Mapping):
        return priors
    return proportions_in_order(priors, classes.tolist(), f"{name} = {shown(priors)}")


def _closest(label: Any, classes: Sequence[Any]) -> str:
    """Return a sentence with the class that was probably meant, or with the classes."""
    by_text = {str(each): each for each in classes}
    close = get_close_matches(str(label), list(by_text), n=1)
    if close:
        return f"did you mean {by_text[close[0]]!r}?"
    return f"the labels are {', '.join(map(repr, classes[:_N_NAMES]))}."


def _share(value: Any, label: Any, name: str) -> float:
    try:
        share = as_floats(value, name)
    except ValueError:
        share = np.array(np.nan)
    if share.ndim or not 0 <= share <= 1:
        raise ValueError(
            f"{name} has {shown(value)} for the class {label!r}: pass a number between 0 and 1."
        )
    return float(share)
