"""CSV: cells as the strings they are, and records that are kept byte for byte where nothing changes."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from unflip.files.encoding import decoded

_DELIMITERS = ",;\t"
_LARGEST_CELL = 2**31 - 1
_LINE_END = "\r\n"  # cells that hold a character of it are quoted
_MARK = "\ufeff"  # the byte order mark that spreadsheets put first


def read(content: bytes, name: str) -> dict[str, Any]:
    """Return the columns of a CSV file, cells as strings; a blank line is an empty cell where there is one column.

    Parameters
    ----------
    content : bytes
        The file.
    name : str
        Its name, for errors.
    """
    text = decoded(content, name).removeprefix(_MARK)
    records = _records(text, name)
    header = _header(records, name)
    rows = list(_data(records, header, name))
    columns = zip(*rows, strict=True) if rows else ((),) * len(header)
    return {column: list(cells) for column, cells in zip(header, columns, strict=True)}


def decimal_comma(content: bytes, name: str) -> bool:
    """Whether a comma within a cell can be a decimal comma: cells are separated otherwise."""
    return _delimiter(decoded(content, name).removeprefix(_MARK), name) != ","


def rewrite(content: bytes, name: str, column: str, changes: Mapping[int, Any]) -> bytes:
    """Return the file with other cells in one column; every other record stays byte for byte as it is.

    Parameters
    ----------
    content, name
        As for `read`.
    column : str
        Name of the column.
    changes : mapping of int to str
        New cell of each row that changes.
    """
    text = decoded(content, name)
    body = text.removeprefix(_MARK)
    delimiter, records = _delimiter(body, name), _records(body, name)
    first, header = next(records)
    written, place = [text[: len(text) - len(body)], first], header.index(column)
    for row, (raw, cells) in enumerate(records):
        if row in changes:
            written.append(_replaced(raw, cells or [""], place, changes[row], delimiter))
        else:
            written.append(raw)
    return "".join(written).encode()


def record(cells: Sequence[str], delimiter: str = ",", *, quoted: bool = False) -> str:
    """Return cells as a line of a CSV file, without its end; quoted where they hold line ends of any kind.

    Parameters
    ----------
    cells : sequence of str
        The cells.
    delimiter : str
        What separates them.
    quoted : bool
        Whether to quote them in any case.
    """
    buffer = io.StringIO()
    style: Literal[0, 1] = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    csv.writer(buffer, delimiter=delimiter, quoting=style, lineterminator=_LINE_END).writerow(cells)
    return buffer.getvalue().removesuffix(_LINE_END)


def _records(text: str, name: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each record as it stands in the file, with its cells; none for blank lines."""
    csv.field_size_limit(_LARGEST_CELL)
    taken: list[str] = []

    def lines() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            taken.append(line)
            yield line

    reader = csv.reader(lines(), delimiter=_delimiter(text, name), strict=True)
    try:
        for cells in reader:
            yield "".join(taken), cells
            taken.clear()
    except csv.Error as error:
        raise ValueError(
            f"{name} cannot be read as CSV at line {reader.line_num} ({error}): check the quotes there."
        ) from None


def _header(records: Iterator[tuple[str, list[str]]], name: str) -> list[str]:
    _, header = next(records, ("", []))
    if not header:
        raise ValueError(f"{name} does not begin with a line of column names: add one.")
    for column, count in Counter(header).items():
        if count > 1:
            raise ValueError(f"{name} has {count} columns named {column!r}: give each its own name.")
    return header


def _data(records: Iterator[tuple[str, list[str]]], header: list[str], name: str) -> Iterator[list[str]]:
    """Yield the cells of each row; blank lines at the end are none, and others would shift the numbers of the rows."""
    row, n_blank = 0, 0
    for _, cells in records:
        if not cells:
            n_blank += 1
            continue
        if n_blank and len(header) > 1:
            raise ValueError(
                f"{name} has a blank line before row {row} (counted from 0 below the header): remove it, or write the "
                "separators of an empty row."
            )
        yield from [[""]] * n_blank
        row += n_blank
        n_blank = 0
        if len(cells) != len(header):
            raise ValueError(
                f"Row {row} of {name} (counted from 0 below the header) has {len(cells)} cells but there are "
                f"{len(header)} columns: check the quotes and separators there."
            )
        yield cells
        row += 1


def _delimiter(text: str, name: str) -> str:
    """Return what separates the cells: the commonest of comma, semicolon and tab in the first line."""
    if ".tsv" in name.lower():
        return "\t"
    first = text[: text.find("\n")] if "\n" in text else text
    return max(_DELIMITERS, key=first.count)


def _replaced(raw: str, cells: list[str], place: int, value: str, delimiter: str) -> str:
    """Return a record with another cell, the others as they stand."""
    body = raw.rstrip("\r\n")
    written = _split(body, delimiter)
    if len(written) != len(cells):  # stray quotes within a cell: only the cells themselves can be kept
        written = [record([cell], delimiter) for cell in cells]
    written[place] = record([value], delimiter, quoted=written[place].startswith('"'))
    return delimiter.join(written) + raw[len(body) :]


def _split(record: str, delimiter: str) -> list[str]:
    """Return the cells as they stand, quotes included: a separator within quotes has an odd number of them before."""
    cells: list[str] = []
    for piece in record.split(delimiter):
        if cells and cells[-1].count('"') % 2:
            cells[-1] += delimiter + piece
        else:
            cells.append(piece)
    return cells
