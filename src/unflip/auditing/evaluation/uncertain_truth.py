r"""The true classes of rows as a metric needs them: masses, and the variance of a function of them.

A metric is a function of the masses T (n, k): how many rows of true class a row i stands for. To
first order, its error is that of Σ G_ia T_ia, with its derivatives G. Two sources of masses exist:

* `ModelTruth`: P(true class | score, label) of a model that checked rows calibrate. The error has
  that of the parameters, and that of the true classes given the parameters.
* `SampledTruth`: the checked rows alone, each with the number of rows that it represents. Its
  error is that of a stratified random sample, and no model is assumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from unflip._utils.typing import FloatArray, IntArray
from unflip.auditing.evaluation.class_contrast import ClassContrast
from unflip.calibration.interval import (
    Interval,
    normal_interval,
    sum_of_shares,
    wilson_interval,
)
from unflip.calibration.true_class import TrueClassModel
from unflip.labels.codes import UNCHECKED

# Checked rows of a stratum from which on its variance can be estimated.
_LEAST_CHECKS = 2


class UncertainTruth(Protocol):
    """True classes of rows, known up to an error."""

    @property
    def masses(self) -> FloatArray:
        """Number of rows of each true class that each row stands for, (n, k)."""

    def variance(self, gradient: FloatArray) -> float:
        """Return the variance of Σ gradient·masses for derivatives of shape (n, k)."""

    def confusion_variances(self, predicted: IntArray) -> FloatArray:
        """Return the variance of each entry of the confusion matrix, (k, k)."""

    def rate_variances(self, predicted: IntArray, gradients: FloatArray) -> FloatArray:
        """Return the variances of functions of the confusion matrix, (m,).

        Parameters
        ----------
        predicted : ndarray of shape (n,)
            Predicted classes.
        gradients : ndarray of shape (m, k, k)
            Derivatives of each function by the confusion matrix.
        """

    def accuracy(self, predicted: IntArray) -> Interval:
        """Return the share of rows whose true class is the predicted one."""

    def difference(self, first: IntArray, second: IntArray) -> Interval:
        """Return the accuracy of the first predictions less that of the second ones."""


@dataclass(frozen=True, eq=False)
class ModelTruth:
    """True classes by the model of the true class."""

    model: TrueClassModel

    @property
    def masses(self) -> FloatArray:
        """P(true class | score, label), (n, k); 0 and 1 for checked rows."""
        return self.model.posterior

    @cached_property
    def _unchecked(self) -> IntArray:
        return np.flatnonzero(self.model.unchecked)

    @cached_property
    def _posterior(self) -> FloatArray:
        """P(true class | score, label) of the unchecked rows."""
        return self.model.posterior[self._unchecked]

    @cached_property
    def _mean_features(self) -> FloatArray:
        rows = self.model.rows.subset(self._unchecked)
        return rows.mean_features(self._posterior)

    def variance(self, gradient: FloatArray) -> float:
        """Return the variance of Σ gradient·masses for derivatives of shape (n, k)."""
        weighted = self._posterior * gradient[self._unchecked]
        means = weighted.sum(axis=1)
        rows = self.model.rows.subset(self._unchecked)
        by_parameters = rows.mean_features(weighted).sum(axis=0) - means @ self._mean_features
        sampling = (weighted * gradient[self._unchecked]).sum() - means @ means
        return float(by_parameters @ self.model.covariance @ by_parameters + sampling)

    def confusion_variances(self, predicted: IntArray) -> FloatArray:
        """Return the variance of each entry of the confusion matrix, (k, k)."""
        jacobian = self._confusion_jacobian(predicted)
        by_parameters = np.einsum("abd,de,abe->ab", jacobian, self.model.covariance, jacobian)
        sampling = np.diagonal(self._class_covariances(predicted), axis1=1, axis2=2).T
        return np.asarray(by_parameters + sampling)

    def rate_variances(self, predicted: IntArray, gradients: FloatArray) -> FloatArray:
        """Return the variances of functions of the confusion matrix, (m,)."""
        jacobian = self._confusion_jacobian(predicted)
        by_parameters = np.einsum("mab,abd->md", gradients, jacobian)
        covariances = self._class_covariances(predicted)
        sampling = np.einsum("mab,bac,mcb->m", gradients, covariances, gradients, optimize=True)
        variances = ((by_parameters @ self.model.covariance) * by_parameters).sum(axis=1)
        return np.asarray(variances + sampling)

    def _confusion_jacobian(self, predicted: IntArray) -> FloatArray:
        """Return the derivatives of the confusion matrix by the parameters, (k, k, d)."""
        k = self.model.rows.n_classes
        rows = self.model.rows.subset(self._unchecked)
        columns = predicted[self._unchecked]
        jacobian = np.zeros((k, k, self._mean_features.shape[1]))
        for a in range(k):
            gradients = rows.gradients(self._posterior, np.full(len(columns), a))
            np.add.at(jacobian[a], columns, gradients)
        return jacobian

    def _class_covariances(self, predicted: IntArray) -> FloatArray:
        """Return the covariance of the counts of the true classes at each prediction, (k, k, k)."""
        k = self.model.rows.n_classes
        columns = predicted[self._unchecked]
        covariances = np.zeros((k, k, k))
        for b in range(k):
            posterior = self._posterior[columns == b]
            covariances[b] = np.diag(posterior.sum(axis=0)) - posterior.T @ posterior
        return covariances

    def accuracy(self, predicted: IntArray) -> Interval:
        """Return the share of rows whose true class is the predicted one."""
        return self.model.share(predicted)

    def difference(self, first: IntArray, second: IntArray) -> Interval:
        """Return the accuracy of the first predictions less that of the second ones."""
        n, k = self.masses.shape
        value = ClassContrast(first, second).expected(self.masses).mean()
        gradient = (np.eye(k)[first] - np.eye(k)[second]) / n
        return normal_interval(float(value), np.sqrt(self.variance(gradient)))


@dataclass(frozen=True, eq=False)
class SampledTruth:
    """True classes of the checked rows, which are a random sample of each stratum.

    Attributes
    ----------
    truth : ndarray of shape (n,)
        True class of the checked rows, `UNCHECKED` for the others.
    n_classes : int
        Number of classes k.
    strata : ndarray of shape (n,)
        Stratum of each row, 0 to S − 1; each has at least two checked rows.
    inclusion : ndarray of shape (n,) or None
        Probability with which each row was checked; by default that of its stratum.
    """

    truth: IntArray
    n_classes: int
    strata: IntArray
    inclusion: FloatArray | None = None

    @classmethod
    def of(
        cls, truth: IntArray, n_classes: int, strata: IntArray, inclusion: FloatArray | None
    ) -> SampledTruth | None:
        """Return the sample; None if a stratum has too few checked rows."""
        numbered = np.asarray(np.unique(strata, return_inverse=True)[1])
        n_checked = np.bincount(numbered[truth != UNCHECKED], minlength=int(numbered.max()) + 1)
        if n_checked.min() < _LEAST_CHECKS:
            return None
        return cls(truth, n_classes, numbered, inclusion)

    @cached_property
    def _checked(self) -> IntArray:
        return np.flatnonzero(self.truth != UNCHECKED)

    @cached_property
    def weights(self) -> FloatArray:
        """Number of rows that each checked row represents, (m,); they add up in each stratum."""
        checked_strata = self.strata[self._checked]
        raw = np.ones(len(self._checked))
        if self.inclusion is not None:
            raw = 1 / self.inclusion[self._checked]
        sizes = np.bincount(self.strata)
        totals = np.bincount(checked_strata, raw)
        return np.asarray(raw * (sizes / totals)[checked_strata])

    @cached_property
    def masses(self) -> FloatArray:
        """Number of rows of each true class that each row stands for, (n, k)."""
        masses = np.zeros((len(self.truth), self.n_classes))
        masses[self._checked, self.truth[self._checked]] = self.weights
        return masses

    def variance(self, gradient: FloatArray) -> float:
        """Return the variance of Σ gradient·masses for derivatives of shape (n, k)."""
        return float(self._variances(gradient[self._checked, self.truth[self._checked]][None])[0])

    def confusion_variances(self, predicted: IntArray) -> FloatArray:
        """Return the variance of each entry of the confusion matrix, (k, k)."""
        entry = self.truth[self._checked] * self.n_classes + predicted[self._checked]
        indicators = entry == np.arange(self.n_classes**2)[:, None]
        variances = self._variances(indicators.astype(float))
        return variances.reshape(self.n_classes, self.n_classes)

    def rate_variances(self, predicted: IntArray, gradients: FloatArray) -> FloatArray:
        """Return the variances of functions of the confusion matrix, (m,)."""
        return self._variances(gradients[:, self.truth[self._checked], predicted[self._checked]])

    def _variances(self, values: FloatArray) -> FloatArray:
        """Return the variances of the estimated sums of values of the checked rows, (m, n_checked).

        Each stratum adds m/(m−1) Σ (w − 1) w (v − mean)², which for equal weights w = N/m is
        N² (1 − m/N) s²/m.
        """
        strata = self.strata[self._checked]
        variances = np.zeros(len(values))
        for stratum in np.unique(strata):
            members = strata == stratum
            m = int(members.sum())
            weights = self.weights[members]
            inside = values[:, members]
            means = inside @ weights / weights.sum()
            scale = np.maximum(weights - 1, 0.0) * weights * m / (m - 1)
            variances += (inside - means[:, None]) ** 2 @ scale
        return variances

    def accuracy(self, predicted: IntArray) -> Interval:
        """Return the share of rows whose true class is the predicted one.

        Each stratum has Wilson's interval for the effective number of its checked rows.
        """
        strata = self.strata[self._checked]
        is_right = self.truth[self._checked] == predicted[self._checked]
        parts = []
        sizes = []
        for stratum in np.unique(strata):
            weights = self.weights[strata == stratum]
            n_effective = weights.sum() ** 2 / (weights @ weights)
            value = float(weights @ is_right[strata == stratum] / weights.sum())
            parts.append(wilson_interval(value, n_effective))
            sizes.append(float(weights.sum() / len(self.truth)))
        return sum_of_shares(parts, sizes, np.eye(len(parts)))

    def difference(self, first: IntArray, second: IntArray) -> Interval:
        """Return the accuracy of the first predictions less that of the second ones."""
        checked = self._checked
        contrast = ClassContrast(first, second).subset(checked).observed(self.truth[checked])
        n = len(self.truth)
        value = float(self.weights @ contrast) / n
        return normal_interval(value, np.sqrt(self._variances(contrast[None])[0]) / n)
