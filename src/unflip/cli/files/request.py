"""The options of a command on a data file, and the file read accordingly."""

from __future__ import annotations

import shlex
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from unflip._utils.typing import FloatArray, IntArray
from unflip.auditing.evaluation.sampled_checks import SelectedChecksWarning
from unflip.cli.files import feature_columns, image_folder
from unflip.cli.files.checked_rows import checks_path, true_labels_of
from unflip.cli.files.data_notes import copies_of_labels, repeated_texts
from unflip.cli.files.feature_columns import IMAGES, Features
from unflip.cli.files.feature_file import is_feature_file, with_feature_file
from unflip.cli.files.items import Items
from unflip.cli.files.items import items as read_items
from unflip.cli.files.label_column import (
    LabelColumn,
    Labels,
    groups,
    label_column,
    with_usual_spellings,
)
from unflip.cli.files.rates import noise_model, proportions
from unflip.cli.files.read_options import NO_OPTIONS, ReadOptions
from unflip.cli.files.tables import Table, is_image_folder, read_table
from unflip.cli.files.vote_columns import Abstentions, votes_in_columns, votes_in_rows
from unflip.estimation.noise_estimator import AssumedNoiseWarning
from unflip.features.table_features import TableFeatures
from unflip.labels.noise import NoiseModel
from unflip.labels.votes import Votes
from unflip.model.options import FEATURES

ReportProgress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Request:
    """The options of a command on a data file.

    Attributes
    ----------
    path : Path
        The file.
    labels : tuple of str
        Column of observed labels, or one column for each annotator. A name that is no column may
        have wildcards, such as "rule*".
    item, annotator : str or None
        Columns of item ids and of annotator ids, if each row is one vote.
    abstentions : bool
        Whether missing votes are abstentions.
    abstain : str or None
        Label that marks an abstention. Missing votes are then abstentions, too.
    text : tuple of str
        Columns of text.
    embedding : str or None
        Prefix of the columns of an embedding, or a file of features. Without both, all columns are
        the features, unless they look like an id or like text, or never vary.
    use : tuple of str
        Columns to use in any case; names may have wildcards.
    eps, priors : str or None
        Noise rates and class proportions as typed, such as "A=0.3,B=0.1".
    trusted : str or None
        Column of trusted labels, or a file of checked rows.
    group, id_column : str or None
        Columns of groups, and of row ids.
    ignore : tuple of str
        Columns to ignore.
    feature_map : str
        Parameter `features` of `LPClassifier`.
    normalise_labels : bool
        Whether labels that differ only by case or spaces are the same.
    read_options : ReadOptions
        How to read the file.
    """

    path: Path
    labels: tuple[str, ...] = ()
    item: str | None = None
    annotator: str | None = None
    abstentions: bool = False
    abstain: str | None = None
    text: tuple[str, ...] = ()
    embedding: str | None = None
    use: tuple[str, ...] = ()
    eps: str | None = None
    priors: str | None = None
    trusted: str | None = None
    group: str | None = None
    id_column: str | None = None
    ignore: tuple[str, ...] = ()
    feature_map: str = "linear"
    normalise_labels: bool = False
    read_options: ReadOptions = NO_OPTIONS

    @property
    def abstention_option(self) -> str | None:
        """The option for abstentions as typed, for messages; None if there is none."""
        if self.abstain is not None:
            return f"--abstain {shlex.quote(self.abstain)}"
        return "--abstentions" if self.abstentions else None


@dataclass(frozen=True, eq=False, kw_only=True)
class Prepared:
    """A data file that was read: labels or votes, features, and information on the noise.

    Attributes
    ----------
    table : Table
        The file.
    items : Items
        The items of its rows; the attributes below have an entry for each item.
    labels : Labels
        Labels or votes.
    features : Features
        Columns of the features.
    frame : DataFrame
        These columns.
    recipe : TableFeatures
        Fitted transformer of the frame.
    rows : array or sparse matrix of shape (n, p)
        Features of all items.
    noise : NoiseModel or None
        Noise model, if rates were given.
    priors : ndarray of shape (k,) or None
        Class priors, if given.
    trusted : ndarray of shape (n,) or None
        Trusted labels, None for unchecked items.
    n_unsure : int
        Rows of the file of checked rows without a true label.
    groups : ndarray of shape (n,) or None
        Group of each item, if given.
    feature_map : str
        Parameter `features` of `LPClassifier`.
    """

    table: Table
    items: Items
    labels: Labels
    features: Features
    frame: Any
    recipe: TableFeatures
    rows: Any
    noise: NoiseModel | None
    priors: FloatArray | None
    trusted: NDArray[Any] | None
    n_unsure: int = 0
    groups: NDArray[Any] | None = None
    feature_map: str = "linear"

    @property
    def votes(self) -> Votes | None:
        """The votes; None if there is one label per row."""
        return self.labels.votes

    @cached_property
    def notes(self) -> list[str]:
        """Warnings about labels and features that look wrong."""
        notes = [*self.table.notes, *self.labels.notes, *repeated_texts(self.table, self.features)]
        if isinstance(self.labels, LabelColumn):
            notes += copies_of_labels(self.table, self.features, self.labels.texts)
        return notes

    @property
    def each_column(self) -> list[dict[str, Any]]:
        """What became of each column, for JSON."""
        counts = {column.name: column.n_features for column in self.recipe.columns_}
        return [
            {
                "name": column.name,
                "kind": column.kind,
                "n_features": counts.get(column.name, 0),
                "left_out": column.left_out or None,
            }
            for column in self.features.details
        ]

    @property
    def audited(self) -> IntArray:
        """Items to audit or fit to: those with a label, or all items if there are votes."""
        return self.labels.audited

    @property
    def labels_of_items(self) -> NDArray[Any] | Votes:
        """Label of each item, empty if it has none; or the votes."""
        return self.labels.texts if isinstance(self.labels, LabelColumn) else self.observed

    @property
    def observed(self) -> NDArray[Any] | Votes:
        """Labels of the audited items, or the votes."""
        return self.labels.observed


def check_feature_map(feature_map: str) -> None:
    """Raise ValueError unless this is a value of the option --features."""
    if feature_map not in FEATURES:
        *first, last = FEATURES
        raise ValueError(
            f"--features must be {', '.join(first)} or {last}, not {feature_map!r}: it does not "
            "choose columns."
        )


def with_folder_columns(request: Request) -> Request:
    """Return the options; for a folder of images, its columns are the labels and ids by default."""
    if not is_image_folder(request.path):
        return request
    return replace(
        request,
        labels=request.labels or (image_folder.LABEL,),
        id_column=request.id_column or image_folder.FILE,
    )


def read_rows(request: Request) -> Table:
    """Read a file, or a folder of images with their features if no embedding replaces them."""
    table = read_table(request.path, request.read_options)
    if not table.images:
        return table
    image_folder.check_classes(table)
    return table if request.embedding is not None else image_folder.with_features(table)


def prepare(
    request: Request, report_progress: ReportProgress, table: Table | None = None
) -> Prepared:
    """Read a file and build its features.

    Parameters
    ----------
    request : Request
        The options.
    report_progress : callable
        Called with each stage, in a few words.
    table : Table, optional
        The file, if it was read before.
    """
    check_feature_map(request.feature_map)
    if table is None:
        report_progress(f"Reading {request.path.name}")
        table = read_rows(request)
    checks_file = checks_path(request.trusted, table)
    trusted_column = request.trusted if checks_file is None else None
    if request.normalise_labels:
        names = _matching_columns(table, request.labels)
        trusted_columns = [] if trusted_column is None else [trusted_column]
        table = with_usual_spellings(table, [*names, *trusted_columns])
    items, labels = _read_labels(table, request)
    roles = (trusted_column, request.group, request.id_column)
    named = [column for column in roles if column is not None]
    reserved = [*labels.columns, *named, *request.ignore]
    for column in reserved:
        table.column(column)
    _check_not_labels(request, labels)
    embedding = IMAGES if IMAGES in table.blocks else request.embedding
    if embedding is not None and is_feature_file(embedding, table):
        report_progress(f"Reading {Path(embedding).name}")
        table = with_feature_file(table, Path(embedding))
        embedding = Path(embedding).name
    features = feature_columns.choose(
        table,
        text=request.text,
        embedding=embedding,
        reserved=reserved,
        use=request.use,
    )
    classes = list(labels.counts)
    priors = None if request.priors is None else proportions(request.priors, classes)
    noise = None if request.eps is None else noise_model(request.eps, labels.counts, priors)
    checked = true_labels_of(request.trusted, table, labels, request.id_column)
    report_progress("Building features")
    frame = items.features(table, features, feature_columns.values(features, table))
    recipe, rows = feature_columns.fit_features(features, frame)
    return Prepared(
        table=table,
        items=items,
        labels=labels,
        features=features,
        frame=frame,
        recipe=recipe,
        rows=rows,
        noise=noise,
        priors=priors,
        trusted=None
        if checked.labels is None
        else items.unique_values(table, str(request.trusted), checked.labels),
        n_unsure=checked.n_unsure,
        groups=None if request.group is None else groups(table, request.group)[items.first],
        feature_map=request.feature_map,
    )


def _check_not_labels(request: Request, labels: Labels) -> None:
    """Raise ValueError if another option names a column of labels, items or annotators."""
    options = {
        "--trusted": [request.trusted],
        "--group": [request.group],
        "--ignore": request.ignore,
    }
    for option, columns in options.items():
        for column in labels.columns:
            if column in columns:
                content = "labels" if column in labels.names else "items or annotators"
                raise ValueError(f"{option} {column} is the column of {content}: name another.")


def _read_labels(table: Table, request: Request) -> tuple[Items, Labels]:
    """Read the items, and their labels or votes."""
    if not request.labels:
        raise ValueError(no_label_column(table))
    names = _matching_columns(table, request.labels)
    _check_votes_request(replace(request, labels=names))
    items = read_items(table, request.item)
    marks = Abstentions(request.abstention_option is not None, request.abstain)
    if request.item is not None:
        return items, votes_in_rows(table, items, names[0], request.annotator, marks)
    if len(names) > 1:
        return items, votes_in_columns(table, names, marks)
    return items, label_column(table, names[0])


def _matching_columns(table: Table, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns with these names; other names are wildcards, kept if nothing matches."""
    columns: list[str] = []
    for name in names:
        is_column = name in table.columns
        matches = [] if is_column else [key for key in table.columns if fnmatchcase(key, name)]
        columns += matches or [name]
    return tuple(columns)


def no_label_column(table: Table) -> str:
    """Return the error of a command without --label."""
    return f"Name the column of labels of {table.name} with --label: {table.column_names}."


def _check_votes_request(request: Request) -> None:
    """Raise ValueError if options for votes exclude each other."""
    if request.annotator is not None and request.item is None:
        raise ValueError(
            f"--annotator {request.annotator} needs --item: name the column of item ids."
        )
    if request.item is not None and len(request.labels) > 1:
        raise ValueError(
            "--item needs one --label, the column of votes: name one, or omit --item if each "
            "column is an annotator."
        )
    roles = (*request.labels, request.item, request.annotator)
    counts = Counter(column for column in roles if column is not None)
    for column, count in counts.items():
        if count > 1:
            raise ValueError(
                f"Column {column!r} is named twice among --label, --item and --annotator: name "
                "another."
            )
    has_votes = request.item or len(request.labels) > 1
    option = request.abstention_option
    if option is not None and not has_votes:
        raise ValueError(
            f"{option} needs votes: name the column of each annotator with --label, or the column "
            "of items with --item; omit it if there is one label per row, and empty the cells of "
            "unlabelled rows."
        )
    if option is not None and request.eps is not None:
        raise ValueError(
            f"--eps and {option} exclude each other, because how often annotators vote on each "
            "class is estimated together with the noise rates: pass one of them."
        )
    if request.eps is not None and request.trusted is not None and has_votes:
        raise ValueError("--eps and --trusted exclude each other for votes: pass one of them.")


@contextmanager
def collect_warnings(
    name: str, aim: str = "fitted", hints: Sequence[str] = ()
) -> Iterator[list[str]]:
    """Collect the warnings of a fit as sentences, and name the file in its errors.

    Warnings that advise on parameters of Python functions are ignored.

    Parameters
    ----------
    name : str
        The file.
    aim : str
        What cannot be done with the file if there is an error.
    hints : sequence of str
        Sentences for the end of an error, on what may cause it.
    """
    sentences: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for advice in (AssumedNoiseWarning, SelectedChecksWarning):
            warnings.simplefilter("ignore", advice)  # commands use their own words
        try:
            yield sentences
        except ValueError as error:
            raise ValueError(" ".join([f"{name} cannot be {aim}: {error}", *hints])) from error
    sentences += dict.fromkeys(str(warning.message) for warning in caught)
