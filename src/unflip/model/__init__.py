"""Classifiers for noisy labels: from parameters and a training set to a fitted classifier.

Input: a `TrainingSet` or `Moments`, and the parameters. Output: coefficients, the calibrated
decision rule, label posteriors and the expected accuracy. Combines the noise estimate, the ridge
fit, the refinement of the targets and the calibration.
"""

from unflip.model.classifier import LPClassifier
from unflip.model.held_out import held_out_log_odds
from unflip.model.noise_sources import noise_source
from unflip.model.noisy_label_classifier import NoisyLabelClassifier
from unflip.model.options import FEATURES, gives_priors, is_estimate
from unflip.model.table_data import TableData, read_table_data
from unflip.model.table_model import TableModel, fit_table, load_model, read_model

__all__ = [
    "FEATURES",
    "LPClassifier",
    "NoisyLabelClassifier",
    "TableData",
    "TableModel",
    "fit_table",
    "gives_priors",
    "held_out_log_odds",
    "is_estimate",
    "load_model",
    "noise_source",
    "read_model",
    "read_table_data",
]
