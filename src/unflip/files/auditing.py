"""The audit of a file: its labels or votes are audited, and labels proposed for rows without any."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from unflip._typing import FloatArray, IntArray
from unflip.auditing import Audit, audit
from unflip.classifier import LPClassifier
from unflip.estimation import AssumedNoiseWarning, TrustedSubset
from unflip.estimation.given import GivenRates
from unflip.files import features as feature_columns
from unflip.files.features import Features
from unflip.files.items import Items
from unflip.files.items import items as read_items
from unflip.files.label_column import LabelColumn, check_names, groups, label_column, lookalikes, trusted_labels
from unflip.files.rates import noise_model, proportions
from unflip.files.tables import Table, as_text, read_table
from unflip.files.votes import VoteColumns, votes_in_columns, votes_in_rows
from unflip.labels import UNCHECKED
from unflip.noise import NoiseModel
from unflip.votes import Votes

Tell = Callable[[str], None]
_N_CHECKS = 100


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked of a file: names of columns, and what is known of the noise.

    Attributes
    ----------
    path : Path
        The file.
    labels : tuple of str
        Column of observed labels, or of several workers' votes; without any, an error says which columns there are.
    item, worker : str or None
        Where each row is a vote: columns of what it is about, and of who gave it.
    text, embedding : str or None
        Column of texts, or how the columns of an embedding begin; neither: all numeric columns are the features.
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
    worker: str | None = None
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
        return np.arange(len(self.items)) if isinstance(self.labels, VoteColumns) else self.labels.labelled

    @property
    def observed(self) -> NDArray[Any] | Votes:
        """Labels of these items, or the votes on them."""
        return self.labels.votes if isinstance(self.labels, VoteColumns) else self.labels.observed

    def classifier(self) -> LPClassifier:
        """Return the classifier for the audited items, not yet fitted."""
        priors = None if self.noise is not None else self.priors
        if self.trusted is None:
            return LPClassifier("estimate" if self.noise is None else self.noise, priors=priors)
        checked = self.trusted[self.audited]
        source = TrustedSubset(checked) if self.noise is None else GivenRates(self.noise, y_trusted=checked)
        return LPClassifier(source, priors=priors)


@dataclass(frozen=True, eq=False)
class Proposals:
    """Labels proposed for rows that have none, with the probability of each."""

    rows: IntArray
    proposed: NDArray[Any]
    probability: FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class FileAudit:
    """What was found in a file.

    Attributes
    ----------
    prepared : Prepared
        The file.
    audit : Audit
        Of the rows that have a label.
    proposals : Proposals
        For those that have none.
    name_column : str or None
        Column that names the rows.
    notes : list of str
        Sentences to pass on.
    """

    prepared: Prepared
    audit: Audit
    proposals: Proposals
    name_column: str | None
    notes: list[str] = field(default_factory=list)

    @property
    def file_rows(self) -> IntArray:
        """Row of the file for each row of the audit."""
        return self.prepared.items.first[self.prepared.audited]

    def name_of(self, row: int) -> str:
        """Return the name of a row of the file, empty where it has none."""
        return "" if self.name_column is None else as_text(self.prepared.table.columns[self.name_column][row])

    def shown(self, row: int) -> str:
        """Return what to show of a row of the file: its text, or its cells."""
        table, features, labels = self.prepared.table, self.prepared.features, self.prepared.labels
        if features.kind == "text":
            return str(table.columns[features.columns[0]][row])
        hidden = {*labels.columns, self.name_column, *(features.columns if features.kind == "embedding" else ())}
        return ", ".join(f"{name}={cells[row]}" for name, cells in table.columns.items() if name not in hidden)


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
    reserved = [*labels.columns, *(column for column in others if column is not None), *request.ignore]
    for column in reserved:
        table.column(column)
    _check_not_labels(request, labels)
    features = feature_columns.choose(table, text=request.text, embedding=request.embedding, reserved=reserved)
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
    options = {"--trusted": [request.trusted], "--group": [request.group], "--ignore": request.ignore}
    for option, named in options.items():
        for column in labels.columns:
            if column in named:
                held = "the labels" if column in labels.names else "items or workers"
                raise ValueError(f"{option} {column} names the column of {held}: name another.")


def _read_labels(table: Table, request: Request) -> tuple[Items, LabelColumn | VoteColumns]:
    """Read labels or votes, and what they are about."""
    if not request.labels:
        named = ", ".join(map(repr, table.columns))
        raise ValueError(f"Say with --label which column of {table.name} holds the labels: {named}.")
    _check_votes_request(request)
    items = read_items(table, request.item)
    if request.item is not None:
        return items, votes_in_rows(table, items, request.labels[0], request.worker)
    if len(request.labels) > 1:
        return items, votes_in_columns(table, request.labels)
    return items, label_column(table, request.labels[0])


def _check_votes_request(request: Request) -> None:
    """Raise where options for votes exclude each other."""
    if request.worker is not None and request.item is None:
        raise ValueError(f"--worker {request.worker} needs --item: name the column that says what each vote is about.")
    if request.item is not None and len(request.labels) > 1:
        raise ValueError(
            "--item takes one --label, the column of the votes: name one, or drop --item if each column is a worker."
        )
    named = [*request.labels, *(column for column in (request.item, request.worker) if column is not None)]
    for column, count in Counter(named).items():
        if count > 1:
            raise ValueError(f"Column {column!r} is named twice among --label, --item and --worker: name another.")
    if request.eps is not None and request.trusted is not None and (request.item or len(request.labels) > 1):
        raise ValueError("--eps and --trusted exclude each other where there are votes: give one of them.")


def audit_file(request: Request, tell: Tell) -> FileAudit:
    """Audit the labels of a file; parameters are those of `prepare`."""
    prepared = prepare(request, tell)
    items, labels, audited = prepared.items, prepared.labels, prepared.audited
    if request.name is not None and isinstance(labels, LabelColumn):  # decisions are found by these names
        check_names(prepared.table, request.name)
    tell(f"Looking for wrong labels in {len(audited)} {items.words}")
    with noted(prepared.table.name) as notes:
        found = audit(
            prepared.rows[audited],
            prepared.observed,
            noise="estimate" if prepared.noise is None else prepared.noise,
            priors=None if prepared.noise is not None else prepared.priors,
            trusted=None if prepared.trusted is None else prepared.trusted[audited],
            groups=None if prepared.groups is None else prepared.groups[audited],
        )
        tell(f"Proposing labels for {items.words} without one")
        proposals = _proposals(prepared, found)
    if isinstance(labels, LabelColumn):
        notes += lookalikes(labels)
    name = request.item if request.name is None else request.name
    return FileAudit(prepared=prepared, audit=found, proposals=proposals, name_column=name, notes=notes)


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


def _proposals(prepared: Prepared, found: Audit) -> Proposals:
    """Propose labels for the rows that have none, by the rates of the audit."""
    labels = prepared.labels
    if isinstance(labels, VoteColumns):
        unchecked = found.unlabelled[found.evidence.truth[found.unlabelled.row] == UNCHECKED]
        return Proposals(prepared.items.first[unchecked.row], unchecked.proposed, unchecked.probability)
    rows = labels.unlabelled
    if prepared.trusted is not None:
        rows = rows[[prepared.trusted[row] is None for row in rows]]
    if len(rows) == 0:
        return Proposals(rows, np.empty(0, dtype=labels.texts.dtype), np.empty(0))
    checked = None if prepared.trusted is None else prepared.trusted[labels.labelled]
    source = found.noise if checked is None else GivenRates(found.noise, y_trusted=checked)
    fitted = LPClassifier(source).fit(prepared.rows[labels.labelled], labels.observed)
    probabilities = fitted.predict_proba(prepared.rows[rows])
    order = np.argsort(-probabilities.max(axis=1), kind="stable")
    best = probabilities.argmax(axis=1)[order]
    return Proposals(rows[order], fitted.classes_[best], probabilities.max(axis=1)[order])


def suspect_rows(found: FileAudit) -> list[dict[str, Any]]:
    """Return the suspects as rows of a table, worst first, those checked last; then the rows without a label."""
    suspects, rows = found.audit.suspects, found.file_rows
    codes = np.searchsorted(found.audit.classes, suspects.proposed)
    likely = found.audit.label_posterior[suspects.row, codes]
    checked = set(found.audit.checked.tolist())
    listed = []
    for place, (suspect, share) in enumerate(zip(suspects.tolist(), likely.tolist(), strict=True)):
        index, observed, proposed, wrong = suspect
        part = "suspect" if place < found.audit.n_suspects else "checked" if index in checked else "doubtful"
        listed.append(_line(found, part, int(rows[index]), observed, proposed, wrong, share))
    proposals = found.proposals
    columns = (proposals.rows.tolist(), proposals.proposed.tolist(), proposals.probability.tolist())
    return listed + [
        _line(found, "unlabelled", row, "", label, None, share) for row, label, share in zip(*columns, strict=True)
    ]


def _line(
    found: FileAudit, part: str, row: int, observed: str, proposed: str, wrong: float | None, likely: float
) -> dict[str, Any]:
    return {
        "part": part,
        "row": row,
        "id": found.name_of(row),
        "observed": observed,
        "proposed": proposed,
        "probability_wrong": None if wrong is None else round(wrong, 4),
        "probability_proposed": round(likely, 4),
    }


def next_checks(found: FileAudit) -> list[int]:
    """Return the rows of the file whose check would tell most: 100, or a third of them where they are few."""
    unchecked = len(found.file_rows) - len(found.audit.checked)
    rows = found.audit.check_next(min(_N_CHECKS, -(-unchecked // 3)))
    return [int(row) for row in found.file_rows[rows]]


def page_rows(found: FileAudit) -> tuple[Sequence[str], Sequence[str] | None]:
    """Return texts and names of the audited rows; they are named by their row in the file where others lack a label."""
    rows = found.file_rows.tolist()
    texts = [found.shown(row) for row in rows]
    if found.name_column is not None:
        return texts, [found.name_of(row) for row in rows]
    whole = len(rows) == found.prepared.table.n_rows
    return texts, None if whole else [f"row {row}" for row in rows]
