"""Plots of fits, audits, evaluations and predictions, in scikit-learn's display style.

In come fitted classifiers, noise estimators, audits, evaluations and mixtures of the theory. Out
come matplotlib figures. Needs ``unflip[plot]``.
"""

from typing import TYPE_CHECKING

from unflip._utils.lazy_names import lazy_names

if TYPE_CHECKING:
    from unflip.plotting.accuracy_path import AccuracyPathDisplay
    from unflip.plotting.calibration_curve import CalibrationCurveDisplay
    from unflip.plotting.noise_matrix import NoiseMatrixDisplay
    from unflip.plotting.plan_display import PlanDisplay
    from unflip.plotting.score_distribution import ScoreDistributionDisplay
    from unflip.plotting.suspects_display import SuspectsDisplay

__all__ = [
    "AccuracyPathDisplay",
    "CalibrationCurveDisplay",
    "NoiseMatrixDisplay",
    "PlanDisplay",
    "ScoreDistributionDisplay",
    "SuspectsDisplay",
]

if not TYPE_CHECKING:  # lazy, because the explorer needs only the style
    __getattr__ = lazy_names(
        __name__,
        {
            "AccuracyPathDisplay": "accuracy_path",
            "CalibrationCurveDisplay": "calibration_curve",
            "NoiseMatrixDisplay": "noise_matrix",
            "PlanDisplay": "plan_display",
            "ScoreDistributionDisplay": "score_distribution",
            "SuspectsDisplay": "suspects_display",
        },
    )
