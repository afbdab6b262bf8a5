"""Leave-one-out scores of the observed classes: what the other rows say of each row, its own label unseen."""

from __future__ import annotations

from array_api_compat import array_namespace

from unflip._arrays import one_hot, pick
from unflip._typing import Array
from unflip.rows import DistinctRows
from unflip.selection import best_reg, candidate_regs, label_free_parts
from unflip.spectrum import Spectrum, decompose


def class_scores(rows: DistinctRows, codes: Array, n_classes: int, spectrum: Spectrum | None = None) -> Array:
    """Score each member of `rows` for each class, by ridge regression on one-hot labels with an intercept.

    Parameters
    ----------
    rows : DistinctRows
        The rows.
    codes : array of shape (n_positive,)
        Observed class of each member.
    n_classes : int
        k.
    spectrum : Spectrum, optional
        That of the distinct rows, centred, where it is known already.

    Returns
    -------
    array of shape (n_positive, k)
        Exact leave-one-out scores at the penalty with the best alignment; rows sum to 1.
    """
    if rows.weights.shape[0] < 2:  # all rows alike
        return pick(rows.shares(codes)[None, :], 0 * codes)
    xp, known = array_namespace(codes), spectrum
    if known is None:
        known = decompose(rows.X, rows.spectrum_weights, shares=rows.memberships(codes, n_classes))
    # The scores of all classes sum to one, so the first needs no regression of its own.
    targets = rows.average(one_hot(codes, n_classes)[:, 1:])
    regs = candidate_regs(known)
    parts = label_free_parts(known, rows, targets, regs)
    best = best_reg(parts, targets, rows.weights, scale_free=True, centred=True)
    others = rows.of_members(label_free_parts(known, rows, targets, regs[[best]])(slice(None))[:, 0, :])
    return xp.concat([1 - xp.sum(others, axis=1, keepdims=True), others], axis=1)
