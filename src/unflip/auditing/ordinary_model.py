"""The accuracy on clean labels of an ordinary model that is trained on the noisy labels.

The model is logistic regression. As usual, its regularization strength is the one whose out-of-fold
predictions agree most often with the labels. These predictions do not use the label of their own
row. Their accuracy is estimated by P(true class | row, label) of the audit, as the mean over the
rows of the probability of the predicted class.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, cross_val_predict

from unflip._utils.arrays import TINY
from unflip._utils.typing import FloatArray, IntArray, Rows
from unflip.auditing.evidence import Evidence
from unflip.auditing.reasons import FittedRows
from unflip.calibration.interval import Interval, share_interval

# Folds of the cross-validation; scikit-learn's default.
_N_FOLDS = 5
# Inverse regularization strengths, as many decades as those of LogisticRegressionCV, strong first.
_STRENGTHS = np.logspace(-4, 4, 9)
# Largest number of stored values times classes for which the model is fitted: 10,000 rows of 500
# features take one and a half times as long as their audit.
_MOST_WORK = 2**24


def ordinary_accuracy(fit: FittedRows, evidence: Evidence) -> Interval | None:
    """Return the accuracy of logistic regression on clean labels; None if it is not computed.

    It needs rows in memory, few enough to be fitted quickly. With votes, it needs one on each row.
    """
    rows = fit.opened().rows
    counted = evidence.counted
    if rows is None or not counted.labelled.all() or not _is_quick(rows, len(evidence.classes)):
        return None
    groups = None if fit.groups is None else np.asarray(fit.groups)[evidence.counted_rows]
    predicted = out_of_fold_classes(rows[evidence.counted_rows], counted.codes, groups)
    return None if predicted is None else accuracy_of(predicted, counted)


def _is_quick(X: Rows, n_classes: int) -> bool:
    n_values = X.nnz if issparse(X) else X.size
    return bool(n_values * (1 if n_classes == 2 else n_classes) <= _MOST_WORK)


def out_of_fold_classes(X: Rows, codes: IntArray, groups: Any = None) -> IntArray | None:
    """Return the predictions of logistic regression, cross-validated for its strength.

    Weaker regularization is tried until the predictions agree with the labels less often than the
    best by a standard error. None if a class has fewer labels, or there are fewer groups, than
    folds.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n, p)
        Rows.
    codes : ndarray of shape (n,)
        Observed classes.
    groups : array-like of shape (n,), optional
        Groups that share a fold.
    """
    if np.bincount(codes).min() < _N_FOLDS:
        return None
    folds: Any = StratifiedKFold(_N_FOLDS, shuffle=True, random_state=0)
    if groups is not None:
        if len(np.unique(groups)) < _N_FOLDS:
            return None
        folds = StratifiedGroupKFold(_N_FOLDS, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # ordinary fits stop there, too
        warnings.simplefilter("ignore", UserWarning)  # groups may hold all labels of a class
        return _most_agreeing(
            codes,
            lambda strength: cross_val_predict(
                LogisticRegression(C=strength), X, codes, groups=groups, cv=folds
            ),
        )


def _most_agreeing(codes: IntArray, predictions: Callable[[float], IntArray]) -> IntArray:
    """Return the predictions by strength that agree most often with the labels."""
    best = predictions(_STRENGTHS[0])
    most = np.mean(best == codes)
    for strength in _STRENGTHS[1:]:
        predicted = predictions(strength)
        agreement = np.mean(predicted == codes)
        if agreement < most - np.sqrt(most * (1 - most) / len(codes)):
            break
        if agreement > most:
            best = predicted
            most = agreement
    return np.asarray(best)


def accuracy_of(predicted: IntArray, evidence: Evidence) -> Interval:
    """Return the accuracy on clean labels of predictions that do not use the row's own label.

    Parameters
    ----------
    predicted : ndarray of shape (n,)
        Predicted class of each row.
    evidence : Evidence
        The audit of these rows.
    """
    if evidence.uses_true_class:
        return evidence.true_class.share(predicted)
    rows = np.arange(len(predicted))
    posterior = evidence.label_posterior
    value = float(posterior[rows, predicted].mean())
    gradient = _gradient(predicted, evidence)
    variance = value * (1 - value) / evidence.n_effective
    variance += float(gradient @ evidence.parameter_covariance @ gradient)
    return share_interval(value, float(np.sqrt(variance)))


def _gradient(predicted: IntArray, evidence: Evidence) -> FloatArray:
    """Return the derivative of the accuracy by the noise rates, log-slope and intercepts."""
    posterior = evidence.label_posterior
    k = posterior.shape[1]
    own = posterior[np.arange(len(predicted)), predicted]
    by_log_terms = own[:, None] * (np.eye(k)[predicted] - posterior)
    logs = np.log(np.maximum(evidence.probabilities, TINY))
    log_odds = logs - logs[:, :1]
    channel = evidence.noise.channel
    likelihoods = np.maximum(channel.transition.T[evidence.columns], TINY)
    derivatives = channel.rate_derivatives.T[evidence.columns] / likelihoods
    by_rates = (by_log_terms * derivatives).mean(axis=0)
    by_slope = (by_log_terms * log_odds).sum(axis=1).mean()
    return np.concatenate([by_rates, [by_slope], by_log_terms.mean(axis=0)])
