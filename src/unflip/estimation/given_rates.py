"""Flip rates that are known, together with rows that were checked."""

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
    """Takes the flip rates as given, and true labels of some rows that say nothing of the rates.

    Rows that were checked because they looked wrong are no fair sample: rates read from them would
    be far too high.

    Parameters
    ----------
    noise : NoiseModel
        The rates; priors are inferred from the observed labels where it has none.
    errors : ndarray of shape (k, k) or None
        Their standard errors; None: they are exact.
    y_trusted : array-like of shape (n,), optional
        True labels of the rows that were checked, None for the others.
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
        """Keep the rates; X and y tell the classes and their observed proportions alone."""
        self.classes_, counts = np.unique(np.asarray(y), return_counts=True)
        known = self.noise.priors is not None
        self.noise_ = self.noise if known else self.noise.with_observed(counts / counts.sum())
        self.noise_std_ = (
            np.zeros_like(self.noise.transition) if self.errors is None else self.errors
        )
        return self
