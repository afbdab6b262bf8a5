r"""Calibration: log-odds of the TRUE class that are linear in leave-one-out scores.

Within a true class the scores of new rows are close to Gaussian with a common covariance (the
paper's Theorem), so the log-odds of the true class are linear in the score s,

.. math:: \log\frac{P(y = a \mid s)}{P(y = 0 \mid s)} = \tau\, w_a^\top s + b_a.

Leave-one-out scores have the distribution of new rows' scores, and do not depend on their own row's
label. Each part of the model is fitted in its own way:

* The directions w are those of a Gaussian mixture of the scores, fitted by EM. The observed label
  ỹᵢ enters as a prior P(y | ỹᵢ) of each row.
* The slope τ maximises the likelihood of the observed labels, Σ log Σ_a P(ỹᵢ | a) P(a | sᵢ), with a
  weak prior around the mixture's own slope, τ = 1. The mixture's slope is biased if scores are not
  Gaussian (heavy tails, skewness, unequal variances).
* The intercepts b make the mean probability of each class its prior. The labels determine the
  priors more precisely than a threshold fitted to the scores, also under instance-dependent noise.
  If the classes are well separated, a prior that is off by a few rows must not move the threshold
  into a class: it stays in the gap.

A covariance for each class, which adds a quadratic term, was tried: it did not improve the
likelihood of the labels on any data set.

Scores may be arrays of any namespace and device. The parameters of a calibration are NumPy arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from array_api_compat import device
from scipy.optimize import brentq, minimize_scalar
from scipy.special import chdtri

from unflip._utils.arrays import (
    TINY,
    as_numpy,
    at_least,
    expit,
    like,
    namespace,
    pick,
    row_products,
    sums_by_code,
    times_table,
)
from unflip._utils.typing import Array, FloatArray
from unflip.calibration.binning import rows_to_fit
from unflip.calibration.coupling import Coupling
from unflip.calibration.intercepts import (
    MAX_ITERATIONS,
    ClassProportions,
    class_probabilities,
)
from unflip.calibration.mixture import (
    EM_TOLERANCE,
    ScoreMixture,
    has_converged,
    label_log_odds,
    mixture_directions,
    mixture_logits,
    score_weight,
    with_ones,
)
from unflip.calibration.observations import Observations
from unflip.calibration.slope import LOG_SLOPE_STEP, SlopeFit, fit_slope
from unflip.labels.noise import Channel

# Rows for each of the (k − 1)² numbers of the directions, from which on leaving rows out changed
# expected accuracies by less than 0.0005.
_ROWS_PER_DIRECTION = 200
#: Smallest slope, as log-odds per standard deviation of the scores. Scores without signal keep
#: their order, and their probabilities are close to the priors.
SMALLEST_SLOPE = 1e-3
#: A standard deviation below this share of the scores' magnitude is rounding error.
ROUNDING = 1e3 * np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class LogOddsModel:
    """Log-odds of each true class against the first, linear in the scores.

    Attributes
    ----------
    slopes : ndarray of shape (r, k)
        One column per class, the first 0.
    intercepts : ndarray of shape (k,)
        One per class, the first 0.
    """

    slopes: FloatArray
    intercepts: FloatArray

    def log_odds(self, scores: Array) -> Array:
        """Return the log-odds of each class against the first, (n, k), for scores (n, r)."""
        return times_table(scores, self.slopes) + like(self.intercepts, scores)

    def probabilities(self, scores: Array) -> Array:
        """Return P(true class | score), (n, k)."""
        return class_probabilities(self.log_odds(scores))

    def with_priors(self, priors: FloatArray, trained: FloatArray) -> LogOddsModel:
        """Return the model for rows with other class proportions than the `trained` ones."""
        shift = np.log(priors / trained)
        return LogOddsModel(self.slopes, self.intercepts + shift - shift[0])


@dataclass(frozen=True, eq=False)
class Calibration:
    """A model of the log-odds, and the log-odds of the rows that it was fitted to.

    Attributes
    ----------
    model : LogOddsModel
        The model, for new rows.
    logits : array of shape (n, k)
        Log-odds of the training rows without intercepts. For few rows and more than two classes,
        the slopes are those of leave-one-out fits.
    intercepts : ndarray of shape (k,)
        Intercepts that belong to `logits`.
    """

    model: LogOddsModel
    logits: Array
    intercepts: FloatArray

    @property
    def log_odds(self) -> Array:
        """Log-odds of each class against the first, (n, k)."""
        return self.logits + like(self.intercepts, self.logits)

    @property
    def probabilities(self) -> Array:
        """P(true class | score), (n, k)."""
        return class_probabilities(self.log_odds)

    def posterior(self, codes: Array, noise: Channel) -> Array:
        """Return P(true class | score, observed label), (n, k)."""
        return label_posterior(self.probabilities, codes, noise)

    def shrunk(self, share: float, priors: FloatArray) -> Calibration:
        """Return the calibration with log-odds of the rows shrunk towards those of the priors.

        The order of the scores is kept.
        """
        factor = self.shrinkage(share)
        neutral = np.log(priors / priors[0])
        intercepts = neutral + factor * (self.intercepts - neutral)
        return Calibration(self.model, factor * self.logits, intercepts)

    def shrinkage(self, share: float) -> float:
        """Return the factor by which `shrunk` scales log-odds: the share, but never 0."""
        return max(share, self._smallest_factor)

    def flattened(self, priors: FloatArray, spread: float) -> Calibration:
        """Return the calibration shrunk to the priors almost entirely, for new rows too.

        `spread` is the standard deviation of the scores relative to that of their targets. Fitted
        scores of the same rows may be as large as the targets.
        """
        shrunk = self.shrunk(0.0, priors)
        neutral = np.log(priors / priors[0])
        factor = self._smallest_factor * min(spread, 1.0)
        intercepts = neutral + factor * (self.model.intercepts - neutral)
        flat = replace(shrunk.model, slopes=factor * self.model.slopes, intercepts=intercepts)
        return replace(shrunk, model=flat)

    @property
    def _smallest_factor(self) -> float:
        """Factor of the log-odds that keeps their order, but hardly any of their size."""
        xp = namespace(self.logits)
        widest = xp.max(xp.max(self.logits, axis=1) - xp.min(self.logits, axis=1))
        return SMALLEST_SLOPE / max(float(widest), 1.0)


def label_posterior(probabilities: Array, codes: Array, noise: Channel) -> Array:
    """Return P(true class | score, label) ∝ P(true class | score)·P(label | true class), (n, k)."""
    # A probability of 0 would leave no class to a row whose label excludes all others.
    joint = at_least(probabilities, TINY) * pick(noise.transition.T, codes)
    return joint / namespace(joint).sum(joint, axis=1, keepdims=True)


def calibrate(
    scores: Array, observations: Observations, noise: Channel, *, coupling: Coupling | None = None
) -> Calibration:
    """Fit the log-odds of the true class to corrected leave-one-out scores.

    For more than two classes the directions have (k − 1)² numbers, which overfit small samples. So
    the slope is then fitted to leave-one-out log-odds, by directions that were fitted without the
    row and its label, in closed form. These are also the log-odds of the rows. From 200 rows for
    each of these numbers on this makes no difference: it moved expected accuracies by less than
    0.0005.

    Parameters
    ----------
    scores : array of shape (n, r)
        Scores of each row (one for two classes, k − 1 contrasts for k), corrected for leakage of
        the row's own label.
    observations : Observations
        Observed labels, weights and effective sample size. The variance within a class is at least
        1/n_effective of the total, so that a few rows which happen to be separable do not give
        certainty.
    noise : Channel
        Noise with priors.
    coupling : Coupling, optional
        How the label of each row moves the scores of the others; without it log-odds of many
        classes are underconfident.
    """
    codes = observations.codes
    share = observations.shares
    n_effective = observations.n_effective
    whitening = _Whitening.of(scores, share)
    if not whitening.rank:
        return _uninformative(scores, noise)
    standard = whitening(scores)
    proportions = ClassProportions.of(codes, share, observations, noise)
    n_directions = (noise.n_classes - 1) ** 2
    if noise.n_classes > 2 and round(n_effective) < _ROWS_PER_DIRECTION * n_directions:
        return _calibrate_small_sample(
            whitening, standard, observations, noise, proportions, coupling
        )
    fitted, fitted_codes, fitted_share = rows_to_fit(standard, codes, share, noise)
    directions, middle = mixture_directions(fitted, fitted_codes, fitted_share, noise, n_effective)
    if scores.shape[1] == 1 and directions[0, 1] < SMALLEST_SLOPE:  # log-odds rise with the score
        directions = np.array([[0.0, SMALLEST_SLOPE]])
        middle = np.zeros(2)
    logits = mixture_logits(fitted, directions, middle)
    slope = fit_slope(logits, fitted_codes, fitted_share, noise, proportions, n_effective)
    directions = slope.factor * directions
    middle = slope.factor * middle
    model = whitening.inverted(LogOddsModel(directions, slope.intercepts - middle))
    return Calibration(model, mixture_logits(standard, directions, middle), slope.intercepts)


def recalibration(
    logits: Array, observations: Observations, noise: Channel, *, tolerance: float = 1e-5
) -> Calibration:
    """Fit slope and intercepts alone, to log-odds of any model or under another noise.

    Parameters
    ----------
    logits : array of shape (n, k)
        Log-odds of the rows.
    observations, noise
        As in `calibrate`.
    tolerance : float
        Last step of the log-slope and of the intercepts.
    """
    slope = fit_slope(
        logits,
        observations.codes,
        observations.shares,
        noise,
        ClassProportions.of(observations.codes, observations.shares, observations, noise),
        observations.n_effective,
        # The log-odds may include intercepts already.
        start=SlopeFit(1.0, np.zeros(noise.n_classes)),
        tolerance=tolerance,
    )
    identity = np.eye(noise.n_classes)
    model = LogOddsModel(slope.factor * (identity - identity[:, :1]), slope.intercepts)
    return Calibration(model, slope.factor * (logits - logits[:, :1]), slope.intercepts)


def recalibrated(logits: Array, observations: Observations, noise: Channel) -> Array:
    """Return P(true class | row), (n, k), of a rough `recalibration`.

    It serves differences between noise models, which need not be exact.
    """
    return recalibration(logits, observations, noise, tolerance=1e-2).probabilities


def _uninformative(scores: Array, noise: Channel) -> Calibration:
    """Return the log-odds of the class priors, for scores without variance."""
    n_classes = noise.n_classes
    log_priors = np.log(noise.known_priors)
    model = LogOddsModel(np.zeros((scores.shape[1], n_classes)), log_priors - log_priors[0])
    xp = namespace(scores)
    logits = xp.zeros((scores.shape[0], n_classes), dtype=xp.float64, device=device(scores))
    return Calibration(model, logits, model.intercepts)


def _calibrate_small_sample(
    whitening: _Whitening,
    standard: Array,
    observations: Observations,
    noise: Channel,
    proportions: ClassProportions,
    coupling: Coupling | None,
) -> Calibration:
    """Calibrate whitened scores of more than two classes by leave-one-out directions."""
    codes = observations.codes
    share = observations.shares
    n_effective = observations.n_effective
    mixture = ScoreMixture.fit(standard, codes, share, noise, n_effective)
    if coupling is not None:
        coupling = replace(coupling, own=coupling.own @ like(whitening.basis, standard))
    left_out = mixture.left_out_logits(standard, share, coupling)
    slope = fit_slope(left_out, codes, share, noise, proportions, n_effective)
    directions = slope.factor * mixture.directions
    middle = slope.factor * mixture.middle
    logits = mixture_logits(standard, directions, middle)
    intercepts = proportions.intercepts(logits, share, slope.intercepts)
    model = whitening.inverted(LogOddsModel(directions, intercepts - middle))
    return Calibration(model, slope.factor * left_out, slope.intercepts)


def likeliest_priors(scores: Array, observations: Observations, noise: Channel) -> Channel:
    """Return the noise with class proportions estimated from scores and labels together.

    The priors of `noise` explain the observed proportions, with an error that inverting the
    transition matrix magnifies. If the scores separate the classes, the proportions of the Gaussian
    mixture have a smaller error. But they assume more. So if they deviate from the observed
    proportions by more than chance (χ² above its 80% quantile), their weight decreases.

    Parameters are those of `calibrate`.
    """
    codes = observations.codes
    share = observations.shares
    n_effective = observations.n_effective
    whitening = _Whitening.of(scores, share)
    if not whitening.rank:
        return noise
    priors = _mixture_priors(whitening(scores), codes, share, noise, n_effective)
    observed = sums_by_code(codes, share, noise.n_classes)
    misfit = _chi_square(priors, noise.transition, observed, n_effective)
    usual = float(chdtri(noise.n_classes - 1, 0.2))  # exceeded by one draw in five
    trust = min(1.0, usual / max(misfit, TINY)) ** 2
    return noise.with_priors(trust * priors + (1 - trust) * noise.known_priors)


def _mixture_priors(
    standard: Array, codes: Array, share: Array, noise: Channel, n_effective: float
) -> FloatArray:
    """Return the proportions of the Gaussian mixture by EM, with one row added to each class."""
    member = pick(noise.posterior, codes)
    priors = noise.known_priors
    with np.errstate(divide="ignore"):  # an impossible label has log-probability −∞
        label_given_true = pick(np.log(noise.transition.T), codes)
    scores = with_ones(standard)
    temper = score_weight(noise.n_classes, n_effective)
    for _ in range(MAX_ITERATIONS):
        mixture = ScoreMixture.of(scores, member, share, n_effective)
        previous = priors
        priors = (n_effective * mixture.mass + 1) / (n_effective + noise.n_classes)
        if np.abs(priors - previous).max() <= EM_TOLERANCE:
            break
        logits = temper * mixture.logits(scores) + like(np.log(priors), scores)
        member = class_probabilities(logits + label_given_true)
    return priors


def _chi_square(
    priors: FloatArray, transition: FloatArray, observed: FloatArray, n_effective: float
) -> float:
    """Return χ² of the observed proportions given these priors; label noise alone is random."""
    expected = priors @ transition
    covariance = np.diag(expected) - (transition.T * priors) @ transition
    floor = np.eye(len(priors)) / n_effective  # without noise, one row may still differ
    missed = observed - expected
    return float(n_effective * missed @ np.linalg.solve(covariance + floor, missed))


def symmetric_slope(scores: Array, observations: Observations, noise: Channel) -> float:
    """Return the log-odds of two classes per unit of a score (n,), if they are 0 at a score of 0.

    The class means are ±m, as in the paper's model. The slope has no prior. Other parameters are
    those of `calibrate`.
    """
    share = observations.shares
    spread = float(share @ scores**2) ** 0.5 or 1.0
    standard = scores / spread
    by_label = label_log_odds(observations.codes, noise)
    slope = 0.0
    for _ in range(MAX_ITERATIONS):
        signs = 2 * expit(by_label + slope * standard) - 1
        mean = float(share @ (signs * standard))
        previous = slope
        slope = 2 * mean / max(1 - mean**2, 1 / observations.n_effective)
        if has_converged(slope, previous):
            break
    return max(slope, SMALLEST_SLOPE) / spread


def common_slope(scores: Array, observations: Observations, noise: Channel) -> float:
    """Return the log-odds of k classes per unit of their scores, (n, k), for argmax predictions.

    It maximises the likelihood of the observed labels. Other parameters are those of
    `calibrate`.
    """
    xp = namespace(scores)
    share = observations.shares
    label_given_true = pick(noise.transition.T, observations.codes)
    leads = scores - xp.mean(scores, axis=1, keepdims=True)
    spread = float(share @ xp.sum(leads**2, axis=1)) ** 0.5 or 1.0

    def cost(log_slope: float) -> float:
        probability = class_probabilities(float(np.exp(log_slope)) / spread * leads)
        observed = row_products(probability, label_given_true)
        return -float(share @ xp.log(at_least(observed, TINY)))

    def descent(log_slope: float) -> float:
        logits = float(np.exp(log_slope)) / spread * leads
        probability = class_probabilities(logits)
        joint = probability * label_given_true
        observed = xp.sum(joint, axis=1)
        gain = joint - probability * observed[:, None]
        return float(share @ (xp.sum(gain * logits, axis=1) / at_least(observed, TINY)))

    largest = -np.log(SMALLEST_SLOPE)
    best = float(minimize_scalar(cost, bounds=(-largest, largest), method="bounded").x)
    low = max(best - LOG_SLOPE_STEP, -largest)
    high = min(best + LOG_SLOPE_STEP, largest)
    if descent(low) <= 0:
        best = low
    elif descent(high) >= 0:
        best = high
    else:  # minimisation finds half of the digits, the root of the derivative finds all
        best = float(brentq(descent, low, high, xtol=1e-13))
    return float(np.exp(best) / spread)


@dataclass(frozen=True, eq=False)
class _Whitening:
    """Linear map to uncorrelated scores of variance 1; directions without variance are dropped."""

    mean: FloatArray
    basis: FloatArray  # (r, rank)

    @classmethod
    def of(cls, scores: Array, share: Array) -> _Whitening:
        xp = namespace(scores)
        mean = share @ scores
        centred = scores - mean
        variances, vectors = np.linalg.eigh(as_numpy((centred.T * share) @ centred))
        smallest = (ROUNDING * float(xp.max(xp.abs(scores)))) ** 2
        kept = variances > max(smallest, ROUNDING * variances[-1])
        return cls(as_numpy(mean), vectors[:, kept] / np.sqrt(variances[kept]))

    @property
    def rank(self) -> int:
        return int(self.basis.shape[1])

    def __call__(self, scores: Array) -> Array:
        return times_table(scores - like(self.mean, scores), self.basis)

    def inverted(self, model: LogOddsModel) -> LogOddsModel:
        """Return a model of whitened scores as a model of the scores themselves."""
        slopes = self.basis @ model.slopes
        return LogOddsModel(slopes, model.intercepts - self.mean @ slopes)
