"""The posterior density of the parameters of `unflip.calibration.true_class`, and its mode."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax, logit, softmax

from unflip._utils.typing import FloatArray, IntArray
from unflip.calibration.binning import random_rows
from unflip.calibration.labelled_scores import LabelledScores

# Standard deviation of logit(claimed accuracy) − logit(true accuracy). Its root mean square over 7
# sources of labels (19 sets) is 0.47; 7 sources estimate it with the quantiles of a t distribution,
# which are 1.2 times those of a normal one.
_CLAIM_ERROR = 0.57
# Error of a claimed accuracy at least, so that a claim near 1 is no certainty.
_LEAST_CLAIM_ERROR = 0.01
# Rows that show the accuracy of predictions well enough for this prior.
_CLAIM_ROWS = 5000
_MAX_STEPS = 100  # of Newton's method, which takes below ten
_MAX_HALVINGS = 20  # of a Newton step
_TOLERANCE = 1e-10  # gain of the log-posterior at which Newton's method stops


@dataclass(frozen=True, eq=False)
class Claim:
    """Prior of the accuracy of a model's predictions: the claim of its scores, with an error."""

    rows: LabelledScores
    weights: FloatArray  # that sum to 1
    classes: IntArray  # predictions
    target: float  # claimed accuracy, on the logit scale
    std: float

    def at(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return the error of the claim in standard deviations, and its derivatives."""
        posterior = self.rows.posterior(parameters)
        value = float(self.weights @ posterior[np.arange(len(self.classes)), self.classes])
        value = float(np.clip(value, 1e-6, 1 - 1e-6))
        gradient = self.weights @ self.rows.gradients(posterior, self.classes)
        scale = self.std * value * (1 - value)
        return (float(logit(value)) - self.target) / self.std, gradient / scale


def claims(rows: LabelledScores, weights: FloatArray) -> list[Claim]:
    """Return the claim of each model that gives probabilities.

    Parameters
    ----------
    rows : LabelledScores
        Scores and labels.
    weights : ndarray of shape (n,)
        Weights of the rows.
    """
    sample = random_rows(len(weights), _CLAIM_ROWS)
    subset = rows.subset(sample)
    share = weights[sample] / weights[sample].sum()
    terms = []
    for model in subset.models:
        if model.claimed is None:
            continue
        claimed = float(np.clip(share @ model.claimed, 1e-6, 1 - 1e-6))
        least = _LEAST_CLAIM_ERROR / (claimed * (1 - claimed))
        std = float(np.hypot(_CLAIM_ERROR, least))
        terms.append(Claim(subset, share, model.predicted, float(logit(claimed)), std))
    return terms


@dataclass(frozen=True, eq=False)
class LogPosterior:
    """Logarithm of the posterior density of the parameters."""

    design: FloatArray  # of the checked rows, (m, k, d)
    truth: IntArray  # (m,)
    weights: FloatArray  # (m,)
    mean: FloatArray  # of the prior, (d,)
    std: FloatArray
    claims: list[Claim]

    def mode(self) -> FloatArray:
        """Return the parameters of the largest density, by Newton's method from the prior mean."""
        parameters = self.mean
        value = self._value(parameters)
        for _ in range(_MAX_STEPS):
            gradient, hessian = self._derivatives(parameters, self.weights)
            step = np.linalg.solve(hessian, gradient)
            for _ in range(_MAX_HALVINGS):
                moved = self._value(parameters + step)
                if moved >= value:
                    break
                step = step / 2
            gain = moved - value
            if gain <= 0:
                break
            parameters = parameters + step
            value = moved
            if gain < _TOLERANCE:
                break
        return parameters

    def covariance(self, parameters: FloatArray, counts: FloatArray) -> FloatArray:
        """Return the covariance around the mode.

        If the weights are not the counts of the rows, it is the sandwich H⁻¹MH⁻¹, where M has
        weight²/count in the place of the weights of the Hessian H.
        """
        inverse = np.linalg.inv(self._derivatives(parameters, self.weights)[1])
        middle = self._derivatives(parameters, self.weights**2 / counts)[1]
        return np.asarray(inverse @ middle @ inverse, dtype=float)

    def _value(self, parameters: FloatArray) -> float:
        logs = log_softmax(self.design @ parameters, axis=1)[np.arange(len(self.truth)), self.truth]
        misfits = (parameters - self.mean) / self.std
        claims = np.array([claim.at(parameters)[0] for claim in self.claims])
        return float(self.weights @ logs - (misfits @ misfits + claims @ claims) / 2)

    def _derivatives(
        self, parameters: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gradient, and minus the Hessian (that of a claim to first order)."""
        posterior = softmax(self.design @ parameters, axis=1)
        own = self.design[np.arange(len(self.truth)), self.truth]
        residuals = own - np.einsum("mk,mkd->md", posterior, self.design)
        gradient = weights @ residuals - (parameters - self.mean) / self.std**2
        hessian = information(self.design, posterior, weights) + np.diag(self.std**-2.0)
        for claim in self.claims:
            error, slope = claim.at(parameters)
            gradient = gradient - error * slope
            hessian = hessian + np.outer(slope, slope)
        return gradient, hessian


def information(design: FloatArray, posterior: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted sum of the covariances of the features under q, (d, d)."""
    mean = np.einsum("mk,mkd->md", posterior, design)
    scale = np.sqrt(weights[:, None] * posterior)
    centred = ((design - mean[:, None, :]) * scale[:, :, None]).reshape(-1, design.shape[2])
    return np.asarray(centred.T @ centred)
