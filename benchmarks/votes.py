"""Several votes per row: this library against other ways to get labels from votes.

Five sets: sentences and scenes with votes of people, sentences of news (media bias) with labels of
13 language models, and messages and relations with rules that mostly abstain. Every way to get
labels is followed by logistic regression on the same features, with C chosen by cross-validation on
these labels. Of each method it measures the accuracy of the relabelled rows with votes, of all rows
(a classifier fills in the others), and of the classifier on test rows, what unflip and the peers
claim of these, AUROC of the wrong majority labels, and processor time.

On all rows, `audit` without checked rows and with 100 of them, chosen by `check_next` ten times, is
compared with the truth: the share of right labels that it claims, whether its interval contains
that share, and the share of correct labels among its suspects.

Draw 0 has all rows and votes. The other draws have four fifths of the rows. Media bias has no test
rows: a third of the rows of each draw are held out. Draws that are stored are not run again. The
sets are read from UNFLIP_DATA.

Peers that are not installed are left out: ``pip install crowd-kit`` (Dawid-Skene, GLAD, MACE, MMSR)
and ``pip install snorkel``; cleanlab (CROWDLAB) comes with the extra ``unflip[benchmark]``.
"""

import argparse
import csv
import logging
import os
import time
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from unflip import LPClassifier, Votes, audit
from votes_peers import WITHOUT_PROBABILITIES, installed, logistic_regression
from votes_sets import SETS, draw_of
from votes_tables import LABELS, ONE_MATRIX, ORACLE, VOTES, print_audits, print_tables

FIELDS = (
    *("set", "draw", "method", "n_voted", "n_test", "voted", "all_rows", "test"),
    *("claimed_voted", "claimed_all", "claimed_test", "claimed_test_std", "auroc", "seconds"),
    *("voted_gained", "voted_lost", "test_gained", "test_lost", "failure"),
)
AUDIT_FIELDS = (
    *("set", "checks", "draw", "labels", "claimed", "low", "high"),
    *("predictions", "claimed_predictions", "low_predictions", "high_predictions"),
    *("n_suspects", "false_discoveries"),
)

#: Argument that runs the audits alone.
AUDITS = "audits"

# Checked rows of an audit, and how often they are drawn.
CHECKS = 100
CHECK_DRAWS = 10


@dataclass(frozen=True, eq=False)
class Outcome:
    """Labels and predictions of one method for a draw.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        Classes of the training rows.
    predicted : ndarray of shape (n_test,)
        Predicted classes of the test rows.
    posterior : ndarray of shape (n, k)
        Probabilities of the classes of the votes; those of peers only for rows with votes.
    classifier : LPClassifier or None
        Fitted classifier of this library.
    """

    labels: np.ndarray
    predicted: np.ndarray
    posterior: np.ndarray
    classifier: LPClassifier | None = None


def by_unflip(draw, votes, noise="estimate"):
    """Fit this library to votes."""
    classifier = LPClassifier(noise).fit(draw.X, votes)
    of_class = np.searchsorted(draw.votes.classes, classifier.classes_)
    posterior = np.zeros((len(votes), len(draw.votes.classes)))
    posterior[:, of_class] = classifier.label_posterior_
    labels = draw.votes.classes[posterior.argmax(axis=1)]
    return Outcome(labels, classifier.predict(draw.X_test), posterior, classifier)


def majority_votes(draw):
    """Return majority labels as the votes of one annotator."""
    rows = np.flatnonzero(draw.votes.voted)
    labels = draw.votes.classes[draw.majority[rows]]
    return Votes.from_table(rows, None, labels, n_rows=len(draw.votes))


def by_peer(draw, function):
    """Fit logistic regression to the labels of a peer, and predict rows without votes."""
    k = len(draw.votes.classes)
    posterior = function(draw)
    if isinstance(posterior, pd.DataFrame):
        posterior = posterior.reindex(index=range(len(draw.votes)), columns=range(k)).fillna(0.0)
    posterior = np.asarray(posterior)
    labels = draw.votes.classes[posterior.argmax(axis=1)]
    voted = draw.votes.voted
    if len(np.unique(labels[voted])) < 2:
        raise ValueError(f"all labels are {labels[voted][0]}")
    classifier = logistic_regression().fit(draw.X[voted], labels[voted])
    if not voted.all():
        labels[~voted] = classifier.predict(draw.X[~voted])
    return Outcome(labels, classifier.predict(draw.X_test), posterior)


def by_truth(draw):
    """Fit logistic regression to the true labels."""
    predicted = logistic_regression().fit(draw.X, draw.truth).predict(draw.X_test)
    posterior = (draw.truth[:, None] == draw.votes.classes).astype(float)
    return Outcome(draw.truth, predicted, posterior)


def results(name, data, number, peers):
    """Run all methods on one draw; return a line for each."""
    draw = draw_of(data, number)
    ours, line = measured(draw, partial(by_unflip, draw, draw.votes))
    lines = [{"method": VOTES, **line}]
    others = {LABELS: lambda: by_unflip(draw, majority_votes(draw))}
    if not draw.votes.abstentions:
        others[ONE_MATRIX] = partial(by_unflip, draw, draw.votes, ours.classifier.noise_)
    for peer, function in peers.items():
        others[peer] = partial(by_peer, draw, function)
    others[ORACLE] = partial(by_truth, draw)
    for method, fit in others.items():
        try:
            outcome, line = measured(draw, fit)
            line |= paired(draw, ours, outcome)
            if method in WITHOUT_PROBABILITIES:
                line["claimed_voted"] = np.nan
        except Exception as error:  # of another library: shown with the results
            line = {"failure": f"{type(error).__name__}: {error}".splitlines()[0]}
        lines.append({"method": method, **line})
    return [{"set": name, "draw": number, **line} for line in lines]


def measured(draw, fit):
    """Run one method; return its outcome and measures."""
    start = time.process_time()
    outcome = fit()
    seconds = time.process_time() - start
    voted = draw.votes.voted
    rows = np.flatnonzero(voted)
    majority = draw.votes.classes[draw.majority[rows]]
    is_right = outcome.labels == draw.truth
    line = {
        "n_voted": len(rows),
        "n_test": len(draw.test_truth),
        "voted": is_right[voted].mean(),
        "all_rows": is_right.mean(),
        "test": (outcome.predicted == draw.test_truth).mean(),
        "claimed_voted": outcome.posterior[voted].max(axis=1).mean(),
        "auroc": roc_auc_score(
            majority != draw.truth[rows], 1 - outcome.posterior[rows, draw.majority[rows]]
        ),
        "seconds": seconds,
    }
    if outcome.classifier is not None:
        line |= {
            "claimed_all": outcome.posterior.max(axis=1).mean(),
            "claimed_test": outcome.classifier.expected_accuracy_,
            "claimed_test_std": outcome.classifier.expected_accuracy_std_,
        }
    return outcome, line


def paired(draw, ours, other):
    """Return how many rows only this library gets right, and how many only the other method."""
    counts = {}
    for kind, right, other_right in (
        ("voted", *((each.labels == draw.truth)[draw.votes.voted] for each in (ours, other))),
        ("test", *(each.predicted == draw.test_truth for each in (ours, other))),
    ):
        counts[f"{kind}_gained"] = int((right & ~other_right).sum())
        counts[f"{kind}_lost"] = int((~right & other_right).sum())
    return counts


def audits(name, data):
    """Audit all rows of a set, without and with checked rows; return a line for each audit."""
    draw = draw_of(data, 0)
    first = audit(draw.X, draw.votes)
    lines = [audited(first, draw)]
    for number in range(CHECK_DRAWS):
        rows = first.check_next(CHECKS, random_state=number)
        trusted = np.full(len(draw.truth), None)
        trusted[rows] = draw.truth[rows]
        lines.append(audited(audit(draw.X, draw.votes, trusted=trusted), draw))
    return [
        {"set": name, "checks": CHECKS if number else 0, "draw": number, **line}
        for number, line in enumerate(lines)
    ]


def audited(result, draw):
    """Compare an audit with the truth."""
    voted = draw.votes.voted
    right = result.classes[result.label_posterior.argmax(axis=1)] == draw.truth
    predicted = result.classes[result.evidence.probabilities.argmax(axis=1)] == draw.truth
    labels, predictions = result.corrected_labels_interval, result.expected_accuracy_interval
    suspects = result.suspects[: result.n_suspects]
    return {
        "labels": right[voted].mean(),
        "claimed": labels.value,
        "low": labels.low,
        "high": labels.high,
        "predictions": predicted.mean(),
        "claimed_predictions": predictions.value,
        "low_predictions": predictions.low,
        "high_predictions": predictions.high,
        "n_suspects": len(suspects),
        "false_discoveries": int((suspects.observed == draw.truth[suspects.row]).sum()),
    }


def run_audits(path, names):
    """Run the audits of the sets that are not stored yet, and store each set when it is done."""
    path.parent.mkdir(parents=True, exist_ok=True)
    done = set(pd.read_csv(path)["set"]) if path.exists() else set()
    with path.open("a", newline="", encoding="utf-8") as file, threadpool_limits(1):
        writer = csv.DictWriter(file, AUDIT_FIELDS)
        if not path.stat().st_size:
            writer.writeheader()
        for name in names:
            if name not in done:
                writer.writerows(audits(name, SETS[name]()))
                file.flush()


def run_all(path, names, n_draws):
    """Run the draws that are not stored yet, and store each when it is done."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=FIELDS)
    done = set(stored[["set", "draw"]].itertuples(index=False, name=None))
    peers = installed()
    sets = {name: SETS[name]() for name in names}
    with path.open("a", newline="", encoding="utf-8") as file, threadpool_limits(1):
        writer = csv.DictWriter(file, FIELDS)
        if not path.stat().st_size:
            writer.writeheader()
        for number in range(n_draws + 1):
            for name, data in sets.items():
                if (name, number) not in done:
                    writer.writerows(results(name, data, number, peers))
                    file.flush()


def parsed():
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "sets",
        nargs="*",
        metavar="set",
        help=f"any of {', '.join(SETS)}; all by default. {AUDITS}: only the audits, of all sets",
    )
    parser.add_argument(
        "--draws", type=int, default=10, help="draws of four fifths of the rows (default: 10)"
    )
    parser.add_argument(
        "--stored", action="store_true", help="print the tables of stored results, run nothing"
    )
    parser.add_argument("--write", action="store_true", help="write the table into docs/votes.md")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the CSV file")
    options = parser.parse_args()
    if options.sets != [AUDITS] and (unknown := set(options.sets) - set(SETS)):
        parser.error(f"unknown set {', '.join(sorted(unknown))}: use {', '.join(SETS)}")
    if not options.stored and not os.environ.get("UNFLIP_DATA"):
        parser.error("set UNFLIP_DATA to the folder with the data sets")
    return options


def main():
    """Run the sets, store the results and print their tables."""
    options = parsed()
    warnings.simplefilter("ignore")
    logging.disable()
    paths = options.out / "votes.csv", options.out / "votes_audits.csv"
    only_audits = options.sets == [AUDITS]
    names = list(SETS) if only_audits or not options.sets else options.sets
    if not options.stored:
        run_audits(paths[1], names)
        if not only_audits:
            run_all(paths[0], names, options.draws)
    audit_frame = pd.read_csv(paths[1])
    print_audits(audit_frame[audit_frame["set"].isin(names)], options.write)
    if not only_audits:
        frame = pd.read_csv(paths[0])
        print_tables(frame[frame["set"].isin(names)], options.write)


if __name__ == "__main__":
    main()
