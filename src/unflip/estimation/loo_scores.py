"""Leave-one-out scores of the observed classes: what the other rows say of each row, its own label unseen."""

from __future__ import annotations

from unflip._utils.arrays import like, one_hot, pick
from unflip._utils.typing import Array
from unflip.data.duplicates import DistinctRows
from unflip.labels.classes import contrasts
from unflip.ridge.label_association import association
from unflip.ridge.selection import candidate_regs, corrected_score_parts, searched_reg
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.decomposition import decompose


def class_scores(
    rows: DistinctRows, codes: Array, n_classes: int, spectrum: Spectrum | None = None
) -> Array:
    """Return the scores of `scored_classes` alone."""
    return scored_classes(rows, codes, n_classes, spectrum)[0]


def scored_classes(
    rows: DistinctRows, codes: Array, n_classes: int, spectrum: Spectrum | None = None
) -> tuple[Array, float]:
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
    scores : array of shape (n_positive, k)
        Exact leave-one-out scores at the penalty with the best alignment; rows sum to 1.
    associated : float
        Their `association` with the labels.
    """
    if rows.weights.shape[0] < 2:  # all rows alike
        return pick(rows.shares(codes)[None, :], 0 * codes), 0.0
    known = spectrum
    if known is None:
        known = decompose(rows.X, rows.spectrum_weights, shares=rows.memberships(codes, n_classes))
    # Orthonormal contrasts: the penalty must not depend on which class comes first.
    table = contrasts(n_classes)
    columns = like(table, rows.weights)
    labels = one_hot(codes, n_classes) @ columns
    targets = rows.average(labels)
    reg = searched_reg(known, rows, targets, candidate_regs(known))
    scores = corrected_score_parts(known, rows, targets, reg)(slice(None))[:, 0, :]
    associated = association(known, rows, labels, scores, float(reg[0]))
    return 1 / n_classes + rows.of_members(scores) @ like(
        (table / (table**2).sum(axis=0)).T, scores
    ), associated
