"""How labels move the leave-one-out scores of other rows in a ridge fit."""

from __future__ import annotations

import numpy as np
from array_api_compat import array_namespace

from unflip._utils.typing import Array
from unflip.calibration.coupling import Coupling
from unflip.data.duplicates import DistinctRows
from unflip.ridge.label_association import own_and_power
from unflip.ridge.spectrum.base import Spectrum


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
        slack, unfitted = (
            spectrum.residual_diagonals([np.array([reg])])[0][:, 0],
            spectrum.unfitted(slice(None)),
        )
        left, kept = (1 - leaving * (1 - share_left) for share_left in (slack, unfitted))
        means = rows.average(columns)
        scaled = means / kept[:, None]
        centred = scaled - share @ scaled if spectrum.fit_intercept else scaled
        moved = centred - spectrum.residuals(means / left[:, None], reg)
        return (leaving * share)[:, None] * moved

    def power() -> Array:
        return leaving**2 * share * own_and_power(spectrum, rows, reg)[1]

    return Coupling(rows, rows.average(own), sums, power)
