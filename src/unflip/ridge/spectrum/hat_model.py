r"""Hat values of single rows where only their sum is known: a model of how rows share it.

For many rows of uncorrelated features the resolvent without row i is close to a diagonal matrix,
which gives

.. math:: \frac{H_i}{1 - H_i} = c\, w_i \sum_j \frac{(x_{ij} - \bar x_j)^2}{c_j/(1 + \delta) + n\gamma},
          \qquad c_j = \sum_i w_i (x_{ij} - \bar x_j)^2,

with δ the mean of the left side and c = 1. For other rows the constant c makes the sum right. The
share of a row then depends on how long it is, and on whether its length lies in columns that the
fit keeps.

**Products** of hat matrices are no hat matrices, and rows share their traces otherwise. But with
penalties ν = nγ

.. math:: H(\nu_1) H(\nu_0) = \frac{\nu_1 H(\nu_1) - \nu_0 H(\nu_0)}{\nu_1 - \nu_0},

and the product of k of them is the divided difference of ν^(k − 1)·H(ν) over their penalties, so
that hat values give its diagonal. Where penalties are the same it is a derivative, which hat values
of penalties nearby give closely enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from unflip._utils.typing import FloatArray
from unflip.data.centred import SparseRows

_GROUP = 8  # penalties for which products with the rows are made together
_LOG_RANGE = 100.0  # of c, about the one that gives the longest row a hat value of a half
_ROUNDING = float(np.finfo(float).eps)
_APART = (
    0.01  # logarithms of penalties differ by at least this, where differences are divided by theirs
)


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

    def values(self, totals: FloatArray, penalties: FloatArray) -> list[FloatArray]:
        """Hat values with these sums, at the penalties nγ: an array of shape (m,) for each."""
        found = []
        for start in range(0, len(totals), _GROUP):
            part = slice(start, min(start + _GROUP, len(totals)))
            resolvents = np.column_stack(
                [self._resolvent(float(penalty)) for penalty in penalties[part]]
            )
            forms = self.rows.weights[:, None] * self.rows.squared_norms_by(resolvents)
            for form, total in zip(forms.T, totals[part], strict=True):
                found.append(self._shared(np.maximum(form, 0.0), float(total)))
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
        """Divide a sum, or as much of it as they can take, among the rows: most·cq/(1 + cq) for quadratic forms q."""
        if total <= 0 or not forms.any():
            return np.zeros_like(forms)
        unit = forms / forms.max()

        def shares(log_factor: float) -> FloatArray:
            odds = np.exp(log_factor) * unit
            return np.asarray(self.most * odds / (1 + odds))

        def excess(log_factor: float) -> float:
            return float(shares(log_factor).sum()) - within

        within = float(np.clip(total, shares(-_LOG_RANGE).sum(), shares(_LOG_RANGE).sum()))
        return shares(brentq(excess, -_LOG_RANGE, _LOG_RANGE))


def kept_apart(regs: FloatArray) -> FloatArray:
    """Sort penalties of factors, (k, n_products), and move those of a product apart where some nearly agree.

    They move about their geometric mean, so that what is made of them changes in second order only.
    """
    regs = np.sort(regs, axis=0)
    logs = np.log(regs)
    moved = logs.copy()
    for after in range(1, len(logs)):
        moved[after] = np.maximum(logs[after], moved[after - 1] + _APART)
    moved += (logs - moved).mean(axis=0)
    return np.asarray(np.where((moved != logs).any(axis=0), np.exp(moved), regs))


def product_diagonal(regs: FloatArray, hats: list[FloatArray]) -> FloatArray:
    """Diagonal of the product of hat matrices of different penalties (k, n_products), by hat values (m, n_products)."""
    relative = regs / regs[0]
    found = [penalty ** (len(hats) - 1) * hat for penalty, hat in zip(relative, hats, strict=True)]
    for order in range(1, len(hats)):
        gaps = relative[order:] - relative[:-order]
        found = [
            (after - before) / gap
            for before, after, gap in zip(found[:-1], found[1:], gaps, strict=True)
        ]
    return np.asarray(found[0])
