"""Audit the labels or votes of a file, and propose labels for rows without any."""

from __future__ import annotations

import numpy as np

from unflip.auditing.from_rows import audit
from unflip.auditing.report import Audit
from unflip.cli.file_audit import FileAudit, Proposals
from unflip.cli.files.label_column import LabelColumn, check_names, lookalikes
from unflip.cli.files.request import Prepared, Request, Tell, noted, prepare
from unflip.cli.files.vote_columns import VoteColumns
from unflip.estimation.given_rates import GivenRates
from unflip.labels.classes import UNCHECKED
from unflip.model.classifier import LPClassifier


def audit_file(request: Request, tell: Tell) -> FileAudit:
    """Audit the labels of a file; parameters are those of `prepare`."""
    prepared = prepare(request, tell)
    items, labels, audited = prepared.items, prepared.labels, prepared.audited
    if request.name is not None and isinstance(
        labels, LabelColumn
    ):  # decisions are found by these names
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
    return FileAudit(
        prepared=prepared, audit=found, proposals=proposals, name_column=name, notes=notes
    )


def _proposals(prepared: Prepared, found: Audit) -> Proposals:
    """Propose labels for the rows that have none, by the rates of the audit."""
    labels = prepared.labels
    if isinstance(labels, VoteColumns):
        unchecked = found.unlabelled[found.evidence.truth[found.unlabelled.row] == UNCHECKED]
        return Proposals(
            prepared.items.first[unchecked.row], unchecked.proposed, unchecked.probability
        )
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
