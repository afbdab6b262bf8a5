"""Minimisers of ridge-regularized convex losses, with approximate leave-one-out scores."""

from unflip.ridge.solvers.convex_fits import ConvexFits, Fits
from unflip.ridge.solvers.descent import gradient_descent
from unflip.ridge.solvers.leave_one_out import ApproximateLeaveOneOut

__all__ = ["ApproximateLeaveOneOut", "ConvexFits", "Fits", "gradient_descent"]
