"""The audit of a file, with its suspects as rows of a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._utils.record_tables import lines_of
from unflip._utils.typing import FloatArray, IntArray
from unflip.auditing import prose
from unflip.auditing.report import Audit
from unflip.auditing.shown_rows import ShownRows
from unflip.cli.files.request import Prepared
from unflip.cli.files.tables import as_text


@dataclass(frozen=True, eq=False)
class Proposals:
    """Labels proposed for unlabelled rows, with the probability of each."""

    rows: IntArray
    proposed: NDArray[Any]
    probability: FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class FileAudit:
    """The audit of a file.

    Attributes
    ----------
    prepared : Prepared
        The file.
    audit : Audit
        The audit; its rows are the items of the file.
    proposals : Proposals
        Labels proposed for the unlabelled rows.
    id_column : str or None
        Column of row ids.
    notes : list of str
        Warnings to print.
    """

    prepared: Prepared
    audit: Audit
    proposals: Proposals
    id_column: str | None
    notes: list[str] = field(default_factory=list)

    @property
    def file_rows(self) -> IntArray:
        """Row of the file for each row of the audit."""
        return self.prepared.items.first

    def id_of(self, row: int) -> str:
        """Return the id of a row of the file, empty if it has none."""
        if self.id_column is None:
            return ""
        return as_text(self.prepared.table.columns[self.id_column][row])

    def description(self, row: int) -> str:
        """Return the text of a row of the file, or its cells."""
        if self.prepared.features.kind == "text":
            return self._text(row)
        columns = self.prepared.table.columns
        return ", ".join(f"{name}={columns[name][row]}" for name in self._cell_columns)

    def _text(self, row: int) -> str:
        columns = self.prepared.table.columns
        return "\n".join(str(columns[name][row]) for name in self.prepared.features.of_kind("text"))

    @property
    def _cell_columns(self) -> list[str]:
        """Columns that describe a row: all but those of labels, ids, texts and embeddings."""
        features = self.prepared.features
        hidden = {*self.prepared.labels.columns, self.id_column}
        hidden |= {*features.of_kind("text", "embedding")}
        return [name for name in self.prepared.table.columns if name not in hidden]

    @cached_property
    def suspect_rows(self) -> list[dict[str, Any]]:
        """The table of suspects: most likely wrong first, then checked and unlabelled rows."""
        suspects = self.audit.suspects
        codes = np.searchsorted(self.audit.classes, suspects.proposed)
        likely = self.audit.label_posterior[suspects.row, codes]
        listed = []
        for place, (row, observed, proposed, p_wrong) in enumerate(lines_of(suspects)):
            part = self._part(place, row)
            file_row = int(self.file_rows[row])
            p_proposed = float(likely[place])
            listed.append(self._line(part, file_row, observed, proposed, p_wrong, p_proposed))
        proposals = self.proposals
        columns = (
            proposals.rows.tolist(),
            proposals.proposed.tolist(),
            proposals.probability.tolist(),
        )
        unlabelled = [
            self._line("unlabelled", row, "", label, None, p_proposed)
            for row, label, p_proposed in zip(*columns, strict=True)
        ]
        return listed + unlabelled

    @cached_property
    def _checked(self) -> set[int]:
        return set(self.audit.checked.tolist())

    def _part(self, place: int, row: int) -> str:
        if place < self.audit.n_suspects:
            return "suspect"
        return "checked" if row in self._checked else "uncertain"

    def _line(
        self,
        part: str,
        row: int,
        observed: str,
        proposed: str,
        p_wrong: float | None,
        p_proposed: float,
    ) -> dict[str, Any]:
        return {
            "part": part,
            "row": row,
            "id": self.id_of(row),
            "observed": observed,
            "proposed": proposed,
            "probability_wrong": None if p_wrong is None else round(p_wrong, 4),
            "probability_proposed": round(p_proposed, 4),
        }

    @cached_property
    def check_next(self) -> list[int]:
        """Rows of the file to check next."""
        rows = self.audit.check_next(prose.n_to_check(self.audit))
        return [int(row) for row in self.file_rows[rows]]

    @property
    def shown(self) -> ShownRows:
        """What the page shows of each row of the audit."""
        rows = self.file_rows.tolist()
        columns = self.prepared.table.columns
        cells = {name: [as_text(columns[name][row]) for row in rows] for name in self._cell_columns}
        images = self.prepared.table.images
        is_text = self.prepared.features.kind == "text"
        return ShownRows(
            ids=None if self.id_column is None else [self.id_of(row) for row in rows],
            texts=[self._text(row) for row in rows] if is_text else None,
            images=[images[row] for row in rows] if images else None,
            cells=cells or None,
            numbers=None if rows == list(range(self.prepared.table.n_rows)) else rows,
            source=self.prepared.table.name,
        )
