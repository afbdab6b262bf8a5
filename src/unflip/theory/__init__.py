"""Predicted accuracy from random-matrix theory, without any data.

In come scalars and small tables: dimensions, class means, noise rates, targets. Out come the
moments of the scores, the accuracy, and the best targets and regularization strength. Knows no
rows, and loads without scikit-learn.
"""

from unflip.theory.convex import optimal_convex_targets
from unflip.theory.covariance import (
    GeneralMixture,
    GeneralPrediction,
    predict_general,
    predict_mixture,
)
from unflip.theory.model import Mixture, Prediction
from unflip.theory.multiclass import (
    MulticlassPrediction,
    multiclass_bayes_accuracy,
    optimal_multi_lpc,
    predict_multiclass,
)
from unflip.theory.optimum import optimal_multiclass_reg, optimal_reg, optimal_rho, worst_rho
from unflip.theory.planning import Plan, plan
from unflip.theory.prediction import predict
from unflip.theory.resolvent import delta, h

__all__ = [
    "GeneralMixture",
    "GeneralPrediction",
    "Mixture",
    "MulticlassPrediction",
    "Plan",
    "Prediction",
    "delta",
    "h",
    "multiclass_bayes_accuracy",
    "optimal_convex_targets",
    "optimal_multi_lpc",
    "optimal_multiclass_reg",
    "optimal_reg",
    "optimal_rho",
    "plan",
    "predict",
    "predict_general",
    "predict_mixture",
    "predict_multiclass",
    "worst_rho",
]
