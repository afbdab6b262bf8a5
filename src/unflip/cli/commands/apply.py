"""unflip apply."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from unflip._utils.atomic_files import write_atomically
from unflip.cli import arguments
from unflip.cli.files.decision_files import NO_SINGLE_LABEL, Decision, decide
from unflip.cli.files.request import Request, noted, prepare
from unflip.cli.files.tables import ending, read_table, rewritten
from unflip.cli.fit_table import Fit, fit_decided, fit_labels
from unflip.cli.terminal import check_out, fail, say, say_json, working


def apply(
    data: arguments.Data,
    decisions: Annotated[
        Path, typer.Argument(help="Decisions (.csv), as the page of an audit saves them.")
    ],
    out: Annotated[Path, typer.Option(help="Where to write the corrected data.")],
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Column of the labels.", show_default="found by the decisions"
        ),
    ] = None,
    item: Annotated[str | None, typer.Option(hidden=True)] = None,  # of votes, which are refused
    text: arguments.Text = None,
    embedding: arguments.Embedding = None,
    eps: arguments.Eps = None,
    priors: arguments.Priors = None,
    trusted: arguments.Trusted = None,
    group: arguments.Group = None,
    name: arguments.Name = None,
    ignore: arguments.Ignore = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Put decisions on suspects into a copy of the data, and tell what that is worth.

    All other cells stay as they are, and so does the file. The options of the
    audit serve to tell what accuracy to expect before and after.
    """
    if item is not None or len(label or ()) > 1:
        fail(NO_SINGLE_LABEL)
    suffixes = ending(data) + (".gz" if data.suffix.lower() == ".gz" else "")
    check_out(out, [suffixes or data.suffix], data, decisions)
    with working(f"Reading {data.name}") as tell:
        decided = decide(decisions, read_table(data), label[0] if label else None, name)
        request = Request(
            path=data,
            labels=(decided.label,),
            text=text,
            embedding=embedding,
            eps=eps,
            priors=priors,
            trusted=trusted,
            group=group,
            name=name,
            ignore=tuple(ignore or ()),
        )
        fits, reason = _fits(request, decided.rows, tell)
        tell("Writing")
        write_atomically(out, rewritten(data, decided.label, decided.changes))
    changed, kept = len(decided.changes), len(decided.rows) - len(decided.changes)
    if as_json:
        counts = {"decided": len(decided.rows), "changed": changed, "confirmed": kept}
        worth = {"expected_accuracy": _accuracies(fits), "why_no_accuracy": reason or None}
        say_json({"file": str(out), "label": decided.label, **counts, **worth})
        return
    labels = "label" if changed == 1 else "labels"
    say(
        f"{out}: {changed} {labels} of column {decided.label!r} changed, {kept} confirmed; all "
        "else is as it was."
    )
    say(
        _worth(fits)
        if fits
        else f"What that is worth cannot be told without the features: {reason}"
    )
    command = " ".join(
        ["unflip fit", shlex.quote(str(data)), "--decisions", shlex.quote(str(decisions)), "..."]
    )
    say(
        f"To fit a classifier, give the decisions with the data as they were ({command}): what is "
        "still wrong cannot be told from labels of which the worst are put right."
    )


def _fits(
    request: Request, decided: Mapping[int, Decision], tell: Callable[[str], None]
) -> tuple[tuple[Fit, Fit] | None, str]:
    """Return the fits before and after, or why there are none: the decisions are applied in any case."""
    try:
        prepared = prepare(request, tell)
        tell("Fitting before and after")
        with noted(prepared.table.name):  # the audit said it
            before = fit_labels(prepared)
            after = fit_decided(prepared, before, decided)
    except ValueError as error:
        if replace(request, labels=(), name=None) != Request(path=request.path):
            raise
        return None, str(error)
    return (before, after), ""


def _accuracies(fits: tuple[Fit, Fit] | None) -> dict[str, dict[str, float]] | None:
    if fits is None:
        return None
    moments = dict(zip(("before", "after"), fits, strict=True))
    return {
        moment: {"value": fit.accuracy, "standard_error": fit.error}
        for moment, fit in moments.items()
    }


def _worth(fits: tuple[Fit, Fit]) -> str:
    before, after = (f"{fit.accuracy:.1%} ± {fit.error:.1%}" for fit in fits)
    points = 100 * (fits[1].accuracy - fits[0].accuracy)
    return (
        f"Expected accuracy of a classifier on clean labels: {before} before, {after} with the "
        f"decided rows as certain ({points:+.1f} points)."
    )
