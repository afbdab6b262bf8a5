r"""Minimise a ridge-regularized convex loss by Newton's method with conjugate gradients.

In principal coordinates the rows' covariance is diagonal with variances λ, so that the Hessian of

.. math:: F(B, b) = \frac1n \sum_i w_i\, \ell_i(B^\top z_i + b) + \gamma \lVert B \rVert^2,
          \qquad n = \sum_i w_i,

would be C̄ ⊗ diag(λ) + 2γ if every row had the mean curvature C̄. Its inverse has a closed form.
With it as a preconditioner, a few conjugate gradient steps solve for each Newton step. It is exact
for the squared loss.

Scores are linear in the step, so a line search needs no product with the rows. It searches for a
zero of the slope along the line, not for a lower value: the slope has accurate digits where values
no longer differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import root_scalar
from scipy.sparse.linalg import LinearOperator, cg

from unflip._utils.typing import FloatArray
from unflip.losses import ScoreLoss

#: Default limit on Newton steps. All fits of its tests converge within 50.
MAX_ITERATIONS = 100
# Share of the initial slope that a step of accepted length may leave. The minimum does not depend
# on it: 0.05 and 0.5 change no test of the module.
_ACCEPTED_SLOPE = 0.1
# Numbers in a block of rows: 1 MiB stays in the cache between two products.
_BLOCK = 2**17


@dataclass(frozen=True, eq=False)
class Objective:
    """F(B, b) for one regularization strength; its argument stacks B and b (if any) below it."""

    rows: FloatArray  # Z, (m, d), about the mean with an intercept
    weights: FloatArray  # (m,)
    variances: FloatArray  # λ, (d,)
    fit_intercept: bool
    loss: ScoreLoss
    reg: float

    @property
    def n(self) -> float:
        """Total weight."""
        return float(self.weights.sum())

    @property
    def reg_curvature(self) -> FloatArray:
        """Curvature of the regularization term: 2γ for each direction, and 0 for b."""
        return self._stacked(2 * self.reg, 0.0)

    def unit(self, scores: FloatArray) -> FloatArray:
        """Return the size of each row of the gradient if the terms of all rows had the same sign.

        It is the root mean square of ℓ′, times the largest standard deviation of a principal
        direction for B. So convergence does not depend on the scale of the features or the targets,
        nor on how well the rows are fitted.
        """
        squares = np.sum(self.weights[:, None] * self.loss.gradient(scores) ** 2)
        slope = float(np.sqrt(squares / self.n))
        largest = float(np.sqrt(self.variances.max(initial=0.0))) or 1.0
        # Below 1e-4, gradients come close to rounding errors.
        return max(slope, 1e-4) * self._stacked(largest, 1.0)

    def scores(self, argument: FloatArray) -> FloatArray:
        """Return Bᵀzᵢ + b."""
        n_directions = len(self.variances)
        return np.asarray(self.rows @ argument[:n_directions] + argument[n_directions:].sum(axis=0))

    def gradient(self, argument: FloatArray, scores: FloatArray) -> FloatArray:
        """Return ∇F, where `scores` are those of the argument."""
        slopes = (self.weights / self.n)[:, None] * self.loss.gradient(scores)
        return np.asarray(self._summed(slopes) + self.reg_curvature[:, None] * argument)

    def hessian_product(self, curvature: FloatArray, direction: FloatArray) -> FloatArray:
        """Return the product of the Hessian with a direction, for curvatures of shape (m, r, r).

        Rows are read once: a block is used for the scores and the sum while it is in the cache.
        """
        n_directions = len(self.variances)
        coef = direction[:n_directions]
        intercept = direction[n_directions:].sum(axis=0)
        share = self.weights / self.n
        total = self.reg_curvature[:, None] * direction
        size = max(_BLOCK // max(n_directions, 1), 1)
        for first in range(0, len(self.rows), size):
            block = slice(first, first + size)
            scores = self.rows[block] @ coef + intercept
            slopes = _apply(curvature[block], scores) * share[block, None]
            total[:n_directions] += self.rows[block].T @ slopes
            total[n_directions:] += slopes.sum(axis=0)
        return np.asarray(total)

    def mean_curvature(self, curvature: FloatArray) -> FloatArray:
        """Return the mean curvature C̄, (r, r)."""
        return np.asarray(np.tensordot(self.weights / self.n, curvature, axes=1))

    def _stacked(self, of_coef: float, of_intercept: float) -> FloatArray:
        return np.append(
            np.full(len(self.variances), of_coef), np.full(int(self.fit_intercept), of_intercept)
        )

    def _summed(self, slopes: FloatArray) -> FloatArray:
        if not self.fit_intercept:
            return np.asarray(self.rows.T @ slopes)
        return np.vstack([self.rows.T @ slopes, slopes.sum(axis=0)])


@dataclass(frozen=True, eq=False)
class Minimum:
    """Result of the minimisation.

    Attributes
    ----------
    argument : ndarray of shape (d [+ 1], r)
        B and, with an intercept, b below it.
    scores : ndarray of shape (m, r)
        Scores of the rows.
    gradient : float
        Largest entry of ∇F in principal coordinates.
    relative_gradient : float
        The same with each entry in its `Objective.unit`.
    n_iterations : int
        Number of Newton steps.
    converged : bool
        Whether the relative gradient is within the tolerance, or as small as rounding allows.
    """

    argument: FloatArray
    scores: FloatArray
    gradient: float
    relative_gradient: float
    n_iterations: int
    converged: bool


def minimise(
    objective: Objective, start: FloatArray, *, tolerance: float, max_iterations: int
) -> Minimum:
    """Minimise the objective until the relative gradient is within the tolerance.

    A relative gradient below 1e-8 that no longer falls is accepted, too: rounding errors may keep
    it above the tolerance. The start has shape (d [+ 1], r).
    """
    argument = start
    scores = objective.scores(start)
    n_iterations = 0
    relative_before = np.inf
    while True:
        gradient = objective.gradient(argument, scores)
        largest = float(np.max(np.abs(gradient), initial=0.0))
        relative = float(np.max(np.abs(gradient) / objective.unit(scores)[:, None], initial=0.0))
        has_stalled = relative <= 1e-8 and relative > relative_before / 2
        converged = relative <= tolerance or has_stalled
        if converged or n_iterations == max_iterations:
            return Minimum(argument, scores, largest, relative, n_iterations, converged)
        relative_before = relative
        # Inexact Newton steps: rough far from the minimum, and no better than the last one needs.
        accuracy = max(min(0.1, relative**0.5), 0.3 * tolerance / relative)
        step = newton_step(objective, scores, gradient, accuracy)
        score_step = objective.scores(step)
        length = _step_length(objective, argument, scores, step, score_step)
        argument = argument + length * step
        scores = scores + length * score_step
        n_iterations += 1


def best_constant(objective: Objective, *, tolerance: float) -> FloatArray:
    """Return the start of fits: no coefficients, and with an intercept the best constant score."""
    start = np.zeros((len(objective.reg_curvature), objective.loss.n_scores))
    if objective.fit_intercept:
        constant = replace(objective, rows=objective.rows[:, :0], variances=objective.variances[:0])
        minimum = minimise(constant, start[-1:], tolerance=tolerance, max_iterations=MAX_ITERATIONS)
        start[-1:] = minimum.argument
    return start


def newton_step(
    objective: Objective, scores: FloatArray, gradient: FloatArray, accuracy: float
) -> FloatArray:
    """Return −H⁻¹∇F to a relative accuracy, by preconditioned conjugate gradients."""
    curvature = objective.loss.curvature(scores)
    values, axes = np.linalg.eigh(objective.mean_curvature(curvature))
    spread = np.append(objective.variances, np.ones(int(objective.fit_intercept)))
    # A curvature of at least 1e-8 keeps the preconditioner invertible.
    diagonal = np.maximum(values, 1e-8)[None, :] * spread[:, None]
    diagonal = diagonal + objective.reg_curvature[:, None]
    root = np.sqrt(diagonal)
    shape = gradient.shape

    # In coordinates in which the preconditioner is the identity: B = (U/√D) Eᵀ.
    def product(flat: FloatArray) -> FloatArray:
        scaled = flat.reshape(shape)
        curved = objective.hessian_product(curvature, (scaled / root) @ axes.T)
        # Damping by 1e-14 keeps the Hessian positive where every curvature vanishes.
        return np.asarray((curved @ axes / root + 1e-14 * scaled).ravel())

    operator = LinearOperator((gradient.size, gradient.size), matvec=product, dtype=float)
    right = -((gradient @ axes) / root).ravel()
    solution, _ = cg(operator, right, rtol=accuracy, atol=0.0, maxiter=gradient.size)
    return np.asarray((solution.reshape(shape) / root) @ axes.T)


def _step_length(
    objective: Objective,
    argument: FloatArray,
    scores: FloatArray,
    step: FloatArray,
    score_step: FloatArray,
) -> float:
    """Return the length at which the slope along the step is about 0; 1 if a full step is close."""
    weighted_step = (objective.weights / objective.n)[:, None] * score_step
    reg_step = objective.reg_curvature[:, None] * step

    def slope(length: float) -> float:
        slopes = objective.loss.gradient(scores + length * score_step)
        reg_slope = np.sum(reg_step * (argument + length * step))
        return float(np.sum(weighted_step * slopes) + reg_slope)

    descent = -slope(0.0)
    low = 0.0
    high = 1.0
    slope_at_high = slope(high)
    if descent <= 0 or abs(slope_at_high) <= _ACCEPTED_SLOPE * descent:
        return 1.0
    for _ in range(3):  # then a new Newton direction is better than a longer step
        if slope_at_high >= 0:
            break
        low = high
        high = 2 * high
        slope_at_high = slope(high)
    if slope_at_high <= 0:
        return high
    # Where a loss is straight, steps are far too long, so the tolerance of their length is
    # relative only.
    shortest = float(np.finfo(float).tiny)
    return float(root_scalar(slope, bracket=(low, high), xtol=shortest, rtol=_ACCEPTED_SLOPE).root)


def _apply(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Multiply each vector by its matrix."""
    if vectors.shape[1] == 1:
        return np.asarray(matrices[:, :, 0] * vectors)
    return np.asarray(np.matmul(matrices, vectors[:, :, None])[:, :, 0])
