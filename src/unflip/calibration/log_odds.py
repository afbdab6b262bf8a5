r"""From scores to probabilities of the TRUE class: log-odds that are linear in leave-one-out scores.

Within a true class the scores of new rows are close to Gaussian with a common covariance (the
paper's Theorem), so the log-odds of the true class are linear in the score s,

.. math:: \log\frac{P(y = a \mid s)}{P(y = 0 \mid s)} = \tau\, w_a^\top s + b_a.

Leave-one-out scores have the law of new rows' scores and do not see their own row's label, so each
part has a source:

* the directions w by the shape of the scores: maximum likelihood of the Gaussian mixture, by EM, in
  which the observed label ỹᵢ acts as a prior P(y | ỹᵢ) of its own for each row;
* the steepness τ by the labels: where scores are not Gaussian the mixture is led astray (heavy
  tails, skew, unequal variances), so τ maximises the likelihood of the observed labels, Σ log Σ_a
  P(ỹᵢ | a) P(a | sᵢ), with a weak prior around the mixture's own 1;
* the intercepts b by the class proportions: the mean probability of a class must be its prior. Labels
  fix these more firmly than any threshold that is fitted to the scores, also where flips depend on
  the row. But a few rows are not worth a threshold in the midst of a class: where the scores fall
  apart it stays in the gap.

Variances of each class, which add a quadratic term, were tried: labels did not prefer them on any
data set.

Scores, and whatever is as long as they are, may be of any namespace and device; the numbers of a
read-out are NumPy's.
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
    taken,
    times_table,
)
from unflip._utils.typing import Array, FloatArray
from unflip.calibration.binning import MANY, binned, random_rows
from unflip.calibration.coupling import Coupling
from unflip.calibration.intercepts import ClassProportions, class_probabilities
from unflip.calibration.mixture import (
    MAX_ROUNDS,
    ScoreMixture,
    directions_by_shape,
    label_log_odds,
    settled,
    shape_logits,
    with_one,
)
from unflip.calibration.observations import Observations
from unflip.calibration.slope import STEP, fit_slope
from unflip.labels.noise import Channel

_PRIOR_TOLERANCE = 1e-5
_ROWS_PER_SLOPE = 200
_ENOUGH_ROWS = 2**17  # for slopes that are as close as they need be
_ROUGH = 1e-2  # the last step under another noise model
_UNUSUAL = 0.2  # share of draws whose χ² is beyond the usual
#: Log-odds per unit of the scores' own spread are at least this: scores that show no signal keep their order and a
#: probability close to the prior.
SMALLEST_SLOPE = 1e-3
#: A spread below this share of the scores' size is rounding error.
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
    slope_error : float
        Standard error of log τ, by which all slopes are in doubt together.
    """

    slopes: FloatArray
    intercepts: FloatArray
    slope_error: float = 0.0

    def log_odds(self, scores: Array) -> Array:
        """Log-odds of each class against the first, (n, k), for scores of shape (n, r)."""
        return times_table(scores, self.slopes) + like(self.intercepts, scores)

    def probabilities(self, scores: Array) -> Array:
        """P(true class | score), (n, k)."""
        return class_probabilities(self.log_odds(scores))

    def under(self, priors: FloatArray, trained: FloatArray) -> LogOddsModel:
        """Return the read-out for rows whose classes have other proportions than those it was fitted to."""
        shift = np.log(priors / trained)
        return LogOddsModel(self.slopes, self.intercepts + shift - shift[0], self.slope_error)


@dataclass(frozen=True, eq=False)
class Calibration:
    """A read-out, and what it says of the rows that it was fitted to.

    Attributes
    ----------
    model : LogOddsModel
        For new rows.
    logits : array of shape (n, k)
        Log-odds of the rows but for the intercepts, by slopes in which their own labels have no part.
    intercepts : ndarray of shape (k,)
        The intercepts that go with these.
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
        """P(true class | score, observed label), (n, k)."""
        return label_posterior(self.probabilities, codes, noise)

    def with_slope_moved(self, errors: float, priors: FloatArray) -> Calibration:
        """Return what log-odds would say whose part beyond the priors is steeper by so many standard errors."""
        return self._scaled(float(np.exp(errors * self.model.slope_error)), priors)

    def shrunk(self, share: float, priors: FloatArray) -> Calibration:
        """Return log-odds of which a share of what is beyond the priors is believed; the order of scores is kept.

        Anything from the priors to what was fitted is within the standard error of the steepness.
        """
        kept = max(share, self._least)
        error = float(np.hypot(self.model.slope_error, np.log(kept)))
        return replace(self._scaled(kept, priors), model=replace(self.model, slope_error=error))

    def without_signal(self, priors: FloatArray, spread: float) -> Calibration:
        """Return a reading of which nothing is believed, of new rows either.

        `spread` is that of the scores relative to their targets: fitted scores of the same rows may
        be as large.
        """
        believed, neutral = self.shrunk(0.0, priors), np.log(priors / priors[0])
        factor = self._least * min(spread, 1.0)
        intercepts = neutral + factor * (self.model.intercepts - neutral)
        flat = replace(believed.model, slopes=factor * self.model.slopes, intercepts=intercepts)
        return replace(believed, model=flat)

    @property
    def _least(self) -> float:
        """Factor that keeps the order of log-odds, and hardly more."""
        xp = namespace(self.logits)
        widest = xp.max(xp.max(self.logits, axis=1) - xp.min(self.logits, axis=1))
        return SMALLEST_SLOPE / max(float(widest), 1.0)

    def _scaled(self, factor: float, priors: FloatArray) -> Calibration:
        """Scale the part of the log-odds that goes beyond the priors."""
        neutral = np.log(priors / priors[0])
        return Calibration(
            self.model, factor * self.logits, neutral + factor * (self.intercepts - neutral)
        )


def label_posterior(probabilities: Array, codes: Array, noise: Channel) -> Array:
    """P(true class | row, observed label) ∝ P(true class | row)·P(observed label | true class), (n, k)."""
    # However sure the score is, a label that its class cannot have is believed: no row without a
    # class.
    joint = at_least(probabilities, TINY) * pick(noise.transition.T, codes)
    return joint / namespace(joint).sum(joint, axis=1, keepdims=True)


def calibrate(
    scores: Array, observations: Observations, noise: Channel, *, coupling: Coupling | None = None
) -> Calibration:
    """Fit the log-odds of the true class to corrected leave-one-out scores.

    Of more than two classes the directions have (k − 1)² numbers, which overfit small samples. So
    the slope is fitted to log-odds of each row by directions that were fitted without the row and
    its label, in closed form, and these are the log-odds of the rows. From 200 rows for each of
    these numbers on that makes no difference: it moved expected accuracies by less than 0.0005.

    Parameters
    ----------
    scores : array of shape (n, r)
        Scores of each row (one for two classes, k − 1 contrasts for k), corrected for leakage of
        the row's own label.
    observations : Observations
        Observed labels, weights and effective sample size. The variance within a class is taken to
        be at least a share 1/n_effective of the total, so that a few rows which happen to be
        separable do not give certainty.
    noise : Channel
        With priors.
    coupling : Coupling, optional
        How the label of each row moves the scores of the others; without it log-odds of many
        classes are underconfident.
    """
    codes, share, n_rows = observations.codes, observations.shares, observations.n_effective
    whitening = _Whitening.of(scores, share)
    if not whitening.rank:
        return _uninformative(scores, noise)
    standard = whitening(scores)
    proportions = _proportions(observations, noise)
    if noise.n_classes > 2 and round(n_rows) < _ROWS_PER_SLOPE * (noise.n_classes - 1) ** 2:
        return _calibrate_small_sample(
            whitening, standard, observations, noise, proportions, coupling
        )
    fitted, fitted_codes, fitted_share = _to_fit(standard, codes, share, noise)
    directions, middle = directions_by_shape(fitted, fitted_codes, fitted_share, noise, 1 / n_rows)
    if scores.shape[1] == 1 and directions[0, 1] < SMALLEST_SLOPE:  # log-odds rise with the score
        directions, middle = np.array([[0.0, SMALLEST_SLOPE]]), np.zeros(2)
    logits = shape_logits(fitted, directions, middle)
    slope = fit_slope(logits, fitted_codes, fitted_share, noise, proportions, n_rows)
    directions, middle = slope.factor * directions, slope.factor * middle
    model = whitening.undone(LogOddsModel(directions, slope.intercepts - middle, slope.error))
    return Calibration(model, shape_logits(standard, directions, middle), slope.intercepts)


def recalibrated(logits: Array, observations: Observations, noise: Channel) -> Array:
    """P(true class | row), (n, k), under another noise model: the logits with another slope and intercepts.

    Parameters
    ----------
    logits : array of shape (n, k)
        Log-odds of the rows.
    observations, noise
        As in `calibrate`.
    """
    proportions = _proportions(observations, noise)
    start = np.zeros(noise.n_classes)  # log-odds have intercepts of their own
    slope = fit_slope(
        logits,
        observations.codes,
        observations.shares,
        noise,
        proportions,
        observations.n_effective,
        start=start,
        tolerance=_ROUGH,
    )
    return class_probabilities(slope.factor * logits + like(slope.intercepts, logits))


def _uninformative(scores: Array, noise: Channel) -> Calibration:
    """Return log-odds of the class priors, for scores without spread."""
    log_priors = np.log(noise.known_priors)
    slopes = np.zeros((scores.shape[1], noise.n_classes))
    model = LogOddsModel(slopes, log_priors - log_priors[0])
    return Calibration(model, _zeros(scores, noise.n_classes), model.intercepts)


def _proportions(observations: Observations, noise: Channel) -> ClassProportions:
    if observations.priors_known:
        return ClassProportions(noise.known_priors, observations.n_effective)
    return ClassProportions.from_labels(
        observations.codes, observations.shares, noise, observations.n_effective
    )


def _to_fit(
    standard: Array, codes: Array, share: Array, noise: Channel
) -> tuple[Array, Array, Array]:
    """Return what to fit to: the rows, bins of very many, or a random sample of very many."""
    n_rows = standard.shape[0]
    if n_rows >= MANY and noise.transition.shape == (2, 2) and standard.shape[1] == 1:
        values, labels, weights = binned(standard[:, 0], codes, share)
        return values[:, None], labels, weights
    if n_rows <= _ENOUGH_ROWS:
        return standard, codes, share
    sample = like(random_rows(n_rows, _ENOUGH_ROWS), standard)
    weights = taken(share, sample)
    return taken(standard, sample), taken(codes, sample), weights / namespace(weights).sum(weights)


def _zeros(rows: Array, n_columns: int) -> Array:
    xp = namespace(rows)
    return xp.zeros((rows.shape[0], n_columns), dtype=xp.float64, device=device(rows))


def _calibrate_small_sample(
    whitening: _Whitening,
    standard: Array,
    observations: Observations,
    noise: Channel,
    proportions: ClassProportions,
    coupling: Coupling | None,
) -> Calibration:
    """Calibrate whitened scores of more than two classes by directions fitted without each row."""
    codes, share, n_rows = observations.codes, observations.shares, observations.n_effective
    mixture = ScoreMixture.fit(standard, codes, share, noise, 1 / n_rows)
    if coupling is not None:
        coupling = replace(coupling, own=coupling.own @ like(whitening.basis, standard))
    left_out = mixture.left_out_logits(standard, share, coupling)
    slope = fit_slope(left_out, codes, share, noise, proportions, n_rows)
    directions, middle = slope.factor * mixture.directions, slope.factor * mixture.middle
    logits = shape_logits(standard, directions, middle)
    intercepts = proportions.intercepts(logits, share, slope.intercepts)
    model = whitening.undone(LogOddsModel(directions, intercepts - middle, slope.error))
    return Calibration(model, slope.factor * left_out, slope.intercepts)


def likeliest_priors(scores: Array, observations: Observations, noise: Channel) -> Channel:
    """Return the noise with the class proportions that the shape of the scores and the labels say together.

    The priors given are those that explain the observed proportions, with an error that undoing the
    flips magnifies. Scores that tell the classes apart narrow it: the Gaussian mixture's
    proportions are free. But counting labels assumes less, so where the mixture's proportions miss
    the observed ones by more than chance (χ² beyond what one draw in five has), they count for
    less.

    Parameters are those of `calibrate`.
    """
    codes, share, n_rows = observations.codes, observations.shares, observations.n_effective
    whitening = _Whitening.of(scores, share)
    if not whitening.rank:
        return noise
    found = _mixture_priors(whitening(scores), codes, share, noise, n_rows)
    observed = sums_by_code(codes, share, noise.n_classes)
    misfit = _misfit(found, noise.transition, observed, n_rows)
    usual = float(chdtri(noise.n_classes - 1, _UNUSUAL))
    trust = min(1.0, usual / max(misfit, TINY)) ** 2
    return noise.with_priors(trust * found + (1 - trust) * noise.known_priors)


def _mixture_priors(
    standard: Array, codes: Array, share: Array, noise: Channel, n_rows: float
) -> FloatArray:
    """ClassProportions of the Gaussian mixture, by EM; one row of each class is added, so that none is empty."""
    member = pick(noise.posterior, codes)
    priors, k = noise.known_priors, noise.n_classes
    with np.errstate(divide="ignore"):  # the log of 0 is −∞: impossible
        label_given_true = pick(np.log(noise.transition.T), codes)
    scores = with_one(standard)
    for _ in range(MAX_ROUNDS):
        mixture = ScoreMixture.of(scores, member, share, 1 / n_rows)
        previous, priors = priors, (n_rows * mixture.mass + 1) / (n_rows + k)
        if np.abs(priors - previous).max() <= _PRIOR_TOLERANCE:
            break
        member = class_probabilities(label_given_true + mixture.logits(scores, np.log(priors)))
    return priors


def _misfit(
    priors: FloatArray, transition: FloatArray, observed: FloatArray, n_rows: float
) -> float:
    """χ² of the observed proportions, of which flips alone are random."""
    expected = priors @ transition
    covariance = np.diag(expected) - (transition.T * priors) @ transition
    floor = np.eye(len(priors)) / n_rows  # where nothing is flipped, one row may differ
    return float(
        n_rows * (observed - expected) @ np.linalg.solve(covariance + floor, observed - expected)
    )


def symmetric_slope(scores: Array, observations: Observations, noise: Channel) -> float:
    """Log-odds of two classes per unit of a score of shape (n,), if they change sign where the score does.

    The class means are ±m, as in the paper's model, without a prior. Other parameters are those of
    `calibrate`.
    """
    codes, share, n_rows = observations.codes, observations.shares, observations.n_effective
    spread = float(share @ scores**2) ** 0.5 or 1.0
    standard = scores / spread
    by_label = label_log_odds(codes, noise)
    slope = 0.0
    for _ in range(MAX_ROUNDS):
        signs = 2 * expit(by_label + slope * standard) - 1
        mean = float(share @ (signs * standard))
        previous, slope = slope, 2 * mean / max(1 - mean**2, 1 / n_rows)
        if settled(slope, previous):
            break
    return max(slope, SMALLEST_SLOPE) / spread


def common_slope(scores: Array, observations: Observations, noise: Channel) -> float:
    """Log-odds of k classes per unit of their scores, (n, k), if the largest score is always the likeliest class.

    It maximises the likelihood of the observed labels. Other parameters are those of
    `calibrate`.
    """
    xp, share = namespace(scores), observations.shares
    label_given_true = pick(noise.transition.T, observations.codes)
    leads = scores - xp.mean(scores, axis=1, keepdims=True)
    spread = float(share @ xp.sum(leads**2, axis=1)) ** 0.5 or 1.0

    def cost(log_slope: float) -> float:
        observed = row_products(
            class_probabilities(float(np.exp(log_slope)) / spread * leads), label_given_true
        )
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
    low, high = max(best - STEP, -largest), min(best + STEP, largest)
    if descent(low) <= 0:
        best = low
    elif descent(high) >= 0:
        best = high
    else:  # a minimum is known to half the digits, the root of a derivative to all
        best = float(brentq(descent, low, high, xtol=1e-13))
    return float(np.exp(best) / spread)


@dataclass(frozen=True, eq=False)
class _Whitening:
    """Scores in coordinates in which they are uncorrelated with variance 1; directions without spread are dropped."""

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

    def undone(self, model: LogOddsModel) -> LogOddsModel:
        """Return a read-out of whitened scores as one of the scores themselves."""
        slopes = self.basis @ model.slopes
        return LogOddsModel(slopes, model.intercepts - self.mean @ slopes, model.slope_error)
