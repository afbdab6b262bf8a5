"""Folders written by `save_to_disk` of Hugging Face datasets, read without that library."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from unflip.cli.files.arrow_columns import class_names_of, table_of
from unflip.cli.files.arrow_file import arrow_table, rewritten_arrow
from unflip.cli.files.tables import DATASET_FILES, Table, check_rewritten, read_content

_INFO, _STATE, _PARTS = DATASET_FILES
_HASH_LENGTH = 16  # letters of the name of a version of a dataset, as the library writes it


@dataclass(frozen=True, eq=False)
class _Folder:
    """A saved dataset.

    Attributes
    ----------
    path : Path
        The folder.
    state : dict
        The content of state.json.
    class_names : dict of str to list of str
        Names of the classes in each column of class numbers.
    contents : dict of str to bytes
        Content of each data file, in the order of their rows.
    """

    path: Path
    state: dict[str, Any]
    class_names: dict[str, list[str]]
    contents: dict[str, bytes]

    def table(self) -> Table:
        """Return the columns."""
        import pyarrow as pa

        parts = [arrow_table(content, name) for name, content in self._by_path.items()]
        try:
            whole = pa.concat_tables(parts)
        except pa.ArrowException:
            raise ValueError(
                f"The data files of {self.path} have different columns: save the dataset again."
            ) from None
        return table_of(whole, str(self.path), self.class_names)

    @property
    def _by_path(self) -> dict[str, bytes]:
        return {str(self.path / name): content for name, content in self.contents.items()}


def read_folder(path: Path) -> Table:
    """Return the columns of a saved dataset; class numbers become the names of the classes."""
    return _opened(path).table()


def rewritten_folder(path: Path, column: str, changes: Mapping[int, Any]) -> dict[str, bytes]:
    """Return the files of a saved dataset, by name, with new values in one column.

    Parameters
    ----------
    path : Path
        The folder.
    column : str
        Name of the column.
    changes : mapping of int to value
        New value of each row that changes.
    """
    folder = _opened(path)
    contents = {}
    start = 0
    for name, content in folder.contents.items():
        file = str(path / name)
        stop = start + arrow_table(content, file).num_rows
        own = {row - start: value for row, value in changes.items() if start <= row < stop}
        contents[name] = (
            rewritten_arrow(content, file, column, own, folder.class_names) if own else content
        )
        start = stop
    new = _Folder(path, folder.state, folder.class_names, contents)
    check_rewritten(folder.table(), new.table(), column, changes)
    # The library takes datasets with the same fingerprint for the same data.
    version = f"{folder.state.get('_fingerprint')} {column} {sorted(changes.items())}"
    fingerprint = hashlib.sha256(version.encode()).hexdigest()[:_HASH_LENGTH]
    state = json.dumps({**folder.state, "_fingerprint": fingerprint}, indent=2).encode()
    return {**contents, _INFO: read_content(path / _INFO), _STATE: state}


def _opened(path: Path) -> _Folder:
    if (path / _PARTS).is_file():
        raise ValueError(_several_parts(path))
    if not (path / _STATE).is_file() or not (path / _INFO).is_file():
        raise ValueError(
            f"{path} has not all files of a dataset written by save_to_disk of Hugging Face "
            f"datasets: it needs {_STATE} and {_INFO}."
        )
    state = _json_object(path / _STATE)
    files = state.get("_data_files")
    names = [str(file.get("filename")) for file in _objects(files)]
    if not names or not all(map(_is_plain, names)):
        raise ValueError(f"{path / _STATE} names no data files: save the dataset again.")
    if state.get("_indices_data_files"):
        raise ValueError(
            f"{path} has rows in another order than its data files: save the result of "
            "flatten_indices of the dataset."
        )
    features = _json_object(path / _INFO).get("features")
    contents = {name: read_content(path / name) for name in names}
    return _Folder(path, state, class_names_of(features), contents)


def _several_parts(path: Path) -> str:
    parts = _json_object(path / _PARTS).get("splits")
    names = [str(part) for part in parts] if isinstance(parts, list) else []
    if not names:
        return f"{path} is a dataset without parts: name the folder of a dataset."
    return (
        f"{path} has the parts {', '.join(names)}: name one of them, for example {path / names[0]}."
    )


def _objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list; none if it is not a list."""
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, dict)]


def _is_plain(name: str) -> bool:
    """Whether a name is that of a file in the folder itself, not elsewhere."""
    return name not in ("", ".", "..") and PurePath(name).name == name and "\\" not in name


def _json_object(path: Path) -> dict[str, Any]:
    content = read_content(path)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):  # also too many digits or nested lists for Python
        raise ValueError(f"{path} is not JSON: save the dataset again.") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path} is not a JSON object: save the dataset again.")
    return value
