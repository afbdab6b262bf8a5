r"""Input of an audit: out-of-sample probabilities of the true class, and the noise model.

A row's probabilities P(y = a | xᵢ) come from a model that has not seen its label. Bayes' rule
combines them with the label,

.. math:: P(y_i = a \mid x_i, \tilde y_i) \propto P(y = a \mid x_i)\, T_{a \tilde y_i},

and for other noise rates the probabilities are calibrated again from the same scores. If trusted
labels of sampled rows exist, P(y | x, ỹ) is a model that they calibrate instead, for noise that may
depend on the row (`unflip.calibration.true_class`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from unflip._utils.arrays import TINY
from unflip._utils.typing import FloatArray, IntArray
from unflip.calibration.information import joint_covariance
from unflip.calibration.intercepts import class_probabilities
from unflip.calibration.labelled_scores import LabelledScores, ModelScores
from unflip.calibration.likeliest_noise import (
    expected_noise,
)
from unflip.calibration.log_odds import (
    label_posterior,
    recalibrated,
)
from unflip.calibration.observations import Observations
from unflip.calibration.slope import MAX_LOG_SLOPE
from unflip.calibration.true_class import TrueClassModel
from unflip.labels.annotators import Annotators
from unflip.labels.codes import UNCHECKED, UNLABELLED
from unflip.labels.moved_noise import moved_rate
from unflip.labels.noise import Channel, NoiseModel
from unflip.labels.votes import Votes

# Five-point Gauss-Hermite quadrature over a standard normal variable.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
_ROUNDING = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Out-of-sample log-odds of the rows, with their labels."""

    log_odds: FloatArray  # of each class against the first, (n, k)
    rows: Observations
    priors: FloatArray  # with which the log-odds were calibrated
    certainty: float = 1.0  # share of the fitted log-odds that is left; below 1 for lack of signal

    def probabilities(self, noise: Channel) -> FloatArray:
        """Return P(true class | row) under a noise model, (n, k).

        Log-odds are calibrated again; those shrunk for lack of signal change with the priors alone.
        """
        if self.certainty == 1:
            return np.asarray(recalibrated(self.log_odds, self.rows, noise))
        return np.asarray(
            class_probabilities(self.log_odds + np.log(noise.known_priors / self.priors))
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Noise:
    """The noise model of an audit, and where it comes from.

    Attributes
    ----------
    model : NoiseModel
        Noise model with priors, of the calibration. With votes, that of the majority labels.
    errors : ndarray of shape (k, k)
        Standard errors of its transition matrix.
    source : str
        "given", "trusted rows", "mixture", "label likelihood", "anchor rows", "no signal", "votes",
        or what a noise estimator of the user says.
    assumption : str
        Sentence on what was assumed without a test; empty if nothing was.
    priors_given : bool
        Whether the priors were given, rather than estimated from labels or votes.
    reported : NoiseModel, optional
        Noise model to report, if it differs: that of the labels themselves, by expected counts.
    from_labels : bool
        Whether the rates were estimated from the noisy labels, so that checked labels improve them.
    rate_covariance : ndarray of shape (k, k), optional
        Covariance of the noise rates of the classes; without it, they are independent.
    votes : Votes, optional
        Votes on the rows, if there are votes instead of labels.
    annotators : Annotators, optional
        Transition matrices of the annotators.
    """

    model: NoiseModel
    errors: FloatArray
    source: str
    assumption: str
    priors_given: bool
    reported: NoiseModel | None = None
    from_labels: bool = False
    rate_covariance: FloatArray | None = None
    votes: Votes | None = None
    annotators: Annotators | None = None

    @property
    def covariance(self) -> FloatArray:
        """Covariance of the noise rates of the classes, (k, k)."""
        if self.rate_covariance is not None:
            return self.rate_covariance
        return np.diag(np.diag(self.errors) ** 2)

    @cached_property
    def channel(self) -> Channel:
        """P(label or votes of a row | true class): a column per label, or per row with votes."""
        if self.votes is None or self.annotators is None:
            return self.model
        return self.annotators.channel(self.votes)

    @property
    def priors_known(self) -> bool:
        """Whether the priors were given, or estimated from several votes per row."""
        return self.priors_given or (self.votes is not None and not self.votes.single)

    def moved(self, true_class: int, change: float, observed: FloatArray) -> Noise | None:
        """Return the noise with another rate of one class; None if no noise model has that rate."""
        model = moved_rate(self.model, true_class, change, None if self.priors_known else observed)
        if model is None:
            return None
        if self.votes is None or self.annotators is None:
            return replace(self, model=model)
        if self.votes.single:
            annotators = Annotators.from_noise(model, self.votes)
        else:
            annotators = self.annotators.moved(true_class, change)
        return replace(self, model=model, annotators=annotators)


@dataclass(frozen=True)
class ModelCalibration:
    """How the probabilities of a model were calibrated for the true class.

    Attributes
    ----------
    slope : float
        Factor of the model's log-odds; above 1 if the model was underconfident, as models trained
        on noisy labels are.
    log_loss_before, log_loss_after : float
        Mean negative log-likelihood of the observed labels, under the probabilities of the model
        and under the calibrated ones with the noise model.
    """

    slope: float
    log_loss_before: float
    log_loss_after: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """Everything that an audit is computed from.

    Attributes
    ----------
    classes : ndarray of shape (k,)
        Labels, sorted.
    codes : ndarray of shape (n,)
        Observed class of each row. With votes, the majority label. `UNLABELLED` for rows without a
        label or votes.
    truth : ndarray of shape (n,)
        True class of the checked rows, −1 for the others.
    probabilities : ndarray of shape (n, k)
        P(true class | row), without the row's own label.
    log_scores : ndarray of shape (n, k)
        Logarithms of the model's probabilities, before the noise model is applied.
    noise : Noise
        The noise model.
    class_conditional_accuracy, class_conditional_accuracy_std : float
        Expected accuracy on clean labels if noise depends on the class alone, and its standard
        error.
    dimension : float
        Effective dimension of the features; NaN if it is not known.
    n_effective : float
        Effective sample size.
    scored : ScoredRows
        Log-odds, from which `probabilities` under other noise models are computed.
    has_signal : bool
        Whether the features predict the labels better than chance.
    model_calibration : ModelCalibration, optional
        How the probabilities of another model were calibrated.
    is_sample : bool
        Whether the checked rows were sampled, so that their labels calibrate the posterior.
    inclusion : ndarray of shape (n,), optional
        Probability with which each row was chosen for a check.
    features : transformer, optional
        Transformer of the samples whose features the classes are linear in.
    """

    classes: NDArray[Any]
    codes: IntArray
    truth: IntArray
    probabilities: FloatArray
    log_scores: FloatArray
    noise: Noise
    class_conditional_accuracy: float
    class_conditional_accuracy_std: float
    dimension: float
    n_effective: float
    scored: ScoredRows
    has_signal: bool = True
    model_calibration: ModelCalibration | None = None
    is_sample: bool = False
    inclusion: FloatArray | None = None
    features: Any = None

    @cached_property
    def counted(self) -> Evidence:
        """The evidence of the rows that rates, accuracy and tests are about.

        They are the rows with a label. With votes, they are all rows: the fit uses rows without
        votes, too. All that is not about single rows needs this evidence.
        """
        if self.noise.votes is not None or self.labelled.all():
            return self
        rows = np.flatnonzero(self.labelled)
        scored = replace(
            self.scored, log_odds=self.scored.log_odds[rows], rows=self.scored.rows.subset(rows)
        )
        return replace(
            self,
            codes=self.codes[rows],
            truth=self.truth[rows],
            probabilities=self.probabilities[rows],
            log_scores=self.log_scores[rows],
            scored=scored,
            inclusion=None if self.inclusion is None else self.inclusion[rows],
        )

    @property
    def counted_rows(self) -> IntArray:
        """Index of each row of `counted`."""
        if self.counted is self:
            return np.arange(len(self.codes))
        return np.flatnonzero(self.labelled)

    @property
    def columns(self) -> IntArray:
        """Column of ``noise.channel`` for each row, (n,)."""
        return self.codes if self.noise.votes is None else np.arange(len(self.codes))

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Whether each row has an observed label, (n,)."""
        return np.asarray(self.codes != UNLABELLED)

    @property
    def is_calibrated(self) -> bool:
        """Whether trusted labels of sampled rows calibrate the posterior."""
        return self.is_sample and bool((self.counted.truth != UNCHECKED).any())

    @property
    def uses_true_class(self) -> bool:
        """Whether all numbers are those of `true_class`, for noise that may depend on the row.

        So are those of rules without checked rows: rules look at features, so that a fit agrees
        with them, right or wrong.
        """
        return self.is_calibrated or self.is_by_rules

    @property
    def is_by_rules(self) -> bool:
        """Whether the labels are votes of rules that abstain."""
        votes = self.noise.votes
        return votes is not None and votes.abstentions and self.noise.source == "votes"

    @cached_property
    def true_class(self) -> TrueClassModel:
        """Model of the true class of the `counted` rows, for noise that may depend on the row.

        Trusted labels calibrate it if their rows were sampled. Otherwise it is that of its prior.
        """
        if self.counted is not self:
            return self.counted.true_class
        n, k = self.probabilities.shape
        vote_logs = None
        if self.noise.votes is not None and self.noise.annotators is not None:
            vote_logs = self.noise.annotators.log_likelihoods(self.noise.votes)
        scores = ModelScores.of(self.probabilities)
        if self.is_by_rules:
            scores = scores.claimed_by_rules(self.noise.channel.posterior, self.labelled)
        return TrueClassModel.fit(
            LabelledScores((scores,), self.codes, k, vote_logs),
            self.truth if self.is_sample else np.full(n, UNCHECKED),
            counts=np.full(n, self.n_effective / n),
            inclusion=self.inclusion,
        )

    @property
    def accuracy(self) -> float:
        """Expected accuracy on clean labels."""
        if self.uses_true_class:
            return self.true_class.expected_accuracy.value
        return self.class_conditional_accuracy

    @property
    def accuracy_std(self) -> float:
        """Standard error of `accuracy`."""
        if self.uses_true_class:
            return self.true_class.expected_accuracy.std
        return self.class_conditional_accuracy_std

    @cached_property
    def reported_noise(self) -> tuple[NoiseModel, FloatArray]:
        """Noise model to report, and the standard errors of its transition matrix."""
        if self.counted is not self:
            return self.counted.reported_noise
        noise = self.noise
        if not self.uses_true_class:
            return (noise.model if noise.reported is None else noise.reported), noise.errors
        transition, errors = self.true_class.transition()
        if noise.votes is not None:
            return NoiseModel(transition, noise.model.priors), errors
        observations = Observations(self.codes, np.ones(len(self.codes)), self.n_effective)
        return expected_noise(self.label_posterior, observations, noise.model), errors

    @cached_property
    def label_posterior(self) -> FloatArray:
        """P(true class | row, observed label), (n, k); 0 and 1 for checked rows."""
        if self.counted is not self:
            posterior = self._unlabelled_posterior()
            posterior[self.labelled] = self.counted.label_posterior
        elif self.uses_true_class:
            return self.true_class.posterior
        else:
            posterior = label_posterior(self.probabilities, self.columns, self.noise.channel)
        checked = self.truth != UNCHECKED
        posterior[checked] = np.eye(len(self.classes))[self.truth[checked]]
        return posterior

    def _unlabelled_posterior(self) -> FloatArray:
        """Return P(true class | row) of all rows, (n, k), without any label."""
        if not self.uses_true_class:
            return self.probabilities.copy()
        n, k = self.probabilities.shape
        scores = LabelledScores((ModelScores.of(self.probabilities),), np.full(n, UNLABELLED), k)
        return scores.posterior(self.true_class.parameters)

    @cached_property
    def wrong(self) -> FloatArray:
        """P(the observed label is wrong) of each row; 0 for rows without a label."""
        wrong = 1 - self.label_posterior[np.arange(len(self.codes)), self.codes]
        return np.where(self.labelled, wrong, 0.0)

    @cached_property
    def worst_first(self) -> IntArray:
        """All rows sorted by P(label wrong), the largest first, with checked rows last.

        Ties are in the order of the rows.
        """
        return np.lexsort((-self.wrong, self.truth != UNCHECKED))

    def with_rate(self, true_class: int, change: float) -> Evidence | None:
        """Return the evidence with another noise rate of one class; None if that is impossible."""
        moved = self.noise.moved(true_class, change, self.observed)
        return None if moved is None else self.under(moved)

    def under(self, noise: Noise) -> Evidence:
        """Return the evidence under another noise model."""
        probabilities = self.scored.probabilities(noise.channel)
        return replace(self, noise=noise, probabilities=probabilities)

    def wrong_gradient(self, rows: IntArray) -> FloatArray:
        """Return the derivative of the log-odds that each label is wrong, (n_rows, 2k + 1).

        By the noise rates, the log-slope, and the intercepts. With the shares r of the other
        classes in P(label wrong), it is r − 1[a = ỹ] by the intercept of class a, and
        r_a ∂log T_{aỹ} (for the label itself −∂log T) by the rate of class a.
        """
        k = len(self.classes)
        wrong = self.wrong[rows]
        probabilities = self.probabilities[rows]
        own = np.eye(k, dtype=bool)[np.maximum(self.codes[rows], 0)]
        likelihoods = self.noise.channel.transition.T[self.columns[rows]]
        derivatives = self.noise.channel.rate_derivatives.T[self.columns[rows]]
        others = np.where(own, 0.0, probabilities * likelihoods)
        total = others.sum(axis=1, keepdims=True)
        # Log-odds of certain rows are infinite, and do not change.
        is_certain = np.minimum(wrong, 1 - wrong)[:, None] < _ROUNDING
        total[is_certain] = 1.0
        likelihoods = np.where(own & ~is_certain, likelihoods, 1.0)
        by_intercepts = others / total - own
        by_rates = np.where(own, -derivatives / likelihoods, probabilities * derivatives / total)
        by_slope = (by_intercepts * self._log_odds[rows]).sum(axis=1, keepdims=True)
        return np.where(is_certain, 0.0, np.hstack([by_rates, by_slope, by_intercepts]))

    @cached_property
    def parameter_covariance(self) -> FloatArray:
        """Covariance of the noise rates, the log-slope and the intercepts, (2k + 1, 2k + 1)."""
        covariance = joint_covariance(
            self.probabilities,
            self._log_odds,
            self.scored.rows,
            self.noise.channel,
            self.noise.covariance,
        )
        # The slope may be anything between that of the fit and 0.
        k = len(self.classes)
        covariance[k, k] += np.log(max(self.scored.certainty, _ROUNDING)) ** 2
        return covariance

    def marginal_wrong(self, rows: IntArray) -> FloatArray:
        """Return P(label wrong) averaged over the errors of slope, rates and intercepts, (n_rows,).

        The log-slope is integrated by Gauss-Hermite quadrature: log-odds scale with the slope, and
        keep their sign. Given the slope, log-odds are about normal with variance v. The mean of a
        logistic function of a normal variable with mean x is close to that at x/√(1 + πv/8)
        (MacKay 1992).
        """
        slope = len(self.classes)
        covariance = self.parameter_covariance
        variance = covariance[slope, slope]
        by_slope = covariance[:, slope] / variance
        given_slope = covariance - variance * np.outer(by_slope, by_slope)
        gradient = self.wrong_gradient(rows)
        spread = np.maximum(((gradient @ given_slope) * gradient).sum(axis=1), 0.0)
        with_slope = by_slope.copy()
        with_slope[slope] = 0.0  # its own effect is exact below
        shift = gradient @ with_slope
        marginal = np.zeros(len(rows))
        log_odds = self._log_odds[rows]
        for node, weight in zip(_NODES, _WEIGHTS / _WEIGHTS.sum(), strict=True):
            change = np.clip(np.sqrt(variance) * node, -MAX_LOG_SLOPE, MAX_LOG_SLOPE)
            wrong = self._wrong(rows, class_probabilities(np.exp(change) * log_odds))
            moved = logit(np.clip(wrong, _ROUNDING, 1 - _ROUNDING)) + change * shift
            marginal += weight * expit(moved / np.sqrt(1 + np.pi / 8 * spread))
        return np.where(self.labelled[rows], marginal, 0.0)

    @cached_property
    def _log_odds(self) -> FloatArray:
        """Log-odds of each class against the first, (n, k)."""
        logs = np.log(np.maximum(self.probabilities, TINY))
        return np.asarray(logs - logs[:, :1])

    def _wrong(self, rows: IntArray, probabilities: FloatArray) -> FloatArray:
        """Return P(label wrong), (n_rows,), for probabilities of the true class."""
        posterior = label_posterior(probabilities, self.columns[rows], self.noise.channel)
        return np.asarray(1 - posterior[np.arange(len(rows)), self.codes[rows]])

    def noise_one_error_away(self) -> list[Noise]:
        """Return the noise with each uncertain rate lowered (else raised) by its standard error."""
        errors = np.diag(self.noise.errors)
        observed = self.observed
        models = []
        for a in np.flatnonzero(errors > 0).tolist():
            error = float(errors[a])
            lower = self.noise.moved(a, -error, observed)
            models.append(lower or self.noise.moved(a, error, observed))
        return [model for model in models if model is not None]

    @property
    def observed(self) -> FloatArray:
        """Proportions of the observed classes."""
        return proportions(self.codes[self.labelled])


def proportions(codes: IntArray) -> FloatArray:
    """Return the proportions of the observed classes."""
    return np.asarray(np.bincount(codes) / len(codes))
