r"""One eigendecomposition that serves every ridge penalty, every target and every exact leave-one-out score.

The fit minimises (1/n)Σ wᵢ(tᵢ − b − βᵀxᵢ)² + γ‖β‖² with n = Σ wᵢ. Let A hold the rows √wᵢ(xᵢ − x̄) (x̄ = 0 without
an intercept). Either Gram matrix gives the whole path over γ:

* primal (p×p): AᵀA = V diag(s) Vᵀ, β = V diag(1/(s + nγ)) Vᵀ Aᵀ√w t,
* dual (m×m, where p is not below m, less one with an intercept): AAᵀ = U diag(s) Uᵀ, β = AᵀU diag(1/(s + nγ)) Uᵀ √w t.

The fit is linear in t with hat values Hᵢ, so leaving row i out, at the same penalty nγ, needs no refit:

.. math:: \hat t_i^{(-i)} = t_i - \frac{t_i - \hat t_i}{1 - H_i}.

With rows zᵢ in the coordinates of V, hat values are Hᵢ = wᵢ Σⱼ zᵢⱼ²/(sⱼ + nγ) (and wᵢ/n for an intercept). As functions
of s, those of all penalties, and of products of hat matrices, are mixtures of a few dozen, so that one pass over the
rows, the one that costs as much as two Gram matrices, serves them all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, Self

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import ArrayLike

from unflip._sparse import as_dense
from unflip._typing import Array, Rows
from unflip.centred import CentredRows, DenseRows
from unflip.moments import Moments

_SMALLEST_SLACK = 1e-10
# A table of hat values serves a few dozen penalties. Fewer have their squares and cubes tabulated as well; more span
# these, if some penalties below the smallest are added.
_FEW = 8
_SMALLER = 0.6 ** np.arange(1, 9)
# Gram matrices of so many numbers in single precision may be made in it, where eigenvalues differ by no more than this.
_FEW_VALUES, _SOME_ROWS, _EVEN, _LARGEST_SINGLE = 2**19, 500, 16.0, 1e20
# Singular values of no account, and the largest error of a spanned function relative to its largest value, for rows of
# single (False) and of double precision.
_RESOLVED = {False: 1e-10, True: 1e-15}
_SPANNED = {False: 1e-7, True: 1e-10}


class CannotLeaveOutError(ValueError):
    """A row alone determines a direction of the fit, so that without it there is none to score the row by."""

    def __init__(self) -> None:
        super().__init__(
            "A row cannot be left out: at this reg it alone determines a direction of the fit. Use a larger reg, or "
            "more distinct rows."
        )


@dataclass(frozen=True, eq=False)
class RidgePath:
    """Coefficients for every (γ, target)."""

    coef: Array  # (p, n_regs, n_targets)
    intercept: Array  # (n_regs, n_targets)


class LeftOut(Protocol):
    """Scores of rows by fits to the other rows, exact or not; see `LeaveOneOut`."""

    @property
    def targets(self) -> Array:
        """Targets of the rows, (m, n_targets)."""

    @property
    def scores(self) -> Array:
        """Score of each row by the fit to all other rows, (m, n_regs, n_targets)."""

    @property
    def label_free_scores(self) -> Array:
        """The same without the trace that a row's own target leaves on the others' mean."""

    def of_copies(self, owner: Array, targets: Array, share: Array) -> Self:
        """Leave out parts of rows."""


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """What every row's fit to the others is made of, for every (γ, target); see `Spectrum.leave_one_out`."""

    targets: Array  # (m, n_targets)
    residuals: Array  # t − t̂, (m, n_regs, n_targets)
    slack: Array  # 1 − Hᵢ, (m, n_regs): the share of its own target that a row's fit does not reproduce
    removed: Array  # weight that leaves with each row, (m,)
    mean_target: Array | None  # t̄ with an intercept, (n_targets,)
    n: float
    resolution: float  # slack below this is rounding error

    @property
    def scores(self) -> Array:
        """Score of each row by the fit to all other rows, (m, n_regs, n_targets)."""
        if float(array_namespace(self.slack).min(self.slack)) <= self.resolution:
            raise CannotLeaveOutError
        scores = self.residuals / self.slack[:, :, None]
        scores -= self.targets[:, None, :]
        scores *= -1  # in place: scores of many rows and penalties are large
        return scores

    @property
    def label_free_scores(self) -> Array:
        """Leave-one-out scores without the trace that a row's own target leaves on the others' mean.

        With an intercept the mean target of the remaining rows falls by wᵢ(tᵢ − t̄)/(n − wᵢ) when row i is left out,
        which ties plain leave-one-out scores to the row's own label. That is small, but under a strong penalty it is
        all that is left. Adding it back leaves t̄ + (xᵢ − x̄⁽⁻ⁱ⁾)ᵀβ⁽⁻ⁱ⁾ with one t̄ for all rows, in which row i's own
        label has no part.
        """
        scores = self.scores
        if self.mean_target is None:
            return scores
        shift = (self.targets - self.mean_target[None, :]) * (self.removed / (self.n - self.removed))[:, None]
        scores += shift[:, None, :]
        return scores

    def of_copies(self, owner: Array, targets: Array, share: Array) -> LeaveOneOut:
        """Leave out parts of rows.

        Row i of the result is a copy of row ``owner[i]`` that has a target of its own and leaves with a share of that
        row's weight.
        """
        xp = array_namespace(self.slack)
        columns = _as_columns(targets)
        own = columns - xp.take(self.targets, owner, axis=0)
        return replace(
            self,
            targets=columns,
            residuals=xp.take(self.residuals, owner, axis=0) + own[:, None, :],
            slack=(1 - share)[:, None] + share[:, None] * xp.take(self.slack, owner, axis=0),
            removed=share * xp.take(self.removed, owner, axis=0),
        )


@dataclass(frozen=True, eq=False)
class GramSpectrum:
    """Eigendecomposition of the p×p Gram matrix: fits from sums alone, without rows.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, codes = rng.normal(size=(50, 3)), rng.integers(2, size=50)
    >>> moments = Moments.from_rows(X, codes, n_classes=2)
    >>> path = GramSpectrum.from_moments(moments, fit_intercept=True).solve(moments, np.array([-1.0, 1.0]), [0.1, 1.0])
    >>> path.coef.shape, path.intercept.shape
    ((3, 2, 1), (2, 1))
    """

    eigenvalues: Array
    vectors: Array
    mean: Array
    n: float
    fit_intercept: bool
    n_varying: int

    @classmethod
    def from_moments(cls, moments: Moments, *, fit_intercept: bool) -> GramSpectrum:
        """Diagonalise the Gram matrix of the rows behind `moments`."""
        gram = moments.gram(centred=fit_intercept)
        return cls.from_gram(gram, moments.mean, moments.n, fit_intercept=fit_intercept)

    @classmethod
    def from_gram(cls, gram: Array, mean: Array, n: float, *, fit_intercept: bool) -> GramSpectrum:
        """Diagonalise a Gram matrix, about the mean where there is an intercept."""
        xp = array_namespace(gram)
        eigenvalues, vectors = xp.linalg.eigh(gram)
        n_varying = _count_varying(xp.linalg.diagonal(gram), mean, n)
        return cls(_nonnegative(eigenvalues), vectors, mean, n, fit_intercept, n_varying)

    def solve(self, moments: Moments, targets: Array, regs: ArrayLike) -> RidgePath:
        """Fit one target value (or a row of them) per class, for every penalty."""
        xp = array_namespace(self.vectors)
        table = _as_columns(targets)
        cross = moments.cross(table, centred=self.fit_intercept)
        return self.path(cross, xp.matmul(moments.counts, table) / moments.n, regs)

    def path(self, cross: Array, mean_target: Array, regs: ArrayLike) -> RidgePath:
        """Fit from Σ wᵢxᵢtᵢ (about the mean with an intercept) and the mean target."""
        rotated = array_namespace(cross).matmul(self.vectors.T, cross)
        coef = _times(self.vectors, self.inverse(regs)[:, :, None] * rotated[:, None, :])
        return _with_intercept(coef, self.mean, mean_target, self.fit_intercept)

    def inverse(self, regs: ArrayLike) -> Array:
        """1/(s + nγ), a column for each γ."""
        return _inverse(self.eigenvalues, self.n, _as_regs(regs, self.eigenvalues), self.n_varying)


class Spectrum(ABC):
    """Ridge fits and exact leave-one-out scores of given rows, for every penalty and target.

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
    """

    def __init__(self, rows: CentredRows, *, fit_intercept: bool) -> None:
        self.fit_intercept = fit_intercept
        self._rows, self.weights, self.mean = rows, rows.weights, rows.mean
        self.n = float(array_namespace(rows.weights).sum(rows.weights))

    @staticmethod
    def of(X: Rows, sample_weight: Array | None = None, *, fit_intercept: bool = True) -> Spectrum:
        """Decompose the smaller Gram matrix of the rows: p×p, or m×m where the fit could reproduce every target.

        Parameters
        ----------
        X : array of shape (m, p), of any array-API namespace or of scipy.sparse
            Rows. Sparse ones become dense only where there are fewer features than rows.
        sample_weight : array of shape (m,) or None
            Positive weights, 1 by default.
        fit_intercept : bool
            Whether rows and targets are centred by their mean.
        """
        kind = PrimalSpectrum if X.shape[0] > X.shape[1] + int(fit_intercept) else DualSpectrum
        return kind(X, sample_weight, fit_intercept=fit_intercept)

    @abstractmethod
    def path(self, targets: Array, regs: ArrayLike) -> RidgePath:
        """Coefficients and intercepts for every penalty and target."""

    @property
    def scale(self) -> float:
        """Typical eigenvalue of the covariance, Σs²/(nΣs): the unit in which penalties are sensibly measured.

        It is the same for a row of weight 2 and for two copies of it, and 0 for rows that are all alike.
        """
        xp = array_namespace(self._eigenvalues)
        top = float(xp.max(self._eigenvalues)) or 1.0  # divided out so that squares do not overflow
        relative = self._eigenvalues / top
        total = float(xp.sum(relative))
        return top * float(xp.sum(relative**2)) / total / self.n if total > 0 else 0.0

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
    def n_rows(self) -> int:
        """Number of rows m, whatever their weights."""
        return int(self.weights.shape[0])

    def shrinkage(self, regs: ArrayLike) -> Array:
        """s/(s + nγ), the share of each principal direction that a fit keeps; a column for each γ."""
        penalties = self.n * _as_regs(regs, self._eigenvalues)[None, :]
        largest = float(array_namespace(self._eigenvalues).max(self._eigenvalues)) or 1.0
        relative = self._eigenvalues[:, None] / largest
        return relative / (relative + penalties / largest + (relative + penalties == 0))

    @abstractmethod
    def diagonal(self, values: Array) -> Array:
        """Diagonal of U diag(values) Uᵀ, U the unit vectors of the principal directions among the rows (√weighted).

        With the values of `shrinkage` these are the hat values of the rows, but for the intercept's share.
        """

    @abstractmethod
    def coordinates(self, count: int) -> Array:
        """Coordinates of the rows along the first principal directions, each scaled to variance 1; shape (m, count)."""

    @property
    @abstractmethod
    def principal_rows(self) -> Array:
        """The rows (about their mean, with an intercept) along the principal directions, (m, n_directions).

        Whatever depends on products of rows alone, such as any ridge-penalised fit, can be found in these coordinates.
        """

    @abstractmethod
    def from_principal(self, coef: Array) -> Array:
        """Return coefficients of the features, (p, n_targets), from those of `principal_rows`."""

    def kernel_sums(self, targets: Array) -> Array:
        """Σⱼ wⱼ(xᵢ − x̄)ᵀ(xⱼ − x̄)tⱼ over the OTHER rows j, for every row i and target: ridge without its inverse."""
        weighted = self.weights[:, None] * _as_columns(targets)
        own = self._rows.squared_norms()[:, None] * weighted
        return self._rows.times(self._rows.transposed_times(weighted)) - own

    def leave_one_out(self, targets: Array, regs: ArrayLike) -> LeaveOneOut:
        """Exact leave-one-out fits of every row, for every penalty and target; a row leaves with its whole weight."""
        columns = _as_columns(targets)
        centre = self._centre(columns)
        residuals, slack = self._residuals_and_slack(columns - centre, regs)
        return LeaveOneOut(
            targets=columns,
            residuals=residuals,
            slack=slack,
            removed=self.weights,
            mean_target=centre[0, :] if self.fit_intercept else None,
            n=self.n,
            resolution=self._resolution(regs),
        )

    @property
    @abstractmethod
    def _eigenvalues(self) -> Array: ...

    @abstractmethod
    def _residuals_and_slack(self, centred: Array, regs: ArrayLike) -> tuple[Array, Array]:
        """Return t − t̂ of centred targets, (m, n_regs, n_targets), and 1 − H, (m, n_regs)."""

    @abstractmethod
    def _resolution(self, regs: ArrayLike) -> float:
        """Slack that cannot be told from none."""

    def _mean_target(self, columns: Array) -> Array:
        return array_namespace(columns).matmul(self.weights, columns) / self.n

    def _centre(self, columns: Array) -> Array:
        mean = self._mean_target(columns)[None, :]
        return mean if self.fit_intercept else 0 * mean


class PrimalSpectrum(Spectrum):
    """More rows than features: eigenvectors of the p×p Gram matrix.

    Products with the eigenvectors for every row cost as much as two Gram matrices, so they are made once, for hat
    values (see `_HatTable`). All else needs products of the rows with a few columns.
    """

    def __init__(self, X: Rows, weights: Array | None = None, *, fit_intercept: bool) -> None:
        dense = as_dense(X)
        rows, self._gram = _decomposed(dense, weights, fit_intercept, in_single=_may_be_even(dense))
        super().__init__(rows, fit_intercept=fit_intercept)
        self._dense, self._table = rows, _HatTable.empty(self._gram.vectors)

    @property
    def n_varying(self) -> int:
        """Number of features that vary."""
        return self._gram.n_varying

    @property
    def _eigenvalues(self) -> Array:
        return self._gram.eigenvalues

    def path(self, targets: Array, regs: ArrayLike) -> RidgePath:
        """Coefficients and intercepts for every penalty and target."""
        columns = _as_columns(targets)
        return self._gram.path(self._cross(columns - self._centre(columns)), self._mean_target(columns), regs)

    def diagonal(self, values: Array) -> Array:
        """Diagonal of U diag(values) Uᵀ."""
        xp = array_namespace(values)
        reached = xp.where(_reached(self._eigenvalues)[:, None], values, xp.zeros_like(values))
        known = self._table.spans(reached)
        return self.weights[:, None] * (self._table.at(reached) if known else self._sums_of_squares(reached))

    @cached_property
    def principal_rows(self) -> Array:
        """The rows along the principal directions."""
        return self._rows.times(self._gram.vectors)

    def from_principal(self, coef: Array) -> Array:
        """Return coefficients of the features."""
        return array_namespace(coef).matmul(self._gram.vectors, coef)

    def coordinates(self, count: int) -> Array:
        """Coordinates of the rows along the first principal directions, each scaled to variance 1."""
        xp = array_namespace(self.weights)
        last = self._eigenvalues.shape[0]
        leading = slice(last - count, last)
        scaled = self._gram.vectors[:, leading] / xp.sqrt(self._eigenvalues[leading] / self.n)[None, :]
        return self._rows.times(xp.flip(scaled, axis=1))

    def _residuals_and_slack(self, centred: Array, regs: ArrayLike) -> tuple[Array, Array]:
        xp = array_namespace(centred)
        rotated = xp.matmul(self._gram.vectors.T, self._cross(centred)) / self._unit[:, None]
        kept = self._kept(regs)
        is_new = not self._table.spans(kept)
        functions = self._functions(kept, regs) if is_new else self._table.functions
        mixture = _mixture(functions, kept)
        spanned = mixture.shape[0] < mixture.shape[1]  # fitted values of the functions give those of all penalties
        filtered = (functions if spanned else kept)[:, :, None] * rotated[:, None, :]
        coef = _times(self._gram.vectors, filtered)
        columns = xp.reshape(coef, (coef.shape[0], -1))
        if is_new:
            fitted, sums = self._fitted_and_sums(columns, functions)
            self._table = _HatTable(functions, sums, _SPANNED[self._is_double])
        else:
            fitted = self._rows.times(columns)
        fitted = xp.reshape(fitted, (-1, *coef.shape[1:]))
        residuals = _mixed(fitted, mixture) if spanned else fitted
        residuals -= centred[:, None, :]
        residuals *= -1  # in place: there are as many as rows times penalties
        slack = xp.matmul(self._table.sums, mixture)
        slack += 1 / self.n if self.fit_intercept else 0.0
        slack *= -self.weights[:, None]
        slack += 1
        return residuals, slack

    def _resolution(self, regs: ArrayLike) -> float:
        return _SMALLEST_SLACK  # found by subtraction: digits are lost

    def _cross(self, centred: Array) -> Array:
        return self._rows.transposed_times(self.weights[:, None] * centred)

    @property
    def _unit(self) -> Array:
        """Eigenvalues s, those that no row reaches raised to where rounding ends."""
        xp = array_namespace(self._eigenvalues)
        smallest = float(xp.max(self._eigenvalues)) * _rounding(self._eigenvalues) or 1.0
        return xp.where(self._eigenvalues > smallest, self._eigenvalues, smallest * xp.ones_like(self._eigenvalues))

    def _kept(self, regs: ArrayLike) -> Array:
        """s/(s + nγ), a column for each γ, as the fits have it where rounding decides."""
        return self._unit[:, None] * self._gram.inverse(regs)

    def _functions(self, kept: Array, regs: ArrayLike) -> Array:
        return _orthonormal(self._neighbourhood(kept, regs), _RESOLVED[self._is_double])

    @property
    def _is_double(self) -> bool:
        return bool(self._dense.X.dtype == array_namespace(self._dense.X).float64)

    def _neighbourhood(self, kept: Array, regs: ArrayLike) -> Array:
        """Hat matrices' eigenvalues for these penalties, with what penalties nearby and products need besides."""
        xp = array_namespace(kept)
        penalties = np.atleast_1d(np.asarray(regs, dtype=float))
        if len(penalties) <= _FEW:
            return xp.concat([kept, kept**2, kept**3], axis=1)
        ends = self._kept(penalties[[np.argmin(penalties), np.argmax(penalties)]])
        smaller = penalties.min() * _SMALLER
        below = self._kept(smaller) if smaller.all() else kept[:, :0]
        return xp.concat([kept, below, ends**2, ends**3], axis=1)

    def _sums_of_squares(self, values: Array) -> Array:
        """Σⱼ zᵢⱼ²vⱼ/sⱼ for every row, in principal coordinates z, and every column of values v."""
        return self._fitted_and_sums(self._gram.vectors[:, :0], values)[1]

    def _fitted_and_sums(self, coef: Array, values: Array) -> tuple[Array, Array]:
        """Products of the rows with coefficients and `_sums_of_squares`, in one pass over the rows."""
        xp = array_namespace(values)
        weights = values / self._unit[:, None]
        if "principal_rows" in vars(self):
            turned = DenseRows.of_given(self.principal_rows)
            sums = turned.mapped(lambda block: xp.matmul(block**2, weights), values.shape[1])
            return self._rows.times(coef), sums
        spread = (float(xp.max(self._unit)) / self.n) ** 0.5  # coordinates of about 1 have squares in any precision
        axes, weights = self._like_rows(self._gram.vectors / spread), self._like_rows(weights * spread * spread)
        shift = self._like_rows(xp.matmul(self._dense.shift, self._gram.vectors) / spread)[None, :]
        fitted_shift = xp.matmul(self._dense.shift, coef)[None, :]

        def both(block: Array) -> Array:
            fitted = xp.matmul(xp.astype(block, coef.dtype, copy=False), coef) - fitted_shift
            turned = xp.matmul(block, axes)
            turned -= shift
            turned *= turned
            return xp.concat([fitted, xp.astype(xp.matmul(turned, weights), coef.dtype, copy=False)], axis=1)

        found = self._dense.mapped(both, coef.shape[1] + values.shape[1])
        return found[:, : coef.shape[1]], xp.asarray(found[:, coef.shape[1] :], copy=True)  # kept without the rest

    def _like_rows(self, values: Array) -> Array:
        return array_namespace(values).astype(values, self._dense.X.dtype, copy=False)


def _decomposed(
    X: Array, weights: Array | None, fit_intercept: bool, *, in_single: bool
) -> tuple[DenseRows, GramSpectrum]:
    """Return the rows and their spectrum, for which products in single precision must not be too rough."""
    xp = array_namespace(X)
    known = xp.ones(X.shape[0], dtype=xp.float64, device=device(X)) if weights is None else weights
    rows, scatter, _ = DenseRows.with_sums(X, known[:, None], weights, centre=fit_intercept, in_single=in_single)
    if not in_single or _looks_even(scatter):
        n = float(xp.sum(rows.weights))
        found = GramSpectrum.from_gram(scatter, rows.mean, n, fit_intercept=fit_intercept)
        if not in_single or _is_even(found.eigenvalues):
            return rows, found
    return _decomposed(X, weights, fit_intercept, in_single=False)


def _may_be_even(X: Array) -> bool:
    """Whether rows are of single precision, many, and no feature varies much more than another."""
    xp = array_namespace(X)
    if X.dtype != xp.float32 or X.shape[0] * X.shape[1] <= _FEW_VALUES:
        return False
    variances = xp.var(xp.astype(X[:: max(X.shape[0] // _SOME_ROWS, 1), :], xp.float64), axis=0)
    in_range = bool(xp.all((variances > 1 / _LARGEST_SINGLE) & (variances < _LARGEST_SINGLE)))
    return in_range and _is_even(variances)


def _looks_even(gram: Array) -> bool:
    """Whether the mean of the squared eigenvalues is at most twice the square of their mean."""
    xp = array_namespace(gram)
    return int(gram.shape[0]) * float(xp.sum(gram**2)) <= 2 * float(xp.sum(xp.linalg.diagonal(gram))) ** 2


def _is_even(eigenvalues: Array) -> bool:
    """Whether errors of 1e-7 of the largest are small beside the smallest."""
    xp = array_namespace(eigenvalues)
    return float(xp.max(eigenvalues)) <= _EVEN * float(xp.min(eigenvalues))


@dataclass(frozen=True, eq=False)
class _HatTable:
    r"""Σⱼ zᵢⱼ²vⱼ/sⱼ of every row i for an orthonormal set of functions v of the principal directions j.

    Hat values are such sums with v = s/(s + nγ), and diagonals of products of hat matrices with products of these. As
    functions of s they are so smooth that a few dozen span all of them to rounding, for any number of penalties.
    """

    functions: Array  # (p, r), orthonormal columns
    sums: Array  # (m, r)
    tolerance: float

    @classmethod
    def empty(cls, like: Array) -> _HatTable:
        """Return a table that spans nothing."""
        return cls(like[:, :0], like[:0, :0], 0.0)

    def spans(self, values: Array) -> bool:
        """Whether all columns of values are mixtures of the functions."""
        xp = array_namespace(values)
        missed = values - xp.matmul(self.functions, _mixture(self.functions, values))
        return bool(xp.all(xp.max(xp.abs(missed), axis=0) <= self.tolerance * xp.max(xp.abs(values), axis=0)))

    def at(self, values: Array) -> Array:
        """Return the sums for such mixtures."""
        return array_namespace(values).matmul(self.sums, _mixture(self.functions, values))


def _orthonormal(values: Array, resolved: float) -> Array:
    """Orthonormal functions that span the columns of `values`, each of them to rounding, however small it is."""
    xp = array_namespace(values)
    size = xp.sqrt(xp.sum(values**2, axis=0))
    left, singular, _ = xp.linalg.svd(values / xp.where(size > 0, size, xp.ones_like(size)), full_matrices=False)
    rank = int(xp.sum(xp.astype(singular > resolved * singular[0], xp.int64)))
    return left[:, :rank]


def _mixture(functions: Array, values: Array) -> Array:
    """How orthonormal functions add up to the columns of `values`, (r, n_columns)."""
    return array_namespace(values).matmul(functions.T, values)


def _mixed(stacked: Array, mixture: Array) -> Array:
    """Mix the middle axis of an (m, r, n_targets) stack."""
    xp = array_namespace(stacked)
    if stacked.shape[2] == 1:
        return xp.matmul(stacked[:, :, 0], mixture)[:, :, None]
    return xp.permute_dims(xp.matmul(xp.permute_dims(stacked, (2, 0, 1)), mixture), (1, 2, 0))


class DualSpectrum(Spectrum):
    """At least as many features as rows: eigenvectors of the m×m Gram matrix.

    With an intercept the direction √w, which the centred rows do not reach, gets an eigenvalue above all others: it
    comes out as the last eigenvector, the one that the intercept fits without penalty. Residuals and slack are then
    sums of nγ/(s + nγ) over the other directions, exact however small γ is.
    """

    def __init__(self, X: Rows, weights: Array | None = None, *, fit_intercept: bool) -> None:
        rows = CentredRows.of(X, weights, centre=fit_intercept)
        super().__init__(rows, fit_intercept=fit_intercept)
        xp = array_namespace(rows.weights)
        self._root_weights = xp.sqrt(rows.weights)
        gram = rows.gram()
        if weights is not None:
            gram = self._root_weights[:, None] * gram * self._root_weights[None, :]
        if fit_intercept:
            top = 2 * float(xp.sum(xp.linalg.diagonal(gram))) or 1.0
            gram = gram + (top / self.n) * self._root_weights[:, None] * self._root_weights[None, :]
        eigenvalues, vectors = xp.linalg.eigh(gram)
        penalised = slice(0, eigenvalues.shape[0] - int(fit_intercept))
        self._values, self._vectors = _nonnegative(eigenvalues[penalised]), vectors[:, penalised]
        self._n_varying = _count_varying(rows.column_powers(), self.mean, self.n)

    @property
    def n_varying(self) -> int:
        """Number of features that vary."""
        return self._n_varying

    @property
    def _eigenvalues(self) -> Array:
        return self._values

    def path(self, targets: Array, regs: ArrayLike) -> RidgePath:
        """Coefficients and intercepts for every penalty and target."""
        columns = _as_columns(targets)
        filtered = self._inverse(regs)[:, :, None] * self._rotated(columns - self._centre(columns))[:, None, :]
        coef = self._features(_times(self._vectors, filtered))
        return _with_intercept(coef, self.mean, self._mean_target(columns), self.fit_intercept)

    def diagonal(self, values: Array) -> Array:
        """Diagonal of U diag(values) Uᵀ."""
        return array_namespace(self.weights).matmul(self._vectors**2, values)

    @property
    def principal_rows(self) -> Array:
        """The rows along the principal directions."""
        xp = array_namespace(self.weights)
        return self._vectors * xp.sqrt(self._values)[None, :] / self._root_weights[:, None]

    def from_principal(self, coef: Array) -> Array:
        """Return coefficients of the features; directions that no row reaches have none."""
        xp = array_namespace(coef)
        reached = _reached(self._values)
        root = xp.sqrt(xp.where(reached, self._values, xp.ones_like(self._values)))
        kept = xp.where(reached[:, None], coef / root[:, None], xp.zeros_like(coef))
        return self._features(xp.matmul(self._vectors, kept))

    def coordinates(self, count: int) -> Array:
        """Coordinates of the rows along the first principal directions, each scaled to variance 1."""
        xp = array_namespace(self.weights)
        last = self._values.shape[0]
        scaled = self._vectors[:, last - count : last] * (self.n**0.5 / self._root_weights)[:, None]
        return xp.flip(scaled, axis=1)

    def _residuals_and_slack(self, centred: Array, regs: ArrayLike) -> tuple[Array, Array]:
        remainder = self._remainder(regs)
        filtered = remainder[:, :, None] * self._rotated(centred)[:, None, :]
        residuals = _times(self._vectors, filtered) / self._root_weights[:, None, None]
        return residuals, self.diagonal(remainder)

    def _resolution(self, regs: ArrayLike) -> float:
        return 0.0 if float(np.min(regs)) > 0 else _SMALLEST_SLACK  # a sum of positive terms, unless some vanish

    def _rotated(self, centred: Array) -> Array:
        return array_namespace(centred).matmul(self._vectors.T, self._root_weights[:, None] * centred)

    def _features(self, combined: Array) -> Array:
        """AᵀB for a stack B of shape (m, ...)."""
        return _in_one(lambda flat: self._rows.transposed_times(self._root_weights[:, None] * flat), combined)

    def _inverse(self, regs: ArrayLike) -> Array:
        return _inverse(self._values, self.n, _as_regs(regs, self._values), self._n_varying)

    def _remainder(self, regs: ArrayLike) -> Array:
        """nγ/(s + nγ), the share of a direction that the penalty leaves unfitted; 1 for s = 0 even at γ = 0."""
        xp = array_namespace(self._values)
        penalties = self.n * _as_regs(regs, self._values)[None, :]
        unfitted = xp.astype(~_reached(self._values), self._values.dtype)[:, None]
        return xp.where(penalties > 0, penalties * self._inverse(regs), unfitted + 0 * penalties)


def _with_intercept(coef: Array, mean: Array, mean_target: Array, fit_intercept: bool) -> RidgePath:
    offset = mean_target[None, :] - _times(mean[None, :], coef)[0, :, :]
    return RidgePath(coef, offset if fit_intercept else 0 * offset)


def _inverse(eigenvalues: Array, n: float, regs: Array, n_varying: int) -> Array:
    """1/(s + nγ); at γ = 0 the directions that no row reaches get 0, and a rank below n_varying is an error."""
    xp = array_namespace(eigenvalues)
    shifted = eigenvalues[:, None] + n * regs[None, :]
    if float(xp.min(regs)) > 0:
        return 1 / shifted
    reached = _reached(eigenvalues)
    rank = int(xp.sum(xp.astype(reached, xp.int64)))
    if rank < n_varying:
        raise ValueError(
            f"reg=0 needs a Gram matrix of full rank, but the rows span {rank} of {n_varying} varying features: use a "
            "positive reg, drop collinear features, or add rows."
        )
    usable = reached[:, None] | (regs[None, :] > 0)
    return xp.where(usable, 1 / xp.where(usable, shifted, xp.ones_like(shifted)), xp.zeros_like(shifted))


def _reached(eigenvalues: Array) -> Array:
    """Whether a direction carries more than rounding error."""
    xp = array_namespace(eigenvalues)
    return eigenvalues > xp.max(eigenvalues) * _rounding(eigenvalues)


def _rounding(eigenvalues: Array) -> float:
    """Return the rounding error of eigenvalues, relative to the largest."""
    return int(eigenvalues.shape[0]) * float(array_namespace(eigenvalues).finfo(eigenvalues.dtype).eps)


def _count_varying(column_power: Array, mean: Array, n: float) -> int:
    """Count the columns that are not constant (with an intercept) or not zero (without).

    A constant column keeps a rounding error of its mean. One that merely varies little beside others must count, so
    that a rank too low to resolve it is found out.
    """
    xp = array_namespace(column_power)
    rounding = 32 * float(xp.finfo(mean.dtype).eps) * mean
    return int(xp.sum(xp.astype(column_power > n * rounding**2, xp.int64)))


def _nonnegative(eigenvalues: Array) -> Array:
    """Gram matrices have no negative eigenvalue; rounding makes some."""
    xp = array_namespace(eigenvalues)
    return xp.where(eigenvalues > 0, eigenvalues, xp.zeros_like(eigenvalues))


def _as_columns(targets: Array) -> Array:
    return targets[:, None] if targets.ndim == 1 else targets


def _as_regs(regs: ArrayLike, like: Array) -> Array:
    values = np.atleast_1d(np.asarray(regs, dtype=float))
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError(f"reg={values[~(np.isfinite(values) & (values >= 0))][0]:g} must be finite and not negative.")
    return array_namespace(like).asarray(values, dtype=like.dtype, device=device(like))


def _times(matrix: Array, stacked: Array) -> Array:
    """Multiply a matrix with a (q, n_regs, n_targets) stack along its first axis, in one product."""
    return _in_one(lambda flat: array_namespace(matrix).matmul(matrix, flat), stacked)


def _in_one(product: Callable[[Array], Array], stacked: Array) -> Array:
    """Apply a product with columns to all columns of a stack at once."""
    xp = array_namespace(stacked)
    found = product(xp.reshape(stacked, (stacked.shape[0], -1)))
    return xp.reshape(found, (found.shape[0], *stacked.shape[1:]))
