"""Whether checked rows contradict the model of the true class that was fitted to the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unflip._utils.typing import FloatArray, IntArray
from unflip.auditing.evaluation.class_contrast import ClassContrast
from unflip.calibration.labelled_scores import LabelledScores
from unflip.calibration.true_class import TrueClassModel
from unflip.labels.codes import UNCHECKED

_FOLDS = 5
# Fewer checked rows cannot contradict the model.
_LEAST_CHECKS = 30
# Standard errors beyond which the model is contradicted: by chance once in 370 cases.
_MOST_ERRORS = 3.0


def is_contradicted(
    model: TrueClassModel,
    contrasts: Sequence[ClassContrast],
    strata: IntArray,
    inclusion: FloatArray | None = None,
) -> bool:
    """Whether the sum of a contrast over held-out checked rows is far from its expectation.

    Parameters
    ----------
    model : TrueClassModel
        The model fitted to all checked rows.
    contrasts : sequence of ClassContrast
        What to sum: correct predictions, for example.
    strata : ndarray of shape (n,)
        Groups of rows that each fold has a part of.
    inclusion : ndarray of shape (n,), optional
        Probability with which each row was chosen for a check.
    """
    if model.n_checked < _LEAST_CHECKS:
        return False
    errors = np.zeros(len(contrasts))
    variances = np.zeros(len(contrasts))
    for held_out in _folds(np.flatnonzero(~model.unchecked), strata):
        truth = model.truth.copy()
        truth[held_out] = UNCHECKED
        others = TrueClassModel.fit(model.rows, truth, inclusion=inclusion)
        weights = np.ones(len(held_out)) if inclusion is None else 1 / inclusion[held_out]
        rows = model.rows.subset(held_out)
        for place, contrast in enumerate(contrasts):
            error, variance = _misfit(
                others, rows, contrast.subset(held_out), model.truth[held_out], weights
            )
            errors[place] += error
            variances[place] += variance
    return bool((np.abs(errors) > _MOST_ERRORS * np.sqrt(variances)).any())


def _folds(checked: IntArray, strata: IntArray) -> list[IntArray]:
    """Deal the checked rows of each stratum to the folds in turn."""
    fold = np.empty(len(checked), dtype=np.intp)
    for stratum in np.unique(strata[checked]):
        members = np.flatnonzero(strata[checked] == stratum)
        fold[members] = np.arange(len(members)) % _FOLDS
    return [checked[fold == number] for number in range(_FOLDS)]


def _misfit(
    others: TrueClassModel,
    rows: LabelledScores,
    contrast: ClassContrast,
    truth: IntArray,
    weights: FloatArray,
) -> tuple[float, float]:
    """Return observed − expected sum over held-out rows, and its variance."""
    posterior = rows.posterior(others.parameters)
    error = weights @ (contrast.observed(truth) - contrast.expected(posterior))
    gradient = weights @ contrast.gradients(rows, posterior)
    sampling = weights**2 @ contrast.variance(posterior)
    return float(error), float(sampling + gradient @ others.covariance @ gradient)
