"""Known noise rates, combined with trusted labels of a selection of rows."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.arrays import as_numpy
from unflip._utils.typing import FloatArray
from unflip.data.training_set import TrainingSet
from unflip.estimation.noise_estimator import NoiseEstimator
from unflip.labels.noise import NoiseModel
from unflip.ridge.spectrum.base import Spectrum


class GivenRates(NoiseEstimator):
    """Keep known noise rates; trusted labels do not change them.

    Use it if the rows with trusted labels were selected because they looked wrong. They are not a
    random sample: rates estimated from them would be far too high.

    Parameters
    ----------
    noise : NoiseModel
        The noise rates. Without priors, they are inferred from the observed labels.
    errors : ndarray of shape (k, k) or None
        Standard errors of the rates. None: the rates are exact.
    y_trusted : array-like of shape (n,), optional
        True labels of the checked rows, None for the others.

    Attributes
    ----------
    classes_, noise_, noise_std_
        See `NoiseEstimator`.

    Examples
    --------
    >>> noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1)
    >>> GivenRates(noise).fit(np.zeros((4, 1)), ["no", "no", "yes", "no"]).noise_.priors.round(2)
    array([0.79, 0.21])
    """

    source_ = "given"

    def __init__(
        self,
        noise: NoiseModel,
        errors: FloatArray | None = None,
        y_trusted: ArrayLike | None = None,
    ) -> None:
        self.noise = noise
        self.errors = errors
        self.y_trusted = y_trusted

    def fit_from_spectrum(self, data: TrainingSet, spectrum: Spectrum) -> Self:
        """Keep the rates; rows stay on their device."""
        return self.fit(data.X, data.classes[as_numpy(data.codes)])

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Keep the rates; y supplies the classes and their observed proportions, X is unused."""
        self.classes_, counts = np.unique(np.asarray(y), return_counts=True)
        self.noise_ = self.noise
        if self.noise.priors is None:
            self.noise_ = self.noise.with_observed(counts / counts.sum())
        self.noise_std_ = np.zeros_like(self.noise.transition)
        if self.errors is not None:
            self.noise_std_ = self.errors
        return self
