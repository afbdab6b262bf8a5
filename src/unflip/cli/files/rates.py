"""Noise rates and class proportions as typed on the command line: A=0.3,B=0.1."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

import numpy as np

from unflip._utils.typing import FloatArray
from unflip.labels.noise import NoiseModel

_PART = re.compile(r"\s*(?P<label>[^=]*?)\s*=\s*(?P<share>[^=,]*?)\s*(?:,|$)")


def shares(text: str, classes: Sequence[str], option: str) -> FloatArray:
    """Return the share of each class, in their order.

    Parameters
    ----------
    text : str
        The typed value, such as "A=0.3,B=0.1".
    classes : sequence of str
        The classes; each must be named once.
    option : str
        The option, for errors.
    """
    by_label: dict[str, float] = {}
    place = 0
    while place < len(text):
        part = _PART.match(text, place)
        if part is None:
            raise ValueError(
                f"{option} {text} cannot be read at {text[place:]!r}: write "
                f"{_example(classes, option)}."
            )
        label = part["label"]
        place = part.end()
        _check_label(label, classes, by_label, option)
        by_label[label] = _share(part["share"], label, option)
    for label in classes:
        if label not in by_label:
            raise ValueError(
                f"{option} {text} has no value for {label!r}: write "
                f"{_example(classes, option, by_label)}."
            )
    return np.array([by_label[label] for label in classes])


def noise_model(text: str, counts: Mapping[str, int], priors: FloatArray | None) -> NoiseModel:
    """Return the noise model with these noise rates; wrong labels are spread evenly.

    Parameters
    ----------
    text : str
        Rates, such as "A=0.3,B=0.1".
    counts : mapping of str to int
        Number of rows with each label.
    priors : ndarray of shape (k,) or None
        Class priors, if known.
    """
    classes = list(counts)
    k = len(classes)
    rates = shares(text, classes, "--eps")
    if k == 2 and rates.sum() >= 1:
        raise ValueError(
            f"--eps {text} sums to {rates.sum():g}: noise rates of two classes must sum to less "
            "than 1, so lower them."
        )
    limit = (k - 1) / k
    for label, rate in zip(classes, rates, strict=True):
        if k > 2 and rate >= limit:
            raise ValueError(
                f"--eps {label}={rate:g} must be below {limit:.2f}, the noise rate of random "
                "labels: lower it."
            )
    transition = np.tile(rates[:, None] / (k - 1), (1, k))
    np.fill_diagonal(transition, 1 - rates)
    model = NoiseModel(transition, priors)
    if priors is None:
        _check_possible(model, text, counts)
    return model


def proportions(text: str, classes: Sequence[str]) -> FloatArray:
    """Return the class priors, typed as "A=0.5,B=0.5", in the order of the classes."""
    priors = shares(text, classes, "--priors")
    if abs(priors.sum() - 1) > 1e-6:  # typed digits may be rounded
        raise ValueError(
            f"--priors {text} sums to {priors.sum():g}: the class proportions must sum to 1."
        )
    for label, share in zip(classes, priors, strict=True):
        if share == 0:
            raise ValueError(
                f"--priors {label}=0 means that no row has the true class {label!r}: pass a "
                "proportion above 0."
            )
    return priors


def _check_possible(model: NoiseModel, text: str, counts: Mapping[str, int]) -> None:
    """Raise ValueError if a class has more labels than its noise rate allows."""
    if model.n_classes > 2:
        # With several classes this can happen to small ones by chance; the classifier allows it.
        return
    observed = np.array(list(counts.values())) / sum(counts.values())
    others = (observed @ model.inverse_transition)[::-1]  # prior of the other class
    # A class with noise rate ε has less than a share 1 − ε of the labels, unless it has all rows.
    limits = np.diag(model.transition)
    for label, share, limit, other in zip(counts, observed, limits, others, strict=True):
        if other <= 0:
            raise ValueError(
                f"With --eps {text} less than {100 * limit:.3g}% of the labels can be {label!r}, "
                f"but {100 * share:.3g}% are: lower the noise rate of {label!r}."
            )


def _check_label(
    label: str, classes: Sequence[str], by_label: Mapping[str, float], option: str
) -> None:
    if label in by_label:
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
        raise ValueError(f"{option} {label}={text} is not valid: pass a number between 0 and 1.")
    return share


def _example(classes: Sequence[str], option: str, typed: Mapping[str, float] | None = None) -> str:
    """Return an example of a valid value, which keeps the proportion that was typed."""
    if option == "--priors" and len(classes) > 2:
        return "a proportion for each class, with a sum of 1"
    first, second = classes[:2]
    rates = (0.3, 0.1)
    if option == "--priors":
        by_label = typed or {second: 0.4}
        share = by_label.get(first, 1 - by_label.get(second, 0))
        rates = (share, 1 - share)
    return f"{first}={rates[0]:g},{second}={rates[1]:g}" + ",..." * (len(classes) > 2)
