"""Noise rates by the likelihood of noisy labels, given out-of-sample scores of any model.

Noise is assumed to depend on the class alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.arrays import TINY, sums_by_code
from unflip._utils.typing import FloatArray
from unflip.calibration.likeliest_noise import (
    RatePrior,
    expected_noise,
    is_determined,
    likeliest_noise,
    transition_errors,
)
from unflip.calibration.log_odds import ROUNDING, label_posterior, recalibrated
from unflip.calibration.observations import Observations
from unflip.estimation.anchors import (
    NO_SIGNAL,
    NOT_IDENTIFIABLE,
    anchor_rates,
    consistent_noise,
    uninformative_noise,
)
from unflip.estimation.priors_constraint import constrain_by_priors
from unflip.labels.noise import NoiseModel

# Estimates of the noise rates from scores after the first, each from the result of the one before.
_MAX_REFITS = 2


@dataclass(frozen=True, eq=False)
class ScoreRates:
    """Noise rates from scores and labels.

    Attributes
    ----------
    noise : NoiseModel
        Noise model with priors, for the calibration of the scores.
    reported : NoiseModel
        Noise model of the labels themselves, by expected counts.
    errors : ndarray of shape (k, k)
        Standard errors of the transition matrix.
    covariance : ndarray of shape (k, k)
        Covariance of the noise rates of the classes.
    source : str
        "label likelihood", or "no signal" if nothing was estimated.
    assumption : str
        What was assumed rather than estimated; empty if nothing was.
    """

    noise: NoiseModel
    reported: NoiseModel
    errors: FloatArray
    covariance: FloatArray
    source: str
    assumption: str


def log_scores_of(pred_probs: FloatArray) -> FloatArray:
    """Return the logarithms of probabilities, (n, k), floored."""
    # A probability of 0 would exclude a class for certain.
    return np.asarray(np.log(np.maximum(pred_probs, 1 / (10 * len(pred_probs)))))


def score_association(log_scores: FloatArray, observations: Observations) -> float:
    """Return by how many standard errors scores agree with the labels beyond chance.

    If labels are independent of the scores, the score of the label has the mean and the variance of
    a class drawn from the observed proportions. Scores that are the same for all rows agree with
    nothing.
    """
    codes = observations.codes
    share = observations.shares
    observed = sums_by_code(codes, share, log_scores.shape[1])
    own = log_scores[np.arange(len(codes)), codes]
    mean = log_scores @ observed
    variance = float(share @ ((log_scores - mean[:, None]) ** 2 @ observed))
    if np.abs(log_scores - log_scores[0]).max() <= ROUNDING * np.abs(log_scores).max():
        return 0.0
    error = np.sqrt(max(variance / observations.n_effective, TINY))
    return float(share @ (own - mean) / error)


def rates_from_scores(
    scores: FloatArray,
    logits: FloatArray,
    observations: Observations,
    priors: ArrayLike | None,
    *,
    has_signal: bool = True,
) -> ScoreRates:
    """Estimate the noise rates by the likelihood of the labels, given out-of-sample scores.

    The search starts from high-confidence rows (`unflip.estimation.anchors`).

    Parameters
    ----------
    scores : ndarray of shape (n, k)
        Scores that rank the rows by their confidence in each class.
    logits : ndarray of shape (n, k)
        Log-odds of the classes, up to a common slope and intercepts.
    observations : Observations
        Observed labels.
    priors : array-like of shape (k,), optional
        Class priors, if known.
    has_signal : bool
        Whether the scores predict the labels better than chance. If not, nothing is estimated.
    """
    codes = observations.codes
    observed = sums_by_code(codes, observations.shares, scores.shape[1])
    rough = anchor_rates(scores, codes, observations.weights)
    start = consistent_noise(rough.transition, observed, is_sure=True)
    if not has_signal:
        start = uninformative_noise(observed)
    errors = rough.errors
    if priors is not None:
        start, errors = constrain_by_priors(
            start, errors, priors, observed, observations.n_effective
        )
    if not has_signal:
        covariance = np.diag(np.diag(errors) ** 2)
        return ScoreRates(start, start, errors, covariance, "no signal", NO_SIGNAL)
    prior = RatePrior.of(start, errors)
    likeliest = likeliest_noise(logits, observations, start, prior)
    for _ in range(_MAX_REFITS):  # shares of wrong labels and priors follow from the rates before
        likeliest = likeliest_noise(logits, observations, likeliest.noise, prior)
    noise = likeliest.noise
    covariance = likeliest.covariance
    posterior = label_posterior(recalibrated(logits, observations, noise), codes, noise)
    return ScoreRates(
        noise,
        expected_noise(posterior, observations, noise),
        transition_errors(noise, covariance, observations.n_effective),
        covariance,
        "label likelihood",
        "" if is_determined(noise, covariance) else NOT_IDENTIFIABLE,
    )
