"""What a decomposition of rows offers, whichever Gram matrix it is of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, reduce
from itertools import accumulate, combinations, pairwise
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

#: Slack that is found by subtraction cannot be told from none below this.
SMALLEST_SLACK = 1e-10
_KEPT_SHRINKAGE = 32  # sets of penalties


class Spectrum(ABC):
    """Ridge fits and leave-one-out scores of given rows, for every penalty and target.

    Targets have shape (m,) or (m, n_targets), a value for each row; results carry the axes
    (rows or features, penalties, targets).

    Parameters
    ----------
    rows : CentredRows
        The rows with their weights; n is the sum of these.
    fit_intercept : bool
        Whether rows and targets are centred by their mean.

    Attributes
    ----------
    weights : array of shape (m,)
        Weights of the rows.
    mean : array of shape (p,)
        Weighted mean of the rows as given.
    n : float
        Sum of the weights.
    is_whole : bool
        Whether every principal direction is known, and leave-one-out exact. Otherwise sums over
        them are, to an error.
    has_exact_slack : bool
        Whether diagonals of residual makers are sums of positive terms, rather than found by
        subtraction.
    """

    is_whole: ClassVar[bool] = True
    has_exact_slack: ClassVar[bool] = False

    def __init__(self, rows: CentredRows, *, fit_intercept: bool) -> None:
        self.fit_intercept = fit_intercept
        self._rows, self.weights, self.mean = rows, rows.weights, rows.mean
        self.n = float(array_namespace(rows.weights).sum(rows.weights))
        self._shrinkage: dict[tuple[float, ...], Array] = {}  # of penalties asked for before

    @abstractmethod
    def path(self, targets: Array, regs: ArrayLike) -> RidgePath:
        """Coefficients and intercepts for every penalty and target."""

    @property
    def scale(self) -> float:
        """Typical eigenvalue of the covariance, Σs²/(nΣs): the unit in which penalties are sensibly measured.

        It is the same for a row of weight 2 and for two copies of it, and 0 for rows that are all
        alike.
        """
        return scale(self._eigenvalues, self.n)

    @property
    @abstractmethod
    def n_varying(self) -> int:
        """Number of features that vary (that are not 0, without an intercept)."""

    @property
    def variances(self) -> Array:
        """Variance of the rows along each principal direction (power, without an intercept), smallest first.

        Directions that fewer rows than features cannot show are left out: their variance is 0.
        """
        return self._eigenvalues / self.n

    @property
    def least_reg(self) -> float:
        """Smallest penalty whose leave-one-out scores are worth comparing: any, where they are exact."""
        return 0.0

    @property
    def n_rows(self) -> int:
        """Number of rows m, whatever their weights."""
        return int(self.weights.shape[0])

    def shrinkage(self, regs: ArrayLike) -> Array:
        """s/(s + nγ), the share of each principal direction that a fit keeps; a column for each γ."""
        key = tuple(np.atleast_1d(np.asarray(regs, dtype=float)).tolist())
        if key not in self._shrinkage:
            if len(self._shrinkage) == _KEPT_SHRINKAGE:
                self._shrinkage.clear()
            self._shrinkage[key] = self._find_shrinkage(regs)
        return self._shrinkage[key]

    def _find_shrinkage(self, regs: ArrayLike) -> Array:
        penalties = self.n * as_regs(regs, self._eigenvalues)[None, :]
        xp, relative = (
            array_namespace(self._eigenvalues),
            self._eigenvalues[:, None] / self._largest,
        )
        shifted = relative + penalties / self._largest
        return relative / xp.where(shifted > 0, shifted, xp.ones_like(shifted))

    def power_sums(self, reg: float) -> list[float]:
        """Return sums over all principal directions of the first three powers of their `shrinkage`."""
        kept = self.shrinkage([reg])[:, 0]
        return [float(array_namespace(kept).sum(kept**power)) for power in (1, 2, 3)]

    def target_powers(self, targets: Array) -> tuple[Array, float] | None:
        """Squared length of the targets along each principal direction among the rows, and in all; None if unknown.

        Rows count by their weights, all targets are summed over, and with an intercept they are
        centred.
        """
        return None

    @cached_property
    def _largest(self) -> float:
        return float(array_namespace(self._eigenvalues).max(self._eigenvalues)) or 1.0

    @abstractmethod
    def diagonal(self, values: Array, rows: slice = slice(None)) -> Array:
        """Diagonal of U diag(values) Uᵀ, U the unit vectors of the principal directions among the rows (√weighted).

        With the values of `shrinkage` these are the hat values of the rows, but for the intercept's
        share. Some rows' may be asked for.
        """

    def hat_diagonals(
        self, *products: Sequence[ArrayLike], rows: slice = slice(None)
    ) -> list[Array]:
        """Diagonals of products of hat matrices, but for the intercept's share, (m, n_regs) each; some rows' only.

        Parameters
        ----------
        *products : sequence of array-like
            Penalties of each factor: as many for all, a column of the result for each, or one for
            all columns.
        rows : slice
            Which rows.
        """
        values = [reduce(mul, map(self.shrinkage, factors)) for factors in products]
        diagonals = self.diagonal(array_namespace(*values).concat(values, axis=1), rows)
        ends = accumulate((value.shape[1] for value in values), initial=0)
        return [diagonals[:, start:end] for start, end in pairwise(ends)]

    def residual_diagonals(
        self, *products: Sequence[ArrayLike], rows: slice = slice(None)
    ) -> list[Array]:
        """Diagonals of products of residual makers R = I − H, the intercept's share of H included.

        The residuals of targets t are Rt, and the diagonal of a single R is the slack that
        leave-one-out scores are divided by. Parameters are those of `hat_diagonals`.
        """
        parts = [
            [
                factors
                for size in range(1, len(product) + 1)
                for factors in combinations(product, size)
            ]
            for product in products
        ]
        diagonals = iter(
            self.hat_diagonals(*(factors for part in parts for factors in part), rows=rows)
        )
        unfitted = self.unfitted(rows)[:, None]
        return [
            sum(((-1) ** len(factors) * next(diagonals) for factors in part), unfitted)
            for part in parts
        ]

    def hat_and_slack(self, regs: ArrayLike, rows: slice = slice(None)) -> tuple[Array, Array]:
        """Return `hat_diagonals` and `residual_diagonals` of single matrices, (m, n_regs) each."""
        hat = self.hat_diagonals([regs], rows=rows)[0]
        return hat, self.unfitted(rows)[:, None] - hat

    def unfitted(self, rows: slice) -> Array:
        """Share of each row's own target that the intercept leaves unfitted, (m,)."""
        weights = self.weights[rows]
        return (
            1 - weights / self.n
            if self.fit_intercept
            else array_namespace(weights).ones_like(weights)
        )

    @abstractmethod
    def coordinates(self, count: int) -> Array:
        """Coordinates of the rows along the first principal directions, each scaled to variance 1; shape (m, count)."""

    @property
    @abstractmethod
    def principal_rows(self) -> Array:
        """The rows (about their mean, with an intercept) along the principal directions, (m, n_directions).

        Whatever depends on products of rows alone, such as any ridge-penalised fit, can be found in
        these coordinates.
        """

    @abstractmethod
    def from_principal(self, coef: Array) -> Array:
        """Return coefficients of the features, (p, n_targets), from those of `principal_rows`."""

    def kernel_sums(self, targets: Array) -> Array:
        """Σⱼ wⱼ(xᵢ − x̄)ᵀ(xⱼ − x̄)tⱼ over the OTHER rows j, for every row i and target: ridge without its inverse."""
        columns = as_columns(targets)
        sums, squared_norms = self._rows.times_and_squared_norms(self._cross(columns))
        return sums - squared_norms[:, None] * (self.weights[:, None] * columns)

    def residuals(self, targets: Array, reg: float) -> Array:
        """Residuals t − t̂ of targets, (m, n_targets), about their mean with an intercept."""
        return self._residuals_and_slack(targets - self._centre(targets), [reg])(slice(None))[0][
            :, 0, :
        ]

    def leave_one_out(self, targets: Array, regs: ArrayLike) -> LeaveOneOut:
        """Leave-one-out fits of every row, for every penalty and target; a row leaves with its whole weight."""
        return self.leave_one_out_parts(targets, regs)(slice(None))

    def leave_one_out_parts(
        self, targets: Array, regs: ArrayLike
    ) -> Callable[[slice], LeaveOneOut]:
        """Return `leave_one_out` as a function of which rows: those of many rows and penalties are many numbers."""
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
        """Return t − t̂ of centred targets, (m, n_regs, n_targets), and 1 − H, (m, n_regs), of the rows asked for."""

    @abstractmethod
    def _resolution(self, regs: ArrayLike) -> float:
        """Slack that cannot be told from none."""

    def _cross(self, columns: Array) -> Array:
        """Σ wᵢ(xᵢ − x̄)tᵢ, (p, n_targets)."""
        return self._rows.transposed_times(self.weights[:, None] * columns)

    def _mean_target(self, columns: Array) -> Array:
        return array_namespace(columns).matmul(self.weights, columns) / self.n

    def _centre(self, columns: Array) -> Array:
        mean = self._mean_target(columns)[None, :]
        return mean if self.fit_intercept else array_namespace(mean).zeros_like(mean)
