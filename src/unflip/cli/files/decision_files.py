"""Decisions on suspects: read from a file, and checked against the data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unflip._utils.guarded_cells import unguarded
from unflip.auditing.checks_file import read_checks
from unflip.cli.files.checked_rows import true_labels_of
from unflip.cli.files.label_column import label_column, label_texts
from unflip.cli.files.row_matching import locate
from unflip.cli.files.tables import Table, read_table

_REQUIRED_COLUMNS = ("row", "observed", "proposed", "decision")
NO_SINGLE_LABEL = (
    "Decisions need one label per row, not votes: put the true labels of reviewed rows into a "
    "column and name it with --trusted."
)
_NUMBER = re.compile(r"[0-9]{1,18}")  # no file has rows with more digits


@dataclass(frozen=True)
class Decision:
    """The decision on one row: its observed label and its new label."""

    row: int
    id: str
    observed: str
    label: str


def read_decisions(path: Path) -> list[Decision]:
    """Read the decided rows of a file of decisions.

    The columns are row, observed, proposed and decision ("accept" or "reject" the proposed label,
    "correct" to the label of the column label, or empty), and optionally id and label. In a file
    of checked rows, each row with a true label is decided.
    """
    table = read_table(path)
    if "label" in table.columns and not {"proposed", "decision"} & {*table.columns}:
        return [
            Decision(check.row, check.id, check.observed, check.label)
            for check in read_checks(path)
            if check.label
        ]
    for column in _REQUIRED_COLUMNS:
        if column not in table.columns:
            raise ValueError(
                f"{path} has no column {column!r}: use the decisions exported from the page."
            )
    cells = {column: list(map(unguarded, table.texts(column))) for column in table.columns}
    decided = [line for line in range(table.n_rows) if cells["decision"][line]]
    if not decided:
        raise ValueError(
            f"{path} has no decision: write accept, reject or correct into its column 'decision'."
        )
    return [
        _decision({column: texts[line] for column, texts in cells.items()}, path, line)
        for line in decided
    ]


def _decision(line: Mapping[str, str], path: Path, number: int) -> Decision:
    choice = line["decision"].lower()
    if choice not in ("accept", "reject", "correct"):
        raise ValueError(
            f"Row {number} (counted from 0) of {path} has the decision {line['decision']!r}: write "
            "accept, reject or correct."
        )
    if not _NUMBER.fullmatch(line["row"]):
        raise ValueError(
            f"Row {number} (counted from 0) of {path} refers to row {line['row']!r}: write a "
            "number, counted from 0."
        )
    if choice == "correct":
        return _correction(line, path, number)
    label = line["proposed"] if choice == "accept" else line["observed"]
    if line.get("label", label) != label:
        raise ValueError(
            f"Row {number} (counted from 0) of {path} has the decision {choice}, so the label is "
            f"{label!r}, but its column 'label' has {line['label']!r}: make them agree."
        )
    return Decision(int(line["row"]), line.get("id", ""), line["observed"], label)


def _correction(line: Mapping[str, str], path: Path, number: int) -> Decision:
    """Return the decision for another label than the observed and the proposed one."""
    label = line.get("label", "")
    if not label:
        raise ValueError(
            f"Row {number} (counted from 0) of {path} has the decision correct, but no label: "
            "write the true label into its column 'label'."
        )
    return Decision(int(line["row"]), line.get("id", ""), line["observed"], label)


def label_column_of(decisions: Mapping[int, Decision], table: Table) -> str:
    """Return the only column that has the observed labels of all decisions."""
    columns = []
    new_labels = {decision.label for decision in decisions.values()}
    for column in table.columns:
        texts = label_texts(table, column)
        if new_labels <= {"", *texts} and all(
            texts[row] == decision.observed for row, decision in decisions.items()
        ):
            columns.append(column)
    if len(columns) != 1:
        which = f"the columns {columns}" if columns else "no column"
        raise ValueError(
            f"The observed labels of the decisions match {which} of {table.name}: name the column "
            "of labels with --label, or use the file that was audited."
        )
    return columns[0]


def changed_cells(decisions: Mapping[int, Decision], table: Table, label: str) -> dict[int, Any]:
    """Return the new cell of each row whose label changes, as that label is written elsewhere.

    Parameters
    ----------
    decisions : mapping of int to Decision
        Decisions by row of the data.
    table : Table
        The data.
    label : str
        Column of labels.
    """
    texts = label_texts(table, label)
    cells = table.column(label)
    cell_of_label = {text: cells[row] for row, text in reversed(list(enumerate(texts))) if text}
    for row, decision in decisions.items():
        if texts[row] != decision.observed:
            raise ValueError(
                f"Row {row} (counted from 0) of {table.name} has the label {texts[row]!r}, but the "
                f"decision is about {decision.observed!r}: use the file that was audited."
            )
        if decision.label not in cell_of_label and decision.label != decision.observed:
            raise ValueError(
                f"The decision on row {row} (counted from 0) is the label {decision.label!r}, "
                f"which is not in column {label!r} of {table.name}: write one of "
                f"{', '.join(list(cell_of_label)[:8])}."
            )
    return {
        row: _as_python(cell_of_label[decision.label])
        for row, decision in decisions.items()
        if decision.label != decision.observed
    }


def _as_python(cell: Any) -> Any:
    """Return the Python value of a NumPy cell, and other cells unchanged."""
    return cell.tolist() if isinstance(cell, np.generic | np.ndarray) else cell


@dataclass(frozen=True, eq=False)
class Decided:
    """Decisions that match the data.

    Attributes
    ----------
    label : str
        Column of labels.
    rows : mapping of int to Decision
        Decisions by row of the data.
    changes : mapping of int to value
        New cell of each row whose label changes.
    """

    label: str
    rows: Mapping[int, Decision]
    changes: Mapping[int, Any]


def decide(path: Path, table: Table, label: str | None, id_column: str | None) -> Decided:
    """Read decisions, and match them with the data.

    Parameters
    ----------
    path : Path
        The file of decisions.
    table : Table
        The data.
    label : str or None
        Column of labels; None for the only column that matches the decisions.
    id_column : str or None
        Column of row ids.
    """
    rows = locate(read_decisions(path), table, id_column)
    column = label_column_of(rows, table) if label is None else label
    return Decided(column, rows, changed_cells(rows, table, column))


def changes_of_checks(
    decided: Decided, table: Table, trusted: str | None, id_column: str | None
) -> dict[int, Any]:
    """Return the new cell of each row without a decision whose label is wrong by a check.

    Raises ValueError if a decision contradicts a check.

    Parameters
    ----------
    decided : Decided
        The decisions.
    table : Table
        The data.
    trusted : str or None
        Column of trusted labels, or a file of checked rows.
    id_column : str or None
        Column of row ids.
    """
    if trusted is None:
        return {}
    labels = label_column(table, decided.label)
    checked: dict[int, Decision] = {}
    for row, label in enumerate(true_labels_of(trusted, table, labels, id_column).labels):
        if label is None:
            continue
        decision = decided.rows.get(row)
        if decision is None:
            checked[row] = Decision(row, "", str(labels.texts[row]), label)
        elif decision.label != label:
            raise ValueError(
                f"The decision on row {row} (counted from 0) is the label {decision.label!r}, but "
                f"its true label by --trusted {trusted} is {label!r}: correct one of them."
            )
    return changed_cells(checked, table, decided.label)
