"""Fits of a ridge-regularized convex loss in principal coordinates, with leave-one-out scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from unflip._utils.typing import FloatArray, IntArray
from unflip._utils.warnings import warn_caller
from unflip.losses import Loss, ScoreLoss, SoftmaxLoss
from unflip.ridge.solvers.approximate_leave_one_out import (
    ApproximateLeaveOneOut,
    leverages,
    positive_curvature,
)
from unflip.ridge.solvers.newton import (
    MAX_ITERATIONS,
    Minimum,
    Objective,
    best_constant,
    minimise,
    newton_step,
)
from unflip.ridge.solvers.nonexistent_minima import check_minimum_exists
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.stacks import RidgePath, as_columns, checked_regs

# A Newton step at reg=0 beyond this share of the scores shows that the scores diverge. It is
# between a step at a minimum, of rounding errors, and one for separable targets, which moves
# logistic scores by about ℓ′/ℓ″ = 1. Half and double change no test of the module.
_DIVERGENT_STEP = 1e-3


class ConvexFits:
    r"""Minimisers of a ridge-regularized convex loss for every regularization strength.

    .. math:: F(B, b) = \frac1n \sum_i w_i\, \ell_{t_i}(B^\top x_i + b) + \gamma \lVert B \rVert^2,
              \quad n = \sum_i w_i

    The methods `path` and `leave_one_out` are those of `unflip.ridge.spectrum.Spectrum`.

    Parameters
    ----------
    spectrum : Spectrum
        Spectrum of the rows, as NumPy arrays; it determines whether there is an intercept b.
    loss : Loss or SoftmaxLoss
        A `Loss` for two classes, which fits every column of targets separately; or the class
        `SoftmaxLoss`, which fits the columns together, as contrasts of the classes.
    tolerance : float
        Largest entry of ∇F at convergence, relative to its size if the terms of all rows had the
        same sign (`Objective.unit`). For features of variance 1 it is about the largest entry.
    max_iterations : int
        Largest number of Newton steps for each regularization strength.
    largest_exact : int
        Largest number of unknowns (directions times scores, d·r) for which leave-one-out takes an
        exact Newton step, at a cost of order m(dr)² for each regularization strength. Beyond it,
        all rows have one common curvature, at a cost of order mdr. docs/losses.md compares both
        with refits.

    Examples
    --------
    >>> from unflip.losses import LOGISTIC
    >>> from unflip.ridge.spectrum import decompose
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 3))
    >>> t = rng.choice([-1.0, 1.0], size=50)
    >>> fits = ConvexFits(decompose(X), LOGISTIC)
    >>> path = fits.path(t, [0.1, 1.0])
    >>> path.coef.shape, path.intercept.shape
    ((3, 2, 1), (2, 1))
    >>> fits.leave_one_out(t, [0.1, 1.0]).scores.shape
    (50, 2, 1)
    """

    def __init__(
        self,
        spectrum: Spectrum,
        loss: Loss | type[SoftmaxLoss],
        *,
        tolerance: float = 1e-12,
        max_iterations: int = MAX_ITERATIONS,
        largest_exact: int = 4096,
    ) -> None:
        self.spectrum = spectrum
        self.loss = loss
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.largest_exact = largest_exact
        self._weights = np.asarray(spectrum.weights, dtype=float)
        rows = np.asarray(spectrum.principal_rows)
        variances = np.asarray(spectrum.variances)
        rounding = variances.max(initial=0.0) * len(variances) * np.finfo(float).eps
        self._reached = variances > rounding  # along other directions the rows do not vary
        self._rows = rows if self._reached.all() else rows[:, self._reached]
        self._variances = variances[self._reached]
        self._latest: Fits | None = None

    def with_common_curvature(self) -> ConvexFits:
        """Return the same fits with the cheaper leave-one-out, to compare many strengths."""
        return ConvexFits(
            self.spectrum,
            self.loss,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
            largest_exact=0,
        )

    def stiffness(self, n_scores: int) -> float:
        """Return half the curvature of the loss at scores of zero.

        Regularization strength γ has the effect of γ/stiffness on the squared loss. The stiffness
        is 1 for the squared loss, 1/8 for the logistic loss and 1/(2k) for the softmax of k
        classes. A loss that is almost straight at zero has the mean curvature of scores between −1
        and 1 instead.

        Raises ValueError if that mean is 0 or not finite.
        """
        grid = np.linspace(-1, 1, 201)  # 0 is in the middle
        scores = np.repeat(grid[:, None], n_scores, axis=1)
        curvatures = self._row_loss(np.zeros_like(scores)).curvature(scores)
        stiffness = np.trace(curvatures, axis1=1, axis2=2) / n_scores / 2
        at_zero = float(stiffness[len(stiffness) // 2])
        average = float(stiffness.mean())
        if not 0 < average < np.inf:
            raise ValueError(
                f"The {self.loss.name} loss has a mean curvature of {2 * average:g} between scores "
                "of -1 and 1, which Newton's method cannot use: use a smooth loss with curvature "
                "there."
            )
        is_straight_at_zero = at_zero <= 0.1 * average
        return average if is_straight_at_zero else at_zero

    def mean_loss(self, targets: FloatArray, scores: FloatArray) -> FloatArray:
        """Return the mean loss of scores, (m, n_regs, n_targets), for each strength.

        For leave-one-out scores it is valid under label noise: the loss is linear in the targets,
        and a row's target does not enter its score, so noise adds a term that no γ changes.
        """
        loss = self._row_loss(targets)
        return np.array(
            [self._mean(loss.value(scores[:, index])) for index in range(scores.shape[1])]
        )

    def path(self, targets: FloatArray, regs: ArrayLike) -> RidgePath:
        """Return coefficients and intercepts for every strength; warn if one has not converged."""
        fits = self.fit(targets, regs)
        if not fits.converged.all():
            worst = int(np.argmax(fits.relative_gradient))
            warn_caller(
                f"The fit at reg={fits.regs[worst]:g} has not converged in {self.max_iterations} "
                f"steps (relative gradient {fits.relative_gradient[worst]:.1g}): use a larger reg, "
                "or scale the features.",
                ConvergenceWarning,
            )
        return fits.path

    def leave_one_out(self, targets: FloatArray, regs: ArrayLike) -> ApproximateLeaveOneOut:
        """Return approximate leave-one-out fits; a row leaves with its whole weight."""
        return self.fit(targets, regs).leave_one_out

    def fit(self, targets: FloatArray, regs: ArrayLike) -> Fits:
        """Minimise F for every strength, from the largest to the smallest with warm starts.

        The latest result is cached: `path` and `leave_one_out` for the same targets and strengths
        share it, and other strengths start from it.
        """
        columns = as_columns(np.array(targets, dtype=float))  # a copy, as it is cached
        strengths = np.atleast_1d(np.array(regs, dtype=float))
        latest = self._latest
        if latest is None or not (latest.has(columns) and np.array_equal(latest.regs, strengths)):
            self._latest = latest = self._fit(columns, strengths)
        return latest

    def _fit(self, targets: FloatArray, regs: FloatArray) -> Fits:
        self._check(targets, regs)
        start = None
        if self._latest is not None and self._latest.has(targets):
            start = self._latest.smallest
        minima: dict[int, Minimum] = {}
        for index in map(int, np.argsort(-regs, kind="stable")):
            objective = self._objective(targets, float(regs[index]))
            if start is None:
                start = best_constant(objective, tolerance=self.tolerance)
            minimum = minimise(
                objective, start, tolerance=self.tolerance, max_iterations=self.max_iterations
            )
            _check_convergence_without_reg(objective, minimum)
            minima[index] = minimum
            start = minimum.argument
        return Fits(self, targets, regs, [minima[index] for index in range(len(regs))])

    def _check(self, targets: FloatArray, regs: FloatArray) -> None:
        """Raise ValueError for invalid arguments, or if there is no finite minimum."""
        if len(targets) != self.spectrum.n_rows or not np.isfinite(targets).all():
            raise ValueError(
                f"targets of shape {targets.shape} must be finite, one row for each of the rows of "
                "X."
            )
        checked_regs(regs)
        n_reached = int(self._reached.sum())
        if regs.min() == 0 and n_reached < self.spectrum.n_varying:
            raise ValueError(
                f"reg=0 needs a Gram matrix of full rank, but the rows span {n_reached} of "
                f"{self.spectrum.n_varying} varying features: use a positive reg, drop collinear "
                "features, or add rows."
            )
        check_minimum_exists(
            self.loss,
            targets,
            self._mean(targets),
            fit_intercept=self.spectrum.fit_intercept,
            smallest_reg=float(regs.min()),
        )

    def _objective(self, targets: FloatArray, reg: float) -> Objective:
        return Objective(
            rows=self._rows,
            weights=self._weights,
            variances=self._variances,
            fit_intercept=self.spectrum.fit_intercept,
            loss=self._row_loss(targets),
            reg=reg,
        )

    def _mean(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.tensordot(self._weights / self.spectrum.n, values, axes=1))

    @property
    def _row_loss(self) -> Callable[[FloatArray], ScoreLoss]:
        return self.loss.of_targets


@dataclass(frozen=True, eq=False)
class Fits:
    """Minima for one set of targets, for every regularization strength."""

    source: ConvexFits
    targets: FloatArray
    regs: FloatArray
    minima: list[Minimum]

    def has(self, targets: FloatArray) -> bool:
        """Whether these are the fits to such targets."""
        return np.array_equal(self.targets, targets)

    @property
    def smallest(self) -> FloatArray:
        """Minimum at the smallest regularization strength."""
        return self.minima[int(np.argmin(self.regs))].argument

    @property
    def gradient(self) -> FloatArray:
        """Largest entry of ∇F in principal coordinates, for each strength."""
        return np.array([minimum.gradient for minimum in self.minima])

    @property
    def relative_gradient(self) -> FloatArray:
        """Largest entry of ∇F in its unit (`Objective.unit`), for each strength."""
        return np.array([minimum.relative_gradient for minimum in self.minima])

    @property
    def n_iterations(self) -> IntArray:
        """Number of Newton steps for each strength."""
        return np.array([minimum.n_iterations for minimum in self.minima])

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Whether each gradient is within the tolerance, or as small as rounding allows."""
        return np.array([minimum.converged for minimum in self.minima])

    @property
    def path(self) -> RidgePath:
        """Coefficients and intercepts of the features."""
        spectrum = self.source.spectrum
        reached = self.source._reached
        arguments = [minimum.argument for minimum in self.minima]
        n_directions = int(reached.sum())
        principal = np.zeros((len(reached), len(self.regs), self.targets.shape[1]))
        principal[reached] = np.stack([each[:n_directions] for each in arguments], axis=1)
        flat = np.asarray(spectrum.from_principal(principal.reshape(len(principal), -1)))
        coef = flat.reshape(-1, *principal.shape[1:])
        intercept = np.stack([each[n_directions:].sum(axis=0) for each in arguments])
        if spectrum.fit_intercept:
            intercept = intercept - np.tensordot(np.asarray(spectrum.mean), coef, axes=1)
        return RidgePath(coef, intercept)

    @cached_property
    def leave_one_out(self) -> ApproximateLeaveOneOut:
        """Approximate leave-one-out fits; cached, as they may cost more than the fits."""
        source = self.source
        fitted = [minimum.scores for minimum in self.minima]
        loss = source._row_loss(self.targets)
        mean_curvature = [
            source._mean(positive_curvature(loss.curvature(scores))) for scores in fitted
        ]
        leverage = [
            leverages(
                source._objective(self.targets, float(reg)),
                scores,
                largest_exact=source.largest_exact,
            )
            for reg, scores in zip(self.regs, fitted, strict=True)
        ]
        return ApproximateLeaveOneOut(
            targets=self.targets,
            fitted=np.stack(fitted, axis=1),
            leverage=np.stack(leverage, axis=1),
            removed=source._weights,
            weights=source._weights,
            mean_target=source._mean(self.targets) if source.spectrum.fit_intercept else None,
            mean_curvature=np.stack(mean_curvature),
            mean_response=np.stack([source._mean(loss.response(scores)) for scores in fitted]),
            loss=source._row_loss,
        )


def _check_convergence_without_reg(objective: Objective, minimum: Minimum) -> None:
    """Raise ValueError if reg=0 and the scores diverge, as they do if classes are separable.

    The gradient then vanishes, but a further Newton step still moves the scores.
    """
    if objective.reg > 0:
        return
    gradient = objective.gradient(minimum.argument, minimum.scores)
    step = newton_step(objective, minimum.scores, gradient, _DIVERGENT_STEP)
    largest_move = np.abs(objective.scores(step)).max()
    if largest_move > _DIVERGENT_STEP * (1 + np.abs(minimum.scores).max()):
        raise ValueError(
            "reg=0 has no finite fit, because the targets are separable by these features: use a "
            "positive reg."
        )
