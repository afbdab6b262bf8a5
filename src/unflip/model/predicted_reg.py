"""The penalty that the theory calls best, for rows that look like classes in isotropic noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.typing import FloatArray, IntArray
from unflip.estimation.clusters import fit_clusters
from unflip.estimation.spectral import Spikes
from unflip.labels.noise import NoiseModel
from unflip.losses import SQUARED, Loss
from unflip.ridge.spectrum.base import Spectrum
from unflip.theory.model import Mixture
from unflip.theory.optimum import optimal_multiclass_reg, optimal_reg


def predicted_reg(
    spectrum: Spectrum,
    codes: IntArray,
    noise: NoiseModel,
    *,
    targets: str | ArrayLike,
    loss: Loss,
    plain: bool,
    fit_intercept: bool,
) -> float:
    """Return γ* of the isotropic mixture behind the rows; it may be infinite.

    Parameters
    ----------
    spectrum : Spectrum
        Of the rows about their mean, all of weight 1.
    codes : ndarray of shape (n,)
        Observed classes.
    noise : NoiseModel
        With priors.
    targets : str or array-like
        As in `unflip.theory`.
    loss : Loss
        The loss that is minimised; of more than two classes the squared one.
    plain : bool
        Whether fitted scores decide as they are, without a threshold of their own.
    fit_intercept : bool
        Whether there is an intercept.
    """
    spikes = Spikes.of(spectrum)
    if noise.n_classes > 2:
        if loss is not SQUARED:
            raise ValueError(
                "reg='theory' knows the squared loss alone for more than two classes: use "
                "reg='loo'."
            )
        return (
            _multiclass(spectrum, spikes, codes, noise, targets, plain, fit_intercept)
            * spikes.noise_variance
        )
    if plain and fit_intercept and loss is not SQUARED:
        raise ValueError(
            "reg='theory' does not know where the plain scores of this loss change sign: use "
            "readout='gaussian', or reg='loo'."
        )
    priors = noise.known_priors
    mean_norm = np.sqrt(spikes.strengths[0] / (4 * priors[0] * priors[1]))
    best = optimal_reg(
        Mixture(mean_norm=mean_norm, aspect=spikes.aspect, noise=noise),
        targets=targets,
        loss=loss,
        objective="risk" if plain and fit_intercept else "accuracy",
        fit_intercept=fit_intercept,
    )
    return float(best) * spikes.noise_variance


def _multiclass(
    spectrum: Spectrum,
    spikes: Spikes,
    codes: IntArray,
    noise: NoiseModel,
    targets: str | ArrayLike,
    plain: bool,
    fit_intercept: bool,
) -> float:
    if not fit_intercept:
        raise ValueError(
            "reg='theory' knows more than two classes about their mean only: use "
            "fit_intercept=True."
        )
    return optimal_multiclass_reg(
        means=_class_means(spikes, codes, noise, spectrum.n_varying),
        n=len(codes),
        noise=noise,
        targets=targets,
        readout="plain" if plain else "best",
        fit_intercept=True,
    )


def _class_means(spikes: Spikes, codes: IntArray, noise: NoiseModel, n_features: int) -> FloatArray:
    """Class means in units of the noise: along the spikes as the clusters show them, but for their shrinkage ρ."""
    clusters = fit_clusters(spikes.coordinates, codes, noise.n_classes, noise.known_priors)
    along = clusters.means * np.sqrt(spikes.strengths / spikes.visibility)
    return np.asarray(np.pad(along, ((0, 0), (0, n_features - along.shape[1]))))
