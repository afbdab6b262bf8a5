r"""Noise rates that make the observed labels likeliest, given calibrated scores.

The score s of a row gives P(a | s). With the transition matrix T its label has the probability

.. math:: L_i = \sum_a P(a \mid s_i)\, T_{a \tilde y_i}, \qquad
          T_{aa} = 1 - \varepsilon_a, \quad T_{ab} = \varepsilon_a v_{ab}.

Wherever scores are certain of the class, labels that differ from it are wrong. So the likelihood
Π Lᵢ determines the rates as far as scores get certain, and is flat otherwise. Each rate ε has a
normal prior around the value that the estimation starts from, with the standard error of that
start. If the likelihood is flat, the rates hardly move, and keep that standard error.

* The rates ε are found by Fisher scoring, with the slope and the intercepts of the calibration
  fitted again for each candidate. A step that lowers the posterior density is halved.
* The shares v of the wrong labels are expected counts, shrunk towards a simpler structure: all
  wrong labels equally likely, or pairs of classes confused equally often in both directions. The
  structure and the strength of the shrinkage have the largest evidence (Dirichlet-multinomial
  likelihood of the counts, penalised as in the BIC).
* The covariance of the rates follows from the observed information, with slope and intercepts as
  nuisance parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from unflip._utils.arrays import (
    TINY,
    as_numpy,
    like,
    namespace,
    one_hot,
    sums_by_code,
)
from unflip._utils.typing import Array, FloatArray
from unflip.calibration.binning import rows_to_fit
from unflip.calibration.information import LabelInformation
from unflip.calibration.intercepts import ClassProportions, class_probabilities
from unflip.calibration.observations import Observations
from unflip.calibration.slope import SlopeFit, fit_slope
from unflip.labels.noise import Channel, NoiseModel, shares_of_wrong_labels

#: Candidates for the strength of the shrinkage, in wrong labels of each class: powers of two from
#: one, hardly any shrinkage, to more than the wrong labels of a class in most data sets.
_STRENGTHS = 2.0 ** np.arange(13)
#: Largest change of a rate in the last step, in its standard errors.
_TOLERANCE = 0.1
#: Steps of Fisher scoring at most. Two to four are usual.
_MAX_STEPS = 8
#: Halvings of a step before scoring ends. A step of 1/16 that still lowers the density is noise.
_MAX_HALVINGS = 4
#: Largest standard error of the share of wrong labels, at which it counts as determined: a 95%
#: confidence interval then spans 20 percentage points; a choice.
LARGEST_ERROR = 0.05
#: Smallest 1 − ε₊ − ε₋ of two classes. Closer to 0, priors that explain the observed proportions
#: depend on rounding.
_LEAST_INFORMATION = 0.05


@dataclass(frozen=True, eq=False)
class RatePrior:
    """Normal prior of the noise rates of the classes.

    Attributes
    ----------
    rates : ndarray of shape (k,)
        Means, the rates that the estimation starts from.
    errors : ndarray of shape (k,)
        Standard deviations.
    """

    rates: FloatArray
    errors: FloatArray

    @classmethod
    def of(cls, noise: NoiseModel, errors: FloatArray) -> RatePrior:
        """Return the prior around a noise model with these standard errors of its transition."""
        # Finite precisions of known rates.
        return cls(1 - np.diag(noise.transition), np.maximum(np.diag(errors), 1e-6))


@dataclass(frozen=True, eq=False)
class LikeliestNoise:
    """Noise rates of the largest posterior density.

    Attributes
    ----------
    noise : NoiseModel
        Transition matrix and priors.
    covariance : ndarray of shape (k, k)
        Covariance of the noise rates of the classes.
    """

    noise: NoiseModel
    covariance: FloatArray


def likeliest_noise(
    logits: Array, observations: Observations, noise: Channel, prior: RatePrior
) -> LikeliestNoise:
    """Return the noise rates of the largest posterior density, given scores of the rows.

    Parameters
    ----------
    logits : array of shape (n, k)
        Leave-one-out log-odds of the rows, up to a common slope and intercepts.
    observations : Observations
        Observed labels. If their priors are known, those of `noise` stay as they are. Otherwise
        they follow from the rates and the observed proportions.
    noise : Channel
        Noise of labels, with priors, where the search starts.
    prior : RatePrior
        Prior of the rates.
    """
    codes = observations.codes
    share = observations.shares
    if noise.n_classes == 2:  # one column of log-odds, which many rows are binned by
        contrast = logits[:, 1:] - logits[:, :1]
        contrast, codes, share = rows_to_fit(contrast, codes, share, noise)
        logits = namespace(contrast).concat([0 * contrast, contrast], axis=1)
    else:
        logits, codes, share = rows_to_fit(logits, codes, share, noise)
    likelihood = _Likelihood(logits, codes, share, observations, noise, prior)
    current = likelihood.at(noise.transition, noise.known_priors)
    if current is None:  # the start does not explain the observed proportions
        start = NoiseModel(noise.transition, noise.priors)
        return LikeliestNoise(start, np.diag(prior.errors**2))
    if noise.n_classes > 2:
        current = likelihood.with_expected_counts(current)
    current = likelihood.scored(current)
    return LikeliestNoise(current.noise, current.covariance)


def is_determined(noise: Channel, covariance: FloatArray) -> bool:
    """Whether the share of wrong labels has a standard error of at most 5 percentage points."""
    priors = noise.known_priors
    return bool(np.sqrt(priors @ covariance @ priors) <= LARGEST_ERROR)


def transition_errors(noise: Channel, covariance: FloatArray, n_effective: float) -> FloatArray:
    """Return standard errors of the transition matrix, (k, k).

    Those of the diagonal are those of the rates. An entry T_ab = ε_a v_ab has the variance
    v²Var(ε) + ε²v(1 − v)/m, if m wrong labels of class a show their shares v.

    Parameters
    ----------
    noise : Channel
        Noise of labels, with priors.
    covariance : ndarray of shape (k, k)
        Covariance of the noise rates of the classes.
    n_effective : float
        Effective sample size.
    """
    transition = noise.transition
    rates = (1 - np.diag(transition))[:, None]
    shares = shares_of_wrong_labels(transition)
    n_wrong = n_effective * noise.known_priors[:, None] * rates
    variance = shares**2 * np.diag(covariance)[:, None]
    variance += rates**2 * shares * (1 - shares) / (n_wrong + 1)
    np.fill_diagonal(variance, np.diag(covariance))
    return np.sqrt(variance)


def expected_noise(posterior: Array, observations: Observations, noise: NoiseModel) -> NoiseModel:
    """Return the noise model of the labelled rows themselves, by expected counts.

    Entry (a, b) of the transition is the expected share of label b among the rows of true class a.
    The priors are the known ones, or the expected class proportions: these explain the observed
    proportions exactly.

    Parameters
    ----------
    posterior : array of shape (n, k)
        P(true class | row, observed label).
    observations : Observations
        Observed labels.
    noise : NoiseModel
        Noise behind the posteriors, with priors. It is returned for two classes whose labels come
        out no better than chance, which no noise model describes.
    """
    counts = _expected_counts(posterior, observations.codes, observations.shares)
    mass = np.maximum(counts.sum(axis=1, keepdims=True), TINY)
    transition = counts / mass
    transition = np.where(
        transition.sum(axis=1, keepdims=True) > 0.5, transition, np.eye(len(counts))
    )
    if len(counts) == 2 and np.trace(transition) - 1 < _LEAST_INFORMATION:
        return noise
    priors = mass[:, 0] / mass.sum()
    if observations.priors_known:
        priors = noise.known_priors
    return NoiseModel(transition / transition.sum(axis=1, keepdims=True), priors)


def _expected_counts(posterior: Array, codes: Array, weights: Array) -> FloatArray:
    """Return the expected weight of the rows of each true class (row) and label (column)."""
    labels = one_hot(codes, posterior.shape[1])
    return as_numpy((posterior * weights[:, None]).T @ labels)


@dataclass(frozen=True, eq=False)
class _Point:
    """Noise rates with the fitted calibration, their log posterior density and its derivatives."""

    noise: NoiseModel
    density: float
    gradient: FloatArray  # of the log density by the rates, (k,)
    covariance: FloatArray  # inverse of its information, (k, k)
    posterior: Array
    slope: SlopeFit

    @property
    def rates(self) -> FloatArray:
        return np.asarray(1 - np.diag(self.noise.transition))


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """The log posterior density of noise rates, given scores and observed labels."""

    logits: Array
    codes: Array
    share: Array
    observations: Observations
    start: Channel
    prior: RatePrior

    def at(
        self, transition: FloatArray, priors: FloatArray, start: SlopeFit | None = None
    ) -> _Point | None:
        """Evaluate a transition matrix; None if no priors explain the observed proportions."""
        noise = self._noise(transition, priors)
        if noise is None:
            return None
        n = self.observations.n_effective
        proportions = ClassProportions.of(self.codes, self.share, self.observations, noise)
        slope = fit_slope(
            self.logits,
            self.codes,
            self.share,
            noise,
            proportions,
            n,
            start=start,
            tolerance=1e-3,  # the density is flat around its maximum
        )
        scaled = slope.factor * self.logits
        probabilities = class_probabilities(scaled + like(slope.intercepts, scaled))
        if self.observations.priors_known:  # which move the intercepts with the slope
            moved = proportions.intercepts_derivative(probabilities, scaled, self.share)
            scaled = scaled + like(moved, scaled)
        return self._point(noise, probabilities, scaled, slope)

    def scored(self, current: _Point) -> _Point:
        """Return the rates of the largest density for given shares, by Fisher scoring."""
        for _ in range(_MAX_STEPS):
            following = self._after_step(current, current.covariance @ current.gradient)
            if following is None:
                break
            change = np.abs(following.rates - current.rates)
            current = following
            if (change <= _TOLERANCE * np.sqrt(np.diag(current.covariance))).all():
                break
        return current

    def _after_step(self, current: _Point, step: FloatArray) -> _Point | None:
        """Return the point after a step of the rates that raises the density, or None."""
        n = self.observations.n_effective
        shares = shares_of_wrong_labels(current.noise.transition)
        for _ in range(_MAX_HALVINGS + 1):
            rates = np.clip(current.rates + step, _least_rate(n), 1 - _least_rate(n))
            transition = _transition(rates, shares)
            following = self.at(transition, current.noise.known_priors, current.slope)
            if following is not None and following.density > current.density:
                return following
            step = step / 2
        return None

    def with_expected_counts(self, current: _Point) -> _Point:
        """Return the point with shares of wrong labels, and priors, from expected counts."""
        n = self.observations.n_effective
        counts = n * _expected_counts(current.posterior, self.codes, self.share)
        transition = _transition(current.rates, _shrunk_shares(counts))
        priors = counts.sum(axis=1) + 1  # one row more, so that no class is empty
        return self.at(transition, priors / priors.sum(), current.slope) or current

    def _noise(self, transition: FloatArray, priors: FloatArray) -> NoiseModel | None:
        """Return the noise with priors, or None if the rates contradict the proportions.

        Known priors stay. Those of two classes follow from the rates. Those of more classes are
        given: inverting the transition matrix would magnify its errors.
        """
        if self.observations.priors_known:
            priors = self.start.known_priors
        information = float(np.trace(transition)) - 1
        if len(priors) == 2 and information < _LEAST_INFORMATION:
            return None
        if len(priors) > 2 or self.observations.priors_known:
            return NoiseModel(transition, priors)
        observed = sums_by_code(self.codes, self.share, 2)
        # P(label a) = ε of the other class + π_a(1 − ε₊ − ε₋).
        implied = (observed - transition[[1, 0], [0, 1]]) / information
        is_possible = implied.min() >= 1 / (self.observations.n_effective + 1)
        return NoiseModel(transition, implied) if is_possible else None

    def _point(
        self,
        noise: NoiseModel,
        probabilities: Array,
        scaled: Array,
        slope: SlopeFit,
    ) -> _Point:
        """Return the density and its derivatives."""
        n = self.observations.n_effective
        rates = 1 - np.diag(noise.transition)
        precision = self.prior.errors**-2.0
        distance = rates - self.prior.rates
        labels = LabelInformation.of(probabilities, scaled, self.codes, self.share, noise)
        information = labels.with_priors(n)
        gradient = n * labels.rate_gradient - precision * distance
        # At the smallest rate the density falls like an exponential, with this gradient.
        is_least = (rates < 1.001 * _least_rate(n)) & (gradient < 0)  # up to rounding
        k = len(rates)
        information[:k, :k] += np.diag(precision + np.where(is_least, gradient, 0.0) ** 2)
        n_free = k + 1 if self.observations.priors_known else 2 * k  # known priors fix intercepts
        log_prior = -(precision @ distance**2 + np.log(slope.factor) ** 2) / 2
        return _Point(
            noise,
            float(n * labels.log_likelihood + log_prior),
            gradient,
            np.asarray(np.linalg.inv(information[:n_free, :n_free])[:k, :k], dtype=float),
            labels.posterior,
            slope,
        )


def _least_rate(n_effective: float) -> float:
    """Return the smallest noise rate: half of a wrong label among all rows."""
    return 0.5 / n_effective


def _transition(rates: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the transition with these noise rates and shares of the wrong labels."""
    return np.asarray(rates[:, None] * shares + np.diag(1 - rates))


def _shrunk_shares(counts: FloatArray) -> FloatArray:
    """Return the shares of the wrong labels, shrunk towards the structure of largest evidence.

    Parameters
    ----------
    counts : ndarray of shape (k, k)
        Expected number of rows by true class and label.
    """
    k = len(counts)
    wrong = np.where(np.eye(k, dtype=bool), 0.0, counts)
    totals = wrong.sum(axis=1)
    pairs = wrong + wrong.T + (1 - np.eye(k)) / (k - 1)
    equal = (1 - np.eye(k)) / (k - 1)
    structures = [
        (equal, 0),
        (pairs / pairs.sum(axis=1, keepdims=True), k * (k - 1) // 2 - k),
    ]
    best = equal
    largest = -np.inf
    for structure, n_parameters in structures:
        penalty = n_parameters / 2 * np.log(max(float(totals.sum()), 1.0))
        for strength in _STRENGTHS.tolist():
            evidence = _log_evidence(wrong, strength * structure) - penalty
            if evidence > largest:
                largest = evidence
                best = (wrong + strength * structure) / (totals[:, None] + strength)
    return np.asarray(best)


def _log_evidence(counts: FloatArray, pseudo_counts: FloatArray) -> float:
    """Return the log-likelihood of counts under Dirichlet-multinomial rows, up to a constant."""
    possible = pseudo_counts > 0
    entries = gammaln(counts[possible] + pseudo_counts[possible]) - gammaln(pseudo_counts[possible])
    strengths = pseudo_counts.sum(axis=1)
    rows = gammaln(strengths) - gammaln(counts.sum(axis=1) + strengths)
    return float(entries.sum() + rows.sum())
