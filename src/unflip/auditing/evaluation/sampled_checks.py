"""Whether checked rows are a random sample within their cell, or were chosen by suspicion."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from unflip._utils.warnings import warn_caller
from unflip.auditing.evaluation import evaluation_prose as prose
from unflip.calibration.true_class import TrueClassModel
from unflip.labels.codes import UNLABELLED

# Fewer checked rows in a cell show nothing.
_LEAST_CHECKS = 5
# Mean rank of the checked rows, 0 for the least likely label and 1 for the likeliest, below which
# they were chosen by suspicion: a random sample has 0.5.
_SUSPICIOUS_RANK = 0.2
# Standard errors of the mean rank that a random sample does not reach.
_MOST_ERRORS = 4.0


class SelectedChecksWarning(UserWarning):
    """Rows were checked because their label looked wrong, so the result may be far off."""


def warn_if_selected(model: TrueClassModel) -> None:
    """Warn if rows were checked because their label looked wrong.

    Such rows contradict any model of labels and scores, because they are worse than rows of the
    same kind. Only rows that agree or differ in label and prediction are compared with each other,
    so the two kinds may be checked at different rates.

    Parameters
    ----------
    model : TrueClassModel
        The model of the true class.
    """
    if was_selected(model):
        warn_caller(prose.selected(prose.PYTHON), SelectedChecksWarning)


def was_selected(model: TrueClassModel) -> bool:
    """Whether the labels of checked rows are the least likely ones of a cell.

    Labels are ranked by the prior mean of the parameters, because parameters that were fitted to
    selected rows would rank these rows higher.
    """
    rows = model.rows
    observed = rows.observed
    prior_mean, _ = rows.prior
    own = rows.posterior(prior_mean)[np.arange(len(observed)), observed]
    labelled = observed != UNLABELLED
    for cell in np.unique(rows.cells[labelled]):
        members = labelled & (rows.cells == cell)
        n = int(members.sum())
        is_checked = ~model.unchecked[members]
        m = int(is_checked.sum())
        if m < _LEAST_CHECKS or m == n:
            continue
        ranks = (rankdata(own[members]) - 0.5) / n
        mean = float(ranks[is_checked].mean())
        error = np.sqrt((n + 1) * (n - m) / (12 * m)) / n  # of the mean of m ranks out of n
        if mean < _SUSPICIOUS_RANK and 0.5 - mean > _MOST_ERRORS * error:
            return True
    return False
