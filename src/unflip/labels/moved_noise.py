"""Noise models near a given one: rates moved by a standard error or any other amount."""

from __future__ import annotations

import numpy as np

from unflip._utils.typing import FloatArray
from unflip.labels.annotators import Annotators
from unflip.labels.noise import Channel, NoiseModel
from unflip.labels.votes import Votes


def channels_one_error_away(
    noise: NoiseModel,
    errors: FloatArray,
    *,
    observed: FloatArray | None,
    votes: Votes | None = None,
    annotators: Annotators | None = None,
) -> list[Channel]:
    """Return what is observed under the noise, then with each rate moved by its standard error.

    Parameters
    ----------
    noise : NoiseModel
        With priors.
    errors : ndarray of shape (k, k)
        Standard errors of its transition.
    observed : ndarray of shape (k,) or None
        Observed class proportions that the priors follow; None if the priors are known.
    votes : Votes, optional
        Votes in place of labels.
    annotators : Annotators, optional
        Their annotators, if each has a transition matrix of its own. Without, all have `noise`.
    """
    if votes is not None and annotators is not None:
        return [annotators.channel(votes), *annotators.one_error_away(votes, errors)]
    models = other_noise(noise, errors, observed)
    if votes is None:
        return list(models)
    return [Annotators.alike(model, votes).channel(votes) for model in models]


def other_noise(
    noise: NoiseModel, errors: FloatArray, observed: FloatArray | None
) -> list[NoiseModel]:
    """Return the noise model, and such as are one standard error away, the rates out of one true class at a time.

    Parameters
    ----------
    noise : NoiseModel
        With priors.
    errors : ndarray of shape (k, k)
        Standard errors of its transition.
    observed : ndarray of shape (k,) or None
        Observed class proportions that the priors follow; None where the priors are known.
    """
    found = [moved_rate(noise, 0, 0.0, observed) or noise]
    for a in np.flatnonzero(np.diag(errors) > 0):
        error = float(errors[a, a])
        fewer, more = (moved_rate(noise, int(a), sign * error, observed) for sign in (-1, 1))
        can_fall = 1 - noise.transition[a, a] >= error
        moved = next(
            (
                model
                for model in ((fewer, more) if can_fall else (more, fewer))
                if model is not None
            ),
            None,
        )
        if moved is not None:
            found.append(moved)
    return found


def moved_rate(
    noise: NoiseModel, a: int, change: float, observed: FloatArray | None
) -> NoiseModel | None:
    """Return the noise model with more (or fewer) flips out of class a, or None where there is no such model.

    Flips keep their shares among the other classes; `observed` is that of `other_noise`.
    """
    transition = noise.transition.copy()
    flips = 1 - transition[a, a]
    others = np.arange(noise.n_classes) != a
    share = (
        transition[a, others] / flips
        if flips > 0
        else np.full(noise.n_classes - 1, 1 / (noise.n_classes - 1))
    )
    wanted = float(np.clip(flips + change, 0.0, 1.0))
    transition[a, others], transition[a, a] = wanted * share, 1 - wanted
    try:
        model = NoiseModel(transition)
        return (
            model.with_priors(noise.known_priors)
            if observed is None
            else model.with_observed(observed)
        )
    except ValueError:
        return None
