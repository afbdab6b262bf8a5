"""Arguments and options shared by several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unflip.cli.files.tables import ENDINGS

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help=f"Data file: {ENDINGS}, also with .gz, .bz2, .zst or .zip; or a folder: a saved "
        "Hugging Face dataset, or images in a sub-folder for each class.",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Encoding of a text file, such as utf-16, cp1252 or shift_jis. Without it, UTF-8.",
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        "--sep",
        metavar="CHARACTER",
        help="Separator of the cells of a delimited file, such as ';' or tab. Without it, it is "
        "detected.",
    ),
]
Sheet = Annotated[
    str | None, typer.Option(metavar="NAME", help="Sheet of a workbook, if several have cells.")
]
Label = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of labels; required, except for a folder of images. For several annotators, "
        "repeat it or use a wildcard such as 'rule*'.",
    ),
]
NoisyLabel = Annotated[
    str | None, typer.Option("--label", metavar="COLUMN", help="Column of noisy labels; required.")
]
Prediction = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of predicted labels; this or --probabilities is required.",
    ),
]
Probabilities = Annotated[
    str | None,
    typer.Option(
        metavar="PREFIX",
        help="Prefix of the columns of predicted probabilities, one for each class: p( for "
        "p(ham) and p(spam).",
    ),
]
Inclusion = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the probabilities with which checked rows were chosen, if they were not "
        "chosen at random among rows of the same label and prediction.",
    ),
]
Item = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of item ids, if each row is one vote on an item."),
]
Annotator = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of annotator ids, with --item.")
]
Abstentions = Annotated[
    bool,
    typer.Option(
        "--abstentions",
        help="An empty cell is an abstention: the annotators are rules, each of which saw every "
        "row.",
    ),
]
Abstain = Annotated[
    str | None,
    typer.Option(
        metavar="LABEL",
        help="Label that marks an abstention, such as -1. Its cells count as empty; implies "
        "--abstentions.",
    ),
]
Text = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of text; its words are the features, instead of all other columns (see "
        "--use). Can be repeated: texts are joined.",
    ),
]
Embedding = Annotated[
    str | None,
    typer.Option(
        metavar="PREFIX|FILE",
        help="Use the columns with this prefix as features, without scaling; or the numbers of "
        "another file (.npy, .npz, .csv, ...) with one row for each row of the data. Without "
        "--embedding, numeric columns are standardized.",
    ),
]
Use = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Use this column as a feature though it looks like an id or like text, or beside "
        "--text or --embedding. Can be repeated, and may have wildcards such as '*'.",
    ),
]
Eps = Annotated[
    str | None,
    typer.Option(
        metavar="A=0.3,B=0.1",
        help="Noise rate of each true class, if known: the share of its rows with a wrong label.",
    ),
]
Priors = Annotated[
    str | None, typer.Option(metavar="A=0.5,B=0.5", help="True class proportions, if known.")
]
Trusted = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of trusted labels, empty for unchecked rows."),
]
TrustedOrChecks = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN|FILE",
        help="Column of trusted labels, empty for unchecked rows; or the file of checked rows "
        "(checks.csv) that the page of an audit exports.",
    ),
]
Name = Annotated[str | None, typer.Option("--id", metavar="COLUMN", help="Column of row ids.")]
Group = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of groups (near-duplicates, patients): the score of a row uses no "
        "labels of its own group.",
    ),
]
FeatureMap = Annotated[
    str,
    typer.Option(
        "--features",
        metavar="NAME",
        help="Boundary between the classes: linear, by a kernel (rbf, matern, laplace), or auto, "
        "which compares both by the labels. It does not choose columns.",
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Column to ignore; can be repeated."),
]
NormaliseLabels = Annotated[
    bool,
    typer.Option(
        "--normalise-labels",
        help="Labels that differ only by case or spaces are the same.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def paths(*options: str | Path | None) -> list[Path]:
    """Return the options that were passed as paths, which no output may overwrite."""
    return [Path(option) for option in options if option is not None]
