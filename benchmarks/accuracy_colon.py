"""Rank of the known suspects among the colon tissues, by P(label wrong)."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

from draws import Draw
from peers import CLEANLAB, DEFAULT, HAS_CLEANLAB, cross_validated, wrong_scores
from unflip import LPClassifier, NoiseModel
from verdicts import verdict

FIRST = 12  # number of top-ranked samples that should contain the suspects
SYMMETRIC = "symmetric noise 0.1"
OPTIMIZED = "optimized targets, 0.1"


def run_colon(options):
    """Rank the samples, store the ranks and check them against the targets."""
    print("colon: suspects among the colon tissues.")
    table = options.out / "accuracy_colon.csv"
    if not options.stored:
        path = Path(os.environ["UNFLIP_DATA"]) / "colon_alon" / "data.npz"
        if not path.is_file():
            print(f"  skipped: no file {path}")
            return
        colon_rows(path).round(5).to_csv(table, index=False)
    report_colon(pd.read_csv(table))


def colon_rows(path):
    """Return P(label wrong) and its rank for each tissue and method."""
    with np.load(path) as content:
        X = np.log(content["X"].astype(float))
        y = content["y"].astype(np.intp)
        suspect = content["suspect"]
        names = content["names"]
    X = (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)
    X = StandardScaler().fit_transform(X)
    symmetric = NoiseModel.binary(eps_pos=0.1, eps_neg=0.1)
    p_wrong = {
        DEFAULT: wrong_probability(LPClassifier(), X, y),
        SYMMETRIC: wrong_probability(LPClassifier(symmetric), X, y),
        OPTIMIZED: wrong_probability(LPClassifier(symmetric, targets="optimized"), X, y),
    }
    if HAS_CLEANLAB:
        draw = Draw(X, y, y, X, y, symmetric)
        p_wrong[CLEANLAB] = wrong_scores(y, cross_validated((1.0, None), draw))[0]
    frames = [
        pd.DataFrame(
            {
                "method": method,
                "sample": names,
                "suspect": suspect,
                "p_wrong": values,
                "rank": ranks(values),
            }
        )
        for method, values in p_wrong.items()
    ]
    return pd.concat(frames)


def wrong_probability(classifier, X, y):
    """Fit and return the probability that each label is wrong."""
    return 1 - classifier.fit(X, y).label_posterior_[np.arange(len(y)), y]


def ranks(p_wrong):
    """Return ranks, 1 for the label that is most likely wrong."""
    return np.argsort(np.argsort(-p_wrong, kind="stable"), kind="stable") + 1


def report_colon(frame):
    """Print the ranks of the suspects."""
    for method, rows in frame.groupby("method", sort=False):
        places = rows[rows["suspect"]].sort_values("rank")
        n_found = int((places["rank"] <= FIRST).sum())
        text = ", ".join(
            f"{row.sample} {row.rank} ({row.p_wrong:.2f})" for row in places.itertuples(index=False)
        )
        reached = f"{n_found}; rank (P(label wrong)): {text}"
        if method in (DEFAULT, SYMMETRIC):
            verdict(
                n_found >= 8, f"{method}: at least 8 of 9 suspects among the first {FIRST}", reached
            )
        else:
            print(f"        {method}: {reached}")
