"""Audit the labels or votes of a file, and propose labels for unlabelled rows."""

from __future__ import annotations

import numpy as np

from unflip.auditing.from_rows import audit
from unflip.auditing.report import Audit
from unflip.cli.file_audit import FileAudit, Proposals
from unflip.cli.files.label_column import check_unique
from unflip.cli.files.request import Prepared, ReportProgress, Request, collect_warnings, prepare
from unflip.estimation.given_rates import GivenRates
from unflip.labels.codes import UNCHECKED
from unflip.model.classifier import LPClassifier


def audit_file(request: Request, report_progress: ReportProgress) -> FileAudit:
    """Audit the labels of a file; parameters are those of `prepare`."""
    prepared = prepare(request, report_progress)
    audited = prepared.audited
    items = prepared.items.plural
    if request.id_column is not None and prepared.votes is None:
        check_unique(prepared.table, request.id_column)  # decisions refer to these ids
    report_progress(f"Auditing {len(audited)} {items}")
    with collect_warnings(prepared.table.name, hints=prepared.notes) as notes:
        result = audit(
            prepared.rows[audited],
            prepared.observed,
            noise="estimate" if prepared.noise is None else prepared.noise,
            priors=None if prepared.noise is not None else prepared.priors,
            trusted=None if prepared.trusted is None else prepared.trusted[audited],
            groups=None if prepared.groups is None else prepared.groups[audited],
            features=prepared.feature_map,
        )
        report_progress(f"Proposing labels for unlabelled {items}")
        proposals = _proposals(prepared, result)
    notes += prepared.notes
    id_column = request.item if request.id_column is None else request.id_column
    return FileAudit(
        prepared=prepared, audit=result, proposals=proposals, id_column=id_column, notes=notes
    )


def _proposals(prepared: Prepared, result: Audit) -> Proposals:
    """Propose labels for unlabelled rows, with the noise rates of the audit."""
    if prepared.votes is not None:
        unchecked = result.unlabelled[result.evidence.truth[result.unlabelled.row] == UNCHECKED]
        return Proposals(
            prepared.items.first[unchecked.row],
            np.asarray(unchecked.proposed),
            np.asarray(unchecked.probability),
        )
    audited = prepared.audited
    rows = np.setdiff1d(np.arange(len(prepared.items)), audited)
    if prepared.trusted is not None:
        rows = rows[[prepared.trusted[row] is None for row in rows]]
    if len(rows) == 0:
        return Proposals(rows, result.classes[:0], np.empty(0))
    checked = None if prepared.trusted is None else prepared.trusted[audited]
    source = result.noise if checked is None else GivenRates(result.noise, y_trusted=checked)
    fitted = LPClassifier(source, features=prepared.feature_map)
    fitted.fit(prepared.rows[audited], prepared.observed)
    probabilities = fitted.predict_proba(prepared.rows[rows])
    order = np.argsort(-probabilities.max(axis=1), kind="stable")
    best = probabilities.argmax(axis=1)[order]
    return Proposals(rows[order], fitted.classes_[best], probabilities.max(axis=1)[order])
