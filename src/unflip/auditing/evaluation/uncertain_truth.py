r"""The true classes of rows as a metric needs them: masses, and the variance of a function of them.

A metric is a function of the masses T (n, k): how many rows of true class a row i stands for. To
first order, its error is that of Σ G_ia T_ia, with its derivatives G. Two sources of masses exist:

* `ModelTruth`: P(true class | score, label) of a model that checked rows calibrate. The error has
  that of the parameters, and that of the true classes given the parameters.
* `SampledTruth`: the checked rows alone, each with the number of rows that it represents. Its
  error is that of a stratified random sample, and no model is assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from unflip._utils.typing import FloatArray, IntArray
from unflip.auditing.evaluation.class_contrast import ClassContrast
from unflip.auditing.evaluation.soft_metrics import confusion_matrix
from unflip.calibration.interval import (
    Interval,
    normal_interval,
    sum_of_shares,
    wilson_interval,
)
from unflip.calibration.labelled_scores import LabelledScores
from unflip.calibration.true_class import TrueClassModel
from unflip.labels.codes import UNCHECKED

# Checked rows of a stratum from which on its variance can be estimated.
_LEAST_CHECKS = 2
_ROUNDING = 1e-6  # rows by which a limit may miss a whole row


@dataclass(frozen=True)
class Spread:
    """How far a metric may be from its value, by two sources of error.

    Attributes
    ----------
    limits : tuple of float
        95% interval by the error of the parameters of a model.
    error : float
        Standard error by sampling.
    """

    limits: tuple[float, float]
    error: float


class UncertainTruth(Protocol):
    """True classes of rows, known up to an error."""

    @property
    def masses(self) -> FloatArray:
        """Number of rows of each true class that each row stands for, (n, k)."""

    def variance(self, gradient: FloatArray) -> float:
        """Return the variance of Σ gradient·masses for derivatives of shape (n, k)."""

    def spread(self, metric: Callable[[FloatArray], float], gradient: FloatArray) -> Spread:
        """Return how far a function of the masses may be from its value.

        Parameters
        ----------
        metric : callable
            Function of the masses.
        gradient : ndarray of shape (n, k)
            Its derivatives.
        """

    def confusion_variances(self, predicted: IntArray) -> FloatArray:
        """Return the variance of each entry of the confusion matrix, (k, k)."""

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
    def _rows(self) -> LabelledScores:
        """Scores and labels of the unchecked rows."""
        return self.model.rows.subset(self._unchecked)

    def variance(self, gradient: FloatArray) -> float:
        """Return the variance of Σ gradient·masses for derivatives of shape (n, k)."""
        by_parameters, sampling = self._parts(gradient)
        return float(by_parameters @ self.model.covariance @ by_parameters + sampling)

    def spread(self, metric: Callable[[FloatArray], float], gradient: FloatArray) -> Spread:
        """Return how far a function of the masses may be from its value."""
        by_parameters, sampling = self._parts(gradient)
        down, up = self.model.moved(by_parameters, 0.95)
        low = metric(self.model.posterior_at(down))
        high = metric(self.model.posterior_at(up))
        return Spread((low, high), float(np.sqrt(sampling)))

    def _parts(self, gradient: FloatArray) -> tuple[FloatArray, float]:
        """Return the derivatives by the parameters, (d,), and the variance given these."""
        values = gradient[self._unchecked]
        centred = values - (self._posterior * values).sum(axis=1, keepdims=True)
        weighted = self._posterior * centred
        return self._rows.mean_features(weighted).sum(axis=0), float((weighted * centred).sum())

    def confusion_variances(self, predicted: IntArray) -> FloatArray:
        """Return the variance of each entry of the confusion matrix, (k, k)."""
        columns = predicted[self._unchecked]
        k = self.model.rows.n_classes
        jacobian = np.zeros((k, k, len(self.model.parameters)))
        for a in range(k):
            gradients = self._rows.gradients(self._posterior, np.full(len(columns), a))
            np.add.at(jacobian[a], columns, gradients)
        by_parameters = np.einsum("abd,de,abe->ab", jacobian, self.model.covariance, jacobian)
        sampling = confusion_matrix(self._posterior * (1 - self._posterior), columns)
        return np.asarray(by_parameters + sampling)

    def accuracy(self, predicted: IntArray) -> Interval:
        """Return the share of rows whose true class is the predicted one.

        Limits are rounded outwards to whole rows.
        """
        share = self.model.share(predicted)
        n = len(predicted)
        low = np.floor(share.low * n + _ROUNDING) / n
        high = np.ceil(share.high * n - _ROUNDING) / n
        return Interval(share.value, float(low), float(high))

    def difference(self, first: IntArray, second: IntArray) -> Interval:
        """Return the accuracy of the first predictions less that of the second ones."""
        n, k = self.masses.shape
        contrast = ClassContrast(first, second)
        gradient = (np.eye(k)[first] - np.eye(k)[second]) / n

        def difference(masses: FloatArray) -> float:
            return float(contrast.expected(masses).mean())

        spread = self.spread(difference, gradient)
        return _difference_interval(difference(self.masses), spread.error, spread.limits)


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
        cls,
        truth: IntArray,
        n_classes: int,
        stratifications: Sequence[IntArray],
        inclusion: FloatArray | None,
    ) -> SampledTruth:
        """Return the sample with the first strata that have enough checked rows, or without any.

        Parameters
        ----------
        truth, n_classes, inclusion
            As the attributes.
        stratifications : sequence of ndarray of shape (n,)
            Stratum of each row, the finest stratification first.
        """
        is_checked = truth != UNCHECKED
        for strata in stratifications:
            numbered = np.asarray(np.unique(strata, return_inverse=True)[1])
            n_checked = np.bincount(numbered[is_checked], minlength=int(numbered.max()) + 1)
            if n_checked.min() >= _LEAST_CHECKS:
                return cls(truth, n_classes, numbered, inclusion)
        return cls(truth, n_classes, np.zeros(len(truth), dtype=np.intp), inclusion)

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
        return float(self._variances(gradient[self._checked, self.truth[self._checked]]))

    def spread(self, metric: Callable[[FloatArray], float], gradient: FloatArray) -> Spread:
        """Return how far a function of the masses may be from its value."""
        value = metric(self.masses)
        return Spread((value, value), float(np.sqrt(self.variance(gradient))))

    def confusion_variances(self, predicted: IntArray) -> FloatArray:
        """Return the variance of each entry of the confusion matrix, (k, k)."""
        entry = self.truth[self._checked] * self.n_classes + predicted[self._checked]
        indicators = entry == np.arange(self.n_classes**2)[:, None]
        variances = self._variances(indicators.astype(float))
        return variances.reshape(self.n_classes, self.n_classes)

    def _variances(self, values: FloatArray) -> FloatArray:
        """Return the variances of the estimated sums of values of the checked rows, (..., m).

        Each stratum of m checked rows adds m/(m−1) Σ (w − 1) w (v − mean)², which for equal
        weights w = N/m is N² (1 − m/N) s²/m.
        """
        strata = self.strata[self._checked]
        variances = np.zeros(values.shape[:-1])
        for stratum in np.unique(strata):
            members = strata == stratum
            m = int(members.sum())
            weights = self.weights[members]
            inside = values[..., members]
            means = inside @ weights / weights.sum()
            scale = np.maximum(weights - 1, 0.0) * weights * m / (m - 1)
            variances += (inside - means[..., None]) ** 2 @ scale
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
            n_effective = _effective_sample_size(weights)
            value = float(np.average(is_right[strata == stratum], weights=weights))
            parts.append(wilson_interval(value, n_effective))
            sizes.append(float(np.mean(self.strata == stratum)))
        return sum_of_shares(parts, sizes, np.eye(len(parts)))

    def difference(self, first: IntArray, second: IntArray) -> Interval:
        """Return the accuracy of the first predictions less that of the second ones."""
        checked = self._checked
        contrast = ClassContrast(first, second).subset(checked).observed(self.truth[checked])
        n = len(self.truth)
        value = float(self.weights @ contrast) / n
        return _difference_interval(value, float(np.sqrt(self._variances(contrast))) / n)


def _difference_interval(
    value: float, error: float, limits: tuple[float, float] | None = None
) -> Interval:
    """Return the interval of a difference of two shares."""
    interval = normal_interval(value, error, limits=limits)
    return Interval(value, max(interval.low, -1.0), min(interval.high, 1.0))


def _effective_sample_size(weights: FloatArray) -> float:
    """Return how many independent rows show a share as well as these checked rows of a stratum.

    That number is infinite if all rows of the stratum were checked.
    """
    spread = float(np.maximum(weights - 1, 0.0) @ weights)
    return float(weights.sum() ** 2 / spread) if spread > 0 else np.inf
