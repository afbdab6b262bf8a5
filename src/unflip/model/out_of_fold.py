"""Folds, weighted fits and log-odds of any scikit-learn classifier."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GroupKFold, PredefinedSplit, StratifiedKFold
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import MetadataRouter, get_routing_for_object
from sklearn.utils.validation import has_fit_parameter

from unflip._utils.arrays import one_hot
from unflip._utils.progress import tracked
from unflip._utils.typing import FloatArray, IntArray
from unflip._utils.validation import as_floats, improper_row, shown
from unflip.data.groups import check_classes_of_groups
from unflip.estimation.score_rates import log_scores_of

# Fold of samples that `PredefinedSplit` never holds out.
_ALWAYS_TRAINING = -1


def check_classifier(estimator: Any) -> None:
    """Raise ValueError unless this is an object with the methods of a classifier."""
    can_be_fitted = all(callable(getattr(estimator, name, None)) for name in ("fit", "get_params"))
    is_tagged = can_be_fitted and hasattr(estimator, "__sklearn_tags__")
    if is_tagged and not isinstance(estimator, type):
        # Some classifiers of scikit-learn have no predict before they are fitted.
        is_valid = is_classifier(estimator) or (
            hasattr(estimator, "predict") and not is_regressor(estimator)
        )
    else:
        is_valid = can_be_fitted and callable(getattr(estimator, "predict", None))
    if isinstance(estimator, type) or not is_valid:
        raise ValueError(
            f"estimator={shown(estimator)} must be a classifier with fit and predict, such as "
            "RandomForestClassifier()."
        )


def weight_parameter(estimator: Any) -> str | None:
    """Return the name of the sample weights in the `fit` of a classifier; None if it has none.

    That of a pipeline is a parameter of its last step. Searches pass it on to what they search.
    With metadata routing, these and others pass on what is requested.
    """
    if sklearn.get_config()["enable_metadata_routing"]:
        return "sample_weight" if _takes_weights_by_routing(estimator) else None
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = weight_parameter(last)
        return None if inner is None else f"{name}__{inner}"
    if isinstance(estimator, BaseSearchCV):
        return weight_parameter(estimator.estimator)
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def _takes_weights_by_routing(estimator: Any) -> bool:
    """Whether the `fit` of a classifier takes sample weights if metadata routing is enabled."""
    try:
        routing = get_routing_for_object(estimator)
    except NotImplementedError:  # such as AdaBoostClassifier
        return False
    if isinstance(routing, MetadataRouter):
        return bool(routing.consumes("fit", ["sample_weight"]))
    return bool(has_fit_parameter(estimator, "sample_weight"))


def fit_weighted(estimator: Any, X: Any, y: NDArray[Any], weights: FloatArray) -> Any:
    """Fit a clone with sample weights, or without if the classifier does not take any."""
    name = weight_parameter(estimator)
    return clone(estimator).fit(X, y, **({} if name is None else {name: weights}))


def out_of_fold_log_odds(
    estimator: Any,
    X: Any,
    classes: NDArray[Any],
    codes: IntArray,
    weights: FloatArray,
    folds: PredefinedSplit,
) -> FloatArray:
    """Return out-of-fold log-odds of the observed classes, (n, k), up to a term common to all.

    They are those of the probabilities of the classifier, its decision values, or for want of both
    its predictions. Samples that no fold holds out have those of the class proportions.
    """
    log_odds = np.tile(np.log(np.bincount(codes, weights)), (len(codes), 1))
    for train, test in tracked(list(folds.split()), "Out-of-fold fits"):
        labels = classes[codes[train]]
        fitted = fit_weighted(estimator, _safe_indexing(X, train), labels, weights[train])
        log_odds[test] = log_odds_of(fitted, _safe_indexing(X, test), classes, labels)
    return log_odds


def log_odds_of(fitted: Any, X: Any, classes: NDArray[Any], labels: NDArray[Any]) -> FloatArray:
    """Return log-odds of all classes, (n, k), by a classifier that was fitted to some labels."""
    # A class may be missing in a fold.
    known = np.searchsorted(classes, getattr(fitted, "classes_", np.unique(labels)))
    if hasattr(fitted, "predict_proba"):
        values = np.asarray(fitted.predict_proba(X))
        probabilities = np.zeros((len(values), len(classes)))
        probabilities[:, known] = values
        return log_scores_of(probabilities)
    if hasattr(fitted, "decision_function") and len(known) == len(classes):
        values = np.asarray(fitted.decision_function(X))
        if values.ndim == 1:
            return np.column_stack([-values / 2, values / 2])
        if values.shape[1] == len(classes) and not _is_pairwise(fitted):
            return values
    return np.asarray(one_hot(predicted_codes(fitted, X, classes), len(classes)))


def predicted_codes(fitted: Any, X: Any, classes: NDArray[Any]) -> IntArray:
    """Return the class index that a fitted classifier predicts for each sample."""
    return np.searchsorted(classes, np.asarray(fitted.predict(X)).ravel())  # some return a column


def _is_pairwise(fitted: Any) -> bool:
    """Whether decision values are those of pairs of classes."""
    last = fitted.steps[-1][1] if isinstance(fitted, Pipeline) else fitted
    return getattr(last, "decision_function_shape", "ovr") == "ovo"


def given_probabilities(pred_probs: ArrayLike, n_rows: int, n_classes: int) -> FloatArray:
    """Return out-of-sample probabilities that the user passes, validated."""
    table = as_floats(pred_probs, "pred_probs")
    if table.shape != (n_rows, n_classes):
        raise ValueError(
            f"pred_probs has shape {table.shape}: pass one row for each of the {n_rows} samples, "
            f"and one column for each of the {n_classes} classes."
        )
    is_finite = np.isfinite(table).all(axis=1)
    improper = improper_row(table) if is_finite.all() else int(is_finite.argmin())
    if improper is not None:
        raise ValueError(
            "Each row of pred_probs must hold non-negative numbers that sum to 1, but row "
            f"{improper} is {table[improper].round(4).tolist()}."
        )
    return table


def split_into_folds(
    n_folds: int, codes: IntArray, units: IntArray, groups: NDArray[Any] | None
) -> PredefinedSplit | None:
    """Return folds that keep groups together, and otherwise units; None if there are none.

    Classifiers may need all classes. So the samples of a class of one unit are training samples of
    all folds, and a group that holds a class alone raises ValueError.

    Parameters
    ----------
    n_folds : int
        Number of folds, at most. It is lower if each class has fewer units.
    codes : ndarray of shape (n,)
        Observed class of each sample.
    units : ndarray of shape (n,)
        Unit of each sample, such as that of its duplicates.
    groups : ndarray of shape (n,) or None
        Group of each sample.
    """
    if groups is not None:
        return _group_folds(n_folds, codes, groups)
    _, first, unit_of = np.unique(units, return_index=True, return_inverse=True)
    class_of = codes[first]
    n_folds = min(n_folds, int(np.bincount(class_of).max()))
    if n_folds < 2:
        return None
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    fold_of_unit = np.empty(len(first), dtype=np.intp)
    with warnings.catch_warnings():
        # A class with fewer samples than folds is handled below.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        for index, (_, held_out) in enumerate(splitter.split(first, class_of)):
            fold_of_unit[held_out] = index
    fold = fold_of_unit[unit_of]
    for code in np.unique(codes):
        of_class = codes == code
        if len(np.unique(fold[of_class])) == 1:
            fold[np.isin(unit_of, unit_of[of_class])] = _ALWAYS_TRAINING
    return PredefinedSplit(fold) if fold.max() > _ALWAYS_TRAINING else None


def _group_folds(n_folds: int, codes: IntArray, groups: NDArray[Any]) -> PredefinedSplit:
    """Return folds that keep groups together; raise ValueError if one holds out a whole class."""
    fold = np.empty(len(codes), dtype=np.intp)
    splitter = GroupKFold(min(n_folds, len(np.unique(groups))))
    for index, (train, held_out) in enumerate(splitter.split(codes, codes, groups)):
        check_classes_of_groups(codes[train], len(np.unique(codes)))
        fold[held_out] = index
    return PredefinedSplit(fold)
