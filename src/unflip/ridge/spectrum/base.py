"""The interface of all decompositions of the rows, and what follows from any of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, reduce
from itertools import accumulate, chain, combinations, pairwise
from operator import mul
from typing import ClassVar

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from unflip._utils.typing import Array
from unflip.data.centred import CentredRows
from unflip.ridge.spectrum.eigenvalues import scale
from unflip.ridge.spectrum.left_out import LeaveOneOut
from unflip.ridge.spectrum.stacks import RidgePath, as_columns, as_regs

# Sets of regularization strengths whose shrinkage is cached.
_MOST_CACHED = 32


class Spectrum(ABC):
    """Ridge fits and leave-one-out scores, for every regularization strength and target.

    Targets have shape (m,) or (m, n_targets), a value for each row. Results have the axes
    (rows or features, regularization strengths, targets).

    Parameters
    ----------
    rows : CentredRows
        The rows with their weights; n is the sum of the weights.
    fit_intercept : bool
        Whether rows and targets are centred by their mean.

    Attributes
    ----------
    weights : array of shape (m,)
        Weights of the rows.
    mean : array of shape (p,)
        Weighted mean of the rows.
    n : float
        Sum of the weights.
    is_whole : bool
        Whether every principal direction is available and leave-one-out is exact. Otherwise sums
        over the principal directions are estimated.
    has_exact_slack : bool
        Whether diagonals of residual makers are sums of positive terms. Otherwise they are
        differences and lose digits.
    """

    is_whole: ClassVar[bool] = True
    has_exact_slack: ClassVar[bool] = False

    def __init__(self, rows: CentredRows, *, fit_intercept: bool) -> None:
        self.fit_intercept = fit_intercept
        self.weights = rows.weights
        self.mean = rows.mean
        self.n = float(array_namespace(rows.weights).sum(rows.weights))
        self._rows = rows
        self._shrinkage_cache: dict[tuple[float, ...], Array] = {}

    @abstractmethod
    def path(self, targets: Array, regs: ArrayLike) -> RidgePath:
        """Return coefficients and intercepts for every regularization strength and target."""

    @property
    def scale(self) -> float:
        """Typical eigenvalue of the covariance, Σs²/(nΣs): the natural unit of γ.

        It is the same for a row of weight 2 and for two duplicates of it, and 0 if all rows are
        equal.
        """
        return scale(self._eigenvalues, self.n)

    @property
    @abstractmethod
    def n_varying(self) -> int:
        """Number of features that vary (that are not 0, without an intercept)."""

    @property
    def variances(self) -> Array:
        """Variance of the rows along each principal direction, smallest first.

        Without an intercept it is the mean square. With fewer rows than features, directions that
        no row reaches are left out: their variance is 0.
        """
        return self._eigenvalues / self.n

    @property
    def least_reg(self) -> float:
        """Smallest γ whose leave-one-out scores are reliable: 0 if they are exact."""
        return 0.0

    @property
    def n_rows(self) -> int:
        """Number of rows m."""
        return int(self.weights.shape[0])

    def shrinkage(self, regs: ArrayLike) -> Array:
        """Return s/(s + nγ), the share of each principal direction a fit keeps; a column per γ."""
        key = tuple(np.atleast_1d(np.asarray(regs, dtype=float)).tolist())
        if key not in self._shrinkage_cache:
            if len(self._shrinkage_cache) == _MOST_CACHED:
                self._shrinkage_cache.clear()
            self._shrinkage_cache[key] = self._compute_shrinkage(regs)
        return self._shrinkage_cache[key]

    def _compute_shrinkage(self, regs: ArrayLike) -> Array:
        xp = array_namespace(self._eigenvalues)
        shifts = self.n * as_regs(regs, self._eigenvalues)[None, :]
        relative = self._eigenvalues[:, None] / self._largest
        shifted = relative + shifts / self._largest
        return relative / xp.where(shifted > 0, shifted, xp.ones_like(shifted))

    def power_sums(self, reg: float) -> list[float]:
        """Return sums of the first three powers of `shrinkage` over all principal directions."""
        kept = self.shrinkage([reg])[:, 0]
        return [float(array_namespace(kept).sum(kept**power)) for power in (1, 2, 3)]

    def target_powers(self, targets: Array) -> tuple[Array, float] | None:
        """Return the squared length of the targets along each principal direction, and in total.

        Rows count by their weights. The sum is over all targets, which are centred if there is an
        intercept. None if not available.
        """
        return None

    @cached_property
    def _largest(self) -> float:
        return float(array_namespace(self._eigenvalues).max(self._eigenvalues)) or 1.0

    @abstractmethod
    def diagonal(self, values: Array, rows: slice = slice(None)) -> Array:
        """Return the diagonal of U diag(values) Uᵀ, for the rows in a slice.

        U holds the left singular vectors of the √weighted rows. With the values of `shrinkage` the
        diagonal is the leverage of the rows, without the intercept's share.
        """

    def hat_diagonals(
        self, *products: Sequence[ArrayLike], rows: slice = slice(None)
    ) -> list[Array]:
        """Return diagonals of products of hat matrices, (m, n_regs) each.

        The intercept's share is left out. The diagonal of a single hat matrix is the leverage.

        Parameters
        ----------
        *products : sequence of array-like
            Regularization strengths of each factor: one for each column of the result, or a single
            one for all columns.
        rows : slice
            Rows to return.
        """
        values = [reduce(mul, map(self.shrinkage, factors)) for factors in products]
        diagonals = self.diagonal(array_namespace(*values).concat(values, axis=1), rows)
        ends = accumulate((value.shape[1] for value in values), initial=0)
        return [diagonals[:, start:end] for start, end in pairwise(ends)]

    def residual_diagonals(
        self, *products: Sequence[ArrayLike], rows: slice = slice(None)
    ) -> list[Array]:
        """Return diagonals of products of residual makers R = I − H, with the intercept's share.

        The residuals of targets t are Rt, and the diagonal of a single R is the slack that
        leave-one-out scores are divided by. Parameters are those of `hat_diagonals`.
        """
        # Π(I − Hⱼ) expands to a signed sum of products over all subsets of the factors.
        expansions = [_subsets(product) for product in products]
        diagonals = iter(self.hat_diagonals(*chain.from_iterable(expansions), rows=rows))
        unfitted = self.unfitted(rows)[:, None]
        return [
            sum(((-1) ** len(subset) * next(diagonals) for subset in subsets), unfitted)
            for subsets in expansions
        ]

    def leverage_and_slack(self, regs: ArrayLike, rows: slice = slice(None)) -> tuple[Array, Array]:
        """Return leverage, without the intercept's share, and slack 1 − Hᵢ, (m, n_regs) each."""
        leverage = self.hat_diagonals([regs], rows=rows)[0]
        return leverage, self.unfitted(rows)[:, None] - leverage

    def unfitted(self, rows: slice) -> Array:
        """Return the share of each row's own target that the intercept does not fit, (m,)."""
        weights = self.weights[rows]
        if self.fit_intercept:
            return 1 - weights / self.n
        return array_namespace(weights).ones_like(weights)

    @abstractmethod
    def coordinates(self, count: int) -> Array:
        """Return coordinates along the first principal directions, of variance 1, (m, count)."""

    @property
    @abstractmethod
    def principal_rows(self) -> Array:
        """The rows along the principal directions, (m, n_directions), centred with an intercept.

        Fits that depend on products of rows alone, such as any ridge-regularized fit, can be
        computed in these coordinates.
        """

    @abstractmethod
    def from_principal(self, coef: Array) -> Array:
        """Return coefficients of the features, (p, n_targets), from those of `principal_rows`."""

    def kernel_sums(self, targets: Array) -> Array:
        """Return Σⱼ wⱼ(xᵢ − x̄)ᵀ(xⱼ − x̄)tⱼ over the OTHER rows j, for every row i and target."""
        columns = as_columns(targets)
        sums, squared_norms = self._rows.times_and_squared_norms(self._cross(columns))
        return sums - squared_norms[:, None] * (self.weights[:, None] * columns)

    def residuals(self, targets: Array, reg: float) -> Array:
        """Return residuals t − t̂ of targets, (m, n_targets)."""
        part = self._residuals_and_slack(targets - self._centre(targets), [reg])
        residuals, _ = part(slice(None))
        return residuals[:, 0, :]

    def leave_one_out(self, targets: Array, regs: ArrayLike) -> LeaveOneOut:
        """Return leave-one-out fits of every row; a row leaves with its whole weight."""
        return self.leave_one_out_parts(targets, regs)(slice(None))

    def leave_one_out_parts(
        self, targets: Array, regs: ArrayLike
    ) -> Callable[[slice], LeaveOneOut]:
        """Return `leave_one_out` as a function of a slice of the rows, to save memory."""
        columns = as_columns(targets)
        centre = self._centre(columns)
        residuals_and_slack = self._residuals_and_slack(columns - centre, regs)

        def part(rows: slice) -> LeaveOneOut:
            residuals, slack = residuals_and_slack(rows)
            return LeaveOneOut(
                targets=columns[rows, :],
                residuals=residuals,
                slack=slack,
                removed=self.weights[rows],
                mean_target=centre[0, :] if self.fit_intercept else None,
                n=self.n,
                resolution=self._resolution(regs),
            )

        return part

    @property
    @abstractmethod
    def _eigenvalues(self) -> Array: ...

    @abstractmethod
    def _residuals_and_slack(
        self, centred: Array, regs: ArrayLike
    ) -> Callable[[slice], tuple[Array, Array]]:
        """Return a function from a slice of the rows to residuals and slack.

        Residuals t − t̂ of centred targets have shape (m, n_regs, n_targets), slack 1 − H has
        (m, n_regs).
        """

    @abstractmethod
    def _resolution(self, regs: ArrayLike) -> float:
        """Return the slack below which it is rounding error."""

    def _cross(self, columns: Array) -> Array:
        """Return Σ wᵢ(xᵢ − x̄)tᵢ, (p, n_targets)."""
        return self._rows.transposed_times(self.weights[:, None] * columns)

    def _mean_target(self, columns: Array) -> Array:
        return array_namespace(columns).matmul(self.weights, columns) / self.n

    def _centre(self, columns: Array) -> Array:
        """Return t̄ with an intercept, else 0, (1, n_targets)."""
        mean = self._mean_target(columns)[None, :]
        return mean if self.fit_intercept else array_namespace(mean).zeros_like(mean)


def _subsets(factors: Sequence[ArrayLike]) -> list[tuple[ArrayLike, ...]]:
    """Return all subsets but the empty one, smallest first."""
    sizes = range(1, len(factors) + 1)
    return list(chain.from_iterable(combinations(factors, size) for size in sizes))
