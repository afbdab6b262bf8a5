"""LPClassifier: the labels-perturbed ridge classifier as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, has_fit_parameter, validate_data

from unflip import targets as target_values
from unflip import theory
from unflip._typing import FloatArray, IntArray
from unflip._validation import as_floats
from unflip.decoder import LinearReadout, gaussian_readout, symmetric_readout
from unflip.estimation import AssumedNoiseWarning, Automatic
from unflip.estimation.automatic import narrowed
from unflip.estimation.base import NoiseEstimator
from unflip.estimation.evidence import mixture_evidence
from unflip.estimation.spectral import Spikes
from unflip.labels import encode
from unflip.noise import NoiseModel
from unflip.rows import DistinctRows
from unflip.selection import best_reg, candidate_regs
from unflip.spectrum import LeaveOneOut, Spectrum

_LARGEST_RELATIVE_REG = 1e12


class LPClassifier(ClassifierMixin, BaseEstimator):
    """Labels-Perturbed Classifier: ridge regression on targets that account for flipped labels.

    Minimises (1/n)Σ wᵢ(t(ỹᵢ) − b − βᵀxᵢ)² + γ‖β‖², where t(ỹ) is the target of the observed class, then reads the
    true class off the score.

    Parameters
    ----------
    noise : "estimate", NoiseModel, array-like of shape (2, 2), NoiseEstimator, or None
        How labels were flipped: a noise model, or its transition matrix (row = true class). Its classes are those of
        ``classes_``, in sorted order: the positive class of `NoiseModel.binary` is the later label. Where it is not
        known, an estimator of `unflip.estimation`, such as ``TrustedSubset(y_trusted)`` where some rows have true
        labels. "estimate" does what the data allow (`unflip.estimation.Automatic`) and warns of what it had to assume.
        None: the labels are right.
    priors : array-like of shape (2,), optional
        Proportions of the true classes, where known; for estimated rates they are nearly as good as knowing the rates.
        Otherwise those of the noise model, or else inferred from the observed proportions.
    targets : {"optimized", "unbiased", "naive"} or (t_neg, t_pos)
        Value regressed for each observed class. "optimized" is the posterior mean E[y | ỹ]: the most accurate without
        an intercept; with one, all targets give the same direction and differ in the threshold alone.
    readout : {"gaussian", "plain"}
        "gaussian" corrects the threshold for the noise and the priors: the decision value is the log-odds of the
        true label. "plain" takes the sign of the fitted score, as the paper does.
    reg : float, "loo" or "theory"
        Ridge penalty γ ≥ 0 (scikit-learn's ``Ridge(alpha=n * reg)``). "loo" chooses it by exact leave-one-out scores:
        by their correlation with the targets, or, where the sign of the score with an intercept decides, by their
        squared distance to them. Both are right under label noise (see `unflip.selection`). "theory" takes the penalty
        that `unflip.theory` predicts to be best (at most the largest that "loo" would try), for rows that look like
        classes in isotropic noise; others are refused.
    loss : {"squared"}
        Loss that is minimised.
    fit_intercept : bool
        False is the paper's model: the origin must be the midpoint of the two class means. That knowledge is worth
        a lot (see the README), and wrong where it does not hold.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Labels; the first is the negative class.
    coef_ : ndarray of shape (1, p)
        Weights of the decision function.
    intercept_ : ndarray of shape (1,)
        Its constant.
    noise_ : NoiseModel
        The noise model with priors.
    noise_std_ : ndarray of shape (2, 2)
        Standard error of each entry of ``noise_.transition``; 0 where the noise model was given.
    noise_estimator_ : NoiseEstimator or None
        What estimated them, with its evidence; None where the noise model was given.
    targets_ : ndarray of shape (2,)
        (t_neg, t_pos).
    reg_ : float
        The penalty γ used.
    loo_decision_ : ndarray of shape (n,)
        Exact leave-one-out decision values of the training rows: what the fit to all other rows, at the same penalty
        nγ, says of each. A row is left out with its whole weight. With the plain read-out they equal refits of the
        ridge regression, intercept included. The gaussian read-out is that of the whole fit, applied to scores without
        the trace that the row's own label leaves on the mean of the others (see docs/leave_one_out.md).
    n_features_in_ : int
        Number of features.

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
    targets_: FloatArray
    reg_: float
    loo_decision_: FloatArray
    n_features_in_: int

    def __init__(
        self,
        noise: NoiseModel | NoiseEstimator | ArrayLike | Literal["estimate"] | None = "estimate",
        *,
        priors: ArrayLike | None = None,
        targets: str | ArrayLike = "optimized",
        readout: Literal["gaussian", "plain"] = "gaussian",
        reg: float | Literal["loo", "theory"] = "loo",
        loss: Literal["squared"] = "squared",
        fit_intercept: bool = True,
    ) -> None:
        self.noise = noise
        self.priors = priors
        self.targets = targets
        self.readout = readout
        self.reg = reg
        self.loss = loss
        self.fit_intercept = fit_intercept

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows X with observed labels y.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows.
        y : array-like of shape (n,)
            Observed labels of two classes.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows; a row of weight 2 counts as two copies, one of weight 0 as absent.
        """
        self._check_options()
        rows_in, labels = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        weights = _check_sample_weight(sample_weight, rows_in, dtype=np.float64, ensure_non_negative=True)
        if not weights.any():
            raise ValueError("sample_weight is 0 for every row: give at least one non-zero weight.")
        rows = DistinctRows.of(rows_in, weights)
        self.classes_, codes = _encode(labels[rows.members])
        _check_rows(rows.X)
        spectrum = Spectrum.of(rows.X, rows.spectrum_weights, fit_intercept=self.fit_intercept)
        self._fit_noise(spectrum, rows, codes, (rows_in, labels, weights))
        self.targets_ = target_values.resolve(self.targets, self.noise_)
        self._warn_of_one_sided_targets()

        targets = self.targets_[codes]
        means = rows.average(targets)
        self.reg_, left_out = self._leave_out(spectrum, rows, codes, means)
        path = spectrum.path(means, [self.reg_])
        coef, intercept = path.coef[:, 0, 0], float(path.intercept[0, 0])

        log_odds = self._fit_readout(left_out, rows, codes)
        decision = LinearReadout(1.0, 0.0) if self.readout == "plain" else log_odds
        self.coef_ = decision.slope * coef[None, :]
        self.intercept_ = np.array([decision.slope * intercept + decision.offset])
        # What predict_proba multiplies decision values with; the gaussian read-out's are log-odds already.
        self._log_odds_per_decision = log_odds.slope if self.readout == "plain" else 1.0
        scores = rows_in @ coef + intercept  # rows of no weight have no part in the fit
        alone = left_out.of_copies(rows.owner, targets, rows.member_weights / rows.weights[rows.owner])
        # A read-out fitted to the others would move with their mean target: it needs the scores without that move.
        scores[rows.members] = (alone.scores if self.readout == "plain" else alone.label_free_scores)[:, 0, 0]
        self.loo_decision_ = decision(scores)
        return self

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Decision value of each row, positive for the second class.

        The log-odds of the true label with the gaussian read-out, the fitted score with the plain one.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        decision: FloatArray = X @ self.coef_[0] + self.intercept_[0]
        return decision

    def predict(self, X: ArrayLike) -> np.ndarray[Any, Any]:
        """Predict the TRUE class of each row."""
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(np.intp)]

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Probability of each TRUE class.

        Calibrated on leave-one-out scores under the noise model. With the plain read-out they keep to its threshold:
        the class means are taken as ±m and the classes as equally frequent.
        """
        decision = self.decision_function(X)
        log_odds = self._log_odds_per_decision * decision
        return np.column_stack([expit(-log_odds), expit(log_odds)])

    def __sklearn_tags__(self) -> Tags:
        """Two classes only."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _check_options(self) -> None:
        if self.readout not in ("gaussian", "plain"):
            raise ValueError(f"readout={self.readout!r} is not known: use 'gaussian' or 'plain'.")
        if self.loss != "squared":
            raise ValueError(f"loss={self.loss!r} is not available: use loss='squared'.")
        if isinstance(self.reg, str):
            if self.reg not in ("loo", "theory"):
                raise ValueError(f"reg={self.reg!r} is not known: use 'loo', 'theory' or a number γ ≥ 0.")
        elif isinstance(self.reg, bool) or not isinstance(self.reg, Real) or not 0 <= float(self.reg) < np.inf:
            raise ValueError(f"reg={self.reg!r} must be 'loo', 'theory' or a finite number γ ≥ 0.")
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ValueError(f"fit_intercept={self.fit_intercept!r} must be True or False.")

    def _fit_noise(
        self, spectrum: Spectrum, rows: DistinctRows, codes: IntArray, given: tuple[FloatArray, Any, FloatArray]
    ) -> None:
        """Set noise_, noise_std_ and noise_estimator_ from what the user knows and the data show."""
        self.noise_estimator_ = None
        if isinstance(self.noise, str) and self.noise == "estimate":
            self._estimate_noise(spectrum, rows, codes)
        elif isinstance(self.noise, NoiseEstimator):
            self._run_estimator(self.noise, rows, codes, given)
        else:
            observed = np.bincount(codes, rows.member_weights) / rows.member_weights.sum()
            self.noise_ = self._noise_model(observed)
            self.noise_std_ = np.zeros((2, 2))

    def _estimate_noise(self, spectrum: Spectrum, rows: DistinctRows, codes: IntArray) -> None:
        automatic = Automatic(priors=self.priors).fit_spectrum(_centred(spectrum, rows), rows, codes)
        if automatic.assumption_:
            warnings.warn(automatic.assumption_, AssumedNoiseWarning, stacklevel=4)
        automatic.classes_, automatic.n_features_in_ = self.classes_, self.n_features_in_
        self.noise_, self.noise_std_, self.noise_estimator_ = automatic.noise_, automatic.noise_std_, automatic

    def _run_estimator(
        self,
        estimator: NoiseEstimator,
        rows: DistinctRows,
        codes: IntArray,
        given: tuple[FloatArray, Any, FloatArray],
    ) -> None:
        rows_in, labels, weights = given
        fitted = clone(estimator)
        if has_fit_parameter(fitted, "sample_weight"):
            fitted.fit(rows_in, labels, sample_weight=weights)
        elif (weights == 1).all():
            fitted.fit(rows_in, labels)
        else:
            raise ValueError(f"noise={estimator!r} takes no sample_weight: fit without weights, or repeat rows.")
        self.noise_, self.noise_std_, self.noise_estimator_ = fitted.noise_, fitted.noise_std_, fitted
        if self.priors is not None:
            self.noise_, self.noise_std_ = narrowed(fitted.noise_, fitted.noise_std_, self.priors, rows, codes)

    def _noise_model(self, observed: FloatArray) -> NoiseModel:
        noise = self._given_noise()
        if noise.n_classes != len(self.classes_):
            raise ValueError(
                f"The noise model knows {noise.n_classes} classes but y has {len(self.classes_)}: give a transition "
                f"matrix for the classes {self.classes_.tolist()}, in that order."
            )
        if self.priors is None:
            return noise.with_observed(observed) if noise.priors is None else noise
        given = noise.with_priors(self.priors)
        if noise.priors is not None and not np.allclose(noise.priors, given.known_priors):
            raise ValueError(
                f"priors={self.priors!r} contradict those of the noise model, {noise.priors.tolist()}: give one."
            )
        return given

    def _given_noise(self) -> NoiseModel:
        if self.noise is None:
            return NoiseModel.none()
        if isinstance(self.noise, NoiseModel):
            return self.noise
        if isinstance(self.noise, str) or hasattr(self.noise, "fit"):
            raise ValueError(
                f"noise={self.noise!r} is not known: use 'estimate', a NoiseModel, a transition matrix, an estimator "
                "of unflip.estimation, or None for no noise."
            )
        return NoiseModel(as_floats(self.noise, "noise"))

    def _warn_of_one_sided_targets(self) -> None:
        t_neg, t_pos = self.targets_
        if self.readout == "plain" and self.fit_intercept and t_neg * t_pos > 0:
            warnings.warn(
                f"Both targets ({t_neg:.3g}, {t_pos:.3g}) have the same sign, so with an intercept nearly all scores "
                "do: use readout='gaussian', which finds the threshold, or fit_intercept=False at a known origin.",
                UserWarning,
                stacklevel=3,
            )

    def _leave_out(
        self, spectrum: Spectrum, rows: DistinctRows, codes: IntArray, targets: FloatArray
    ) -> tuple[float, LeaveOneOut]:
        """Return the penalty, chosen if need be, and the leave-one-out fits of the distinct rows under it."""
        if self.reg == "theory":
            reg = min(self._predicted_reg(_centred(spectrum, rows), rows, codes), float(candidate_regs(spectrum)[-1]))
            return reg, spectrum.leave_one_out(targets, [reg])
        if self.reg != "loo":
            if self.readout == "gaussian" and self.reg > _LARGEST_RELATIVE_REG * spectrum.scale:
                raise ValueError(
                    f"reg={self.reg!r} is beyond {_LARGEST_RELATIVE_REG:g} times the variance of the features "
                    f"({spectrum.scale:.2g}), where scores vanish in rounding: lower reg or rescale X."
                )
            return float(self.reg), spectrum.leave_one_out(targets, [self.reg])
        regs = candidate_regs(spectrum)
        left_out = spectrum.leave_one_out(targets, regs)
        best = best_reg(
            _without_copies(left_out, rows).label_free_scores[:, :, 0],
            targets,
            rows.weights,
            scale_free=self.readout == "gaussian" or not self.fit_intercept,
            centred=self.fit_intercept,
        )
        return float(regs[best]), left_out.at(best)

    def _predicted_reg(self, spectrum: Spectrum, rows: DistinctRows, codes: IntArray) -> float:
        """Return γ* of the isotropic mixture behind the rows; it may be infinite."""
        if not (rows.weights == 1).all():
            raise ValueError("reg='theory' needs distinct rows without weights: use reg='loo'.")
        evidence = mixture_evidence(spectrum, codes, 2)
        if not evidence.supported:
            raise ValueError(f"reg='theory' does not fit these data ({evidence}): use reg='loo'.")
        spikes = Spikes.of(spectrum)
        priors = self.noise_.known_priors
        mean_norm = np.sqrt(spikes.strengths[0] / (4 * priors[0] * priors[1]))
        mixture = theory.Mixture(mean_norm=mean_norm, aspect=spikes.aspect, noise=self.noise_)
        scale_counts = self.readout == "plain" and self.fit_intercept
        best = theory.optimal_reg(
            mixture,
            targets=self.targets_,
            objective="risk" if scale_counts else "accuracy",
            fit_intercept=self.fit_intercept,
        )
        return float(best) * spikes.noise_variance

    def _fit_readout(self, left_out: LeaveOneOut, rows: DistinctRows, codes: IntArray) -> LinearReadout:
        scores = _without_copies(left_out, rows).label_free_scores[rows.owner, 0, 0]
        fit = symmetric_readout if self.readout == "plain" else gaussian_readout
        return fit(scores, codes, rows.member_weights, self.noise_, n_rows=rows.n_effective)


def _centred(spectrum: Spectrum, rows: DistinctRows) -> Spectrum:
    """Return the spectrum of the rows about their mean."""
    return spectrum if spectrum.fit_intercept else Spectrum.of(rows.X, rows.spectrum_weights)


def _without_copies(left_out: LeaveOneOut, rows: DistinctRows) -> LeaveOneOut:
    """Leave copies of a row out together, as far as they should."""
    share = rows.leaving_share
    if (share == 1).all():
        return left_out
    return left_out.of_copies(np.arange(len(share)), left_out.targets, share)


def _check_rows(distinct: FloatArray) -> None:
    if len(distinct) < 2:
        raise ValueError("All rows of X are alike, so no feature tells the classes apart: give rows that vary.")
    largest = max(float(distinct.max()), -float(distinct.min()))
    limits = np.finfo(float)
    if not np.sqrt(limits.tiny) < largest < np.sqrt(limits.max / distinct.size):
        raise ValueError(f"The largest feature of X is {largest:.2g}, and its square no number: rescale X.")


def _encode(y: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], IntArray]:
    """Classes and class index of each row of positive weight, or an error where there are not two."""
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind != "binary":
        raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
    return encode(y, "LPClassifier")
