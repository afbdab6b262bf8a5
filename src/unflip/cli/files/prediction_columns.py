"""Predictions of a model in a file: predicted labels, or probabilities of the classes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import FloatArray
from unflip._utils.validation import improper_row
from unflip.cli.files.label_column import (
    LabelColumn,
    matched_labels,
    named_labels,
    written_labels,
)
from unflip.cli.files.number_cells import bad_cell, check_finite, column_numbers
from unflip.cli.files.tables import Table

_FILL_IN = "fill in the probability of each class in each row, or remove the row"
_CHANCE = "fill in the probability with which this checked row was chosen, above 0 and at most 1"


def check_labelled(table: Table, labels: LabelColumn) -> None:
    """Raise ValueError if a row has no label."""
    _check_present(table, labels.name, labels.texts.tolist(), "label")


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


def probabilities(
    table: Table, prefix: str, labels: LabelColumn, reserved: Collection[str]
) -> FloatArray:
    """Return the probability of each class in each row, (n, k), in sorted order of the classes.

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
    columns = _columns_by_class(table, prefix, labels, reserved)
    values = np.column_stack([_probability(table, columns[label]) for label in labels.counts])
    row = improper_row(values)
    if row is not None:
        shown = ", ".join(f"{value:g}" for value in values[row, :4])
        rest = ", ..." if values.shape[1] > 4 else ""
        raise ValueError(
            f"The columns of {table.name} with the prefix {prefix!r} have {shown}{rest} in row "
            f"{row} (counted from 0): probabilities must be non-negative and sum to 1."
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
    table.column(name)
    values = column_numbers(table, name, _CHANCE)
    is_checked = np.array([label is not None for label in trusted])
    is_bad = is_checked & ~((values > 0) & (values <= 1))
    if is_bad.any():
        row = int(np.flatnonzero(is_bad)[0])
        raise ValueError(bad_cell(table, name, row, "not a probability", _CHANCE))
    return values


def _check_present(table: Table, name: str, texts: list[str], content: str) -> None:
    if "" in texts:
        raise ValueError(
            f"Column {name!r} of {table.name} has no {content} in row {texts.index('')} (counted "
            "from 0): fill it in, or remove the row."
        )


def _columns_by_class(
    table: Table, prefix: str, labels: LabelColumn, reserved: Collection[str]
) -> Mapping[str, str]:
    """Return the column of each class."""
    counts = labels.counts
    columns = [name for name in table.columns if name.startswith(prefix) and name not in reserved]
    if not columns:
        raise ValueError(
            f"{table.name} has no column with the prefix {prefix!r}: check --probabilities; "
            f"{table.column_names}."
        )
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
    return by_class


def _class_text(column: str, prefix: str) -> str:
    text = column.removeprefix(prefix).strip()
    return text.removesuffix(")").strip() if prefix.endswith("(") else text


def _probability(table: Table, column: str) -> FloatArray:
    values = column_numbers(table, column, _FILL_IN)
    check_finite(table, column, values, _FILL_IN)
    return values
