"""JSON Lines files: one object for each row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from unflip.cli.files.json_edits import edited, member_edit
from unflip.cli.files.read_options import ReadOptions
from unflip.cli.files.tables import Table
from unflip.cli.files.text_encoding import decoded

OPTIONS = ("--encoding",)


def read(content: bytes, name: str, options: ReadOptions) -> Table:
    """Return the columns of a JSON Lines file; missing values are None.

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
    rows = [row for _, row in _rows(text, name) if row is not None]
    return Table(name, columns_of_records(rows))


def columns_of_records(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the columns of objects, one for each row; missing values are None."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    return {column: [row.get(column) for row in rows] for column in columns}


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
    lines = []
    number = 0
    for line, row in _rows(source.text, name):
        if row is not None and number in changes:
            line = edited(line, [member_edit(line, 0, column, changes[number], source.codec)])
        lines.append(line)
        number += row is not None
    return source.encoded("".join(lines))


def _rows(text: str, name: str) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield each line with its object, or None for a blank line."""
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        with_end = line + "\n" * (number < len(lines))
        yield with_end, _object(line, number, name) if line.strip() else None


def _object(line: str, number: int, name: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"Line {number} of {name} is not JSON ({error.msg}): put one object on each line."
        ) from None
    except (ValueError, RecursionError):  # too many digits or nested lists for Python
        raise ValueError(
            f"Line {number} of {name} has a number with too many digits, or lists nested too "
            "deeply: shorten them."
        ) from None
    if not isinstance(row, dict):
        raise ValueError(
            f"Line {number} of {name} is not a JSON object: put one object, such as {{...}}, on "
            "each line."
        )
    return row
