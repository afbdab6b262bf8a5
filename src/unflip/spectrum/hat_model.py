r"""Hat values of single rows where only their sum is known: a model of how rows share it.

For many rows of uncorrelated features the resolvent without row i is close to a diagonal matrix, which gives

.. math:: \frac{H_i}{1 - H_i} = c\, w_i \sum_j \frac{(x_{ij} - \bar x_j)^2}{c_j/(1 + \delta) + n\gamma},
          \qquad c_j = \sum_i w_i (x_{ij} - \bar x_j)^2,

with δ the mean of the left side and c = 1. For other rows the constant c makes the sum right. The share of a row then
depends on how long it is, and on whether its length lies in columns that the fit keeps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from unflip._typing import FloatArray
from unflip.centred import SparseRows

_GROUP = 8  # penalties for which products with the rows are made together
_LOG_RANGE = 100.0  # of c, about the one that gives the longest row a hat value of a half
_ROUNDING = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class HatModel:
    """Rows that share a sum of hat values.

    Attributes
    ----------
    rows : SparseRows
        The rows.
    column_powers : ndarray of shape (p,)
        c_j.
    most : ndarray of shape (m,)
        Largest hat value of each row: 1, less what an intercept takes.
    """

    rows: SparseRows
    column_powers: FloatArray
    most: FloatArray

    def values(self, totals: FloatArray, penalties: FloatArray) -> FloatArray:
        """Hat values with these sums, at the penalties nγ, (m, n_penalties)."""
        found = np.empty((len(self.most), len(totals)))
        for start in range(0, len(totals), _GROUP):
            part = slice(start, min(start + _GROUP, len(totals)))
            resolvents = np.column_stack([self._resolvent(float(penalty)) for penalty in penalties[part]])
            forms = self.rows.weights[:, None] * self.rows.squared_norms_by(resolvents)
            for column in range(part.stop - start):
                found[:, start + column] = self._shared(
                    np.maximum(forms[:, column], 0.0), float(totals[start + column])
                )
        return found

    def _resolvent(self, penalty: float) -> FloatArray:
        """1/(c_j/(1 + δ) + nγ), relative to the largest, with the δ that they imply."""
        largest = float(self.column_powers.max(initial=0.0)) or 1.0
        powers, shift = self.column_powers / largest, max(penalty / largest, _ROUNDING)

        def excess(delta: float) -> float:
            return float((powers / (powers / (1 + delta) + shift)).sum()) / len(self.most) - delta

        delta = brentq(excess, 0.0, float(powers.sum()) / shift / len(self.most) + 1.0)
        inverse = 1 / (powers / (1 + delta) + shift)
        return np.asarray(inverse / inverse.max())

    def _shared(self, forms: FloatArray, total: float) -> FloatArray:
        """Divide a sum among the rows: most·cq/(1 + cq) for quadratic forms q."""
        if total <= 0 or not forms.any():
            return np.zeros_like(forms)
        unit = forms / forms.max()

        def shares(log_factor: float) -> FloatArray:
            odds = np.exp(log_factor) * unit
            return np.asarray(self.most * odds / (1 + odds))

        def excess(log_factor: float) -> float:
            return float(shares(log_factor).sum()) - total

        if excess(_LOG_RANGE) <= 0 or excess(-_LOG_RANGE) >= 0:
            return shares(np.copysign(_LOG_RANGE, -excess(0.0)))
        return shares(brentq(excess, -_LOG_RANGE, _LOG_RANGE))
