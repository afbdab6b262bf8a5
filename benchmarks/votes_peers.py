"""Peers of `votes.py`: labels from votes by other libraries.

Each function takes a draw and returns P(true class | votes) by row, (n, k), or other scores of the
classes. Rows without votes may have any values, or be missing from a data frame. Settings are the
defaults of the libraries, except that snorkel trains for 500 epochs, as in its tutorials.
"""

from importlib import import_module

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold, cross_val_predict

SNORKEL_EPOCHS = 500

# Candidates for C. With true labels, scaled features prefer 0.001 to 0.01, texts 10 to 1000.
CS = np.logspace(-4, 4, 9)

MAX_ITER = 1000


def majority(draw):
    """Return the shares of the votes; a tie is broken as in the majority labels."""
    counts = draw.votes.counts
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return shares + 1e-9 * one_hot(draw.majority, counts.shape[1])


def dawid_skene(draw):
    """Return the probabilities of Dawid and Skene (1979), by crowd-kit."""
    return crowd_kit("DawidSkene", draw).probas_


def glad(draw):
    """Return the probabilities of GLAD (Whitehill and others 2009), by crowd-kit."""
    return crowd_kit("GLAD", draw).probas_


def mace(draw):
    """Return the probabilities of MACE (Hovy and others 2013), by crowd-kit."""
    return crowd_kit("MACE", draw).probas_


def mmsr(draw):
    """Return the sums of weights by class of MMSR (Ma and Olshevsky 2020), by crowd-kit."""
    return crowd_kit("MMSR", draw).predict_score(crowd_frame(draw.votes))


def crowd_kit(name, draw):
    """Return a fitted model of crowd-kit."""
    model = getattr(import_module("crowdkit.aggregation"), name)()
    return model.fit(crowd_frame(draw.votes))


def crowd_frame(votes):
    """Return a line for each vote, as crowd-kit expects."""
    return pd.DataFrame({"task": votes.row, "worker": votes.annotator, "label": votes.label})


def snorkel(draw):
    """Return the probabilities of snorkel's label model."""
    from snorkel.labeling.model import LabelModel

    model = LabelModel(cardinality=len(draw.votes.classes), verbose=False)
    model.fit(draw.table, n_epochs=SNORKEL_EPOCHS, seed=draw.seed, progress_bar=False)
    return model.predict_proba(draw.table)


def crowdlab(draw):
    """Return the quality of cleanlab's consensus label, and the rest in equal shares.

    The probabilities that CROWDLAB needs are out-of-fold, by logistic regression on majority
    labels.
    """
    from cleanlab.multiannotator import get_label_quality_multiannotator

    voted = np.flatnonzero(draw.votes.voted)
    labels = draw.majority[voted]
    k = len(draw.votes.classes)
    table = np.where(draw.table[voted] < 0, np.nan, draw.table[voted])
    best = logistic_regression().fit(draw.X[voted], labels)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    pred_probs = np.zeros((len(voted), k))
    pred_probs[:, best.classes_] = cross_val_predict(
        LogisticRegression(C=best.C_[0], max_iter=MAX_ITER),
        draw.X[voted],
        labels,
        cv=folds,
        method="predict_proba",
    )
    quality = get_label_quality_multiannotator(table, pred_probs, verbose=False)["label_quality"]
    is_label = one_hot(quality["consensus_label"].to_numpy(int), k)
    score = quality["consensus_quality_score"].to_numpy()[:, None]
    shares = is_label * score + (1 - is_label) * (1 - score) / (k - 1)
    # A quality below 1/k is still that of the proposed label.
    return pd.DataFrame(shares + 1e-9 * is_label, index=voted)


# The module of each peer, and its function.
PEERS = {
    "majority": ("numpy", majority),
    "Dawid-Skene": ("crowdkit.aggregation", dawid_skene),
    "GLAD": ("crowdkit.aggregation", glad),
    "MACE": ("crowdkit.aggregation", mace),
    "MMSR": ("crowdkit.aggregation", mmsr),
    "snorkel": ("snorkel.labeling.model", snorkel),
    "CROWDLAB": ("cleanlab.multiannotator", crowdlab),
}

# Peers whose scores are not probabilities: some weights are negative.
WITHOUT_PROBABILITIES = ("MMSR",)


def installed():
    """Return the functions of the peers that can be imported; print a line for each other one."""
    functions = {}
    for name, (module, function) in PEERS.items():
        try:
            import_module(module)
        except ImportError as error:
            print(f"{name}: skipped, {error}")
        else:
            functions[name] = function
    return functions


def one_hot(codes, k):
    """Return 1 in the column of each code, (n, k); a code of −1 has no column."""
    return (np.asarray(codes)[:, None] == np.arange(k)).astype(float)


def logistic_regression():
    """Return logistic regression with C chosen by the accuracy in cross-validation."""
    return LogisticRegressionCV(
        Cs=CS,
        cv=StratifiedKFold(5, shuffle=True, random_state=0),
        scoring="accuracy",
        max_iter=MAX_ITER,
    )
