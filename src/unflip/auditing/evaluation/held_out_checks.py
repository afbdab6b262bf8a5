"""Whether checked rows contradict the model of the true class that was fitted to the others.

The model of few parameters fits the mean of each cell. If it is wrong, it is wrong for some scores:
held-out checked rows are compared with their expectation in groups of similar expectation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from unflip._utils.typing import FloatArray, IntArray
from unflip.auditing.evaluation.class_contrast import ClassContrast
from unflip.calibration.true_class import TrueClassModel
from unflip.labels.codes import UNCHECKED

_FOLDS = 5
# Fewer checked rows cannot contradict the model.
_LEAST_CHECKS = 30
# Groups of each stratum by the expectation of the model, and checked rows below which a group shows
# nothing.
_GROUPS = 3
_LEAST_GROUP = 5
# Probability that a correct model is contradicted, for normal sums.
_FALSE_ALARM = 0.003


def is_contradicted(
    model: TrueClassModel,
    contrasts: Sequence[ClassContrast],
    strata: IntArray,
    inclusion: FloatArray | None = None,
) -> bool:
    """Whether sums of a contrast over held-out checked rows are far from their expectation.

    If all rows are checked, nothing depends on the model.

    Parameters
    ----------
    model : TrueClassModel
        The model fitted to all checked rows.
    contrasts : sequence of ClassContrast
        What to sum: correct predictions, for example.
    strata : ndarray of shape (n,)
        Kinds of rows that each fold has a part of. Groups are within them.
    inclusion : ndarray of shape (n,), optional
        Probability with which each row was chosen for a check.
    """
    if model.n_checked < _LEAST_CHECKS or not model.unchecked.any():
        return False
    checked = np.flatnonzero(~model.unchecked)
    folds = _folds(checked, strata)
    scores = [
        score
        for contrast in contrasts
        for score in _group_scores(
            model, contrast, _groups(model, contrast, strata), folds, inclusion
        )
    ]
    threshold = -ndtri(_FALSE_ALARM / (2 * len(scores)))
    return bool(np.abs(scores).max() > threshold)


def _folds(checked: IntArray, strata: IntArray) -> list[IntArray]:
    """Deal the checked rows of each stratum to the folds in turn."""
    fold = np.empty(len(checked), dtype=np.intp)
    for stratum in np.unique(strata[checked]):
        members = np.flatnonzero(strata[checked] == stratum)
        fold[members] = np.arange(len(members)) % _FOLDS
    return [checked[fold == number] for number in range(_FOLDS)]


def _groups(model: TrueClassModel, contrast: ClassContrast, strata: IntArray) -> IntArray:
    """Return the group of each row: equally many checked rows of a stratum, by expectation."""
    expected = contrast.expected(model.predicted_posterior)
    groups = np.zeros(len(strata), dtype=np.intp)
    for number, stratum in enumerate(np.unique(strata)):
        members = np.flatnonzero((strata == stratum) & ~model.unchecked)
        ranks = np.argsort(np.argsort(expected[members], kind="stable"), kind="stable")
        groups[members] = number * _GROUPS + ranks * _GROUPS // max(len(members), 1)
    return groups


def _group_scores(
    model: TrueClassModel,
    contrast: ClassContrast,
    groups: IntArray,
    folds: Sequence[IntArray],
    inclusion: FloatArray | None,
) -> FloatArray:
    """Return observed − expected sums over the held-out rows of each group, in standard errors."""
    n_groups = int(groups.max()) + 1
    errors = np.zeros(n_groups)
    variances = np.zeros(n_groups)
    heaviest = np.zeros(n_groups)
    for held_out in folds:
        truth = model.truth.copy()
        truth[held_out] = UNCHECKED
        others = TrueClassModel.fit(model.rows, truth, inclusion=inclusion)
        rows = model.rows.subset(held_out)
        part = contrast.subset(held_out)
        posterior = rows.posterior(others.parameters)
        weights = np.ones(len(held_out)) if inclusion is None else 1 / inclusion[held_out]
        residuals = weights * (part.observed(model.truth[held_out]) - part.expected(posterior))
        sampling = weights**2 * part.variance(posterior)
        by_group = np.eye(n_groups)[:, groups[held_out]] * weights
        gradients = by_group @ part.gradients(rows, posterior)
        errors += np.bincount(groups[held_out], residuals, n_groups)
        variances += np.bincount(groups[held_out], sampling, n_groups)
        variances += ((gradients @ others.covariance) * gradients).sum(axis=1)
        np.maximum.at(heaviest, groups[held_out], weights)
    # A continuity correction: in a group where no error is expected, one is no contradiction.
    distances = np.maximum(np.abs(errors) - heaviest / 2, 0.0)
    scores = distances / np.sqrt(np.maximum(variances, np.finfo(float).tiny))
    n_checked = np.bincount(groups[np.concatenate(folds)], minlength=n_groups)
    return np.asarray(np.where(n_checked < _LEAST_GROUP, 0.0, scores))
