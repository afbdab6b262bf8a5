"""`evaluate`: how good a model is on true labels, from noisy test labels and a few checked rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unflip._utils.alignment import check_aligned
from unflip._utils.optional import import_optional
from unflip._utils.randomness import RandomState
from unflip._utils.record_tables import Table, table
from unflip._utils.typing import FloatArray, IntArray
from unflip._utils.validation import as_count, as_path
from unflip.auditing.check_plan import CheckSample
from unflip.auditing.evaluation import evaluation_prose as prose
from unflip.auditing.evaluation.class_contrast import ClassContrast
from unflip.auditing.evaluation.evaluation_input import CheckedLabels
from unflip.auditing.evaluation.held_out_checks import is_contradicted
from unflip.auditing.evaluation.sampled_checks import warn_if_selected
from unflip.auditing.evaluation.soft_metrics import (
    Rates,
    ScoredModel,
    balanced_accuracy,
    confusion_matrix,
    f1,
    precisions,
    recalls,
)
from unflip.auditing.evaluation.uncertain_truth import ModelTruth, SampledTruth, UncertainTruth
from unflip.calibration.interval import Interval, positive_interval, share_interval
from unflip.calibration.true_class import TrueClassModel

_HEADER = ["metric", "class", "value", "low", "high"]


def evaluate(
    scores: ArrayLike,
    labels: ArrayLike,
    trusted: ArrayLike | None = None,
    *,
    inclusion: ArrayLike | None = None,
) -> Evaluation:
    """Estimate the metrics of any model on the true labels of rows with noisy labels.

    True labels of a few rows (50 to 200) are enough for narrow intervals, which do not assume how
    labels go wrong. Check rows at random, or those of `Evaluation.check_next`. Without checked
    rows, intervals are wide.

    Parameters
    ----------
    scores : array-like of shape (n, k) or (n,)
        What the model says about rows that it was not trained on: probabilities with one column
        for each class, in sorted order; for two classes also the probabilities of the second one;
        or predicted labels.
    labels : array-like of shape (n,)
        Noisy labels of these rows.
    trusted : array-like of shape (n,), optional
        True labels of checked rows; None, NaN or pandas.NA for the others.
    inclusion : array-like of shape (n,), optional
        Probability with which each row was chosen for a check, if rows were not chosen at random
        among those of the same label and prediction.

    Returns
    -------
    Evaluation
        Metrics with 95% intervals. They estimate the values on these rows with true labels.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import evaluate
    >>> rng = np.random.default_rng(0)
    >>> positive = rng.random(2000)  # a model's probabilities
    >>> true = (rng.random(2000) < positive).astype(int)
    >>> is_hard = np.abs(positive - 0.5) < 0.3
    >>> labels = np.where(is_hard & (rng.random(2000) < 0.3), 1 - true, true)
    >>> trusted = np.full(2000, None)
    >>> rows = evaluate(positive, labels).check_next(100)
    >>> trusted[rows] = true[rows]
    >>> result = evaluate(positive, labels, trusted)
    >>> print(result.accuracy, f"truth: {np.mean((positive > 0.5) == true):.3f}")
    0.781 [0.721, 0.829] truth: 0.749
    """
    check_aligned(scores=scores, labels=labels, trusted=trusted, inclusion=inclusion)
    checked = CheckedLabels.of(labels, trusted, inclusion, "evaluate")
    model = checked.scored(scores, "scores")
    fitted = TrueClassModel.fit(
        checked.with_scores(model), checked.truth, inclusion=checked.inclusion
    )
    if checked.inclusion is None:
        warn_if_selected(fitted)
    truth = best_truth(fitted, [ClassContrast(model.predicted)], checked)
    return Evaluation(checked, model, fitted, truth)


def best_truth(
    fitted: TrueClassModel, contrasts: list[ClassContrast], checked: CheckedLabels
) -> UncertainTruth:
    """Return the truth by the model, or by the checked rows alone if they contradict the model.

    Parameters
    ----------
    fitted : TrueClassModel
        Model of the true class.
    contrasts : list of ClassContrast
        What the model must predict for held-out checked rows.
    checked : CheckedLabels
        Noisy labels and checked rows.
    """
    rows = fitted.rows
    if not is_contradicted(fitted, contrasts, rows.strata, checked.inclusion):
        return ModelTruth(fitted)
    return SampledTruth.of(
        checked.truth, rows.n_classes, [rows.strata, rows.cells], checked.inclusion
    )


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Result of `evaluate`: metrics on true labels, with 95% intervals.

    Parameters
    ----------
    checked : CheckedLabels
        Noisy labels and checked rows.
    scored : ScoredModel
        Predictions of the model.
    fitted : TrueClassModel
        Model of the true class.
    truth : UncertainTruth
        True classes that the metrics are computed from.
    """

    checked: CheckedLabels
    scored: ScoredModel
    fitted: TrueClassModel
    truth: UncertainTruth

    @property
    def classes(self) -> NDArray[Any]:
        """The classes, sorted."""
        return self.checked.classes

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.checked.codes)

    @property
    def n_checked(self) -> int:
        """Number of checked rows."""
        return self.fitted.n_checked

    @property
    def is_model_based(self) -> bool:
        """Whether the metrics use all rows, by a model that checked rows calibrate.

        False if checked rows contradicted that model: the metrics then use checked rows alone.
        """
        return isinstance(self.truth, ModelTruth)

    @property
    def label_posterior(self) -> FloatArray:
        """P(true class | score, label), (n, k); 0 and 1 for checked rows.

        It is that of the model, also if checked rows contradicted it.
        """
        return self.fitted.posterior.copy()

    @property
    def agreement(self) -> float:
        """Share of rows on which prediction and noisy label agree: the naive accuracy."""
        return float(np.mean(self.scored.predicted == self.checked.codes))

    @cached_property
    def correct_labels(self) -> Interval:
        """Share of correct labels."""
        return self.truth.accuracy(self.checked.codes)

    @cached_property
    def accuracy(self) -> Interval:
        """Accuracy."""
        return self.truth.accuracy(self.scored.predicted)

    @cached_property
    def balanced_accuracy(self) -> Interval:
        """Mean recall of the classes."""
        return self._rates(balanced_accuracy)[0]

    @cached_property
    def f1(self) -> Interval:
        """F1 score of the second of two classes, or the mean of several classes."""
        return self._rates(f1)[0]

    @cached_property
    def precision(self) -> list[Interval]:
        """Precision of each class."""
        return self._rates(precisions)

    @cached_property
    def recall(self) -> list[Interval]:
        """Recall of each class."""
        return self._rates(recalls)

    @cached_property
    def roc_auc(self) -> Interval | None:
        """Area under the ROC curve, for several classes the mean of each against the rest.

        None without probabilities.
        """
        return self._probability_metric("roc_auc")

    @cached_property
    def log_loss(self) -> Interval | None:
        """Mean negative log-probability of the true class; None without probabilities."""
        return self._probability_metric("log_loss")

    @cached_property
    def brier(self) -> Interval | None:
        """Brier score; None without probabilities."""
        return self._probability_metric("brier")

    @property
    def confusion(self) -> FloatArray:
        """Expected number of rows of each true class (row) and predicted class (column), (k, k)."""
        return self._confusion.copy()

    @cached_property
    def confusion_interval(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper limits of the entries of ``confusion``, (k, k) each."""
        n = self.n_rows
        errors = np.sqrt(self.truth.confusion_variances(self.scored.predicted)) / n
        limits = np.array(
            [
                [share_interval(value, error).limits for value, error in zip(*lines, strict=True)]
                for lines in zip(self._confusion / n, errors, strict=True)
            ]
        )
        return n * limits[..., 0], n * limits[..., 1]

    @cached_property
    def calibration_curve(self) -> Table:
        """Confidence and accuracy of the model in bins of about equally many rows.

        Columns: ``confidence`` (mean probability of the predicted class), ``accuracy``, its limits
        ``low`` and ``high``, and ``n_rows``. Empty without probabilities.
        """
        lines = [self._calibration(bin_) for bin_ in range(self.scored.n_bins)]
        confidence, accuracy, low, high, n_rows = zip(*lines, strict=True) if lines else [()] * 5
        return table(
            confidence=np.array(confidence, dtype=float),
            accuracy=np.array(accuracy, dtype=float),
            low=np.array(low, dtype=float),
            high=np.array(high, dtype=float),
            n_rows=np.array(n_rows, dtype=np.intp),
        )

    def check_next(self, m: int, *, random_state: RandomState = 0) -> IntArray:
        """Return m rows to check next, as `Audit.check_next`."""
        sample = CheckSample.of(self.fitted)
        return sample.draw(as_count(m, "m", most=len(sample.unchecked)), random_state)

    @property
    def metrics(self) -> dict[str, Interval]:
        """The metrics of the whole model by name, without those that need probabilities."""
        values = {
            "accuracy": self.accuracy,
            "balanced_accuracy": self.balanced_accuracy,
            "f1": self.f1,
            "roc_auc": self.roc_auc,
            "log_loss": self.log_loss,
            "brier": self.brier,
        }
        return {name: value for name, value in values.items() if value is not None}

    def to_frame(self) -> Any:
        """Return all metrics as a pandas DataFrame: metric, class, value, low, high."""
        return import_optional("pandas", "to_frame").DataFrame(self._lines, columns=_HEADER)

    @property
    def _lines(self) -> list[tuple[str, Any, float, float, float]]:
        lines: list[tuple[str, Any, float, float, float]] = [
            (name, None, *interval.numbers) for name, interval in self.metrics.items()
        ]
        for name, values in (("precision", self.precision), ("recall", self.recall)):
            lines += [
                (name, label, *interval.numbers)
                for label, interval in zip(self.classes.tolist(), values, strict=True)
            ]
        return lines

    def to_html(self, path: str | PathLike[str]) -> None:
        """Write the evaluation as one HTML file."""
        page = import_optional("unflip.auditing.html.evaluation_page", "to_html")
        page.write_page(self, as_path(path, "path"))

    def _repr_html_(self) -> str:
        caption = f"{prose.headline(self)} {prose.basis(self)}"
        return prose.html_table(caption, _HEADER, self._lines)

    def __str__(self) -> str:
        lines = [f"{prose.METRICS[name]}: {value}" for name, value in self.metrics.items()]
        return "\n".join([prose.headline(self), *lines, prose.basis(self)])

    def __repr__(self) -> str:
        return (
            f"<Evaluation of {self.n_rows} rows, {self.n_checked} checked: "
            f"accuracy={self.accuracy}>"
        )

    @cached_property
    def _confusion(self) -> FloatArray:
        return confusion_matrix(self.truth.masses, self.scored.predicted)

    def _rates(self, function: Callable[[FloatArray], Rates]) -> list[Interval]:
        """Return the values of a function of the confusion matrix."""
        predicted = self.scored.predicted
        rates = function(self._confusion)

        def value(place: int, masses: FloatArray) -> float:
            return float(function(confusion_matrix(masses, predicted)).values[place])

        intervals = []
        for place, by_entry in enumerate(rates.gradients):
            spread = self.truth.spread(partial(value, place), by_entry.T[predicted])
            intervals.append(
                share_interval(float(rates.values[place]), spread.error, limits=spread.limits)
            )
        return intervals

    def _probability_metric(self, name: str) -> Interval | None:
        if self.scored.probabilities is None:
            return None
        masses = self.truth.masses
        value = self.scored.metric(name, masses)
        gradient = self.scored.gradient(name, masses)
        spread = self.truth.spread(partial(self.scored.metric, name), gradient)
        interval = share_interval if name == "roc_auc" else positive_interval
        return interval(value, spread.error, limits=spread.limits)

    def _calibration(self, bin_: int) -> tuple[float, float, float, float, int]:
        """Return confidence, accuracy, its limits and the number of rows of a bin."""
        members = self.scored.bins == bin_
        gradient = np.zeros_like(self.truth.masses)
        gradient[members, self.scored.predicted[members]] = 1.0
        total = float(self.truth.masses[members].sum())
        confidence = float(self.scored.confidence[members].mean())
        n_rows = int(members.sum())
        if total == 0:  # no checked row in this bin
            return confidence, np.nan, 0.0, 1.0, n_rows
        value = float((self.truth.masses * gradient).sum()) / total
        error = float(np.sqrt(self.truth.variance((gradient - value * members[:, None]) / total)))
        return confidence, *share_interval(value, error).numbers, n_rows
