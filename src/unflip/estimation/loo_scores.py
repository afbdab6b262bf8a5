"""Leave-one-out scores of the observed classes."""

from __future__ import annotations

from unflip._utils.arrays import like, one_hot, pick
from unflip._utils.typing import Array
from unflip.data.duplicates import DistinctRows
from unflip.labels.classes import contrasts
from unflip.ridge.label_association import association
from unflip.ridge.selection import candidate_regs, corrected_score_parts, select_reg
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.decomposition import decompose


def class_scores(
    rows: DistinctRows, codes: Array, n_classes: int, spectrum: Spectrum | None = None
) -> tuple[Array, float]:
    """Score each member of `rows` for each class by ridge regression on one-hot labels.

    Parameters
    ----------
    rows : DistinctRows
        The rows.
    codes : array of shape (n_positive,)
        Observed class of each member.
    n_classes : int
        k.
    spectrum : Spectrum, optional
        Spectrum of the distinct rows, centred. None: it is computed.

    Returns
    -------
    scores : array of shape (n_positive, k)
        Exact leave-one-out scores at the regularization strength with the best alignment. They
        sum to 1 in each row.
    associated : float
        Their `association` with the labels.
    """
    if rows.weights.shape[0] < 2:  # all rows are duplicates of one
        return pick(rows.shares(codes)[None, :], 0 * codes), 0.0
    if spectrum is None:
        shares = rows.memberships(codes, n_classes)
        spectrum = decompose(rows.X, rows.spectrum_weights, shares=shares)
    # Orthonormal contrasts: the chosen reg must not depend on the order of the classes.
    columns = contrasts(n_classes)
    labels = one_hot(codes, n_classes) @ like(columns, rows.weights)
    targets = rows.average(labels)
    reg = select_reg(spectrum, rows, targets, candidate_regs(spectrum))
    scores = corrected_score_parts(spectrum, rows, targets, reg)(slice(None))[:, 0, :]
    associated = association(spectrum, rows, labels, scores, float(reg[0]))
    to_classes = like((columns / (columns**2).sum(axis=0)).T, scores)
    return 1 / n_classes + rows.of_members(scores) @ to_classes, associated
