"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    Path, typer.Argument(help="File of rows: .csv, .tsv, .jsonl or .parquet, also with .gz.")
]
Label = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the labels; needed. Several times: one for each annotator.",
    ),
]
Item = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Column of what a row's label is about, where each row is a vote."
    ),
]
Annotator = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of who gave it, with --item.")
]
Text = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of texts: their words are the features."),
]
Embedding = Annotated[
    str | None,
    typer.Option(
        metavar="PREFIX", help="Columns whose names begin so are the features, taken as they are."
    ),
]
Eps = Annotated[
    str | None,
    typer.Option(
        metavar="A=0.3,B=0.1",
        help="Flip rates, where known: the share of true A's labelled otherwise, ...",
    ),
]
Priors = Annotated[
    str | None, typer.Option(metavar="A=0.5,B=0.5", help="True shares of the classes, where known.")
]
Trusted = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of true labels of some rows, empty elsewhere."),
]
Name = Annotated[
    str | None, typer.Option("--id", metavar="COLUMN", help="Column that names the rows.")
]
Group = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Rows of one group do not vouch for each other (near-copies, patients).",
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Column to leave out; can be given several times."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
