"""Metrics of any model on the true labels of rows whose labels are noisy.

The input is a model's probabilities or predictions, noisy labels, and the true labels of some
checked rows. The result is an `Evaluation`, or a `Comparison` of two models, with 95% intervals.
"""

from unflip.auditing.evaluation.model_comparison import Comparison, compare
from unflip.auditing.evaluation.model_evaluation import Evaluation, evaluate

__all__ = ["Comparison", "Evaluation", "compare", "evaluate"]
