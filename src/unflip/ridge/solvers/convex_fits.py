"""Fits of a ridge-penalised convex loss in the principal coordinates of a spectrum, and their leave-one-out scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from unflip._utils.typing import FloatArray, IntArray
from unflip._utils.warnings import warn_caller
from unflip.losses import Loss, ScoreLoss, SeparateLoss, SoftmaxLoss
from unflip.ridge.solvers.leave_one_out import ApproximateLeaveOneOut, bent, leverages
from unflip.ridge.solvers.newton import (
    MAX_ITERATIONS,
    Minimum,
    Objective,
    best_constant,
    minimise,
    newton_step,
)
from unflip.ridge.solvers.refusals import refuse_unbounded
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.stacks import RidgePath

TOLERANCE = 1e-12
LARGEST_EXACT = 4096
_SMALL_SCORES = np.linspace(-1, 1, 201)  # 0 in the middle
_STRAIGHT = 0.1  # share of the mean curvature of small scores below which a loss counts as straight
_FINITE_STEP = 1e-3  # a further Newton step beyond this share of the scores means that they run off


class ConvexFits:
    r"""Minimisers of a ridge-penalised convex loss for every penalty, with the methods of `unflip.ridge.spectrum.Spectrum`.

    .. math:: F(B, b) = \frac1n \sum_i w_i\, \ell_{t_i}(B^\top x_i + b) + \gamma \lVert B \rVert^2, \quad n = \sum_i w_i

    Parameters
    ----------
    spectrum : Spectrum
        Of the rows, as NumPy arrays; it says whether there is an intercept b.
    loss : Loss or SoftmaxLoss
        A `Loss` for two classes, of which every column of targets is a fit of its own; or the class
        `SoftmaxLoss`, for which the columns are contrasts of the classes that are fitted together.
    tolerance : float
        Largest entry of ∇F that counts as none, relative to what it would be if all rows pulled one
        way (`Objective.unit`): about the largest entry itself, for features of variance 1.
    max_iterations : int
        Newton steps for each penalty.
    largest_exact : int
        Largest number of unknowns (directions times scores, d·r) for which leave-one-out takes an
        exact Newton step, at a cost of order m(dr)² for each penalty. Beyond it, all rows have one
        common curvature, at a cost of order mdr. docs/losses.md says how far either is from refits.

    Examples
    --------
    >>> from unflip.losses import LOGISTIC
    >>> from unflip.ridge.spectrum import decompose
    >>> rng = np.random.default_rng(0)
    >>> X, t = rng.normal(size=(50, 3)), rng.choice([-1.0, 1.0], size=50)
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
        tolerance: float = TOLERANCE,
        max_iterations: int = MAX_ITERATIONS,
        largest_exact: int = LARGEST_EXACT,
    ) -> None:
        self.spectrum, self.loss = spectrum, loss
        self.tolerance, self.max_iterations, self.largest_exact = (
            tolerance,
            max_iterations,
            largest_exact,
        )
        self._weights = np.asarray(spectrum.weights, dtype=float)
        rows = np.asarray(spectrum.principal_rows)
        variances = np.asarray(spectrum.variances)
        rounding = variances.max(initial=0.0) * len(variances) * np.finfo(float).eps
        self._reached = (
            variances > rounding
        )  # others get no coefficient from the rows, only rounding errors
        self._rows = rows if self._reached.all() else rows[:, self._reached]
        self._variances = variances[self._reached]
        self._latest: Fits | None = None

    def comparing(self) -> ConvexFits:
        """Return the same fits for choosing among penalties: leave-one-out with a common curvature, which is cheap."""
        steps = self.max_iterations
        return ConvexFits(
            self.spectrum,
            self.loss,
            tolerance=self.tolerance,
            max_iterations=steps,
            largest_exact=0,
        )

    def stiffness(self, n_scores: int) -> float:
        """Half the loss's curvature at scores of zero: a penalty γ bends a fit as γ/stiffness bends the squared loss's.

        It is 1 for the squared loss, 1/8 for the logistic one and 1/(2k) for the softmax of k
        classes. A loss that is straight about zero has the mean curvature of scores between −1 and
        1 instead.
        """
        scores = np.repeat(_SMALL_SCORES[:, None], n_scores, axis=1)
        curvature = (
            np.trace(self._row_loss(np.zeros_like(scores)).curvature(scores), axis1=1, axis2=2)
            / n_scores
            / 2
        )
        at_zero, average = float(curvature[len(curvature) // 2]), float(curvature.mean())
        if not 0 < average < np.inf:
            name = self.loss.name if isinstance(self.loss, Loss) else "softmax"
            raise ValueError(
                f"The {name} loss has a mean curvature of {2 * average:g} between scores of -1 and "
                "1, which no Newton step can use: take a smooth loss that bends there."
            )
        return at_zero if at_zero > _STRAIGHT * average else average

    def mean_loss(self, targets: FloatArray, scores: FloatArray) -> FloatArray:
        """Mean loss of scores, (m, n_regs, n_targets), for each penalty.

        Of leave-one-out scores it is right under label noise: the loss is linear in the targets,
        which do not know the scores, so flips add what no penalty changes.
        """
        loss = self._row_loss(targets)
        return np.array(
            [self._mean(loss.value(scores[:, index])) for index in range(scores.shape[1])]
        )

    def path(self, targets: FloatArray, regs: ArrayLike) -> RidgePath:
        """Coefficients and intercepts for every penalty and target, with a warning where one has not converged."""
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
        """Approximate leave-one-out fits of every row, for every penalty; a row leaves with its whole weight."""
        return self.fit(targets, regs).leave_one_out

    def fit(self, targets: FloatArray, regs: ArrayLike) -> Fits:
        """Minimise F for every penalty, from the largest to the smallest, each from the one before.

        The latest result is kept: `path` and `leave_one_out` of the same targets and penalties
        share it, and other penalties start from it.
        """
        columns = np.array(
            targets, dtype=float
        )  # a copy: what is kept must not change with the caller's
        columns = columns[:, None] if columns.ndim == 1 else columns
        penalties = np.atleast_1d(np.array(regs, dtype=float))
        latest = self._latest
        if latest is None or not (latest.has(columns) and np.array_equal(latest.regs, penalties)):
            self._latest = latest = self._fit(columns, penalties)
        return latest

    def _fit(self, targets: FloatArray, regs: FloatArray) -> Fits:
        self._refuse(targets, regs)
        start = (
            self._latest.smallest
            if self._latest is not None and self._latest.has(targets)
            else None
        )
        minima: dict[int, Minimum] = {}
        for index in map(int, np.argsort(-regs, kind="stable")):
            objective = self._objective(targets, float(regs[index]))
            if start is None:
                start = best_constant(objective, tolerance=self.tolerance)
            found = minimise(
                objective, start, tolerance=self.tolerance, max_iterations=self.max_iterations
            )
            _refuse_running_off(objective, found)
            minima[index], start = found, found.argument
        return Fits(self, targets, regs, [minima[index] for index in range(len(regs))])

    def _refuse(self, targets: FloatArray, regs: FloatArray) -> None:
        if len(targets) != self.spectrum.n_rows or not np.isfinite(targets).all():
            raise ValueError(
                f"targets of shape {targets.shape} must be finite, one row for each of the rows of "
                "X."
            )
        if not (np.isfinite(regs).all() and (regs >= 0).all()):
            raise ValueError(
                f"reg={regs[~(np.isfinite(regs) & (regs >= 0))][0]:g} must be finite and not "
                "negative."
            )
        n_reached = int(self._reached.sum())
        if regs.min() == 0 and n_reached < self.spectrum.n_varying:
            raise ValueError(
                f"reg=0 needs a Gram matrix of full rank, but the rows span {n_reached} of "
                f"{self.spectrum.n_varying} varying features: use a positive reg, drop collinear "
                "features, or add rows."
            )
        fit_intercept, smallest = self.spectrum.fit_intercept, float(regs.min())
        refuse_unbounded(
            self.loss,
            targets,
            self._mean(targets),
            fit_intercept=fit_intercept,
            smallest_reg=smallest,
        )

    def _objective(self, targets: FloatArray, reg: float) -> Objective:
        loss, fit_intercept = self._row_loss(targets), self.spectrum.fit_intercept
        return Objective(self._rows, self._weights, self._variances, fit_intercept, loss, reg)

    def _mean(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.tensordot(self._weights / self.spectrum.n, values, axes=1))

    @property
    def _row_loss(self) -> Callable[[FloatArray], ScoreLoss]:
        return partial(SeparateLoss, self.loss) if isinstance(self.loss, Loss) else self.loss


@dataclass(frozen=True, eq=False)
class Fits:
    """Minima of one set of targets, for every penalty."""

    source: ConvexFits
    targets: FloatArray
    regs: FloatArray
    minima: list[Minimum]

    def has(self, targets: FloatArray) -> bool:
        """Whether these are the fits of such targets."""
        return np.array_equal(self.targets, targets)

    @property
    def smallest(self) -> FloatArray:
        """Where the fit of the smallest penalty ended."""
        return self.minima[int(np.argmin(self.regs))].argument

    @property
    def gradient(self) -> FloatArray:
        """Largest entry of ∇F in the principal coordinates of the features as they are, for each penalty."""
        return np.array([minimum.gradient for minimum in self.minima])

    @property
    def relative_gradient(self) -> FloatArray:
        """Largest entry of ∇F in its unit (`Objective.unit`), for each penalty: what the tolerance is for."""
        return np.array([minimum.relative_gradient for minimum in self.minima])

    @property
    def n_iterations(self) -> IntArray:
        """Newton steps for each penalty."""
        return np.array([minimum.n_iterations for minimum in self.minima])

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Whether each gradient is within the tolerance, or as small as rounding allows."""
        return np.array([minimum.converged for minimum in self.minima])

    @property
    def path(self) -> RidgePath:
        """Coefficients and intercepts of the features."""
        spectrum, n_scores = self.source.spectrum, self.targets.shape[1]
        principal = np.zeros((len(self.source._reached), len(self.regs), n_scores))
        n_directions = int(self.source._reached.sum())
        principal[self.source._reached] = np.stack(
            [found.argument[:n_directions] for found in self.minima], axis=1
        )
        flat = np.asarray(spectrum.from_principal(principal.reshape(len(principal), -1)))
        coef = flat.reshape(-1, *principal.shape[1:])
        constant = np.stack([found.argument[n_directions:].sum(axis=0) for found in self.minima])
        if spectrum.fit_intercept:
            constant = constant - np.tensordot(np.asarray(spectrum.mean), coef, axes=1)
        return RidgePath(coef, constant)

    @cached_property
    def leave_one_out(self) -> ApproximateLeaveOneOut:
        """What the leave-one-out scores are made of; kept, as it may cost more than the fits."""
        source, scores = self.source, [minimum.scores for minimum in self.minima]
        objectives = [source._objective(self.targets, float(reg)) for reg in self.regs]
        fits = list(zip(objectives, scores, strict=True))
        return ApproximateLeaveOneOut(
            targets=self.targets,
            fitted=np.stack(scores, axis=1),
            leverage=np.stack(
                [leverages(o, s, largest_exact=source.largest_exact) for o, s in fits], axis=1
            ),
            removed=source._weights,
            weights=source._weights,
            mean_target=source._mean(self.targets) if source.spectrum.fit_intercept else None,
            mean_curvature=np.stack([source._mean(bent(o.loss.curvature(s))) for o, s in fits]),
            mean_response=np.stack([source._mean(o.loss.response(s)) for o, s in fits]),
            loss=source._row_loss,
        )


def _refuse_running_off(objective: Objective, found: Minimum) -> None:
    """Without a penalty, scores of separable classes grow for ever while the gradient falls to nothing."""
    if objective.reg > 0:
        return
    gradient = objective.gradient(found.argument, found.scores)
    further = objective.scores(newton_step(objective, found.scores, gradient, _FINITE_STEP))
    if np.abs(further).max() > _FINITE_STEP * (1 + np.abs(found.scores).max()):
        raise ValueError(
            "reg=0 has no finite fit, as the targets are separable by these features: use a "
            "positive reg."
        )
