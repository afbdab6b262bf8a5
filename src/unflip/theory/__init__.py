"""What accuracy to expect: random-matrix predictions from scalars, without rows."""

from unflip.theory.isotropic import predict
from unflip.theory.model import Mixture, Prediction
from unflip.theory.optimum import optimal_reg, optimal_rho, worst_rho
from unflip.theory.resolvent import delta, h

__all__ = ["Mixture", "Prediction", "delta", "h", "optimal_reg", "optimal_rho", "predict", "worst_rho"]
