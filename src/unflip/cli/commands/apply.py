"""The command `unflip apply`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from unflip._utils.atomic_files import write_atomically, write_folder
from unflip.cli import arguments
from unflip.cli.files.dataset_folder import rewritten_folder
from unflip.cli.files.decision_files import NO_SINGLE_LABEL, Decision, changes_of_checks, decide
from unflip.cli.files.image_folder import labels_table
from unflip.cli.files.label_column import with_usual_spellings
from unflip.cli.files.read_options import ReadOptions
from unflip.cli.files.request import (
    Request,
    collect_warnings,
    prepare,
    read_rows,
    with_folder_columns,
)
from unflip.cli.files.tables import Table, copy_ending, is_saved_dataset, rewritten
from unflip.cli.fit_table import Fit, fit_decided, fit_labels
from unflip.cli.terminal import (
    check_new_folder,
    check_out,
    fail,
    print_notes,
    say,
    say_json,
    working,
)


def apply(
    data: arguments.Data,
    decisions: Annotated[
        Path,
        typer.Argument(
            metavar="DECISIONS", help="Decisions (.csv) exported from the page of an audit."
        ),
    ],
    out: Annotated[Path, typer.Option(help="File for the corrected data, of the same format.")],
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Column of labels.", show_default="found from the decisions file"
        ),
    ] = None,
    item: Annotated[str | None, typer.Option(hidden=True)] = None,  # for a clear error
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
    as_json: arguments.AsJson = False,
) -> None:
    """Write a copy of the data with the decisions on suspects, for use outside unflip.

    Checked rows get their true labels, too, if --trusted names them, or if
    their file is in place of DECISIONS. All other cells stay the same, and
    the original file is not changed. Pass the options of the audit to print
    the expected accuracy before and after.
    To train a classifier, use unflip fit with the original data and
    --decisions. For a folder of images, the copy is a table of files and
    labels; no image is moved.
    """
    if item is not None or len(label or ()) > 1:
        fail(NO_SINGLE_LABEL)
    options = ReadOptions(encoding=encoding, separator=sep, sheet=sheet)
    if is_saved_dataset(data):
        check_new_folder(out)
    else:
        inputs = (data, decisions, *arguments.paths(embedding))
        check_out(out, [copy_ending(data) or data.suffix], *inputs)
    request = with_folder_columns(
        Request(
            path=data,
            labels=tuple(label or ()),
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
            read_options=options,
        )
    )
    if normalise_labels and not request.labels:
        fail("--normalise-labels needs the column of labels: name it with --label.")
    with working(f"Reading {data.name}") as report_progress:
        table = read_rows(request)
        original_labels = request.labels[0] if request.labels else None
        spelt = table
        if normalise_labels:
            trusted_columns = [
                name for name in (trusted,) if name is not None and name in table.columns
            ]
            spelt = with_usual_spellings(table, [*request.labels, *trusted_columns])
        decided = decide(decisions, spelt, original_labels, request.id_column)
        checked = changes_of_checks(decided, spelt, trusted, request.id_column)
        changes = {**decided.changes, **checked}
        request = replace(request, labels=(decided.label,))
        fits, reason = _fits(request, table, decided.rows, report_progress)
        report_progress("Writing")
        if is_saved_dataset(data):
            write_folder(out, rewritten_folder(data, decided.label, changes))
        else:
            write_atomically(out, _copy(request, table, changes))
    print_notes(table.notes)
    n_decided = len(decided.rows)
    n_changed = len(decided.changes)
    if as_json:
        counts = {
            "decided": n_decided,
            "changed": n_changed,
            "confirmed": n_decided - n_changed,
            "changed_by_checked_rows": len(checked),
        }
        accuracy = {"expected_accuracy": _accuracies(fits), "why_no_accuracy": reason or None}
        say_json({"file": str(out), "label": decided.label, **counts, **accuracy})
        return
    labels = "label" if len(changes) == 1 else "labels"
    sources = ""
    if trusted is not None:
        sources = f" ({n_changed} by decisions, {len(checked)} by checked rows)"
    say(
        f"{out}: {len(changes)} {labels} of column {decided.label!r} changed{sources}, "
        f"{n_decided - n_changed} confirmed. All other cells are unchanged."
    )
    if fits:
        say(_comparison(fits))
    else:
        say(f"Expected accuracy not computed: {reason}")
    command = f"unflip fit {shlex.join([str(data), '--decisions', str(decisions)])} ..."
    say(
        f"{out} is a corrected copy for use outside unflip. To train a classifier, pass the "
        f"decisions with the original data ({command}): noise rates estimated from corrected "
        "labels would be biased."
    )


def _copy(request: Request, table: Table, changes: Mapping[int, Any]) -> bytes:
    """Return the data with new labels; for a folder of images, a table of files and labels."""
    if table.images:
        return labels_table(table, changes)
    return rewritten(request.path, request.labels[0], changes, request.read_options)


def _fits(
    request: Request,
    table: Table,
    decided: Mapping[int, Decision],
    report_progress: Callable[[str], None],
) -> tuple[tuple[Fit, Fit] | None, str]:
    """Return the fits before and after; without options of the audit, None and the error."""
    try:
        prepared = prepare(request, report_progress, table)
        texts = [each.name for each in prepared.features.details if each.kind == "text"]
        if texts and not (request.text or request.embedding or request.use or request.ignore):
            column = shlex.quote(texts[0])
            return None, (
                f"column {texts[0]!r} looks like text, and was perhaps used by the audit. Pass the "
                f"options of the audit, such as --text {column}, or else --ignore {column}."
            )
        report_progress("Fitting before and after")
        with collect_warnings(prepared.table.name):  # the audit printed them
            before = fit_labels(prepared)
            after = fit_decided(prepared, before, decided)
    except ValueError as error:
        if replace(request, labels=(), id_column=None) != Request(
            path=request.path, read_options=request.read_options
        ):
            raise
        return None, str(error)
    return (before, after), ""


def _accuracies(fits: tuple[Fit, Fit] | None) -> dict[str, dict[str, float]] | None:
    if fits is None:
        return None
    return {
        time: {"value": fit.accuracy, "standard_error": fit.error}
        for time, fit in zip(("before", "after"), fits, strict=True)
    }


def _comparison(fits: tuple[Fit, Fit]) -> str:
    before, after = (f"{fit.accuracy:.1%} ± {fit.error:.1%}" for fit in fits)
    points = 100 * (fits[1].accuracy - fits[0].accuracy)
    return (
        f"Expected accuracy of a classifier on clean labels: {before} before, {after} with the "
        f"decisions as trusted labels ({points:+.1f} points; ± is one standard error)."
    )
