"""Several votes per row: this library against majority votes and Dawid-Skene labels.

Sentences (two classes) and scenes (eight) with annotators' votes, from UNFLIP_DATA. The other
methods use ridge. The first draw has all training rows and votes. The other draws have four fifths
of the rows, once with all votes and once with at most two votes per row. Dawid-Skene labels are
those of crowd-kit if it is installed, or of the function in this file.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn.linear_model import RidgeClassifierCV
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from peers import ALPHAS
from unflip import LPClassifier, Votes
from unflip.datasets import load_scene_votes, load_sentiment_votes
from verdicts import mean_and_error, verdict

try:
    from crowdkit.aggregation import DawidSkene
except ImportError:
    DawidSkene = None

# Names of the methods, and of the kinds of draws, in tables.
MAJORITY = "majority, ridge"
LABELS = "majority, LPClassifier"
DAWID_SKENE = "Dawid-Skene, ridge"
ALIKE = "votes, annotators alike"
VOTES = "votes"
ORACLE = "true labels, ridge"
ALL = "all rows and votes"
SUBSETS = "4/5 of the rows"
TWO = "4/5 of the rows, two votes"


def scenes():
    """Return photographs of eight kinds of scenes, with square roots of the features."""
    data = load_scene_votes()
    return data, np.sqrt(data.X_train), np.sqrt(data.X_test)


def sentences():
    """Return sentences of film reviews, positive or negative."""
    data = load_sentiment_votes()
    return data, data.X_train, data.X_test


SETS = {"sentences": sentences, "scenes": scenes}


def dawid_skene(votes, rounds=100):
    """Return P(true class | votes), (n, k), by EM from the shares of the votes."""
    k = len(votes.classes)
    posterior = votes.counts / votes.counts.sum(axis=1, keepdims=True)
    for _ in range(rounds):
        # Smoothed counts by annotator, label and true class.
        counts = np.asarray(votes.table.T @ posterior).reshape(-1, k, k) + 0.01
        tables = counts / counts.sum(axis=1, keepdims=True)
        logs = votes.table @ np.log(tables).reshape(-1, k)
        posterior = softmax(logs + np.log(posterior.mean(axis=0)), axis=1)
    return posterior


def crowd_kit(votes):
    """Return the same by crowd-kit."""
    frame = pd.DataFrame({"task": votes.row, "annotator": votes.annotator, "label": votes.label})
    posterior = DawidSkene(n_iter=100).fit(frame).probas_
    return (
        posterior.reindex(index=range(len(votes)), columns=range(len(votes.classes)))
        .fillna(0.0)
        .to_numpy()
    )


def at_most(votes, m, rng):
    """Return at most m random votes of each row."""
    order = np.lexsort((rng.random(len(votes.row)), votes.row))
    row = votes.row[order]
    kept = order[np.arange(len(row)) - np.searchsorted(row, row) < m]
    return Votes.from_table(
        votes.row[kept], votes.annotator[kept], votes.label[kept], n_rows=len(votes)
    )


def draws(name, n_draws):
    """Yield the kind of draw, training rows, classes and votes, test rows and classes, rng."""
    data, X, X_test = SETS[name]()
    votes = Votes.from_table(data.item, data.annotator, data.vote)
    for draw in range(-1, n_draws):
        rng = np.random.default_rng(draw + 1)
        kept = (
            np.arange(len(X)) if draw < 0 else np.sort(rng.permutation(len(X))[: 4 * len(X) // 5])
        )
        scaler = StandardScaler().fit(X[kept])
        rows = scaler.transform(X[kept])
        test = scaler.transform(X_test)
        part = votes[kept]
        yield ALL if draw < 0 else SUBSETS, rows, data.y_train[kept], part, test, data.y_test, rng
        if draw >= 0:
            yield TWO, rows, data.y_train[kept], at_most(part, 2, rng), test, data.y_test, rng


def outcomes(X, y, votes, X_test, y_test, rng):
    """Fit all methods to one draw; return a line for each."""
    shares = votes.counts / votes.counts.sum(axis=1, keepdims=True)
    majority = (shares + 1e-9 * rng.random(shares.shape)).argmax(axis=1)  # ties at random
    by_votes = (dawid_skene if DawidSkene is None else crowd_kit)(votes)

    def line(method, classifier, labels, posterior):
        start = time.perf_counter()
        classifier.fit(X, labels)
        seconds = time.perf_counter() - start
        ours = isinstance(classifier, LPClassifier)
        posterior = classifier.label_posterior_ if ours else posterior
        return {
            "method": method,
            "accuracy": 100 * classifier.score(X_test, y_test),
            "expected": 100 * classifier.expected_accuracy_ if ours else np.nan,
            "expected_std": 100 * classifier.expected_accuracy_std_ if ours else np.nan,
            "train_labels": 100 * (posterior.argmax(axis=1) == y).mean(),
            "auroc_wrong": roc_auc_score(majority != y, 1 - posterior[np.arange(len(y)), majority]),
            "seconds": seconds,
        }

    ours = LPClassifier()
    lines = [
        line(MAJORITY, ridge(), majority, shares + 1e-9 * np.eye(shares.shape[1])[majority]),
        line(LABELS, LPClassifier(), majority, None),
        line(DAWID_SKENE, ridge(), by_votes.argmax(axis=1), by_votes),
        line(VOTES, ours, votes, None),
    ]
    lines.insert(3, line(ALIKE, LPClassifier(ours.noise_), votes, None))
    return [*lines, line(ORACLE, ridge(), y, np.eye(shares.shape[1])[y])]


def ridge():
    """Return ridge with alpha chosen by generalized cross-validation."""
    return RidgeClassifierCV(alphas=ALPHAS)


def run(name, n_draws):
    """Run all draws of one set."""
    frames = []
    for draw, (kind, *data) in enumerate(draws(name, n_draws)):
        frames.append(pd.DataFrame(outcomes(*data)).assign(set=name, kind=kind, draw=draw))
    return pd.concat(frames, ignore_index=True)


def report(frame):
    """Print a table for each kind of draw, and check the accuracy against the other methods."""
    for kind, mine in frame.groupby("kind", sort=False):
        print(f"\n{mine['set'].iloc[0]}, {kind}, {mine['draw'].nunique()} draws, means")
        table = mine.groupby("method", sort=False).mean(numeric_only=True).drop(columns="draw")
        print(table.to_string(float_format=lambda value: f"{value:.3f}"))
        wide = mine.pivot(index="draw", columns="method", values="accuracy")
        for rival in (MAJORITY, DAWID_SKENE):
            difference = wide[VOTES] - wide[rival]
            what = f"{VOTES}, gain over {rival} at least 0"
            verdict(difference.mean() >= 0, what, mean_and_error(difference, sign="+"))


def main():
    """Run both sets, print their tables and store them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "sets", nargs="*", metavar="set", help=f"any of {', '.join(SETS)}; all by default"
    )
    parser.add_argument(
        "--draws", type=int, default=10, help="draws of four fifths of the rows (default: 10)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("results"), help="folder for the CSV files"
    )
    options = parser.parse_args()
    if unknown := set(options.sets) - set(SETS):
        parser.error(f"unknown set {', '.join(sorted(unknown))}: use {', '.join(SETS)}")
    if not os.environ.get("UNFLIP_DATA"):
        parser.error("set UNFLIP_DATA to the folder with the data sets")
    warnings.simplefilter("ignore")
    options.out.mkdir(parents=True, exist_ok=True)
    print(f"Dawid-Skene labels: {'this script' if DawidSkene is None else 'crowd-kit'}")
    for name in options.sets or SETS:
        frame = run(name, options.draws)
        frame.round(5).to_csv(options.out / f"votes_{name}.csv", index=False)
        report(frame)


if __name__ == "__main__":
    main()
