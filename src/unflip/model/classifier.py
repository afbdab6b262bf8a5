"""LPClassifier: the labels-perturbed ridge classifier as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Literal, Self

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from unflip._utils.arrays import as_numpy, is_foreign, like, place, taken
from unflip._utils.namespaces import (
    beside,
    check_reachable,
    check_together,
    checked_weights,
    precisions,
    reraise_out_of_memory,
)
from unflip._utils.typing import Array, Rows
from unflip._utils.validation import check_squares, check_unmasked, reading_rows
from unflip._utils.warnings import warn_caller
from unflip.data.centred import product
from unflip.data.duplicates import DistinctRows, relative_weights
from unflip.data.engines.engine import is_dask
from unflip.data.lazy import (
    PartitionedRows,
    in_memory,
    opened,
    row_by_row,
    unchanged_on_error,
    validated,
)
from unflip.data.training_set import TrainingSet
from unflip.estimation.automatic import Automatic
from unflip.estimation.noise_estimator import NoiseEstimator
from unflip.labels.annotators import Annotators
from unflip.labels.classes import encode
from unflip.labels.noise import NoiseModel
from unflip.labels.votes import Votes
from unflip.losses import Loss
from unflip.model.fit_moments import ClosedFormFit, fit_moments
from unflip.model.fit_rows import RowFit, fit_rows, warn_of_one_sided_targets
from unflip.model.options import Options
from unflip.ridge.moments import Moments, with_chunk

_NUMBERS = "biuf"  # kinds of labels that any namespace holds
_PREDICTING = (
    "classes_",
    "coef_",
    "intercept_",
    "_decision",
    "n_features_in_",
    "feature_names_in_",
)
_OF_ROWS = ("loo_decision_", "label_posterior_", "loo_log_odds_")
_NOT_FROM_SUMS = (*_OF_ROWS, "association_")


def _fits_from_moments(classifier: LPClassifier) -> bool:
    reason = classifier._options.why_not_from_moments()
    if reason is not None:
        raise AttributeError(f"partial_fit keeps sums over rows alone: {reason}")
    return True


class LPClassifier(ClassifierMixin, BaseEstimator):
    """Labels-Perturbed Classifier: a linear fit to targets that account for flipped labels.

    Minimises (1/n)Σ wᵢℓ(b + βᵀxᵢ; tᵢ) + γ‖β‖², by default with ℓ(s; t) = (s − t)² and a target tᵢ
    of each row's own, then reads the true class off the score. Of k > 2 classes there are k scores,
    or k − 1 contrasts of them.

    Parameters
    ----------
    noise : "estimate", NoiseModel, array-like of shape (k, k), NoiseEstimator, or None
        How labels were flipped: a noise model, or its transition matrix (row = true class). Its
        classes are those of ``classes_``, in sorted order: the positive class of
        `NoiseModel.binary` is the later label. Where it is not known, an estimator of
        `unflip.estimation`, such as ``TrustedSubset(y_trusted)`` where some rows have true labels;
        refined targets then are the true labels of these rows. "estimate" does what the data allow
        (`unflip.estimation.Automatic`) and warns of what it had to assume. None: the labels are
        right.
    priors : array-like of shape (k,), optional
        ClassProportions of the true classes, where known; for estimated rates they are nearly as good as
        knowing the rates. Otherwise those of the noise model, or else inferred from the observed
        proportions.
    targets : {"refined", "optimized", "unbiased", "naive"}, (t_neg, t_pos) or array-like of shape (k, k)
        What is fitted. "refined" gives each row a target of its own, from its label and its
        leave-one-out score, and repeats (see `unflip.model.refinement.refine`). The others, the
        paper's, give one value to each observed class, or a row of k. "optimized" is the posterior
        mean E[y | ỹ]: the most accurate of these for two classes without an intercept; with one,
        they all give the same direction and differ in the threshold alone. So do, for more classes,
        all invertible tables with an intercept, the squared loss and the gaussian read-out.
    readout : {"gaussian", "plain"}
        "gaussian" corrects the thresholds for the noise and the priors: decision values are
        log-odds of the true label. "plain" takes the sign of the fitted score, or the largest of k,
        as the paper does.
    reg : float, "loo" or "theory"
        Ridge penalty γ ≥ 0 (scikit-learn's ``Ridge(alpha=n * reg)``, ``LogisticRegression(C=1 / (2
        * n * reg))``). "loo" chooses it by leave-one-out scores: by their correlation with the
        targets, or, where the plain score with an intercept decides, by their loss. Both are right
        under label noise (see `unflip.ridge.selection`). "theory" takes the penalty that
        `unflip.theory` predicts to be best (at most the largest that "loo" would try), for rows
        that look like classes in isotropic noise; others are refused.
    loss : {"squared", "logistic"} or Loss
        Loss that is minimised. Each is perturbed by the targets in the same way (see
        `unflip.losses`): the logistic one is softplus(s) − τs with τ = (1 + t)/2, and its softmax
        counterpart for more than two classes. A `Loss` of your own is for two classes.
    fit_intercept : bool
        False is the paper's model: scores have no constant, so the origin must be a point around
        which the classes lie evenly, for two of them the midpoint of their means. That knowledge is
        worth a lot (see the README), and wrong where it does not hold.
    deployment_priors : array-like of shape (k,), "balanced" or None
        Class proportions of the rows to predict, where they differ from those fitted to; "balanced"
        weighs the classes alike, for balanced accuracy. Gaussian read-out only.
    costs : array-like of shape (k, k), optional
        ``costs[a, b]`` of predicting class b where a is true; predictions then cost least. Gaussian
        read-out only. The decision value of two classes includes the shift that costs make, so that
        its sign is the prediction. Those of more classes do not: `predict` may then differ from the
        largest.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        Labels, sorted; the first of two is the negative class. NumPy's where the labels were, else
        where X is, as all other arrays are.
    coef_ : ndarray of shape (1, p) or (k, p)
        Weights of the decision function.
    intercept_ : ndarray of shape (1,) or (k,)
        Its constants.
    noise_ : NoiseModel
        The noise model with priors.
    noise_std_ : ndarray of shape (k, k)
        Standard error of each entry of ``noise_.transition``; 0 where the noise model was given.
    noise_estimator_ : NoiseEstimator or None
        What estimated them, with its evidence; None where the noise model was given.
    annotators_ : Annotators or None
        How each annotator votes (``.names``, ``.transitions`` and their standard errors ``.transitions_std``), where
        there were votes; ``noise_`` then is that of a single vote.
    targets_ : ndarray of shape (2,) or (n,), for more than two classes (k, k) or (n, k)
        (t_neg, t_pos) or the table; or the refined target of each row, of k classes its posterior.
        Rows of no weight have no part in the fit: their refined target is 0, of k classes 1/k for
        each.
    reg_ : float
        The penalty γ used.
    loo_decision_ : ndarray of shape (n,) or (n, k)
        Leave-one-out decision values of the training rows: what the fit to all other rows, at the
        same penalty nγ, says of each. A row is left out with its whole weight. With the squared
        loss and the plain read-out they equal refits of the ridge regression on ``targets_``,
        intercept included; for other losses see docs/losses.md. The gaussian read-out is that of
        the whole fit, applied to scores without the traces that the row's own label leaves on the
        others' mean (see docs/leave_one_out.md) and on their refined targets.
    label_posterior_ : ndarray of shape (n, k)
        P(true class | row, observed label) of the training rows. Honest: the row's own label has no
        part in its score, to first order (see `unflip.model.refinement.refine`). It tells which
        labels are likely wrong; 0 or 1 for trusted rows.
    loo_log_odds_ : ndarray of shape (n,) or (n, k − 1)
        Log-odds of the training rows for each class but the first, against it, by what the other
        rows say: neither a row's own label nor its copies have a part in them. With the labels they
        make ``label_posterior_``.
    n_effective_ : float
        How many independent rows of equal weight the training rows stand for.
    association_ : float
        Standard errors by which leave-one-out scores agree with the observed labels beyond chance.
        Below 4 it is not sure that the features predict the labels: ``label_posterior_`` and
        ``expected_accuracy_`` are then drawn towards the class priors, and below 1.5 rest on these
        alone. So do predictions, unless refined scores agree so much more with the labels.
    expected_accuracy_ : float
        Accuracy to expect on new rows with clean labels, known without any.
    expected_accuracy_std_ : float
        Its standard error, from the sample, the read-out and the noise rates.
    n_features_in_ : int
        Number of features.
    moments_ : Moments
        Sums over the rows, after `partial_fit` and `from_moments` alone.

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
    expected_accuracy_std_: float
    n_features_in_: int
    moments_: Moments

    def __init__(
        self,
        noise: NoiseModel | NoiseEstimator | ArrayLike | Literal["estimate"] | None = "estimate",
        *,
        priors: ArrayLike | None = None,
        targets: str | ArrayLike = "refined",
        readout: Literal["gaussian", "plain"] = "gaussian",
        reg: float | Literal["loo", "theory"] = "loo",
        loss: Literal["squared", "logistic"] | Loss = "squared",
        fit_intercept: bool = True,
        deployment_priors: ArrayLike | Literal["balanced"] | None = None,
        costs: ArrayLike | None = None,
    ) -> None:
        self.noise = noise
        self.priors = priors
        self.targets = targets
        self.readout = readout
        self.reg = reg
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.deployment_priors = deployment_priors
        self.costs = costs

    def fit(
        self, X: ArrayLike, y: ArrayLike | Votes, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit to rows X with observed labels y, or with several votes on some and none on others.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Rows. Sparse ones are not made dense; of very many, leave-one-out is approximate (see
            docs/sparse.md). Whatever else has a shape, a dtype and slices, such as a memory map or
            an HDF5 data set, is read in blocks (see docs/out_of_core.md). Dask arrays and
            DataFrames stay with their workers; attributes that describe single rows are Dask arrays
            then, and so is what is predicted of Dask collections (see docs/dask.md). With
            ``sklearn.set_config(array_api_dispatch=True)`` arrays of other namespaces, such as
            torch tensors on a GPU, are fitted to where they are, and results are there, too (see
            docs/gpu.md).
        y : array-like of shape (n,) or Votes
            Observed labels, or votes (`unflip.Votes`). A given `noise` is then that of each vote,
            and "estimate" tells the annotators apart. Labels and weights may be anywhere: they are put
            where X is.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows; a row of weight 2 counts as two copies, one of weight 0 as absent.
        """
        self._options.check()
        with (
            unchanged_on_error(self),
            reraise_out_of_memory(X),
        ):  # rows may turn out to be unreadable half-way
            data = self._prepared(X, y, sample_weight)
            classes = like(data.classes, data.y) if is_foreign(data.y) else data.classes
            default = Automatic(priors=self.priors)
            self._keep(fit_rows(data, self._options, default), classes)
            if is_dask(X):
                self._partition(data.X)
        return self

    @classmethod
    def from_moments(
        cls,
        moments: Moments,
        noise: NoiseModel | ArrayLike | Literal["estimate"] | None = "estimate",
        *,
        targets: str | ArrayLike = "optimized",
        **params: Any,
    ) -> Self:
        """Fit from sums over rows alone (see docs/streaming.md).

        Attributes that describe single rows, such as ``loo_decision_``, are not there.

        Parameters
        ----------
        moments : Moments
            Sums over the rows, such as `Moments.from_chunks` makes.
        noise : NoiseModel, array-like of shape (k, k) or None
            How labels were flipped. It has to be given: estimates need rows.
        targets : {"optimized", "unbiased", "naive"}, (t_neg, t_pos) or array-like of shape (k, k)
            What is fitted.
        **params
            Other parameters of the class; the loss is the squared one, and ``reg`` a number or
            "loo".
        """
        if not isinstance(moments, Moments):
            raise TypeError(
                f"moments is a {type(moments).__name__}: give Moments, such as Moments.from_chunks "
                "makes."
            )
        found = cls(noise, targets=targets, **params)
        reason = found._options.why_not_from_moments()
        if reason is not None:
            raise ValueError(f"Moments are not enough: {reason}")
        return found._fit_moments(moments)

    @available_if(_fits_from_moments)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows to those of earlier calls, and fit to all of them.

        It needs nothing but the sums over earlier rows, ``moments_``, so it exists only where these
        are enough: see `from_moments`. What cannot be added leaves everything as it was. After
        `fit`, which keeps no sums, it starts anew.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            New rows.
        y : array-like of shape (n,)
            Their observed labels.
        classes : array-like of shape (k,), optional
            All labels that there are; needed in the first call.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows.
        """
        self._options.check()
        known = getattr(self, "moments_", None)
        if known is None and classes is None and hasattr(self, "classes_"):
            classes = self.classes_
            warn_caller("partial_fit starts anew: the rows of fit are forgotten.")
        checked = clone(self) if known is None else self  # a first call that fails leaves no trace
        check_unmasked(y=y)
        with reading_rows(X):
            rows = validate_data(
                checked, X, accept_sparse="csr", dtype=precisions(X), reset=known is None
            )
        names = getattr(checked, "feature_names_in_", None)
        chunk = (rows, column_or_1d(y), sample_weight)
        return self._fit_moments(with_chunk(known, chunk, classes=classes, feature_names=names))

    @row_by_row
    def decision_function(self, X: ArrayLike) -> Array:
        """Decision value of each row: one, positive for the second class, or for more than two classes one for each.

        The gaussian read-out's are log-odds of the true class (about their mean over more than two
        classes), the plain one's are fitted scores.

        Returns
        -------
        array of shape (n,) or (n, k)
        """
        return _one_column(self._values(X, "decision_function"))

    @row_by_row
    def predict(self, X: ArrayLike) -> Array:
        """Predict the TRUE class of each row."""
        values = self._values(X, "predict")  # first: there is no decision before a fit
        codes = self._decision.classes(values)
        if is_foreign(codes) and as_numpy(self.classes_).dtype.kind not in _NUMBERS:
            codes = as_numpy(codes)  # labels such as strings exist on the host alone
        return taken(like(as_numpy(self.classes_), codes), codes)

    @row_by_row
    def predict_proba(self, X: ArrayLike) -> Array:
        """Probability of each TRUE class.

        Calibrated on leave-one-out scores under the noise model, for rows whose classes have the
        proportions of ``deployment_priors``. With the plain read-out they keep to its threshold:
        the likeliest class is the predicted one.
        """
        values = self._values(X, "predict_proba")
        return self._decision.probabilities(values)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy of the predictions, by labels that are right."""
        return float(super().score(opened(X), in_memory(y), in_memory(sample_weight)))

    def __sklearn_tags__(self) -> Tags:
        """Options that are made for two classes refuse more."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = not self._options.for_two_classes
        tags.input_tags.sparse = True
        tags.array_api_support = isinstance(self.loss, str) and self.loss == "squared"
        return tags

    def _fit_moments(self, moments: Moments) -> Self:
        """Fit from sums and keep them, or raise and stay as before."""
        self._options.check()
        found = fit_moments(moments, self._options)
        warn_of_one_sided_targets(found.targets, self._options)
        for name in (*_NOT_FROM_SUMS, "feature_names_in_"):
            self.__dict__.pop(name, None)
        self.moments_, self.classes_, self.n_features_in_ = (
            moments,
            moments.classes,
            moments.n_features,
        )
        if moments.feature_names is not None:
            self.feature_names_in_ = moments.feature_names.astype(object)
        self.noise_, self.noise_std_, self.noise_estimator_ = (
            found.noise,
            np.zeros_like(found.noise.transition),
            None,
        )
        self.annotators_ = None
        self._keep_fit(found)
        return self

    @property
    def _options(self) -> Options:
        return Options(**{field.name: getattr(self, field.name) for field in fields(Options)})

    def _keep(self, found: RowFit, classes: np.ndarray[Any, Any]) -> None:
        """Keep what a fit to rows found."""
        self.__dict__.pop("moments_", None)
        self.classes_, self.annotators_ = classes, found.annotators
        self.noise_, self.noise_std_, self.noise_estimator_ = (
            found.noise,
            found.noise_std,
            found.noise_estimator,
        )
        self.loo_decision_, self.label_posterior_ = (
            _one_column(found.loo_decision),
            found.label_posterior,
        )
        self.loo_log_odds_ = _one_column(found.loo_log_odds)
        self.association_ = found.association
        self._keep_fit(found)

    def _keep_fit(self, found: RowFit | ClosedFormFit) -> None:
        self.targets_, self.reg_, self._decision = found.targets, found.reg, found.decision
        self.coef_, self.intercept_, self.n_effective_ = (
            found.coef,
            found.intercept,
            found.n_effective,
        )
        self.expected_accuracy_, self.expected_accuracy_std_ = (
            found.expected.value,
            found.expected.error,
        )

    def _partition(self, rows: PartitionedRows) -> None:
        """Keep what describes single rows as Dask arrays, as the rows were given."""
        for name in (*_OF_ROWS, *(["targets_"] if self._options.refines else [])):
            setattr(self, name, rows.partitioned(getattr(self, name)))

    def _alone(self) -> Self:
        """Return what predicts alike, without anything that is as long as the rows."""
        alone = type(self)()
        alone.__dict__.update(
            {name: value for name, value in vars(self).items() if name in _PREDICTING}
        )
        return alone

    def _values(self, X: ArrayLike, method: str) -> Array:
        check_is_fitted(self)
        check_reachable(X=X)
        rows = validated(self, X, dtype=precisions(X), reset=False)
        check_together(self.coef_, rows, f"{type(self).__name__}.{method}")
        with reraise_out_of_memory(rows):
            return product(rows, self.coef_.T) + self.intercept_

    def _check_votes(self, votes: Votes, X: Rows) -> None:
        if len(votes) != X.shape[0]:
            raise ValueError(
                f"The votes are on {len(votes)} rows but X has {X.shape[0]}: give n_rows= where "
                "the last have no vote."
            )
        if not self._options.refines or self.reg == "theory":
            raise ValueError("Votes need targets='refined', and reg='loo' or a number: use these.")

    def _check_foreign(self, X: Rows, y: object) -> None:
        if is_foreign(X) and not self._options.is_squared:
            raise ValueError(
                f"loss={self.loss!r} is fitted by NumPy, but X is a {place(X)}: give a NumPy copy "
                "of X, or loss='squared'."
            )
        if is_foreign(X) and isinstance(y, Votes):
            raise ValueError(
                f"Votes are read by NumPy, but X is a {place(X)}: give a NumPy copy of X, or "
                "labels."
            )

    def _prepared(
        self, X: ArrayLike, y: ArrayLike | Votes, sample_weight: ArrayLike | None
    ) -> TrainingSet:
        check_reachable(X=X, y=y, sample_weight=sample_weight)
        if isinstance(y, Votes):
            given, labels = validated(self, X, dtype=precisions(X), ensure_min_samples=2), y
            self._check_votes(y, given)
        else:
            given, labels = validated(self, X, y, dtype=precisions(X), ensure_min_samples=2)
        self._check_foreign(given, y)
        labels = beside(labels, given)
        weights = checked_weights(in_memory(sample_weight), given)
        if not bool(array_namespace(weights).any(weights > 0)):
            raise ValueError("sample_weight is 0 for every row: give at least one non-zero weight.")
        weights = relative_weights(weights)
        rows = DistinctRows.of(given, weights)
        of_members = rows.pick_members(labels)
        votes = of_members if isinstance(of_members, Votes) else None
        of_votes = None if votes is None else votes.classes[votes.label]
        classes, codes = encode(of_members if of_votes is None else of_votes, "LPClassifier")
        binary = self._options.for_two_classes
        if len(classes) > 2 and binary:
            raise ValueError(
                f"Only binary classification is supported by {' and '.join(binary)} as given, but "
                f"y has {len(classes)} classes: give as many proportions, rows and columns, or the "
                "name of a loss."
            )
        _check_rows(rows)
        codes = like(codes, rows.weights) if votes is None else np.arange(len(rows.members))
        return TrainingSet(given, labels, weights, classes, rows, codes, votes)


def _check_rows(distinct: DistinctRows) -> None:
    if distinct.weights.shape[0] < 2:
        raise ValueError(
            "All rows of X are alike, so no feature tells the classes apart: give rows that vary."
        )
    check_squares(distinct.largest, int(np.prod(distinct.X.shape)))


def _one_column(values: Array) -> Array:
    """Return the one value that two classes have as a vector, as scikit-learn does."""
    return values[:, 0] if values.shape[1] == 1 else values
