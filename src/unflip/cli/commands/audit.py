"""unflip audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unflip._utils.atomic_files import write_together
from unflip.auditing import prose
from unflip.cli import arguments, audit_text
from unflip.cli.audit_table import audit_file
from unflip.cli.file_audit import FileAudit
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
_LONGEST_TEXT = 1000


def audit(
    data: arguments.Data,
    label: arguments.Label = None,
    item: arguments.Item = None,
    annotator: arguments.Annotator = None,
    text: arguments.Text = None,
    embedding: arguments.Embedding = None,
    eps: arguments.Eps = None,
    priors: arguments.Priors = None,
    trusted: arguments.Trusted = None,
    group: arguments.Group = None,
    name: arguments.Name = None,
    ignore: arguments.Ignore = None,
    out: Annotated[
        Path | None, typer.Option(help="Page (.html) to look through the suspects and decide.")
    ] = None,
    suspects: Annotated[
        Path | None, typer.Option(help="Table (.csv) of the suspects and of proposed labels.")
    ] = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Find labels that look wrong in a file: how many, which, what that costs and what to do.

    The features are all numeric columns, the words of --text, or the columns
    of --embedding. Rows without a label are given one, apart from the audit.
    Of several votes per row, the label that most of them favour is audited.
    """
    _check_outs(data, out, suspects)
    request = Request(
        path=data,
        labels=tuple(label or ()),
        item=item,
        annotator=annotator,
        text=text,
        embedding=embedding,
        eps=eps,
        priors=priors,
        trusted=trusted,
        group=group,
        name=name,
        ignore=tuple(ignore or ()),
    )
    with working(f"Reading {data.name}") as tell:
        found = audit_file(request, tell)
        tell("Writing")
        contents = {} if suspects is None else {suspects: _suspects_file(found)}
        if out is not None:
            contents[out] = _page(found)
        write_together(contents)
    print_notes(found.notes)
    if as_json:
        say_json(_answer(found, request, out, suspects))
    else:
        say(audit_text.summary(found, request, out, suspects))


def _check_outs(data: Path, out: Path | None, suspects: Path | None) -> None:
    if out is not None:
        check_out(out, [".html", ".htm"], data)
    if suspects is not None:
        check_out(suspects, [".csv"], data)


def _suspects_file(found: FileAudit) -> bytes:
    """Return the table of suspects; its empty column of decisions makes it a worksheet for `unflip apply`.

    Votes have none: there is no single label that a decision could change.
    """
    header = [*_COLUMNS, *(["decision"] if found.prepared.votes is None else []), "shown"]
    lines = [
        {**line, "decision": "", "shown": found.shown(line["row"])[:_LONGEST_TEXT]}
        for line in found.suspect_rows
    ]
    return csv_bytes(header, ([line[column] for column in header] for line in lines))


def _page(found: FileAudit) -> bytes:
    try:
        from unflip.auditing.html.audit_page import page
    except ModuleNotFoundError as missing:
        fail(f'The page needs {missing.name}: install it with pip install "unflip[cli]".')
    prepared = found.prepared
    return page(
        found.audit,
        texts=found.page_texts,
        ids=found.page_ids,
        numbers=None if prepared.items.column is None else found.file_rows.tolist(),
        source=prepared.table.name,
        assumptions=[
            f"The features are {prepared.features.with_dimension(prepared.rows.shape[1])}."
        ],
        by_command=True,
    )


def _answer(
    found: FileAudit, request: Request, out: Path | None, suspects: Path | None
) -> dict[str, Any]:
    audit, prepared = found.audit, found.prepared
    lines = found.suspect_rows
    classes, transition = audit.classes.tolist(), audit.noise.transition
    n = len(audit.evidence.codes)
    return {
        "file": str(request.path),
        "rows": len(prepared.items),
        "labels": prepared.labels.counts,
        "votes": count_votes(prepared.votes),
        "features": {
            "kind": prepared.features.kind,
            "columns": list(prepared.features.columns),
            "left_out": list(prepared.features.left_out),
            "n_features": int(prepared.rows.shape[1]),
        },
        "noise": {
            "source": audit.noise_source,
            "flip_rate": {label: 1 - float(transition[a, a]) for a, label in enumerate(classes)},
            "standard_error": {
                label: float(audit.noise_std[a, a]) for a, label in enumerate(classes)
            },
            "true_share": dict(zip(classes, audit.noise.known_priors.tolist(), strict=True)),
            "transition": transition.tolist(),
            "p_value_of_dependence": float(audit.dependence.p_value),
        },
        "expected_wrong": {
            "value": audit.expected_wrong,
            "standard_error": audit.expected_wrong_std,
        },
        "expected_accuracy": {
            "now": audit.expected_accuracy,
            "standard_error": audit.expected_accuracy_std,
            "all_labels_right": audit.accuracy_after(n),
        },
        "n_suspects": audit.n_suspects,
        "false_discovery_rate": audit.false_discovery_rate,
        "suspects": [line for line in lines if line["part"] != "unlabelled"],
        "unlabelled": [line for line in lines if line["part"] == "unlabelled"],
        "check_next": found.check_next,
        "summary": {
            "label_noise": prose.noise(audit),
            "expected_accuracy": prose.accuracy(audit),
            "suspects": prose.suspects(audit),
            "assumption": prose.dependence(audit),
        },
        "notes": found.notes,
        "page": None if out is None else str(out),
        "table": None if suspects is None else str(suspects),
    }
