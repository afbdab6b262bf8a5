"""Noise model and probabilities of the true class for an audit, from scores of any model."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.typing import FloatArray, IntArray
from unflip.auditing.evidence import Noise
from unflip.calibration.log_odds import recalibration
from unflip.calibration.observations import Observations
from unflip.estimation.score_rates import log_scores_of, rates_from_scores, score_association
from unflip.ridge.label_association import certainty


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
    has_signal = certainty(score_association(log_scores, rows)) > 0
    rates = rates_from_scores(pred_probs, log_scores, rows, None, has_signal=has_signal)
    return np.asarray(recalibration(log_scores, rows, rates.noise).probabilities)


def noise_from_scores(
    scores: FloatArray,
    logits: FloatArray,
    observations: Observations,
    priors: ArrayLike | None,
    *,
    has_signal: bool = True,
) -> Noise:
    """Return the noise model of an audit; parameters are those of `rates_from_scores`."""
    rates = rates_from_scores(scores, logits, observations, priors, has_signal=has_signal)
    return Noise(
        model=rates.noise,
        reported=rates.reported,
        errors=rates.errors,
        source=rates.source,
        assumption=rates.assumption,
        priors_given=priors is not None,
        from_labels=True,
        rate_covariance=rates.covariance,
    )
