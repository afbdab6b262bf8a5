"""The output of `unflip evaluate` on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unflip.auditing.evaluation import evaluation_prose as prose
from unflip.auditing.evaluation import noisy_metrics
from unflip.auditing.evaluation.model_evaluation import Evaluation
from unflip.cli.files.prediction_columns import PredictionFile
from unflip.cli.terminal import on_one_line
from unflip.cli.text_layout import aligned, joined, step, wrapped

_LONGEST_LABEL = 24  # characters
_LONGEST_METRIC = 40  # characters of the name of a metric
_N_CLASSES = 20  # whose precision and recall are printed
_N_ROWS = 5  # to check, that are printed


def summary(evaluation: Evaluation, file: PredictionFile, out: Path | None) -> str:
    """Return the summary of an evaluation.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
    file : PredictionFile
        Labels and predictions.
    out : Path or None
        The page that was written.
    """
    paragraphs = [
        _data(file, evaluation.n_checked),
        wrapped(prose.headline(evaluation)),
        "\n".join(_metrics(evaluation)),
        "\n".join(_classes(evaluation)),
        wrapped(f"Correct labels: {prose.correct_labels(evaluation)}"),
        wrapped(f"Intervals: {prose.rests_on(evaluation)}"),
        _next_steps(evaluation, file, out),
    ]
    return "\n\n".join(paragraphs)


def _data(file: PredictionFile, n_checked: int) -> str:
    """Return what was read: rows, labels, predictions and checked rows."""
    counts = joined([f"{count} {label!r}" for label, count in file.labels.counts.items()])
    kind = "Probabilities" if file.has_probabilities else "Predictions"
    noun = "column" if len(file.columns) == 1 else "columns"
    lines = [
        f"{file.table.name}: {file.table.n_rows} rows, labels {counts}.",
        f"{kind}: {noun} {joined([repr(column) for column in file.columns])}.",
    ]
    if n_checked:
        lines.append(f"Trusted labels: {n_checked} of {file.table.n_rows} rows.")
    return "\n".join(map(wrapped, lines))


def _metrics(evaluation: Evaluation) -> list[str]:
    """Return the table of metrics on true and on noisy labels."""
    noisy = noisy_metrics.by_name(evaluation)
    lines = [
        [
            on_one_line(prose.metric_name(evaluation, name), _LONGEST_METRIC),
            prose.decimals(interval.value),
            prose.limits(interval),
            prose.decimals(noisy[name]),
        ]
        for name, interval in evaluation.metrics.items()
    ]
    return aligned(["metric", "true labels", "95% interval", "noisy labels"], lines)


def _classes(evaluation: Evaluation) -> list[str]:
    """Return the table of precision and recall."""
    classes = evaluation.classes.tolist()
    lines = [
        [
            on_one_line(str(label), _LONGEST_LABEL),
            prose.decimals(precision.value),
            prose.limits(precision),
            prose.decimals(recall.value),
            prose.limits(recall),
        ]
        for label, precision, recall in zip(
            classes, evaluation.precision, evaluation.recall, strict=True
        )
    ]
    header = ["class", "precision", "95% interval", "recall", "95% interval"]
    table = aligned(header, lines[:_N_CLASSES])
    n_more = len(classes) - _N_CLASSES
    return [*table, f"  ... and {n_more} more (--json lists all)"] if n_more > 0 else table


def _next_steps(evaluation: Evaluation, file: PredictionFile, out: Path | None) -> str:
    page = "Add --out report.html to write a page with the confusion matrix"
    if file.has_probabilities:
        page += " and the calibration curve"
    if out is not None:
        page = f"Open {out} to see all results"
    steps = [*_check_rows(evaluation, file.ids), step(f"{page}.")]
    return "\n".join(["Next steps:", *steps])


def _check_rows(evaluation: Evaluation, ids: Sequence[str] | None) -> list[str]:
    """Return which rows to check, and how to pass their labels."""
    n_next = prose.n_to_check(evaluation)
    if not n_next or not prose.needs_checks(evaluation):
        return []
    rows = evaluation.check_next(n_next).tolist()[:_N_ROWS]
    names = [str(row) if ids is None else on_one_line(ids[row], _LONGEST_LABEL) for row in rows]
    rest = ", ..." if n_next > _N_ROWS else ""
    counted = "counted from 0; " if ids is None else ""
    advice = prose.check_advice(n_next, prose.COMMAND_LINE)
    listed = ", ".join(names) + rest
    return [step(f"{advice} Rows: {listed} ({counted}--json lists all under check_next).")]
