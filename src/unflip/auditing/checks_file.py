"""Checked rows: read from the file that the page of an audit exports, and matched with labels."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._utils.guarded_cells import unguarded
from unflip._utils.validation import shown
from unflip.labels.classes import is_missing
from unflip.labels.votes import Votes

_REQUIRED_COLUMNS = ("row", "observed", "label")
# What a spreadsheet may put between the cells when it saves the file again.
_DELIMITERS = (",", ";", "\t")
_LONGEST_NUMBER = 18  # digits; no data have more rows


@dataclass(frozen=True)
class Check:
    """What a person said about one row: its true label, empty if unsure."""

    row: int
    id: str
    observed: str
    label: str


def read_checks(path: Path) -> list[Check]:
    """Read a file of checked rows, exported from the page of an audit.

    The columns are row, observed and label (the true one, empty if unsure), and optionally id.
    Other columns, such as notes, are ignored; a column of decisions on suspects is an error.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8: save it as CSV with this encoding.") from None
    delimiter = max(_DELIMITERS, key=text.partition("\n")[0].count)
    lines = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, restval="")
    columns = lines.fieldnames or ()
    if "decision" in columns:
        raise ValueError(
            f"{path} has decisions on suspects, which are not a random sample: pass them to "
            "unflip fit with --decisions, or use checked rows exported from the tab 'Check rows' "
            "of the page."
        )
    for column in _REQUIRED_COLUMNS:
        if column not in columns:
            raise ValueError(
                f"{path} has no column {column!r}: use the checked rows exported from the page."
            )
    checks = [_check(line, path, number) for number, line in enumerate(lines)]
    if not any(check.label for check in checks):
        raise ValueError(f"{path} has no true label: fill in its column 'label'.")
    return checks


def _check(line: Mapping[str, str], path: Path, number: int) -> Check:
    row = line["row"]
    if not (row.isascii() and row.isdigit() and len(row) <= _LONGEST_NUMBER):
        raise ValueError(
            f"Row {number} (counted from 0) of {path} refers to row {row!r}: write a number, "
            "counted from 0."
        )
    cells = {name: unguarded(line.get(name, "")) for name in ("id", "observed", "label")}
    return Check(int(row), **cells)


def n_unsure(checks: Sequence[Check]) -> int:
    """Return the number of rows without a true label."""
    return sum(not check.label for check in checks)


def true_labels(
    checks: Mapping[int, Check], observed: Sequence[Any] | None, classes: Sequence[Any], n_rows: int
) -> NDArray[Any]:
    """Return the true label of each row, None for unchecked rows and where a person was unsure.

    Parameters
    ----------
    checks : mapping of int to Check
        Checks by row of the data.
    observed : sequence or None
        Observed label of each row, "" if missing; None with votes, which are not compared.
    classes : sequence
        The observed classes.
    n_rows : int
        Number of rows of the data.
    """
    written = _Written.of(classes)
    labels = np.full(n_rows, None, dtype=object)
    for row, check in checks.items():
        if observed is not None and written.label(check.observed) != observed[row]:
            raise ValueError(
                f"Row {row} (counted from 0) has the label {observed[row]!r}, but in the file of "
                f"checked rows it has {check.observed!r}: use the data that were audited."
            )
        labels[row] = written.label(check.label) if check.label else None
        if check.label and labels[row] not in written.exact.values():
            raise ValueError(
                f"The true label of row {row} (counted from 0) is {check.label!r}, which is not "
                f"among the observed classes {shown(list(classes))}: correct it, or empty the cell."
            )
    return labels


@dataclass(frozen=True)
class _Written:
    """The classes by how they are written in a file."""

    exact: dict[str, Any]
    alike: dict[Any, Any]

    @classmethod
    def of(cls, classes: Sequence[Any]) -> _Written:
        counts = Counter(_value(str(label)) for label in classes)
        alike = {_value(str(label)): label for label in classes}
        return cls(
            {str(label): label for label in classes},
            {value: label for value, label in alike.items() if counts[value] == 1},
        )

    def label(self, text: str) -> Any:
        """Return the class that is written like this; the text itself if there is none."""
        return self.exact.get(text, self.alike.get(_value(text), text))


def _value(text: str) -> float | str:
    """Return what does not change when a spreadsheet saves a label again: TRUE for True, 1 for 1.0.

    A number is its value; any other text is without case.
    """
    try:
        return float(text)
    except ValueError:
        return text.casefold()


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """Trusted labels, None for unchecked rows, and the number of rows that stayed unsure."""

    labels: Any
    n_unsure: int = 0

    @classmethod
    def of(cls, trusted: Any, labels: NDArray[Any] | Votes) -> CheckedRows:
        """Return the trusted labels that a caller passed, read from a file if it is a path.

        Parameters
        ----------
        trusted : array-like of shape (n,), str, path or None
            Trusted labels, or the file.
        labels : ndarray of shape (n,) or Votes
            Observed labels, None, NaN or "" if missing, or votes.
        """
        if not isinstance(trusted, str | os.PathLike):
            return cls(trusted)
        return _of_file(Path(trusted), labels)


def _of_file(path: Path, labels: NDArray[Any] | Votes) -> CheckedRows:
    if not path.is_file():
        raise ValueError(
            f"trusted={str(path)!r} is not a file: pass the checked rows exported from the page of "
            "an audit, or the true label of each row (None if it was not checked)."
        )
    checks = read_checks(path)
    n_rows = len(labels)
    by_row: dict[int, Check] = {}
    for check in checks:
        if check.row >= n_rows:
            raise ValueError(
                f"{path} refers to row {check.row}, but there are {n_rows} rows (counted from 0): "
                "pass the data that were audited."
            )
        if check.row in by_row:
            raise ValueError(f"{path} has row {check.row} twice: keep one check.")
        by_row[check.row] = check
    if isinstance(labels, Votes):
        trusted = true_labels(by_row, None, labels.classes.tolist(), n_rows)
    else:
        observed = ["" if is_missing(label) else label for label in labels.tolist()]
        classes = [label for label in dict.fromkeys(observed) if label != ""]
        trusted = true_labels(by_row, observed, classes, n_rows)
    return CheckedRows(trusted, n_unsure(checks))
