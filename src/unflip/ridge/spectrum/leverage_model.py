r"""A model of the leverages of single rows, where only their sum is available.

For many rows of uncorrelated features the resolvent without row i is close to a diagonal matrix,
which gives

.. math:: \frac{H_i}{1 - H_i} = c\, w_i \sum_j
          \frac{(x_{ij} - \bar x_j)^2}{c_j/(1 + \delta) + n\gamma},
          \qquad c_j = \sum_i w_i (x_{ij} - \bar x_j)^2,

with δ the mean of the left side and c = 1. For other rows c is chosen such that the leverages have
the right sum. The leverage of a row then depends on its length, and on whether its length lies in
columns that the fit keeps.

**Products** of hat matrices are not hat matrices, and their traces divide otherwise among the rows.
But with ν = nγ

.. math:: H(\nu_1) H(\nu_0) = \frac{\nu_1 H(\nu_1) - \nu_0 H(\nu_0)}{\nu_1 - \nu_0},

and the product of k of them is the divided difference of ν^(k − 1)·H(ν) over their ν, so that
leverages give its diagonal. For equal ν it is a derivative, which is approximated by leverages at
values of ν close by.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from unflip._utils.typing import FloatArray
from unflip.data.sparse_rows import SparseRows

# Regularization strengths whose products with the rows are computed together: limits memory.
_GROUP = 8
# Bounds of log c, about the value that gives the longest row a leverage of a half. Wide enough for
# any practical ratio of row lengths, and far from overflow of float64.
_LOG_RANGE = 100.0
# Least difference of log ν in divided differences. Products of three hat matrices then divide
# rounding errors of 1e-16 by about 1e-4. Half and double change no test of the module.
_LEAST_LOG_GAP = 0.01


@dataclass(frozen=True, eq=False)
class LeverageModel:
    """Divides a sum of leverages among the rows.

    Attributes
    ----------
    rows : SparseRows
        The rows.
    column_powers : ndarray of shape (p,)
        c_j.
    most : ndarray of shape (m,)
        Largest possible leverage of each row: 1, minus the intercept's share.
    """

    rows: SparseRows
    column_powers: FloatArray
    most: FloatArray

    def values(self, totals: FloatArray, shifts: FloatArray) -> list[FloatArray]:
        """Return leverages with these sums at the shifts nγ: an array of shape (m,) for each."""
        leverages = []
        for start in range(0, len(totals), _GROUP):
            part = slice(start, min(start + _GROUP, len(totals)))
            resolvents = np.column_stack([self._resolvent(float(shift)) for shift in shifts[part]])
            forms = self.rows.weights[:, None] * self.rows.squared_norms_by(resolvents)
            for form, total in zip(forms.T, totals[part], strict=True):
                leverages.append(self._divide(float(total), np.maximum(form, 0.0)))
        return leverages

    def _resolvent(self, shift: float) -> FloatArray:
        """Return 1/(c_j/(1 + δ) + nγ) relative to the largest, with the δ that they imply."""
        largest = float(self.column_powers.max(initial=0.0)) or 1.0
        powers = self.column_powers / largest
        relative_shift = max(shift / largest, float(np.finfo(float).eps))
        n_rows = len(self.most)

        def excess(delta: float) -> float:
            return float((powers / (powers / (1 + delta) + relative_shift)).sum()) / n_rows - delta

        delta = brentq(excess, 0.0, float(powers.sum()) / relative_shift / n_rows + 1.0)
        inverse = 1 / (powers / (1 + delta) + relative_shift)
        return np.asarray(inverse / inverse.max())

    def _divide(self, total: float, forms: FloatArray) -> FloatArray:
        """Divide a sum among the rows as most·cq/(1 + cq), for quadratic forms q.

        If the sum is more than the rows can take, each gets its largest possible leverage.
        """
        if total <= 0 or not forms.any():
            return np.zeros_like(forms)
        relative = forms / forms.max()

        def leverages(log_factor: float) -> FloatArray:
            odds = np.exp(log_factor) * relative
            return np.asarray(self.most * odds / (1 + odds))

        smallest = leverages(-_LOG_RANGE).sum()
        largest = leverages(_LOG_RANGE).sum()
        reachable = float(np.clip(total, smallest, largest))

        def excess(log_factor: float) -> float:
            return float(leverages(log_factor).sum()) - reachable

        return leverages(brentq(excess, -_LOG_RANGE, _LOG_RANGE))


def kept_apart(regs: FloatArray) -> FloatArray:
    """Sort regularization strengths of factors, (k, n_products), and move close ones apart.

    They move about their geometric mean, which changes results in second order only.
    """
    regs = np.sort(regs, axis=0)
    logs = np.log(regs)
    moved = logs.copy()
    for after in range(1, len(logs)):
        moved[after] = np.maximum(logs[after], moved[after - 1] + _LEAST_LOG_GAP)
    moved += (logs - moved).mean(axis=0)
    return np.asarray(np.where((moved != logs).any(axis=0), np.exp(moved), regs))


def product_diagonal(regs: FloatArray, leverages: list[FloatArray]) -> FloatArray:
    """Return the diagonal of products of hat matrices, (m, n_products), from leverages.

    Parameters
    ----------
    regs : ndarray of shape (k, n_products)
        Regularization strengths of the factors, which differ.
    leverages : list of ndarray of shape (m, n_products)
        Leverages at each of them.
    """
    relative = regs / regs[0]
    differences = [
        shift ** (len(leverages) - 1) * leverage
        for shift, leverage in zip(relative, leverages, strict=True)
    ]
    for order in range(1, len(leverages)):
        gaps = relative[order:] - relative[:-order]
        differences = [
            (after - before) / gap
            for before, after, gap in zip(differences[:-1], differences[1:], gaps, strict=True)
        ]
    return np.asarray(differences[0])
