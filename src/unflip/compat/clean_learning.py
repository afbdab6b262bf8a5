"""Any classifier on noisy labels, with the interface of cleanlab's CleanLearning."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Tags, _safe_indexing, column_or_1d, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from unflip._utils.optional import import_optional
from unflip._utils.typing import FloatArray
from unflip.auditing.from_scores import audit_scores
from unflip.auditing.report import checked_rate
from unflip.compat.issue_columns import (
    check_options,
    columns_of_audit,
    issue_columns,
    most_likely_wrong,
    quality_of,
)
from unflip.model.noisy_label_classifier import NoisyLabelClassifier


def _has_probabilities(learner: CleanLearning) -> bool:
    """Return whether the classifier has probabilities."""
    classifier = getattr(learner, "estimator_", learner.clf)
    return classifier is None or hasattr(classifier, "predict_proba")


class CleanLearning(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Fit any classifier to noisy labels, and find the labels that are wrong.

    A `NoisyLabelClassifier` with the interface of cleanlab's CleanLearning. No row is left out:
    rows are weighted by what is known of their true class.

    Parameters
    ----------
    clf : classifier, optional
        Any classifier with `fit` and `predict`; by default logistic regression.
    seed : int, optional
        Not used: the folds are not random.
    cv_n_folds : int, default=5
        Number of folds of the out-of-sample predictions.
    noise, priors
        As in `NoisyLabelClassifier`.
    false_discovery_rate : float, default=0.1
        Maximum expected share of right labels among the label issues.
    find_label_issues_kwargs, label_quality_scores_kwargs : dict, optional
        Options of cleanlab, at values that change nothing. Otherwise an error names what to use.
    verbose : bool, default=False
        Not used: nothing is printed.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    model_ : NoisyLabelClassifier or None
        The last fit with noisy labels, with ``noise_`` and ``expected_accuracy_``; None after a fit
        to the rows that `label_issues` leaves.
    classes_ : ndarray of shape (k,)
        Class labels, sorted.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from unflip import NoiseModel
    >>> X, y = make_moons(1000, noise=0.2, random_state=0)
    >>> labels = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1).flip(y, random_state=0)
    >>> learner = CleanLearning(RandomForestClassifier(random_state=0)).fit(X, labels)
    >>> print(f"{learner.score(X, y):.2f}")
    0.96
    >>> print(f"{learner.model_.expected_accuracy_:.2f}")
    0.92
    """

    classes_: NDArray[Any]
    estimator_: Any
    model_: NoisyLabelClassifier | None

    def __init__(
        self,
        clf: Any = None,
        *,
        seed: int | None = None,
        cv_n_folds: int = 5,
        noise: Any = "estimate",
        priors: ArrayLike | None = None,
        false_discovery_rate: float = 0.1,
        find_label_issues_kwargs: dict[str, Any] | None = None,
        label_quality_scores_kwargs: dict[str, Any] | None = None,
        verbose: bool = False,
    ) -> None:
        self.clf = clf
        self.seed = seed
        self.cv_n_folds = cv_n_folds
        self.noise = noise
        self.priors = priors
        self.false_discovery_rate = false_discovery_rate
        self.find_label_issues_kwargs = find_label_issues_kwargs
        self.label_quality_scores_kwargs = label_quality_scores_kwargs
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        labels: ArrayLike | None = None,
        *,
        pred_probs: ArrayLike | None = None,
        label_issues: Any = None,
        sample_weight: ArrayLike | None = None,
        y: ArrayLike | None = None,
        **options: Any,
    ) -> Self:
        """Fit the classifier to samples with noisy labels.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n, p)
            Training samples.
        labels, y : array-like of shape (n,)
            Observed labels; either name will do.
        pred_probs : array-like of shape (n, k), optional
            Out-of-sample probabilities by any model, instead of fits to folds.
        label_issues : DataFrame, mask or row numbers, optional
            Rows to leave out. The classifier is then fitted to the others as they are, which is
            less accurate than without this argument.
        sample_weight : array-like of shape (n,), optional
            Sample weights, if the classifier takes them.
        **options
            Other options of cleanlab, at values that change nothing.

        Returns
        -------
        self
        """
        check_options(options)
        given = _one_of(labels, y)
        if label_issues is None:
            self._fit_noisy(X, given, pred_probs, sample_weight)
            return self
        kept = np.flatnonzero(~_mask_of(label_issues, len(given)))
        weights = {}
        if sample_weight is not None:
            weights["sample_weight"] = np.asarray(sample_weight)[kept]
        classifier = clone(self._classifier)
        self.estimator_ = classifier.fit(_safe_indexing(X, kept), given[kept], **weights)
        self.model_ = None
        self._describe(self.estimator_)
        return self

    def find_label_issues(
        self,
        X: Any = None,
        labels: ArrayLike | None = None,
        *,
        pred_probs: ArrayLike | None = None,
        **options: Any,
    ) -> Any:
        """Return a DataFrame with a row for each label; see `get_label_issues`.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n, p), optional
            Samples. The classifier is fitted to them.
        labels : array-like of shape (n,)
            Observed labels.
        pred_probs : array-like of shape (n, k), optional
            Out-of-sample probabilities by any model; needed without X.
        **options
            Other options of cleanlab, at values that change nothing.
        """
        check_options(options)
        given = _one_of(labels, None)
        if X is not None:
            self._fit_noisy(X, given, pred_probs, None)
        elif pred_probs is not None:
            result = audit_scores(
                pred_probs,
                given,
                noise=self.noise,
                priors=self.priors,
                false_discovery_rate=self.false_discovery_rate,
            )
            self._issues = columns_of_audit(result, "label_quality")
        else:
            raise ValueError("Neither X nor pred_probs was passed: pass one of them.")
        return self.get_label_issues()

    def get_label_issues(self) -> Any:
        """Return a DataFrame with a row for each label of the last fit without `label_issues`.

        Columns: ``is_label_issue``, ``label_quality`` (the probability that the label is right),
        ``given_label`` and ``predicted_label`` (the most likely class; of an issue, the most likely
        other class).
        """
        check_is_fitted(self, "_issues")
        pandas = import_optional("pandas", "get_label_issues")
        return pandas.DataFrame(self._issues)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the TRUE class of samples."""
        return np.asarray(self._fitted.predict(X))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the classifier's probability of each TRUE class, (n, k)."""
        return np.asarray(self._fitted.predict_proba(X))

    def __sklearn_tags__(self) -> Tags:
        """Return the tags of `NoisyLabelClassifier`."""
        return get_tags(NoisyLabelClassifier(self._classifier))

    def _describe(self, fitted: Any) -> None:
        """Take over what a fitted classifier says of classes and features."""
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))

    @property
    def _fitted(self) -> Any:
        check_is_fitted(self, "estimator_")
        return self.estimator_ if self.model_ is None else self.model_

    @property
    def _classifier(self) -> Any:
        return LogisticRegression() if self.clf is None else self.clf

    def _fit_noisy(
        self, X: Any, labels: NDArray[Any], pred_probs: ArrayLike | None, weights: ArrayLike | None
    ) -> None:
        """Fit a `NoisyLabelClassifier`, and find its label issues."""
        check_options(self.find_label_issues_kwargs or {})
        check_options(self.label_quality_scores_kwargs or {})
        rate = checked_rate(self.false_discovery_rate)
        model = NoisyLabelClassifier(
            self._classifier, self.noise, priors=self.priors, cv=self.cv_n_folds
        )
        model.fit(X, labels, weights, pred_probs=pred_probs)
        self.model_ = model
        self.estimator_ = model.estimator_
        self._describe(model)
        codes = np.searchsorted(model.classes_, labels)
        is_issue = most_likely_wrong(quality_of(model.label_posterior_, codes), rate)
        self._issues = issue_columns(
            model.label_posterior_, codes, model.classes_, is_issue, "label_quality"
        )


def _one_of(labels: ArrayLike | None, y: ArrayLike | None) -> NDArray[Any]:
    """Return the labels, under either name."""
    given = y if labels is None else labels
    if given is None:
        raise ValueError(
            "CleanLearning requires y to be passed, but the target y is None: pass labels=."
        )
    if labels is not None and y is not None:
        raise ValueError("labels and y are two names of one argument: pass one of them.")
    return np.asarray(column_or_1d(given, warn=True))


def _mask_of(label_issues: Any, n: int) -> NDArray[np.bool_]:
    """Return which of the n labels are issues, from a DataFrame, a mask or row numbers."""
    flags = label_issues
    if hasattr(label_issues, "columns"):
        flags = label_issues["is_label_issue"]
    flags = np.asarray(flags)
    if flags.dtype == bool and flags.shape == (n,):
        return flags
    if flags.dtype.kind not in "iu" or (len(flags) and not 0 <= flags.min() <= flags.max() < n):
        raise ValueError(
            f"label_issues must be a mask of the {n} labels, row numbers from 0 to {n - 1}, or the "
            "result of find_label_issues."
        )
    mask = np.zeros(n, dtype=bool)
    mask[flags] = True
    return mask
