r"""Do flips depend on the row? A test of what the noise model assumes.

If flips depend on the true class alone, the labels at a score s follow P(ỹ = b | s) = Σ_a P(a | s)
T_ab, with log-odds of the true class that are linear in the score. Rows are cut into ten bins by
score, and counts O of the observed classes compared with those expected, E, as Hosmer and Lemeshow
do:

.. math:: \sum_{\text{bins}} \sum_b (O_b - E_b)^2 / E_b \;\sim\; \chi^2 \text{ with } (10 - 2)(k - 1) \text{ degrees}.

For the test, steepness and intercepts of the log-odds are fitted to the observed labels by maximum
likelihood: their errors elsewhere would count as dependence. Doubtful rates widen the law of the
residuals r by what one standard error moves them, d: the statistic is rᵀ(I + Σddᵀ)⁻¹r.
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

_N_BINS = 10
_FEWEST_PER_BIN = 10
_FEWEST_BINS = 4
_N_STEPS = 3


@dataclass(frozen=True)
class Dependence:
    """A test of flips that depend on the true class alone.

    Attributes
    ----------
    statistic : float
        χ² of the labels in bins of the score; NaN where there are too few rows for it, or votes in
        their place.
    degrees : int
        Its degrees of freedom.
    p_value : float
        Small where flips depend on the row, or the rates are wrong, or log-odds are not linear in
        the score.
    """

    statistic: float
    degrees: int
    p_value: float


def dependence_test(evidence: Evidence) -> Dependence:
    """Compare the observed labels with those that the noise model expects at each score."""
    n, k = evidence.probabilities.shape
    n_bins = min(_N_BINS, n // _FEWEST_PER_BIN)
    if n_bins < _FEWEST_BINS or evidence.noise.votes is not None:
        return Dependence(np.nan, 0, np.nan)
    reference = int(np.bincount(evidence.codes).argmax())
    order = np.argsort(-evidence.log_scores[:, reference], kind="stable")
    bins = np.empty(n, dtype=np.intp)
    bins[order] = np.arange(n) * n_bins // n
    counts = np.bincount(bins * k + evidence.codes, minlength=n_bins * k).reshape(n_bins, k)
    fit = _LabelFit.to(evidence.log_scores, evidence.codes, evidence.noise.model.transition)
    expected = fit.counts(bins)
    scale = np.sqrt(evidence.n_rows / n / np.maximum(expected, 1e-9))
    residual = ((counts - expected) * scale).ravel()
    others = (fit.under(noise.model.transition) for noise in evidence.noise_one_error_away())
    moves = [((expected - other.counts(bins)) * scale).ravel() for other in others]
    widened = np.eye(residual.size) + sum(
        (np.outer(move, move) for move in moves), np.zeros((1, 1))
    )
    statistic = float(residual @ np.linalg.solve(widened, residual))
    degrees = (n_bins - 2) * (k - 1)
    return Dependence(statistic, degrees, float(chi2.sf(statistic, degrees)))


@dataclass(frozen=True, eq=False)
class _LabelFit:
    """P(true class | row) ∝ exp(τ·score + b), with log τ and b that make the observed labels likeliest.

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
        """Fit labels under a noise model."""
        start = cls(
            in_columns(log_scores - log_scores[:, :1]), codes, transition, np.zeros(len(transition))
        )

        def cost(parameters: FloatArray) -> tuple[float, FloatArray]:
            fit = replace(start, parameters=parameters)
            return -float(np.log(fit.observed).mean()), -fit.gradients.mean(axis=0)

        best = minimize(cost, start.parameters, jac=True, method="L-BFGS-B", bounds=start.limits).x
        return replace(start, parameters=best)

    def under(self, transition: FloatArray) -> _LabelFit:
        """Return the fit under another noise model that is near: a few steps of Fisher scoring from this one."""
        other, (low, high) = replace(self, transition=transition), np.array(self.limits).T
        for _ in range(_N_STEPS):
            gradients = other.gradients
            information = gradients.T @ gradients
            ridge = (
                np.finfo(float).eps * len(gradients) * np.trace(information) + TINY
            )  # some may have no effect
            step = np.linalg.solve(
                information + ridge * np.eye(len(information)), gradients.sum(axis=0)
            )
            other = replace(other, parameters=np.clip(other.parameters + step, low, high))
        return other

    @property
    def limits(self) -> list[tuple[float, float]]:
        """Bounds of the parameters."""
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
        """Derivatives of the log-likelihood of each label by the parameters, (n, k)."""
        by_logits = self.probabilities * (
            pick(self.transition.T, self.codes) / self.observed[:, None] - 1
        )
        by_steepness = np.exp(self.parameters[0]) * (by_logits * self.scores).sum(axis=1)
        return np.column_stack([by_steepness, by_logits[:, 1:]])

    def counts(self, bins: IntArray) -> FloatArray:
        """Return the counts of labels to expect in each bin, (n_bins, k)."""
        sums = [np.bincount(bins, column) for column in self.probabilities.T]
        return np.asarray(np.stack(sums, axis=1) @ self.transition)
