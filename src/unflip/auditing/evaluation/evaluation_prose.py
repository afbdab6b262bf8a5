"""Sentences about an evaluation, for the terminal, notebooks and the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import isnan
from typing import Any, Protocol

from numpy.typing import NDArray

from unflip.calibration.interval import Interval

#: Names of the metrics.
METRICS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "f1": "F1",
    "roc_auc": "ROC AUC",
    "log_loss": "log loss",
    "brier": "Brier score",
}
#: Metrics of which a lower value is better.
LOSSES = ("log_loss", "brier")
# Checked rows below which intervals rest mostly on what other data sets showed.
_FEW_CHECKS = 20
# Checked rows from which on the intervals are narrow, as `evaluate` says.
_MANY_CHECKS = 200
_ADVISED_CHECKS = 50  # rows to check in a next step, if there are as many


class Evaluated(Protocol):
    """What the sentences need of an `Evaluation`."""

    @property
    def classes(self) -> NDArray[Any]:
        """The classes, sorted."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_checked(self) -> int:
        """Number of checked rows."""

    @property
    def is_model_based(self) -> bool:
        """Whether the metrics use all rows, not the checked ones alone."""

    @property
    def accuracy(self) -> Interval:
        """Accuracy on true labels."""

    @property
    def agreement(self) -> float:
        """Accuracy on the noisy labels."""

    @property
    def correct_labels(self) -> Interval:
        """Share of correct labels."""


class Compared(Protocol):
    """What the sentences need of a `Comparison`."""

    @property
    def better(self) -> str | None:
        """'a' or 'b', the model of higher accuracy; None if it is not known."""


@dataclass(frozen=True)
class Interface:
    """How a user of Python, or of the command line, passes checked rows."""

    rows: str  # where to find rows to check
    trust: str  # how to pass their true labels
    inclusion: str  # how to pass the probabilities with which rows were chosen


PYTHON = Interface(
    rows="the rows of .check_next(50)",
    trust="pass their true labels as trusted=",
    inclusion="pass the probability with which each row was chosen as inclusion=",
)
COMMAND_LINE = Interface(
    rows="the rows that unflip evaluate --json lists under check_next",
    trust="put their true labels into a column and pass its name with --trusted",
    inclusion=(
        "put the probability with which each row was chosen into a column and pass its name with "
        "--inclusion"
    ),
)


def title(evaluation: Evaluated) -> str:
    """Return the accuracy on true and on noisy labels as a title, without a full stop.

    It has the interval, not the estimate, because the estimate alone would look certain.
    """
    interval = evaluation.accuracy
    return (
        f"{interval.low:.1%} to {interval.high:.1%} accurate on true labels, "
        f"{evaluation.agreement:.1%} against the noisy labels"
    )


def headline(evaluation: Evaluated) -> str:
    """Return the accuracy on true labels, beside that on the noisy ones."""
    return f"{accuracy(evaluation)} {agreement(evaluation)}"


def accuracy(evaluation: Evaluated) -> str:
    """Return the accuracy on true labels."""
    interval = evaluation.accuracy
    return (
        f"Accuracy on true labels: {interval.value:.1%}, 95% interval {interval.low:.1%} to "
        f"{interval.high:.1%}."
    )


def agreement(evaluation: Evaluated) -> str:
    """Return the accuracy on the noisy labels."""
    return f"Against the noisy labels it is {evaluation.agreement:.1%}."


def correct_labels(evaluation: Evaluated) -> str:
    """Return the share of correct labels."""
    interval = evaluation.correct_labels
    return (
        f"An estimated {interval.value:.1%} of the noisy labels are correct, 95% interval "
        f"{interval.low:.1%} to {interval.high:.1%}."
    )


def basis(evaluation: Evaluated) -> str:
    """Return what the intervals rest on, and without checked rows what to do."""
    advice = "" if evaluation.n_checked else f" Check {PYTHON.rows}, and {PYTHON.trust}."
    return rests_on(evaluation) + advice


def rests_on(evaluation: Evaluated) -> str:
    """Return what the intervals rest on."""
    n_checked = evaluation.n_checked
    if n_checked == 0:
        return "No row was checked, so the intervals say what is usual on other data sets."
    rows = "1 checked row" if n_checked == 1 else f"{n_checked} checked rows"
    if not evaluation.is_model_based:
        return (
            f"The {rows} contradict the model of the true class, so the metrics are counted on the "
            "checked rows alone. More checked rows make the intervals narrower."
        )
    few = ""
    if n_checked < _FEW_CHECKS:
        few = " With so few checks, the intervals rest mostly on what other data sets showed."
    return f"All {evaluation.n_rows} rows are used, calibrated by {rows}.{few}"


def needs_checks(evaluation: Evaluated) -> bool:
    """Whether more checked rows would make the intervals much narrower."""
    return evaluation.n_checked < _MANY_CHECKS or not evaluation.is_model_based


def n_to_check(evaluation: Evaluated) -> int:
    """Return the number of rows to list for a next check: 50, or all that are left."""
    return min(_ADVISED_CHECKS, evaluation.n_rows - evaluation.n_checked)


def check_advice(n_rows: int, interface: Interface) -> str:
    """Return how to check rows that are listed next."""
    these = f"these {n_rows} rows (a random sample)"
    trust = interface.trust
    if n_rows == 1:
        these = "this row"
        trust = trust.replace("their true labels", "its true label")
    return f"For narrower intervals, check {these}, {trust}, and evaluate again."


def selected(interface: Interface) -> str:
    """Return the warning that rows were checked because their label looked wrong."""
    return (
        "The checked rows are not a random sample: most of them have the least likely labels among "
        f"rows of their kind. So the result may be far off. Check {interface.rows}, or "
        f"{interface.inclusion}."
    )


def assumptions(evaluation: Evaluated, *, has_inclusion: bool) -> list[str]:
    """Return what the metrics and their intervals assume.

    Parameters
    ----------
    evaluation : Evaluated
        The evaluation.
    has_inclusion : bool
        Whether the probabilities with which rows were chosen for a check were passed.
    """
    sentences = ["The model was not trained on these rows."]
    if not evaluation.n_checked:
        return sentences
    chosen = (
        "The checked rows were chosen at random among rows of the same label and prediction, not "
        "because their label looked wrong."
    )
    if has_inclusion:
        chosen = "The checked rows were chosen with the probabilities that were passed."
    return [*sentences, "The trusted labels are correct.", chosen]


def metric_name(evaluation: Evaluated, name: str) -> str:
    """Return the name of a metric, with the class it refers to, or that lower is better."""
    if name in LOSSES:
        return f"{METRICS[name]} (lower is better)"
    if name != "f1":
        return METRICS[name]
    if len(evaluation.classes) > 2:
        return f"{METRICS[name]}, mean of the classes"
    return f"{METRICS[name]} of {evaluation.classes.tolist()[1]!r}"


def decimals(value: float) -> str:
    """Return a metric with three decimals; a dash if it is not defined."""
    return "–" if isnan(value) else f"{value:.3f}"


def limits(interval: Interval) -> str:
    """Return the limits of the interval of a metric; a dash if it is not defined."""
    if isnan(interval.value):
        return "–"
    return f"{decimals(interval.low)} to {decimals(interval.high)}"


def verdict(comparison: Compared) -> str:
    """Return which model is better."""
    if comparison.better is None:
        return "The data do not show which model is more accurate on true labels: check more rows."
    return f"Model {comparison.better.upper()} is more accurate on true labels."


def html_table(caption: str, header: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    """Return a table for notebooks; numbers have three decimals, None is left empty."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_cell(value))}</td>" for value in line) + "</tr>"
        for line in lines
    )
    return (
        f"<p>{escape(caption)}</p><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else str(value)
