"""Calibration of leave-one-out scores: probabilities of the true class.

Input: scores, observed labels and a noise model. Output: log-odds of the true class (`calibrate`),
decisions under priors and costs (`Decision`), and the expected accuracy. Features and fits are not
used here.
"""

from unflip.calibration.accuracy import ExpectedAccuracy, expected_accuracy
from unflip.calibration.binning import random_rows
from unflip.calibration.combined_scores import Combination
from unflip.calibration.coupling import Coupling, uncoupled
from unflip.calibration.decision import Decision, Rule
from unflip.calibration.information import (
    PAIR_VARIANCE,
    LabelInformation,
    calibration_covariance,
    joint_covariance,
)
from unflip.calibration.intercepts import class_probabilities
from unflip.calibration.interval import (
    Interval,
    normal_interval,
    positive_interval,
    share_interval,
    sum_of_shares,
    wilson_interval,
)
from unflip.calibration.labelled_scores import LabelledScores, ModelScores
from unflip.calibration.likeliest_noise import (
    LikeliestNoise,
    RatePrior,
    expected_noise,
    is_determined,
    likeliest_noise,
    transition_errors,
)
from unflip.calibration.log_odds import (
    ROUNDING,
    SMALLEST_SLOPE,
    Calibration,
    LogOddsModel,
    calibrate,
    common_slope,
    label_posterior,
    likeliest_priors,
    recalibrated,
    recalibration,
    symmetric_slope,
)
from unflip.calibration.mixture import ScoreMixture, with_ones
from unflip.calibration.observations import Observations
from unflip.calibration.reported_scores import ReportedScores
from unflip.calibration.slope import MAX_LOG_SLOPE
from unflip.calibration.true_class import TrueClassModel

__all__ = [
    "MAX_LOG_SLOPE",
    "PAIR_VARIANCE",
    "ROUNDING",
    "SMALLEST_SLOPE",
    "Calibration",
    "Combination",
    "Coupling",
    "Decision",
    "ExpectedAccuracy",
    "Interval",
    "LabelInformation",
    "LabelledScores",
    "LikeliestNoise",
    "LogOddsModel",
    "ModelScores",
    "Observations",
    "RatePrior",
    "ReportedScores",
    "Rule",
    "ScoreMixture",
    "TrueClassModel",
    "calibrate",
    "calibration_covariance",
    "class_probabilities",
    "common_slope",
    "expected_accuracy",
    "expected_noise",
    "is_determined",
    "joint_covariance",
    "label_posterior",
    "likeliest_noise",
    "likeliest_priors",
    "normal_interval",
    "positive_interval",
    "random_rows",
    "recalibrated",
    "recalibration",
    "share_interval",
    "sum_of_shares",
    "symmetric_slope",
    "transition_errors",
    "uncoupled",
    "wilson_interval",
    "with_ones",
]
