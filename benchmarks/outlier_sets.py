"""Sets with known outliers, and with known near-duplicates, for `outliers.py`."""

import csv
from itertools import permutations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler

from honesty_sets import data_file
from tabular_sets import sklearn_sets, table_sets
from unflip.datasets import load_amazon_reviews, load_scene_votes, load_sentiment_votes

SHARE = 0.03  # outliers per other row, and share of the rows that are copied
LABEL_NOISE = 0.2  # share of the labels that are drawn at random
N_COMPONENTS = 300  # of TF-IDF features
TABLES = (
    "abalone",
    "banknote_authentication",
    "breast cancer",
    "phoneme",
    "sonar",
    "wheat-seeds",
    "wine",
    "winequality-white",
)
SIBLINGS = (("books", "dvd"), ("elec", "kitchen"))  # products that are much alike


def outlier_sets(seed):
    """Yield kind, name, rows, whether a row is an outlier, and noisy labels.

    Labels of outliers are random.
    """
    rng = np.random.default_rng(seed)
    digits = load_digits()
    images = digits.data.reshape(-1, 8, 8)
    upside_down = images[:, ::-1].reshape(len(images), -1)
    yield from left_out("digits", digits.data, digits.target, rng)
    yield "digits upside down", "digits", *mixed(digits.data, digits.target, upside_down, rng)
    yield "permuted features", "digits", *permuted(digits.data, digits.target, rng)
    crowd = load_scene_votes()
    scenes = np.sqrt(np.vstack([crowd.X_train, crowd.X_test]).astype(float))
    of_scenes = np.concatenate([crowd.y_train, crowd.y_test])
    yield from left_out("scenes", scenes, of_scenes, rng)
    yield "permuted features", "scenes", *permuted(scenes, of_scenes, rng)
    crowd = load_sentiment_votes()
    sentences = crowd.X_train.astype(float)
    yield "permuted features", "sentences", *permuted(sentences, crowd.y_train, rng)
    reviews = {domain: load_amazon_reviews(domain) for pair in SIBLINGS for domain in pair}
    for first, second in permutations(reviews, 2):
        if (first, second) not in SIBLINGS and (second, first) not in SIBLINGS:
            X, y = reviews[first]
            others = reviews[second][0]
            yield "reviews of another product", f"{first}, {second}", *mixed(X, y, others, rng)
    texts, topics = news()
    yield from left_out("news", text_features(texts), topics, rng)
    for name, (X, y) in tables().items():
        yield "permuted features", name, *permuted(X, y, rng)
        shifted = X.copy()
        columns = rng.permutation(X.shape[1])[: max(1, X.shape[1] // 4)]
        shifted[:, columns] += 3 * rng.choice([-1, 1], len(columns))
        yield "a quarter of the features ± 3 sd", name, *mixed(X, y, shifted, rng)
        if y.max() > 1:
            yield from left_out("tables", X, y, rng)


def duplicate_sets(seed):
    """Yield kind, name, rows, and whether a row has a near-copy or is one."""
    rng = np.random.default_rng(seed)
    crowd = load_scene_votes()
    sets = {
        "digits": load_digits().data,
        "scenes": np.sqrt(np.vstack([crowd.X_train, crowd.X_test]).astype(float)),
        "sentences": load_sentiment_votes().X_train.astype(float),
        "reviews": np.unique(load_amazon_reviews("books")[0], axis=0),
        **{name: np.unique(X, axis=0) for name, (X, _) in tables().items()},
    }
    for share in (0.0, 0.1, 0.3, 0.5):
        for name, X in sets.items():
            if name in TABLES and share > 0.1:
                continue  # with few features, rows are as near as that by chance
            chosen = chosen_rows(len(X), rng)
            noise = share * rng.normal(size=(len(chosen), X.shape[1])) * X.std(axis=0)
            kind = f"noise of {share:g} sd added" if share else "exact copies"
            yield kind, name, *copied(X, X[chosen] + noise, chosen)
    images = sets["digits"]
    chosen = chosen_rows(len(images), rng)
    yield "digits, darker by a fifth", "digits", *copied(images, 0.8 * images[chosen], chosen)
    texts = np.unique(news()[0])
    for share in (0.1, 0.3):
        chosen = chosen_rows(len(texts), rng)
        copies = [
            " ".join(word for word in text.split() if rng.random() > share)
            for text in texts[chosen]
        ]
        X, is_copy = copied(texts, copies, chosen)
        yield f"news without {share:.0%} of the words", "news", text_features(X), is_copy


def left_out(kind, X, y, rng):
    """Yield sets in which the outliers are rows of one class."""
    for label in np.unique(y):
        others = y != label
        rows = mixed(X[others], y[others], X[~others], rng)
        yield f"{kind}, a class left out", f"{kind} {label}", *rows


def permuted(X, y, rng):
    """Return a set in which each feature of an outlier is that of another row."""
    return mixed(X, y, np.column_stack([rng.permutation(column) for column in X.T]), rng)


def mixed(X, y, others, rng):
    """Return rows and some of the others in random order, with noisy labels."""
    chosen = others[rng.permutation(len(others))[: max(3, int(SHARE * len(X)))]]
    codes = np.unique(y, return_inverse=True)[1]
    random = rng.integers(codes.max() + 1, size=len(X) + len(chosen))
    labels = np.concatenate([codes, random[len(X) :]])
    labels = np.where(rng.random(len(labels)) < LABEL_NOISE, random, labels)
    order = rng.permutation(len(labels))
    return np.vstack([X, chosen])[order], order >= len(X), labels[order]


def chosen_rows(n, rng):
    """Return the rows to copy."""
    return rng.permutation(n)[: max(3, int(SHARE * n))]


def copied(X, copies, chosen):
    """Return rows followed by copies, and which rows are part of a pair."""
    is_copy = np.zeros(len(X) + len(chosen), dtype=bool)
    is_copy[chosen] = True
    is_copy[len(X) :] = True
    return np.concatenate([X, copies]), is_copy


def tables():
    """Return standardized tables by name."""
    sets = {**table_sets(), **sklearn_sets()}
    return {name: (StandardScaler().fit_transform(sets[name][0]), sets[name][1]) for name in TABLES}


def news():
    """Return texts and topics of news."""
    with open(data_file("honesty", "news.csv"), encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return np.array([row["text"] for row in rows]), np.array([int(row["truth"]) for row in rows])


def text_features(texts):
    """Return the leading components of the TF-IDF features of words."""
    words = TfidfVectorizer(min_df=3, sublinear_tf=True, stop_words="english").fit_transform(texts)
    return TruncatedSVD(N_COMPONENTS, random_state=0).fit_transform(words)
