r"""Metrics of predictions against a soft truth, with their derivatives.

A soft truth is a table of masses T (n, k): how many rows of true class a row i stands for. It has
P(true class | row) if the truth is uncertain, and the weight of each row in the column of its class
if rows were sampled. If all true classes are known, the metrics equal those of scikit-learn.

Balanced accuracy, F1, precision and recall are functions of the confusion matrix C (row = true
class, column = predicted class), so their derivatives are tables (k, k). Those of the other metrics
are tables (n, k).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unflip._utils.typing import FloatArray, IntArray

_MOST_BINS = 10  # of the calibration curve

#: Metrics that need probabilities.
PROBABILITY_METRICS = ("roc_auc", "log_loss", "brier")


@dataclass(frozen=True, eq=False)
class Rates:
    """Ratios of sums of entries of the confusion matrix, NaN if they are not defined.

    Attributes
    ----------
    values : ndarray of shape (m,)
        The rates.
    gradients : ndarray of shape (m, k, k)
        Derivatives of each rate by the confusion matrix.
    """

    values: FloatArray
    gradients: FloatArray

    def only(self, index: int) -> Rates:
        """Return one of the rates."""
        return Rates(self.values[index : index + 1], self.gradients[index : index + 1])

    @property
    def mean(self) -> Rates:
        """Mean of the defined rates."""
        defined = np.isfinite(self.values)
        if not defined.any():
            return self.only(0)
        return Rates(
            self.values[defined].mean(keepdims=True),
            self.gradients[defined].mean(axis=0, keepdims=True),
        )


def confusion_matrix(masses: FloatArray, predicted: IntArray) -> FloatArray:
    """Return the mass of each true class (row) and predicted class (column), (k, k)."""
    k = masses.shape[1]
    return np.array([np.bincount(predicted, masses[:, a], minlength=k) for a in range(k)])


def recalls(confusion: FloatArray) -> Rates:
    """Return the recall of each class, C_aa / Σ_b C_ab."""
    k = len(confusion)
    in_row = np.eye(k)[:, :, None] * np.ones(k)
    return _rates(confusion.diagonal(), confusion.sum(axis=1), in_row)


def precisions(confusion: FloatArray) -> Rates:
    """Return the precision of each class, C_aa / Σ_b C_ba."""
    k = len(confusion)
    in_column = np.eye(k)[:, None, :] * np.ones((k, 1))
    return _rates(confusion.diagonal(), confusion.sum(axis=0), in_column)


def f1_scores(confusion: FloatArray) -> Rates:
    """Return the F1 score of each class, 2 C_aa / Σ_b (C_ab + C_ba)."""
    k = len(confusion)
    in_either = np.eye(k)[:, :, None] * np.ones(k) + np.eye(k)[:, None, :] * np.ones((k, 1))
    totals = (confusion.sum(axis=0) + confusion.sum(axis=1)) / 2
    return _rates(confusion.diagonal(), totals, in_either / 2)


def _rates(hits: FloatArray, totals: FloatArray, in_totals: FloatArray) -> Rates:
    """Return hits / totals; `in_totals` has the derivatives of the totals."""
    k = len(hits)
    is_hit = np.eye(k)[:, :, None] * np.eye(k)[:, None, :]
    divisors = np.where(totals > 0, totals, np.nan)
    values = hits / divisors
    gradients = (is_hit - values[:, None, None] * in_totals) / divisors[:, None, None]
    return Rates(values, np.nan_to_num(gradients))


def balanced_accuracy(confusion: FloatArray) -> Rates:
    """Return the mean recall of the classes that occur."""
    return recalls(confusion).mean


def f1(confusion: FloatArray) -> Rates:
    """Return the F1 score of the second of two classes, or the mean of several classes."""
    scores = f1_scores(confusion)
    return scores.only(1) if len(confusion) == 2 else scores.mean


#: Metrics that are functions of the confusion matrix.
CONFUSION_METRICS = {"balanced_accuracy": balanced_accuracy, "f1": f1}


@dataclass(frozen=True, eq=False)
class RankedScores:
    """Ranks of the scores of each class against the rest, for the area under the ROC curve.

    Attributes
    ----------
    classes : sequence of int
        The classes: the second one of two, all of several.
    ranks : sequence of ndarray of shape (n,)
        Rank of each row among the distinct scores of each of these classes.
    """

    classes: Sequence[int]
    ranks: Sequence[IntArray]

    @classmethod
    def of(cls, probabilities: FloatArray) -> RankedScores:
        """Rank the probabilities (n, k) of the classes."""
        k = probabilities.shape[1]
        classes = [1] if k == 2 else list(range(k))
        ranks = [np.unique(probabilities[:, a], return_inverse=True)[1] for a in classes]
        return cls(classes, ranks)

    def area(self, masses: FloatArray) -> float:
        """Return the area, the mean over the classes that have some of the mass but not all."""
        areas = [
            _Pairs.of(rank, masses, code).area
            for code, rank in zip(self.classes, self.ranks, strict=True)
        ]
        defined = [area for area in areas if np.isfinite(area)]
        return float(np.mean(defined)) if defined else np.nan

    def gradient(self, masses: FloatArray) -> FloatArray:
        """Return the derivatives of the area by the masses, (n, k)."""
        gradient = np.zeros_like(masses)
        n_defined = 0
        for code, rank in zip(self.classes, self.ranks, strict=True):
            pairs = _Pairs.of(rank, masses, code)
            if np.isfinite(pairs.area):
                n_defined += 1
                gradient += pairs.by_negative[rank][:, None]
                gradient[:, code] += (pairs.by_positive - pairs.by_negative)[rank]
        return gradient / max(n_defined, 1)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of a row of one class and a row of another, by the rank of their scores.

    Attributes
    ----------
    positive, negative : ndarray of shape (n_ranks,)
        Mass of the class, and of all others, at each rank.
    """

    positive: FloatArray
    negative: FloatArray

    @classmethod
    def of(cls, rank: IntArray, masses: FloatArray, code: int) -> _Pairs:
        own = masses[:, code]
        others = masses.sum(axis=1) - own
        return cls(np.bincount(rank, own).astype(float), np.bincount(rank, others).astype(float))

    @property
    def _below(self) -> FloatArray:
        """Negative mass of lower ranks, and half of that of the same rank."""
        return np.asarray(np.cumsum(self.negative) - self.negative / 2)

    @property
    def area(self) -> float:
        """Share of the pairs in which the class has the higher score, ties counted as one half."""
        pairs = self.positive.sum() * self.negative.sum()
        return float(self.positive @ self._below / pairs) if pairs > 0 else np.nan

    @property
    def by_positive(self) -> FloatArray:
        """Derivative of the area by positive mass at each rank."""
        return np.asarray((self._below / self.negative.sum() - self.area) / self.positive.sum())

    @property
    def by_negative(self) -> FloatArray:
        """Derivative of the area by negative mass at each rank."""
        above = self.positive.sum() - np.cumsum(self.positive) + self.positive / 2
        return np.asarray((above / self.positive.sum() - self.area) / self.negative.sum())


def log_losses(probabilities: FloatArray) -> FloatArray:
    """Return the log loss of each row for each true class, clipped as by scikit-learn, (n, k)."""
    epsilon = float(np.finfo(float).eps)
    return np.asarray(-np.log(np.clip(probabilities, epsilon, 1 - epsilon)))


def brier_scores(probabilities: FloatArray) -> FloatArray:
    """Return the Brier score of each row for each true class, (n, k).

    It is the sum over the classes of squared differences, and for two classes half of it: the
    squared difference of the second class.
    """
    squares = (probabilities**2).sum(axis=1, keepdims=True)
    scores = squares - 2 * probabilities + 1
    return np.asarray(scores / 2 if probabilities.shape[1] == 2 else scores)


@dataclass(frozen=True, eq=False)
class ScoredModel:
    """Predictions of a model, and its probabilities if they are known.

    Attributes
    ----------
    predicted : ndarray of shape (n,)
        Predicted classes.
    n_classes : int
        Number of classes k.
    probabilities : ndarray of shape (n, k) or None
        Probabilities of the classes.
    """

    predicted: IntArray
    n_classes: int
    probabilities: FloatArray | None = None

    def common_metrics(self, other: ScoredModel) -> tuple[str, ...]:
        """Return the names of the metrics that both models have, without the accuracy."""
        if self.probabilities is None or other.probabilities is None:
            return tuple(CONFUSION_METRICS)
        return (*CONFUSION_METRICS, *PROBABILITY_METRICS)

    @cached_property
    def _ranked(self) -> RankedScores:
        return RankedScores.of(self._known_probabilities)

    @cached_property
    def _losses(self) -> dict[str, FloatArray]:
        return {
            "log_loss": log_losses(self._known_probabilities),
            "brier": brier_scores(self._known_probabilities),
        }

    @property
    def _known_probabilities(self) -> FloatArray:
        if self.probabilities is None:
            raise ValueError("The model has predictions only: pass its probabilities.")
        return self.probabilities

    def metric(self, name: str, masses: FloatArray) -> float:
        """Return a metric against a soft truth (n, k)."""
        if name in CONFUSION_METRICS:
            return float(self._confusion_metric(name, masses).values[0])
        if name == "roc_auc":
            return self._ranked.area(masses)
        return float((masses * self._losses[name]).sum() / masses.sum())

    def gradient(self, name: str, masses: FloatArray) -> FloatArray:
        """Return the derivatives of a metric by the masses, (n, k)."""
        if name in CONFUSION_METRICS:
            by_entry = self._confusion_metric(name, masses).gradients[0]
            return np.asarray(by_entry.T[self.predicted])
        if name == "roc_auc":
            return self._ranked.gradient(masses)
        return np.asarray((self._losses[name] - self.metric(name, masses)) / masses.sum())

    def _confusion_metric(self, name: str, masses: FloatArray) -> Rates:
        return CONFUSION_METRICS[name](confusion_matrix(masses, self.predicted))

    @cached_property
    def confidence(self) -> FloatArray:
        """Probability of the predicted class, (n,); empty if only predictions are known."""
        if self.probabilities is None:
            return np.empty(0)
        return np.asarray(self.probabilities[np.arange(len(self.predicted)), self.predicted])

    @cached_property
    def bins(self) -> IntArray:
        """Bin of each row in the calibration curve, (n,): bins have about equally many rows."""
        if self.probabilities is None:
            return np.empty(0, dtype=np.intp)
        edges = np.quantile(self.confidence, np.linspace(0, 1, _MOST_BINS + 1)[1:-1])
        bins = np.searchsorted(np.unique(edges), self.confidence)
        return np.asarray(np.unique(bins, return_inverse=True)[1])

    @property
    def n_bins(self) -> int:
        """Number of bins of the calibration curve."""
        return int(self.bins.max(initial=-1)) + 1
