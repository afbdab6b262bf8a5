"""The regularization strength that the theory predicts to be best for an isotropic mixture."""

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
    """Return the theory's optimal γ for an isotropic mixture like the rows; may be infinite.

    Parameters
    ----------
    spectrum : Spectrum
        Spectrum of the centred rows, all of weight 1.
    codes : ndarray of shape (n,)
        Observed classes.
    noise : NoiseModel
        Noise with priors.
    targets : str or array-like
        As in `unflip.theory`.
    loss : Loss
        The loss; for more than two classes it must be the squared loss.
    plain : bool
        Whether the sign or argmax of the fitted scores decides, as with readout="plain".
    fit_intercept : bool
        Whether there is an intercept.
    """
    spikes = Spikes.of(spectrum)
    if noise.n_classes > 2:
        if loss is not SQUARED:
            raise ValueError(
                "reg='theory' supports only the squared loss for more than two classes: use "
                "reg='loo'."
            )
        if not fit_intercept:
            raise ValueError(
                "reg='theory' supports more than two classes only with an intercept: use "
                "fit_intercept=True."
            )
        multiclass_reg = optimal_multiclass_reg(
            means=_class_means(spikes, codes, noise, spectrum.n_varying),
            n=len(codes),
            noise=noise,
            targets=targets,
            readout="plain" if plain else "best",
            fit_intercept=True,
        )
        return multiclass_reg * spikes.noise_variance
    if plain and fit_intercept and loss is not SQUARED:
        raise ValueError(
            "reg='theory' supports readout='plain' with an intercept only for the squared loss: "
            "use readout='gaussian', or reg='loo'."
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


def _class_means(spikes: Spikes, codes: IntArray, noise: NoiseModel, n_features: int) -> FloatArray:
    """Return class means in units of the noise: those of the clusters, corrected for shrinkage."""
    clusters = fit_clusters(spikes.coordinates, codes, noise.n_classes, noise.known_priors)
    along = clusters.means * np.sqrt(spikes.strengths / spikes.visibility)
    return np.asarray(np.pad(along, ((0, 0), (0, n_features - along.shape[1]))))
