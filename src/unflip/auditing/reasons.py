r"""What each input of a row adds to the log-odds of one class against another.

The log-odds of a linear fit are a sum over the inputs of the row,

.. math:: \log\frac{P(b \mid x)}{P(a \mid x)} = c + \sum_j (x_j - r_j)(w_{bj} - w_{aj}),

of class b against class a, with the weights w of the fit. The constant c is the log-odds of a
reference row r: an empty row if the inputs are sparse (such as words), else the mean row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from unflip._utils.arrays import is_foreign
from unflip._utils.sparse import canonical
from unflip._utils.typing import FloatArray, IntArray, Rows, SparseArray
from unflip.data.lazy import is_lazy

#: Why there are no contributions, or no nearest rows.
NOT_LINEAR = "The fit is not linear in the inputs, so they have no shares in its log-odds."
NOT_IN_MEMORY = "X is not an array in the memory of the host, so its rows are not compared."
NOT_NUMERIC = "X is not numeric, so its rows are not compared."

# Rows whose mean is the reference row; a choice. Any reference is exact, and a sample is fast.
_MOST_AVERAGED = 2000


class NamedInputs(Protocol):
    """A fitted transformer whose features are sums over inputs with names, such as words."""

    @property
    def named_features_(self) -> Any:
        """Names of the inputs, (q,)."""

    def named_rows(self, X: Any, /) -> Any:
        """Return the values of the inputs, (n, q), dense or sparse."""

    def named_weights(self, weights: FloatArray, /) -> FloatArray:
        """Return the weights of the inputs, (q,), for weights of the features, (p,)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedRows:
    """The samples of an audit and the fit to them, by reference.

    Attributes
    ----------
    X : array-like or sparse matrix of shape (n, p)
        Samples, as they were passed.
    coef : ndarray of shape (1, p) or (k, p), optional
        Coefficients of the log-odds, as of `LPClassifier`; None if they are not linear in X.
    intercept : ndarray of shape (1,) or (k,), optional
        Their intercepts.
    names : sequence of str, optional
        Names of the columns of X.
    inputs : NamedInputs, optional
        Transformer that made X, if its inputs explain more than the columns of X.
    source : table, optional
        What it transforms, with as many rows as X.
    groups : array-like of shape (n,), optional
        Groups of the samples.
    """

    X: Any
    coef: FloatArray | None = None
    intercept: FloatArray | None = None
    names: Sequence[str] | None = None
    inputs: NamedInputs | None = None
    source: Any = None
    groups: Any = None

    def named(self, names: Sequence[str]) -> FittedRows:
        """Return the same with names of the columns of X."""
        if len(names) != self.X.shape[1]:
            raise ValueError(
                f"feature_names has {len(names)} names but X has {self.X.shape[1]} columns: pass "
                "one for each column."
            )
        return replace(self, names=names)

    def opened(self) -> OpenRows:
        """Return the rows as an array, to explain some of them."""
        if is_lazy(self.X) or is_foreign(self.X):
            return OpenRows(self, None, NOT_IN_MEMORY)
        if issparse(self.X):
            return OpenRows(self, canonical(self.X))
        try:
            rows = np.asarray(self.X)
            rows = rows if rows.dtype.kind in "biuf" else rows.astype(np.float64)
        except (TypeError, ValueError):
            return OpenRows(self, None, NOT_NUMERIC)
        return OpenRows(self, rows) if rows.ndim == 2 else OpenRows(self, None, NOT_NUMERIC)


@dataclass(frozen=True, eq=False)
class Contributions:
    """What the inputs of some rows add to the log-odds of one class against another.

    Attributes
    ----------
    values : ndarray or sparse array of shape (m, q)
        Contribution of each input.
    log_odds : ndarray of shape (m,)
        Log-odds of each row.
    constants : ndarray of shape (m,)
        The log-odds less the contributions: those of the reference row, the same for all rows.
    """

    values: Rows
    log_odds: FloatArray
    constants: FloatArray

    def of_row(self, place: int) -> FloatArray:
        """Return the contributions to one of the rows, (q,)."""
        line = self.values[[place]]
        return np.asarray(line.toarray() if issparse(line) else line).ravel()


@dataclass(frozen=True, eq=False)
class OpenRows:
    """Rows of a fit as an array, for as long as they are needed.

    Attributes
    ----------
    fit : FittedRows
        The fit.
    rows : ndarray or sparse array of shape (n, p), optional
        The rows; None if they are not numbers in memory.
    why_not_compared : str
        Why there are no rows, as a sentence; empty if there are.
    """

    fit: FittedRows
    rows: Rows | None
    why_not_compared: str = ""

    @property
    def why_no_inputs(self) -> str:
        """Why inputs have no contributions, as a sentence; empty if they have."""
        return NOT_LINEAR if self.fit.coef is None else self.why_not_compared

    @property
    def has_names(self) -> bool:
        """Whether the inputs have names that mean something to a reader."""
        fit = self.fit
        return fit.inputs is not None or fit.names is not None or hasattr(fit.X, "columns")

    @property
    def input_names(self) -> NDArray[Any]:
        """Name of each input, (q,)."""
        fit = self.fit
        if fit.inputs is not None:
            return np.asarray(fit.inputs.named_features_, dtype=object)
        if fit.names is not None:
            return np.asarray(fit.names, dtype=object)
        if hasattr(fit.X, "columns"):
            return np.asarray([str(name) for name in fit.X.columns], dtype=object)
        return np.asarray([f"feature {j}" for j in range(fit.X.shape[1])], dtype=object)

    def inputs_of(self, rows: IntArray) -> Rows:
        """Return the values of the inputs of some rows, (m, q)."""
        if self.fit.inputs is None:
            return self._array[rows]
        values = self.fit.inputs.named_rows(_rows_of(self.fit.source, rows))
        return canonical(values) if issparse(values) else np.asarray(values)

    def contributions(self, rows: IntArray, toward: int, against: int) -> Contributions:
        """Return what the inputs add to the log-odds of one class against another.

        Parameters
        ----------
        rows : ndarray of shape (m,)
            The rows.
        toward, against : int
            The two classes.
        """
        weights, intercept = self._contrast(toward, against)
        log_odds = np.asarray(self._array[rows] @ weights + intercept)
        inputs = self.fit.inputs
        named = weights if inputs is None else np.asarray(inputs.named_weights(weights))
        values = self.inputs_of(rows)
        if issparse(values):
            parts = _scaled(values, named)
            totals = np.asarray(parts.sum(axis=1)).ravel()
        else:
            parts = (values - self._mean_inputs) * named
            totals = parts.sum(axis=1)
        return Contributions(parts, log_odds, log_odds - totals)

    @property
    def _array(self) -> Rows:
        if self.rows is None:
            raise ValueError(self.why_not_compared)
        return self.rows

    @cached_property
    def _mean_inputs(self) -> FloatArray:
        n_rows = self._array.shape[0]
        step = -(-n_rows // _MOST_AVERAGED)
        return np.asarray(self.inputs_of(np.arange(0, n_rows, step)).mean(axis=0, dtype=np.float64))

    def _contrast(self, toward: int, against: int) -> tuple[FloatArray, float]:
        """Return weights and intercept of the log-odds of one class against another."""
        coef, intercept = self.fit.coef, self.fit.intercept
        if coef is None or intercept is None:
            raise ValueError(NOT_LINEAR)
        if len(coef) > 1:
            return coef[toward] - coef[against], float(intercept[toward] - intercept[against])
        sign = 1.0 if toward > against else -1.0
        return sign * coef[0], float(sign * intercept[0])


def _scaled(rows: SparseArray, weights: FloatArray) -> SparseArray:
    """Return sparse rows with each column multiplied by its weight."""
    scaled = rows.copy()
    scaled.data = scaled.data * weights[scaled.indices]
    return scaled


def _rows_of(source: Any, rows: IntArray) -> Any:
    """Return some rows of a DataFrame, an array or a sequence."""
    if hasattr(source, "iloc"):
        return source.iloc[rows]
    if isinstance(source, np.ndarray) or issparse(source):
        return source[rows]
    return [source[row] for row in rows.tolist()]
