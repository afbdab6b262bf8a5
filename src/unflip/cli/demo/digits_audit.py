"""`unflip demo`: handwritten digits with wrong labels, audited where the truth is known."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from unflip._utils.typing import FloatArray, IntArray
from unflip.auditing.from_rows import audit
from unflip.cli.demo.digits_result import Accuracy, DigitsDemo
from unflip.estimation.noise_estimator import AssumedNoiseWarning
from unflip.features.image_features import ImageFeatures
from unflip.labels.noise import NoiseModel
from unflip.model.classifier import LPClassifier

NOISE_RATE = 0.2  # share of the labels that are replaced by another digit; a choice
_N_DIGITS = 10
_N_TRAINING = 1200  # images; the others test the classifiers; a choice
# Inverse regularization strengths among which logistic regression chooses: from fits that nearly
# ignore the features to fits that repeat the training labels.
_STRENGTHS = np.logspace(-4, 0, 5)
_SEED = 0
_INK = 16.0  # value of a dark pixel of the digits
_ENLARGED = 4  # pixels of the page on each side of one of the 8 x 8 pixels
_MOST_STEPS = 1000  # of the solver of logistic regression, which then converges


def run() -> DigitsDemo:
    """Replace labels of digits, audit them, and fit classifiers to them."""
    digits = load_digits()
    split = train_test_split(
        digits.images, digits.target, train_size=_N_TRAINING, random_state=_SEED
    )
    images, new_images, true, new_true = split
    describe = make_pipeline(ImageFeatures(), StandardScaler())
    X = describe.fit_transform(images)
    X_new = describe.transform(new_images)
    observed = _replaced(true)
    with warnings.catch_warnings():
        # The demonstration compares estimates with the truth, whatever they assume.
        warnings.simplefilter("ignore", AssumedNoiseWarning)
        result = audit(X, observed)
        fitted = LPClassifier().fit(X, observed)
    logistic = _cross_validated(X, observed)
    predicted = cross_val_predict(logistic, X, observed)
    return DigitsDemo(
        images=_on_white(images),
        observed=observed,
        true=true,
        n_new=len(new_true),
        audit=result,
        disagreement=predicted != observed,
        unflip=Accuracy(
            fitted.expected_accuracy_, fitted.expected_accuracy_std_, fitted.score(X_new, new_true)
        ),
        logistic=Accuracy(
            float(np.mean(predicted == observed)), np.nan, logistic.score(X_new, new_true)
        ),
        clean=_cross_validated(X, true).score(X_new, new_true),
    )


def _replaced(labels: IntArray) -> IntArray:
    """Return labels of which a share is replaced by another digit, chosen at random."""
    transition = np.full((_N_DIGITS, _N_DIGITS), NOISE_RATE / (_N_DIGITS - 1))
    np.fill_diagonal(transition, 1 - NOISE_RATE)
    return NoiseModel(transition).flip(labels, random_state=_SEED)


def _cross_validated(X: FloatArray, labels: IntArray) -> LogisticRegression:
    """Return logistic regression with the regularization strength of the best cross-validation."""
    search = GridSearchCV(LogisticRegression(max_iter=_MOST_STEPS), {"C": _STRENGTHS})
    return search.fit(X, labels).best_estimator_


def _on_white(images: FloatArray) -> NDArray[np.uint8]:
    """Return larger images, with dark digits on white."""
    shades = 255 * (1 - images / _INK)
    return np.kron(shades, np.ones((1, _ENLARGED, _ENLARGED))).round().astype(np.uint8)
