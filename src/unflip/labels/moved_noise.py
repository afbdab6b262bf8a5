"""Noise models with noise rates moved by their standard errors, for sensitivity analyses."""

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
    """Return the channel of the noise, then those with one rate moved by its standard error.

    Parameters
    ----------
    noise : NoiseModel
        Noise model with priors.
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
    models = noise_models_one_error_away(noise, errors, observed)
    if votes is None:
        return list(models)
    return [Annotators.from_noise(model, votes).channel(votes) for model in models]


def noise_models_one_error_away(
    noise: NoiseModel, errors: FloatArray, observed: FloatArray | None
) -> list[NoiseModel]:
    """Return the noise model, then one for each class whose rate has a standard error.

    A rate falls by its standard error where it can, and rises otherwise. Parameters are those of
    `channels_one_error_away`.
    """
    models = [moved_rate(noise, 0, 0.0, observed) or noise]
    for a in np.flatnonzero(np.diag(errors) > 0):
        error = float(errors[a, a])
        can_fall = 1 - noise.transition[a, a] >= error
        for change in (-error, error) if can_fall else (error, -error):
            model = moved_rate(noise, int(a), change, observed)
            if model is not None:
                models.append(model)
                break
    return models


def moved_rate(
    noise: NoiseModel, a: int, change: float, observed: FloatArray | None
) -> NoiseModel | None:
    """Return the noise model with the rate of class a changed, or None if it is invalid.

    Wrong labels keep their proportions. `observed` is that of `channels_one_error_away`.
    """
    transition = noise.transition.copy()
    rate = 1 - transition[a, a]
    wrong = np.arange(noise.n_classes) != a
    if rate > 0:
        shares = transition[a, wrong] / rate
    else:
        shares = np.full(noise.n_classes - 1, 1 / (noise.n_classes - 1))
    new_rate = float(np.clip(rate + change, 0.0, 1.0))
    transition[a, wrong] = new_rate * shares
    transition[a, a] = 1 - new_rate
    try:
        model = NoiseModel(transition)
        if observed is None:
            return model.with_priors(noise.known_priors)
        return model.with_observed(observed)
    except ValueError:
        return None
