"""Data sets of `honesty.py`: labels of real annotators with the truth, and controls.

The real sets have labels of people, language models or rules, with features or with out-of-sample
probabilities. The controls have class-conditional noise by construction. All sets except the
digits are read from UNFLIP_DATA, and all are the same every time. Run as a script, this file prints
a table of the sets.
"""

import os
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.preprocessing import StandardScaler

from unflip import NoiseModel, Votes
from unflip.datasets import load_amazon_reviews, load_scene_votes, load_sentiment_votes

# Seed of votes, ties, noisy labels, folds, forests and projections.
SEED = 0

# Dimensions that are kept of the TF-IDF features of texts.
TEXT_DIMENSIONS = 200

# Language models whose labels are audited one by one: 17%, 25% and 31% of them are wrong.
LANGUAGE_MODELS = {"gpt_4": "GPT-4", "flan_ul2": "Flan-UL2", "mistral_7b": "Mistral 7B"}

# Texts that are labelled by rules: name, source and file.
RULES = (("messages", "SMS spam", "sms_train"), ("relations", "SemEval", "semeval_train"))

# Models of out-of-fold probabilities. Half of the rows per tree make the forest faster.
MODELS = {
    "logistic": LogisticRegression(C=0.01, max_iter=1000),
    "forest": RandomForestClassifier(
        n_estimators=100, min_samples_leaf=5, max_samples=0.5, random_state=SEED
    ),
}

# Sets that are also given with out-of-fold probabilities, and the model of these.
MODEL_OF_SET = {
    "news, human labels": "logistic",
    "sentences, one vote": "forest",
    "scenes, one vote": "forest",
    "relations, majority": "logistic",
}


@dataclass(frozen=True, eq=False)
class HonestySet:
    """Rows with their true classes and observed labels.

    Attributes
    ----------
    name : str
        Kind of rows, then kind of labels, then model of the probabilities if it was trained here.
    source : str
        Origin of the rows. Sets of one source may share rows.
    is_control : bool
        Whether the noise is class-conditional by construction.
    truth : ndarray of int, shape (n,)
        True classes 0..k-1.
    observed : ndarray of int, shape (n,)
        Observed labels.
    X : ndarray of shape (n, p) or None
        Standardized features; None if there are probabilities.
    pred_probs : ndarray of shape (n, k) or None
        Out-of-sample probabilities of a model that was trained on noisy labels.
    """

    name: str
    source: str
    is_control: bool
    truth: np.ndarray
    observed: np.ndarray
    X: np.ndarray | None = None
    pred_probs: np.ndarray | None = None


def real_sets():
    """Yield the sets with labels of real annotators."""
    yield cifar("photographs, worst of three", "cifar10n_worst_resnet18")
    yield cifar("photographs, majority", "cifar10n_aggregate_efficientnet")
    for data in feature_sets():
        yield data
        if data.name in MODEL_OF_SET:
            yield with_probabilities(data, MODEL_OF_SET[data.name])


def feature_sets():
    """Yield the sets with labels of real annotators and with features."""
    yield news()
    for name, source, load in CROWDS:
        X, truth, crowd = load()
        for kind, observed in crowd_labels(crowd).items():
            yield HonestySet(f"{name}, {kind}", source, False, truth, observed, X)
    yield from media_bias_sets()
    for name, source, file in RULES:
        truth, X, votes = annotated_texts(file)
        yield HonestySet(f"{name}, majority", source, False, truth, majority(votes), X)


def control_sets():
    """Yield the sets with class-conditional noise."""
    yield cifar("photographs, synthetic noise", "cifar10_synthetic_resnet18", is_control=True)
    for domain, eps_pos, eps_neg in (("books", 0.3, 0.1), ("kitchen", 0.4, 0.2)):
        X, y = reviews(domain)
        noise = NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg)
        yield control(f"reviews of {domain}", "Amazon", X, y, noise)
    X, y, _ = sentences()
    noise = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
    yield control("sentences", "MTurk sentiment", X, y, noise)
    X, y, _ = scenes()
    yield control("scenes", "LabelMe", X, y, NoiseModel(random_transition(y.max() + 1)))
    pixels, y = load_digits(return_X_y=True)
    yield control("digits", "digits", standardized(pixels), y, NoiseModel(uniform_noise(10, 0.3)))


def cifar(name, file, is_control=False):
    """Return photographs of ten kinds of things, with the probabilities of a network."""
    with np.load(data_file("honesty", f"{file}.npz")) as content:
        return HonestySet(
            name,
            "CIFAR-10",
            is_control,
            content["truth"].astype(np.intp),
            content["label"].astype(np.intp),
            pred_probs=content["pred_probs"].astype(float),
        )


def news():
    """Return news on four topics, with the labels of annotators."""
    table = pd.read_csv(data_file("honesty", "news.csv"))
    truth, observed = table[["truth", "label"]].to_numpy(np.intp).T
    X = text_features(table["text"])
    return HonestySet("news, human labels", "NoisyAG-News", False, truth, observed, X)


def media_bias_sets():
    """Yield sentences of news, biased or not, with labels of language models."""
    truth, X, votes = annotated_texts("media_bias_llms")
    for annotator, model in LANGUAGE_MODELS.items():
        observed = votes.label[votes.annotators[votes.annotator] == annotator]
        yield HonestySet(f"media bias, {model}", "media bias", False, truth, observed, X)
    yield HonestySet("media bias, majority", "media bias", False, truth, majority(votes), X)


def control(name, source, X, y, noise):
    """Return a set with class-conditional noise."""
    observed = noise.flip(y, random_state=SEED)
    return HonestySet(f"{name}, synthetic noise", source, True, y, observed, X)


def random_transition(n_classes):
    """Return a transition matrix with noise rates of 0.1 to 0.4, spread at random."""
    rng = np.random.default_rng(SEED)
    rates = rng.uniform(0.1, 0.4, n_classes)
    transition = np.diag(1 - rates)
    for true, rate in enumerate(rates):
        others = np.arange(n_classes) != true
        transition[true, others] = rate * rng.dirichlet(np.ones(n_classes - 1))
    return transition


def uniform_noise(n_classes, rate):
    """Return a transition matrix with one noise rate, spread evenly over the wrong labels."""
    off_diagonal = np.full((n_classes, n_classes), rate / (n_classes - 1))
    return off_diagonal + (1 - rate - rate / (n_classes - 1)) * np.eye(n_classes)


def reviews(domain):
    """Return features and true classes of the distinct reviews of one kind of product."""
    counts, y = load_amazon_reviews(domain)
    _, first = np.unique(counts, axis=0, return_index=True)
    kept = np.sort(first)
    return standardized(counts[kept]), y[kept]


@cache
def sentences():
    """Return features, true classes and votes of sentences of film reviews."""
    crowd = load_sentiment_votes()
    return standardized(crowd.X_train), crowd.y_train, crowd


@cache
def scenes():
    """Return features, true classes and votes of photographs of scenes."""
    crowd = load_scene_votes()
    return standardized(np.sqrt(crowd.X_train)), crowd.y_train, crowd


# Rows with votes of crowd annotators: name, source and loader.
CROWDS = (("sentences", "MTurk sentiment", sentences), ("scenes", "LabelMe", scenes))


@cache
def annotated_texts(file):
    """Return true classes, features and votes of the distinct texts with votes."""
    # A duplicate's label would leak into the out-of-sample scores of its text.
    table = pd.read_csv(data_file("annotators", f"{file}.csv")).drop_duplicates("text")
    columns = table.drop(columns=["text", "truth"])
    table = table[columns.notna().any(axis=1)]
    labels = columns.loc[table.index].to_numpy(float)
    rows, annotators = np.nonzero(np.isfinite(labels))
    votes = Votes.from_table(
        rows,
        columns.columns.to_numpy(str)[annotators],
        labels[rows, annotators].astype(np.intp),
    )
    return table["truth"].to_numpy(np.intp), text_features(table["text"]), votes


def crowd_votes(crowd):
    """Return the votes of crowd annotators."""
    return Votes.from_table(crowd.item, crowd.annotator, crowd.vote)


def crowd_labels(crowd):
    """Return one label per row from the votes of crowd annotators, by kind."""
    return {
        "one vote": crowd.random_votes(SEED),
        "worst annotator": crowd.worst_votes(),
        "majority": majority(crowd_votes(crowd)),
    }


def majority(votes):
    """Return the class with most votes on each row, with ties broken at random."""
    ties = np.random.default_rng(SEED).random(votes.counts.shape)
    return (votes.counts + 0.5 * ties).argmax(axis=1)


def text_features(texts):
    """Return standardized leading components of the TF-IDF features of words and word pairs."""
    vectorizer = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2)
    projection = TruncatedSVD(TEXT_DIMENSIONS, random_state=SEED)
    return standardized(projection.fit_transform(vectorizer.fit_transform(texts)))


def standardized(features):
    """Return features with mean 0 and variance 1."""
    return StandardScaler().fit_transform(features)


def with_probabilities(data, model):
    """Return a set with out-of-fold probabilities of a model in place of its features.

    The model is trained on the observed labels.
    """
    folds = StratifiedKFold(5, shuffle=True, random_state=SEED)
    pred_probs = cross_val_predict(
        MODELS[model], data.X, data.observed, cv=folds, method="predict_proba"
    )
    return replace(data, name=f"{data.name}, {model}", X=None, pred_probs=pred_probs)


def data_file(folder, name):
    """Return the path of a file in the folder of the data sets."""
    if not os.environ.get("UNFLIP_DATA"):
        raise FileNotFoundError("Set UNFLIP_DATA to the folder with the data sets.")
    return Path(os.environ["UNFLIP_DATA"]) / folder / name


def describe(data):
    """Return the line of a set in the table."""
    return {
        "set": data.name,
        "source": data.source,
        "n": len(data.truth),
        "k": data.truth.max() + 1,
        "p": "probabilities" if data.X is None else data.X.shape[1],
        "wrong": (data.observed != data.truth).mean(),
    }


def main():
    """Print a table of each kind of sets."""
    for kind, sets in (("real", real_sets), ("control", control_sets)):
        table = pd.DataFrame([describe(data) for data in sets()])
        print(f"\n{kind}: share of wrong labels")
        print(table.to_string(index=False, float_format=lambda value: f"{value:.3f}"))


if __name__ == "__main__":
    main()
