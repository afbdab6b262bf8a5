"""Pictures of fits, audits and predictions, in scikit-learn's style; they need `unflip[plot]`."""

from unflip.plotting.accuracy_path import AccuracyPathDisplay
from unflip.plotting.noise_matrix import NoiseMatrixDisplay
from unflip.plotting.plan import PlanDisplay
from unflip.plotting.score_distribution import ScoreDistributionDisplay
from unflip.plotting.suspects import SuspectsDisplay

__all__ = [
    "AccuracyPathDisplay",
    "NoiseMatrixDisplay",
    "PlanDisplay",
    "ScoreDistributionDisplay",
    "SuspectsDisplay",
]
