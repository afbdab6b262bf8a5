"""Leave-one-out scores of the observed classes: what the other rows say of each row, its own label unseen."""

from __future__ import annotations

import numpy as np

from unflip._typing import FloatArray, IntArray
from unflip.rows import DistinctRows
from unflip.selection import best_reg, candidate_regs, label_free_parts
from unflip.spectrum import Spectrum, decompose


def class_scores(rows: DistinctRows, codes: IntArray, n_classes: int, spectrum: Spectrum | None = None) -> FloatArray:
    """Score each member of `rows` for each class, by ridge regression on one-hot labels with an intercept.

    Parameters
    ----------
    rows : DistinctRows
        The rows.
    codes : ndarray of shape (n_positive,)
        Observed class of each member.
    n_classes : int
        k.
    spectrum : Spectrum, optional
        That of the distinct rows, centred, where it is known already.

    Returns
    -------
    ndarray of shape (n_positive, k)
        Exact leave-one-out scores at the penalty with the best alignment; rows sum to 1.
    """
    if len(rows.weights) < 2:  # all rows alike
        return np.tile(rows.shares(codes), (len(codes), 1))
    known = spectrum
    if known is None:
        known = decompose(rows.X, rows.spectrum_weights, shares=rows.memberships(codes, n_classes))
    # The scores of all classes sum to one, so the first needs no regression of its own.
    targets = np.column_stack([rows.average((codes == a).astype(float)) for a in range(1, n_classes)])
    regs = candidate_regs(known)
    parts = label_free_parts(known, rows, targets, regs)
    best = best_reg(parts, targets, rows.weights, scale_free=True, centred=True)
    others = label_free_parts(known, rows, targets, regs[[best]])(slice(None))[rows.owner, 0]
    return np.column_stack([1 - others.sum(axis=1), others])
