"""What is measured of a fitted classifier, and the table of one measure with a column for each method."""

import numpy as np
from sklearn.metrics import roc_auc_score

#: Columns that name a draw.
DRAW = ["set", "level", "split"]


def right(outcome, draw):
    """Whether each test row is predicted right."""
    return outcome.predicted == draw.y_test


def best_auroc(forms, draw, rows=slice(None)):
    """AUROC of wrong labels among these rows, by the best form of the doubt; NaN where none is wrong."""
    wrong = (draw.observed != draw.y)[rows]
    return max((roc_auc_score(wrong, doubt[rows]) for doubt in forms), default=np.nan) if wrong.any() else np.nan


def expectation(outcome, hits):
    """Compare the accuracy that a classifier expects with that on the test rows."""
    if outcome.classifier is None:
        return {}
    actual, expected = hits.mean(), outcome.classifier.expected_accuracy_
    chance = expected * (1 - expected) / len(hits)  # variance of the test share if the claim is right
    error = np.sqrt(outcome.classifier.expected_accuracy_std_**2 + chance)
    return {
        "expected": expected,
        "expected_std": outcome.classifier.expected_accuracy_std_,
        "expected_bias": expected - actual,
        "within_two": float(abs(expected - actual) <= 2 * error),
    }


def wide(frame, measure="accuracy"):
    """One row per draw, one column per method."""
    return frame.pivot(index=DRAW, columns="method", values=measure)
