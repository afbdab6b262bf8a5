"""The audit of a file: its labelled rows are audited, and labels proposed for the others."""

from __future__ import annotations

import warnings
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
from unflip.files.label_column import LabelColumn, check_names, groups, label_column, lookalikes, trusted_labels
from unflip.files.rates import noise_model, proportions
from unflip.files.tables import Table, as_text, read_table
from unflip.noise import NoiseModel

Tell = Callable[[str], None]
_N_CHECKS = 100


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked of a file: names of columns, and what is known of the noise.

    Attributes
    ----------
    path : Path
        The file.
    label : str or None
        Column of observed labels; without it, an error says which columns there are.
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
    label: str | None = None
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
    """A file, read: its labels, its rows of features, and what is known of the noise.

    Attributes
    ----------
    table : Table
        The file.
    labels : LabelColumn
        Its labels.
    features : Features
        Where the features come from.
    recipe : Pipeline
        What made them.
    rows : array or sparse matrix of shape (n, p)
        The features of all rows.
    noise : NoiseModel or None
        The flip rates, where given.
    priors : ndarray of shape (k,) or None
        True class proportions, where given.
    trusted : ndarray of shape (n,) or None
        True labels, None where not known.
    groups : ndarray of shape (n,) or None
        Group of each row, where rows of one group do not vouch for each other.
    """

    table: Table
    labels: LabelColumn
    features: Features
    recipe: Pipeline
    rows: Any
    noise: NoiseModel | None
    priors: FloatArray | None
    trusted: NDArray[Any] | None
    groups: NDArray[Any] | None = None

    def classifier(self) -> LPClassifier:
        """Return the classifier for the labelled rows, not yet fitted."""
        priors = None if self.noise is not None else self.priors
        if self.trusted is None:
            return LPClassifier("estimate" if self.noise is None else self.noise, priors=priors)
        checked = self.trusted[self.labels.labelled]
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
        return self.prepared.labels.labelled

    def name_of(self, row: int) -> str:
        """Return the name of a row of the file, empty where it has none."""
        return "" if self.name_column is None else as_text(self.prepared.table.columns[self.name_column][row])

    def shown(self, row: int) -> str:
        """Return what to show of a row of the file: its text, or its cells."""
        table, features, labels = self.prepared.table, self.prepared.features, self.prepared.labels
        if features.kind == "text":
            return str(table.columns[features.columns[0]][row])
        hidden = {labels.name, self.name_column, *(features.columns if features.kind == "embedding" else ())}
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
    if request.label is None:
        named = ", ".join(map(repr, table.columns))
        raise ValueError(f"Say with --label which column of {table.name} holds the labels: {named}.")
    labels = label_column(table, request.label)
    others = (request.trusted, request.group, request.name)
    reserved = [request.label, *(column for column in others if column is not None), *request.ignore]
    for column in reserved:
        table.column(column)
    options = {"--trusted": [request.trusted], "--group": [request.group], "--ignore": request.ignore}
    for option, columns in options.items():
        if request.label in columns:
            raise ValueError(f"{option} {request.label} names the column of the labels: name another.")
    features = feature_columns.choose(table, text=request.text, embedding=request.embedding, reserved=reserved)
    classes = list(labels.counts)
    priors = None if request.priors is None else proportions(request.priors, classes)
    noise = None if request.eps is None else noise_model(request.eps, labels.counts, priors)
    trusted = None if request.trusted is None else trusted_labels(table, request.trusted, labels)
    tell("Building features")
    recipe, rows = feature_columns.fit_features(features, feature_columns.values(features, table))
    return Prepared(
        table=table,
        labels=labels,
        features=features,
        recipe=recipe,
        rows=rows,
        noise=noise,
        priors=priors,
        trusted=trusted,
        groups=None if request.group is None else groups(table, request.group),
    )


def audit_file(request: Request, tell: Tell) -> FileAudit:
    """Audit the labels of a file; parameters are those of `prepare`."""
    prepared = prepare(request, tell)
    if request.name is not None:
        check_names(prepared.table, request.name)
    labels, labelled = prepared.labels, prepared.labels.labelled
    tell(f"Looking for wrong labels in {len(labelled)} rows")
    with noted() as notes:
        found = audit(
            prepared.rows[labelled],
            labels.observed,
            noise="estimate" if prepared.noise is None else prepared.noise,
            priors=None if prepared.noise is not None else prepared.priors,
            trusted=None if prepared.trusted is None else prepared.trusted[labelled],
            groups=None if prepared.groups is None else prepared.groups[labelled],
        )
        tell("Proposing labels for rows without one")
        proposals = _proposals(prepared, found)
    notes += lookalikes(labels)
    return FileAudit(prepared=prepared, audit=found, proposals=proposals, name_column=request.name, notes=notes)


@contextmanager
def noted() -> Iterator[list[str]]:
    """Collect warnings as sentences to pass on; what is said of guessed rates is said elsewhere."""
    sentences: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", AssumedNoiseWarning)
        yield sentences
    sentences += dict.fromkeys(str(warning.message) for warning in caught)


def _proposals(prepared: Prepared, found: Audit) -> Proposals:
    """Propose labels for the rows that have none, by the rates of the audit."""
    labels = prepared.labels
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
