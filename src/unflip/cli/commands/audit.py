"""The command `unflip audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unflip._utils.atomic_files import write_together
from unflip._utils.record_tables import lines_of
from unflip.auditing import check_prose, prose
from unflip.auditing.findings import Findings
from unflip.auditing.report import Audit
from unflip.calibration.interval import Interval
from unflip.cli import arguments, audit_text
from unflip.cli.audit_table import audit_file
from unflip.cli.file_audit import FileAudit
from unflip.cli.files.read_options import ReadOptions
from unflip.cli.files.request import Request
from unflip.cli.files.safe_csv import csv_bytes
from unflip.cli.terminal import check_out, count_votes, fail, print_notes, say, say_json, working

_COLUMNS = (
    "part",
    "row",
    "id",
    "observed",
    "proposed",
    "probability_wrong",
    "probability_proposed",
)
#: Heading of `FileAudit.description` on the page, by kind of features.
_LONGEST_TEXT = 1000  # characters of the text of a row in the table of suspects


def audit(
    data: arguments.Data,
    label: arguments.Label = None,
    item: arguments.Item = None,
    annotator: arguments.Annotator = None,
    abstentions: arguments.Abstentions = False,
    abstain: arguments.Abstain = None,
    text: arguments.Text = None,
    embedding: arguments.Embedding = None,
    use: arguments.Use = None,
    eps: arguments.Eps = None,
    priors: arguments.Priors = None,
    trusted: arguments.TrustedOrChecks = None,
    group: arguments.Group = None,
    name: arguments.Name = None,
    ignore: arguments.Ignore = None,
    features: arguments.FeatureMap = "linear",
    normalise_labels: arguments.NormaliseLabels = False,
    encoding: arguments.Encoding = None,
    sep: arguments.Separator = None,
    sheet: arguments.Sheet = None,
    out: Annotated[Path | None, typer.Option(help="Page (.html) to review the suspects.")] = None,
    suspects: Annotated[
        Path | None, typer.Option(help="Table (.csv) of suspects and proposed labels.")
    ] = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Find probably wrong labels in a file, and suggest next steps.

    The features are all columns but ids, texts and constants, or the words of
    --text, or the columns of --embedding (not scaled), and the columns of
    --use. Labels are proposed for unlabelled rows. With several votes per
    row, the majority labels are audited.
    """
    _check_outs(out, suspects, data, *arguments.paths(embedding))
    request = Request(
        path=data,
        labels=tuple(label or ()),
        item=item,
        annotator=annotator,
        abstentions=abstentions,
        abstain=abstain,
        text=tuple(text or ()),
        embedding=embedding,
        use=tuple(use or ()),
        eps=eps,
        priors=priors,
        trusted=trusted,
        group=group,
        id_column=name,
        ignore=tuple(ignore or ()),
        feature_map=features,
        normalise_labels=normalise_labels,
        read_options=ReadOptions(encoding=encoding, separator=sep, sheet=sheet),
    )
    with working(f"Reading {data.name}") as report_progress:
        result = audit_file(request, report_progress)
        report_progress("Writing")
        contents = {} if suspects is None else {suspects: _suspects_file(result)}
        if out is not None:
            contents[out] = _page(result)
        write_together(contents)
    print_notes(result.notes)
    if as_json:
        say_json(_as_json(result, request, out, suspects))
    else:
        say(audit_text.summary(result, request, out, suspects))


def _check_outs(out: Path | None, suspects: Path | None, *inputs: Path) -> None:
    if out is not None:
        check_out(out, [".html", ".htm"], *inputs)
    if suspects is not None:
        check_out(suspects, [".csv"], *inputs)


def _suspects_file(result: FileAudit) -> bytes:
    """Return the table of suspects, with an empty column of decisions for `unflip apply`.

    With votes there is no such column, because there is no single label to change.
    """
    header = [*_COLUMNS, *(["decision"] if result.prepared.votes is None else []), "shown"]
    lines = [
        {**line, "decision": "", "shown": result.description(line["row"])[:_LONGEST_TEXT]}
        for line in result.suspect_rows
    ]
    return csv_bytes(header, ([line[column] for column in header] for line in lines))


def _page(result: FileAudit) -> bytes:
    try:
        from unflip.auditing.html.audit_page import page
    except ModuleNotFoundError as missing:
        fail(f'The page needs {missing.name}: install it with pip install "unflip[cli]".')
    prepared = result.prepared
    return page(
        result.audit,
        shown=result.shown,
        assumptions=[
            f"The features are {audit_text.describe_features(prepared, result.audit.features)}."
        ],
        by_command=True,
    )


def _annotators(audit: Audit) -> dict[str, Any] | None:
    """Return what is known of the annotators; None without several votes per row."""
    votes = audit.evidence.noise.votes
    if votes is None or votes.single or audit.annotators is None:
        return None
    corrected = audit.corrected_labels_interval
    return {
        "votes_per_row": votes.mean_votes,
        "effective_votes_per_row": audit.effective_votes,
        "corrected_labels_right": {"value": corrected.value, "interval_95": _limits(corrected)},
        "each": [line._asdict() for line in lines_of(audit.annotators)],
    }


def _limits(interval: Interval) -> list[float]:
    return [interval.low, interval.high]


def _checked_rows(audit: Audit) -> dict[str, Any]:
    """Return the number of checked rows, the findings before, and what the next checks change."""
    before = audit.before_checks
    plan = audit.next_checks
    return {
        "n_checked": audit.n_checked,
        "n_unsure": audit.n_unsure,
        "before": None if before is None else _main_findings(before),
        "now": _main_findings(audit),
        "next": {
            "n_rows": len(plan.rows),
            "interval_95_of_accuracy": _limits(plan.interval_after),
            "accuracy_gain": plan.accuracy_gain,
            "is_worth": check_prose.advises_checks(audit),
        },
    }


def _main_findings(audit: Findings) -> dict[str, Any]:
    return {
        "expected_wrong": {
            "value": audit.expected_wrong,
            "interval_95": _limits(audit.expected_wrong_interval),
        },
        "expected_accuracy": {
            "value": audit.expected_accuracy,
            "interval_95": _limits(audit.expected_accuracy_interval),
        },
        "n_suspects": audit.n_suspects,
    }


def _as_json(
    result: FileAudit, request: Request, out: Path | None, suspects: Path | None
) -> dict[str, Any]:
    audit = result.audit
    prepared = result.prepared
    lines = result.suspect_rows
    classes = audit.classes.tolist()
    transition = audit.noise.transition
    return {
        "file": str(request.path),
        "rows": len(prepared.items),
        "labels": prepared.labels.counts,
        "votes": count_votes(prepared.votes),
        "features": {
            "kind": prepared.features.kind,
            "columns": list(prepared.features.columns),
            "left_out": list(prepared.features.left_out),
            "each": prepared.each_column,
            "n_features": int(prepared.rows.shape[1]),
            "kernel": None if audit.features is None else audit.features.kernel,
        },
        "noise": {
            "source": audit.noise_source,
            "noise_rate": {label: 1 - float(transition[a, a]) for a, label in enumerate(classes)},
            "standard_error": {
                label: float(audit.noise_std[a, a]) for a, label in enumerate(classes)
            },
            "class_prior": dict(zip(classes, audit.noise.known_priors.tolist(), strict=True)),
            "transition": transition.tolist(),
            "p_value_of_dependence": float(audit.dependence.p_value),
        },
        "expected_wrong": {
            "value": audit.expected_wrong,
            "standard_error": audit.expected_wrong_std,
            "interval_95": _limits(audit.expected_wrong_interval),
        },
        "expected_accuracy": {
            "now": audit.expected_accuracy,
            "standard_error": audit.expected_accuracy_std,
            "interval_95": _limits(audit.expected_accuracy_interval),
            "trained_on_clean_labels": audit.accuracy_after(audit.n_labels),
        },
        "calibrated_by_checked_rows": audit.is_calibrated,
        "checked_rows": _checked_rows(audit),
        "annotators": _annotators(audit),
        "n_suspects": audit.n_suspects,
        "false_discovery_rate": audit.false_discovery_rate,
        "suspects": [line for line in lines if line["part"] != "unlabelled"],
        "unlabelled": [line for line in lines if line["part"] == "unlabelled"],
        "check_next": result.check_next,
        "summary": {
            "label_noise": prose.noise(audit),
            "expected_accuracy": prose.accuracy(audit),
            "suspects": prose.suspects(audit),
            "checked_rows": check_prose.checked_rows(audit),
            "assumption": prose.dependence(audit),
        },
        "notes": result.notes,
        "page": None if out is None else str(out),
        "table": None if suspects is None else str(suspects),
    }
