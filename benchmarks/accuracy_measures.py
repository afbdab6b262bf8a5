"""Measures of each fit in accuracy.py, and calibration of its probabilities."""

import numpy as np
import pandas as pd
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from measures import DRAW, best_auroc, expectation, right
from peers import outcomes

BINS = 10


def run(draws):
    """Fit all methods to every draw; return the measures, and stated against true probabilities."""
    rows = []
    claims = []
    for key, draw in draws:
        fits = outcomes(draw)
        reference = right(fits[0], draw)
        named = dict(zip(DRAW, key, strict=True))
        rows += [named | measures(outcome, draw, reference) for outcome in fits]
        claims += [
            claim for outcome in fits if outcome.classifier for claim in claimed(outcome, draw)
        ]
    return pd.DataFrame(rows), pooled_claims(claims)


def measures(outcome, draw, reference):
    """Return the measures of one fit; accuracies are in percent."""
    hits = right(outcome, draw)
    return {
        "method": outcome.method,
        "accuracy": 100 * hits.mean(),
        "balanced": 100 * balanced_accuracy_score(draw.y_test, outcome.predicted),
        "auc": roc_auc_score(draw.y_test, outcome.decision),
        "auroc_wrong": best_auroc(outcome.p_wrong, draw),
        "n_test": len(hits),
        "row_error": 100 * np.std(hits * 1.0 - reference) / np.sqrt(len(hits)),
        "seconds": outcome.seconds,
        **expectation(outcome, hits),
        **outcome.extra,
    }


def claimed(outcome, draw):
    """Bin P(training label right) and P(test row positive) beside the truth."""
    p_right = 1 - outcome.p_wrong[0]
    positive = outcome.classifier.predict_proba(draw.X_test)[:, 1]
    return [
        binned(outcome.method, "label right", p_right, draw.observed == draw.y),
        binned(outcome.method, "test row positive", positive, draw.y_test == 1),
    ]


def binned(method, kind, probability, truth):
    """Count rows and sum stated and true values in bins of the stated probability."""
    place = np.minimum((BINS * probability).astype(int), BINS - 1)
    return pd.DataFrame(
        {
            "method": method,
            "kind": kind,
            "bin": np.arange(BINS),
            "n": np.bincount(place, minlength=BINS),
            "claimed": np.bincount(place, probability, minlength=BINS),
            "true": np.bincount(place, truth, minlength=BINS),
        }
    )


def pooled_claims(claims):
    """Pool the bins of all draws; stated and true values become means."""
    pooled = pd.concat(claims).groupby(["method", "kind", "bin"], sort=False).sum().reset_index()
    counts = pooled["n"].clip(lower=1)
    return pooled.assign(claimed=pooled["claimed"] / counts, true=pooled["true"] / counts)
