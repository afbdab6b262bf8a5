"""Flip rates and class proportions as they are typed: A=0.3,B=0.1."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

import numpy as np

from unflip._utils.typing import FloatArray
from unflip.labels.noise import NoiseModel

_PART = re.compile(r"\s*(?P<label>[^=]*?)\s*=\s*(?P<share>[^=,]*?)\s*(?:,|$)")
_SUM_TOLERANCE = 1e-6


def shares(text: str, classes: Sequence[str], option: str) -> FloatArray:
    """Return the share of each class, in their order.

    Parameters
    ----------
    text : str
        What was typed, such as "A=0.3,B=0.1".
    classes : sequence of str
        The classes: each must be named once.
    option : str
        What it was typed for, for errors.
    """
    found: dict[str, float] = {}
    place = 0
    while place < len(text):
        part = _PART.match(text, place)
        if part is None:
            raise ValueError(
                f"{option} {text} cannot be read at {text[place:]!r}: write "
                f"{_example(classes, option)}."
            )
        label, place = part["label"], part.end()
        _check_label(label, classes, found, option)
        found[label] = _share(part["share"], label, option)
    for label in classes:
        if label not in found:
            raise ValueError(
                f"{option} {text} names no share for {label!r}: write "
                f"{_example(classes, option, found)}."
            )
    return np.array([found[label] for label in classes])


def noise_model(text: str, counts: Mapping[str, int], priors: FloatArray | None) -> NoiseModel:
    """Return the noise model of flip rates out of each class; flips go evenly to all others.

    Parameters
    ----------
    text : str
        Rates, such as "A=0.3,B=0.1".
    counts : mapping of str to int
        How many rows have each label.
    priors : ndarray of shape (k,) or None
        True class proportions, where known.
    """
    classes, k = list(counts), len(counts)
    rates = shares(text, classes, "--eps")
    if k == 2 and rates.sum() >= 1:
        raise ValueError(
            f"--eps {text} adds up to {rates.sum():g}: below 1 the labels still tell something, so "
            "lower it."
        )
    limit = (k - 1) / k
    for label, rate in zip(classes, rates, strict=True):
        if k > 2 and rate >= limit:
            raise ValueError(
                f"--eps {label}={rate:g} must be below {limit:.2f}, where labels tell nothing: "
                "lower it."
            )
    transition = np.tile(rates[:, None] / (k - 1), (1, k))
    np.fill_diagonal(transition, 1 - rates)
    model = NoiseModel(transition, priors)
    if priors is None:
        _check_possible(model, text, counts)
    return model


def proportions(text: str, classes: Sequence[str]) -> FloatArray:
    """Return the true class proportions, such as "A=0.5,B=0.5", in the order of the classes."""
    found = shares(text, classes, "--priors")
    if abs(found.sum() - 1) > _SUM_TOLERANCE:
        raise ValueError(
            f"--priors {text} adds up to {found.sum():g}: the proportions of all classes must add "
            "up to 1."
        )
    for label, share in zip(classes, found, strict=True):
        if share == 0:
            raise ValueError(
                f"--priors {label}=0 says that no row is truly {label!r}: give a share above 0."
            )
    return found


def _check_possible(model: NoiseModel, text: str, counts: Mapping[str, int]) -> None:
    """Raise where fewer rows have a label than these rates alone would give it."""
    if model.n_classes > 2:
        # of several classes chance does that to small ones, and the classifier knows how to live
        # with it
        return
    observed = np.array(list(counts.values())) / sum(counts.values())
    left = observed @ model.inverse_transition
    for label, share in zip(counts, left, strict=True):
        if share <= 0:
            raise ValueError(
                f"--eps {text} leaves no row that is truly {label!r}: fewer rows carry that label "
                "than flips of the other class alone would give it, so lower the rate of the other "
                "class."
            )


def _check_label(
    label: str, classes: Sequence[str], found: Mapping[str, float], option: str
) -> None:
    if label in found:
        raise ValueError(f"{option} names {label!r} twice: name each class once.")
    if label not in classes:
        close = get_close_matches(label, classes, n=1)
        hint = (
            f"did you mean {close[0]!r}?"
            if close
            else f"the labels are {', '.join(map(repr, classes[:8]))}."
        )
        raise ValueError(f"{option} names the class {label!r}, which is not in the file: {hint}")


def _share(text: str, label: str, option: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = float("nan")
    if not 0 <= share <= 1:
        raise ValueError(f"{option} {label}={text} is no share: give a number between 0 and 1.")
    return share


def _example(classes: Sequence[str], option: str, given: Mapping[str, float] | None = None) -> str:
    """Return what could be typed: the proportions of two classes add up to 1, with the one that was given."""
    if option == "--priors" and len(classes) > 2:
        return "a share for each class, which add up to 1"
    first, second = classes[:2]
    rates = (0.3, 0.1)
    if option == "--priors":
        known = given or {second: 0.4}
        share = known.get(first, 1 - known.get(second, 0))
        rates = (share, 1 - share)
    return f"{first}={rates[0]:g},{second}={rates[1]:g}" + ",..." * (len(classes) > 2)
