"""Metrics of a model against the noisy labels: what an evaluation without checks would report."""

from __future__ import annotations

import numpy as np

from unflip.auditing.evaluation.model_evaluation import Evaluation


def by_name(evaluation: Evaluation) -> dict[str, float]:
    """Return the metrics of `Evaluation.metrics` as if the noisy labels were true."""
    observed = np.eye(len(evaluation.classes))[evaluation.checked.codes]
    others = [name for name in evaluation.metrics if name != "accuracy"]
    return {
        "accuracy": evaluation.agreement,
        **{name: evaluation.scored.metric(name, observed) for name in others},
    }
