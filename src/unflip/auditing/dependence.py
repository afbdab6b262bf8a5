r"""A goodness-of-fit test of class-conditional noise.

If noise depends on the true class alone, the labels at a score s follow P(ỹ = b | s) = Σ_a P(a | s)
T_ab, with log-odds of the true class that are linear in the score. As in the Hosmer-Lemeshow test,
rows are split into ten bins by score, and the counts O of the observed classes are compared with
the expected counts E. The statistic

.. math:: \sum_{\text{bins}} \sum_b (O_b - E_b)^2 / E_b

has a χ² distribution with (10 − 2)(k − 1) degrees of freedom.

The slope and the intercepts of the log-odds are fitted to the observed labels by maximum
likelihood, because an error of the calibration would look like dependence. If noise rates have
standard errors, the covariance of the residuals r grows by the change d of r per standard error of
each rate: the statistic is rᵀ(I + Σddᵀ)⁻¹r.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import minimize
from scipy.stats import chi2

from unflip._utils.arrays import TINY, in_columns, pick, row_products, softmax
from unflip._utils.typing import FloatArray, IntArray
from unflip.auditing.evidence import Evidence

_N_BINS = 10  # as Hosmer and Lemeshow use
_SIGNIFICANCE = 0.01  # share of data sets with class-conditional noise that the test rejects


@dataclass(frozen=True)
class Dependence:
    """Result of the test of class-conditional noise.

    Attributes
    ----------
    statistic : float
        χ² statistic of the labels, binned by score. NaN if there are too few rows, or if there are
        votes instead of labels.
    degrees : int
        Degrees of freedom.
    p_value : float
        Small if noise is instance-dependent, if the noise rates are wrong, or if the log-odds are
        not linear in the score.
    """

    statistic: float
    degrees: int
    p_value: float

    @property
    def rejected(self) -> bool:
        """Whether the labels contradict class-conditional noise (p-value below 0.01)."""
        return self.p_value < _SIGNIFICANCE


def dependence_test(evidence: Evidence) -> Dependence:
    """Compare the observed labels with those that the noise model expects at each score."""
    n, k = evidence.probabilities.shape
    n_bins = min(_N_BINS, n // 10)  # with fewer rows per bin, the χ² approximation is poor
    if n_bins < 4 or evidence.noise.votes is not None:
        return Dependence(np.nan, 0, np.nan)
    reference = int(np.bincount(evidence.codes).argmax())
    order = np.argsort(-evidence.log_scores[:, reference], kind="stable")
    bins = np.empty(n, dtype=np.intp)
    bins[order] = np.arange(n) * n_bins // n
    counts = np.bincount(bins * k + evidence.codes, minlength=n_bins * k).reshape(n_bins, k)
    fit = _LabelFit.to(evidence.log_scores, evidence.codes, evidence.noise.model.transition)
    expected = fit.counts(bins)
    scale = np.sqrt(evidence.n_effective / n / np.maximum(expected, 1e-9))
    residual = ((counts - expected) * scale).ravel()
    covariance = np.eye(residual.size)
    shifts = np.zeros((1, 1))
    for noise in evidence.noise_one_error_away():
        moved = fit.under(noise.model.transition)
        shift = ((expected - moved.counts(bins)) * scale).ravel()
        shifts = shifts + np.outer(shift, shift)
    statistic = float(residual @ np.linalg.solve(covariance + shifts, residual))
    degrees = (n_bins - 2) * (k - 1)
    return Dependence(statistic, degrees, float(chi2.sf(statistic, degrees)))


@dataclass(frozen=True, eq=False)
class _LabelFit:
    """P(true class | row) ∝ exp(τ·score + b), fitted to the observed labels by maximum likelihood.

    Attributes
    ----------
    scores : ndarray of shape (n, k)
        Log-odds of each class against the first.
    codes : ndarray of shape (n,)
        Observed labels.
    transition : ndarray of shape (k, k)
        P(observed | true).
    parameters : ndarray of shape (k,)
        log τ, and b of all classes but the first.
    """

    scores: FloatArray
    codes: IntArray
    transition: FloatArray
    parameters: FloatArray

    @classmethod
    def to(cls, log_scores: FloatArray, codes: IntArray, transition: FloatArray) -> _LabelFit:
        """Fit the observed labels under a transition matrix."""
        start = cls(
            in_columns(log_scores - log_scores[:, :1]), codes, transition, np.zeros(len(transition))
        )

        def cost(parameters: FloatArray) -> tuple[float, FloatArray]:
            fit = replace(start, parameters=parameters)
            return -float(np.log(fit.observed).mean()), -fit.gradients.mean(axis=0)

        best = minimize(cost, start.parameters, jac=True, method="L-BFGS-B", bounds=start.limits).x
        return replace(start, parameters=best)

    def under(self, transition: FloatArray) -> _LabelFit:
        """Return the fit under similar noise rates: a few Fisher scoring steps from this fit."""
        fit = replace(self, transition=transition)
        low, high = np.array(self.limits).T
        for _ in range(3):  # enough for rates one standard error away (see the unit test)
            gradients = fit.gradients
            information = gradients.T @ gradients
            # Makes the information invertible if a parameter has no effect.
            ridge = np.finfo(float).eps * len(gradients) * np.trace(information) + TINY
            step = np.linalg.solve(
                information + ridge * np.eye(len(information)), gradients.sum(axis=0)
            )
            fit = replace(fit, parameters=np.clip(fit.parameters + step, low, high))
        return fit

    @property
    def limits(self) -> list[tuple[float, float]]:
        """Bounds of log τ and of each b, wide enough for any calibration."""
        return [(-5.0, 3.0)] + [(-20.0, 20.0)] * (len(self.transition) - 1)

    @cached_property
    def probabilities(self) -> FloatArray:
        """P(true class | row), (n, k)."""
        return np.asarray(
            softmax(np.exp(self.parameters[0]) * self.scores + np.append(0.0, self.parameters[1:]))
        )

    @cached_property
    def observed(self) -> FloatArray:
        """P(observed label | row), (n,)."""
        observed = row_products(self.probabilities, pick(self.transition.T, self.codes))
        return np.asarray(np.maximum(observed, TINY))

    @cached_property
    def gradients(self) -> FloatArray:
        """Derivatives of each label's log-likelihood with respect to the parameters, (n, k)."""
        by_logits = self.probabilities * (
            pick(self.transition.T, self.codes) / self.observed[:, None] - 1
        )
        by_log_slope = np.exp(self.parameters[0]) * (by_logits * self.scores).sum(axis=1)
        return np.column_stack([by_log_slope, by_logits[:, 1:]])

    def counts(self, bins: IntArray) -> FloatArray:
        """Return the expected counts of the labels in each bin, (n_bins, k)."""
        sums = [np.bincount(bins, column) for column in self.probabilities.T]
        return np.asarray(np.stack(sums, axis=1) @ self.transition)
