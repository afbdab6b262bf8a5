"""Files of features, with one row for each row of the data: --embedding with the name of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import FloatArray
from unflip.cli.files.feature_columns import embedding_block
from unflip.cli.files.tables import Table, is_data_file, read_table


def is_feature_file(embedding: str, table: Table) -> bool:
    """Whether --embedding names a file, not the prefix of columns of the data."""
    if not is_data_file(Path(embedding)):
        return False
    return not any(name.startswith(embedding) for name in [*table.columns, *table.blocks])


def with_feature_file(table: Table, path: Path) -> Table:
    """Return the data with the features of a file as a block, named like the file."""
    block = features_of_rows(table, path)
    return replace(table, blocks={**table.blocks, path.name: block})


def features_of_rows(table: Table, path: Path) -> NDArray[Any]:
    """Return the numbers of a file of features, of shape (n_rows, p).

    Parameters
    ----------
    table : Table
        The data.
    path : Path
        The file: one array of numbers, or a table in which all columns are numbers or lists of
        numbers.
    """
    block = only_block(read_table(path))
    if len(block) != table.n_rows:
        raise ValueError(
            f"{path} has {len(block)} rows, but {table.name} has {table.n_rows}: give the features "
            "of these rows, in the same order."
        )
    return block


def only_block(table: Table) -> NDArray[Any]:
    """Return the numbers of a table that holds nothing but features."""
    if len(table.blocks) > 1 or (table.blocks and table.columns):
        names = ", ".join(map(repr, [*table.columns, *table.blocks]))
        raise ValueError(
            f"{table.name} has several arrays ({names}): save that of the features alone."
        )
    if table.blocks:
        return next(iter(table.blocks.values()))
    for name, cells in table.columns.items():
        _check_features(table, name, cells)
    return np.hstack([embedding_block(table, name) for name in table.columns])


def _check_features(table: Table, name: str, cells: Sequence[Any]) -> None:
    """Raise ValueError if a column is not one of features."""
    if isinstance(cells[0], list):
        return
    numbers = table.numbers(name)
    if numbers is None and table.non_number(name) is None:
        raise ValueError(
            f"Column {name!r} of {table.name} is not numeric: save a file with the features alone, "
            "one row for each row of the data."
        )
    if numbers is not None and _are_row_numbers(numbers):
        raise ValueError(
            f"Column {name!r} of {table.name} only numbers the rows: remove it, because all "
            "columns are features."
        )


def _are_row_numbers(numbers: FloatArray) -> bool:
    return len(numbers) > 2 and np.array_equal(numbers, numbers[0] + np.arange(len(numbers)))
