"""Measures of fitted classifiers, and tables with one column per method."""

import numpy as np
from sklearn.metrics import roc_auc_score

#: Columns that identify a draw.
DRAW = ["set", "level", "split"]


def right(outcome, draw):
    """Return whether each test row is predicted correctly."""
    return outcome.predicted == draw.y_test


def best_auroc(scores, draw, rows=slice(None)):
    """Return the AUROC of wrong labels by the best of several scores; NaN if no label is wrong."""
    wrong = (draw.observed != draw.y)[rows]
    if not wrong.any():
        return np.nan
    return max((roc_auc_score(wrong, score[rows]) for score in scores), default=np.nan)


def expectation(outcome, hits):
    """Compare the expected accuracy with the accuracy on the test rows."""
    if outcome.classifier is None:
        return {}
    actual = hits.mean()
    expected = outcome.classifier.expected_accuracy_
    # Sampling variance of the test accuracy if the expected accuracy is correct.
    chance = expected * (1 - expected) / len(hits)
    error = np.sqrt(outcome.classifier.expected_accuracy_std_**2 + chance)
    return {
        "expected": expected,
        "expected_std": outcome.classifier.expected_accuracy_std_,
        "expected_bias": expected - actual,
        "within_two": float(abs(expected - actual) <= 2 * error),
    }


def wide(frame, measure="accuracy"):
    """Return a table with one row per draw and one column per method."""
    return frame.pivot(index=DRAW, columns="method", values=measure)
