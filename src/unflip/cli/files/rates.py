"""Noise rates and class proportions as typed on the command line: A=0.3,B=0.1."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from unflip._utils.typing import FloatArray
from unflip.labels.class_values import noise_of_rates, proportions_in_order
from unflip.labels.noise import NoiseModel

_PART = re.compile(r"\s*(?P<label>[^=]*?)\s*=\s*(?P<share>[^=,]*?)\s*(?:,|$)")
_SOURCE = "the file"  # of the classes, in errors


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
    typed = _typed_values(text, classes, "--eps")
    model = noise_of_rates(typed, classes, f"--eps {text}", source=_SOURCE)
    if priors is None:
        _check_possible(model, text, counts)
        return model
    return model.with_priors(priors)


def proportions(text: str, classes: Sequence[str]) -> FloatArray:
    """Return the class priors, typed as "A=0.5,B=0.5", in the order of the classes."""
    typed = _typed_values(text, classes, "--priors")
    return proportions_in_order(typed, classes, f"--priors {text}", source=_SOURCE)


def _typed_values(text: str, classes: Sequence[str], option: str) -> dict[str, float | str]:
    """Return the typed value of each class; a value that is not a number stays as it is.

    Parameters
    ----------
    text : str
        The typed value, such as "A=0.3,B=0.1".
    classes : sequence of str
        The classes; each must be named once.
    option : str
        The option, for errors.
    """
    by_label: dict[str, float | str] = {}
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
        if label in by_label:
            raise ValueError(f"{option} names {label!r} twice: name each class once.")
        by_label[label] = _number(part["share"])
    if set(by_label) < set(classes):  # a class that is not in the file is a more telling error
        missing = next(label for label in classes if label not in by_label)
        raise ValueError(
            f"{option} {text} has no value for {missing!r}: write "
            f"{_example(classes, option, by_label)}."
        )
    return by_label


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


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


def _example(
    classes: Sequence[str], option: str, typed: Mapping[str, float | str] | None = None
) -> str:
    """Return an example of a valid value, which keeps the proportion that was typed."""
    if option == "--priors" and len(classes) > 2:
        return "a proportion for each class, with a sum of 1"
    first, second = classes[:2]
    rates = (0.3, 0.1)
    if option == "--priors":
        numbers = {
            label: value
            for label, value in (typed or {}).items()
            if isinstance(value, float) and 0 <= value <= 1
        }
        by_label = numbers or {second: 0.4}
        share = by_label.get(first, 1 - by_label.get(second, 0))
        rates = (share, 1 - share)
    return f"{first}={rates[0]:g},{second}={rates[1]:g}" + ",..." * (len(classes) > 2)
