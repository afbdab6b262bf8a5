"""The command `unflip evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unflip._utils.atomic_files import write_together
from unflip._utils.record_tables import lines_of
from unflip._utils.typing import FloatArray
from unflip.auditing.evaluation import evaluation_prose as prose
from unflip.auditing.evaluation import noisy_metrics, sampled_checks
from unflip.auditing.evaluation.model_evaluation import Evaluation
from unflip.auditing.evaluation.model_evaluation import evaluate as evaluate_model
from unflip.calibration.interval import Interval
from unflip.cli import arguments, evaluation_text
from unflip.cli.files.prediction_columns import PredictionFile, PredictionRequest, read_predictions
from unflip.cli.files.read_options import ReadOptions
from unflip.cli.files.request import collect_warnings
from unflip.cli.terminal import check_out, fail, print_notes, say, say_json, working


def evaluate(
    data: arguments.Data,
    label: arguments.NoisyLabel = None,
    prediction: arguments.Prediction = None,
    probabilities: arguments.Probabilities = None,
    trusted: arguments.Trusted = None,
    inclusion: arguments.Inclusion = None,
    name: arguments.Name = None,
    encoding: arguments.Encoding = None,
    sep: arguments.Separator = None,
    sheet: arguments.Sheet = None,
    out: Annotated[Path | None, typer.Option(help="Page (.html) with all results.")] = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Estimate how good a model's predictions are on true labels.

    The file has noisy labels, and the predictions of any model that was not
    trained on these rows. True labels of 50 to 200 rows make the intervals
    narrow.
    """
    if out is not None:
        check_out(out, [".html", ".htm"], data)
    request = PredictionRequest(
        path=data,
        label=label,
        prediction=prediction,
        probabilities=probabilities,
        trusted=trusted,
        inclusion=inclusion,
        id_column=name,
        read_options=ReadOptions(encoding=encoding, separator=sep, sheet=sheet),
    )
    with working(f"Reading {data.name}") as report_progress:
        file = read_predictions(request)
        report_progress(f"Evaluating {file.table.n_rows} rows")
        evaluation, notes = _evaluated(file)
        answer = _as_json(evaluation, file, notes, out) if as_json else {}
        text = "" if as_json else evaluation_text.summary(evaluation, file, out)
        if out is not None:
            report_progress("Writing")
            write_together({out: _page(evaluation, file)})
    print_notes(notes)
    if as_json:
        say_json(answer)
    else:
        say(text)


def _evaluated(file: PredictionFile) -> tuple[Evaluation, list[str]]:
    """Return the evaluation, and notes to print."""
    with collect_warnings(file.table.name, aim="evaluated") as notes:
        evaluation = evaluate_model(
            file.scores, file.labels.texts, file.trusted, inclusion=file.inclusion
        )
    if file.inclusion is None and sampled_checks.was_selected(evaluation.fitted):
        notes.insert(0, prose.selected(prose.COMMAND_LINE))
    return evaluation, notes + file.labels.notes


def _page(evaluation: Evaluation, file: PredictionFile) -> bytes:
    try:
        from unflip.auditing.html.evaluation_page import page
    except ModuleNotFoundError as missing:
        fail(f'The page needs {missing.name}: install it with pip install "unflip[cli]".')
    return page(evaluation, ids=file.ids, source=file.table.name, by_command=True)


def _as_json(
    evaluation: Evaluation, file: PredictionFile, notes: list[str], out: Path | None
) -> dict[str, Any]:
    classes = evaluation.classes.tolist()
    noisy = noisy_metrics.by_name(evaluation)
    rates = zip(classes, evaluation.precision, evaluation.recall, strict=True)
    low, high = evaluation.confusion_interval
    curve = evaluation.calibration_curve
    return {
        "file": file.table.name,
        "rows": evaluation.n_rows,
        "labels": file.labels.counts,
        "predictions": {
            "kind": "probabilities" if file.has_probabilities else "labels",
            "columns": list(file.columns),
        },
        "n_checked": evaluation.n_checked,
        "is_model_based": evaluation.is_model_based,
        "metrics": {
            name: {**_interval(interval), "against_noisy_labels": noisy[name]}
            for name, interval in evaluation.metrics.items()
        },
        "correct_labels": _interval(evaluation.correct_labels),
        "classes": {
            label: {"precision": _interval(precision), "recall": _interval(recall)}
            for label, precision, recall in rates
        },
        "confusion": {
            "classes": classes,
            "rows": _table(evaluation.confusion),
            "low": _table(low),
            "high": _table(high),
        },
        "calibration_curve": [line._asdict() for line in lines_of(curve)],
        "check_next": evaluation.check_next(prose.n_to_check(evaluation)).tolist(),
        "summary": {
            "accuracy": prose.headline(evaluation),
            "correct_labels": prose.correct_labels(evaluation),
            "intervals": prose.rests_on(evaluation),
        },
        "notes": notes,
        "page": None if out is None else str(out),
    }


def _interval(interval: Interval) -> dict[str, float]:
    return {"value": interval.value, "low": interval.low, "high": interval.high}


def _table(values: FloatArray) -> list[list[float]]:
    return [list(map(float, line)) for line in values]
