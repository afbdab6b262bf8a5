"""Excel workbooks (.xlsx, .xlsm), read with openpyxl and rewritten cell by cell.

Formulas are not computed: their cells have the values that the spreadsheet stored.
"""

from __future__ import annotations

import io
import posixpath
import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any
from xml.sax.saxutils import escape

from unflip.cli.files.compression import check_expansion, with_member
from unflip.cli.files.read_options import ReadOptions
from unflip.cli.files.tables import Table, as_text

OPTIONS = ("--sheet",)
_MOST_ROWS = 2**20  # rows that Excel allows; a damaged file can claim more
_NOT_AVAILABLE = "#N/A"  # what a spreadsheet shows for a missing value
_WORKBOOK = "xl/workbook.xml"
_PARTS = "xl/_rels/workbook.xml.rels"

_ROW = re.compile(rb'<row\b[^>]*?\br="(\d+)"[^>]*?(?:/>|>.*?</row>)', re.DOTALL)
_CELL = re.compile(rb'<c\b[^>]*?\br="([A-Z]+)\d+"[^>]*?(?:/>|>.*?</c>)', re.DOTALL)
_PLACE = re.compile(rb'\br="([A-Z]+\d+)"')
_STYLE = re.compile(rb'\bs="\d+"')
_FORMULA = re.compile(rb"<f\b")
# A formula whose value the program that wrote it did not store.
_NO_VALUE = re.compile(rb"(?:</f>|<f\b[^>]*/>)\s*(?:<v\s*/>|<v>\s*</v>)?\s*</c>")
_IS_TEXT = re.compile(rb'\bt="str"')  # a formula whose value is a text may have an empty one


@dataclass(frozen=True, eq=False)
class _Sheet:
    """The cells of a sheet.

    Attributes
    ----------
    title : str
        Name of the sheet.
    first_row : int
        Number of the row of the first cells below the column names, counted from 1.
    places : dict of str to int
        Number of each column, counted from 1.
    columns : dict of str to list
        Cells of each column.
    """

    title: str
    first_row: int
    places: dict[str, int]
    columns: dict[str, list[Any]]


def read(content: bytes, name: str, options: ReadOptions) -> Table:
    """Return the columns of a sheet; numbers, texts, dates and truth values keep their types.

    Parameters
    ----------
    content : bytes
        Content of the file.
    name : str
        Name of the file, for errors.
    options : ReadOptions
        Name of the sheet.
    """
    return Table(name, _sheet(content, name, options).columns)


def rewrite(
    content: bytes, name: str, options: ReadOptions, column: str, changes: Mapping[int, Any]
) -> bytes:
    """Return the workbook with new cells in one column.

    All else stays as it is: formulas, formats, charts, macros and other sheets.

    Parameters
    ----------
    content, name, options
        As for `read`.
    column : str
        Name of the column.
    changes : mapping of int to value
        New cell of each row that changes.
    """
    sheet = _sheet(content, name, options)
    letters = _letters(sheet.places[column])
    new_cells = {sheet.first_row + row: value for row, value in changes.items()}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        part = _part(archive, sheet.title)
        markup = archive.read(part)
    pieces = []
    place = 0
    for match in _ROW.finditer(markup):
        number = int(match[1])
        if number in new_cells:
            row = _with_cell(match[0], letters, number, new_cells.pop(number), name)
            pieces += [markup[place : match.start()], row]
            place = match.end()
    if new_cells:
        raise ValueError(
            f"{name} does not say the places of its cells, so it cannot be rewritten: open it in a "
            "spreadsheet and save it."
        )
    return with_member(content, part, b"".join([*pieces, markup[place:]]))


def _sheet(content: bytes, name: str, options: ReadOptions) -> _Sheet:
    """Return the cells of the sheet that is named, or else of the only one with cells."""
    check_expansion(content, name)
    with _readable(name), _workbook(content) as workbook:
        sheets = {
            sheet.title: sheet
            for sheet in workbook.worksheets
            if sheet.sheet_state == "visible" or sheet.title == options.sheet
        }
        filled = [title for title, sheet in sheets.items() if _has_cells(sheet)]
        title = _chosen(filled, options)
        rows = [] if title is None else _rows(sheets[title])
    if title is None:
        raise ValueError(_no_choice(name, options, list(sheets), filled))
    if len(rows) > _MOST_ROWS:
        raise ValueError(f"{name} has more than the {_MOST_ROWS} rows of a sheet: use .csv.")
    with _readable(name):
        formula = _formula_without_value(content, title)
    if formula:
        raise ValueError(
            f"{name} has a formula without a stored value in cell {formula}: open it in a "
            "spreadsheet and save it, which stores the values."
        )
    return _as_sheet(title, rows, name)


def _chosen(filled: Sequence[str], options: ReadOptions) -> str | None:
    """Return the sheet to read, among those with cells; None if that is not clear."""
    if options.sheet is not None:
        return options.sheet if options.sheet in filled else None
    return filled[0] if len(filled) == 1 else None


def _no_choice(
    name: str, options: ReadOptions, titles: Sequence[str], filled: Sequence[str]
) -> str:
    """Return the error about a workbook without a sheet to read."""
    if not filled or options.sheet in titles:
        which = "" if options.sheet is None else f" in the sheet {options.sheet!r}"
        return f"{name} has no cells{which}: use a file with data."
    listed = ", ".join(map(repr, filled))
    if options.sheet is not None:
        return f"{name} has no sheet {options.sheet!r}: its sheets are {listed}."
    return f"{name} has several sheets, {listed}: name one with --sheet."


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Raise a ValueError that names the file for anything that a damaged workbook can raise."""
    try:
        yield
    except (MemoryError, ImportError):
        raise
    except zipfile.BadZipFile:
        raise ValueError(
            f"{name} is not an Excel workbook, or is protected by a password: save it as .xlsx "
            "without a password."
        ) from None
    except Exception:  # a damaged workbook can raise any error
        raise ValueError(
            f"{name} cannot be read as an Excel workbook: check that it is whole."
        ) from None


@contextmanager
def _workbook(content: bytes) -> Iterator[Any]:
    """Open a workbook; openpyxl warns of features that do not concern cells."""
    import openpyxl

    if not openpyxl.DEFUSEDXML:  # without it, entities in the XML could exhaust memory
        raise ModuleNotFoundError("openpyxl needs defusedxml", name="defusedxml")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on charts, styles and other parts that are not read
        workbook = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        try:
            yield workbook
        finally:
            workbook.close()


def _has_cells(sheet: Any) -> bool:
    return any(cell is not None for row in _values(sheet) for cell in row)


def _rows(sheet: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a sheet up to the last one with cells, and at most one too many."""
    rows = []
    n_filled = 0
    for row in islice(_values(sheet), _MOST_ROWS + 1):
        rows.append(row)
        if any(cell is not None for cell in row):
            n_filled = len(rows)
    return rows[:n_filled]


def _values(sheet: Any) -> Iterator[tuple[Any, ...]]:
    sheet.reset_dimensions()  # a workbook may state the wrong size
    rows: Iterator[tuple[Any, ...]] = sheet.iter_rows(values_only=True)
    return rows


def _as_sheet(title: str, rows: Sequence[tuple[Any, ...]], name: str) -> _Sheet:
    """Return the columns of a sheet; columns and rows before its first cells are left out."""
    first = next(number for number, row in enumerate(rows) if _is_filled(row))
    header = rows[first]
    body = rows[first + 1 :]
    columns: dict[str, list[Any]] = {}
    places: dict[str, int] = {}
    for place, (named, *cells) in enumerate(zip_longest(header, *body), start=1):
        if not _is_filled((named, *cells)):
            continue
        column = as_text(named)
        if column in columns:
            raise ValueError(
                f"{name} has several columns named {column!r} in the sheet {title!r}: give each "
                "its own name."
            )
        columns[column] = [None if cell == _NOT_AVAILABLE else cell for cell in cells]
        places[column] = place
    for number, row in enumerate(body):
        if len(columns) > 1 and not _is_filled(row):
            raise ValueError(
                f"{name} has a blank row, number {first + 2 + number} of the sheet {title!r}: "
                "remove it."
            )
    return _Sheet(title, first + 2, places, columns)


def _is_filled(row: Sequence[Any]) -> bool:
    return any(cell is not None for cell in row)


def _formula_without_value(content: bytes, title: str) -> str | None:
    """Return the first cell with a formula whose value is not stored; None if there is none."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        markup = archive.read(_part(archive, title))
    for match in _NO_VALUE.finditer(markup):
        start = markup.rfind(b"<c ", 0, match.start())
        head = markup[start : markup.find(b">", start)]
        place = _PLACE.search(head)
        if place is not None and not _IS_TEXT.search(head):
            return place[1].decode()
    return None


def _part(archive: zipfile.ZipFile, title: str) -> str:
    """Return the name of the member of a workbook that holds a sheet."""
    from openpyxl.xml.constants import REL_NS, SHEET_MAIN_NS
    from openpyxl.xml.functions import fromstring

    sheets = fromstring(archive.read(_WORKBOOK)).iter(f"{{{SHEET_MAIN_NS}}}sheet")
    ids = {sheet.get("name"): sheet.get(f"{{{REL_NS}}}id") for sheet in sheets}
    parts = {part.get("Id"): part.get("Target") for part in fromstring(archive.read(_PARTS))}
    return posixpath.join("/xl", str(parts[ids[title]])).removeprefix("/")


def _with_cell(row: bytes, letters: str, number: int, value: Any, name: str) -> bytes:
    """Return the markup of a row with another value in one of its cells.

    Parameters
    ----------
    row : bytes
        The markup of the row.
    letters : str
        The column of the cell, such as "AB".
    number : int
        Number of the row, counted from 1.
    value : object
        The new value.
    name : str
        Name of the file, for errors.
    """
    place = row.rfind(b"</row>")
    for match in _CELL.finditer(row):
        other = match[1].decode()
        if other == letters:
            if _FORMULA.search(match[0]):
                raise ValueError(
                    f"{name} has a formula in cell {letters}{number}, whose value is to change: "
                    "replace the formula by its value."
                )
            style = _STYLE.search(match[0])
            cell = _cell(letters, number, value, b"" if style is None else b" " + style[0], name)
            return row[: match.start()] + cell + row[match.end() :]
        if (len(other), other) > (len(letters), letters):  # the cell is empty: add it before
            place = match.start()
            break
    return row[:place] + _cell(letters, number, value, b"", name) + row[place:]


def _cell(letters: str, number: int, value: Any, style: bytes, name: str) -> bytes:
    """Return the markup of a cell; `style` is its attribute."""
    place = f'<c r="{letters}{number}"'.encode() + style
    if isinstance(value, bool):
        return place + f' t="b"><v>{int(value)}</v></c>'.encode()
    if isinstance(value, int | float):
        return place + f"><v>{value!r}</v></c>".encode()
    if isinstance(value, str):
        text = escape(value).encode("ascii", "xmlcharrefreplace")
        return place + b' t="inlineStr"><is><t xml:space="preserve">' + text + b"</t></is></c>"
    raise ValueError(
        f"{name} has labels that are neither texts nor numbers, such as {str(value)!r}, which "
        "cannot be rewritten: write them as texts."
    )


def _letters(place: int) -> str:
    from openpyxl.utils import get_column_letter

    return str(get_column_letter(place))
