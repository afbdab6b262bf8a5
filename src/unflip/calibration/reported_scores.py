"""What to report of calibrated scores: shrunk if their association with the labels is uncertain."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unflip._utils.typing import Array, FloatArray
from unflip.calibration.accuracy import ExpectedAccuracy, expected_accuracy
from unflip.calibration.information import calibration_covariance
from unflip.calibration.log_odds import Calibration
from unflip.calibration.observations import Observations
from unflip.labels.noise import Channel


@dataclass(frozen=True, eq=False)
class ReportedScores:
    """Calibrated out-of-sample scores with the labels and the noise that they were calibrated by.

    Attributes
    ----------
    fitted : Calibration
        The calibration of largest likelihood.
    observations : Observations
        Observed labels.
    noise : Channel
        Noise with priors.
    rate_covariance : ndarray of shape (k, k)
        Covariance of the noise rates.
    certainty : float
        Share of the fitted log-odds to report, from 0 (no association with the labels) to 1.
    """

    fitted: Calibration
    observations: Observations
    noise: Channel
    rate_covariance: FloatArray
    certainty: float

    @cached_property
    def calibration(self) -> Calibration:
        """The calibration to report."""
        if self.certainty == 1:
            return self.fitted
        return self.fitted.shrunk(self.certainty, self.noise.known_priors)

    @property
    def predicted(self) -> Array:
        """The likeliest class of each row, without its own label."""
        return self.calibration.log_odds.argmax(axis=1)

    def log_odds_of(self, scores: FloatArray) -> FloatArray:
        """Return the log-odds to report of other rows without a label, (m, k), by their scores."""
        log_odds = np.asarray(self.fitted.model.log_odds(scores))
        if self.certainty == 1:
            return log_odds
        priors = self.noise.known_priors
        neutral = np.log(priors / priors[0])
        return np.asarray(neutral + self.fitted.shrinkage(self.certainty) * (log_odds - neutral))

    def expected_accuracy(self, predicted: Array, deployed: FloatArray) -> ExpectedAccuracy:
        """Return the expected accuracy of predictions for these rows; see `expected_accuracy`."""
        covariance = calibration_covariance(
            self.fitted.probabilities,
            self.fitted.logits,
            self.observations,
            self.noise,
            self.rate_covariance,
        )
        if self.certainty < 1:  # the slope may be anything between that of the fit and 0
            covariance[0, 0] += np.log(self.fitted.shrinkage(self.certainty)) ** 2
        return expected_accuracy(
            self.observations,
            self.calibration,
            self.noise,
            covariance=covariance,
            deployed=deployed,
            predicted=predicted,
        )
