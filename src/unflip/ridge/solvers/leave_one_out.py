r"""Approximate leave-one-out scores of a ridge-penalised convex loss: one Newton step from the fit to all rows.

With z̃ = (z, 1) (or z without an intercept), gradient gᵢ and curvature Cᵢ of row i's loss at its
score, and

.. math:: A = \sum_j w_j\, C_j \otimes \tilde z_j \tilde z_j^\top + 2 n \gamma
          \quad (\text{no penalty on the intercept}), \qquad
          h_i = (I \otimes \tilde z_i)^\top A^{-1} (I \otimes \tilde z_i) \in R^{r \times r},

the step that minimises the loss of the other rows, at the same penalty nγ, takes row i's score to

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
from unflip.ridge.spectrum.left_out import CannotLeaveOutError

_SMALLEST_SLACK = 1e-10
_BLOCK = 1024
_SMALLEST_CURVATURE = 1e-12
_MOST_UPDATES = 50
_SETTLED = 1e-4
_LEAST_BENT = 0.1


@dataclass(frozen=True, eq=False)
class ApproximateLeaveOneOut:
    """What every row's fit to the others is made of, for every γ; see `unflip.ridge.spectrum.LeaveOneOut`.

    Attributes
    ----------
    targets : ndarray of shape (m, r)
        Targets of the rows.
    fitted : ndarray of shape (m, n_regs, r)
        Scores of the rows by the fit to all of them.
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
        about wⱼ z̃ᵢᵀA⁻¹z̃ⱼ R̄δ, which is C̄⁻¹R̄ times the hat matrix of a ridge fit of penalty
        2γC̄⁻¹ (that of γ for the squared loss).
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
        r"""Leave-one-out scores without the trace that a row's own target leaves on the others' intercept.

        The mean target of the remaining rows differs from that of all by wᵢ(tᵢ − t̄)/(n − wᵢ), and
        their intercept answers by that times the ratio of mean response and mean curvature. Adding
        it back,

        .. math:: s_i^{(-i)} + \Bigl(\sum_{j \ne i} w_j C_j\Bigr)^{-1} \Bigl(\sum_{j \ne i} w_j R_j\Bigr)
                  \frac{w_i (t_i - \bar t)}{n - w_i},

        leaves scores in which row i's own label has no part, as for the squared loss, where the
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

    def of_copies(
        self, owner: IntArray, targets: FloatArray, share: FloatArray
    ) -> ApproximateLeaveOneOut:
        """Leave out parts of rows.

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
        fitted, leverage, loss = (
            self.fitted[:, index],
            self.leverage[:, index],
            self.loss(self.targets),
        )
        weight = self.removed[:, None, None]
        slack = np.eye(fitted.shape[1]) - weight * np.matmul(loss.curvature(fitted), leverage)
        if np.linalg.eigvals(slack).real.min() <= _SMALLEST_SLACK:
            raise CannotLeaveOutError
        pull = np.linalg.solve(slack, weight * loss.gradient(fitted)[:, :, None])
        return np.asarray(fitted + np.matmul(leverage, pull)[:, :, 0])

    def _straightened(self, index: int) -> float:
        """Return what the mean curvature lacks to a share of that at scores of zero.

        Where scores have run off to where the loss hardly bends, an intercept would answer without
        end to first order, but does not.
        """
        at_zero = self.loss(self.targets[:1]).curvature(np.zeros((1, self.targets.shape[1])))[0]
        smallest = float(np.linalg.eigvalsh(self.mean_curvature[index])[0])
        return max(_LEAST_BENT * float(np.trace(at_zero)) / len(at_zero) - smallest, 0.0)

    def _intercept_shift(self, index: int, missing: FloatArray) -> FloatArray:
        """Answer of the others' intercept to a shift of their targets."""
        n, own = self.weights.sum(), self.removed[:, None, None]
        loss, fitted = self.loss(self.targets), self.fitted[:, index]
        curvature = n * self.mean_curvature[index] - own * loss.curvature(fitted)
        curvature = curvature + n * self._straightened(index) * np.eye(fitted.shape[1])
        response = n * self.mean_response[index] - own * loss.response(fitted)
        return np.asarray(
            np.linalg.solve(curvature, np.matmul(response, missing[:, :, None]))[:, :, 0]
        )


def leverages(objective: Objective, scores: FloatArray, *, largest_exact: int) -> FloatArray:
    """Return hᵢ of each row at these scores, (m, r, r).

    Up to `largest_exact` unknowns A is formed and factored. Beyond, every row is given one common
    curvature C*, so that A is diagonal in the principal directions and the axes of C*.
    """
    curvature = bent(objective.loss.curvature(scores))
    n_unknowns = len(objective.penalties) * scores.shape[1]
    return (_exact if n_unknowns <= largest_exact else _common)(objective, curvature)


def bent(curvature: FloatArray) -> FloatArray:
    """Return curvatures, (m, r, r), with a little added: all may vanish, as where scores are large."""
    return np.asarray(curvature + _SMALLEST_CURVATURE * np.eye(curvature.shape[1]))


def _exact(objective: Objective, curvature: FloatArray) -> FloatArray:
    size, n_scores = len(objective.penalties), curvature.shape[1]
    pairs = [(a, b) for a in range(n_scores) for b in range(a + 1)]
    matrix = np.zeros((n_scores, size, n_scores, size))
    weighted = objective.weights[:, None, None] * curvature
    for block, rows in _blocks(objective):
        for a, b in pairs:
            matrix[a, :, b, :] += _weighted_gram(rows, weighted[block, a, b], positive=a == b)
    for a, b in pairs:
        matrix[b, :, a, :] = matrix[a, :, b, :]  # symmetric in both pairs of axes
    matrix[range(n_scores), :, range(n_scores), :] += np.diag(objective.n * objective.penalties)
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
    """Rows z̃, some at a time, so that what is made of them stays small."""
    for first in range(0, len(objective.rows), _BLOCK):
        block = slice(first, first + _BLOCK)
        rows = objective.rows[block]
        yield (
            block,
            np.column_stack([rows, np.ones(len(rows))]) if objective.fit_intercept else rows,
        )


def _weighted_gram(rows: FloatArray, weights: FloatArray, *, positive: bool) -> FloatArray:
    if not positive:
        return np.asarray((weights[:, None] * rows).T @ rows)
    scaled = np.sqrt(weights)[:, None] * rows
    return np.asarray(scaled.T @ scaled)  # a matrix by itself: half the work


def _common(objective: Objective, curvature: FloatArray) -> FloatArray:
    """Give every row the curvature C* that holds the fit as stiffly as their own curvatures do.

    A row of curvature C resists with C(I + wkC)⁻¹, where k is its leverage among the others. C* is
    such that the mean of that over the rows, each with its wk, is the same with C* as with their
    own: for one score, the fit then has as many degrees of freedom. The mean curvature C̄ would be
    too stiff. Row i, of curvature C* like all others, is taken out of A and put back with its own.
    """
    common, squares = objective.mean_curvature(curvature), objective.rows**2
    for _ in range(_MOST_UPDATES):
        of_others = _among_others(objective, squares, common)
        own, shared = (
            _mean_stiffness(objective, of_others, c) for c in (curvature, common[None, :, :])
        )
        update = common @ np.linalg.solve(shared, own)
        change, common = np.abs(update - common).max(), (update + update.T) / 2
        if change <= _SETTLED * np.abs(common).max():
            break
    of_others = _among_others(objective, squares, common)
    put_back = np.eye(len(common)) + objective.weights[:, None, None] * np.matmul(
        of_others, curvature
    )
    return np.asarray(np.linalg.solve(put_back, of_others))


def _among_others(objective: Objective, squares: FloatArray, common: FloatArray) -> FloatArray:
    """Leverage of each row in the fit to the others, all of the same curvature, (m, r, r)."""
    values, axes = np.linalg.eigh(common)
    inverse = 1 / (objective.variances[:, None] * values[None, :] + 2 * objective.reg)
    along = (squares @ inverse + (1 / values if objective.fit_intercept else 0.0)) / objective.n
    without = along / np.maximum(1 - objective.weights[:, None] * values * along, _SMALLEST_SLACK)
    return np.asarray(np.einsum("aj,ij,bj->iab", axes, without, axes))


def _mean_stiffness(
    objective: Objective, of_others: FloatArray, curvature: FloatArray
) -> FloatArray:
    yielding = np.eye(curvature.shape[1]) + objective.weights[:, None, None] * np.matmul(
        of_others, curvature
    )
    stiffness = np.linalg.solve(
        np.swapaxes(yielding, 1, 2), np.broadcast_to(curvature, yielding.shape)
    )
    share = objective.weights * np.trace(of_others, axis1=1, axis2=2)
    return np.asarray(np.tensordot(share / share.sum(), stiffness, axes=1))
