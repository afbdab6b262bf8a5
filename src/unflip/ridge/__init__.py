"""Ridge regression: one decomposition for all targets and regularization strengths.

In come rows and targets, or `Moments`, sums over rows that add up across chunks. Out come
coefficients, exact leave-one-out scores, and the regularization strength they choose. Knows no
label noise.
"""

from unflip.ridge.contradictions import projection_onto_agreeing
from unflip.ridge.label_association import (
    PROBABLE,
    SURE,
    UNSURE,
    association,
    certainty,
    own_and_power,
)
from unflip.ridge.moments import Moments, with_chunk
from unflip.ridge.score_sums import ClassScores, ScoreSums
from unflip.ridge.selection import (
    best_reg,
    candidate_regs,
    canonical_correlation,
    coarse_regs,
    constant_scores,
    corrected_score_parts,
    given_reg,
    loo_alignment,
    searched_reg,
    second_moments,
    without_copies,
)
from unflip.ridge.solvers.convex_fits import ConvexFits
from unflip.ridge.solvers.descent import gradient_descent
from unflip.ridge.solvers.leave_one_out import ApproximateLeaveOneOut
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.decomposition import decompose
from unflip.ridge.spectrum.gram import GramSpectrum
from unflip.ridge.spectrum.krylov import sums_of_eigenvalues
from unflip.ridge.spectrum.left_out import CannotLeaveOutError, LeaveOneOut

__all__ = [
    "PROBABLE",
    "SURE",
    "UNSURE",
    "ApproximateLeaveOneOut",
    "CannotLeaveOutError",
    "ClassScores",
    "ConvexFits",
    "GramSpectrum",
    "LeaveOneOut",
    "Moments",
    "ScoreSums",
    "Spectrum",
    "association",
    "best_reg",
    "candidate_regs",
    "canonical_correlation",
    "certainty",
    "coarse_regs",
    "constant_scores",
    "corrected_score_parts",
    "decompose",
    "given_reg",
    "gradient_descent",
    "loo_alignment",
    "own_and_power",
    "projection_onto_agreeing",
    "searched_reg",
    "second_moments",
    "sums_of_eigenvalues",
    "with_chunk",
    "without_copies",
]
