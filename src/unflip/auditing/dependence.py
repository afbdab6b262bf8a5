r"""Do flips depend on the row? A test of what the noise model assumes.

If flips depend on the true class alone, the labels at a score s follow P(ỹ = b | s) = Σ_a P(a | s) T_ab, with log-odds
of the true class that are linear in the score. Rows are cut into ten bins by score, and counts O of the observed
classes compared with those expected, E, as Hosmer and Lemeshow do:

.. math:: \sum_{\text{bins}} \sum_b (O_b - E_b)^2 / E_b \;\sim\; \chi^2 \text{ with } (10 - 2)(k - 1) \text{ degrees}.

For the test, steepness and offsets of the log-odds are fitted to the observed labels by maximum likelihood: their
errors elsewhere would count as dependence. Doubtful rates widen the law of the residuals r by what one standard error
moves them, d: the statistic is rᵀ(I + Σddᵀ)⁻¹r.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax
from scipy.stats import chi2

from unflip._typing import FloatArray, IntArray
from unflip.auditing.evidence import Evidence

_N_BINS = 10
_FEWEST_PER_BIN = 10
_FEWEST_BINS = 4


@dataclass(frozen=True)
class Dependence:
    """A test of flips that depend on the true class alone.

    Attributes
    ----------
    statistic : float
        χ² of the labels in bins of the score; NaN where there are too few rows for it, or votes in their place.
    degrees : int
        Its degrees of freedom.
    p_value : float
        Small where flips depend on the row, or the rates are wrong, or log-odds are not linear in the score.
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
    counts, expected = _counts(evidence, bins)
    scale = np.sqrt(evidence.n_rows / n / np.maximum(expected, 1e-9))
    residual = ((counts - expected) * scale).ravel()
    moves = [((expected - _counts(other, bins)[1]) * scale).ravel() for other in evidence.one_error_away()]
    widened = np.eye(residual.size) + sum((np.outer(move, move) for move in moves), np.zeros((1, 1)))
    statistic = float(residual @ np.linalg.solve(widened, residual))
    degrees = (n_bins - 2) * (k - 1)
    return Dependence(statistic, degrees, float(chi2.sf(statistic, degrees)))


def _counts(evidence: Evidence, bins: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the counts of the observed classes in each bin, and those expected, (n_bins, k) each."""
    transition, n_bins = evidence.noise.model.transition, int(bins.max()) + 1
    member = np.eye(n_bins)[bins]
    fitted = _recalibrated(evidence.log_scores, evidence.codes, transition)
    return member.T @ np.eye(len(transition))[evidence.codes], member.T @ (fitted @ transition)


def _recalibrated(log_scores: FloatArray, codes: IntArray, transition: FloatArray) -> FloatArray:
    """P(true class | row) ∝ exp(τ·score + b) with τ and b under which the observed labels are likeliest."""
    scores = log_scores - log_scores[:, :1]
    likelihoods = transition[:, codes].T

    def logits(parameters: FloatArray) -> FloatArray:
        return np.asarray(np.exp(parameters[0]) * scores + np.append(0.0, parameters[1:]))

    def cost(parameters: FloatArray) -> tuple[float, FloatArray]:
        probability = softmax(logits(parameters), axis=1)
        observed = np.maximum((probability * likelihoods).sum(axis=1, keepdims=True), np.finfo(float).tiny)
        slope = probability * (likelihoods / observed - 1) / len(codes)  # of the mean log-likelihood, by the logits
        gradient = np.append(np.exp(parameters[0]) * (slope * scores).sum(), slope[:, 1:].sum(axis=0))
        return -float(np.log(observed).mean()), -gradient

    limits = [(-5.0, 3.0)] + [(-20.0, 20.0)] * (len(transition) - 1)
    best = minimize(cost, np.zeros(len(transition)), jac=True, method="L-BFGS-B", bounds=limits).x
    return np.asarray(softmax(logits(best), axis=1))
