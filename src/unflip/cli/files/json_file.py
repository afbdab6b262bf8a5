"""JSON files with one value: a list of rows or an object of columns, also as pandas writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from unflip.cli.files import json_lines
from unflip.cli.files.json_edits import edited, elements, member_edit, members, value_edit
from unflip.cli.files.read_options import ReadOptions
from unflip.cli.files.tables import Table
from unflip.cli.files.text_encoding import decoded

OPTIONS = ("--encoding",)

# How rows and columns are arranged:
#   records  a list of objects, one for each row
#   table    such a list under "data", beside a "schema"
#   split    lists of the cells of each row under "data", and the names under "columns"
#   lists    an object with a list for each column
#   objects  an object with an object for each column, in which the names are those of the rows
#   rows     an object with an object for each row; names of rows are numbers, those of columns not
# All but "lists" are written by pandas; "objects" is its default.
_Layout = Literal["records", "table", "split", "lists", "objects", "rows"]
_SPLIT_KEYS = {"columns", "data", "index"}


def read(content: bytes, name: str, options: ReadOptions) -> Table:
    """Return the columns of a JSON file; missing values are None.

    Parameters
    ----------
    content : bytes
        Content of the file.
    name : str
        Name of the file, for errors.
    options : ReadOptions
        Its encoding.
    """
    text = decoded(content, name, options.encoding).text
    data = _value(text, name)
    if data is None:
        return json_lines.read(content, name, options)
    layout = _layout(data, name)
    if layout == "objects":
        _check_row_names(data, name)
    columns = _columns(data, layout)
    lengths = {column: len(cells) for column, cells in columns.items()}
    if len(set(lengths.values())) > 1:
        shortest = min(lengths, key=lengths.__getitem__)
        longest = max(lengths, key=lengths.__getitem__)
        raise ValueError(
            f"Column {shortest!r} of {name} has {lengths[shortest]} values, but column {longest!r} "
            f"has {lengths[longest]}: give all columns the same rows."
        )
    return Table(name, columns)


def rewrite(
    content: bytes, name: str, options: ReadOptions, column: str, changes: Mapping[int, Any]
) -> bytes:
    """Return the file with new values in one column; all other bytes stay the same.

    Parameters
    ----------
    content, name, options
        As for `read`.
    column : str
        Name of the column.
    changes : mapping of int to value
        New value of each row that changes.
    """
    source = decoded(content, name, options.encoding)
    data = _value(source.text, name)
    if data is None:
        return json_lines.rewrite(content, name, options, column, changes)
    layout = _layout(data, name)
    if layout in ("records", "table", "rows"):
        edits = [
            member_edit(source.text, start, column, changes[row], source.codec)
            for row, start in enumerate(_starts_of_rows(source.text, layout))
            if row in changes
        ]
    else:
        cells = _cells(source.text, layout, column, data)
        edits = [
            value_edit(span, changes[row], source.codec)
            for row, span in enumerate(cells)
            if row in changes
        ]
    return source.encoded(edited(source.text, edits))


def _value(text: str, name: str) -> Any:
    """Return the value of a JSON text; None if it has several, one on each line."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            return None
        raise ValueError(
            f"{name} is not JSON ({error.msg} in line {error.lineno}): check it there."
        ) from None
    except (ValueError, RecursionError):  # too many digits or nested lists for Python
        raise ValueError(
            f"{name} has a number with too many digits, or lists nested too deeply: shorten them."
        ) from None


def _layout(data: Any, name: str) -> _Layout:
    if _is_list_of(data, dict):
        return "records"
    if isinstance(data, dict) and data:
        if "schema" in data and _is_list_of(data.get("data"), dict):
            return "table"
        if _is_split(data):
            return "split"
        if all(isinstance(cells, list) for cells in data.values()):
            return "lists"
        if all(isinstance(cells, dict) for cells in data.values()):
            return "rows" if _are_rows(data) else "objects"
    raise ValueError(
        f"{name} holds no table: write a list of objects, one for each row, or an object with a "
        "list for each column."
    )


def _check_row_names(data: Mapping[str, Mapping[str, Any]], name: str) -> None:
    """Raise ValueError if the objects of two columns name different rows."""
    first = next(iter(data))
    for column, cells in data.items():
        if list(cells) != list(data[first]):
            raise ValueError(
                f"Columns {first!r} and {column!r} of {name} have different row names: give all "
                "columns the same rows in the same order, or write a list of objects, one for each "
                "row."
            )


def _are_rows(data: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether objects are rows: their names are numbers, and those of their members are not."""
    names = {name for members_of_one in data.values() for name in members_of_one}
    return all(map(str.isdecimal, data)) and not all(map(str.isdecimal, names))


def _is_list_of(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)


def _is_split(data: Mapping[str, Any]) -> bool:
    """Whether the names of columns are apart from the rows, and each row has as many cells."""
    names = data.get("columns")
    rows = data.get("data")
    if not (_is_list_of(names, str) and _is_list_of(rows, list) and set(data) <= _SPLIT_KEYS):
        return False
    return names is not None and rows is not None and all(len(row) == len(names) for row in rows)


def _columns(data: Any, layout: _Layout) -> dict[str, list[Any]]:
    if layout == "records":
        return json_lines.columns_of_records(data)
    if layout == "table":
        return json_lines.columns_of_records(data["data"])
    if layout == "split":
        rows = data["data"]
        return {name: [row[place] for row in rows] for place, name in enumerate(data["columns"])}
    if layout == "lists":
        return dict(data)
    if layout == "rows":
        return json_lines.columns_of_records(list(data.values()))
    return {name: list(cells.values()) for name, cells in data.items()}


def _starts_of_rows(text: str, layout: _Layout) -> list[int]:
    """Return the place of each row that is an object."""
    if layout == "rows":
        return list(_last_members(text, 0).values())
    start = 0 if layout == "records" else _last_members(text, 0)["data"]
    return [first for first, _ in elements(text, start)]


def _last_members(text: str, start: int) -> dict[str, int]:
    """Return the place of each member of an object; of members with the same name, the last."""
    return {name: first for name, first, _ in members(text, start)}


def _cells(text: str, layout: _Layout, column: str, data: Any) -> Iterator[tuple[int, int]]:
    """Yield where the cells of a column start and end."""
    if layout == "split":
        place = data["columns"].index(column)
        for start, _ in elements(text, _last_members(text, 0)["data"]):
            yield list(elements(text, start))[place]
        return
    start = _last_members(text, 0)[column]
    if layout == "lists":
        yield from elements(text, start)
        return
    # A name that occurs twice counts once, with its last value.
    yield from {name: (first, stop) for name, first, stop in members(text, start)}.values()
