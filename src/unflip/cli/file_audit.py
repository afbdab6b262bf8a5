"""The audit of a file, and its suspects as rows of a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import FloatArray, IntArray
from unflip.auditing.report import Audit
from unflip.cli.files.request import Prepared
from unflip.cli.files.tables import as_text

_N_CHECKS = 100


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
        return (
            ""
            if self.name_column is None
            else as_text(self.prepared.table.columns[self.name_column][row])
        )

    def shown(self, row: int) -> str:
        """Return what to show of a row of the file: its text, or its cells."""
        table, features, labels = self.prepared.table, self.prepared.features, self.prepared.labels
        if features.kind == "text":
            return str(table.columns[features.columns[0]][row])
        hidden = {
            *labels.columns,
            self.name_column,
            *(features.columns if features.kind == "embedding" else ()),
        }
        return ", ".join(
            f"{name}={cells[row]}" for name, cells in table.columns.items() if name not in hidden
        )

    @cached_property
    def suspect_rows(self) -> list[dict[str, Any]]:
        """Suspects as rows of a table, worst first, checked ones last; then rows without a label."""
        suspects = self.audit.suspects
        codes = np.searchsorted(self.audit.classes, suspects.proposed)
        likely = self.audit.label_posterior[suspects.row, codes]
        listed = []
        for place, (row, observed, proposed, wrong) in enumerate(suspects.tolist()):
            part = self._part(place, row)
            file_row = int(self.file_rows[row])
            share = float(likely[place])
            listed.append(self._line(part, file_row, observed, proposed, wrong, share))
        proposals = self.proposals
        columns = (
            proposals.rows.tolist(),
            proposals.proposed.tolist(),
            proposals.probability.tolist(),
        )
        unlabelled = [
            self._line("unlabelled", row, "", label, None, share)
            for row, label, share in zip(*columns, strict=True)
        ]
        return listed + unlabelled

    @cached_property
    def _checked(self) -> set[int]:
        return set(self.audit.checked.tolist())

    def _part(self, place: int, row: int) -> str:
        if place < self.audit.n_suspects:
            return "suspect"
        return "checked" if row in self._checked else "doubtful"

    def _line(
        self,
        part: str,
        row: int,
        observed: str,
        proposed: str,
        wrong: float | None,
        likely: float,
    ) -> dict[str, Any]:
        return {
            "part": part,
            "row": row,
            "id": self.name_of(row),
            "observed": observed,
            "proposed": proposed,
            "probability_wrong": None if wrong is None else round(wrong, 4),
            "probability_proposed": round(likely, 4),
        }

    @cached_property
    def check_next(self) -> list[int]:
        """Rows of the file to check next: 100, or a third of them if they are few."""
        unchecked = len(self.file_rows) - len(self.audit.checked)
        rows = self.audit.check_next(min(_N_CHECKS, -(-unchecked // 3)))
        return [int(row) for row in self.file_rows[rows]]

    @property
    def page_texts(self) -> list[str]:
        """Text of each audited row, for the page."""
        return [self.shown(row) for row in self.file_rows.tolist()]

    @property
    def page_ids(self) -> list[str] | None:
        """Name of each audited row, for the page; None if the row number says it all."""
        rows = self.file_rows.tolist()
        if self.name_column is not None:
            return [self.name_of(row) for row in rows]
        is_whole_file = len(rows) == self.prepared.table.n_rows
        return None if is_whole_file else [f"row {row}" for row in rows]
