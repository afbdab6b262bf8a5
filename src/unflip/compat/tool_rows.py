"""Rows that go to a labelling tool and come back: what is shown, proposed, and answered."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unflip._utils.atomic_files import write_atomically
from unflip._utils.typing import IntArray
from unflip._utils.validation import as_array, as_count, as_path, shown
from unflip.auditing.report import Audit
from unflip.auditing.shown_rows import ShownRows
from unflip.labels import Votes

#: Name under which proposals appear in a labelling tool.
AGENT = "unflip"


@dataclass(frozen=True)
class ToolRow:
    """A row that goes to a labelling tool.

    Attributes
    ----------
    row : int
        Row of the audit, from 0.
    data : dict
        What the tool shows, by name.
    name : str or None
        Id of the row, if there is one.
    observed : str or None
        Observed label; None without one.
    proposed : str
        Class to propose.
    probability : float
        Probability that the proposed class is the true one.
    """

    row: int
    data: dict[str, Any]
    name: str | None
    observed: str | None
    proposed: str
    probability: float


def tool_rows(
    audit: Audit, rows: ArrayLike | None, data: Mapping[str, Sequence[Any]] | None
) -> list[ToolRow]:
    """Return rows of an audit for a labelling tool, in the given order.

    Parameters
    ----------
    audit : Audit
        The audit.
    rows : array-like of int or None
        The rows; None for the suspects, most likely wrong first.
    data : mapping of str to sequence, or None
        What the tool shows: values of all rows, by name. None for the texts, images or cells of
        ``audit.shown``.
    """
    n = len(audit.evidence.codes)
    chosen = _checked_rows(audit, rows, n)
    columns = _shown_columns(audit.shown.checked(n)) if data is None else _checked(data, n)
    ids = audit.shown.checked(n).ids
    codes = audit.evidence.codes
    labelled = audit.evidence.labelled
    names = [str(label) for label in audit.classes.tolist()]
    proposed = _proposed_codes(audit)
    return [
        ToolRow(
            row=row,
            data={name: _plain(values[row]) for name, values in columns.items()},
            name=None if ids is None else str(ids[row]),
            observed=names[codes[row]] if labelled[row] else None,
            proposed=names[proposed[row]],
            probability=float(audit.label_posterior[row, proposed[row]]),
        )
        for row in chosen.tolist()
    ]


def _checked_rows(audit: Audit, rows: ArrayLike | None, n: int) -> IntArray:
    if rows is None:
        return np.asarray(audit.suspects.row)[: audit.n_suspects]
    chosen = as_array(rows, "rows")
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
        raise ValueError(f"rows = {shown(rows)} must be a list of row numbers.")
    for row in chosen.tolist():
        as_count(row, "a row of rows", most=n - 1)
    return chosen.astype(np.intp)


def _proposed_codes(audit: Audit) -> IntArray:
    """Return the class to propose for each row: for a suspect the most likely other class."""
    proposed = audit.label_posterior.argmax(axis=1)
    suspects = np.asarray(audit.suspects.row)[: audit.n_suspects]
    labels = np.asarray(audit.suspects.proposed)[: audit.n_suspects]
    proposed[suspects] = np.searchsorted(audit.classes, labels)
    return np.asarray(proposed)


def _shown_columns(rows: ShownRows) -> Mapping[str, Sequence[Any]]:
    if rows.texts is not None:
        return {"text": rows.texts}
    if rows.images is not None and all(isinstance(each, str | PathLike) for each in rows.images):
        return {"image": [fspath(each) for each in rows.images]}
    if rows.cells:
        lines = zip(*rows.cells.values(), strict=True)
        return {"text": ["\n".join(map(_cell, rows.cells, line)) for line in lines]}
    raise ValueError(
        "The audit holds nothing to show of its rows: pass data=, such as {'text': texts}, with a "
        "value for each row."
    )


def _cell(name: str, value: Any) -> str:
    return f"{name}: {value}"


def _checked(data: Mapping[str, Sequence[Any]], n: int) -> Mapping[str, Sequence[Any]]:
    if not data:
        raise ValueError("data is empty: pass what to show, such as {'text': texts}.")
    columns = {name: list(values) for name, values in data.items()}
    for name, values in columns.items():
        if len(values) != n:
            raise ValueError(
                f"data[{name!r}] has {len(values)} values but the audit has {n} rows: pass one for "
                "each row."
            )
    return columns


def _plain(value: Any) -> Any:
    """Return a value of JSON: a number, text, or None."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and not np.isfinite(plain):
        return None
    if plain is None or isinstance(plain, str | int | float | bool):
        return plain
    return str(plain)


@dataclass(frozen=True, eq=False, repr=False)
class ReviewedLabels:
    """Labels that came back from a labelling tool.

    Attributes
    ----------
    n_rows : int
        Number of all rows.
    row : ndarray of int, shape (n_answers,)
        Row of each answer.
    annotator : ndarray of shape (n_answers,)
        Who gave it.
    label : ndarray of shape (n_answers,)
        The label.
    """

    n_rows: int
    row: IntArray
    annotator: NDArray[Any]
    label: NDArray[Any]

    @classmethod
    def of(
        cls,
        answers: Iterable[tuple[int, str, str]],
        n_rows: int,
        classes: ArrayLike | None,
    ) -> ReviewedLabels:
        """Return the labels of answers: row, annotator, and label as the tool writes it.

        Parameters
        ----------
        answers : iterable of (int, str, str)
            Row, annotator and label of each answer.
        n_rows : int
            Number of all rows.
        classes : array-like or None
            The classes, such as ``audit.classes``; labels get their type. None: labels are text.
        """
        lines = list(answers)
        written = {} if classes is None else {str(each): each for each in as_classes(classes)}
        for row, _, text in lines:
            if row >= n_rows:
                raise ValueError(
                    f"A label is for row {row}, but there are {n_rows} rows (counted from 0): pass "
                    "the number of rows of the data that were exported."
                )
            if classes is not None and text not in written:
                raise ValueError(
                    f"Row {row} has the label {text!r}, which is not among the classes "
                    f"{list(written)}: correct it in the labelling tool, or omit classes=."
                )
        rows, annotators, texts = zip(*lines, strict=True) if lines else ((), (), ())
        labels = np.empty(len(lines), dtype=object)
        labels[:] = [written.get(text, text) for text in texts]
        return cls(
            n_rows, np.array(rows, dtype=np.intp), np.array(annotators, dtype=object), labels
        )

    @cached_property
    def trusted(self) -> NDArray[Any]:
        """Label of each row, for ``trusted=`` of `audit`; None without one, or if answers differ.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        labels = np.full(self.n_rows, None, dtype=object)
        labels[self.row] = self.label
        labels[self.disputed] = None
        return labels

    @cached_property
    def disputed(self) -> IntArray:
        """Rows whose annotators disagree, in the order of the data."""
        different: dict[int, set[Any]] = {}
        for row, label in zip(self.row.tolist(), self.label.tolist(), strict=True):
            different.setdefault(row, set()).add(label)
        return np.array(
            sorted(row for row, each in different.items() if len(each) > 1), dtype=np.intp
        )

    @property
    def votes(self) -> Votes:
        """All answers as votes of the annotators."""
        return Votes.from_table(self.row, self.annotator, self.label, n_rows=self.n_rows)

    def __repr__(self) -> str:
        n_reviewed = len(np.unique(self.row))
        n_annotators = len(set(self.annotator.tolist()))
        annotators = "annotator" if n_annotators == 1 else "annotators"
        return (
            f"<{len(self.row)} labels of {n_annotators} {annotators} on {n_reviewed} of "
            f"{self.n_rows} rows, {len(self.disputed)} disputed>"
        )


def as_classes(classes: ArrayLike) -> list[Any]:
    """Return classes as a list of Python values."""
    return list(as_array(classes, "classes").tolist())


def row_in(values: Mapping[str, Any], ids: Mapping[str, int] | None, place: str) -> int:
    """Return the row of an answer, by its number or by its id.

    Parameters
    ----------
    values : mapping
        Holds "row", and "id" if rows have ids.
    ids : mapping of str to int, or None
        Row of each id; None: by number.
    place : str
        Where this is, for errors.
    """
    key = "row" if ids is None else "id"
    if values.get(key) is None:
        raise ValueError(
            f"{place} has no {key!r}, which says which row it is about: import records that were "
            "exported by this module, or add it."
        )
    if ids is None:
        return as_count(values["row"], f"row of {place}")
    row = ids.get(str(values["id"]))
    if row is None:
        raise ValueError(f"{place} has the id {values['id']!r}, which is not in ids: correct it.")
    return row


def rows_by_id(ids: Sequence[Any] | None) -> dict[str, int] | None:
    """Return the row of each id; raise ValueError if two rows have the same."""
    if ids is None:
        return None
    rows: dict[str, int] = {}
    for row, name in enumerate(ids):
        if str(name) in rows:
            raise ValueError(
                f"ids has {str(name)!r} in rows {rows[str(name)]} and {row}: pass a different id "
                "for each row."
            )
        rows[str(name)] = row
    return rows


def write_json(records: Sequence[Mapping[str, Any]], path: str | PathLike[str]) -> None:
    """Write records as JSON; an existing file is replaced only after the new one is complete."""
    text = json.dumps(records, indent=1, allow_nan=False)
    write_atomically(as_path(path, "path"), (text + "\n").encode())


def read_json(source: Any, name: str) -> list[Any]:
    """Return a list of records: the given one, or that of a JSON file."""
    if not isinstance(source, str | PathLike):
        return list(source)
    path = as_path(source, name)
    try:
        records = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a JSON file: {error}.") from None
    if not isinstance(records, list):
        raise ValueError(f"{path} holds no list of records: export it as JSON from the tool.")
    return records
