"""Features of tables: scikit-learn's ColumnTransformer (TableFeatures) against skrub.

Accuracy on clean labels of LPClassifier, fitted to 1000 rows (or two thirds of them) of tables with
numbers, categories, dates and missing values, with noise rates of 30% and 10%; and the time of the
features. skrub is left out if it is not installed.
"""

import argparse
import gzip
import json
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn
from scipy.sparse import issparse
from sklearn.datasets import load_breast_cancer
from sklearn.externals import _arff
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from unflip import LPClassifier, NoiseModel
from unflip.features import TableFeatures, table_columns

try:
    import skrub
except ImportError:
    skrub = None

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
N_TRAINING = 1000
FEWEST = (2, 5, 10, 20, 50)  # rows of a level with an indicator of its own
SHARE_MISSING = 0.1


def titanic():
    """Return passengers with ages, fares, cabins and ports, from the tests of scikit-learn."""
    folder = Path(sklearn.__path__[0]) / "datasets/tests/data/openml/id_40945"
    with gzip.open(folder / "data-v1-dl-16826755.arff.gz", "rt", encoding="utf-8") as file:
        content = _arff.load(file.read())
    frame = pd.DataFrame(content["data"], columns=[name for name, _ in content["attributes"]])
    survived = frame.pop("survived").astype(int).to_numpy()
    return frame.drop(columns=["boat", "body", "name", "home.dest"]).infer_objects(), survived


def abalone():
    """Return shells with a sex, a class of size and missing values."""
    names = ["sex", "length", "diameter", "height", "whole"]
    names += ["shucked", "viscera", "shell", "rings"]
    path = Path(os.environ["UNFLIP_DATA"]) / "tabular" / "abalone.csv"
    frame = pd.read_csv(path, header=None, names=names)
    old = (frame.pop("rings") >= 10).astype(int).to_numpy()
    sizes = ["xs", "s", "m", "l", "xl", "xxl"]
    frame["length"] = pd.qcut(frame["length"], 6, labels=sizes).astype(object)
    return with_missing(frame, 0), old


def tumours():
    """Return tumours; a third of the measurements as eight classes, and missing values."""
    data = load_breast_cancer(as_frame=True)
    frame = data.data.copy()
    for name in list(frame.columns)[::3]:
        frame[name] = pd.qcut(frame[name], 8, labels=list("abcdefgh")).astype(object)
    return with_missing(frame, 1), data.target.to_numpy()


def wine():
    """Return white wines; one measurement as 20 classes, one as true or false."""
    path = Path(os.environ["UNFLIP_DATA"]) / "tabular" / "winequality-white.csv"
    frame = pd.read_csv(path, header=None)
    good = (frame.pop(11) >= 6).astype(int).to_numpy()
    frame.columns = [f"x{place}" for place in range(11)]
    frame["x10"] = pd.qcut(frame["x10"], 20, duplicates="drop").astype(str)
    frame["x1"] = (frame["x1"] > frame["x1"].median()).astype(object)
    return with_missing(frame, 2), good


def orders(n=3000):
    """Return simulated orders with times, 200 cities of unequal size, prices and kinds."""
    rng = np.random.default_rng(3)
    minutes = rng.integers(0, 2 * 365 * 24 * 60, n)
    when = pd.Series(pd.Timestamp("2023-01-01") + pd.to_timedelta(minutes, unit="m"))
    city = np.minimum(rng.zipf(1.4, n), 200)
    effects = rng.normal(size=201)
    price = rng.lognormal(3, 1, n)
    priority = rng.random(n) < 0.3
    kind = rng.choice(["book", "food", "toys", "tools"], n)
    score = 1.2 * effects[city] - 0.5 * np.log(price) + priority + (kind == "toys")
    score += 1.5 * (when.dt.day_of_week >= 5) + 1.2 * when.dt.month.isin([6, 7, 8])
    score += 1.0 * (when.dt.hour < 6) - 1.0 * (when.dt.year == 2024)
    score += 0.7 * rng.logistic(size=n)
    frame = pd.DataFrame(
        {
            "when": when.dt.strftime("%Y-%m-%d %H:%M:%S"),
            "city": [f"city {number}" for number in city],
            "price": price.round(2),
            "priority": priority,
            "kind": kind,
        }
    )
    for name in ("price", "kind"):
        frame[name] = frame[name].mask(rng.random(n) < SHARE_MISSING)
    return frame, (score > score.median()).astype(int).to_numpy()


def with_missing(frame, seed):
    """Return a table without 10% of its cells."""
    rng = np.random.default_rng(seed)
    for name in frame.columns:
        frame[name] = frame[name].mask(rng.random(len(frame)) < SHARE_MISSING)
    return frame


def reviews(domain, seed=4):
    """Return texts with columns that tell something of the label (a price and a seller), or not."""
    path = Path(os.environ["UNFLIP_DATA"]) / "blitzer_sentiment" / "reviews.json.gz"
    with gzip.open(path) as file:
        frame = pd.DataFrame(json.load(file))
    frame = frame[frame["domain"] == domain].reset_index(drop=True)
    label = frame["label"].to_numpy()
    rng = np.random.default_rng(seed)
    n = len(frame)
    honest = np.where(label == 1, "A", "B")
    telling = pd.DataFrame(
        {
            "price": np.round(np.exp(rng.normal(3, 1, n)) + 5 * label, 2),
            "seller": np.where(rng.random(n) < 0.35, honest, rng.choice(list("ABCD"), n)),
        }
    )
    other = pd.DataFrame(rng.normal(size=(n, 20)), columns=[f"z{place}" for place in range(20)])
    return frame[["title", "text"]], telling, other, label


TABLES = {
    "titanic": titanic,
    "abalone": abalone,
    "tumours": tumours,
    "wine": wine,
    "orders": orders,
}


def methods():
    """Return functions that make an unfitted transformer, by name."""
    named = {
        "TableFeatures": TableFeatures,
        "indicators scaled, too": lambda: make_pipeline(
            TableFeatures(), StandardScaler(with_mean=False)
        ),
    }
    if skrub is not None:
        dates = skrub.DatetimeEncoder(add_weekday=True)
        named["skrub TableVectorizer"] = lambda: make_pipeline(
            skrub.TableVectorizer(datetime=dates),
            SimpleImputer(add_indicator=True),
            StandardScaler(),
        )
    return named


def measured(make, frame, label, n_seeds):
    """Return accuracies on clean labels, by seed, and the median processor time of the features."""
    accuracies = []
    seconds = []
    n_training = min(N_TRAINING, len(label) * 2 // 3)
    for seed in range(n_seeds):
        train, test = train_test_split(
            np.arange(len(label)), train_size=n_training, random_state=seed, stratify=label
        )
        start = time.process_time()
        features = make()
        X = as_rows(features.fit_transform(frame.iloc[train]))
        X_test = as_rows(features.transform(frame.iloc[test]))
        seconds.append(time.process_time() - start)
        fitted = LPClassifier().fit(X, NOISE.flip(label[train], random_state=seed))
        accuracies.append(fitted.score(X_test, label[test]))
    return np.array(accuracies), np.median(seconds)


def as_rows(features):
    """Return features as an array, or as they are if sparse."""
    return features if issparse(features) else np.asarray(features)


def part_tables(n_seeds):
    """Compare the transformers on five tables."""
    print(f"\naccuracy in % (standard error), {n_seeds} splits; processor time of the features")
    for table, load in TABLES.items():
        frame, label = load()
        for name, make in methods().items():
            accuracies, seconds = measured(make, frame, label, n_seeds)
            print(
                f"{table:<10}{name:<26}{in_words(accuracies)}{1000 * seconds:>8.0f} ms", flush=True
            )


def part_levels(n_seeds):
    """Compare the fewest rows of a level with an indicator of its own."""
    print("\naccuracy in % by the fewest rows of a level")
    default = table_columns._FEWEST_ROWS
    for table in ("titanic", "orders"):
        frame, label = TABLES[table]()
        for fewest in FEWEST:
            table_columns._FEWEST_ROWS = fewest
            accuracies, _ = measured(TableFeatures, frame, label, n_seeds)
            print(f"{table:<10}{fewest:>4} rows  {in_words(accuracies)}", flush=True)
    table_columns._FEWEST_ROWS = default


def part_texts(n_seeds):
    """Compare words alone with words and other columns."""
    print("\naccuracy in % of words, and of words with other columns")
    for domain in ("kitchen", "books"):
        texts, telling, other, label = reviews(domain)
        cases = {
            "words alone": texts,
            "2 columns that tell": pd.concat([texts, telling], axis=1),
            "20 columns of chance": pd.concat([texts, other], axis=1),
        }
        for name, frame in cases.items():
            accuracies, _ = measured(
                lambda: TableFeatures(["title", "text"], use="*"), frame, label, n_seeds
            )
            print(f"{domain:<10}{name:<22}{in_words(accuracies)}", flush=True)


def in_words(accuracies):
    """Format a mean accuracy with its standard error, in percent."""
    error = accuracies.std(ddof=1) / np.sqrt(len(accuracies))
    return f"{100 * accuracies.mean():.1f} ({100 * error:.1f})"


def main():
    """Run all parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=8, help="random splits")
    parser.add_argument("--quick", action="store_true", help="two splits")
    options = parser.parse_args()
    n_seeds = 2 if options.quick else options.seeds
    warnings.simplefilter("ignore")  # on assumed noise rates
    part_tables(n_seeds)
    part_levels(n_seeds)
    part_texts(n_seeds)


if __name__ == "__main__":
    main()
