"""Sentences about an evaluation, for the terminal, notebooks and the page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unflip.auditing.evaluation.model_comparison import Comparison
    from unflip.auditing.evaluation.model_evaluation import Evaluation

#: Names of the metrics.
METRICS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "f1": "F1",
    "roc_auc": "ROC AUC",
    "log_loss": "log loss",
    "brier": "Brier score",
}
# Checked rows below which intervals rest mostly on what other data sets showed.
_FEW_CHECKS = 20


def headline(evaluation: Evaluation) -> str:
    """Return the accuracy on true labels, beside that on the noisy ones."""
    accuracy = evaluation.accuracy
    return (
        f"Accuracy on true labels: {accuracy.value:.1%}, 95% interval {accuracy.low:.1%} to "
        f"{accuracy.high:.1%}. Against the noisy labels it is {evaluation.agreement:.1%}."
    )


def basis(evaluation: Evaluation) -> str:
    """Return what the intervals rest on."""
    n_checked = evaluation.n_checked
    if n_checked == 0:
        return (
            "No row was checked, so the intervals say what is usual on other data sets. Check the "
            "rows of .check_next(50), and pass their true labels as trusted=."
        )
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


def verdict(comparison: Comparison) -> str:
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
