r"""P(true class | score, label) for noise that may depend on the row, fitted to checked rows.

Annotators err where a row is hard. No transition matrix describes that, and scores and noisy labels
do not identify it: they identify P(label | score) only. True labels of a few checked rows do, with
a model of few parameters. For a row with log-probabilities ℓ(a) of the true class by its score,
observed label o, prediction p, and D = 1[o ≠ p],

.. math:: \log q(a) = (\beta + \beta_d D)\,\ell(a) + \gamma\,1[a = o] + \delta\,1[a = p]
          + \zeta\,1[a = o = p] + c_a - \log Z.

The score must not depend on the row's own label. The logarithms are floored and centred. For two
classes there is no ζ, and class-conditional noise is a special case: β = 1, β_d = δ = 0, with γ and
c by the noise rates. Noise that depends on the row changes β and γ. Several votes on a row add
ω times their log-likelihood, with o the majority label. The scores
of two models add up: each has its own β, β_d, δ and ζ.

Each parameter has a normal prior, which says what the labels of public data sets needed. The
posterior mode on the checked rows is unique, because the logarithm of a softmax is concave; its
covariance is the inverse Hessian. Which rows were checked may depend on scores and labels, as these
are conditioned on. Without checked rows, the answer is that of the prior.

The prior has one more term: the accuracy of each model's predictions is close to the one that the
scores claim, if noise depended on the class alone. On public data sets the two differ by a normal
error on the logit scale. (The claimed share of correct labels is too high on most of them, so it
does not enter.)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import FloatArray, IntArray
from unflip.calibration.interval import (
    Interval,
    normal_quantile,
    share_interval,
    sum_of_shares,
)
from unflip.calibration.labelled_scores import LabelledScores
from unflip.calibration.parameter_posterior import LogPosterior, claims, information
from unflip.labels.codes import UNCHECKED, UNLABELLED

# The false discovery rate among the suspects is kept with probability 0.9. This is the confidence
# of the two-sided interval with that upper limit.
_CONFIDENCE = 0.8
_LEAST_MASS = 1e-12  # share of rows below which a class has none


@dataclass(frozen=True, eq=False)
class _CellShare:
    """A share of the rows of a cell."""

    interval: Interval
    size: float  # share of the cell in the total weight
    direction: FloatArray  # derivatives by the parameters, in standard errors of the share


@dataclass(frozen=True, eq=False)
class TrueClassModel:
    """The fitted model of the true class.

    Attributes
    ----------
    rows : LabelledScores
        Scores and labels.
    truth : ndarray of shape (n,)
        True class of the checked rows, `UNCHECKED` for the others.
    weights : ndarray of shape (n,)
        Share of each row in the total weight.
    n_effective : float
        Effective sample size.
    density : LogPosterior
        Posterior density of the parameters.
    parameters, covariance : ndarray of shape (d,), (d, d)
        Posterior mode, and the covariance around it.
    """

    rows: LabelledScores
    truth: IntArray
    weights: FloatArray
    n_effective: float
    density: LogPosterior
    parameters: FloatArray
    covariance: FloatArray

    @classmethod
    def fit(
        cls,
        rows: LabelledScores,
        truth: IntArray,
        *,
        counts: FloatArray | None = None,
        inclusion: FloatArray | None = None,
    ) -> TrueClassModel:
        """Fit the parameters to the checked rows.

        Parameters
        ----------
        rows : LabelledScores
            Scores and labels.
        truth : ndarray of shape (n,)
            True class of the checked rows, `UNCHECKED` for the others.
        counts : ndarray of shape (n,), optional
            Weight of each row, as a number of independent rows; by default 1.
        inclusion : ndarray of shape (n,), optional
            Probability with which each row was chosen for a check. Each checked row counts in
            proportion to 1/probability, so that the fit is the one of all rows, even if the model
            is only an approximation.
        """
        counts = np.ones(len(truth)) if counts is None else counts
        checked = np.flatnonzero((truth != UNCHECKED) & (counts > 0))
        row_weights = counts[checked]
        if inclusion is not None and len(checked):
            row_weights = row_weights / inclusion[checked]
            row_weights = row_weights * counts[checked].sum() / row_weights.sum()
        total = float(counts.sum())
        density = LogPosterior(
            rows.design(checked),
            truth[checked],
            row_weights,
            *rows.prior,
            claims(rows, counts / total),
        )
        covariance = density.covariance(counts[checked])
        return cls(rows, truth, counts / total, total, density, density.mode, covariance)

    @property
    def unchecked(self) -> NDArray[np.bool_]:
        """Whether each row has no trusted label, (n,)."""
        return np.asarray(self.truth == UNCHECKED)

    @property
    def n_checked(self) -> int:
        """Number of checked rows."""
        return int((~self.unchecked).sum())

    @cached_property
    def predicted_posterior(self) -> FloatArray:
        """P(true class | score, label) by the model, for checked rows too, (n, k)."""
        return self.rows.posterior(self.parameters)

    @cached_property
    def posterior(self) -> FloatArray:
        """P(true class | score, label), (n, k); 0 and 1 for checked rows."""
        return self._with_truth(self.predicted_posterior.copy())

    def posterior_at(self, parameters: FloatArray) -> FloatArray:
        """Return the posterior for other parameters."""
        return self._with_truth(self.rows.posterior(parameters))

    def _with_truth(self, posterior: FloatArray) -> FloatArray:
        checked = ~self.unchecked
        posterior[checked] = np.eye(self.rows.n_classes)[self.truth[checked]]
        return posterior

    def share(
        self, classes: IntArray, *, new_rows: bool = False, confidence: float = 0.95
    ) -> Interval:
        """Return the share of rows whose true class is `classes` (n,), with its interval.

        Rows on which label and prediction agree, and those on which they differ, have an interval
        each, because one of the shares may be close to 0 or 1. Checked rows count exactly.

        Parameters
        ----------
        classes : ndarray of shape (n,)
            A class of each row: the prediction for the accuracy, the label for correct labels.
        new_rows : bool
            Whether the share is that of new rows, of which these are a sample.
        confidence : float
            Confidence level.
        """
        is_right = (self.truth == classes) & ~self.unchecked
        cells = [
            self._cell_share(members, classes[members], new_rows, confidence)
            for members in self._unchecked_cells()
        ]
        return sum_of_shares(
            [cell.interval for cell in cells],
            [cell.size for cell in cells],
            self._correlations([cell.direction for cell in cells]),
            float(self.weights @ is_right),
        )

    def _unchecked_cells(self) -> list[NDArray[np.bool_]]:
        """Return the unchecked rows of positive weight of each cell, as masks."""
        counted = self.unchecked & (self.weights > 0)
        return [counted & (self.rows.cells == cell) for cell in np.unique(self.rows.cells[counted])]

    def _cell_share(
        self, members: NDArray[np.bool_], classes: IntArray, new_rows: bool, confidence: float
    ) -> _CellShare:
        """Return the share of the rows of a cell whose true class is `classes`.

        The parameters are moved so that the share changes most, down and up. The error of sampling
        is added on the logit scale.
        """
        size = float(self.weights[members].sum())
        within = self.weights[members] / size
        rows = self.rows.subset(members)
        posterior = self.predicted_posterior[members]
        own = posterior[np.arange(len(classes)), classes]
        gradient = within @ rows.gradients(posterior, classes)
        value = float(within @ own)
        variances = np.full(len(own), value * (1 - value)) if new_rows else own * (1 - own)
        sampling = float(within @ variances) / (size * self.n_effective)
        moved = self.moved(gradient, confidence)
        low, high = (rows.share(parameters, classes, within) for parameters in moved)
        interval = share_interval(value, np.sqrt(sampling), confidence, limits=(low, high))
        error = np.sqrt(float(gradient @ self.covariance @ gradient) + sampling)
        return _CellShare(interval, size, gradient / max(error, np.finfo(float).tiny))

    def moved(self, gradient: FloatArray, confidence: float) -> tuple[FloatArray, FloatArray]:
        """Return the parameters at which a function has the limits of its interval.

        Parameters
        ----------
        gradient : ndarray of shape (d,)
            Derivatives of the function by the parameters.
        confidence : float
            Confidence level of the interval, two-sided.
        """
        variance = float(gradient @ self.covariance @ gradient)
        if variance <= 0:
            return self.parameters, self.parameters
        step = self.covariance @ gradient / np.sqrt(variance)
        quantile = normal_quantile(confidence)
        down = self.density.reach(-step, quantile)
        up = self.density.reach(step, quantile)
        return self.parameters - down * step, self.parameters + up * step

    def _correlations(self, directions: Sequence[FloatArray]) -> FloatArray:
        """Return the correlations of estimates whose gradients were divided by their errors."""
        if not directions:
            return np.empty((0, 0))
        stacked = np.array(directions)
        correlations = stacked @ self.covariance @ stacked.T
        np.fill_diagonal(correlations, 1.0)
        return np.asarray(correlations)

    def functional(
        self,
        function: Callable[[FloatArray], float],
        *,
        sampling: float = 0.0,
    ) -> Interval:
        """Return any share that is a function of the posterior, with its interval.

        The function is evaluated one standard error away along each principal axis of the
        covariance.

        Parameters
        ----------
        function : callable
            Function of the posterior, (n, k).
        sampling : float
            Variance of the function given the parameters: the true classes are random.
        """
        value, variance = self.with_variances(function)
        return share_interval(float(value), float(np.sqrt(variance + sampling)))

    def with_variances(self, function: Callable[[FloatArray], Any]) -> tuple[Any, Any]:
        """Return functions of the posterior, and their variances by those of the parameters.

        Parameters
        ----------
        function : callable
            Function of the posterior, (n, k), that returns a number or an array.
        """
        value = function(self.posterior)
        variance = 0.0 * value
        for step in self._principal_errors():
            up = function(self.posterior_at(self.parameters + step))
            down = function(self.posterior_at(self.parameters - step))
            variance = variance + ((up - down) / 2) ** 2
        return value, variance

    @cached_property
    def expected_accuracy(self) -> Interval:
        """Accuracy of the first model's predictions on new rows with clean labels."""
        return self.share(self.rows.predicted, new_rows=True)

    def accuracy_for(self, priors: FloatArray) -> Interval:
        """Return the accuracy on new rows with these class proportions, (k,)."""
        rows = np.arange(len(self.truth))

        def accuracy(posterior: FloatArray) -> float:
            weighted = posterior * (priors / np.maximum(self.weights @ posterior, _LEAST_MASS))
            right = weighted[rows, self.rows.predicted]
            return float(self.weights @ right / (self.weights @ weighted.sum(axis=1)))

        value = accuracy(self.posterior)
        return self.functional(accuracy, sampling=value * (1 - value) / self.n_effective)

    def transition(self) -> tuple[FloatArray, FloatArray]:
        """Return P(label | true class) of these rows by expected counts, and standard errors.

        Both have shape (k, k). A class without expected rows keeps its labels.
        """
        labelled = self.rows.observed != UNLABELLED
        labels = np.eye(self.rows.n_classes)[self.rows.observed] * labelled[:, None]

        def counts(posterior: FloatArray) -> FloatArray:
            return np.asarray((posterior * self.weights[:, None]).T @ labels)

        def rates(table: FloatArray) -> FloatArray:
            mass = table.sum(axis=1, keepdims=True)
            return np.where(mass > _LEAST_MASS, table / np.maximum(mass, _LEAST_MASS), np.eye(k))

        k = self.rows.n_classes
        transition, variance = self.with_variances(lambda posterior: rates(counts(posterior)))
        mass = counts(self.posterior).sum(axis=1, keepdims=True)
        sampling = transition * (1 - transition) / np.maximum(self.n_effective * mass, 1.0)
        return transition, np.sqrt(variance + sampling)

    def _principal_errors(self) -> list[FloatArray]:
        """Return one standard error along each principal axis of the covariance."""
        spreads, axes = np.linalg.eigh(self.covariance)
        return [
            np.sqrt(spread) * axis
            for spread, axis in zip(np.maximum(spreads, 0.0), axes.T, strict=True)
        ]

    @cached_property
    def correct_labels(self) -> Interval:
        """Share of correct labels among the labelled rows."""
        labelled = self.rows.observed != UNLABELLED
        return self.restricted(labelled).share(self.rows.observed[labelled])

    def restricted(self, kept: NDArray[np.bool_]) -> TrueClassModel:
        """Return the model for some of the rows, with the parameters fitted to all."""
        if kept.all():
            return self
        share = float(self.weights[kept].sum())
        return replace(
            self,
            rows=self.rows.subset(kept),
            truth=self.truth[kept],
            weights=self.weights[kept] / share,
            n_effective=self.n_effective * share,
        )

    def n_suspects(self, order: IntArray, false_discovery_rate: float) -> int:
        """Return how many of the rows in `order` can be called wrong.

        The largest m for which the mean P(label wrong) of the first m rows exceeds
        1 − false_discovery_rate with 90% confidence. Labels that are likelier right are not called
        wrong.

        Parameters
        ----------
        order : ndarray of int
            Unchecked rows with a label, most likely wrong first.
        false_discovery_rate : float
            Share of correct labels among the suspects, at most.
        """
        rows = self.rows.subset(order)
        posterior = self.predicted_posterior[order]
        right = posterior[np.arange(len(order)), rows.observed]
        is_wrong = np.logical_and.accumulate(right <= 0.5)
        mean = np.cumsum(right) / np.arange(1, len(order) + 1)
        most = int((np.flatnonzero(is_wrong & (mean <= false_discovery_rate)) + 1).max(initial=0))

        def largest_share_right(m: int) -> float:
            return self._largest_share_right(order[:m])

        # More suspects have a larger share of correct labels.
        return bisect_right(range(1, most + 1), false_discovery_rate, key=largest_share_right)

    def _largest_share_right(self, chosen: IntArray) -> float:
        """Return the upper 90% limit of the mean P(label right) of some rows."""
        rows = self.rows.subset(chosen)
        within = np.full(len(chosen), 1 / len(chosen))
        gradient = within @ rows.gradients(self.predicted_posterior[chosen], rows.observed)
        _, largest = self.moved(gradient, _CONFIDENCE)
        return rows.share(largest, rows.observed, within)

    def after(self, sample: IntArray, counts: FloatArray) -> TrueClassModel:
        """Return the model with the covariance to expect after more checks.

        Parameters
        ----------
        sample : ndarray of int
            Rows like those to check.
        counts : ndarray of shape (n_sample,)
            Number of checked rows that each of them stands for.
        """
        posterior = self.predicted_posterior[sample]
        expected = information(self.rows.design(sample), posterior, counts)
        covariance = np.linalg.inv(np.linalg.inv(self.covariance) + expected)
        return replace(self, covariance=np.asarray(covariance, dtype=float))
