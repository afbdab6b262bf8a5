"""Where the suspects among the colon tissues rank by the doubt about their labels."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

from draws import Draw
from peers import CLEANLAB, HAS_CLEANLAB, cross_validated, doubts
from unflip import LPClassifier, NoiseModel
from verdicts import verdict

FIRST = 12


def run_colon(options):
    """Rank suspects, store the ranks and hold them against the targets."""
    print("colon: suspects among the colon tissues.")
    table = options.out / "accuracy_colon.csv"
    if not options.stored:
        path = Path(os.environ["UNFLIP_DATA"]) / "colon_alon" / "data.npz"
        if not path.is_file():
            print(f"  left out: no {path}")
            return
        colon_rows(path).round(5).to_csv(table, index=False)
    report_colon(pd.read_csv(table))


def colon_rows(path):
    """Rank the labels of the colon tissues by doubt."""
    with np.load(path) as content:
        X, y, suspect, names = np.log(content["X"].astype(float)), content["y"], content["suspect"], content["names"]
    X = (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)
    X = StandardScaler().fit_transform(X)
    y = y.astype(np.intp)
    symmetric = NoiseModel.binary(eps_pos=0.1, eps_neg=0.1)
    found = {
        "nothing known": doubt_of(LPClassifier(), X, y),
        "symmetric noise 0.1": doubt_of(LPClassifier(symmetric), X, y),
        "optimized targets, 0.1": doubt_of(LPClassifier(symmetric, targets="optimized"), X, y),
    }
    if HAS_CLEANLAB:
        draw = Draw(X, y, y, X, y, symmetric)
        found[CLEANLAB] = doubts(y, cross_validated((1.0, None), draw))[0]
    frames = [
        pd.DataFrame({"method": m, "sample": names, "suspect": suspect, "doubt": d, "rank": ranks(d)})
        for m, d in found.items()
    ]
    return pd.concat(frames)


def doubt_of(classifier, X, y):
    """Fit and return the probability that each label is wrong."""
    return 1 - classifier.fit(X, y).label_posterior_[np.arange(len(y)), y]


def ranks(doubt):
    """Rank 1 is the most doubtful."""
    return np.argsort(np.argsort(-doubt, kind="stable"), kind="stable") + 1


def report_colon(frame):
    """Print where the suspects rank."""
    for method, rows in frame.groupby("method", sort=False):
        places = rows[rows["suspect"]].sort_values("rank")
        n_found = int((places["rank"] <= FIRST).sum())
        text = ", ".join(f"{row.sample} {row.rank} ({row.doubt:.2f})" for row in places.itertuples(index=False))
        reached = f"{n_found}; rank (doubt): {text}"
        if method in ("nothing known", "symmetric noise 0.1"):
            verdict(n_found >= 8, f"{method}: at least 8 of 9 suspects among the first {FIRST}", reached)
        else:
            print(f"        {method}: {reached}")
