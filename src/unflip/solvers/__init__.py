"""Minimisers of ridge-penalised convex losses of linear scores, with approximate leave-one-out."""

from unflip.solvers.convex import ConvexFits, Fits
from unflip.solvers.descent import gradient_descent
from unflip.solvers.leave_one_out import ApproximateLeaveOneOut

__all__ = ["ApproximateLeaveOneOut", "ConvexFits", "Fits", "gradient_descent"]
