r"""Spectrum of large sparse rows, whose Gram matrices are too large to decompose.

**Fits** use Lanczos. Regularization only shifts AᵀA (or AAᵀ, whichever is smaller), so one Krylov
space, grown from Aᵀ√w t, holds the fits for every γ. The smallest γ determines its dimension. Fits
are solved to a relative residual, as by any iterative solver; they have no other error.

**Leverages** of single rows are not computed, but their sum Σ s/(s + nγ) is: a few random vectors
estimate it to a fraction of a percent (`unflip.ridge.spectrum.traces`). A model of the rows divides
it among them (`unflip.ridge.spectrum.leverage_model`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.exceptions import ConvergenceWarning

from unflip._utils.typing import FloatArray, Rows
from unflip._utils.warnings import warn_caller
from unflip.data.sparse_rows import SparseRows
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.eigenvalues import count_varying
from unflip.ridge.spectrum.lanczos import Lanczos
from unflip.ridge.spectrum.leverage_model import LeverageModel, kept_apart, product_diagonal
from unflip.ridge.spectrum.stacks import RidgePath, as_columns, as_regs, in_one, with_intercept
from unflip.ridge.spectrum.traces import Quadrature, random_signs

#: Sparse rows are decomposed exactly if they have at most this number of rows or of features: the
#: Gram matrix then takes 128 MB.
LARGEST_EXACT = 4000
#: Relative residual of fits. On simulated text-like rows, leave-one-out scores move by 1e-5 with
#: ten times more, and by 1e-6 with ten times less.
TOLERANCE = 1e-6
#: Mean leverage up to which leave-one-out scores are used to select a regularization strength: with
#: more, they amplify the errors of approximate leverages by 1/(1 − H). A choice: with 0.35 and 0.9
#: other strengths are selected on simulated rows.
LARGEST_MEAN_LEVERAGE = 0.7
# Memory of cached Krylov bases, in bytes: 2 GiB. Half and double give the same fits.
_MOST_BYTES = 2**31
# Targets whose Krylov spaces are grown together: it limits the memory, not the result.
_GROUP = 8
# Regularization strengths whose leverages are cached: a path, or all that a round of refinement
# compares.
_MOST_CACHED = 64


def is_out_of_reach(X: Rows) -> bool:
    """Whether rows are sparse and both Gram matrices are too large to decompose."""
    return bool(issparse(X)) and min(X.shape) > LARGEST_EXACT


def sums_of_eigenvalues(X: Rows) -> tuple[float, float]:
    """Return Σs and Σs² of sparse rows about their mean, up to a common unit of s.

    They are exact if the smaller Gram matrix can be decomposed. The unit is such that fourth powers
    of the features do not overflow float64.
    """
    if is_out_of_reach(X):
        spectrum = KrylovSpectrum(X, fit_intercept=True)
        return 1.0, spectrum.scale * spectrum.n / spectrum.total
    rows = SparseRows.of(X)
    gram = rows.gram() if X.shape[0] < X.shape[1] else rows.scatter()
    gram /= np.abs(gram).max() or 1.0
    return float(np.trace(gram)), float((gram**2).sum())


class KrylovSpectrum(Spectrum):
    """Fits by Lanczos and approximate leverages, for many sparse rows with many features.

    Parameters
    ----------
    X : sparse array of shape (m, p)
        Rows; they stay sparse.
    weights : ndarray of shape (m,), optional
        Positive weights, 1 by default.
    fit_intercept : bool
        Whether rows and targets are centred by their mean.
    tolerance : float
        Relative residual of the normal equations at the smallest regularization strength; at larger
        ones it is smaller.

    Examples
    --------
    >>> from scipy.sparse import random_array
    >>> rng = np.random.default_rng(0)
    >>> X = random_array((50, 30), density=0.2, format="csr", rng=rng)
    >>> spectrum = KrylovSpectrum(X, fit_intercept=True)
    >>> spectrum.path(rng.normal(size=50), [0.1, 1.0]).coef.shape
    (30, 2, 1)
    """

    is_whole = False

    def __init__(
        self,
        X: Rows,
        weights: FloatArray | None = None,
        *,
        fit_intercept: bool,
        tolerance: float = TOLERANCE,
    ) -> None:
        self._sparse = SparseRows.of(X, weights, centre=fit_intercept)
        super().__init__(self._sparse, fit_intercept=fit_intercept)
        self.tolerance = tolerance
        self._shape: tuple[int, int] = X.shape
        self._by_features = X.shape[1] <= X.shape[0]  # the smaller Gram matrix is p×p
        self._root_weights = np.sqrt(self.weights)
        largest = max(float(X.max()), -float(X.min()))
        # Unit of the Gram matrix, so that squares of its eigenvalues do not overflow float64.
        self._unit = largest**2 * self.n or 1.0
        # Leverages at the latest regularization strengths, which parts of the rows share.
        self._leverages: dict[float, FloatArray] = {}
        self._warned_regs: set[float] = set()
        # Krylov spaces with the unit vectors they start from, the latest last.
        self._spaces: list[tuple[FloatArray, Lanczos]] = []

    @property
    def n_varying(self) -> int:
        """Number of features that vary."""
        return count_varying(self._column_powers, self.mean, self.n)

    @property
    def scale(self) -> float:
        """Typical eigenvalue of the covariance, Σs²/(nΣs), up to the error of the quadrature."""
        relative_total = self.total / self._unit
        if relative_total <= 0:
            return 0.0
        squares = self._quadrature.sums(self._quadrature.nodes.ravel() ** 2)
        return self._unit * float(squares) / relative_total / self.n

    @property
    def total(self) -> float:
        """Sum of all eigenvalues s."""
        return float(self._column_powers.sum())

    @property
    def variances(self) -> FloatArray:
        """Not available: only sums over all of them are."""
        raise self._unavailable(
            "The mixture structure of the rows", "pass a NoiseModel or trusted labels"
        )

    @property
    def principal_rows(self) -> FloatArray:
        """Not available."""
        raise self._unavailable("A loss other than the squared one", "use loss='squared'")

    def from_principal(self, coef: FloatArray) -> FloatArray:
        """Not available."""
        raise self._unavailable("A loss other than the squared one", "use loss='squared'")

    @cached_property
    def least_reg(self) -> float:
        """Smallest γ whose leave-one-out scores are reliable: the weighted mean leverage is 0.7.

        If rows are fitted more closely, the contribution of a row's own target to its score is no
        longer small compared with that of the other rows. An error of a few percent in the leverage
        then leaks the label into the score. Rows of large weight are fitted most closely, and count
        most when scores are compared.
        """
        least = self._unit * self._quadrature.shift_of(LARGEST_MEAN_LEVERAGE * self.n_rows) / self.n
        if (self.weights == self.weights[0]).all():
            return least

        def excess(log_reg: float) -> float:
            return self._weighted_mean_leverage(float(np.exp(log_reg))) - LARGEST_MEAN_LEVERAGE

        # Bounds of γ, in units of the typical eigenvalue: the mean leverage is about 1 and 0 there.
        smallest, largest = np.log(self.scale or 1.0) + np.log((1e-8, 1e4))
        if excess(smallest) <= 0:
            return 0.0
        return float(np.exp(brentq(excess, smallest, largest, xtol=1e-3)))

    def path(self, targets: FloatArray, regs: ArrayLike) -> RidgePath:
        """Return coefficients and intercepts for every regularization strength and target."""
        columns = as_columns(targets)
        coef = self._coefficients(self._solved(columns - self._centre(columns), regs))
        return with_intercept(coef, self.mean, self._mean_target(columns), self.fit_intercept)

    def diagonal(self, values: FloatArray, rows: slice = slice(None)) -> FloatArray:
        """Not available, except for hat matrices and their products: see `hat_diagonals`."""
        raise self._unavailable("The diagonal of any function of the rows", "use hat_diagonals")

    def hat_diagonals(
        self, *products: Sequence[ArrayLike], rows: slice = slice(None)
    ) -> list[FloatArray]:
        """Return diagonals of products of hat matrices, by the model of the leverages."""
        factors = [
            kept_apart(np.array(np.broadcast_arrays(*map(self._positive, product))))
            for product in products
        ]
        leverages = iter(self._model_leverages(np.concatenate([regs.ravel() for regs in factors])))
        diagonals = []
        for regs in factors:
            by_factor = [np.column_stack([next(leverages)[rows] for _ in row]) for row in regs]
            diagonals.append(product_diagonal(regs, by_factor))
        return diagonals

    def _model_leverages(self, regs: FloatArray) -> list[FloatArray]:
        """Return leverages of all rows at each regularization strength; use the cache."""
        requested = dict.fromkeys(regs.tolist())
        missing = np.array([reg for reg in requested if reg not in self._leverages])
        intercept_share = self.weights / self.n if self.fit_intercept else np.zeros(self.n_rows)
        model = LeverageModel(self._sparse, self._column_powers, 1 - intercept_share)
        totals = self._quadrature.sums(self.shrinkage(missing))
        computed = model.values(totals, self.n * missing)
        leverages = self._leverages | dict(zip(missing.tolist(), computed, strict=True))
        in_order = [*(reg for reg in leverages if reg not in requested), *requested]
        self._leverages = {reg: leverages[reg] for reg in in_order[-_MOST_CACHED:]}
        return [leverages[reg] for reg in regs.tolist()]

    def power_sums(self, reg: float) -> list[float]:
        """Return sums of the first three powers of the shrinkage, by quadrature."""
        kept = self.shrinkage([reg])
        return [float(self._quadrature.sums(kept**power)[0]) for power in (1, 2, 3)]

    def mean_leverage(self, regs: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return the mean leverage, without the intercept's share, and its standard error.

        There is one of each for every regularization strength.
        """
        shrinkage = self.shrinkage(regs)
        mean = self._quadrature.sums(shrinkage) / self.n_rows
        standard_error = self._quadrature.errors(shrinkage) / self.n_rows
        return mean, standard_error

    def _weighted_mean_leverage(self, reg: float) -> float:
        return float(self.weights @ self._model_leverages(np.array([reg]))[0]) / self.n

    def coordinates(self, count: int) -> FloatArray:
        """Return coordinates along the first principal directions, of variance 1, (m, count)."""
        if count == 0:
            return np.zeros((self.n_rows, 0))
        gram = LinearOperator(
            (self._size, self._size), matvec=self._gram_times, matmat=self._gram_times, dtype=float
        )
        values, vectors = eigsh(gram, count, which="LA", v0=random_signs(self._size)[:, 0])
        values = self._unit * values[::-1]
        vectors = vectors[:, ::-1]
        if self._by_features:
            return np.asarray(self._rows.times(vectors / np.sqrt(values / self.n)))
        return np.asarray(vectors * (self.n**0.5 / self._root_weights)[:, None])

    @property
    def _eigenvalues(self) -> FloatArray:
        """Nodes of the quadrature, which take the place of the eigenvalues."""
        return self._unit * self._quadrature.nodes.ravel()

    @property
    def _size(self) -> int:
        return min(self._shape)

    @cached_property
    def _column_powers(self) -> FloatArray:
        return self._sparse.column_powers()

    @cached_property
    def _quadrature(self) -> Quadrature:
        probes = random_signs(self._size)
        dimension = self._size
        if self.fit_intercept and not self._by_features:
            # The centred rows do not reach √w, which the intercept fits: leave it out.
            probes -= self._root_weights[:, None] * (self._root_weights @ probes) / self.n
            dimension -= 1
        return Quadrature.of(self._gram_times, probes, dimension)

    def _gram_times(self, columns: FloatArray) -> FloatArray:
        """Multiply the smaller Gram matrix, in its unit, with a (d, q) array or a vector."""
        flat = columns.reshape(self._size, -1)
        if self._by_features:
            return self._sparse.transposed_times(
                (self.weights / self._unit)[:, None] * self._sparse.times(flat)
            )
        root = self._root_weights[:, None]
        return np.asarray(
            root / self._unit * self._sparse.times(self._sparse.transposed_times(root * flat))
        )

    def _coefficients(self, solved: FloatArray) -> FloatArray:
        if self._by_features:
            return solved
        root = self._root_weights[:, None]
        return np.asarray(in_one(lambda flat: self._sparse.transposed_times(root * flat), solved))

    def _residuals_and_slack(
        self, centred: FloatArray, regs: ArrayLike
    ) -> Callable[[slice], tuple[FloatArray, FloatArray]]:
        solved = self._solved(centred, regs)
        self._warn_if_unreliable(float(np.min(regs)))
        leverages = self._model_leverages(as_regs(regs, self.weights))

        def part(rows: slice) -> tuple[FloatArray, FloatArray]:
            slack = 1 - np.column_stack([leverage[rows] for leverage in leverages])
            if self.fit_intercept:
                slack -= (self.weights[rows] / self.n)[:, None]
            return self._residuals(centred, solved, regs, rows), slack

        return part

    def _residuals(
        self, centred: FloatArray, solved: FloatArray, regs: ArrayLike, rows: slice
    ) -> FloatArray:
        """Return t − t̂ of the rows in a slice, (m, n_regs, n_targets)."""
        if self._by_features:
            fitted = in_one(self._sparse.of_rows(rows).times, solved)
            return np.asarray(centred[rows, None, :] - fitted)
        shifts = self.n * as_regs(regs, self.weights)
        return np.asarray(shifts[:, None] * solved[rows] / self._root_weights[rows, None, None])

    def _warn_if_unreliable(self, reg: float) -> None:
        if reg < self.least_reg and reg not in self._warned_regs:
            self._warned_regs.add(reg)
            warn_caller(
                f"Leave-one-out scores at reg={reg:.2g} are inaccurate: rows are fitted so closely "
                f"(mean leverage {self._weighted_mean_leverage(reg):.2f}) that exact leverages "
                "would be needed, which are not available for sparse rows of this size. Use "
                f"reg='loo', or at least reg={self.least_reg:.2g}."
            )

    def _unavailable(self, subject: str, remedy: str) -> ValueError:
        m, p = self._shape
        return ValueError(
            f"{subject} needs every principal direction, which are too many for sparse rows of {m} "
            f"× {p}: {remedy}, or keep at most {LARGEST_EXACT} features."
        )

    def _resolution(self, regs: ArrayLike) -> float:
        return 0.0  # the model gives every row a leverage below 1

    def _solved(self, centred: FloatArray, regs: ArrayLike) -> FloatArray:
        """Solve the normal equations (G + nγ)x = b, G the smaller Gram matrix.

        Solutions have shape (d, n_regs, n_targets).
        """
        shifts = self.n * self._positive(regs)
        weighted = self.weights[:, None] * centred
        if self._by_features:
            right = self._sparse.transposed_times(weighted)
        else:
            right = weighted / self._root_weights[:, None]
        groups = [right[:, start : start + _GROUP] for start in range(0, right.shape[1], _GROUP)]
        solved = [self._solved_together(group, shifts) for group in groups]
        return solved[0] if len(solved) == 1 else np.concatenate(solved, axis=2)

    def _positive(self, regs: ArrayLike) -> FloatArray:
        strengths: FloatArray = as_regs(regs, self.weights)
        if not strengths.all():
            raise self._unavailable("reg=0", "use a positive reg")
        return strengths

    def _solved_together(self, right: FloatArray, shifts: FloatArray) -> FloatArray:
        units, space = self._space(right)
        most = min(max(int(_MOST_BYTES / right.nbytes), 1), self._size)
        relative_shifts = shifts / self._unit
        residual = space.grow(float(relative_shifts.min()), self.tolerance, most)
        self._drop_old_spaces()
        if residual > self.tolerance and space.n_steps < self._size:
            warn_caller(
                f"Fits at reg={shifts.min() / self.n:.2g} stopped at a relative residual of "
                f"{residual:.1g}, because {most} steps fill the available memory: use a larger "
                "reg.",
                ConvergenceWarning,
            )
        solved = space.solutions(relative_shifts)
        solved *= np.einsum("dq,dq->q", units, right) / self._unit
        return solved

    def _space(self, right: FloatArray) -> tuple[FloatArray, Lanczos]:
        """Return the Krylov space of these columns; a cached one if they are multiples of its."""
        norms = np.linalg.norm(right, axis=0)
        units = right / np.where(norms > 0, norms, np.inf)
        for index, (cached_units, _) in enumerate(self._spaces):
            if cached_units.shape == units.shape and _are_parallel(cached_units, units):
                pair = self._spaces.pop(index)
                break
        else:
            pair = (units, Lanczos(self._gram_times, units, keep=True))
        self._spaces.append(pair)
        return pair

    def _drop_old_spaces(self) -> None:
        """Keep the latest space, and as many others as the memory allows."""
        while len(self._spaces) > 1 and self._cached_bytes > _MOST_BYTES:
            self._spaces.pop(0)

    @property
    def _cached_bytes(self) -> int:
        return sum(space.n_bytes for _, space in self._spaces)


def _are_parallel(one: FloatArray, other: FloatArray) -> bool:
    """Whether unit vectors, or zeros, are the same up to sign and rounding."""
    along = np.einsum("dq,dq->q", one, other)
    difference = np.linalg.norm(other - np.where(along < 0, -1, 1) * one, axis=0)
    return bool((difference <= 1e-12).all())
