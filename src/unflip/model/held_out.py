"""Log-odds of samples by fits to other groups of samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from unflip._utils.arrays import as_numpy
from unflip._utils.progress import tracked
from unflip._utils.typing import FloatArray, IntArray, Rows
from unflip.data.duplicates import take_rows
from unflip.data.groups import Folds, check_classes_of_groups
from unflip.estimation.given_rates import GivenRates
from unflip.estimation.noise_estimator import NoiseEstimator
from unflip.estimation.trusted import TrustedSubset
from unflip.labels.votes import Votes


def held_out_log_odds(
    rows: Rows,
    labels: NDArray[Any] | Votes,
    folds: Folds,
    fitted: Any,
    *,
    weights: FloatArray | None = None,
    from_votes: bool = False,
) -> FloatArray:
    """Return the log-odds of each class, (n, k), by fits to the other groups.

    Parameters
    ----------
    rows : array, sparse array or LazyRows of shape (n, p)
        All samples.
    labels : ndarray of shape (n,) or Votes
        Their labels or votes.
    folds : list of pairs of ndarray
        Training and held-out samples. Samples that no fold holds out have log-odds 0.
    fitted : LPClassifier
        The fit to all samples, from which folds take parameters, noise rates and features.
    weights : ndarray of shape (n,), optional
        Sample weights.
    from_votes : bool
        Whether the noise rates of each annotator are estimated from the votes, in each fold.
    """
    scores = np.zeros((len(labels), len(fitted.classes_)))
    for train, test in tracked(folds, "Fits to other groups"):
        train_labels = labels[train]
        check_classes_of_groups(train_labels, len(fitted.classes_))
        fold = _unfitted_fold(fitted, labels, train, from_votes)
        fold.fit(take_rows(rows, train), train_labels, None if weights is None else weights[train])
        values = as_numpy(fold.decision_function(take_rows(rows, test)))
        scores[test] = np.column_stack([-values / 2, values / 2]) if values.ndim == 1 else values
    return scores


def _unfitted_fold(
    fitted: Any, labels: NDArray[Any] | Votes, train: IntArray, from_votes: bool
) -> Any:
    """Return a classifier for some samples, with the noise rates and features of a fit to all."""
    estimator = fitted.noise_estimator_
    checked = None if estimator is None else estimator.y_trusted
    source: Any = "estimate" if from_votes else fitted.noise_
    if checked is not None and not isinstance(labels, Votes):
        source = _known_in(train, fitted, checked)
    fold = clone(fitted)
    features = "linear" if fitted.features_ is None else fitted.features_
    return fold.set_params(noise=source, priors=None, features=features)


def _known_in(train: IntArray, fitted: Any, checked: ArrayLike) -> NoiseEstimator:
    """Return the noise of a fold, which knows only the trusted labels of its training rows."""
    train_checked = np.asanyarray(checked)[train]  # keeps a mask
    estimator = fitted.noise_estimator_
    if estimator is not None and estimator.uses_trusted_labels:
        return TrustedSubset(train_checked)
    return GivenRates(fitted.noise_, y_trusted=train_checked)
