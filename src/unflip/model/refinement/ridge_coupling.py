"""How labels move the leave-one-out scores of other rows in a ridge fit."""

from __future__ import annotations

import numpy as np
from array_api_compat import array_namespace

from unflip._utils.typing import Array
from unflip.calibration.coupling import Coupling
from unflip.data.duplicates import DistinctRows
from unflip.ridge.label_association import loo_operator_diagonals
from unflip.ridge.spectrum.base import Spectrum


def ridge_coupling(spectrum: Spectrum, rows: DistinctRows, own: Array, reg: float) -> Coupling:
    """Return the coupling of the scores of a ridge fit.

    Nᵀv = P(cv) − R(v/e) in the notation of `unflip.ridge.label_association`.

    Parameters
    ----------
    spectrum : Spectrum
        Spectrum of the distinct rows.
    rows : DistinctRows
        The rows.
    own : array of shape (n_positive, r)
        What its label adds to the target of each member.
    reg : float
        Regularization strength γ.
    """
    share = rows.weights / array_namespace(rows.weights).sum(rows.weights)
    leaving = rows.leaving_share

    def sums(columns: Array) -> Array:
        slack = spectrum.residual_diagonals([np.array([reg])])[0][:, 0]
        left = 1 - leaving * (1 - slack)
        kept = 1 - leaving * (1 - spectrum.unfitted(slice(None)))
        means = rows.average(columns)
        scaled = means / kept[:, None]
        if spectrum.fit_intercept:
            scaled = scaled - share @ scaled
        moved = scaled - spectrum.residuals(means / left[:, None], reg)
        return (leaving * share)[:, None] * moved

    def power() -> Array:
        return leaving**2 * share * loo_operator_diagonals(spectrum, rows, reg)[1]

    return Coupling(rows, rows.average(own), sums, power)
