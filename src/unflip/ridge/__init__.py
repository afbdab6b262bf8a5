"""Ridge regression: one decomposition for all targets and regularization strengths.

Input: rows and targets, or `Moments`, sums over rows that add up across chunks. Output:
coefficients, leave-one-out scores, and the regularization strength that they select. The scores are
exact for the squared loss, and approximate for other losses (`ConvexFits`) and for large sparse
data (`spectrum.krylov`). Label noise is handled elsewhere.
"""

from unflip.ridge.contradictions import projection_onto_agreeing
from unflip.ridge.label_association import (
    PROBABLE,
    SURE,
    UNSURE,
    association,
    certainty,
    loo_operator_diagonals,
)
from unflip.ridge.moments import Moments, add_chunk
from unflip.ridge.row_metric import RowMetric
from unflip.ridge.score_sums import ClassScores, ScoreSums
from unflip.ridge.selection import (
    best_reg,
    best_reg_index,
    candidate_regs,
    canonical_correlation,
    coarse_regs,
    constant_scores,
    corrected_score_parts,
    fixed_reg,
    loo_alignment,
    second_moments,
    select_reg,
    without_duplicates,
)
from unflip.ridge.solvers.approximate_leave_one_out import ApproximateLeaveOneOut
from unflip.ridge.solvers.convex_fits import ConvexFits
from unflip.ridge.solvers.descent import gradient_descent
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
    "RowMetric",
    "ScoreSums",
    "Spectrum",
    "add_chunk",
    "association",
    "best_reg",
    "best_reg_index",
    "candidate_regs",
    "canonical_correlation",
    "certainty",
    "coarse_regs",
    "constant_scores",
    "corrected_score_parts",
    "decompose",
    "fixed_reg",
    "gradient_descent",
    "loo_alignment",
    "loo_operator_diagonals",
    "projection_onto_agreeing",
    "second_moments",
    "select_reg",
    "sums_of_eigenvalues",
    "without_duplicates",
]
