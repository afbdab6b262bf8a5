"""Data files of any format as tables of columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import FloatArray
from unflip.cli.files import compression
from unflip.cli.files.read_options import NO_OPTIONS, ReadOptions

#: Module that implements `TableFormat` for each file ending.
_FORMATS = {
    ".csv": "unflip.cli.files.delimited",
    ".tsv": "unflip.cli.files.delimited",
    ".txt": "unflip.cli.files.delimited",
    ".jsonl": "unflip.cli.files.json_lines",
    ".ndjson": "unflip.cli.files.json_lines",
    ".json": "unflip.cli.files.json_file",
    ".xlsx": "unflip.cli.files.workbook",
    ".xlsm": "unflip.cli.files.workbook",
    ".parquet": "unflip.cli.files.parquet_file",
    ".feather": "unflip.cli.files.arrow_file",
    ".arrow": "unflip.cli.files.arrow_file",
    ".npy": "unflip.cli.files.numpy_file",
    ".npz": "unflip.cli.files.numpy_file",
}
_DATASET_FOLDER = "unflip.cli.files.dataset_folder"
_IMAGE_FOLDER = "unflip.cli.files.image_folder"
#: Files of a dataset saved by Hugging Face datasets: its columns, its data files, and its parts.
DATASET_FILES = ("dataset_info.json", "state.json", "dataset_dict.json")
ENDINGS = f"{', '.join(list(_FORMATS)[:-1])} or {list(_FORMATS)[-1]}"
_MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null"})
_TRUTH = {"true": 1.0, "false": 0.0}
_DECIMAL_COMMA = re.compile(r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?")
_N_NAMES = 8  # columns that are named in a message
# Share of numeric cells from which other cells are taken for mistakes, and reported as an error. A
# choice: a column with fewer is taken for text, and is not a feature.
_MOSTLY_NUMBERS = 0.9


class TableFormat(Protocol):
    """A module that reads and rewrites one file format; a new format is one new module.

    Attributes
    ----------
    OPTIONS : tuple of str
        The options of `ReadOptions` that the format takes, such as "--encoding".
    """

    OPTIONS: tuple[str, ...]

    def read(self, content: bytes, name: str, options: ReadOptions) -> Table:
        """Return the columns; `name` is the file, for error messages."""

    def rewrite(
        self,
        content: bytes,
        name: str,
        options: ReadOptions,
        column: str,
        changes: Mapping[int, Any],
    ) -> bytes:
        """Return the content with new cells in one column."""


@dataclass(frozen=True, eq=False)
class Table:
    """The columns of a file.

    Attributes
    ----------
    name : str
        The file, for messages.
    columns : mapping of str to sequence
        Cells of each column: strings for a CSV file, values for other formats.
    decimal_comma : bool
        Whether "1,5" is a number.
    blocks : mapping of str to ndarray of shape (n_rows, p)
        Arrays of several numbers in each row, which are features only.
    images : sequence of Path
        Image of each row, if the table is a folder of images; empty otherwise.
    notes : sequence of str
        Warnings about files that were left out.
    """

    name: str
    columns: Mapping[str, Sequence[Any]]
    decimal_comma: bool = False
    blocks: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    images: Sequence[Path] = ()
    notes: Sequence[str] = ()
    # Numeric columns that were converted before.
    _numbers: dict[str, FloatArray | None] = field(default_factory=dict, repr=False)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        if self.columns:
            return len(next(iter(self.columns.values())))
        return len(next(iter(self.blocks.values()), ()))

    @property
    def column_names(self) -> str:
        """The first columns, for messages."""
        names = list(map(repr, self.columns))
        if not names:
            return "it holds features only, which --embedding takes beside a file with the labels"
        if len(names) == 1:
            return f"its only column is {names[0]}"
        rest = len(names) - _N_NAMES
        last = f"{rest} more" if rest > 0 else names[-1]
        first = names[:_N_NAMES] if rest > 0 else names[:-1]
        return f"its columns are {', '.join(first)} and {last}"

    def column(self, name: str) -> Sequence[Any]:
        """Return the cells of a column; raise ValueError with other names if there is none."""
        if name in self.columns:
            return self.columns[name]
        close = get_close_matches(name, self.columns, n=3, cutoff=0.6)
        if close:
            raise ValueError(f"{self.name} has no column {name!r}: did you mean {_joined(close)}?")
        raise ValueError(f"{self.name} has no column {name!r}: {self.column_names}.")

    def texts(self, name: str) -> list[str]:
        """Return the cells of a column as strings, empty if missing."""
        return [as_text(cell) for cell in self.column(name)]

    def numbers(self, name: str) -> FloatArray | None:
        """Return a column as numbers, or None, as `numbers` does."""
        if name not in self._numbers:
            self._numbers[name] = numbers(self.column(name), decimal_comma=self.decimal_comma)
        return self._numbers[name]

    def non_number(self, name: str) -> int | None:
        """Return the first row that is not a number in a column of numbers; None otherwise."""
        cells = self.column(name)
        present = [row for row, cell in enumerate(cells) if not is_missing(cell)]
        readable = {
            reader: [row for row in present if _reads(reader, cells[row])] for reader in _READERS
        }
        if len(set().union(*readable.values())) < max(_MOSTLY_NUMBERS * len(present), 1):
            return None
        usual = max(readable, key=lambda reader: len(readable[reader]))
        numeric = set(readable[usual])
        if usual is _with_comma and not self.decimal_comma:
            numeric = set()
        return next((row for row in present if row not in numeric), None)


def read_table(path: Path, options: ReadOptions = NO_OPTIONS) -> Table:
    """Read a data file, which may be compressed, or a folder: a saved dataset, or images.

    Parameters
    ----------
    path : Path
        The file or folder.
    options : ReadOptions
        How to read it, where the file does not say it.
    """
    if path.is_dir():
        _check_options(path, "a folder", (), options)
        module = _DATASET_FOLDER if is_saved_dataset(path) else _IMAGE_FOLDER
        table: Table = import_module(module).read_folder(path)
    else:
        content, name, table_format = _opened(path, options)
        table = replace(table_format.read(content, name, options), name=str(path))
    if table.n_rows == 0:
        raise ValueError(f"{path} has no rows: use a file with data.")
    return table


def is_saved_dataset(path: Path) -> bool:
    """Whether a folder was written by `save_to_disk` of Hugging Face datasets."""
    return any((path / name).exists() for name in DATASET_FILES)


def is_image_folder(path: Path) -> bool:
    """Whether a path is a folder that must hold images."""
    return path.is_dir() and not is_saved_dataset(path)


def copy_ending(path: Path) -> str:
    """Return the ending of a corrected copy: a folder for a saved dataset, CSV for images."""
    if is_image_folder(path):
        return ".csv"
    return "" if path.is_dir() else full_ending(path)


def rewritten(
    path: Path, column: str, changes: Mapping[int, Any], options: ReadOptions = NO_OPTIONS
) -> bytes:
    """Return the content of a file with new cells in one column.

    Parameters
    ----------
    path : Path
        The file.
    column : str
        Name of the column.
    changes : mapping of int to value
        New cell of each row that changes.
    options : ReadOptions
        How the file was read.
    """
    content, name, table_format = _opened(path, options)
    new = table_format.rewrite(content, name, options, column, changes)
    old_table = table_format.read(content, name, options)
    new_table = table_format.read(new, name, options)
    check_rewritten(old_table, new_table, column, changes)
    return compression.compressed(new, path, read_content(path))


def _opened(path: Path, options: ReadOptions) -> tuple[bytes, str, TableFormat]:
    """Return the expanded content of a file, its name and its format."""
    content, name = compression.decompressed(read_content(path), path)
    if not content:
        raise ValueError(f"{name} is empty: use a file with data.")
    table_format = _format(Path(name))
    _check_options(path, f"a {ending(Path(name))} file", table_format.OPTIONS, options)
    return content, name, table_format


def _check_options(path: Path, kind: str, taken: Sequence[str], options: ReadOptions) -> None:
    for option in options.passed:
        if option not in taken:
            raise ValueError(f"{option} does not apply to {path}, {kind}: omit it.")


def check_rewritten(old: Table, new: Table, column: str, changes: Mapping[int, Any]) -> None:
    """Raise ValueError if a rewritten file differs from the old file by more than the changes.

    Parameters
    ----------
    old, new : Table
        The file, and the rewritten file.
    column : str
        Column that was changed.
    changes : mapping of int to value
        New cell of each row that changes.
    """
    for checked in dict.fromkeys([*old.columns, *new.columns]):
        expected = _as_list(old.columns.get(checked, ()))
        cells = _as_list(new.columns.get(checked, ()))
        if checked == column:
            for row, cell in changes.items():
                expected[row] = cell
        # As strings, too, because NaN is not equal to itself.
        if expected != cells and repr(expected) != repr(cells):
            raise ValueError(_not_rewritable(old.name, checked))
    for checked in dict.fromkeys([*old.blocks, *new.blocks]):
        if not np.array_equal(old.blocks[checked], new.blocks[checked], equal_nan=True):
            raise ValueError(_not_rewritable(old.name, checked))


def _not_rewritable(name: str, column: str) -> str:
    return (
        f"{name} cannot be rewritten without changes to other cells (of column {column!r}), so "
        "nothing is written: save the data in another format, such as .jsonl or .parquet."
    )


def _as_list(cells: Sequence[Any]) -> list[Any]:
    """Return cells as a list of Python values."""
    return list(cells.tolist() if isinstance(cells, np.ndarray) else cells)


def read_content(path: Path) -> bytes:
    """Return the content of a file; raise ValueError if it cannot be read."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file.")
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist: check the name and the folder.") from None
    except OSError as error:
        raise ValueError(
            f"{path} cannot be read ({error.strerror}): check its permissions."
        ) from None
    if not content:
        raise ValueError(f"{path} is empty: use a file with data.")
    return content


def ending(path: Path) -> str:
    """Return the ending of the format, such as ".csv", also of a compressed file."""
    return compression.uncompressed_name(path).suffix.lower()


def full_ending(path: Path) -> str:
    """Return the ending of the format and of the compression, such as ".csv.gz"."""
    known = ending(path) if ending(path) in _FORMATS else ""
    return known + compression.compression(path)


def is_data_file(path: Path) -> bool:
    """Whether a name has the ending of a data file, which may be compressed."""
    return bool(full_ending(path))


def as_text(cell: Any) -> str:
    """Return a cell as a stripped string, empty if missing; 1.0 becomes "1"."""
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, np.ndarray):
        return str(cell.tolist())
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, float | np.floating) and float(cell).is_integer():
        return str(int(cell))
    return str(cell)


def is_missing(cell: Any) -> bool:
    """Whether a cell is empty, NaN, or a word for a missing value such as NA or null."""
    return as_text(cell) in _MISSING


def numbers(cells: Sequence[Any], *, decimal_comma: bool = False) -> FloatArray | None:
    """Return a column as numbers; None if a cell is not a number, or if all are missing.

    Missing cells are NaN. In a column of true and false, these are 1 and 0.

    Parameters
    ----------
    cells : sequence
        The column.
    decimal_comma : bool
        Whether "1,5" is a number.
    """
    if isinstance(cells, np.ndarray):
        return cells.astype(float)
    try:
        return np.fromiter(map(float, cells), float, len(cells))
    except (TypeError, ValueError, OverflowError):
        pass
    for reader in _READERS if decimal_comma else _READERS[:-1]:
        try:
            values = np.array([np.nan if is_missing(cell) else reader(cell) for cell in cells])
        except (TypeError, ValueError):
            continue
        return None if np.isnan(values).all() else values
    return None


def has_comma(cell: Any) -> bool:
    """Whether a cell is a number with a decimal comma."""
    return "," in as_text(cell) and _reads(_with_comma, cell)


def _number(cell: Any) -> float:
    """Return a cell as a number; an integer that overflows float64 is infinite, as in text."""
    try:
        return float(cell)
    except OverflowError:
        return np.inf if cell > 0 else -np.inf


def _truth(cell: Any) -> float:
    word = as_text(cell).lower()
    if word not in _TRUTH:
        raise ValueError(word)
    return _TRUTH[word]


def _with_comma(cell: Any) -> float:
    text = as_text(cell)
    if not _DECIMAL_COMMA.fullmatch(text):
        raise ValueError(text)
    return float(text.replace(",", "."))


_READERS: tuple[Callable[[Any], float], ...] = (_number, _truth, _with_comma)


def _reads(reader: Callable[[Any], float], cell: Any) -> bool:
    try:
        reader(cell)
    except (TypeError, ValueError):
        return False
    return True


def _format(path: Path) -> TableFormat:
    name = _FORMATS.get(ending(path))
    if name is None:
        raise ValueError(
            f"{path} has an unknown format: its name must end in {ENDINGS} (plus "
            f"{', '.join(compression.ENDINGS[:-1])} or {compression.ENDINGS[-1]} if compressed)."
        )
    module: TableFormat = import_module(name)
    return module


def _joined(names: Sequence[str]) -> str:
    quoted = [repr(name) for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
