"""Data sets of `votes.py`: rows with votes of people, language models or rules, and the truth.

All are read from UNFLIP_DATA. Features are fitted to the training rows of each draw.
"""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from unflip import Votes
from unflip.datasets import load_scene_votes, load_sentiment_votes

# Share of the rows of each draw that are held out for testing, if a set has no test rows.
HELD_OUT = 1 / 3


@dataclass(frozen=True, eq=False)
class VoteSet:
    """Rows with votes and true classes.

    Attributes
    ----------
    rows, test_rows : ndarray
        Features, or texts. `test_rows` is None if the set has no test rows.
    truth, test_truth : ndarray of int
        True classes.
    votes : Votes
        Votes on `rows`.
    features : transformer
        Unfitted scikit-learn transformer of rows.
    """

    rows: np.ndarray
    truth: np.ndarray
    votes: Votes
    features: object
    test_rows: np.ndarray | None = None
    test_truth: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Draw:
    """Training rows of a set with their votes, test rows, and the true classes of both."""

    X: object
    truth: np.ndarray
    votes: Votes
    X_test: object
    test_truth: np.ndarray
    seed: int

    @cached_property
    def majority(self):
        """Codes of the classes with most votes, ties broken at random; −1 without votes."""
        ties = np.random.default_rng(self.seed).random(self.votes.counts.shape)
        return np.where(self.votes.voted, (self.votes.counts + 0.5 * ties).argmax(axis=1), -1)

    @cached_property
    def table(self):
        """Codes of the votes, (n, annotators); −1 without a vote."""
        votes = self.votes
        codes = np.full((len(votes), len(votes.annotators)), -1)
        codes[votes.row, votes.annotator] = votes.label
        return codes


def sentences():
    """Return sentences of film reviews, positive or negative."""
    return of_crowd(load_sentiment_votes(), StandardScaler())


def scenes():
    """Return photographs of eight kinds of scenes, with square roots of the features."""
    features = make_pipeline(FunctionTransformer(np.sqrt), StandardScaler())
    return of_crowd(load_scene_votes(), features)


def media_bias():
    """Return sentences of news, biased or not, with labels of 13 language models."""
    return of_texts("media_bias_llms")


def messages():
    """Return text messages, spam or not, with rules."""
    return of_texts("sms_train", "sms_test", abstentions=True)


def relations():
    """Return sentences with nine kinds of relations between two words, with rules."""
    return of_texts("semeval_train", "semeval_test", abstentions=True)


SETS = {
    "sentences": sentences,
    "scenes": scenes,
    "media bias": media_bias,
    "messages": messages,
    "relations": relations,
}


def of_crowd(data, features):
    """Return a set of `unflip.datasets`."""
    n_rows = len(data.X_train)
    votes = Votes.from_table(data.item, data.annotator, data.vote, n_rows=n_rows)
    return VoteSet(data.X_train, data.y_train, votes, features, data.X_test, data.y_test)


def of_texts(file, test_file=None, abstentions=False):
    """Return the distinct texts of a file, with words and word pairs as features."""
    table = read(file).drop_duplicates("text")
    columns = table.drop(columns=["text", "truth"])
    names = columns.columns.to_numpy(str)
    votes = Votes.from_columns(columns.astype("Int64"), names, abstentions=abstentions)
    features = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2)
    return VoteSet(*texts(table), votes, features, *(texts(read(test_file)) if test_file else ()))


def read(file):
    """Return a table with texts, their true classes and one column per annotator."""
    return pd.read_csv(Path(os.environ["UNFLIP_DATA"]) / "annotators" / f"{file}.csv")


def texts(table):
    """Return the texts of a table and their true classes."""
    return table["text"].to_numpy(object), table["truth"].to_numpy()


def draw_of(data, number):
    """Return a draw of four fifths of the rows; draw 0 has all rows."""
    rng = np.random.default_rng(number)
    kept = rng.permutation(len(data.truth))
    if number:
        kept = kept[: 4 * len(kept) // 5]
    test_rows, test_truth = data.test_rows, data.test_truth
    if test_rows is None:
        tested, kept = np.split(kept, [round(HELD_OUT * len(kept))])
        test_rows, test_truth = data.rows[tested], data.truth[tested]
    kept = np.sort(kept)
    features = clone(data.features)
    X = features.fit_transform(data.rows[kept])
    votes = data.votes[kept]
    return Draw(X, data.truth[kept], votes, features.transform(test_rows), test_truth, number)
