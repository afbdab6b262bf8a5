"""The classifiers that the paper compares: their training labels and regression targets."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from unflip import targets as target_values
from unflip import theory
from unflip._utils.typing import FloatArray, IntArray
from unflip.labels.noise import NoiseModel

VARIANTS = ("naive", "unbiased", "optimized", "oracle")


def noise_seen(variant: str, noise: NoiseModel) -> NoiseModel:
    """Return the noise of a variant's training labels: none for the oracle."""
    return NoiseModel.none().with_priors(noise.known_priors) if variant == "oracle" else noise


def targets_of(variant: str, noise: NoiseModel) -> FloatArray:
    """Return the two regression targets of a variant."""
    return target_values.resolve("naive" if variant == "oracle" else variant, noise)


def target_columns(noise: NoiseModel, true: IntArray, observed: IntArray) -> FloatArray:
    """Return the target of every row, one column per variant."""
    columns = [targets_of(name, noise)[true if name == "oracle" else observed] for name in VARIANTS]
    return np.column_stack(columns)


def predict(
    variant: str, noise: NoiseModel, *, mean_norm: float, aspect: float, reg: float | FloatArray
) -> theory.Prediction:
    """Return the theory's prediction for a variant without intercept."""
    mixture = theory.Mixture(mean_norm=mean_norm, aspect=aspect, noise=noise_seen(variant, noise))
    return theory.predict(mixture, targets=targets_of(variant, noise), reg=reg)


def accuracy_and_risk(coef: FloatArray, mean_norm: float) -> tuple[FloatArray, FloatArray]:
    """Return accuracy and risk of fits on infinitely many new rows of the mixture.

    The first axis of `coef` holds the coefficients of a fit. Given the fit, the score of a new row
    ±μ + N(0, I) is Gaussian, so no test rows are needed. μ is the same in every coordinate, as in
    `unflip.datasets.make_mixture`.
    """
    along = mean_norm / np.sqrt(len(coef)) * coef.sum(axis=0)
    variance = (coef**2).sum(axis=0)
    accuracy = np.asarray(ndtr(along / np.sqrt(variance)))
    return accuracy, (along - 1) ** 2 + variance
