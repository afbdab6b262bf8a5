"""A row of measures for each draw and method, and how claimed probabilities compare with the truth."""

import numpy as np
import pandas as pd
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from measures import DRAW, best_auroc, expectation, right
from peers import outcomes

BINS = 10


def run(draws):
    """Fit everything to every draw: rows of results, and of claimed and true probabilities."""
    rows, claims = [], []
    for key, draw in draws:
        found = outcomes(draw)
        reference = right(found[0], draw)
        named = dict(zip(DRAW, key, strict=True))
        rows += [named | measures(outcome, draw, reference) for outcome in found]
        claims += [claim for outcome in found if outcome.classifier for claim in claimed(outcome, draw)]
    return pd.DataFrame(rows), pooled_claims(claims)


def measures(outcome, draw, reference):
    """Return the measures of one classifier; accuracies in percent."""
    hits = right(outcome, draw)
    return {
        "method": outcome.method,
        "accuracy": 100 * hits.mean(),
        "balanced": 100 * balanced_accuracy_score(draw.y_test, outcome.predicted),
        "auc": roc_auc_score(draw.y_test, outcome.decision),
        "auroc_wrong": best_auroc(outcome.doubts, draw),
        "n_test": len(hits),
        "row_error": 100 * np.std(hits * 1.0 - reference) / np.sqrt(len(hits)),
        "seconds": outcome.seconds,
        **expectation(outcome, hits),
        **outcome.extra,
    }


def claimed(outcome, draw):
    """Probabilities that labels of training rows are right and test rows positive, with the truth."""
    certain = 1 - outcome.doubts[0]
    positive = outcome.classifier.predict_proba(draw.X_test)[:, 1]
    return [
        binned(outcome.method, "label right", certain, draw.observed == draw.y),
        binned(outcome.method, "test row positive", positive, draw.y_test == 1),
    ]


def binned(method, kind, probability, truth):
    """Count and sum claimed and true in bins of the claimed probability."""
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
    """Pool bins of all draws; claimed and true become means."""
    pooled = pd.concat(claims).groupby(["method", "kind", "bin"], sort=False).sum().reset_index()
    counts = pooled["n"].clip(lower=1)
    return pooled.assign(claimed=pooled["claimed"] / counts, true=pooled["true"] / counts)
