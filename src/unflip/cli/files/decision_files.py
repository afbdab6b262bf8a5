"""Decisions on suspects: read from a file, checked against the data, and put into a copy of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unflip.cli.files.label_column import label_texts
from unflip.cli.files.safe_csv import unguarded
from unflip.cli.files.tables import Table, as_text, read_table

_NEEDED = ("row", "observed", "proposed", "decision")
NO_SINGLE_LABEL = (
    "Votes leave no single label to decide on: write the true labels that you found into a column "
    "of their own and name it with --trusted."
)
_NUMBER = re.compile(r"[0-9]{1,18}")  # more digits than any file has rows
_ROW_NAME = re.compile(rf"row ({_NUMBER.pattern})")


@dataclass(frozen=True)
class Decision:
    """What was decided of one row: the label that it had and the one that it is to have."""

    row: int
    name: str
    observed: str
    label: str


def read_decisions(path: Path) -> list[Decision]:
    """Read decisions; rows that are not decided are left out.

    The file has columns row, observed, proposed and decision ("accept" the proposed label, "reject"
    it, or empty); id and label may be there, too.
    """
    table = read_table(path)
    for column in _NEEDED:
        if column not in table.columns:
            raise ValueError(
                f"{path} lacks the column {column!r}: give the decisions that the page saved."
            )
    cells = {column: list(map(unguarded, table.texts(column))) for column in table.columns}
    decided = [line for line in range(table.n_rows) if cells["decision"][line]]
    if not decided:
        raise ValueError(
            f"{path} decides nothing: write accept or reject into its column 'decision'."
        )
    return [
        _decision({column: texts[line] for column, texts in cells.items()}, path, line)
        for line in decided
    ]


def _decision(line: Mapping[str, str], path: Path, number: int) -> Decision:
    choice = line["decision"].lower()
    if choice not in ("accept", "reject"):
        raise ValueError(
            f"Row {number} of {path} decides {line['decision']!r}: write accept or reject."
        )
    if not _NUMBER.fullmatch(line["row"]):
        raise ValueError(
            f"Row {number} of {path} speaks of row {line['row']!r}: write a number, counted from 0."
        )
    label = line["proposed"] if choice == "accept" else line["observed"]
    if line.get("label", label) != label:
        raise ValueError(
            f"Row {number} of {path} says {choice}, which makes the label {label!r}, but also "
            f"label {line['label']!r}: make them agree."
        )
    return Decision(int(line["row"]), line.get("id", ""), line["observed"], label)


def located(
    decisions: Sequence[Decision], table: Table, name_column: str | None
) -> dict[int, Decision]:
    """Return the decision on each row of the data, found by its number, or by its name where it has one.

    Parameters
    ----------
    decisions : sequence of Decision
        What was decided.
    table : Table
        The data.
    name_column : str or None
        Column that holds the names of the rows.
    """
    rows = (
        _by_name(decisions, table, name_column)
        if name_column is not None
        else _by_number(decisions, table)
    )
    found: dict[int, Decision] = {}
    for row, decision in zip(rows, decisions, strict=True):
        if row in found:
            raise ValueError(
                f"Row {row} of {table.name} is decided twice: keep one decision on it."
            )
        found[row] = decision
    return found


def _by_name(decisions: Sequence[Decision], table: Table, column: str) -> list[int]:
    places: dict[str, list[int]] = {}
    for row, name in enumerate(table.texts(column)):
        places.setdefault(name, []).append(row)
    rows = []
    for decision in decisions:
        here = places.get(decision.name, [])
        if len(here) != 1:
            how_often = "does not occur" if not here else f"occurs {len(here)} times"
            raise ValueError(
                f"The id {decision.name!r} of a decision {how_often} in column {column!r} of "
                f"{table.name}: name a column with one id for each row."
            )
        rows += here
    return rows


def _by_number(decisions: Sequence[Decision], table: Table) -> list[int]:
    matches = [_ROW_NAME.fullmatch(decision.name) for decision in decisions]
    rows = [
        int(match[1]) if match else decision.row
        for match, decision in zip(matches, decisions, strict=True)
    ]
    for row in rows:
        if row >= table.n_rows:
            raise ValueError(
                f"A decision speaks of row {row}, but {table.name} has {table.n_rows} rows (from "
                "0)."
            )
    names = [
        ("" if match else decision.name) for match, decision in zip(matches, decisions, strict=True)
    ]
    if any(names) and not _is_column(table, rows, names):
        raise ValueError(
            f"The ids of the decisions stand in no column of {table.name} at the rows they speak "
            "of: say with --id which column holds them, or give the file that was audited."
        )
    return rows


def _is_column(table: Table, rows: Sequence[int], names: Sequence[str]) -> bool:
    pairs = list(zip(rows, names, strict=True))
    return any(
        all(as_text(cells[row]) == name for row, name in pairs) for cells in table.columns.values()
    )


def label_column_of(decisions: Mapping[int, Decision], table: Table) -> str:
    """Return the one column that holds the observed labels of all decisions."""
    found = []
    wanted = {decision.label for decision in decisions.values()}
    for column in table.columns:
        texts = label_texts(table, column)
        if wanted <= {"", *texts} and all(
            texts[row] == decision.observed for row, decision in decisions.items()
        ):
            found.append(column)
    if len(found) != 1:
        which = f"columns {found}" if found else "no column"
        raise ValueError(
            f"The labels that the decisions speak of are those of {which} of {table.name}: say "
            "which with --label, or give the file that was audited."
        )
    return found[0]


def changes(decisions: Mapping[int, Decision], table: Table, label: str) -> dict[int, Any]:
    """Return the new cell of each row whose label changes, as the file writes that label elsewhere.

    Parameters
    ----------
    decisions : mapping of int to Decision
        By row of the data.
    table : Table
        The data.
    label : str
        Column of labels.
    """
    texts, cells = label_texts(table, label), table.column(label)
    written = {text: cells[row] for row, text in reversed(list(enumerate(texts))) if text}
    for row, decision in decisions.items():
        if texts[row] != decision.observed:
            raise ValueError(
                f"Row {row} of {table.name} has the label {texts[row]!r}, but the decision on it "
                f"was about {decision.observed!r}: give the file that was audited."
            )
        if decision.label not in written and decision.label != decision.observed:
            raise ValueError(
                f"The decision on row {row} gives it the label {decision.label!r}, which column "
                f"{label!r} of {table.name} does not hold: write one of "
                f"{', '.join(list(written)[:8])}."
            )
    changed = {
        row: decision.label
        for row, decision in decisions.items()
        if decision.label != decision.observed
    }
    return {
        row: getattr(written[text], "tolist", lambda text=text: written[text])()
        for row, text in changed.items()
    }


@dataclass(frozen=True, eq=False)
class Decided:
    """Decisions that fit the data.

    Attributes
    ----------
    label : str
        Column of labels.
    rows : mapping of int to Decision
        By row of the data.
    changes : mapping of int to value
        New cell of each row whose label changes.
    """

    label: str
    rows: Mapping[int, Decision]
    changes: Mapping[int, Any]


def decide(path: Path, table: Table, label: str | None, name_column: str | None) -> Decided:
    """Read decisions, find their rows in the data, and check that they were made about these.

    Parameters
    ----------
    path : Path
        The decisions.
    table : Table
        The data.
    label : str or None
        Column of labels; None: the one that the decisions fit.
    name_column : str or None
        Column that holds the names of the rows.
    """
    rows = located(read_decisions(path), table, name_column)
    column = label_column_of(rows, table) if label is None else label
    return Decided(column, rows, changes(rows, table, column))
