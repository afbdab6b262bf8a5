"""Noisy labels on shapes that are not linear, and a classifier that records its fits."""

from typing import ClassVar

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from unflip import NoiseModel

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
THREE = NoiseModel([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]], np.full(3, 1 / 3))
TREE = DecisionTreeClassifier(max_depth=4, random_state=0)
CATEGORIES = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
# Standard errors of the association from which nothing is shrunk (`certainty`).
CERTAIN = 4.0


def moons(n=300, seed=0, spread=0.2):
    X, y = make_moons(n, noise=spread, random_state=seed)
    return X, NOISE.flip(y, random_state=seed), y


def circles(n=300, seed=0):
    X, y = make_circles(n, noise=0.1, factor=0.4, random_state=seed)
    return X, NOISE.flip(y, random_state=seed), y


def three_blobs(n=300, seed=0, cluster_std=1.5):
    X, y = make_blobs(n, centers=3, cluster_std=cluster_std, random_state=seed)
    return X, THREE.flip(y, random_state=seed), y


def probabilities_near(codes, n_classes=2, certainty=0.8, seed=0):
    """Return probabilities that favour the given class in most rows."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(len(codes), n_classes))
    logits[np.arange(len(codes)), codes] += 5 * certainty
    return softmax(logits, axis=1)


class Recording(ClassifierMixin, BaseEstimator):
    """A classifier by the first feature, which records what it is fitted to and asked for."""

    fits: ClassVar[list] = []
    seen: ClassVar[list] = []

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.rows_ = set(X[:, 0].tolist())
        Recording.fits.append((X, y, sample_weight))
        return self

    def predict_proba(self, X):
        Recording.seen.append((self.rows_, set(X[:, 0].tolist())))
        second = np.clip(0.5 + 0.1 * X[:, 1], 0.1, 0.9)
        return np.column_stack([1 - second, second])

    def predict(self, X):
        return self.classes_[(X[:, 1] > 0).astype(int)]


class Convertible:
    """An object that only converts to an array."""

    def __init__(self, rows):
        self.rows = rows

    def __array__(self, dtype=None, copy=None):
        return np.array(self.rows, dtype=dtype)
