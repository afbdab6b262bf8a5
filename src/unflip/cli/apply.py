"""unflip apply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from unflip.cli import options
from unflip.cli.talk import check_out, say_json, working
from unflip.files.auditing import Request, prepare
from unflip.files.decisions import Decision, Gain, changes, gain, label_column_of, located, read_decisions
from unflip.files.tables import ending, read_table, rewritten
from unflip.report.files import write_atomically


def apply(
    data: options.Data,
    decisions: Annotated[Path, typer.Argument(help="Decisions (.csv), as the page of an audit saves them.")],
    out: Annotated[Path, typer.Option(help="Where to write the corrected data.")],
    label: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of the labels.", show_default="found by the decisions"),
    ] = None,
    text: options.Text = None,
    embedding: options.Embedding = None,
    eps: options.Eps = None,
    priors: options.Priors = None,
    trusted: options.Trusted = None,
    name: options.Name = None,
    as_json: options.AsJson = False,
) -> None:
    """Put decisions on suspects into a copy of the data, and tell what that is worth.

    All other cells stay as they are, and so does the file. The options of the
    audit serve to tell what accuracy to expect before and after.
    """
    suffixes = ending(data) + (".gz" if data.suffix.lower() == ".gz" else "")
    check_out(out, [suffixes or data.suffix], data, decisions)
    with working(f"Reading {data.name}") as tell:
        table = read_table(data)
        decided = located(read_decisions(decisions), table, name)
        column = label_column_of(decided, table) if label is None else label
        changed = changes(decided, table, column)
        request = Request(
            path=data,
            label=column,
            text=text,
            embedding=embedding,
            eps=eps,
            priors=priors,
            trusted=trusted,
            name=name,
        )
        worth, reason = _gain(request, decided, tell)
        tell("Writing")
        write_atomically(out, rewritten(data, column, changed))
    if as_json:
        accuracy = None if worth is None else asdict(worth)
        answer = {"file": str(out), "label": column, "decided": len(decided), "changed": len(changed)}
        say_json({**answer, "expected_accuracy": accuracy, "why_no_accuracy": reason or None})
    else:
        typer.echo(_words(out, column, len(decided), len(changed), worth, reason))


def _gain(request: Request, decided: Mapping[int, Decision], tell: Callable[[str], None]) -> tuple[Gain | None, str]:
    """Return what the decisions are worth, or why that cannot be told: they are applied in any case."""
    try:
        prepared = prepare(request, tell)
        tell("Fitting before and after")
        return gain(prepared, decided), ""
    except ValueError as error:
        if request.text or request.embedding or request.eps or request.priors or request.trusted:
            raise
        return None, str(error)


def _words(out: Path, label: str, n_decided: int, n_changed: int, worth: Gain | None, reason: str) -> str:
    kept = n_decided - n_changed
    first = f"{out}: {n_changed} labels of column {label!r} changed, {kept} confirmed; all else is as it was."
    if worth is None:
        return f"{first}\nWhat it is worth cannot be told without the features: {reason}"
    return (
        f"{first}\nExpected accuracy of a classifier on clean labels: {worth.before:.1%} ± {worth.before_std:.1%} "
        f"before, {worth.after:.1%} ± {worth.after_std:.1%} with the decided rows taken as certain "
        f"({100 * (worth.after - worth.before):+.1f} points)."
    )
