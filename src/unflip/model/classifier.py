"""LPClassifier: the labels-perturbed ridge classifier as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Literal, Self

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags, column_or_1d, estimator_html_repr
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from unflip._utils.alignment import check_aligned
from unflip._utils.arrays import as_numpy, is_foreign, like, place, take
from unflip._utils.namespaces import (
    check_reachable,
    check_same_device,
    checked_weights,
    precisions,
    reraise_out_of_memory,
    to_device_of,
)
from unflip._utils.typing import Array, Rows
from unflip._utils.validation import check_squares, check_unmasked, reading_rows
from unflip._utils.warnings import warn_caller
from unflip.calibration.interval import Interval
from unflip.data.duplicates import DistinctRows, relative_weights
from unflip.data.engines.engine import is_dask
from unflip.data.input_rows import (
    in_memory,
    lazy_for_dask,
    open_dask,
    unchanged_on_error,
    validated,
)
from unflip.data.lazy import PartitionedRows
from unflip.data.rows import product
from unflip.data.training_set import TrainingSet
from unflip.estimation.automatic import Automatic
from unflip.estimation.noise_estimator import AssumedNoiseWarning, NoiseEstimator
from unflip.features.transformed_rows import transformed_rows
from unflip.labels.annotators import Annotators
from unflip.labels.class_values import ByClass
from unflip.labels.classes import encode, split_missing
from unflip.labels.noise import NoiseModel
from unflip.labels.votes import Votes
from unflip.losses import Loss
from unflip.model.feature_choice import fit_features, with_features
from unflip.model.fit_moments import ClosedFormFit, fit_moments
from unflip.model.fit_rows import RowFit, fit_rows, warn_of_one_sided_targets
from unflip.model.fit_summary import fit_summary
from unflip.model.options import Options
from unflip.ridge.moments import Moments, add_chunk

# Kinds of NumPy dtypes that every array namespace supports.
_NUMERIC_KINDS = "biuf"
# Attributes that predictions need.
_PREDICTING = (
    "classes_",
    "coef_",
    "intercept_",
    "_decision",
    "n_features_in_",
    "feature_names_in_",
    "features_",
)
# Attributes with a value for each training sample.
_PER_SAMPLE = ("loo_decision_", "label_posterior_", "loo_log_odds_")


def _fits_from_moments(classifier: LPClassifier) -> bool:
    reason = classifier._options.why_not_from_moments()
    if reason is not None:
        raise AttributeError(f"partial_fit uses sums over the rows alone: {reason}")
    return True


class LPClassifier(ClassifierMixin, BaseEstimator):
    """Labels-Perturbed Classifier: a linear or kernel classifier that is robust to label noise.

    Minimises (1/n)Σ wᵢℓ(b + βᵀzᵢ; tᵢ) + γ‖β‖², by default with the squared loss ℓ(s; t) = (s − t)²
    and a target tᵢ for each sample that accounts for the noise. The features zᵢ are the sample
    itself, or with `features` those of a kernel. The scores are then calibrated to probabilities of
    the true class. See docs/refinement.md for the method.

    Scale the features first, for example with `StandardScaler`, as for any regularized linear
    model.

    Parameters
    ----------
    noise : "estimate", dict, NoiseModel, array-like of shape (k, k), NoiseEstimator or None, \
            default="estimate"
        The label noise. "estimate" chooses an estimator that suits the data
        (`unflip.estimation.Automatic`), and warns about its assumptions. If you know the noise
        rates, pass them by class, such as ``{"no": 0.1, "yes": 0.2}``: the share of each true
        class with another label. With more than two classes, wrong labels are spread evenly over
        the others. You can also pass a `NoiseModel` or its transition matrix (row = true class),
        with classes in the order of ``classes_``; the positive class of `NoiseModel.binary` is
        ``classes_[1]``. If some samples have trusted labels, pass ``TrustedSubset(y_trusted)``.
        None means clean labels. See docs/noise_rates.md.
    priors : dict or array-like of shape (k,), default=None
        Proportions of the true classes, if known, by class or in the order of ``classes_``. With
        estimated noise rates they help nearly as much as knowing the rates. By default they are
        those of the noise model, or inferred from the observed proportions.
    targets : {"refined", "optimized", "unbiased", "naive"} or array-like, default="refined"
        Regression targets. "refined" gives each sample its own target, from its label and its
        leave-one-out score (see docs/refinement.md). The others are from the paper: all
        samples with the same label get the same target, a number for two classes and k numbers for
        more. "optimized" is the posterior mean of the
        true class, coded −1/+1, given the label. You can also pass the values: (t_neg, t_pos) for
        two classes, an array of shape (k, k) for more.
    readout : {"gaussian", "plain"}, default="gaussian"
        Decision rule. "gaussian" calibrates the scores to log-odds of the true class, corrected for
        noise and priors, and predicts the most likely class. "plain" predicts by the sign of the
        fitted score, or by the largest of k scores, as in the paper.
    reg : float, "loo" or "theory", default="loo"
        Regularization strength γ ≥ 0. It corresponds to ``Ridge(alpha=n * reg)`` and
        ``LogisticRegression(C=1 / (2 * n * reg))``. "loo" selects it by leave-one-out scores, which
        is valid under label noise (see docs/leave_one_out.md). "theory" takes the optimum that
        `unflip.theory` predicts. It raises ValueError if the samples do not look like an isotropic
        mixture.
    loss : {"squared", "logistic"} or Loss, default="squared"
        Loss function. "logistic" is the softmax loss for more than two classes. A custom `Loss` is
        for two classes (see docs/losses.md).
    fit_intercept : bool, default=True
        Whether to fit an intercept. False is the paper's model. It is more accurate if the origin
        is known to be the midpoint of the class means, and less accurate otherwise (see
        docs/how_to/origin.md).
    features : {"linear", "auto", "rbf", "matern", "laplace"} or transformer, default="linear"
        Features in which the classifier is linear. "linear" takes those of X. A name of a kernel
        takes `KernelFeatures` of that kernel, for class boundaries that are not linear. "auto"
        takes X or one of the kernels, whichever has leave-one-out scores that agree most with the
        labels (see docs/kernels.md). A transformer is cloned, and fitted to the array of samples,
        without the labels.
    deployment_priors : dict, array-like of shape (k,) or "balanced", default=None
        Class priors of the samples to predict, as in `priors`, if they differ from those of the
        training samples. "balanced" optimises balanced accuracy. Needs ``readout="gaussian"``.
    costs : array-like of shape (k, k), default=None
        ``costs[a, b]`` is the cost of predicting class b if the true class is a. `predict` then
        returns the class with the lowest expected cost, and `predict_proba` does not change. For
        two classes, `decision_function` includes the costs: its sign is the prediction. For more
        classes it does not, so the predicted class may not have the largest decision value. Needs
        ``readout="gaussian"``.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        Class labels, sorted; the first of two is the negative class.
    features_ : transformer or None
        Fitted transformer of the samples; None if the classifier is linear in X.
    coef_ : ndarray of shape (1, q) or (k, q)
        Coefficients of the decision function, for the q features of X or of ``features_``.
    intercept_ : ndarray of shape (1,) or (k,)
        Intercepts of the decision function.
    noise_ : NoiseModel
        Given or estimated noise model with priors. With votes, its transition matrix is that of a
        randomly picked vote.
    noise_std_ : ndarray of shape (k, k)
        Standard errors of ``noise_.transition``; 0 if the noise was given.
    noise_estimator_ : NoiseEstimator or None
        Fitted noise estimator, with votes one that only holds trusted labels; None if the noise was
        given.
    annotators_ : Annotators or None
        Transition matrix of each annotator (``.names``, ``.transitions``, ``.transitions_std``), if
        `y` are votes.
    targets_ : ndarray of shape (2,), (n,), (k, k) or (n, k)
        Targets of the observed classes, or with ``targets="refined"`` of each sample: a value
        between −1 and 1 for two classes, class probabilities for more. Zero-weight samples have the
        neutral target, 0 or 1/k.
    reg_ : float
        Regularization strength γ that was used.
    loo_decision_ : ndarray of shape (n,) or (n, k)
        Leave-one-out decision value of each training sample: from a fit to ``targets_`` without
        this sample, with the same total penalty nγ. The refined targets of other samples still
        depend on its label. With ``readout="gaussian"`` this label leakage is corrected for, and
        the calibration is estimated once, from all samples (see docs/leave_one_out.md).
    label_posterior_ : ndarray of shape (n, k)
        P(true class | features, observed label) of the training samples, corrected to first order
        for label leakage. Trusted samples have 0 or 1. Trusted labels (`TrustedSubset`) calibrate
        it for noise that depends on the sample; without them, noise depends on the class alone.
    loo_log_odds_ : ndarray of shape (n,) or (n, k − 1)
        Leakage-corrected leave-one-out log-odds of each class against the first. They use neither
        the sample's own label nor its duplicates.
    n_effective_ : float
        Number of equally weighted, distinct samples with the same information (Kish's effective
        sample size).
    association_ : float
        Test statistic of the association of leave-one-out scores and labels, in standard errors.
        At 4 or more, nothing is shrunk. Between 1.5 and 4, ``label_posterior_`` and
        ``expected_accuracy_`` are shrunk towards the class priors. At 1.5 or less, they use the
        class priors alone. `predict` then also uses the class priors alone, unless refinement
        raises the correlation of scores and labels by so large a factor that ``association_`` times
        this factor exceeds 1.5 (see docs/leave_one_out.md).
    expected_accuracy_ : float
        Expected accuracy on new samples with clean labels, estimated without clean labels.
    expected_accuracy_std_ : float
        Standard error of ``expected_accuracy_``.
    expected_accuracy_interval_ : Interval
        ``expected_accuracy_`` with its 95% confidence interval (``low``, ``high``), which does not
        assume class-conditional noise; only with trusted labels (`TrustedSubset`).
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (p,)
        Names of the features; only if the columns of X have names that are all strings.
    moments_ : Moments
        Sums over the samples; only after `partial_fit` and `from_moments`.

    Examples
    --------
    >>> from unflip import LPClassifier, NoiseModel
    >>> from unflip.datasets import make_mixture
    >>> X, y = make_mixture(500, 200, mean_norm=2.0, random_state=0)
    >>> noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.1)
    >>> clf = LPClassifier(noise=noise).fit(X, noise.flip(y, random_state=0))
    >>> X_new, y_new = make_mixture(2000, 200, mean_norm=2.0, random_state=1)
    >>> bool(clf.score(X_new, y_new) > 0.9)
    True
    """

    classes_: np.ndarray[Any, Any]
    features_: Any
    coef_: Array
    intercept_: Array
    noise_: NoiseModel
    noise_std_: Array
    noise_estimator_: NoiseEstimator | None
    annotators_: Annotators | None
    targets_: Array
    reg_: float
    loo_decision_: Array
    label_posterior_: Array
    loo_log_odds_: Array
    n_effective_: float
    association_: float
    expected_accuracy_: float
    expected_accuracy_interval_: Interval
    expected_accuracy_std_: float
    n_features_in_: int
    moments_: Moments

    def __init__(
        self,
        noise: NoiseModel
        | NoiseEstimator
        | ByClass
        | ArrayLike
        | Literal["estimate"]
        | None = "estimate",
        *,
        priors: ByClass | ArrayLike | None = None,
        targets: str | ArrayLike = "refined",
        readout: Literal["gaussian", "plain"] = "gaussian",
        reg: float | Literal["loo", "theory"] = "loo",
        loss: Literal["squared", "logistic"] | Loss = "squared",
        fit_intercept: bool = True,
        features: Literal["linear", "auto", "rbf", "matern", "laplace"] | Any = "linear",
        deployment_priors: ByClass | ArrayLike | Literal["balanced"] | None = None,
        costs: ArrayLike | None = None,
    ) -> None:
        self.noise = noise
        self.priors = priors
        self.targets = targets
        self.readout = readout
        self.reg = reg
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.features = features
        self.deployment_priors = deployment_priors
        self.costs = costs

    def fit(
        self, X: ArrayLike, y: ArrayLike | Votes, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit to samples X with observed labels or votes y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Training samples. Sparse matrices stay sparse (see docs/sparse.md). Memory maps, HDF5
            data sets and similar objects are read in blocks (see docs/out_of_core.md). Dask
            collections are supported (see docs/dask.md). With
            ``sklearn.set_config(array_api_dispatch=True)`` arrays of other namespaces, such as
            torch tensors on a GPU, are fitted where they are (see docs/gpu.md).
        y : array-like of shape (n,) or Votes
            Observed labels; None, NaN, pandas.NA or an empty string if missing. Samples without a
            label have weight zero: their ``label_posterior_`` is P(true class | features). Or
            votes of several annotators (`unflip.Votes`). With votes, a given
            `noise` is that of each vote, and "estimate" estimates the noise rates of each
            annotator. If a missing vote is an abstention, samples without votes have weight zero.
        sample_weight : array-like of shape (n,), optional
            Sample weights. A sample of weight 2 counts as two duplicates, and a zero-weight sample
            as absent.

        Returns
        -------
        self
        """
        self._options.check()
        # Blocks of X may fail to load halfway through the fit.
        with unchanged_on_error(self), reraise_out_of_memory(X):
            data = self._training_set(X, y, sample_weight)
            classes = like(data.classes, data.y) if is_foreign(data.y) else data.classes
            self.features_ = fit_features(self.features, data)
            data = with_features(data, self.features_)
            options = self._options.for_classes(data.classes)
            fit = fit_rows(data, options, Automatic(priors=options.priors))
            self._set_row_fit(fit, classes)
            if is_dask(X):
                self._partition(data.X)
        if fit.noise_estimator is not None and fit.noise_estimator.assumption_:
            warn_caller(fit.noise_estimator.assumption_, AssumedNoiseWarning)
        return self

    @classmethod
    def from_moments(
        cls,
        moments: Moments,
        noise: NoiseModel | ByClass | ArrayLike | Literal["estimate"] | None = "estimate",
        *,
        targets: str | ArrayLike = "optimized",
        **params: Any,
    ) -> Self:
        """Fit from sums over the samples alone (see docs/streaming.md).

        Attributes with a value for each sample, such as ``loo_decision_``, are missing.

        Parameters
        ----------
        moments : Moments
            Sums over the samples, such as `Moments.from_chunks` returns.
        noise : dict, NoiseModel, array-like of shape (k, k) or None
            The label noise. Required: the default "estimate" raises ValueError, because estimates
            need samples.
        targets : {"optimized", "unbiased", "naive"} or array-like, default="optimized"
            Regression targets.
        **params
            Other parameters of the class. The loss must be "squared", and ``reg`` a number or
            "loo".

        Examples
        --------
        >>> from unflip import LPClassifier, Moments, NoiseModel
        >>> from unflip.datasets import make_mixture
        >>> X, y = make_mixture(500, 20, mean_norm=2.0, random_state=0)
        >>> noise = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
        >>> observed = noise.flip(y, random_state=0)
        >>> chunks = [(X[:250], observed[:250]), (X[250:], observed[250:])]
        >>> clf = LPClassifier.from_moments(Moments.from_chunks(chunks), noise)
        >>> clf.coef_.shape
        (1, 20)
        """
        if not isinstance(moments, Moments):
            raise TypeError(
                f"moments is a {type(moments).__name__}: pass a Moments object, for example from "
                "Moments.from_chunks."
            )
        classifier = cls(noise, targets=targets, **params)
        reason = classifier._options.why_not_from_moments()
        if reason is not None:
            raise ValueError(f"Moments are not enough: {reason}")
        return classifier._fit_moments(moments)

    @available_if(_fits_from_moments)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit to these samples and those of earlier calls.

        Not available with the default parameters: refined targets and estimated noise rates need
        all samples, but this method keeps only sums (``moments_``). Pass a known `noise` (or None),
        ``targets="optimized"``, "unbiased", "naive" or values, ``loss="squared"``, and
        ``reg="loo"`` or a number. If the method raises, the classifier stays unchanged. A call
        after `fit`, which keeps no sums, forgets the samples of `fit`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            New samples.
        y : array-like of shape (n,)
            Their observed labels; samples whose label is missing have weight zero.
        classes : array-like of shape (k,), optional
            All class labels; required in the first call.
        sample_weight : array-like of shape (n,), optional
            Sample weights.

        Returns
        -------
        self
        """
        self._options.check()
        moments = getattr(self, "moments_", None)
        if moments is None and classes is None and hasattr(self, "classes_"):
            classes = self.classes_
            warn_caller("partial_fit starts anew: the samples of fit are forgotten.")
        # A first call that fails must not set any attribute.
        validator = clone(self) if moments is None else self
        check_unmasked(y=y)
        with reading_rows(X):
            rows = validate_data(
                validator, X, accept_sparse="csr", dtype=precisions(X), reset=moments is None
            )
        names = getattr(validator, "feature_names_in_", None)
        labels, missing = split_missing(y)
        if missing is not None:
            sample_weight = _without(missing, sample_weight)
        chunk = (rows, column_or_1d(labels), sample_weight)
        return self._fit_moments(add_chunk(moments, chunk, classes=classes, feature_names=names))

    @lazy_for_dask
    def decision_function(self, X: ArrayLike) -> Array:
        """Return the decision values of samples.

        With ``readout="gaussian"`` they are log-odds of the true class. For two classes, they
        include the effect of ``costs``. For more classes they are centred: the k values of a sample
        sum to 0. With ``readout="plain"`` they are fitted scores.

        Returns
        -------
        array of shape (n,) or (n, k)
            For two classes one value, positive for the second class.
        """
        return _one_column(self._values(X, "decision_function"))

    @lazy_for_dask
    def predict(self, X: ArrayLike) -> Array:
        """Predict the TRUE class of samples."""
        values = self._values(X, "predict")  # raises NotFittedError before `_decision` is used
        codes = self._decision.classes(values)
        if is_foreign(codes) and as_numpy(self.classes_).dtype.kind not in _NUMERIC_KINDS:
            codes = as_numpy(codes)  # labels such as strings exist on the host alone
        return take(like(as_numpy(self.classes_), codes), codes)

    @lazy_for_dask
    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probability of each TRUE class, (n, k).

        The calibration is fitted to leave-one-out scores and the noise model. Probabilities are for
        the class proportions of the training samples, or for ``deployment_priors`` if given. With
        ``readout="plain"`` they are the logistic function (softmax for more than two classes) of
        the fitted scores times one estimated slope, so the predicted class has the largest
        probability.
        """
        values = self._values(X, "predict_proba")
        return self._decision.probabilities(values)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy of predictions on samples with clean labels."""
        return float(super().score(open_dask(X), in_memory(y), in_memory(sample_weight)))

    def _html_repr(self) -> str:
        return fit_summary(self) + str(estimator_html_repr(self))

    def __sklearn_tags__(self) -> Tags:
        """Return the tags; some parameters support two classes only."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = not self._options.for_two_classes
        tags.input_tags.sparse = True
        tags.array_api_support = isinstance(self.loss, str) and self.loss == "squared"
        return tags

    def _fit_moments(self, moments: Moments) -> Self:
        """Fit from sums and keep them; an error leaves the classifier unchanged."""
        self._options.check()
        fit = fit_moments(moments, self._options.for_classes(moments.classes))
        warn_of_one_sided_targets(fit.targets, self._options)
        for name in (*_PER_SAMPLE, "association_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        self.moments_ = moments
        self.classes_ = moments.classes
        self.n_features_in_ = moments.n_features
        if moments.feature_names is not None:
            self.feature_names_in_ = moments.feature_names.astype(object)
        self.features_ = None
        self.noise_std_ = np.zeros_like(fit.noise.transition)
        self.noise_estimator_ = None
        self.annotators_ = None
        self._set_fit(fit)
        return self

    @property
    def _options(self) -> Options:
        return Options(**{field.name: getattr(self, field.name) for field in fields(Options)})

    def _set_row_fit(self, fit: RowFit, classes: np.ndarray[Any, Any]) -> None:
        """Set the attributes of a fit to samples."""
        self.__dict__.pop("moments_", None)
        self.classes_ = classes
        self.noise_std_ = fit.noise_std
        self.noise_estimator_ = fit.noise_estimator
        self.annotators_ = fit.annotators
        self.loo_decision_ = _one_column(fit.loo_decision)
        self.label_posterior_ = fit.label_posterior
        self.loo_log_odds_ = _one_column(fit.loo_log_odds)
        self.association_ = fit.association
        self._set_fit(fit)

    def _set_fit(self, fit: RowFit | ClosedFormFit) -> None:
        """Set the attributes of any fit."""
        self.noise_ = fit.noise
        self.targets_ = fit.targets
        self.reg_ = fit.reg
        self.coef_ = fit.coef
        self.intercept_ = fit.intercept
        self.n_effective_ = fit.n_effective
        self.expected_accuracy_ = fit.expected.value
        self.expected_accuracy_std_ = fit.expected.error
        self.__dict__.pop("expected_accuracy_interval_", None)
        if fit.expected.interval is not None:
            self.expected_accuracy_interval_ = fit.expected.interval
        self._decision = fit.decision

    def _partition(self, rows: PartitionedRows) -> None:
        """Turn attributes with a value for each sample into Dask arrays, partitioned as X."""
        names = (*_PER_SAMPLE, "targets_") if self._options.refines else _PER_SAMPLE
        for name in names:
            setattr(self, name, rows.partitioned(getattr(self, name)))

    def _alone(self) -> Self:
        """Return a classifier with the same predictions, and no attribute of the samples."""
        alone = type(self)()
        alone.__dict__.update(
            {name: value for name, value in vars(self).items() if name in _PREDICTING}
        )
        return alone

    def _values(self, X: ArrayLike, method: str) -> Array:
        check_is_fitted(self)
        check_reachable(X=X)
        rows = validated(self, X, dtype=precisions(X), reset=False)
        check_same_device(self.coef_, rows, f"{type(self).__name__}.{method}")
        with reraise_out_of_memory(rows):
            if self.features_ is not None:
                rows = transformed_rows(self.features_, rows)
            return product(rows, self.coef_.T) + self.intercept_

    def _check_votes(self, votes: Votes, X: Rows) -> None:
        if len(votes) != X.shape[0]:
            raise ValueError(
                f"The votes are on {len(votes)} rows but X has {X.shape[0]}: give n_rows= if the "
                "last rows have no vote."
            )
        if not self._options.refines or self.reg == "theory":
            raise ValueError("Votes need targets='refined', and reg='loo' or a number: use these.")

    def _check_foreign(self, X: Rows, y: object) -> None:
        if is_foreign(X) and not self._options.is_squared:
            raise ValueError(
                f"loss={self.loss!r} needs NumPy, but X is a {place(X)}: give X as a NumPy array, "
                "or use loss='squared'."
            )
        if is_foreign(X) and isinstance(y, Votes):
            raise ValueError(
                f"Votes need NumPy, but X is a {place(X)}: give X as a NumPy array, or give labels."
            )

    def _training_set(
        self, X: ArrayLike, y: ArrayLike | Votes, sample_weight: ArrayLike | None
    ) -> TrainingSet:
        """Validate and encode samples, labels and weights."""
        check_reachable(X=X, y=y, sample_weight=sample_weight)
        y_trusted = getattr(self.noise, "y_trusted", None)
        check_aligned(X=X, y=y, sample_weight=sample_weight, y_trusted=y_trusted)
        if isinstance(y, Votes):
            samples = validated(self, X, dtype=precisions(X), ensure_min_samples=2)
            labels = y
            self._check_votes(y, samples)
            missing = None
        else:
            present, missing = split_missing(in_memory(y))
            samples, labels = validated(self, X, present, dtype=precisions(X), ensure_min_samples=2)
        self._check_foreign(samples, y)
        labels = to_device_of(samples, labels)
        weights = checked_weights(in_memory(sample_weight), samples)
        if missing is not None:
            weights = array_namespace(weights).where(like(missing, weights), 0.0, weights)
        if isinstance(labels, Votes) and labels.abstentions:
            # Rows on which all rules abstain differ from the others: no target would be neutral.
            weights = np.where(labels.voted, weights, 0.0)
        if not bool(array_namespace(weights).any(weights > 0)):
            raise ValueError(
                "sample_weight is 0 for every labelled row: give at least one non-zero weight."
            )
        weights = relative_weights(weights)
        rows = DistinctRows.of(samples, weights)
        member_labels = rows.pick_members(labels)
        all_rows = not rows.zero_weight.shape[0]
        if isinstance(member_labels, Votes):
            votes = member_labels
            classes, _ = encode(votes.classes[votes.label], "LPClassifier", all_rows=all_rows)
            codes = np.arange(len(rows.members))
        else:
            votes = None
            classes, codes = encode(member_labels, "LPClassifier", all_rows=all_rows)
            codes = like(codes, rows.weights)
        self._check_n_classes(len(classes))
        _check_rows(rows)
        return TrainingSet(samples, labels, weights, classes, rows, codes, votes)

    def _check_n_classes(self, n_classes: int) -> None:
        binary = self._options.for_two_classes
        if n_classes > 2 and binary:
            raise ValueError(
                f"Only binary classification is supported by {' and '.join(binary)} as given, but "
                f"y has {n_classes} classes: give values for all classes, or the name of a loss."
            )


def _check_rows(rows: DistinctRows) -> None:
    if rows.weights.shape[0] < 2:
        raise ValueError(
            "All rows have the same features, so the classes cannot be separated: pass rows with "
            "different features."
        )
    check_squares(rows.largest, int(np.prod(rows.X.shape)))


def _without(missing: NDArray[np.bool_], sample_weight: ArrayLike | None) -> ArrayLike:
    """Return sample weights that are 0 where the label is missing."""
    weights = np.ones(len(missing)) if sample_weight is None else np.asarray(sample_weight)
    return weights if weights.shape != missing.shape else np.where(missing, 0.0, weights)


def _one_column(values: Array) -> Array:
    """Return the single column of two classes as a vector, as scikit-learn does."""
    return values[:, 0] if values.shape[1] == 1 else values
