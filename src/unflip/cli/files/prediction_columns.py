"""Predictions of a model in a file: predicted labels, or probabilities of the classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import FloatArray
from unflip._utils.validation import improper_row
from unflip.cli.files.label_column import (
    LabelColumn,
    check_unique,
    label_column,
    matched_labels,
    named_labels,
    trusted_labels,
    written_labels,
)
from unflip.cli.files.number_cells import bad_cell, check_finite, column_numbers
from unflip.cli.files.read_options import NO_OPTIONS, ReadOptions
from unflip.cli.files.request import no_label_column
from unflip.cli.files.tables import Table, read_table

_FILL_IN = "fill in the probability of each class in each row, or remove the row"
_CHANCE = "fill in the probability with which this checked row was chosen, above 0 and at most 1"
_N_SHOWN = 4  # probabilities of a row that an error shows


@dataclass(frozen=True, kw_only=True)
class PredictionRequest:
    """The options of a command on a file of predictions.

    Attributes
    ----------
    path : Path
        The file.
    label : str or None
        Column of noisy labels.
    prediction, probabilities : str or None
        Column of predicted labels, or prefix of the columns of probabilities.
    trusted, inclusion, id_column : str or None
        Columns of trusted labels, of the probabilities with which rows were chosen for a check, and
        of row ids.
    read_options : ReadOptions
        How to read the file.
    """

    path: Path
    label: str | None = None
    prediction: str | None = None
    probabilities: str | None = None
    trusted: str | None = None
    inclusion: str | None = None
    id_column: str | None = None
    read_options: ReadOptions = NO_OPTIONS

    @property
    def roles(self) -> dict[str, str]:
        """The column that each option names, without options that were not passed."""
        columns = {
            "--label": self.label,
            "--prediction": self.prediction,
            "--trusted": self.trusted,
            "--inclusion": self.inclusion,
            "--id": self.id_column,
        }
        return {option: column for option, column in columns.items() if column is not None}


@dataclass(frozen=True, eq=False, kw_only=True)
class PredictionFile:
    """A file of predictions that was read.

    Attributes
    ----------
    table : Table
        The file.
    labels : LabelColumn
        The noisy labels.
    columns : tuple of str
        The column of predictions, or those of the probabilities in sorted order of the classes.
    scores : ndarray of shape (n,) or (n, k)
        Predicted labels, or probabilities.
    trusted : ndarray of shape (n,) or None
        Trusted labels, None for unchecked rows.
    inclusion : ndarray of shape (n,) or None
        Probability with which each row was chosen for a check.
    id_column : str or None
        Column of row ids.
    """

    table: Table
    labels: LabelColumn
    columns: tuple[str, ...]
    scores: NDArray[Any]
    trusted: NDArray[Any] | None
    inclusion: FloatArray | None
    id_column: str | None

    @property
    def has_probabilities(self) -> bool:
        """Whether the scores are probabilities, not predicted labels."""
        return self.scores.ndim == 2

    @property
    def ids(self) -> list[str] | None:
        """Id of each row; None if there is no column of ids."""
        return None if self.id_column is None else self.table.texts(self.id_column)


def read_predictions(request: PredictionRequest) -> PredictionFile:
    """Read a file of predictions; raise ValueError if it does not hold what the options name."""
    _check_request(request)
    table = read_table(request.path, request.read_options)
    if request.label is None:
        raise ValueError(no_label_column(table))
    for column in request.roles.values():
        table.column(column)
    labels = label_column(table, request.label)
    _check_present(table, labels.name, labels.texts.tolist(), "label")
    if request.id_column is not None:
        check_unique(table, request.id_column)
    columns, scores = _scores(table, request, labels)
    trusted = None if request.trusted is None else trusted_labels(table, request.trusted, labels)
    return PredictionFile(
        table=table,
        labels=labels,
        columns=columns,
        scores=scores,
        trusted=trusted,
        inclusion=None
        if request.inclusion is None or trusted is None
        else inclusion_column(table, request.inclusion, trusted),
        id_column=request.id_column,
    )


def predicted_labels(table: Table, name: str, labels: LabelColumn) -> NDArray[Any]:
    """Return the predicted label of each row.

    Parameters
    ----------
    table : Table
        The file.
    name : str
        Column of predictions.
    labels : LabelColumn
        The observed labels; predictions must be among them.
    """
    remedy = "correct it, or add rows that are labelled with this class"
    predicted = matched_labels(table, name, labels, remedy)
    _check_present(table, name, predicted, "prediction")
    return np.array(predicted)


def probability_columns(
    table: Table, prefix: str, labels: LabelColumn, reserved: Collection[str] = ()
) -> Mapping[str, str]:
    """Return the column of probabilities of each class, in sorted order of the classes.

    Parameters
    ----------
    table : Table
        The file.
    prefix : str
        Prefix of the columns. The class follows it, without ")" at the end if the prefix ends with
        "(".
    labels : LabelColumn
        The observed labels, which are the classes.
    reserved : collection of str
        Columns that are not probabilities, whatever their name.
    """
    columns = [name for name in table.columns if name.startswith(prefix) and name not in reserved]
    if not columns:
        raise ValueError(
            f"{table.name} has no column with the prefix {prefix!r}: check --probabilities; "
            f"{table.column_names}."
        )
    counts = labels.counts
    texts = [_class_text(name, prefix) for name in columns]
    by_class: dict[str, str] = {}
    for column, label in zip(columns, written_labels(texts, counts), strict=True):
        if label not in counts:
            raise ValueError(
                f"Column {column!r} of {table.name} has the prefix {prefix!r}, but {label!r} is "
                f"not a label of {named_labels(labels)}: pass another prefix, or remove the column."
            )
        if label in by_class:
            raise ValueError(
                f"Columns {by_class[label]!r} and {column!r} of {table.name} are both for the "
                f"label {label!r}: remove one of them."
            )
        by_class[label] = column
    for label in counts:
        if label not in by_class:
            raise ValueError(
                f"{table.name} has no column with the prefix {prefix!r} for the label {label!r} of "
                f"{labels.described}: add it, or use --prediction."
            )
    return {label: by_class[label] for label in counts}


def probabilities(table: Table, columns: Collection[str]) -> FloatArray:
    """Return the probability of each class in each row, (n, k).

    Parameters
    ----------
    table : Table
        The file.
    columns : collection of str
        The column of each class.
    """
    values = np.column_stack([_probability(table, column) for column in columns])
    row = improper_row(values)
    if row is not None:
        shown = ", ".join(f"{value:g}" for value in values[row, :_N_SHOWN])
        rest = ", ..." if values.shape[1] > _N_SHOWN else ""
        names = ", ".join(map(repr, list(columns)[:_N_SHOWN]))
        raise ValueError(
            f"Columns {names}{rest} of {table.name} have {shown}{rest} in row {row} (counted from "
            "0): probabilities must be non-negative and sum to 1, so correct them."
        )
    return values


def inclusion_column(table: Table, name: str, trusted: NDArray[Any]) -> FloatArray:
    """Return the probability with which each row was chosen for a check.

    Parameters
    ----------
    table : Table
        The file.
    name : str
        Column of these probabilities; cells of unchecked rows may be empty.
    trusted : ndarray of shape (n,)
        Trusted labels, None for unchecked rows.
    """
    values = column_numbers(table, name, _CHANCE)
    is_checked = np.array([label is not None for label in trusted])
    is_bad = is_checked & ~((values > 0) & (values <= 1))
    if is_bad.any():
        row = int(np.flatnonzero(is_bad)[0])
        raise ValueError(bad_cell(table, name, row, "not a probability", _CHANCE))
    return values


def _check_request(request: PredictionRequest) -> None:
    """Raise ValueError if options are missing, or exclude each other."""
    if request.prediction is not None and request.probabilities is not None:
        raise ValueError("--prediction and --probabilities exclude each other: pass one of them.")
    if request.prediction is None and request.probabilities is None:
        raise ValueError(
            f"Name the predictions of {request.path}: pass their column with --prediction, or the "
            "prefix of the columns of probabilities with --probabilities."
        )
    if request.inclusion is not None and request.trusted is None:
        raise ValueError(
            f"--inclusion {request.inclusion} needs --trusted: name the column of true labels of "
            "the checked rows."
        )
    for column, count in Counter(request.roles.values()).items():
        if count > 1:
            first, second, *_ = (key for key, name in request.roles.items() if name == column)
            raise ValueError(
                f"{first} and {second} both name the column {column!r}: name another for one of "
                "them."
            )


def _scores(
    table: Table, request: PredictionRequest, labels: LabelColumn
) -> tuple[tuple[str, ...], NDArray[Any]]:
    """Return the columns of the predictions, and predicted labels or probabilities."""
    if request.prediction is not None:
        return (request.prediction,), predicted_labels(table, request.prediction, labels)
    reserved = request.roles.values()
    by_class = probability_columns(table, str(request.probabilities), labels, reserved)
    columns = tuple(by_class.values())
    return columns, probabilities(table, columns)


def _check_present(table: Table, name: str, texts: list[str], content: str) -> None:
    if "" in texts:
        raise ValueError(
            f"Column {name!r} of {table.name} has no {content} in row {texts.index('')} (counted "
            "from 0): fill it in, or remove the row."
        )


def _class_text(column: str, prefix: str) -> str:
    text = column.removeprefix(prefix).strip()
    return text.removesuffix(")").strip() if prefix.endswith("(") else text


def _probability(table: Table, column: str) -> FloatArray:
    values = column_numbers(table, column, _FILL_IN)
    check_finite(table, column, values, _FILL_IN)
    return values
