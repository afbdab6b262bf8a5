"""LPClassifier: the labels-perturbed ridge classifier as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from unflip import losses
from unflip import targets as target_values
from unflip._typing import FloatArray, IntArray, Rows
from unflip._warning import warn_caller
from unflip.centred import product
from unflip.closed_form import fit_moments, refusal
from unflip.decisions import Decision, Rule
from unflip.decoder import Reading, common_slope, symmetric_slope
from unflip.estimation.base import NoiseEstimator
from unflip.estimation.evidence import mixture_evidence
from unflip.estimation.penalty import predicted_reg
from unflip.estimation.source import Labelled, NoiseSource, centred, noise_source
from unflip.expected import ScoredRows, expected_accuracy, other_noise
from unflip.labels import encode, true_codes
from unflip.lazy import unchanged_on_error, validated
from unflip.losses import Loss
from unflip.moments import Moments, with_chunk
from unflip.noise import Channel, NoiseModel
from unflip.refine import known_rows, refine
from unflip.rounds import Round, contrasts, fit_table
from unflip.rows import DistinctRows, relative_weights
from unflip.selection import candidate_regs, coarse_regs, given_reg
from unflip.solvers import ConvexFits
from unflip.spectrum import Spectrum, decompose
from unflip.votes import Votes
from unflip.workers import Workers

_PRECISIONS = [np.float64, np.float32]  # of rows that are taken as they are; others become the first
_ROWS_PER_SLOPE = 2.0  # fewer make chance look like evidence
_OF_ROWS = ("loo_decision_", "label_posterior_", "label_free_log_odds_")  # attributes that a fit from sums has not
_ONE_SIDED = 0.02  # share of scores on the rarer side of 0 that makes a plain read-out pointless


def _fits_from_sums(classifier: LPClassifier) -> bool:
    return refusal(classifier.get_params(deep=False)) is None


class LPClassifier(ClassifierMixin, BaseEstimator):
    """Labels-Perturbed Classifier: a linear fit to targets that account for flipped labels.

    Minimises (1/n)Σ wᵢℓ(b + βᵀxᵢ; tᵢ) + γ‖β‖², by default with ℓ(s; t) = (s − t)² and a target tᵢ of each row's own,
    then reads the true class off the score. Of k > 2 classes there are k scores, or k − 1 contrasts of them.

    Parameters
    ----------
    noise : "estimate", NoiseModel, array-like of shape (k, k), NoiseEstimator, or None
        How labels were flipped: a noise model, or its transition matrix (row = true class). Its classes are those of
        ``classes_``, in sorted order: the positive class of `NoiseModel.binary` is the later label. Where it is not
        known, an estimator of `unflip.estimation`, such as ``TrustedSubset(y_trusted)`` where some rows have true
        labels; refined targets then are the true labels of these rows. "estimate" does what the data allow
        (`unflip.estimation.Automatic`) and warns of what it had to assume. None: the labels are right.
    priors : array-like of shape (k,), optional
        Proportions of the true classes, where known; for estimated rates they are nearly as good as knowing the rates.
        Otherwise those of the noise model, or else inferred from the observed proportions.
    targets : {"refined", "optimized", "unbiased", "naive"}, (t_neg, t_pos) or array-like of shape (k, k)
        What is fitted. "refined" gives each row a target of its own, from its label and its leave-one-out score, and
        repeats (see `unflip.refine`). The others, the paper's, give one value to each observed class, or a row of k.
        "optimized" is the posterior mean E[y | ỹ]: the most accurate of these for two classes without an intercept;
        with one, they all give the same direction and differ in the threshold alone. So do, for more classes, all
        invertible tables with an intercept, the squared loss and the gaussian read-out.
    readout : {"gaussian", "plain"}
        "gaussian" corrects the thresholds for the noise and the priors: decision values are log-odds of the true label.
        "plain" takes the sign of the fitted score, or the largest of k, as the paper does.
    reg : float, "loo" or "theory"
        Ridge penalty γ ≥ 0 (scikit-learn's ``Ridge(alpha=n * reg)``, ``LogisticRegression(C=1 / (2 * n * reg))``).
        "loo" chooses it by leave-one-out scores: by their correlation with the targets, or, where the plain score with
        an intercept decides, by their loss. Both are right under label noise (see `unflip.selection`). "theory" takes
        the penalty that `unflip.theory` predicts to be best (at most the largest that "loo" would try), for rows that
        look like classes in isotropic noise; others are refused.
    loss : {"squared", "logistic"} or Loss
        Loss that is minimised. Each is perturbed by the targets in the same way (see `unflip.losses`): the logistic
        one is softplus(s) − τs with τ = (1 + t)/2, and its softmax counterpart for more than two classes. A `Loss` of
        your own is for two classes.
    fit_intercept : bool
        False is the paper's model: scores have no constant, so the origin must be a point around which the classes lie
        evenly, for two of them the midpoint of their means. That knowledge is worth a lot (see the README), and wrong
        where it does not hold.
    deployment_priors : array-like of shape (k,), "balanced" or None
        Class proportions of the rows to predict, where they differ from those fitted to; "balanced" weighs the classes
        alike, for balanced accuracy. Gaussian read-out only.
    costs : array-like of shape (k, k), optional
        ``costs[a, b]`` of predicting class b where a is true; predictions then cost least. Gaussian read-out only. The
        decision value of two classes includes the shift that costs make, so that its sign is the prediction. Those of
        more classes do not: `predict` may then differ from the largest.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        Labels, sorted; the first of two is the negative class.
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
    workers_ : Workers or None
        How each worker votes (``.names``, ``.tables``), where there were votes; ``noise_`` then is that of a single
        vote.
    targets_ : ndarray of shape (2,) or (n,), for more than two classes (k, k) or (n, k)
        (t_neg, t_pos) or the table; or the refined target of each row, of k classes its posterior. Rows of no weight
        have no part in the fit: their refined target is 0, of k classes 1/k for each.
    reg_ : float
        The penalty γ used.
    loo_decision_ : ndarray of shape (n,) or (n, k)
        Leave-one-out decision values of the training rows: what the fit to all other rows, at the same penalty nγ, says
        of each. A row is left out with its whole weight. With the squared loss and the plain read-out they equal refits
        of the ridge regression on ``targets_``, intercept included; for other losses see docs/losses.md. The gaussian
        read-out is that of the whole fit, applied to scores without the traces that the row's own label leaves on the
        others' mean (see docs/leave_one_out.md) and on their refined targets.
    label_posterior_ : ndarray of shape (n, k)
        P(true class | row, observed label) of the training rows. Honest: the row's own label has no part in its score,
        to first order (see `unflip.refine`). It tells which labels are likely wrong; 0 or 1 for trusted rows.
    label_free_log_odds_ : ndarray of shape (n,) or (n, k − 1)
        Log-odds of the training rows for each class but the first, against it, by what the other rows say: neither a
        row's own label nor its copies have a part in them. With the labels they make ``label_posterior_``.
    n_effective_ : float
        How many independent rows of equal weight the training rows stand for.
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
    coef_: FloatArray
    intercept_: FloatArray
    noise_: NoiseModel
    noise_std_: FloatArray
    noise_estimator_: NoiseEstimator | None
    workers_: Workers | None
    targets_: FloatArray
    reg_: float
    loo_decision_: FloatArray
    label_posterior_: FloatArray
    label_free_log_odds_: FloatArray
    n_effective_: float
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

    def fit(self, X: ArrayLike, y: ArrayLike | Votes, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows X with observed labels y, or with several votes on some and none on others.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Rows. Sparse ones are not made dense; of very many, leave-one-out is approximate (see docs/sparse.md).
            Whatever else has a shape, a dtype and slices, such as a memory map or an HDF5 data set, is read in blocks
            (see docs/out_of_core.md).
        y : array-like of shape (n,) or Votes
            Observed labels, or votes (`unflip.Votes`). A given `noise` is then that of each vote, and "estimate" tells
            the workers apart.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows; a row of weight 2 counts as two copies, one of weight 0 as absent.
        """
        self._check_options()
        with unchanged_on_error(self):  # rows may turn out to be unreadable half-way
            self._fit_rows(self._prepared(X, y, sample_weight))
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
            Other parameters of the class; the loss is the squared one, and ``reg`` a number or "loo".
        """
        if not isinstance(moments, Moments):
            raise TypeError(f"moments is a {type(moments).__name__}: give Moments, such as Moments.from_chunks makes.")
        found = cls(noise, targets=targets, **params)
        reason = refusal(found.get_params(deep=False))
        if reason is not None:
            raise ValueError(f"Sums are not enough: {reason}")
        return found._fit_moments(moments)

    @available_if(_fits_from_sums)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows to those of earlier calls, and fit to all of them.

        It needs nothing but the sums over earlier rows, ``moments_``, so it exists only where these are enough: see
        `from_moments`. What cannot be added leaves everything as it was. After `fit`, which keeps no sums, it starts
        anew.

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
        self._check_options()
        known = getattr(self, "moments_", None)
        if known is None and classes is None and hasattr(self, "classes_"):
            classes = self.classes_
            warn_caller("partial_fit starts anew: the rows of fit are forgotten.")
        checked = clone(self) if known is None else self  # a first call that fails leaves no trace
        rows = validate_data(checked, X, accept_sparse="csr", dtype=_PRECISIONS, reset=known is None)
        names = getattr(checked, "feature_names_in_", None)
        chunk = (rows, column_or_1d(y), sample_weight)
        return self._fit_moments(with_chunk(known, chunk, classes=classes, feature_names=names))

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Decision value of each row: one, positive for the second class, or for more than two classes one for each.

        The gaussian read-out's are log-odds of the true class (about their mean over more than two classes), the plain
        one's are fitted scores.

        Returns
        -------
        ndarray of shape (n,) or (n, k)
        """
        return _one_column(self._values(X))

    def predict(self, X: ArrayLike) -> np.ndarray[Any, Any]:
        """Predict the TRUE class of each row."""
        values = self._values(X)
        return self.classes_[self._decision.classes(values)]

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Probability of each TRUE class.

        Calibrated on leave-one-out scores under the noise model, for rows whose classes have the proportions of
        ``deployment_priors``. With the plain read-out they keep to its threshold: the likeliest class is the
        predicted one.
        """
        values = self._values(X)
        return self._decision.probabilities(values)

    def __sklearn_tags__(self) -> Tags:
        """Options that are made for two classes refuse more."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = not self._for_two_classes
        tags.input_tags.sparse = True
        return tags

    def __getattr__(self, name: str) -> Any:
        if name in _OF_ROWS and "moments_" in self.__dict__:
            raise AttributeError(f"{name} describes single rows, of which a fit from sums knows nothing: use fit.")
        if name == "partial_fit":
            reason = refusal(self.get_params(deep=False))
            raise AttributeError(f"partial_fit keeps nothing but sums over rows, which are not enough: {reason}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _fit_moments(self, moments: Moments) -> Self:
        """Fit from sums and keep them, or raise and stay as before."""
        self._check_options()
        options = self.get_params(deep=False)
        del options["loss"]
        found = fit_moments(moments, **options)
        self._warn_of_one_sided_targets(found.targets)
        for name in (*_OF_ROWS, "feature_names_in_"):
            self.__dict__.pop(name, None)
        self.moments_, self.classes_, self.n_features_in_ = moments, moments.classes, moments.n_features
        if moments.feature_names is not None:
            self.feature_names_in_ = moments.feature_names.astype(object)
        self.noise_, self.noise_std_, self.noise_estimator_ = found.noise, np.zeros_like(found.noise.transition), None
        self.targets_, self.reg_, self._decision = found.targets, found.reg, found.decision
        self.coef_, self.intercept_, self.n_effective_ = found.coef, found.intercept, found.n_effective
        self.expected_accuracy_, self.expected_accuracy_std_ = found.expected.value, found.expected.error
        return self

    def _fit_rows(self, data: Labelled) -> None:
        """Fit, and keep what was found."""
        self.__dict__.pop("moments_", None)
        rows, self.classes_ = data.rows, data.classes
        shares = rows.memberships(data.codes, len(self.classes_)) if data.votes is None else None
        spectrum = decompose(rows.X, rows.spectrum_weights, fit_intercept=self.fit_intercept, shares=shares)
        fits = self._fits(spectrum, len(self.classes_))
        source = noise_source(self.noise, self.priors, data, spectrum)
        self.noise_, self.noise_std_, self.noise_estimator_ = source.noise, source.errors, source.estimator
        found = self._rounds(fits, spectrum, data, source)
        if source.crowd is not None:  # what the scores say of the rows tells more of those who voted on them
            source = source.with_features(found.reading.log_odds)
            found = self._rounds(fits, spectrum, data, source)
        self.noise_, self.noise_std_ = source.noise.with_priors(found.noise.known_priors), source.errors
        self.workers_, self.reg_ = source.workers, found.reg
        self._rule = Rule.of(self.noise_, self.deployment_priors, self.costs)
        self._decision = self._decide_by(found, data)

        means = rows.average(found.targets)
        path = fits.path(means, [self.reg_])
        coef, intercept = path.coef[:, 0, :], path.intercept[0, :]
        self.coef_, self.intercept_ = (coef @ self._decision.slopes).T, self._decision.values(intercept)
        scores = self._fitted(data, coef, intercept)
        self._warn_of_one_sided_scores(scores)
        self._warn_of_few_rows(rows.n_effective)
        self._report(found, data, source, scores.copy())
        left_out = fits.leave_one_out(means, [self.reg_])
        alone = left_out.of_copies(rows.owner, found.targets, rows.member_weights / rows.weights[rows.owner])
        # A read-out fitted to the others would move with their mean target: it needs the scores without that move.
        free = alone.label_free_scores[:, 0, :] - found.leak[rows.owner]
        scores[rows.members] = alone.scores[:, 0, :] if self.readout == "plain" else free
        self.loo_decision_ = _one_column(self._decision.values(scores))

    def _fitted(self, data: Labelled, coef: FloatArray, intercept: FloatArray) -> FloatArray:
        """Return the fitted scores where they are needed: of rows of no weight, or, for the plain read-out, of all."""
        if self.readout == "plain":
            return np.asarray(product(data.X, coef) + intercept)
        scores, absent = np.zeros((len(data.y), coef.shape[1])), np.flatnonzero(data.weights == 0)
        if len(absent):
            scores[absent] = product(data.X[absent], coef) + intercept
        return scores

    def _values(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        rows = validated(self, X, dtype=_PRECISIONS, reset=False)
        return np.asarray(product(rows, self.coef_.T) + self.intercept_)

    def _check_options(self) -> None:
        if self.readout not in ("gaussian", "plain"):
            raise ValueError(f"readout={self.readout!r} is not known: use 'gaussian' or 'plain'.")
        if isinstance(self.targets, str) and self.targets not in ("refined", *target_values.NAMED):
            choices = ", ".join(map(repr, ("refined", *target_values.NAMED)))
            raise ValueError(
                f"targets={self.targets!r} is not known: use {choices}, the values (t_neg, t_pos), or a table."
            )
        losses.resolve(self.loss)
        if isinstance(self.reg, str):
            if self.reg not in ("loo", "theory"):
                raise ValueError(f"reg={self.reg!r} is not known: use 'loo', 'theory' or a number γ ≥ 0.")
        elif isinstance(self.reg, bool) or not isinstance(self.reg, Real) or not 0 <= float(self.reg) < np.inf:
            raise ValueError(f"reg={self.reg!r} must be 'loo', 'theory' or a finite number γ ≥ 0.")
        if self.readout == "plain" and not (self.deployment_priors is None and self.costs is None):
            raise ValueError(
                "deployment_priors and costs move the threshold, which readout='plain' keeps at 0: drop them."
            )
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ValueError(f"fit_intercept={self.fit_intercept!r} must be True or False.")

    def _check_votes(self, votes: Votes, X: Rows) -> None:
        if len(votes) != X.shape[0]:
            raise ValueError(
                f"The votes are on {len(votes)} rows but X has {X.shape[0]}: give n_rows= where the last have no vote."
            )
        if not self._refines or self.reg == "theory":
            raise ValueError("Votes need targets='refined', and reg='loo' or a number: use these.")

    def _warn_of_one_sided_targets(self, targets: FloatArray) -> None:
        if targets.ndim == 1 and self.readout == "plain" and self.fit_intercept and targets.prod() > 0:
            t_neg, t_pos = targets
            warn_caller(
                f"Both targets ({t_neg:.3g}, {t_pos:.3g}) have the same sign, so with an intercept nearly all scores "
                "do: use readout='gaussian', which finds the threshold, or fit_intercept=False at a known origin.",
            )

    def _check_shares(self) -> None:
        """Raise where the softmax loss is given a table whose rows do not sum to 1: only their contrasts matter."""
        squared = losses.resolve(self.loss) is losses.SQUARED
        if not squared and self.targets_.ndim == 2 and not np.allclose(self.targets_.sum(axis=1), 1):
            raise ValueError("loss='logistic' takes targets as shares of the classes: make each row sum to 1.")

    def _warn_of_one_sided_scores(self, scores: FloatArray) -> None:
        if not self._refines or self.readout == "gaussian":
            return
        predicted = self._decision.classes(self._decision.values(scores))
        most = float(np.bincount(predicted).max() / len(predicted))
        if most > 1 - _ONE_SIDED:
            warn_caller(
                f"{most:.0%} of the fitted scores favour one class, so the plain read-out predicts it almost "
                "everywhere: use readout='gaussian', which finds the threshold.",
            )

    @property
    def _for_two_classes(self) -> list[str]:
        """Names of the options that are made for two classes."""
        names = ("noise", "priors", "targets", "deployment_priors", "costs")
        found = [name for name in names if _n_classes_of(getattr(self, name)) == 2]
        return found + ["loss"] * isinstance(self.loss, Loss)

    @property
    def _refines(self) -> bool:
        return isinstance(self.targets, str) and self.targets == "refined"

    def _prepared(self, X: ArrayLike, y: ArrayLike | Votes, sample_weight: ArrayLike | None) -> Labelled:
        if isinstance(y, Votes):
            given, labels = validated(self, X, dtype=_PRECISIONS, ensure_min_samples=2), y
            self._check_votes(y, given)
        else:
            given, labels = validated(self, X, y, dtype=_PRECISIONS, ensure_min_samples=2)
        weights = _check_sample_weight(sample_weight, given, dtype=np.float64, ensure_non_negative=True)
        if not weights.any():
            raise ValueError("sample_weight is 0 for every row: give at least one non-zero weight.")
        weights = relative_weights(weights)
        rows = DistinctRows.of(given, weights)
        votes = labels[rows.members] if isinstance(labels, Votes) else None
        of_votes = None if votes is None else votes.classes[votes.label]
        classes, codes = encode(labels[rows.members] if of_votes is None else of_votes, "LPClassifier")
        if len(classes) > 2 and self._for_two_classes:
            raise ValueError(
                f"Only binary classification is supported by {' and '.join(self._for_two_classes)} as given, but y has "
                f"{len(classes)} classes: give as many proportions, rows and columns, or the name of a loss."
            )
        _check_rows(rows)
        if votes is not None:
            codes = np.arange(len(rows.members))
        return Labelled(given, labels, weights, classes, rows, codes, votes)

    def _fits(self, spectrum: Spectrum, n_classes: int) -> Spectrum | ConvexFits:
        """Return who fits the loss: the spectrum itself for the squared one."""
        loss = losses.resolve(self.loss)
        if loss is losses.SQUARED:
            return spectrum
        return ConvexFits(spectrum, loss if n_classes == 2 else losses.SoftmaxLoss)

    def _rounds(self, fits: Spectrum | ConvexFits, spectrum: Spectrum, data: Labelled, source: NoiseSource) -> Round:
        """Fit the targets, refining them if asked to, at the penalty given or chosen."""
        rows, codes, noise = data.rows, data.codes, source.noise
        infer_priors = source.counted and noise.n_classes > 2
        regs, search = self._candidates(fits, spectrum, data), isinstance(self.reg, str) and self.reg == "loo"
        scale_free = self.readout == "gaussian" or not self.fit_intercept
        if self._refines:
            found = refine(
                fits,
                rows,
                codes,
                source.channel(data),
                regs,
                search=search,
                scale_free=scale_free,
                truth=self._truth(data),
                infer_priors=infer_priors,
            )
            self.targets_ = np.zeros((len(data.y), found.targets.shape[1]))
            self.targets_[rows.members] = found.targets
            self.targets_ = _class_targets(self.targets_, noise.n_classes)
            return replace(found, reg=found.reg if search else float(regs[0]))  # free of rounding
        self.targets_ = target_values.resolve_classes(self.targets, noise)
        self._warn_of_one_sided_targets(self.targets_)
        self._check_shares()
        table = self.targets_.reshape(noise.n_classes, -1)
        if self._in_contrasts:
            table = table @ contrasts(noise.n_classes)
        options = {"scale_free": scale_free, "infer_priors": infer_priors}
        return fit_table(fits, rows, codes, noise, regs, table=table, **options)

    @property
    def _in_contrasts(self) -> bool:
        """Whether k − 1 scores are fitted to k > 2 classes: what they sum to tells no class from another.

        The plain read-out of a table keeps all k, which are those of ridge regressions.
        """
        squared = losses.resolve(self.loss) is losses.SQUARED
        return self.noise_.n_classes > 2 and (self._refines or self.readout == "gaussian" or not squared)

    def _truth(self, data: Labelled) -> IntArray:
        """Return the true class of members that were checked, `UNCHECKED` for the others."""
        checked = getattr(self.noise_estimator_, "y_trusted", None)
        return true_codes(checked, len(data.y), data.rows.members, data.classes, "y_trusted")

    def _candidates(self, fits: Spectrum | ConvexFits, spectrum: Spectrum, data: Labelled) -> FloatArray:
        """Return the penalties to choose from: one where it is given."""
        candidates = candidate_regs(spectrum)
        if isinstance(fits, ConvexFits):
            candidates = fits.stiffness(len(data.classes) - 1) * coarse_regs(spectrum)
        if self.reg == "loo":
            return candidates
        if self.reg == "theory":
            predicted = self._predicted_reg(centred(spectrum, data), data.rows, data.codes)
            return np.array([min(predicted, float(candidates[-1]))])
        return given_reg(self.reg, spectrum, readout=self.readout)

    def _predicted_reg(self, spectrum: Spectrum, rows: DistinctRows, codes: IntArray) -> float:
        """Return γ* of the isotropic mixture behind the rows; it may be infinite."""
        if not (rows.weights == 1).all():
            raise ValueError("reg='theory' needs distinct rows without weights: use reg='loo'.")
        evidence = mixture_evidence(spectrum, codes, self.noise_.n_classes)
        if not evidence.supported:
            raise ValueError(f"reg='theory' does not fit these data ({evidence}): use reg='loo'.")
        return predicted_reg(
            spectrum,
            codes,
            self.noise_,
            targets="optimized" if self._refines else self.targets,
            loss=losses.resolve(self.loss),
            plain=self.readout == "plain",
            fit_intercept=self.fit_intercept,
        )

    def _warn_of_few_rows(self, n_rows: float) -> None:
        n_slopes = (len(self.classes_) - 1) ** 2
        if n_rows < _ROWS_PER_SLOPE * n_slopes and n_slopes > 1:
            warn_caller(
                f"{n_rows:.0f} rows are few for {len(self.classes_)} classes, whose read-out has {n_slopes} slopes: "
                "probabilities, label_posterior_ and expected_accuracy_ are too sure. Merge classes or add rows.",
            )

    def _decide_by(self, found: Round, data: Labelled) -> Decision:
        """Decide by log-odds, or, with the plain read-out, by the scores as they are."""
        k, trained = self.noise_.n_classes, self.noise_.known_priors
        if self.readout == "gaussian":
            log_odds = found.reading.readout.under(self._rule.priors, trained)
            return Decision.by_log_odds(log_odds.slopes, log_odds.offsets, self._rule)
        rows, codes, noise = data.rows, data.codes, found.noise
        scores, weights = found.scores[rows.owner], rows.member_weights
        if k == 2:
            slope = symmetric_slope(scores[:, 0], codes, weights, noise, n_rows=rows.n_effective)
            return Decision(np.eye(1), np.zeros(1), steepness=slope)
        per_class = contrasts(k).T if self._in_contrasts else np.eye(k)
        return Decision(per_class, np.zeros(k), steepness=common_slope(scores @ per_class, codes, weights, noise))

    def _report(self, found: Round, data: Labelled, source: NoiseSource, fitted: FloatArray) -> None:
        """Set label_posterior_ and expected_accuracy_, from scores that are free of the row's own label.

        Copies of a row leave together, so that none vouches for another; rows of no weight have their fitted scores.
        """
        rows, codes, noise, reading = data.rows, data.codes, found.noise, found.reading
        self.label_posterior_ = reading.readout.probabilities(fitted)
        self.label_posterior_[rows.members] = known_rows(reading.posterior(codes, noise), self._truth(data))
        log_odds = reading.readout.log_odds(fitted)
        log_odds[rows.members] = reading.log_odds
        self.label_free_log_odds_, self.n_effective_ = _one_column(log_odds[:, 1:]), rows.n_effective
        scores = found.scores[rows.owner]
        expected = expected_accuracy(
            ScoredRows(scores, codes, rows.member_weights, rows.n_effective, found.anchors),
            reading,
            noise,
            others=self._others(data, source),
            deployed=self._rule.priors,
            predicted=self._predicted(reading, scores),
        )
        self.expected_accuracy_, self.expected_accuracy_std_ = expected.value, expected.error

    def _others(self, data: Labelled, source: NoiseSource) -> Sequence[Channel]:
        """Return what is observed under rates that are one standard error away."""
        votes, known = data.votes, self.priors is not None
        if votes is not None and source.crowd is not None and source.workers is not None:
            return source.workers.one_error_away(votes, source.errors)
        observed = data.observed if votes is None else votes.shares(data.rows.member_weights)
        found = other_noise(self.noise_, self.noise_std_, None if known else observed)
        return found if votes is None else [Workers.alike(noise, votes).channel(votes) for noise in found]

    def _predicted(self, reading: Reading, scores: FloatArray) -> IntArray:
        """Return what is predicted of rows by a read-out in which their own labels have no part."""
        if self.readout == "plain":
            return self._decision.classes(self._decision.values(scores))
        shift = np.log(self._rule.priors / self.noise_.known_priors)
        by_log_odds = Decision.by_log_odds(np.eye(len(shift)), shift - shift[0], self._rule)
        return by_log_odds.classes(by_log_odds.values(reading.log_odds))


def _check_rows(distinct: DistinctRows) -> None:
    if len(distinct.weights) < 2:
        raise ValueError("All rows of X are alike, so no feature tells the classes apart: give rows that vary.")
    limits = np.finfo(float)
    if not np.sqrt(limits.tiny) < distinct.largest < np.sqrt(limits.max / np.prod(distinct.X.shape)):
        raise ValueError(f"The largest feature of X is {distinct.largest:.2g}, and its square no number: rescale X.")


def _one_column(values: FloatArray) -> FloatArray:
    """Return the one value that two classes have as a vector, as scikit-learn does."""
    return values[:, 0] if values.shape[1] == 1 else values


def _class_targets(targets: FloatArray, n_classes: int) -> FloatArray:
    """Return targets in contrasts as values of y = ±1 (two classes), or as a row of class probabilities (more)."""
    return targets[:, 0] if n_classes == 2 else targets @ contrasts(n_classes).T + 1 / n_classes


def _n_classes_of(option: object) -> int | None:
    """Return the number of classes that an option is made for, None where it takes any."""
    if option is None or isinstance(option, str | NoiseEstimator):
        return None
    return option.n_classes if isinstance(option, NoiseModel) else len(np.atleast_1d(np.asarray(option, dtype=object)))
