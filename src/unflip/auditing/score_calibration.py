"""Noise rates and probabilities of the true class, from scores of any model and noisy labels.

Noise is assumed to depend on the class alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.arrays import TINY
from unflip._utils.typing import FloatArray, IntArray
from unflip.auditing.evidence import Noise, proportions
from unflip.calibration.likeliest_noise import (
    RatePrior,
    expected_noise,
    is_determined,
    likeliest_noise,
    transition_errors,
)
from unflip.calibration.log_odds import label_posterior, recalibrated, recalibration
from unflip.calibration.observations import Observations
from unflip.estimation.anchors import (
    NO_SIGNAL,
    NOT_IDENTIFIABLE,
    anchor_rates,
    consistent_noise,
    uninformative_noise,
)
from unflip.estimation.priors_constraint import constrain_by_priors
from unflip.ridge.label_association import certainty

# Estimates of the noise rates from scores after the first, each from the result of the one before.
_MAX_REFITS = 2


def true_class_probabilities(pred_probs: FloatArray, codes: IntArray) -> FloatArray:
    """Return P(true class | row), (n, k), by a model's probabilities and noisy labels.

    The calibration is that of `audit_scores`, for noise that depends on the class alone, but it is
    not shrunk if the association with the labels is uncertain: checked rows calibrate it further.

    Parameters
    ----------
    pred_probs : ndarray of shape (n, k)
        Out-of-sample probabilities of the model.
    codes : ndarray of shape (n,)
        Observed classes.
    """
    n = len(codes)
    log_scores = log_scores_of(pred_probs)
    rows = Observations(codes, np.ones(n), float(n))
    share = certainty(label_association(log_scores, codes))
    noise = noise_from_scores(pred_probs, log_scores, rows, None, has_signal=share > 0)
    return np.asarray(recalibration(log_scores, rows, noise.channel).probabilities)


def log_scores_of(pred_probs: FloatArray) -> FloatArray:
    """Return the logarithms of probabilities, (n, k), floored."""
    # A probability of 0 would exclude a class for certain.
    return np.asarray(np.log(np.maximum(pred_probs, 1 / (10 * len(pred_probs)))))


def label_association(log_scores: FloatArray, codes: IntArray) -> float:
    """Return by how many standard errors scores agree with the labels beyond chance.

    If labels are independent of the scores, the score of the label has the mean and the variance of
    a class drawn from the observed proportions.
    """
    observed = proportions(codes)
    own = log_scores[np.arange(len(codes)), codes]
    mean = log_scores @ observed
    variance = log_scores**2 @ observed - mean**2
    return float((own - mean).sum() / np.sqrt(max(float(variance.sum()), TINY)))


def noise_from_scores(
    scores: FloatArray,
    logits: FloatArray,
    observations: Observations,
    priors: ArrayLike | None,
    *,
    has_signal: bool = True,
) -> Noise:
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
    rough = anchor_rates(scores, codes, observations.weights)
    start = consistent_noise(rough.transition, proportions(codes), is_sure=True)
    if not has_signal:
        start = uninformative_noise(proportions(codes))
    errors = rough.errors
    if priors is not None:
        start, errors = constrain_by_priors(
            start, errors, priors, proportions(codes), observations.n_effective
        )
    if not has_signal:
        return Noise(
            model=start,
            errors=errors,
            source="no signal",
            assumption=NO_SIGNAL,
            priors_given=priors is not None,
            from_labels=True,
        )
    prior = RatePrior.of(start, errors)
    likeliest = likeliest_noise(logits, observations, start, prior)
    for _ in range(_MAX_REFITS):  # shares of wrong labels and priors follow from the rates before
        likeliest = likeliest_noise(logits, observations, likeliest.noise, prior)
    probabilities = recalibrated(logits, observations, likeliest.noise)
    posterior = label_posterior(probabilities, codes, likeliest.noise)
    covariance = likeliest.covariance
    return Noise(
        model=likeliest.noise,
        reported=expected_noise(posterior, observations, likeliest.noise),
        errors=transition_errors(likeliest.noise, covariance, observations.n_effective),
        source="label likelihood",
        assumption="" if is_determined(likeliest.noise, covariance) else NOT_IDENTIFIABLE,
        priors_given=priors is not None,
        from_labels=True,
        rate_covariance=covariance,
    )
