r"""Minimise a ridge-penalised convex loss of linear scores by Newton's method with conjugate gradients.

In principal coordinates the rows' covariance is diagonal with variances λ, so that the Hessian of

.. math:: F(B, b) = \frac1n \sum_i w_i\, \ell_i(B^\top z_i + b) + \gamma \lVert B \rVert^2, \qquad n = \sum_i w_i,

would be C̄ ⊗ diag(λ) + 2γ if every row had the mean curvature C̄. Its inverse is known in closed
form, and with it as a preconditioner a few conjugate gradients solve for each Newton step. It is
exact for the squared loss.

Scores are linear in the step, so that a line search costs no product with the rows. It looks for a
zero of the slope along the line, not for a lower value: the slope keeps its digits where values no
longer differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import root_scalar
from scipy.sparse.linalg import LinearOperator, cg

from unflip._utils.typing import FloatArray
from unflip.losses import ScoreLoss

MAX_ITERATIONS = 100
_LOOSEST_STEP = 0.1  # relative residual of the first Newton steps
_NEEDED_STEP = 0.3  # residual of the last one, relative to the tolerance
_ACCEPTED_SLOPE = 0.1  # share of the slope at the start that a full step may leave, uphill
_MOST_DOUBLINGS = 3  # a further step says more of a direction that runs off than a longer one
_SMALLEST_CURVATURE = 1e-8
_DAMPING = 1e-14  # keeps the Hessian positive where every curvature vanishes
_SMALLEST_PULL = 1e-4  # below it, gradients come close to rounding errors
_STALLED = 1e-8  # a relative gradient that rounding errors may keep from falling further
_BLOCK = 1 << 17  # numbers in a block of rows: 1 MiB stays in the cache between two products


@dataclass(frozen=True, eq=False)
class Objective:
    """F(B, b) of given rows, losses and penalty; its argument stacks B and, with an intercept, b below it."""

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
    def penalties(self) -> FloatArray:
        """2γ, and 0 for b."""
        return self._stacked(2 * self.reg, 0.0)

    def unit(self, scores: FloatArray) -> FloatArray:
        """Size of each row of the gradient if all rows pulled one way.

        It is the root mean square of ℓ′, times the largest standard deviation of a principal
        direction for B. So convergence does not depend on the scale of the features or the targets,
        nor on how well the rows are fitted.
        """
        pulls = float(
            np.sqrt(np.sum(self.weights[:, None] * self.loss.gradient(scores) ** 2) / self.n)
        )
        largest = float(np.sqrt(self.variances.max(initial=0.0))) or 1.0
        return max(pulls, _SMALLEST_PULL) * self._stacked(largest, 1.0)

    def scores(self, argument: FloatArray) -> FloatArray:
        """Bᵀzᵢ + b."""
        n_directions = len(self.variances)
        return np.asarray(self.rows @ argument[:n_directions] + argument[n_directions:].sum(axis=0))

    def gradient(self, argument: FloatArray, scores: FloatArray) -> FloatArray:
        """∇F, where `scores` are those of the argument."""
        pulls = (self.weights / self.n)[:, None] * self.loss.gradient(scores)
        return np.asarray(self._summed(pulls) + self.penalties[:, None] * argument)

    def hessian_product(self, curvature: FloatArray, direction: FloatArray) -> FloatArray:
        """Product of the Hessian at scores of this curvature, (m, r, r), with a direction.

        Rows are read once: a block of them serves the scores and the sum while it is in the cache.
        """
        n_directions = len(self.variances)
        coef, offset = direction[:n_directions], direction[n_directions:].sum(axis=0)
        share = self.weights / self.n
        total = self.penalties[:, None] * direction
        size = max(_BLOCK // max(n_directions, 1), 1)
        for first in range(0, len(self.rows), size):
            block = slice(first, first + size)
            moved = _apply(curvature[block], self.rows[block] @ coef + offset) * share[block, None]
            total[:n_directions] += self.rows[block].T @ moved
            total[n_directions:] += moved.sum(axis=0)
        return np.asarray(total)

    def mean_curvature(self, curvature: FloatArray) -> FloatArray:
        """C̄, (r, r)."""
        return np.asarray(np.tensordot(self.weights / self.n, curvature, axes=1))

    def _stacked(self, of_coef: float, of_intercept: float) -> FloatArray:
        return np.append(
            np.full(len(self.variances), of_coef), np.full(int(self.fit_intercept), of_intercept)
        )

    def _summed(self, pulls: FloatArray) -> FloatArray:
        if not self.fit_intercept:
            return np.asarray(self.rows.T @ pulls)
        return np.vstack([self.rows.T @ pulls, pulls.sum(axis=0)])


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where the minimisation ended.

    Attributes
    ----------
    argument : ndarray of shape (d [+ 1], r)
        B and, with an intercept, b below it.
    scores : ndarray of shape (m, r)
        Scores of the rows.
    gradient : float
        Largest entry of ∇F in the principal coordinates of the features as they are.
    relative_gradient : float
        The same with each entry in its `Objective.unit`.
    n_iterations : int
        Newton steps taken.
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
    """Minimise the objective from a start of shape (d [+ 1], r) until the relative gradient is within the tolerance.

    Where rounding errors keep it from that, a small gradient that no longer falls will do.
    """
    argument, scores, n_iterations, before = start, objective.scores(start), 0, np.inf
    while True:
        gradient = objective.gradient(argument, scores)
        largest = float(np.max(np.abs(gradient), initial=0.0))
        relative = float(np.max(np.abs(gradient) / objective.unit(scores)[:, None], initial=0.0))
        done = relative <= tolerance or (relative <= _STALLED and relative > before / 2)
        if done or n_iterations == max_iterations:
            return Minimum(argument, scores, largest, relative, n_iterations, done)
        before = relative
        accuracy = max(min(_LOOSEST_STEP, relative**0.5), _NEEDED_STEP * tolerance / relative)
        step = newton_step(objective, scores, gradient, accuracy)
        moved = objective.scores(step)
        length = _step_length(objective, argument, scores, step, moved)
        argument, scores, n_iterations = (
            argument + length * step,
            scores + length * moved,
            n_iterations + 1,
        )


def best_constant(objective: Objective, *, tolerance: float) -> FloatArray:
    """Where fits start: no coefficients, and with an intercept the best constant score."""
    start = np.zeros((len(objective.penalties), objective.loss.n_scores))
    if objective.fit_intercept:
        constant = replace(objective, rows=objective.rows[:, :0], variances=objective.variances[:0])
        start[-1:] = minimise(
            constant, start[-1:], tolerance=tolerance, max_iterations=MAX_ITERATIONS
        ).argument
    return start


def newton_step(
    objective: Objective, scores: FloatArray, gradient: FloatArray, accuracy: float
) -> FloatArray:
    """−H⁻¹∇F at these scores, to a relative accuracy, by preconditioned conjugate gradients."""
    curvature = objective.loss.curvature(scores)
    values, axes = np.linalg.eigh(objective.mean_curvature(curvature))
    spread = np.append(objective.variances, np.ones(int(objective.fit_intercept)))
    diagonal = (
        np.maximum(values, _SMALLEST_CURVATURE)[None, :] * spread[:, None]
        + objective.penalties[:, None]
    )
    root, shape = np.sqrt(diagonal), gradient.shape

    # In coordinates in which the preconditioner is the identity: B = (U/√D) Eᵀ.
    def product(flat: FloatArray) -> FloatArray:
        scaled = flat.reshape(shape)
        curved = objective.hessian_product(curvature, (scaled / root) @ axes.T)
        return np.asarray((curved @ axes / root + _DAMPING * scaled).ravel())

    operator = LinearOperator((gradient.size, gradient.size), matvec=product, dtype=float)
    found, _ = cg(
        operator,
        -((gradient @ axes) / root).ravel(),
        rtol=accuracy,
        atol=0.0,
        maxiter=gradient.size,
    )
    return np.asarray((found.reshape(shape) / root) @ axes.T)


def _step_length(
    objective: Objective,
    argument: FloatArray,
    scores: FloatArray,
    step: FloatArray,
    moved: FloatArray,
) -> float:
    """Length at which the slope along the step is about zero; 1 where a full step comes close enough."""
    share = (objective.weights / objective.n)[:, None] * moved
    penalty = objective.penalties[:, None] * step

    def slope(length: float) -> float:
        pulls = objective.loss.gradient(scores + length * moved)
        return float(np.sum(share * pulls) + np.sum(penalty * (argument + length * step)))

    downhill = -slope(0.0)
    low, high, reached = 0.0, 1.0, slope(1.0)
    if downhill <= 0 or abs(reached) <= _ACCEPTED_SLOPE * downhill:
        return 1.0
    for _ in range(_MOST_DOUBLINGS):
        if reached >= 0:
            break
        low, high = high, 2 * high
        reached = slope(high)
    if reached <= 0:
        return high
    # Where a loss is straight, steps are far too long: only the relative accuracy of their length
    # counts.
    shortest = float(np.finfo(float).tiny)
    return float(root_scalar(slope, bracket=(low, high), xtol=shortest, rtol=_ACCEPTED_SLOPE).root)


def _apply(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Multiply each vector with its matrix."""
    if vectors.shape[1] == 1:
        return np.asarray(matrices[:, :, 0] * vectors)
    return np.asarray(np.matmul(matrices, vectors[:, :, None])[:, :, 0])
