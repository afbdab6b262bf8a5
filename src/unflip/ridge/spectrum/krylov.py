r"""Sparse rows of which neither Gram matrix can be decomposed: fits by Lanczos, hat values by a model of the rows.

**Fits.** A penalty only shifts AᵀA (or AAᵀ, whichever is smaller), so one Krylov space, grown from
Aᵀ√w t, holds the fits of the whole path; the smallest penalty says how far it must grow. Fits are
right to a relative residual, as those of any iterative solver; nothing else about them is
approximate.

**Hat values** of single rows are out of reach, but their sum Σ s/(s + nγ) is not: a few random
vectors tell it to a fraction of a percent (`unflip.ridge.spectrum.traces`). A model of the rows
divides it among them (`unflip.ridge.spectrum.hat_model`).
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
from unflip.data.centred import SparseRows
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.eigenvalues import count_varying
from unflip.ridge.spectrum.hat_model import HatModel, kept_apart, product_diagonal
from unflip.ridge.spectrum.lanczos import Lanczos
from unflip.ridge.spectrum.stacks import RidgePath, as_columns, as_regs, in_one, with_intercept
from unflip.ridge.spectrum.traces import Quadrature, random_signs

#: Sparse rows are decomposed exactly where they have no more rows, or no more features, than this.
LARGEST_EXACT = 4000
#: Relative residual of fits.
TOLERANCE = 1e-6
#: Mean hat value up to which leave-one-out scores are used to choose a penalty.
LARGEST_MEAN_HAT = 0.7
_MOST_BYTES = 2**31  # of bases that are kept
_GROUP = 8  # targets whose spaces are grown together
_KEPT_HATS = (
    64  # penalties of which hat values are kept: a path, or all that a round of refinement compares
)
_RANGE = (
    1e-8,
    1e4,
)  # of penalties among which the least one is sought, in units of the typical eigenvalue
_CLOSE = 1e-3  # error of its logarithm
_SAME = 1e-12  # difference of unit vectors that is rounding


def is_out_of_reach(X: Rows) -> bool:
    """Whether rows are sparse, and both Gram matrices too large to decompose."""
    return bool(issparse(X)) and min(X.shape) > LARGEST_EXACT


def sums_of_eigenvalues(X: Rows) -> tuple[float, float]:
    """Return Σs and Σs² of sparse rows about their mean, exactly where the smaller Gram matrix is within reach.

    They are in a unit of their own, in which squares of squares of any features are numbers.
    """
    if is_out_of_reach(X):
        spectrum = KrylovSpectrum(X, fit_intercept=True)
        return 1.0, spectrum.scale * spectrum.n / spectrum.total
    rows = SparseRows.of(X)
    gram = rows.gram() if X.shape[0] < X.shape[1] else rows.scatter()
    gram /= np.abs(gram).max() or 1.0
    return float(np.trace(gram)), float((gram**2).sum())


class KrylovSpectrum(Spectrum):
    """Sparse rows with many rows and many features: fits by Lanczos, approximate hat values.

    Parameters
    ----------
    X : sparse array of shape (m, p)
        Rows; they are never made dense.
    weights : ndarray of shape (m,), optional
        Positive weights, 1 by default.
    fit_intercept : bool
        Whether rows and targets are centred by their mean.
    tolerance : float
        Relative residual of the normal equations, at the smallest penalty asked for; at larger ones
        it is smaller.
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
        self._unit = (
            largest**2 * self.n or 1.0
        )  # of the Gram matrix, so that squares of its eigenvalues are numbers
        self._hats: dict[
            float, FloatArray
        ] = {}  # of each penalty, asked for last: some rows at a time are asked for
        self._warned: set[float] = set()  # penalties
        self._spaces: list[
            tuple[FloatArray, Lanczos]
        ] = []  # with their unit vectors, the latest last

    @property
    def n_varying(self) -> int:
        """Number of features that vary."""
        return count_varying(self._column_powers, self.mean, self.n)

    @property
    def scale(self) -> float:
        """Typical eigenvalue of the covariance, Σs²/(nΣs), up to the error of the quadrature."""
        nodes, relative = self._quadrature.nodes.ravel(), self.total / self._unit
        return (
            self._unit * float(self._quadrature.sums(nodes**2)) / relative / self.n
            if relative > 0
            else 0.0
        )

    @property
    def total(self) -> float:
        """Sum of all eigenvalues s."""
        return float(self._column_powers.sum())

    @property
    def variances(self) -> FloatArray:
        """Not known: only sums over all of them are."""
        raise self._refusal(
            "The mixture structure of the rows", "give a NoiseModel or trusted rows"
        )

    @property
    def principal_rows(self) -> FloatArray:
        """Not known."""
        raise self._refusal("A loss other than the squared one", "use loss='squared'")

    def from_principal(self, coef: FloatArray) -> FloatArray:
        """Not known."""
        raise self._refusal("A loss other than the squared one", "use loss='squared'")

    @cached_property
    def least_reg(self) -> float:
        """Smallest penalty whose leave-one-out scores are worth comparing: there the weighted mean hat value is 0.7.

        Where rows are fitted more closely, what a score owes to the row's own target is no longer
        small beside what it owes to the others, and an error of a few percent in its hat value
        leaves a trace of the label in the score. Heavy rows are fitted most closely, and count most
        wherever scores are compared.
        """
        least = self._unit * self._quadrature.shift_of(LARGEST_MEAN_HAT * self.n_rows) / self.n
        if (self.weights == self.weights[0]).all():
            return least

        def excess(log_reg: float) -> float:
            return self._weighted_mean_hat(float(np.exp(log_reg))) - LARGEST_MEAN_HAT

        smallest, largest = np.log(self.scale or 1.0) + np.log(_RANGE)
        if excess(smallest) <= 0:
            return 0.0
        return float(np.exp(brentq(excess, smallest, largest, xtol=_CLOSE)))

    def path(self, targets: FloatArray, regs: ArrayLike) -> RidgePath:
        """Coefficients and intercepts for every penalty and target."""
        columns = as_columns(targets)
        coef = self._coefficients(self._solved(columns - self._centre(columns), regs))
        return with_intercept(coef, self.mean, self._mean_target(columns), self.fit_intercept)

    def diagonal(self, values: FloatArray, rows: slice = slice(None)) -> FloatArray:
        """Not known, but for hat matrices and their products: see `hat_diagonals`."""
        raise self._refusal("The diagonal of any function of the rows", "ask for hat_diagonals")

    def hat_diagonals(
        self, *products: Sequence[ArrayLike], rows: slice = slice(None)
    ) -> list[FloatArray]:
        """Diagonals of products of hat matrices, by the model of the rows, with their sums at the nodes."""
        factors = [
            kept_apart(np.array(np.broadcast_arrays(*map(self._positive, product))))
            for product in products
        ]
        hats = iter(self._modelled(np.concatenate([regs.ravel() for regs in factors])))
        return [
            product_diagonal(
                regs, [np.column_stack([next(hats)[rows] for _ in row]) for row in regs]
            )
            for regs in factors
        ]

    def _modelled(self, regs: FloatArray) -> list[FloatArray]:
        """Hat values of all rows for each penalty; those that are known are not made again."""
        wanted = dict.fromkeys(regs.tolist())
        missing = np.array([reg for reg in wanted if reg not in self._hats])
        taken = self.weights / self.n if self.fit_intercept else np.zeros(self.n_rows)
        model = HatModel(self._sparse, self._column_powers, 1 - taken)
        made = model.values(self._quadrature.sums(self.shrinkage(missing)), self.n * missing)
        known = self._hats | dict(zip(missing.tolist(), made, strict=True))
        latest = [*(reg for reg in known if reg not in wanted), *wanted][-_KEPT_HATS:]
        self._hats = {reg: known[reg] for reg in latest}
        return [known[reg] for reg in regs.tolist()]

    def power_sums(self, reg: float) -> list[float]:
        """Return sums of the first three powers of the shrinkage, by quadrature."""
        kept = self.shrinkage([reg])
        return [float(self._quadrature.sums(kept**power)[0]) for power in (1, 2, 3)]

    def mean_hat(self, regs: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean hat value, but for the intercept's share, and its standard error, for each penalty."""
        kept = self.shrinkage(regs)
        return self._quadrature.sums(kept) / self.n_rows, self._quadrature.errors(
            kept
        ) / self.n_rows

    def _weighted_mean_hat(self, reg: float) -> float:
        return float(self.weights @ self._modelled(np.array([reg]))[0]) / self.n

    def coordinates(self, count: int) -> FloatArray:
        """Coordinates of the rows along the first principal directions, each scaled to variance 1."""
        if count == 0:
            return np.zeros((self.n_rows, 0))
        gram = LinearOperator(
            (self._size, self._size), matvec=self._gram_times, matmat=self._gram_times, dtype=float
        )
        values, vectors = eigsh(gram, count, which="LA", v0=random_signs(self._size)[:, 0])
        values, vectors = self._unit * values[::-1], vectors[:, ::-1]
        if self._by_features:
            return np.asarray(self._rows.times(vectors / np.sqrt(values / self.n)))
        return np.asarray(vectors * (self.n**0.5 / self._root_weights)[:, None])

    @property
    def _eigenvalues(self) -> FloatArray:
        """The nodes of the quadrature in their stead."""
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
        along_mean = self.fit_intercept and not self._by_features
        if (
            along_mean
        ):  # √w, which centred rows do not reach, has eigenvalue 0 and is the intercept's
            probes -= self._root_weights[:, None] * (self._root_weights @ probes) / self.n
        return Quadrature.of(self._gram_times, probes, self._size - int(along_mean))

    def _gram_times(self, columns: FloatArray) -> FloatArray:
        """Multiply the smaller Gram matrix, relative to the unit, with a (d, q) array or a vector."""
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
        return np.asarray(
            in_one(
                lambda flat: self._sparse.transposed_times(self._root_weights[:, None] * flat),
                solved,
            )
        )

    def _residuals_and_slack(
        self, centred: FloatArray, regs: ArrayLike
    ) -> Callable[[slice], tuple[FloatArray, FloatArray]]:
        solved = self._solved(centred, regs)
        self._warn_of_close_fits(float(np.min(regs)))
        hats = self._modelled(as_regs(regs, self.weights))

        def part(rows: slice) -> tuple[FloatArray, FloatArray]:
            slack = 1 - np.column_stack([hat[rows] for hat in hats])
            if self.fit_intercept:
                slack -= (self.weights[rows] / self.n)[:, None]
            return self._residuals(centred, solved, regs, rows), slack

        return part

    def _residuals(
        self, centred: FloatArray, solved: FloatArray, regs: ArrayLike, rows: slice
    ) -> FloatArray:
        """Return t − t̂ of some rows, (m, n_regs, n_targets)."""
        if self._by_features:
            return np.asarray(
                centred[rows, None, :] - in_one(self._sparse.of_rows(rows).times, solved)
            )
        penalties = self.n * as_regs(regs, self.weights)
        return np.asarray(penalties[:, None] * solved[rows] / self._root_weights[rows, None, None])

    def _warn_of_close_fits(self, reg: float) -> None:
        if reg < self.least_reg and reg not in self._warned:
            self._warned.add(reg)
            warn_caller(
                f"Leave-one-out scores at reg={reg:.2g} are rough: rows are fitted so closely "
                f"(mean hat value {self._weighted_mean_hat(reg):.2f}) that only exact hat values "
                "would do, which sparse rows of this size do not get. Use reg='loo', or at least "
                f"reg={self.least_reg:.2g}."
            )

    def _refusal(self, what: str, remedy: str) -> ValueError:
        m, p = self._shape
        return ValueError(
            f"{what} takes every principal direction, which are too many for sparse rows of {m} × "
            f"{p}: {remedy}, or keep at most {LARGEST_EXACT} features."
        )

    def _resolution(self, regs: ArrayLike) -> float:
        return 0.0  # a sum over rows was divided such that every row has some left

    def _solved(self, centred: FloatArray, regs: ArrayLike) -> FloatArray:
        """(G + nγ)⁻¹ times what the smaller Gram matrix G has on its right side, (d, n_regs, n_targets)."""
        penalties = self.n * self._positive(regs)
        weighted = self.weights[:, None] * centred
        right = (
            self._sparse.transposed_times(weighted)
            if self._by_features
            else weighted / self._root_weights[:, None]
        )
        groups = [right[:, start : start + _GROUP] for start in range(0, right.shape[1], _GROUP)]
        solved = [self._solved_together(group, penalties) for group in groups]
        return solved[0] if len(solved) == 1 else np.concatenate(solved, axis=2)

    def _positive(self, regs: ArrayLike) -> FloatArray:
        found: FloatArray = as_regs(regs, self.weights)
        if not found.all():
            raise self._refusal("reg=0", "use a positive reg")
        return found

    def _solved_together(self, right: FloatArray, penalties: FloatArray) -> FloatArray:
        units, space = self._space(right)
        most = min(max(int(_MOST_BYTES / right.nbytes), 1), self._size)
        shifts = penalties / self._unit
        residual = space.grow(float(shifts.min()), self.tolerance, most)
        self._drop_old_spaces()
        if residual > self.tolerance and space.n_steps < self._size:
            warn_caller(
                f"Fits at reg={penalties.min() / self.n:.2g} stopped at a relative residual of "
                f"{residual:.1g}, as {most} steps fill the memory that they may take: use a larger "
                "reg.",
                ConvergenceWarning,
            )
        solved = space.solutions(shifts)
        solved *= np.einsum("dq,dq->q", units, right) / self._unit
        return solved

    def _space(self, right: FloatArray) -> tuple[FloatArray, Lanczos]:
        """Return the space of these columns, a known one where they are multiples of its own."""
        norms = np.linalg.norm(right, axis=0)
        units = right / np.where(norms > 0, norms, np.inf)
        known = [
            pair
            for pair in self._spaces
            if pair[0].shape == units.shape and _same_lines(pair[0], units)
        ]
        pair = known[0] if known else (units, Lanczos(self._gram_times, units, keep=True))
        self._spaces = [*(other for other in self._spaces if other is not pair), pair]
        return pair

    def _drop_old_spaces(self) -> None:
        """Keep the latest, and others as far as all fit into the memory that they may take."""
        while (
            len(self._spaces) > 1 and sum(space.n_bytes for _, space in self._spaces) > _MOST_BYTES
        ):
            self._spaces.pop(0)


def _same_lines(one: FloatArray, other: FloatArray) -> bool:
    """Whether unit vectors, or zeros, are the same but for their signs."""
    along = np.einsum("dq,dq->q", one, other)
    return bool((np.linalg.norm(other - np.where(along < 0, -1, 1) * one, axis=0) <= _SAME).all())
