"""Minimisers of ridge-regularized convex losses, with approximate leave-one-out scores."""

from unflip.ridge.solvers.approximate_leave_one_out import ApproximateLeaveOneOut
from unflip.ridge.solvers.convex_fits import ConvexFits, Fits
from unflip.ridge.solvers.descent import gradient_descent

__all__ = ["ApproximateLeaveOneOut", "ConvexFits", "Fits", "gradient_descent"]
