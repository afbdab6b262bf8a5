"""Tables with clean labels, most of which no linear classifier fits."""

import csv
import os
from pathlib import Path

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_circles,
    make_classification,
    make_gaussian_quantiles,
    make_hastie_10_2,
    make_moons,
)

TABLES = ("abalone", "banknote_authentication", "phoneme", "sonar", "wheat-seeds")
WINE = "winequality-white"
# Labels of these sets are numbers; a row is positive from this one on.
LIMITS = {"abalone": 10, WINE: 6}


def sklearn_sets():
    """Return real and simulated sets of scikit-learn by name, as features and class indices."""
    digits = load_digits()
    sets = {
        "iris": load_iris(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "breast cancer": load_breast_cancer(return_X_y=True),
        "digits": (digits.data, digits.target),
        "digits odd": (digits.data, digits.target % 2),
        "digits above 4": (digits.data, digits.target >= 5),
        "digits 3/8": pair_of(digits, 3, 8),
        "digits 4/9": pair_of(digits, 4, 9),
        "diabetes": above_median(*load_diabetes(return_X_y=True)),
        "circles": make_circles(2000, noise=0.15, factor=0.5, random_state=0),
        "moons": make_moons(2000, noise=0.25, random_state=0),
        "hastie": make_hastie_10_2(3000, random_state=0),
        "quantiles": make_gaussian_quantiles(
            n_samples=2000, n_features=6, n_classes=2, random_state=0
        ),
        "clusters": make_classification(
            2000, 20, n_informative=8, n_redundant=4, n_clusters_per_class=3, random_state=0
        ),
        "linear": make_classification(
            2000, 20, n_informative=10, n_redundant=0, n_clusters_per_class=1, random_state=1
        ),
        "checkerboard": checkerboard(2000),
    }
    return {name: (X, np.unique(y, return_inverse=True)[1]) for name, (X, y) in sets.items()}


def table_sets():
    """Return the tables in the folder that UNFLIP_DATA names; none without it."""
    folder = os.environ.get("UNFLIP_DATA")
    return {name: table(Path(folder), name) for name in (*TABLES, WINE)} if folder else {}


def table(folder, name):
    """Read a table without a header, whose last column is the label."""
    with open(folder / "tabular" / f"{name}.csv", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if row]
    labels = np.array([row[-1] for row in rows])
    columns = [
        encoded(np.array(column)) for column in zip(*(row[:-1] for row in rows), strict=True)
    ]
    if name in LIMITS:
        labels = labels.astype(float) >= LIMITS[name]
    return np.hstack(columns), np.unique(labels, return_inverse=True)[1]


def encoded(column):
    """Return a column of numbers, or an indicator for each level."""
    try:
        return column.astype(float)[:, None]
    except ValueError:
        return (column[:, None] == np.unique(column)).astype(float)


def pair_of(digits, first, second):
    """Return two of the digits."""
    chosen = np.isin(digits.target, (first, second))
    return digits.data[chosen], digits.target[chosen] == second


def above_median(X, y):
    """Return whether a response is above its median."""
    return X, y > np.median(y)


def checkerboard(n):
    """Return points in a square of four by four fields."""
    X = np.random.default_rng(0).uniform(0, 4, size=(n, 2))
    return X, np.floor(X).sum(axis=1) % 2
