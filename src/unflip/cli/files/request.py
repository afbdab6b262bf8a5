"""What is asked of a file of rows, and the file as it was read for that."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from unflip._utils.typing import FloatArray, IntArray
from unflip.cli.files import feature_columns
from unflip.cli.files.feature_columns import Features
from unflip.cli.files.items import Items
from unflip.cli.files.items import items as read_items
from unflip.cli.files.label_column import LabelColumn, groups, label_column, trusted_labels
from unflip.cli.files.rates import noise_model, proportions
from unflip.cli.files.tables import Table, read_table
from unflip.cli.files.vote_columns import VoteColumns, votes_in_columns, votes_in_rows
from unflip.estimation.noise_estimator import AssumedNoiseWarning
from unflip.labels.noise import NoiseModel
from unflip.labels.votes import Votes

Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked of a file: names of columns, and what is known of the noise.

    Attributes
    ----------
    path : Path
        The file.
    labels : tuple of str
        Column of observed labels, or of several annotators' votes; without any, an error says which
        columns there are.
    item, annotator : str or None
        Where each row is a vote: columns of what it is about, and of who gave it.
    text, embedding : str or None
        Column of texts, or how the columns of an embedding begin; neither: all numeric columns are
        the features.
    eps, priors : str or None
        Flip rates and true class proportions as typed, such as "A=0.3,B=0.1".
    trusted, group, name : str or None
        Columns of true labels, of groups, and of names of the rows.
    ignore : tuple of str
        Columns to leave out.
    """

    path: Path
    labels: tuple[str, ...] = ()
    item: str | None = None
    annotator: str | None = None
    text: str | None = None
    embedding: str | None = None
    eps: str | None = None
    priors: str | None = None
    trusted: str | None = None
    group: str | None = None
    name: str | None = None
    ignore: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Prepared:
    """A file, read: its labels or votes, its rows of features, and what is known of the noise.

    Attributes
    ----------
    table : Table
        The file.
    items : Items
        What its rows are about; all that follows has a row for each item.
    labels : LabelColumn or VoteColumns
        Its labels or votes.
    features : Features
        Where the features come from.
    recipe : Pipeline
        What made them.
    rows : array or sparse matrix of shape (n, p)
        The features of all items.
    noise : NoiseModel or None
        The flip rates, where given.
    priors : ndarray of shape (k,) or None
        True class proportions, where given.
    trusted : ndarray of shape (n,) or None
        True labels, None where not known.
    groups : ndarray of shape (n,) or None
        Group of each item, where those of one group do not vouch for each other.
    """

    table: Table
    items: Items
    labels: LabelColumn | VoteColumns
    features: Features
    recipe: Pipeline
    rows: Any
    noise: NoiseModel | None
    priors: FloatArray | None
    trusted: NDArray[Any] | None
    groups: NDArray[Any] | None = None

    @property
    def votes(self) -> Votes | None:
        """The votes; None where there is one label per row."""
        return self.labels.votes if isinstance(self.labels, VoteColumns) else None

    @property
    def audited(self) -> IntArray:
        """Items that take part in a fit: those that have a label; where there are votes, all."""
        return (
            np.arange(len(self.items))
            if isinstance(self.labels, VoteColumns)
            else self.labels.labelled
        )

    @property
    def observed(self) -> NDArray[Any] | Votes:
        """Labels of these items, or the votes on them."""
        return self.labels.votes if isinstance(self.labels, VoteColumns) else self.labels.observed


def prepare(request: Request, tell: Tell) -> Prepared:
    """Read a file and build its features.

    Parameters
    ----------
    request : Request
        What is asked.
    tell : callable
        Is told what is being done, in a few words.
    """
    tell(f"Reading {request.path.name}")
    table = read_table(request.path)
    items, labels = _read_labels(table, request)
    others = (request.trusted, request.group, request.name)
    reserved = [
        *labels.columns,
        *(column for column in others if column is not None),
        *request.ignore,
    ]
    for column in reserved:
        table.column(column)
    _check_not_labels(request, labels)
    features = feature_columns.choose(
        table, text=request.text, embedding=request.embedding, reserved=reserved
    )
    classes = list(labels.counts)
    priors = None if request.priors is None else proportions(request.priors, classes)
    noise = None if request.eps is None else noise_model(request.eps, labels.counts, priors)
    trusted = None if request.trusted is None else trusted_labels(table, request.trusted, labels)
    tell("Building features")
    given = items.features(table, features, feature_columns.values(features, table))
    recipe, rows = feature_columns.fit_features(features, given)
    return Prepared(
        table=table,
        items=items,
        labels=labels,
        features=features,
        recipe=recipe,
        rows=rows,
        noise=noise,
        priors=priors,
        trusted=None if trusted is None else items.agreed(table, str(request.trusted), trusted),
        groups=None if request.group is None else groups(table, request.group)[items.first],
    )


def _check_not_labels(request: Request, labels: LabelColumn | VoteColumns) -> None:
    """Raise where an option for another column names one of those that hold the labels, or say whose they are."""
    options = {
        "--trusted": [request.trusted],
        "--group": [request.group],
        "--ignore": request.ignore,
    }
    for option, named in options.items():
        for column in labels.columns:
            if column in named:
                held = "the labels" if column in labels.names else "items or annotators"
                raise ValueError(f"{option} {column} names the column of {held}: name another.")


def _read_labels(table: Table, request: Request) -> tuple[Items, LabelColumn | VoteColumns]:
    """Read labels or votes, and what they are about."""
    if not request.labels:
        named = ", ".join(map(repr, table.columns))
        raise ValueError(
            f"Say with --label which column of {table.name} holds the labels: {named}."
        )
    _check_votes_request(request)
    items = read_items(table, request.item)
    if request.item is not None:
        return items, votes_in_rows(table, items, request.labels[0], request.annotator)
    if len(request.labels) > 1:
        return items, votes_in_columns(table, request.labels)
    return items, label_column(table, request.labels[0])


def _check_votes_request(request: Request) -> None:
    """Raise where options for votes exclude each other."""
    if request.annotator is not None and request.item is None:
        raise ValueError(
            f"--annotator {request.annotator} needs --item: name the column that says what each vote is "
            "about."
        )
    if request.item is not None and len(request.labels) > 1:
        raise ValueError(
            "--item takes one --label, the column of the votes: name one, or drop --item if each "
            "column is an annotator."
        )
    named = [
        *request.labels,
        *(column for column in (request.item, request.annotator) if column is not None),
    ]
    for column, count in Counter(named).items():
        if count > 1:
            raise ValueError(
                f"Column {column!r} is named twice among --label, --item and --annotator: name "
                "another."
            )
    if (
        request.eps is not None
        and request.trusted is not None
        and (request.item or len(request.labels) > 1)
    ):
        raise ValueError(
            "--eps and --trusted exclude each other where there are votes: give one of them."
        )


@contextmanager
def noted(name: str) -> Iterator[list[str]]:
    """Collect warnings as sentences to pass on, and say in errors of the fit which file it was of.

    What is said of guessed rates is said elsewhere.

    Parameters
    ----------
    name : str
        The file.
    """
    sentences: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")  # each is passed on
        warnings.simplefilter("ignore", AssumedNoiseWarning)  # said elsewhere
        try:
            yield sentences
        except ValueError as error:
            raise ValueError(f"{name} cannot be fitted: {error}") from error
    sentences += dict.fromkeys(str(warning.message) for warning in caught)
