"""The HTML page of an evaluation: metrics, confusion matrix and calibration curve in one file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unflip._utils.atomic_files import write_atomically
from unflip._utils.record_tables import lines_of
from unflip.auditing.evaluation import evaluation_prose as prose
from unflip.auditing.evaluation import noisy_metrics, sampled_checks
from unflip.auditing.evaluation.model_evaluation import Evaluation
from unflip.auditing.html.page_parts import rendered
from unflip.auditing.html.page_tables import Card, Cell, heat
from unflip.calibration.interval import Interval

_TICK_STEP = 0.1  # of the axes of the calibration curve
_MOST_TICKS = 6  # beyond which every second tick is left out


def write_page(evaluation: Evaluation, path: Path) -> None:
    """Write the page of an evaluation; an existing file is replaced only by a complete one.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
    path : Path
        File to write.
    """
    write_atomically(path, page(evaluation))


def page(
    evaluation: Evaluation,
    *,
    ids: Sequence[str] | None = None,
    source: str = "",
    by_command: bool = False,
) -> bytes:
    """Return the page of an evaluation.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
    ids : sequence of str, optional
        Id of each row, to name the rows to check; by default they are counted from 0.
    source : str
        Name of the data.
    by_command : bool
        Whether to advise on commands rather than on Python.
    """
    interface = prose.COMMAND_LINE if by_command else prose.PYTHON
    rows = rows_to_check(evaluation)
    return rendered(
        "evaluation.html",
        evaluation=evaluation,
        prose=prose,
        source=source,
        cards=cards(evaluation),
        metrics=metric_lines(evaluation),
        rates=class_lines(evaluation),
        classes=[str(label) for label in evaluation.classes.tolist()],
        confusion=confusion_cells(evaluation),
        chart=CalibrationChart.of(evaluation),
        curve=curve_lines(evaluation),
        selected=prose.selected(interface) if is_selected(evaluation) else "",
        assumptions=prose.assumptions(evaluation, has_inclusion=has_inclusion(evaluation)),
        to_check=[str(row) if ids is None else str(ids[row]) for row in rows],
        has_ids=ids is not None,
        interface=interface,
    )


def is_selected(evaluation: Evaluation) -> bool:
    """Whether rows were checked because their label looked wrong, without their probabilities."""
    return not has_inclusion(evaluation) and sampled_checks.was_selected(evaluation.fitted)


def has_inclusion(evaluation: Evaluation) -> bool:
    """Whether the probabilities with which rows were chosen for a check are known."""
    return evaluation.checked.inclusion is not None


def rows_to_check(evaluation: Evaluation) -> list[int]:
    """Return the rows to check next; none if the intervals are narrow already."""
    if not prose.needs_checks(evaluation):
        return []
    return [int(row) for row in evaluation.check_next(prose.n_to_check(evaluation))]


def cards(evaluation: Evaluation) -> list[Card]:
    """Return the accuracy, the share of correct labels and the number of checked rows."""
    correct = evaluation.correct_labels
    return [
        Card(
            "Accuracy on true labels",
            f"{evaluation.accuracy.value:.1%}",
            f"95% interval {_percent_limits(evaluation.accuracy)}",
            prose.agreement(evaluation),
        ),
        Card(
            "Correct labels",
            f"{correct.value:.1%}",
            f"95% interval {_percent_limits(correct)}",
            "Estimated share of the noisy labels that are correct. A perfect model agrees with "
            "this share of them.",
        ),
        Card(
            "Checked rows",
            f"{evaluation.n_checked:,}",
            f"of {evaluation.n_rows:,} rows",
            prose.rests_on(evaluation),
        ),
    ]


def _percent_limits(interval: Interval) -> str:
    return f"{interval.low:.1%} to {interval.high:.1%}"


def metric_lines(evaluation: Evaluation) -> list[tuple[str, ...]]:
    """Return name, value, interval and the value against the noisy labels of each metric."""
    noisy = noisy_metrics.by_name(evaluation)
    return [
        (
            prose.metric_name(evaluation, name),
            prose.decimals(interval.value),
            prose.limits(interval),
            prose.decimals(noisy[name]),
        )
        for name, interval in evaluation.metrics.items()
    ]


def class_lines(evaluation: Evaluation) -> list[tuple[str, ...]]:
    """Return each class with its precision, recall and their intervals."""
    return [
        (
            str(label),
            prose.decimals(precision.value),
            prose.limits(precision),
            prose.decimals(recall.value),
            prose.limits(recall),
        )
        for label, precision, recall in zip(
            evaluation.classes.tolist(), evaluation.precision, evaluation.recall, strict=True
        )
    ]


def confusion_cells(evaluation: Evaluation) -> list[list[Cell]]:
    """Return the confusion matrix, a list of cells for each true class."""
    counts = evaluation.confusion
    low, high = evaluation.confusion_interval
    totals = counts.sum(axis=1, keepdims=True)
    shares = counts / np.where(totals > 0, totals, 1.0)
    return [
        [
            Cell(
                figure=f"{counts[a, b]:,.0f}",
                error="",
                interval=f"{low[a, b]:,.0f} to {high[a, b]:,.0f}",
                heat=heat(float(shares[a, b])),
                is_noise=a != b,
            )
            for b in range(len(counts))
        ]
        for a in range(len(counts))
    ]


def curve_lines(evaluation: Evaluation) -> list[tuple[str, ...]]:
    """Return confidence, accuracy, interval and number of rows of each bin, formatted."""
    return [
        (
            prose.decimals(confidence),
            prose.decimals(accuracy),
            prose.limits(Interval(accuracy, low, high)),
            f"{n_rows:,}",
        )
        for confidence, accuracy, low, high, n_rows in lines_of(evaluation.calibration_curve)
    ]


@dataclass(frozen=True)
class Point:
    """A bin of the calibration curve, in units of the drawing."""

    x: float
    y: float
    low: float  # y of the lower limit of the accuracy
    high: float  # y of the upper limit


@dataclass(frozen=True)
class Tick:
    """A tick of both axes, in units of the drawing."""

    x: float
    y: float
    text: str


@dataclass(frozen=True)
class CalibrationChart:
    """The drawing of a calibration curve; both axes begin at the same share and end at 1.

    Attributes
    ----------
    points : list of Point
        The bins whose accuracy is known.
    ticks : list of Tick
        Ticks of both axes, the lowest first.
    """

    points: list[Point]
    ticks: list[Tick]

    # Size of the drawing, and of the square of the axes in it, in CSS pixels.
    width = 430
    height = 370
    left = 58
    right = 414
    top = 12
    bottom = 318

    @classmethod
    def of(cls, evaluation: Evaluation) -> CalibrationChart:
        """Return the drawing; without points if the model has no probabilities."""
        curve = evaluation.calibration_curve
        known = curve[np.isfinite(curve.accuracy)]
        least = min([*known.confidence.tolist(), *known.low.tolist()], default=0.0)
        first = math.floor(least / _TICK_STEP)
        n_ticks = round(1 / _TICK_STEP) - first + 1
        stride = 1 if n_ticks <= _MOST_TICKS else 2
        shares = [1 - place * _TICK_STEP for place in reversed(range(0, n_ticks, stride))]
        start = first * _TICK_STEP
        points = [
            Point(cls._x(confidence, start), *(cls._y(value, start) for value in accuracy))
            for confidence, *accuracy, _ in lines_of(known)
        ]
        ticks = [
            Tick(cls._x(share, start), cls._y(share, start), f"{share:.0%}") for share in shares
        ]
        return cls(points, ticks)

    @property
    def path(self) -> str:
        """The line through the points, as the data of an SVG path."""
        return "M" + "L".join(f"{point.x} {point.y}" for point in self.points)

    @classmethod
    def _x(cls, share: float, start: float) -> float:
        return round(cls.left + (cls.right - cls.left) * (share - start) / (1 - start), 1)

    @classmethod
    def _y(cls, share: float, start: float) -> float:
        return round(cls.bottom - (cls.bottom - cls.top) * (share - start) / (1 - start), 1)
