"""NoisyLabelClassifier: any scikit-learn classifier, fitted to noisy labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.model_selection import PredefinedSplit
from sklearn.utils import (
    Tags,
    _safe_indexing,
    assert_all_finite,
    column_or_1d,
    estimator_html_repr,
    get_tags,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from unflip._utils.alignment import check_aligned
from unflip._utils.progress import tracked
from unflip._utils.typing import FloatArray, IntArray
from unflip._utils.validation import as_count, as_floats, check_unmasked
from unflip._utils.warnings import warn_caller
from unflip.calibration.accuracy import ExpectedAccuracy
from unflip.calibration.intercepts import class_probabilities
from unflip.calibration.observations import Observations
from unflip.data.input_rows import unchanged_on_error
from unflip.estimation.noise_estimator import AssumedNoiseWarning, NoiseEstimator
from unflip.estimation.score_rates import ScoreRates, log_scores_of
from unflip.labels.class_values import ByClass, noise_in_order, priors_in_order
from unflip.labels.classes import split_missing
from unflip.labels.noise import NoiseModel
from unflip.labels.votes import Votes
from unflip.model.classifier import LPClassifier
from unflip.model.fit_summary import fit_summary
from unflip.model.held_out import held_out_log_odds
from unflip.model.label_evidence import LabelEvidence, fixed_rates, likeliest_rates
from unflip.model.noise_sources import resolve_noise, with_inferred_priors
from unflip.model.options import gives_priors, is_estimate
from unflip.model.out_of_fold import (
    check_classifier,
    given_probabilities,
    log_odds_of,
    out_of_fold_log_odds,
    predicted_codes,
    split_into_folds,
    weight_parameter,
)
from unflip.model.samples import Samples, as_samples, fit_to_labels, fit_to_posterior
from unflip.ridge.label_association import certainty


def _delegates(method: str) -> Callable[[Any], bool]:
    """Return whether the wrapped classifier has a method."""

    def has_method(classifier: NoisyLabelClassifier) -> bool:
        inner = getattr(classifier, "estimator_", classifier.estimator)
        return hasattr(inner, method)

    return has_method


class NoisyLabelClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Fit any classifier to noisy labels.

    1. `LPClassifier` with kernel features is fitted to the noisy labels. Its leave-one-out scores
       give the noise rates and P(true class | sample, label).
    2. Out-of-fold predictions of the classifier, fitted to the noisy labels, are combined with
       these scores if the labels support it significantly: the classifier may fit what the kernel
       cannot.
    3. The classifier is fitted to the likeliest class of each sample, weighted by the probability
       of that class minus that of the next. If no scores predict the labels and the noise rates are
       unknown, it is fitted to the labels themselves. Fits to the other folds give the expected
       accuracy.

    Parameters
    ----------
    estimator : classifier
        Any classifier with `fit` and `predict`, such as a forest, boosting, a support vector
        machine or a pipeline. If it takes no ``sample_weight``, samples have equal weights.
    noise, priors
        As in `LPClassifier`. Trusted labels (`TrustedSubset`) determine the noise rates.
    features : {"auto", "linear", "rbf", "matern", "laplace"} or transformer, default="auto"
        Features of the fit of step 1, as in `LPClassifier`. Dense features are standardized for
        this fit alone, and missing values are imputed.
    cv : int or None, default=5
        Number of folds, each of which needs a fit in step 2 and one in step 3. With None the
        classifier is fitted only once: step 2 and the expected accuracy are left out.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        Class labels, sorted.
    estimator_ : classifier
        The fitted classifier.
    label_fit_ : LPClassifier or None
        The fit of step 1; None if X is not numeric.
    cv_share_ : float
        Share of the out-of-fold predictions in the log-odds, from 0 to 1.
    noise_ : NoiseModel
        Given or estimated noise model with priors.
    noise_std_ : ndarray of shape (k, k)
        Standard errors of ``noise_.transition``; 0 if the noise was given.
    rates_ : ScoreRates
        Noise rates with their covariance, source and assumption.
    label_posterior_ : ndarray of shape (n, k)
        P(true class | sample, observed label) of the training samples, from out-of-sample scores
        and ``rates_.noise``.
        Trusted samples have 0 or 1, zero-weight samples the class priors, and samples without a
        label P(true class | sample).
    log_odds_ : ndarray of shape (n, k)
        Out-of-sample log-odds of each class against the first, without the sample's own label.
    association_ : float
        Standard errors by which the log-odds agree with the labels beyond chance; see
        `LPClassifier`.
    expected_accuracy_ : float
        Expected accuracy of ``estimator_`` on new samples with clean labels: the mean probability,
        by ``log_odds_``, of predictions by fits to other folds, as in step 3. NaN without folds: if
        ``cv=None``, or each class has one sample only.
    expected_accuracy_std_ : float
        Standard error of ``expected_accuracy_``.
    n_effective_ : float
        Effective number of samples.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (p,)
        Names of the features; only if the columns of X have names that are all strings.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from unflip import NoiseModel, NoisyLabelClassifier
    >>> X, y = make_moons(1000, noise=0.2, random_state=0)
    >>> noisy = NoiseModel.binary(eps_pos=0.4, eps_neg=0.2).flip(y, random_state=0)
    >>> forest = RandomForestClassifier(random_state=0)
    >>> X_new, y_new = make_moons(1000, noise=0.2, random_state=1)
    >>> print(f"{forest.fit(X, noisy).score(X_new, y_new):.2f}")
    0.77
    >>> print(f"{NoisyLabelClassifier(forest).fit(X, noisy).score(X_new, y_new):.2f}")
    0.94
    """

    classes_: NDArray[Any]
    estimator_: Any
    label_fit_: LPClassifier | None
    cv_share_: float
    noise_: NoiseModel
    noise_std_: FloatArray
    rates_: ScoreRates
    label_posterior_: FloatArray
    log_odds_: FloatArray
    association_: float
    expected_accuracy_: float
    expected_accuracy_std_: float
    n_effective_: float
    n_features_in_: int

    def __init__(
        self,
        estimator: Any,
        noise: NoiseModel
        | NoiseEstimator
        | ByClass
        | ArrayLike
        | Literal["estimate"]
        | None = "estimate",
        *,
        priors: ByClass | ArrayLike | None = None,
        features: Any = "auto",
        cv: int | None = 5,
    ) -> None:
        self.estimator = estimator
        self.noise = noise
        self.priors = priors
        self.features = features
        self.cv = cv

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        pred_probs: ArrayLike | None = None,
    ) -> Self:
        """Fit to samples X with observed labels y.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n, p)
            Training samples, of any kind that the classifier takes. If they are not numeric, step 1
            is left out, and `cv` or `pred_probs` is needed.
        y : array-like of shape (n,)
            Observed labels; None, NaN, pandas.NA or an empty string if missing. Samples without a
            label have weight zero.
        sample_weight : array-like of shape (n,), optional
            Sample weights, if the classifier takes them. Zero-weight samples count as absent.
        groups : array-like of shape (n,), optional
            Groups of samples, such as those of the same person: out-of-sample scores are then from
            fits to other groups.
        pred_probs : array-like of shape (n, k), optional
            Out-of-sample probabilities of the observed classes by any model, one column per class
            in sorted order. They replace the fits of step 2.

        Returns
        -------
        self
        """
        check_aligned(X=X, y=y, sample_weight=sample_weight, groups=groups, pred_probs=pred_probs)
        with unchanged_on_error(self):
            labels, missing = split_missing(y)
            samples = self._samples(X, labels, missing, sample_weight, groups)
            label_fit = self._label_fit(samples)
            folds = self._folds(samples)
            second = self._second_log_odds(samples, pred_probs, folds)
            if label_fit is not None:
                first = _log_odds(label_fit, samples)
            elif second is not None:
                first, second = second, None
            else:
                raise ValueError(self._why_no_scores())
            n_effective = samples.n_effective if label_fit is None else label_fit.n_effective_
            observations = samples.observations(
                n_effective, priors_known=gives_priors(self.noise, self.priors)
            )
            rates_of = self._rates_of(label_fit, samples, observations)
            evidence = LabelEvidence.of(first, second, observations, rates_of)
            self.label_fit_ = label_fit
            self._set(samples, evidence, folds)
            if missing is not None:
                self._set_unlabelled(np.flatnonzero(missing), samples, evidence, pred_probs)
        if self.rates_.assumption:
            warn_caller(self.rates_.assumption, AssumedNoiseWarning)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the TRUE class of samples."""
        return self._answer("predict", X)

    @available_if(_delegates("predict_proba"))  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the classifier's probability of each TRUE class, (n, k)."""
        return self._answer("predict_proba", X)

    @available_if(_delegates("decision_function"))  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def decision_function(self, X: Any) -> FloatArray:
        """Return the decision values of the classifier."""
        return self._answer("decision_function", X)

    def _html_repr(self) -> str:
        return fit_summary(self) + str(estimator_html_repr(self))

    def __sklearn_tags__(self) -> Tags:
        """Return the tags, with those of the classifier for its input."""
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            inner = get_tags(self.estimator)
            tags.input_tags = inner.input_tags
            tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
        return tags

    def _answer(self, method: str, X: Any) -> NDArray[Any]:
        """Return the answer of a method of the fitted classifier."""
        check_is_fitted(self)
        X = as_samples(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return np.asarray(getattr(self.estimator_, method)(X))

    def _samples(
        self,
        X: Any,
        y: ArrayLike,
        missing: NDArray[np.bool_] | None,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
    ) -> Samples:
        """Validate parameters, samples, labels and weights; missing labels have weight zero."""
        if isinstance(y, Votes):
            raise ValueError("Votes need LPClassifier: pass one label per sample.")
        check_classifier(self.estimator)
        if self.cv is not None:
            as_count(self.cv, "cv", least=2)
        check_unmasked(X=X, y=y)
        X = as_samples(X)
        validate_data(self, X, skip_check_array=True)
        labels = np.asarray(column_or_1d(y, warn=True))
        assert_all_finite(labels, input_name="y")
        check_consistent_length(X, labels)
        weights = None
        if sample_weight is not None:
            weights = as_floats(sample_weight, "sample_weight")
            if weight_parameter(self.estimator) is None:
                raise ValueError(
                    f"sample_weight was passed, but fit of {self.estimator!r} has no such "
                    "parameter, or does not request it from metadata routing: omit sample_weight, "
                    "or use another classifier."
                )
        weights = _check_sample_weight(
            weights, labels[:, None], dtype=np.float64, ensure_non_negative=True
        )
        if missing is not None:
            weights = np.where(missing, 0.0, weights)
        return Samples.of(X, labels, weights, groups)

    def _label_fit(self, samples: Samples) -> LPClassifier | None:
        """Return the fit of step 1; None if the features are not numeric."""
        numeric = samples.numeric
        if numeric is None:
            return None
        with warnings.catch_warnings():
            # The warning comes later, about the rates that are used in the end.
            warnings.simplefilter("ignore", AssumedNoiseWarning)
            unfitted = LPClassifier(self.noise, priors=self.priors, features=self.features)
            return unfitted.fit(numeric, samples.all_labels, samples.all_weights)

    def _second_log_odds(
        self, samples: Samples, pred_probs: ArrayLike | None, folds: PredefinedSplit | None
    ) -> FloatArray | None:
        """Return the log-odds of step 2; None if it is left out."""
        if pred_probs is not None:
            given = given_probabilities(pred_probs, samples.n_all, len(samples.classes))
            return log_scores_of(given[samples.members])
        if folds is None:
            return None
        return out_of_fold_log_odds(
            self.estimator, samples.kept, samples.classes, samples.codes, samples.weights, folds
        )

    def _set_unlabelled(
        self,
        rows: IntArray,
        samples: Samples,
        evidence: LabelEvidence,
        pred_probs: ArrayLike | None,
    ) -> None:
        """Set the log-odds and the posterior of samples without a label."""
        parts = []
        if self.label_fit_ is not None:
            contrasts = np.asarray(self.label_fit_.loo_log_odds_).reshape(samples.n_all, -1)[rows]
            parts.append(_with_first_class(contrasts))
        if pred_probs is not None:
            given = given_probabilities(pred_probs, samples.n_all, len(samples.classes))
            parts.append(log_scores_of(given[rows]))
        elif self.cv_share_ > 0:
            noisy_fit = fit_to_labels(self.estimator, samples)
            unlabelled = _safe_indexing(samples.rows, rows)
            parts.append(log_odds_of(noisy_fit, unlabelled, samples.classes, samples.labels))
        log_odds = evidence.log_odds_of(*parts)
        self.log_odds_[rows] = log_odds
        self.label_posterior_[rows] = class_probabilities(log_odds)

    def _why_no_scores(self) -> str:
        reason = "each class has one sample only" if self.cv else "cv=None leaves them out"
        return (
            "The features of X are not numeric, so out-of-fold predictions are needed, but "
            f"{reason}: pass pred_probs, encode X as numbers, or use cv=5 with more samples of "
            "each class."
        )

    def _folds(self, samples: Samples) -> PredefinedSplit | None:
        """Return the folds; None if there are none."""
        if self.cv is None:
            return None
        return split_into_folds(self.cv, samples.codes, samples.fold_units, samples.groups)

    def _rates_of(
        self, label_fit: LPClassifier | None, samples: Samples, observations: Observations
    ) -> Callable[[FloatArray, bool], ScoreRates]:
        """Return the function from log-odds to noise rates."""
        priors = priors_in_order(self.priors, samples.classes)
        if label_fit is None:
            if is_estimate(self.noise):
                return likeliest_rates(observations, priors)
            if isinstance(self.noise, NoiseEstimator):
                raise ValueError(
                    "Trusted labels and noise estimators need numeric features: encode X as "
                    "numbers, or pass a NoiseModel as noise=."
                )
            given = noise_in_order(self.noise, samples.classes)
            model = resolve_noise(given, priors, samples.classes)
            noise = with_inferred_priors(
                model, samples.observed, observations.n_effective, samples.classes
            )
            return fixed_rates(noise, np.zeros_like(noise.transition), "given")
        estimator = label_fit.noise_estimator_
        errors = np.asarray(label_fit.noise_std_)
        if estimator is None:
            return fixed_rates(label_fit.noise_, errors, "given")
        is_uncertain = estimator.is_start_ or not certainty(label_fit.association_)
        if is_estimate(self.noise) and is_uncertain:
            return likeliest_rates(observations, priors)
        return fixed_rates(label_fit.noise_, errors, estimator.source_, estimator.rate_covariance_)

    def _set(
        self, samples: Samples, evidence: LabelEvidence, folds: PredefinedSplit | None
    ) -> None:
        """Fit the classifier to the evidence, and set the attributes."""
        trusted = self.noise.y_trusted if isinstance(self.noise, NoiseEstimator) else None
        posterior = evidence.posterior(samples.true_codes(trusted))
        fit_part = partial(fit_to_posterior, self.estimator, samples, posterior)
        if evidence.rates.source == "no signal":
            fit_part = partial(fit_to_labels, self.estimator, samples)
        self.classes_ = samples.classes
        self.estimator_ = fit_part()
        priors = evidence.rates.noise.known_priors
        accuracy = _expected_accuracy(samples, evidence, folds, fit_part)
        self.cv_share_ = 1.0 if self.label_fit_ is None else evidence.combination.share
        self.noise_ = evidence.rates.reported
        self.noise_std_ = evidence.rates.errors
        self.rates_ = evidence.rates
        self.label_posterior_ = samples.to_all(posterior, priors)
        log_odds = evidence.scores.calibration.log_odds
        self.log_odds_ = samples.to_all(log_odds, np.log(priors / priors[0]))
        self.association_ = evidence.association
        self.expected_accuracy_ = accuracy.value
        self.expected_accuracy_std_ = accuracy.error
        self.n_effective_ = evidence.scores.observations.n_effective


def _expected_accuracy(
    samples: Samples,
    evidence: LabelEvidence,
    folds: PredefinedSplit | None,
    fit_part: Callable[[IntArray], Any],
) -> ExpectedAccuracy:
    """Return the expected accuracy of predictions by fits to other folds; NaN without folds."""
    if folds is None:
        return ExpectedAccuracy(np.nan, np.nan)
    # Samples that no fold holds out have the prediction of their log-odds.
    predicted = evidence.scores.calibration.log_odds.argmax(axis=1)
    for train, test in tracked(list(folds.split()), "Fits to other folds"):
        rows = _safe_indexing(samples.kept, test)
        predicted[test] = predicted_codes(fit_part(train), rows, samples.classes)
    return evidence.scores.expected_accuracy(predicted, evidence.rates.noise.known_priors)


def _log_odds(label_fit: LPClassifier, samples: Samples) -> FloatArray:
    """Return the log-odds of each class, (n_positive, k), by fits without the sample.

    They are leave-one-out log-odds, or with groups those of fits to other groups.
    """
    n = samples.n_all
    if samples.folds:
        log_odds = held_out_log_odds(
            samples.numeric,
            samples.all_labels,
            samples.folds,
            label_fit,
            weights=samples.all_weights,
        )
    else:
        contrasts = np.asarray(label_fit.loo_log_odds_).reshape(n, -1)
        log_odds = _with_first_class(contrasts)
    return log_odds[samples.members]


def _with_first_class(contrasts: FloatArray) -> FloatArray:
    """Return log-odds of each class against the first, (n, k), from those of the others."""
    return np.column_stack([np.zeros(len(contrasts)), contrasts])
