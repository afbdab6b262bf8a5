"""The predictions of a model for the rows of a file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import FloatArray
from unflip.cli.files import feature_columns
from unflip.cli.files.data_notes import unknown_values
from unflip.cli.files.feature_columns import Features
from unflip.cli.files.tables import Table
from unflip.model.table_model import TableModel


def predict_table(model: TableModel, table: Table) -> tuple[NDArray[Any], FloatArray, list[str]]:
    """Return the class predicted for each row of a file, the probability of each class, and notes.

    The notes are on values that the model does not know.
    """
    frame = feature_columns.values(Features.of(model.features.columns_), table)
    try:
        notes = unknown_values(model.features, frame)
        return model.predict(frame), model.predict_proba(frame), notes
    except ValueError as error:
        raise ValueError(f"{table.name} cannot be predicted: {error}") from None


def prediction_rows(
    predicted: NDArray[Any], probabilities: FloatArray, ids: list[str] | None
) -> list[list[str | int | float]]:
    """Return the table of predictions: row, id if any, class, and probabilities."""
    best = probabilities.max(axis=1)
    rows: list[list[str | int | float]] = []
    for row, label in enumerate(predicted.tolist()):
        row_id = [] if ids is None else [ids[row]]
        each = np.round(probabilities[row], 4).tolist()
        rows.append([row, *row_id, label, round(float(best[row]), 4), *each])
    return rows
