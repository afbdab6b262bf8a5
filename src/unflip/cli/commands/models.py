"""The commands `unflip fit` and `unflip predict`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from unflip._utils.atomic_files import write_atomically
from unflip.cli import arguments
from unflip.cli.audit_text import describe_features
from unflip.cli.files.decision_files import NO_SINGLE_LABEL, decide
from unflip.cli.files.feature_columns import IMAGES, Features
from unflip.cli.files.feature_file import features_of_rows, only_block
from unflip.cli.files.image_folder import FILE, with_features
from unflip.cli.files.read_options import ReadOptions
from unflip.cli.files.request import Request, prepare, with_folder_columns
from unflip.cli.files.safe_csv import csv_bytes
from unflip.cli.files.tables import Table, read_content, read_table
from unflip.cli.fit_table import fit_model
from unflip.cli.prediction_table import predict_table, prediction_rows
from unflip.cli.terminal import (
    check_out,
    count_votes,
    describe_votes,
    fail,
    print_notes,
    say,
    say_json,
    working,
)
from unflip.model.table_model import TableModel, read_model


def fit(
    data: arguments.Data,
    out: Annotated[Path, typer.Option(help="File for the model (.skops).")],
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
    decisions: Annotated[
        Path | None,
        typer.Option(help="Decisions (.csv) on suspects of these data, used as trusted labels."),
    ] = None,
    name: arguments.Name = None,
    ignore: arguments.Ignore = None,
    features: arguments.FeatureMap = "linear",
    normalise_labels: arguments.NormaliseLabels = False,
    encoding: arguments.Encoding = None,
    sep: arguments.Separator = None,
    sheet: arguments.Sheet = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Fit a classifier to the noisy labels or votes of a file."""
    check_out(out, [".skops"], data, *arguments.paths(decisions, embedding))
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
    request = with_folder_columns(request)
    with working(f"Reading {data.name}") as report_progress:
        prepared = prepare(request, report_progress)
        n_rows = len(prepared.audited)
        votes = prepared.votes
        decided = None
        if decisions is not None:
            if votes is not None:
                fail(NO_SINGLE_LABEL)
            decided = decide(
                decisions, prepared.table, prepared.labels.names[0], request.id_column
            ).rows
        items = f"{n_rows} {prepared.items.plural}"
        report_progress(f"Fitting to {items}")
        model, result, notes = fit_model(prepared, decided)
        report_progress("Writing")
        model.save(out)
    print_notes(notes)
    fitted = model.classifier
    rates = {
        label: 1 - float(fitted.noise_.transition[a, a])
        for a, label in enumerate(fitted.classes_.tolist())
    }
    if as_json:
        answer = {
            "model": str(out),
            "rows": n_rows,
            "votes": count_votes(votes),
            "features": {
                "kind": prepared.features.kind,
                "columns": list(prepared.features.columns),
                "left_out": list(prepared.features.left_out),
                "each": prepared.each_column,
                "kernel": None if fitted.features_ is None else fitted.features_.kernel,
            },
            "noise_rate": rates,
            "expected_accuracy": {"value": result.accuracy, "standard_error": result.error},
            "notes": notes,
        }
        say_json(answer)
        return
    fitted_to = items if votes is None else f"{describe_votes(votes)} on {items}"
    noisy = "labels" if votes is None else "votes"
    each_rate = ", ".join(f"{label!r}: {rate:.0%}" for label, rate in rates.items())
    say(
        f"{out}: fitted to {fitted_to}.\n"
        f"Features: {describe_features(prepared, fitted.features_)}.\n"
        f"Noise rates of the {noisy} by true class: {each_rate}.\n"
        f"Expected accuracy on clean labels: {result.accuracy:.1%} ± {result.error:.1%} (standard "
        "error)."
    )


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model written by unflip fit.")],
    data: arguments.Data,
    out: Annotated[
        Path | None,
        typer.Option(help="File for the predictions (.csv); required without --json."),
    ] = None,
    name: arguments.Name = None,
    embedding: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of the features of these rows, if the model was fitted to an embedding.",
        ),
    ] = None,
    encoding: arguments.Encoding = None,
    sep: arguments.Separator = None,
    sheet: arguments.Sheet = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Predict the true classes of new rows, or of a folder of images."""
    with working(f"Reading {model.name}") as report_progress:
        loaded = read_model(read_content(model), str(model))
        if out is None and not as_json:
            fail("predict needs --out predictions.csv or --json: pass one of them.")
        if out is not None:
            check_out(out, [".csv"], data, model, *arguments.paths(embedding))
        report_progress(f"Reading {data.name}")
        options = ReadOptions(encoding=encoding, separator=sep, sheet=sheet)
        table = read_table(data, options)
        table = _with_embedding(loaded, table, embedding)
        id_column = FILE if table.images and name is None else name
        ids = None if id_column is None else table.texts(id_column)
        report_progress(f"Predicting {table.n_rows} rows")
        predicted, probabilities, notes = predict_table(loaded, table)
        lines = prediction_rows(predicted, probabilities, ids)
        header = _header(loaded, has_ids=ids is not None)
        if out is not None:
            report_progress("Writing")
            write_atomically(out, csv_bytes(header, lines))
    print_notes([*table.notes, *notes])
    labels, counts = np.unique(predicted, return_counts=True)
    n_predicted = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    if as_json:
        answer = {
            "file": str(data),
            "rows": table.n_rows,
            "predicted": n_predicted,
            "out": None if out is None else str(out),
        }
        if out is None:
            answer["rows"] = [dict(zip(header, line, strict=True)) for line in lines]
        say_json(answer)
        return
    each_count = ", ".join(f"{count} {label!r}" for label, count in n_predicted.items())
    confidence = float(probabilities.max(axis=1).mean())
    rows = "row" if table.n_rows == 1 else "rows"
    say(
        f"{out}: {table.n_rows} {rows} predicted, {each_count}.\n"
        f"Expected accuracy: {confidence:.1%}. This is too high if these rows were used in fit."
    )


def _with_embedding(model: TableModel, table: Table, path: Path | None) -> Table:
    """Return the rows with their embedding, if it is a file of its own, the data, or of images."""
    features = Features.of(model.features.columns_)
    names = features.of_kind("embedding")
    if path is not None and len(names) != 1:
        fail(
            f"--embedding {path} does not apply, because the features of the model are "
            f"{features}: omit it."
        )
    if names == (IMAGES,) and path is None:
        if not table.images:
            fail(f"{table.name} has no images: the model needs a folder of images.")
        return with_features(table)
    if path is not None:
        return replace(table, blocks={**table.blocks, names[0]: features_of_rows(table, path)})
    if len(names) == 1 and not table.columns:
        return replace(table, blocks={names[0]: only_block(table)})
    return table


def _header(model: TableModel, *, has_ids: bool) -> list[str]:
    classes = [f"p({label})" for label in model.classifier.classes_.tolist()]
    return ["row", *(["id"] if has_ids else []), "predicted", "probability", *classes]
