"""CSV files: a parser that keeps cells as written, used to read and to rewrite them."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

from unflip.cli.files.read_options import ReadOptions
from unflip.cli.files.tables import Table, ending
from unflip.cli.files.text_encoding import decoded

_DELIMITERS = ",;\t|"
_LINE_END = "\r\n"  # cells with one of its characters are quoted
_TAB_NAMES = ("tab", "\\t")  # ways to type a tab
_FIRST_ROWS = 10  # rows that are compared with the header to detect the delimiter; a choice
_QUOTED = r'"[^"]*(?:""[^"]*)*"'
_ANY_LINE_END = r"\r\n?|\n"
# A whole quoted cell is one token, so that separators within it are not counted.
_TOKEN = re.compile(
    rf"(?<![^{_DELIMITERS}\r\n]){_QUOTED}(?![^{_DELIMITERS}\r\n])|[{_DELIMITERS}]|{_ANY_LINE_END}"
)


OPTIONS = ("--encoding", "--sep")


def read(content: bytes, name: str, options: ReadOptions) -> Table:
    """Return the columns of a CSV file, with cells as strings.

    In a file with one column, a blank line is an empty cell. "1,5" is a number if the separator is
    not a comma.

    Parameters
    ----------
    content : bytes
        Content of the file.
    name : str
        Name of the file, for errors.
    options : ReadOptions
        Its encoding and separator.
    """
    text = decoded(content, name, options.encoding).text
    delimiter = _delimiter(text, name, options)
    records = _records(text, delimiter, name)
    header = _header(records, name)
    rows = list(_data(records, header, name))
    columns = zip(*rows, strict=True) if rows else ((),) * len(header)
    named = {column: list(cells) for column, cells in zip(header, columns, strict=True)}
    return Table(name, named, decimal_comma=delimiter != ",")


def rewrite(
    content: bytes, name: str, options: ReadOptions, column: str, changes: Mapping[int, Any]
) -> bytes:
    """Return the file with new cells in one column; all other bytes stay the same.

    Parameters
    ----------
    content, name, options
        As for `read`.
    column : str
        Name of the column.
    changes : mapping of int to str
        New cell of each row that changes.
    """
    source = decoded(content, name, options.encoding)
    delimiter = _delimiter(source.text, name, options)
    records = _records(source.text, delimiter, name)
    header, end = next(records)
    place = _values(header).index(column)
    written = [delimiter.join(header), end]
    for row, (cells, end) in enumerate(records):
        if row in changes:
            cells[place] = record([changes[row]], delimiter, quoted=cells[place].startswith('"'))
        written += [delimiter.join(cells), end]
    return source.encoded("".join(written))


def record(cells: Sequence[str], delimiter: str = ",", *, quoted: bool = False) -> str:
    """Return cells as a line of a CSV file, without the line end.

    Parameters
    ----------
    cells : sequence of str
        The cells.
    delimiter : str
        Delimiter between cells.
    quoted : bool
        Whether to quote all cells; otherwise only those that need quotes.
    """
    buffer = io.StringIO()
    style: Literal[0, 1] = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    csv.writer(buffer, delimiter=delimiter, quoting=style, lineterminator=_LINE_END).writerow(cells)
    return buffer.getvalue().removesuffix(_LINE_END)


def _records(text: str, delimiter: str, name: str) -> Iterator[tuple[list[str], str]]:
    """Yield the cells of each record as written, with quotes, and its line end.

    A blank line is one empty cell. Cells joined by the delimiter, and the line end, are the record
    again. The values of the cells are those of Python's csv module.
    """
    separator = re.escape(delimiter)
    # Alternatives: a quoted cell; all cells up to the next quote; one cell with quotes within it; a
    # misplaced quote.
    piece = re.compile(
        rf'({_QUOTED}|[^"\r\n]*|(?!")[^{separator}\r\n]*)({separator}|{_ANY_LINE_END}|\Z)|"'
    )
    cells: list[str] = []
    for match in piece.finditer(text):
        if match.start() == len(text) and not cells:
            return
        if match[1] is None:
            line = len(re.findall(_ANY_LINE_END, text[: match.start()])) + 1
            raise ValueError(
                f"{name} cannot be read as CSV at line {line} (a quoted cell that begins there has "
                "no closing quote before a separator): check the quotes there, and double the "
                "quotes within a cell."
            )
        cells += [match[1]] if match[1].startswith('"') else match[1].split(delimiter)
        if match[2] != delimiter:
            yield cells, match[2]
            cells = []


def _values(cells: Sequence[str]) -> list[str]:
    """Return the values of cells as written, without quotes."""
    return [cell[1:-1].replace('""', '"') if cell[:1] == '"' else cell for cell in cells]


def _header(records: Iterator[tuple[list[str], str]], name: str) -> list[str]:
    cells, _ = next(records, ([""], ""))
    if cells == [""]:
        raise ValueError(f"{name} does not start with a line of column names: add one.")
    header = _values(cells)
    for column, count in Counter(header).items():
        if count > 1:
            raise ValueError(f"{name} has {count} columns named {column!r}: rename them.")
    return header


def _data(
    records: Iterator[tuple[list[str], str]], header: list[str], name: str
) -> Iterator[list[str]]:
    """Yield the values of each row; raise ValueError at a blank line between rows."""
    row = 0
    n_blank = 0
    for cells, _ in records:
        if cells == [""]:
            n_blank += 1
            continue
        if n_blank and len(header) > 1:
            raise ValueError(
                f"{name} has a blank line before row {row} (counted from 0 below the header): "
                "remove it, or add the separators of an empty row."
            )
        yield from [[""]] * n_blank
        row += n_blank
        n_blank = 0
        if len(cells) != len(header):
            raise ValueError(
                f"Row {row} of {name} (counted from 0 below the header) has {len(cells)} cells but "
                f"the header has {len(header)}: check the quotes and separators there."
            )
        yield _values(cells)
        row += 1


def _delimiter(text: str, name: str, options: ReadOptions) -> str:
    """Return the delimiter: that of the options, a tab in .tsv files, otherwise detected.

    It is the one that the header has as often as most of the first rows, and of several such the
    most frequent one in the header. Quoted cells are not searched.
    """
    if options.separator is not None:
        return _named_delimiter(options.separator)
    if ending(Path(name)) == ".tsv":
        return "\t"
    tokens = (match[0] for match in _TOKEN.finditer(text))
    header, *rows = (
        Counter(takewhile(lambda token: token[0] not in _LINE_END, tokens))
        for _ in range(1 + _FIRST_ROWS)
    )

    def likelihood(mark: str) -> tuple[int, int]:
        n_alike = sum(0 < header[mark] == row[mark] for row in rows)
        return n_alike, header[mark]

    return max(_DELIMITERS, key=likelihood)


def _named_delimiter(separator: str) -> str:
    """Return the delimiter that --sep names; raise ValueError unless it is one character."""
    delimiter = "\t" if separator in _TAB_NAMES else separator
    if len(delimiter) != 1 or delimiter in f'"{_LINE_END}':
        raise ValueError(
            f"--sep must be one character, such as ';', '|' or tab, not {separator!r}."
        )
    return delimiter
