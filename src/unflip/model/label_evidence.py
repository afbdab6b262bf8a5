"""Estimate the true classes from out-of-sample log-odds and noisy labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax

from unflip._utils.typing import FloatArray, IntArray
from unflip.calibration.combined_scores import Combination
from unflip.calibration.log_odds import recalibration
from unflip.calibration.observations import Observations
from unflip.calibration.reported_scores import ReportedScores
from unflip.estimation.score_rates import ScoreRates, rates_from_scores, score_association
from unflip.labels.codes import UNCHECKED
from unflip.labels.noise import NoiseModel
from unflip.ridge.label_association import certainty

# Times that the noise rates and the weights of two classifiers are estimated in turn. A choice: the
# rates move the weights little.
_N_ROUNDS = 2


@dataclass(frozen=True, eq=False)
class LabelEvidence:
    """Log-odds of the rows, calibrated for the true class, with the noise rates behind them.

    Attributes
    ----------
    scores : ReportedScores
        The calibrated log-odds.
    rates : ScoreRates
        Noise rates.
    association : float
        Standard errors by which the log-odds agree with the labels beyond chance.
    combination : Combination
        Weights of the two classifiers in the log-odds.
    """

    scores: ReportedScores
    rates: ScoreRates
    association: float
    combination: Combination

    @classmethod
    def of(
        cls,
        first: FloatArray,
        second: FloatArray | None,
        observations: Observations,
        rates_of: Callable[[FloatArray, bool], ScoreRates],
    ) -> LabelEvidence:
        """Calibrate log-odds, after the second are combined with the first.

        Parameters
        ----------
        first, second : ndarray of shape (n, k)
            Log-odds of two classifiers (see `Combination`).
        observations : Observations
            Observed labels.
        rates_of : callable
            Returns the noise rates for log-odds, and for whether they predict the labels.
        """

        def with_rates(log_odds: FloatArray) -> tuple[float, ScoreRates]:
            association = score_association(log_softmax(log_odds, axis=1), observations)
            return association, rates_of(log_odds, certainty(association) > 0)

        log_odds = first
        combination = Combination()
        association, rates = with_rates(first)
        if second is not None:
            for _ in range(_N_ROUNDS):
                combination = Combination.fit(first, second, observations, rates.noise)
                log_odds = combination.log_odds(first, second)
                association, rates = with_rates(log_odds)
        fitted = recalibration(log_odds, observations, rates.noise)
        scores = ReportedScores(
            fitted, observations, rates.noise, rates.covariance, certainty(association)
        )
        return cls(scores, rates, association, combination)

    def log_odds_of(self, first: FloatArray, second: FloatArray | None = None) -> FloatArray:
        """Return the log-odds of other rows without a label, (m, k).

        Parameters are those of `of`; without `second`, the log-odds must not use it.
        """
        log_odds = first if second is None else self.combination.log_odds(first, second)
        return self.scores.log_odds_of(log_odds)

    def posterior(self, truth: IntArray) -> FloatArray:
        """Return P(true class | log-odds, label), (n, k); 0 or 1 where the truth is known."""
        calibration = self.scores.calibration
        posterior = calibration.posterior(self.scores.observations.codes, self.scores.noise)
        certain = np.eye(posterior.shape[1])[np.where(truth == UNCHECKED, 0, truth)]
        return np.where((truth == UNCHECKED)[:, None], posterior, certain)


def likeliest_rates(
    observations: Observations, priors: ArrayLike | None
) -> Callable[[FloatArray, bool], ScoreRates]:
    """Return a function that estimates noise rates by the likelihood of the labels."""

    def rates_of(log_odds: FloatArray, has_signal: bool) -> ScoreRates:
        return rates_from_scores(
            log_softmax(log_odds, axis=1), log_odds, observations, priors, has_signal=has_signal
        )

    return rates_of


def fixed_rates(
    noise: NoiseModel, errors: FloatArray, source: str, covariance: FloatArray | None = None
) -> Callable[[FloatArray, bool], ScoreRates]:
    """Return a function that returns given noise rates; they are independent by default."""
    if covariance is None:
        covariance = np.diag(np.diag(errors) ** 2)
    rates = ScoreRates(noise, noise, errors, covariance, source, "")
    return lambda log_odds, has_signal: rates
