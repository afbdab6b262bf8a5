"""Arrow tables, as Parquet, Feather and Arrow files hold them, as tables of columns."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from unflip.cli.files.tables import Table

# Hugging Face datasets describe the columns in the metadata of a file under this key.
_DESCRIPTION = b"huggingface"
# The number of a class that stands for a missing label in Hugging Face datasets.
_NO_CLASS = -1

#: The names of the classes that the numbers of a column stand for, by column.
ClassNames = Mapping[str, Sequence[str]]


def table_of(arrow: Any, name: str, class_names: ClassNames | None = None) -> Table:
    """Return the columns of an Arrow table.

    Numeric columns without missing values are arrays, others are lists. Numbers that stand for
    classes become the names of these.

    Parameters
    ----------
    arrow : pyarrow.Table
        The table.
    name : str
        Name of the file, for errors.
    class_names : mapping of str to sequence of str, optional
        Names of the classes in each column of class numbers; by default from the metadata.
    """
    for column, count in Counter(arrow.column_names).items():
        if count > 1:
            raise ValueError(
                f"{name} has {count} columns named {column!r}: give each its own name."
            )
    named = _names_in_metadata(arrow.schema) if class_names is None else class_names
    columns = {}
    for column in arrow.column_names:
        cells = _cells(arrow.column(column), column, name)
        if column in named:
            cells = _class_names(cells, named[column], column, name)
        columns[column] = cells
    return Table(name, columns)


def with_changes(
    arrow: Any, column: str, changes: Mapping[int, Any], class_names: ClassNames | None = None
) -> Any:
    """Return an Arrow table with new values in one column, in the types of `arrow`.

    Parameters
    ----------
    arrow : pyarrow.Table
        The table.
    column : str
        Name of the column.
    changes : mapping of int to value
        New values by row number.
    class_names : mapping of str to sequence of str, optional
        As for `table_of`.
    """
    import pyarrow as pa

    named = _names_in_metadata(arrow.schema) if class_names is None else class_names
    place = arrow.column_names.index(column)
    field = arrow.schema.field(place)
    if pa.types.is_dictionary(field.type):
        return arrow.set_column(place, field, _with_categories(arrow.column(place), changes))
    values = arrow.column(place).to_pylist()
    for row, value in changes.items():
        values[row] = list(named[column]).index(value) if column in named else value
    return arrow.set_column(place, field, pa.array(values, type=field.type))


def class_names_of(features: Any) -> dict[str, list[str]]:
    """Return the class names of each column, from the description of a Hugging Face dataset."""
    if not isinstance(features, dict):
        return {}
    return {
        column: list(map(str, feature["names"]))
        for column, feature in features.items()
        if isinstance(feature, dict)
        and feature.get("_type") == "ClassLabel"
        and isinstance(feature.get("names"), list)
    }


def _names_in_metadata(schema: Any) -> dict[str, list[str]]:
    try:
        description = json.loads((schema.metadata or {}).get(_DESCRIPTION, b"{}"))
        return class_names_of(description["info"]["features"])
    except (ValueError, KeyError, TypeError, RecursionError):  # metadata of another kind
        return {}


def _class_names(cells: Any, names: Sequence[str], column: str, name: str) -> list[str | None]:
    """Return the names of the classes in a column of their numbers."""
    texts: list[str | None] = []
    for row, cell in enumerate(cells if isinstance(cells, list) else cells.tolist()):
        if cell is None or cell == _NO_CLASS:
            texts.append(None)
        elif isinstance(cell, int) and 0 <= cell < len(names):
            texts.append(names[cell])
        else:
            raise ValueError(
                f"Column {column!r} of {name} has {cell!r} in row {row} (counted from 0), but the "
                f"dataset names {len(names)} classes: correct the class names or the number."
            )
    return texts


def _with_categories(cells: Any, changes: Mapping[int, Any]) -> Any:
    """Return a column of categories with new values; the categories stay the same."""
    import pyarrow as pa

    whole = pa.chunked_array([cells.unify_dictionaries().combine_chunks()]).chunk(0)
    categories = whole.dictionary.to_pylist()
    codes = whole.indices.to_pylist()
    for row, value in changes.items():
        codes[row] = categories.index(value)
    indices = pa.array(codes, type=whole.type.index_type)
    return pa.DictionaryArray.from_arrays(indices, whole.dictionary, ordered=whole.type.ordered)


def _cells(cells: Any, column: str, name: str) -> Any:
    from pyarrow import types

    kind = cells.type
    if cells.null_count == 0 and (types.is_integer(kind) or types.is_floating(kind)):
        return cells.to_numpy()
    try:
        return cells.to_pylist()
    except (ArithmeticError, ValueError):  # e.g. an unknown time zone, or a year after 9999
        raise ValueError(
            f"Column {column!r} of {name} holds values of type {kind} that cannot be read: write "
            "them as text or numbers, or drop the column."
        ) from None
