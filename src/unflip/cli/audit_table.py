"""Audit the labels or votes of a file, and propose labels for unlabelled rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unflip.auditing.from_rows import audit
from unflip.auditing.report import Audit
from unflip.cli.file_audit import FileAudit, Proposals
from unflip.cli.files.label_column import check_unique
from unflip.cli.files.request import (
    Prepared,
    ReportProgress,
    Request,
    collect_warnings,
    prepare,
    with_folder_columns,
)
from unflip.labels.codes import UNCHECKED


def audit_file(request: Request, report_progress: ReportProgress) -> FileAudit:
    """Audit the labels of a file; parameters are those of `prepare`."""
    request = with_folder_columns(request)
    prepared = prepare(request, report_progress)
    if request.id_column is not None and prepared.votes is None:
        check_unique(prepared.table, request.id_column)  # decisions refer to these ids
    report_progress(f"Auditing {len(prepared.audited)} {prepared.items.plural}")
    with collect_warnings(prepared.table.name, hints=prepared.notes) as notes:
        result = audit(
            prepared.rows,
            prepared.labels_of_items,
            noise="estimate" if prepared.noise is None else prepared.noise,
            priors=None if prepared.noise is not None else prepared.priors,
            trusted=prepared.trusted,
            groups=prepared.groups,
            features=prepared.feature_map,
        )
        result = _with_inputs(result, prepared)
    notes += prepared.notes
    id_column = request.item if request.id_column is None else request.id_column
    return FileAudit(
        prepared=prepared,
        audit=replace(result, n_unsure=prepared.n_unsure),
        proposals=_proposals(prepared, result),
        id_column=id_column,
        notes=notes,
    )


def _with_inputs(result: Audit, prepared: Prepared) -> Audit:
    """Return the audit with the words or the columns that explain its suspects."""
    if prepared.features.kind == "embedding":
        return result  # the dimensions of an embedding mean nothing to a reader
    return result.explained_by(prepared.recipe, prepared.frame)


def _proposals(prepared: Prepared, result: Audit) -> Proposals:
    """Return the labels proposed for unlabelled items without a trusted label."""
    unlabelled = result.unlabelled
    is_open = result.evidence.truth[unlabelled.row] == UNCHECKED
    return Proposals(
        prepared.items.first[unlabelled.row[is_open]],
        np.asarray(unlabelled.proposed[is_open]),
        np.asarray(unlabelled.probability[is_open]),
    )
