"""How the label of a row moves the leave-one-out scores of the other rows.

Leave-one-out scores are s = Nt for targets t, and row i's own label adds uᵢ to its target. So score j contains Nⱼᵢuᵢ,
although score i contains nothing of it. What is fitted to the scores of all rows (class means, a covariance) therefore
depends on label i, and in a way that contradicts it: the scores of rows that resemble row i are moved towards its
label, and its own is not. New rows are not affected. So each row is compared with class means and covariances from
which that part is subtracted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace

from unflip._typing import Array
from unflip.association import own_and_power
from unflip.rows import DistinctRows
from unflip.spectrum import Spectrum


@dataclass(frozen=True, eq=False)
class Coupling:
    """What the labels of each of m distinct rows add to sums over the scores of the others.

    Copies of a row leave together, as far as `DistinctRows.leaving_share` has it.

    Attributes
    ----------
    rows : DistinctRows
        The rows.
    own : array of shape (m, r)
        uᵢ, what its labels add to the target of each distinct row.
    sums : callable
        Σⱼ πⱼvⱼNⱼᵢ for each distinct row i, (m, c), of columns v of the members, (n, c); πⱼ is the share of row j in the
        weight.
    power : callable
        Returns Σⱼ πⱼNⱼᵢ² for each distinct row i, (m,), for which πᵢ Σⱼ Nᵢⱼ² is taken.
    """

    rows: DistinctRows
    own: Array
    sums: Callable[[Array], Array]
    power: Callable[[], Array]

    @property
    def leaving(self) -> Array:
        """Share of the weight that leaves with each distinct row, (m,)."""
        return self.rows.weights * self.rows.leaving_share / array_namespace(self.own).sum(self.rows.weights)


def ridge_coupling(spectrum: Spectrum, rows: DistinctRows, own: Array, reg: float) -> Coupling:
    """Return the coupling of scores of the squared loss; Nᵀv = P(cv) − R(v/e) in the notation of `association`.

    Parameters
    ----------
    spectrum : Spectrum
        Of the distinct rows.
    rows : DistinctRows
        The rows.
    own : array of shape (n_positive, r)
        What its label adds to the target of each member.
    reg : float
        Penalty γ.
    """
    share = rows.weights / array_namespace(rows.weights).sum(rows.weights)
    leaving = rows.leaving_share

    def sums(columns: Array) -> Array:
        slack, unfitted = spectrum.residual_diagonals([np.array([reg])])[0][:, 0], spectrum.unfitted(slice(None))
        left, kept = (1 - leaving * (1 - share_left) for share_left in (slack, unfitted))
        means = rows.average(columns)
        scaled = means / kept[:, None]
        centred = scaled - share @ scaled if spectrum.fit_intercept else scaled
        moved = centred - spectrum.residuals(means / left[:, None], reg)
        return (leaving * share)[:, None] * moved

    def power() -> Array:
        return leaving**2 * share * own_and_power(spectrum, rows, reg)[1]

    return Coupling(rows, rows.average(own), sums, power)


def uncoupled(rows: DistinctRows, scores: Array) -> Coupling:
    """Return the coupling of scores of the distinct rows, (m, r), of which nothing is known but the copies of rows."""
    xp = array_namespace(scores)
    return Coupling(
        rows,
        own=xp.zeros_like(scores),
        sums=lambda columns: xp.zeros_like(rows.average(columns)),
        power=lambda: xp.zeros_like(scores[:, 0]),
    )
