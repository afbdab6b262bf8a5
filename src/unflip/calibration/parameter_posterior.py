"""The posterior density of the parameters of `unflip.calibration.true_class`, and its mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_softmax, logit, softmax

from unflip._utils.typing import FloatArray, IntArray
from unflip.calibration.binning import random_rows
from unflip.calibration.labelled_scores import LabelledScores

# Standard deviation of logit(claimed accuracy) − logit(true accuracy). Its root mean square over 7
# sources of labels (19 sets) is 0.47; this is the upper 95% confidence limit from 7 sources.
_CLAIM_ERROR = 0.84
# Accuracies are compared with claims after they are moved from 0 and 1 by this much, so that a
# claim near 1 is no certainty. A choice.
_CLAIM_MARGIN = 0.01
# Rows that show the accuracy of predictions well enough for this prior.
_CLAIM_ROWS = 2000
_MAX_STEPS = 100  # of Newton's method, which takes below ten
_MAX_HALVINGS = 20  # of a Newton step
_REACH_TOLERANCE = 1e-3  # standard errors
_TOLERANCE = 1e-10  # gain of the log-posterior at which Newton's method stops


@dataclass(frozen=True, eq=False)
class Claim:
    """Prior of the accuracy of a model's predictions: the claim of its scores, with an error."""

    rows: LabelledScores
    weights: FloatArray  # that sum to 1
    classes: IntArray  # predictions
    claimed: float  # accuracy by the scores

    def error(self, parameters: FloatArray) -> float:
        """Return the error of the claim in standard deviations."""
        return self._error(self._own(self.rows.posterior(parameters)))

    def error_along(
        self, parameters: FloatArray, direction: FloatArray
    ) -> Callable[[float], float]:
        """Return the error as a function of the distance from the parameters in a direction."""
        start = self._relative_logits(parameters)
        change = self._relative_logits(direction)

        def error(distance: float) -> float:
            with np.errstate(over="ignore"):  # the probability is then 0
                odds = np.exp(start + distance * change)
            return self._error(1 / odds.sum(axis=1))

        return error

    def derivatives(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return the error of the claim, and its derivatives by the parameters."""
        posterior = self.rows.posterior(parameters)
        own = self._own(posterior)
        accuracy = self._accuracy(own)
        slope = 1 / ((1 + 2 * _CLAIM_MARGIN) * accuracy * (1 - accuracy) * _CLAIM_ERROR)
        gradient = self.weights @ self.rows.gradients(posterior, self.classes)
        return self._error(own), slope * gradient

    def _own(self, of_classes: FloatArray) -> FloatArray:
        """Return the entry of the predicted class of each row."""
        return of_classes[np.arange(len(self.classes)), self.classes]

    def _relative_logits(self, parameters: FloatArray) -> FloatArray:
        """Return the logits, which are linear in the parameters, less that of the prediction."""
        logits = self.rows.logits(parameters)
        return logits - self._own(logits)[:, None]

    def _accuracy(self, own: FloatArray) -> float:
        return _within_margin(float(self.weights @ own))

    def _error(self, own: FloatArray) -> float:
        gap = logit(self._accuracy(own)) - logit(_within_margin(self.claimed))
        return float(gap) / _CLAIM_ERROR


def _within_margin(accuracy: float) -> float:
    return (accuracy + _CLAIM_MARGIN) / (1 + 2 * _CLAIM_MARGIN)


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
    return [
        Claim(subset, share, model.predicted, float(share @ model.claimed))
        for model in subset.models
        if model.claimed is not None
    ]


@dataclass(frozen=True, eq=False)
class LogPosterior:
    """Logarithm of the posterior density of the parameters."""

    design: FloatArray  # of the checked rows, (m, k, d)
    truth: IntArray  # (m,)
    weights: FloatArray  # (m,)
    mean: FloatArray  # of the prior, (d,)
    std: FloatArray
    claims: list[Claim]

    @cached_property
    def mode(self) -> FloatArray:
        """The parameters of the largest density, by Newton's method from the prior mean."""
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

    @cached_property
    def _hessian(self) -> FloatArray:
        """Minus the Hessian at the mode."""
        return self._derivatives(self.mode, self.weights)[1]

    @cached_property
    def _largest(self) -> float:
        return self._value(self.mode)

    def covariance(self, counts: FloatArray) -> FloatArray:
        """Return the covariance around the mode.

        If the weights are not the counts of the rows, it is the sandwich H⁻¹MH⁻¹, where M has
        weight²/count in the place of the weights of the Hessian H.
        """
        inverse = np.linalg.inv(self._hessian)
        middle = self._derivatives(self.mode, self.weights**2 / counts)[1]
        return np.asarray(inverse @ middle @ inverse, dtype=float)

    def reach(self, direction: FloatArray, standard_errors: float) -> float:
        """Return how far from the mode, in a direction, the log density has fallen by enough.

        That is the fall of a normal density with the curvature at the mode, after a number of
        standard errors. The density may be skewed, so the distance differs from that number.

        Parameters
        ----------
        direction : ndarray of shape (d,)
            A step of one standard error.
        standard_errors : float
            Number of standard errors.
        """
        curvature = float(direction @ self._hessian @ direction)
        if curvature <= 0:
            return standard_errors
        lowest = self._largest - curvature * standard_errors**2 / 2
        errors = [claim.error_along(self.mode, direction) for claim in self.claims]

        def above(distance: float) -> float:
            moved = self.mode + distance * direction
            return self._density(moved, [error(distance) for error in errors]) - lowest

        farthest = standard_errors
        while above(farthest) > 0:  # ends, because the prior is normal
            farthest *= 1.5
        return float(brentq(above, 0.0, farthest, xtol=_REACH_TOLERANCE))

    def _value(self, parameters: FloatArray) -> float:
        return self._density(parameters, [claim.error(parameters) for claim in self.claims])

    def _density(self, parameters: FloatArray, claim_errors: Sequence[float]) -> float:
        logs = log_softmax(self.design @ parameters, axis=1)[np.arange(len(self.truth)), self.truth]
        misfits = (parameters - self.mean) / self.std
        errors = np.array(claim_errors)
        return float(self.weights @ logs - (misfits @ misfits + errors @ errors) / 2)

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
            error, slope = claim.derivatives(parameters)
            gradient = gradient - error * slope
            hessian = hessian + np.outer(slope, slope)
        return gradient, hessian


def information(design: FloatArray, posterior: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted sum of the covariances of the features under q, (d, d)."""
    mean = np.einsum("mk,mkd->md", posterior, design)
    scale = np.sqrt(weights[:, None] * posterior)
    centred = ((design - mean[:, None, :]) * scale[:, :, None]).reshape(-1, design.shape[2])
    return np.asarray(centred.T @ centred)
