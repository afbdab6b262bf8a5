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
    """What the label of each of n rows adds to sums over the scores of the others.

    Attributes
    ----------
    own : array of shape (n, r)
        uᵢ, what its label adds to the target of each row.
    sums : callable
        Σⱼ πⱼvⱼNⱼᵢ for each row i, (n, c), of columns v of shape (n, c); πⱼ is the share of row j in the weight.
    power : array of shape (n,)
        Σⱼ πⱼNⱼᵢ² for each row i.
    """

    own: Array
    sums: Callable[[Array], Array]
    power: Array


def ridge_coupling(spectrum: Spectrum, rows: DistinctRows, own: Array, reg: float) -> Coupling:
    """Return the coupling of scores of the squared loss; Nᵀv = P(cv) − R(v/d) in the notation of `association`.

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
    xp = array_namespace(rows.weights)
    share = rows.weights / xp.sum(rows.weights)
    part = rows.member_weights / rows.of_members(rows.weights)
    slack, unfitted = spectrum.residual_diagonals([np.array([reg])])[0], spectrum.unfitted(slice(None))[:, None]

    def sums(columns: Array) -> Array:
        means = rows.average(columns)
        scaled = means / unfitted
        centred = scaled - share @ scaled if spectrum.fit_intercept else scaled
        moved = centred - spectrum.leave_one_out(means / slack, [reg]).residuals[:, 0, :]
        return part[:, None] * rows.of_members(share[:, None] * moved)

    return Coupling(own, sums, part**2 * rows.of_members(share * own_and_power(spectrum, rows, reg)[1]))
