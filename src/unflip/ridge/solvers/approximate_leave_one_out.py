r"""Approximate leave-one-out scores of a convex loss, by one Newton step from the fit.

With z̃ = (z, 1) (or z without an intercept), gradient gᵢ and curvature Cᵢ of row i's loss at its
score, and

.. math:: A = \sum_j w_j\, C_j \otimes \tilde z_j \tilde z_j^\top + 2 n \gamma
          \quad (\text{the intercept is not regularized}), \qquad
          h_i = (I \otimes \tilde z_i)^\top A^{-1} (I \otimes \tilde z_i) \in R^{r \times r},

the step that minimises the loss of the other rows, at the same nγ, moves row i's score to

.. math:: s_i^{(-i)} = s_i + h_i (I - w_i C_i h_i)^{-1} w_i g_i.

It is exact for the squared loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from unflip._utils.typing import FloatArray, IntArray
from unflip.losses import ScoreLoss
from unflip.ridge.solvers.newton import Objective
from unflip.ridge.spectrum.left_out import SMALLEST_SLACK, CannotLeaveOutError

# Rows whose products are computed at a time: limits memory.
_BLOCK = 1024


@dataclass(frozen=True, eq=False)
class ApproximateLeaveOneOut:
    """Approximate leave-one-out fits for every γ; see `unflip.ridge.spectrum.LeaveOneOut`.

    Attributes
    ----------
    targets : ndarray of shape (m, r)
        Targets of the rows.
    fitted : ndarray of shape (m, n_regs, r)
        Fitted scores of the rows.
    leverage : ndarray of shape (m, n_regs, r, r)
        hᵢ.
    removed : ndarray of shape (m,)
        Weight that leaves with each row.
    weights : ndarray of shape (m,)
        The rows' weights in the fit.
    mean_target : ndarray of shape (r,) or None
        t̄, with an intercept.
    mean_curvature : ndarray of shape (n_regs, r, r)
        C̄, the mean of ℓ″ over the rows at each fit.
    mean_response : ndarray of shape (n_regs, r, r)
        R̄, the mean of −∂ℓ′/∂t over the rows: moving row j's target by δ moves row i's score by
        about wⱼ z̃ᵢᵀA⁻¹z̃ⱼ R̄δ, which is C̄⁻¹R̄ times the hat matrix of a ridge fit with
        regularization strength 2γC̄⁻¹ (γ for the squared loss).
    loss : callable
        Returns the loss of the rows, given their targets.
    """

    targets: FloatArray
    fitted: FloatArray
    leverage: FloatArray
    removed: FloatArray
    weights: FloatArray
    mean_target: FloatArray | None
    mean_curvature: FloatArray
    mean_response: FloatArray
    loss: Callable[[FloatArray], ScoreLoss]

    @property
    def scores(self) -> FloatArray:
        """Score of each row by the fit to all other rows, (m, n_regs, r)."""
        return np.stack([self._scores(j) for j in range(self.fitted.shape[1])], axis=1)

    @property
    def corrected_scores(self) -> FloatArray:
        r"""Leave-one-out scores, corrected for leakage of a row's own target.

        The mean target of the remaining rows differs from that of all by wᵢ(tᵢ − t̄)/(n − wᵢ), and
        their intercept changes by that times the ratio of mean response and mean curvature. Adding
        it back,

        .. math:: s_i^{(-i)} + \Bigl(\sum_{j \ne i} w_j C_j\Bigr)^{-1}
                  \Bigl(\sum_{j \ne i} w_j R_j\Bigr) \frac{w_i (t_i - \bar t)}{n - w_i},

        gives scores in which row i's own label does not enter, as for the squared loss, where the
        ratio is 1. For the logistic loss it is wᵢ(τᵢ − τ̄) over the sum of the others' curvatures.
        """
        scores = self.scores
        if self.mean_target is None:
            return scores
        n = self.weights.sum()
        missing = (self.targets - self.mean_target) * (self.removed / (n - self.removed))[:, None]
        return scores + np.stack(
            [self._intercept_shift(j, missing) for j in range(self.fitted.shape[1])], axis=1
        )

    def of_duplicates(
        self, owner: IntArray, targets: FloatArray, share: FloatArray
    ) -> ApproximateLeaveOneOut:
        """Leave out a share of each row.

        Row i of the result is a copy of row ``owner[i]`` that has a target of its own and leaves
        with a share of that row's weight.
        """
        return replace(
            self,
            targets=targets[:, None] if targets.ndim == 1 else targets,
            fitted=self.fitted[owner],
            leverage=self.leverage[owner],
            removed=share * self.removed[owner],
        )

    def _scores(self, index: int) -> FloatArray:
        fitted = self.fitted[:, index]
        leverage = self.leverage[:, index]
        loss = self.loss(self.targets)
        weight = self.removed[:, None, None]
        slack = np.eye(fitted.shape[1]) - weight * np.matmul(loss.curvature(fitted), leverage)
        if np.linalg.eigvals(slack).real.min() <= SMALLEST_SLACK:
            raise CannotLeaveOutError
        slopes = np.linalg.solve(slack, weight * loss.gradient(fitted)[:, :, None])
        return np.asarray(fitted + np.matmul(leverage, slopes)[:, :, 0])

    def _added_curvature(self, index: int) -> float:
        """Return the curvature to add so that the mean is at least a tenth of that at zero scores.

        If scores are so large that the loss is almost straight, the first-order change of the
        intercept would be far too large.
        """
        at_zero = self.loss(self.targets[:1]).curvature(np.zeros((1, self.targets.shape[1])))[0]
        smallest = float(np.linalg.eigvalsh(self.mean_curvature[index])[0])
        return max(0.1 * float(np.trace(at_zero)) / len(at_zero) - smallest, 0.0)

    def _intercept_shift(self, index: int, missing: FloatArray) -> FloatArray:
        """Return the change of the others' intercept for a shift of their targets."""
        n = self.weights.sum()
        removed = self.removed[:, None, None]
        loss = self.loss(self.targets)
        fitted = self.fitted[:, index]
        curvature = n * self.mean_curvature[index] - removed * loss.curvature(fitted)
        curvature = curvature + n * self._added_curvature(index) * np.eye(fitted.shape[1])
        response = n * self.mean_response[index] - removed * loss.response(fitted)
        return np.asarray(
            np.linalg.solve(curvature, np.matmul(response, missing[:, :, None]))[:, :, 0]
        )


def leverages(objective: Objective, scores: FloatArray, *, largest_exact: int) -> FloatArray:
    """Return hᵢ of each row at these scores, (m, r, r).

    Up to `largest_exact` unknowns A is formed and factored. Beyond, every row gets one common
    curvature C*, so that A is diagonal in the principal directions and the axes of C*.
    """
    curvature = positive_curvature(objective.loss.curvature(scores))
    n_unknowns = len(objective.reg_curvature) * scores.shape[1]
    if n_unknowns <= largest_exact:
        return _exact_leverages(objective, curvature)
    return _common_curvature_leverages(objective, curvature)


def positive_curvature(curvature: FloatArray) -> FloatArray:
    """Return curvatures, (m, r, r), plus 1e-12: all may vanish where scores are large."""
    return np.asarray(curvature + 1e-12 * np.eye(curvature.shape[1]))


def _exact_leverages(objective: Objective, curvature: FloatArray) -> FloatArray:
    size = len(objective.reg_curvature)
    n_scores = curvature.shape[1]
    pairs = [(a, b) for a in range(n_scores) for b in range(a + 1)]
    matrix = np.zeros((n_scores, size, n_scores, size))
    weighted = objective.weights[:, None, None] * curvature
    for block, rows in _blocks(objective):
        for a, b in pairs:
            matrix[a, :, b, :] += _weighted_gram(rows, weighted[block, a, b], positive=a == b)
    for a, b in pairs:
        matrix[b, :, a, :] = matrix[a, :, b, :]  # symmetric in both pairs of axes
    matrix[range(n_scores), :, range(n_scores), :] += np.diag(objective.n * objective.reg_curvature)
    factor = cho_factor(
        matrix.reshape(n_scores * size, n_scores * size),
        lower=True,
        overwrite_a=True,
        check_finite=False,
    )
    inverse = cho_solve(factor, np.eye(n_scores * size), overwrite_b=True, check_finite=False)
    inverse = inverse.reshape(matrix.shape)
    leverage = np.empty_like(curvature)
    for block, rows in _blocks(objective):
        for a, b in pairs:
            values = np.einsum("ij,ij->i", rows @ inverse[a, :, b, :], rows)
            leverage[block, a, b] = leverage[block, b, a] = values
    return leverage


def _blocks(objective: Objective) -> Iterator[tuple[slice, FloatArray]]:
    """Yield the rows z̃ in blocks."""
    for first in range(0, len(objective.rows), _BLOCK):
        block = slice(first, first + _BLOCK)
        rows = objective.rows[block]
        if objective.fit_intercept:
            rows = np.column_stack([rows, np.ones(len(rows))])
        yield block, rows


def _weighted_gram(rows: FloatArray, weights: FloatArray, *, positive: bool) -> FloatArray:
    if not positive:
        return np.asarray((weights[:, None] * rows).T @ rows)
    scaled = np.sqrt(weights)[:, None] * rows
    return np.asarray(scaled.T @ scaled)  # BLAS computes AᵀA with half the work


def _common_curvature_leverages(objective: Objective, curvature: FloatArray) -> FloatArray:
    """Return leverages with one curvature C* for all rows, of the same mean effect as their own.

    The effective curvature of a row of curvature C is C(I + wkC)⁻¹, where k is its leverage in the
    fit to the other rows. C* is such that the mean of that over the rows, each with its wk, is the
    same with C* as with their own curvatures: for one score, the fit then has the same degrees of
    freedom. The mean curvature C̄ would be too large. Row i is removed from A with curvature C* and
    added again with its own.
    """
    common = objective.mean_curvature(curvature)
    squares = objective.rows**2
    for _ in range(50):  # fixed-point iterations, to a relative change of 1e-4
        left_out = _left_out_leverages(objective, squares, common)
        own_mean = _mean_effective_curvature(objective, left_out, curvature)
        common_mean = _mean_effective_curvature(objective, left_out, common[None, :, :])
        update = common @ np.linalg.solve(common_mean, own_mean)
        change = np.abs(update - common).max()
        common = (update + update.T) / 2
        if change <= 1e-4 * np.abs(common).max():
            break
    left_out = _left_out_leverages(objective, squares, common)
    return np.asarray(np.linalg.solve(_damping(objective, left_out, curvature), left_out))


def _left_out_leverages(
    objective: Objective, squares: FloatArray, common: FloatArray
) -> FloatArray:
    """Return k, the leverage of each row in the fit to the others with curvature C*, (m, r, r)."""
    values, axes = np.linalg.eigh(common)
    inverse = 1 / (objective.variances[:, None] * values[None, :] + 2 * objective.reg)
    along = (squares @ inverse + (1 / values if objective.fit_intercept else 0.0)) / objective.n
    slack = np.maximum(1 - objective.weights[:, None] * values * along, SMALLEST_SLACK)
    return np.asarray(np.einsum("aj,ij,bj->iab", axes, along / slack, axes))


def _damping(objective: Objective, left_out: FloatArray, curvature: FloatArray) -> FloatArray:
    """Return I + wkC of each row, (m, r, r)."""
    products = np.matmul(left_out, curvature)
    return np.asarray(np.eye(curvature.shape[1]) + objective.weights[:, None, None] * products)


def _mean_effective_curvature(
    objective: Objective, left_out: FloatArray, curvature: FloatArray
) -> FloatArray:
    """Return the mean of C(I + wkC)⁻¹ over the rows, weighted by wk, (r, r)."""
    damping = _damping(objective, left_out, curvature)
    effective = np.linalg.solve(
        np.swapaxes(damping, 1, 2), np.broadcast_to(curvature, damping.shape)
    )
    share = objective.weights * np.trace(left_out, axis1=1, axis2=2)
    return np.asarray(np.tensordot(share / share.sum(), effective, axes=1))
