"""Classifiers from noisy labels in high dimension."""

from typing import TYPE_CHECKING

from unflip._utils.lazy_names import lazy_names
from unflip._utils.version import __version__ as __version__

if TYPE_CHECKING:
    from unflip import datasets, estimation, features, losses, targets, theory
    from unflip.auditing.evaluation.model_comparison import Comparison, compare
    from unflip.auditing.evaluation.model_evaluation import Evaluation, evaluate
    from unflip.auditing.from_rows import audit
    from unflip.auditing.from_scores import audit_scores
    from unflip.auditing.outliers import UnusualRows, unusual_rows
    from unflip.auditing.report import Audit
    from unflip.labels.noise import NoiseModel
    from unflip.labels.votes import Votes
    from unflip.model.classifier import LPClassifier
    from unflip.model.noisy_label_classifier import NoisyLabelClassifier
    from unflip.model.table_model import TableModel, fit_table, load_model
    from unflip.ridge.moments import Moments

__all__ = [
    "Audit",
    "Comparison",
    "Evaluation",
    "LPClassifier",
    "Moments",
    "NoiseModel",
    "NoisyLabelClassifier",
    "TableModel",
    "UnusualRows",
    "Votes",
    "audit",
    "audit_scores",
    "compare",
    "datasets",
    "estimation",
    "evaluate",
    "features",
    "fit_table",
    "load_model",
    "losses",
    "targets",
    "theory",
    "unusual_rows",
]

if not TYPE_CHECKING:  # type checkers would take a misspelt name for a lazy one
    __getattr__ = lazy_names(
        __name__,
        {
            "Audit": "auditing.report",
            "Comparison": "auditing.evaluation.model_comparison",
            "Evaluation": "auditing.evaluation.model_evaluation",
            "LPClassifier": "model.classifier",
            "Moments": "ridge.moments",
            "NoiseModel": "labels.noise",
            "NoisyLabelClassifier": "model.noisy_label_classifier",
            "TableModel": "model.table_model",
            "UnusualRows": "auditing.outliers",
            "Votes": "labels.votes",
            "audit": "auditing.from_rows",
            "audit_scores": "auditing.from_scores",
            "compare": "auditing.evaluation.model_comparison",
            "datasets": "",
            "estimation": "",
            "evaluate": "auditing.evaluation.model_evaluation",
            "features": "",
            "fit_table": "model.table_model",
            "load_model": "model.table_model",
            "losses": "",
            "plotting": "",
            "targets": "",
            "theory": "",
            "unusual_rows": "auditing.outliers",
        },
    )


def __dir__() -> list[str]:
    return [*__all__, "__version__", "plotting"]
