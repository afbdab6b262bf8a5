"""unflip fit and unflip predict."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from unflip._utils.atomic_files import write_atomically
from unflip.cli import arguments
from unflip.cli.files.decision_files import NO_SINGLE_LABEL, decide
from unflip.cli.files.request import Request, prepare
from unflip.cli.files.safe_csv import csv_bytes
from unflip.cli.files.tables import read_table
from unflip.cli.fit_table import fit_model
from unflip.cli.saved_models import Model, load_model, prediction_rows, saved
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


def fit(
    data: arguments.Data,
    out: Annotated[Path, typer.Option(help="Where to write the model (.skops).")],
    label: arguments.Label = None,
    item: arguments.Item = None,
    annotator: arguments.Annotator = None,
    text: arguments.Text = None,
    embedding: arguments.Embedding = None,
    eps: arguments.Eps = None,
    priors: arguments.Priors = None,
    trusted: arguments.Trusted = None,
    group: arguments.Group = None,
    decisions: Annotated[
        Path | None,
        typer.Option(help="Decisions (.csv) on suspects of these data, to be taken as certain."),
    ] = None,
    name: arguments.Name = None,
    ignore: arguments.Ignore = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Fit a classifier of the true labels to a file of noisy ones, or of votes."""
    check_out(out, [".skops"], data, *([] if decisions is None else [decisions]))
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
        prepared = prepare(request, tell)
        n_rows, votes = len(prepared.audited), prepared.votes
        if decisions is not None and votes is not None:
            fail(NO_SINGLE_LABEL)
        decided = (
            None
            if decisions is None
            else decide(decisions, prepared.table, request.labels[0], name).rows
        )
        tell(f"Fitting to {n_rows} {prepared.items.words}")
        model, found, notes = fit_model(prepared, decided)
        tell("Writing")
        write_atomically(out, saved(model))
    print_notes(notes)
    fitted = model.classifier
    rates = {
        label: 1 - float(fitted.noise_.transition[a, a])
        for a, label in enumerate(fitted.classes_.tolist())
    }
    if as_json:
        accuracy = {"value": found.accuracy, "standard_error": found.error}
        columns = {"kind": model.features.kind, "columns": list(model.features.columns)}
        answer = {
            "model": str(out),
            "rows": n_rows,
            "votes": count_votes(votes),
            "features": columns,
        }
        say_json({**answer, "flip_rate": rates, "expected_accuracy": accuracy, "notes": notes})
        return
    said = ", ".join(f"{rate:.0%} of {label!r}" for label, rate in rates.items())
    fitted_to = (
        f"{n_rows} {prepared.items.words}"
        if votes is None
        else f"{describe_votes(votes)} on {n_rows} {prepared.items.words}"
    )
    say(
        f"{out}: fitted to {fitted_to} by {model.features.with_dimension(fitted.n_features_in_)}.\n"
        f"{'Labels' if votes is None else 'Votes'} flipped: {said}.\n"
        f"Expected accuracy on clean labels: {found.accuracy:.1%} ± {found.error:.1%}."
    )


def predict(
    model: Annotated[Path, typer.Argument(help="Model that unflip fit wrote.")],
    data: arguments.Data,
    out: Annotated[
        Path | None,
        typer.Option(help="Where to write the predictions (.csv); needed unless --json is given."),
    ] = None,
    name: arguments.Name = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Predict the true labels of new rows."""
    with working(f"Reading {model.name}") as tell:
        loaded = load_model(model)
        if out is None and not as_json:
            fail("predict needs --out predictions.csv, or --json: say where the predictions go.")
        if out is not None:
            check_out(out, [".csv"], data, model)
        tell(f"Reading {data.name}")
        table = read_table(data)
        names = None if name is None else table.texts(name)
        tell(f"Predicting {table.n_rows} rows")
        predicted, probabilities = loaded.predict(table)
        lines = prediction_rows(predicted, probabilities, names)
        header = _header(loaded, name is not None)
        if out is not None:
            tell("Writing")
            write_atomically(out, csv_bytes(header, lines))
    labels, counts = np.unique(predicted, return_counts=True)
    shares = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    if as_json:
        answer = {
            "file": str(data),
            "rows": table.n_rows,
            "predicted": shares,
            "out": None if out is None else str(out),
        }
        say_json(
            answer
            if out is not None
            else {**answer, "rows": [dict(zip(header, line, strict=True)) for line in lines]}
        )
        return
    said = ", ".join(f"{count} {label!r}" for label, count in shares.items())
    sure = float(probabilities.max(axis=1).mean())
    say(
        f"{out}: {table.n_rows} rows predicted, {said}.\nAbout {sure:.1%} should be right, fewer "
        "where the model was fitted to these very rows."
    )


def _header(model: Model, named: bool) -> list[str]:
    classes = [f"p({label})" for label in model.classifier.classes_.tolist()]
    return ["row", *(["id"] if named else []), "predicted", "probability", *classes]
