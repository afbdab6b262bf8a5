"""NumPy files (.npy, .npz): arrays that are columns or blocks of features; pickles are not read."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip.cli.files.compression import check_expansion, uncompressed_name, with_member
from unflip.cli.files.read_options import ReadOptions
from unflip.cli.files.tables import Table, ending

OPTIONS = ()
_NUMBERS = "fiu"  # kinds of arrays that hold real numbers


def read(content: bytes, name: str, options: ReadOptions) -> Table:
    """Return the arrays: 1-D arrays are columns, and others are blocks of features.

    The array of an .npy file is called like the file; the fields of a structured array are columns.

    Parameters
    ----------
    content : bytes
        Content of the file.
    name : str
        Name of the file, for errors.
    options : ReadOptions
        None apply.
    """
    arrays = {
        field: array
        for key, whole in _arrays(content, name).items()
        for field, array in _fields(key, whole).items()
    }
    lengths = {key: len(array) for key, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{key}: {length}" for key, length in lengths.items())
        raise ValueError(
            f"{name} has arrays of different lengths ({listed}): save those of the same rows alone."
        )
    columns = {}
    blocks = {}
    for key, array in arrays.items():
        if array.ndim == 1:
            columns[key] = _column(array, key, name)
        else:
            blocks[key] = _block(array, key, name)
    return Table(name, columns, blocks=blocks)


def rewrite(
    content: bytes, name: str, options: ReadOptions, column: str, changes: Mapping[int, Any]
) -> bytes:
    """Return the content of the file with new values in one column; other arrays stay the same.

    Parameters
    ----------
    content, name, options
        As for `read`.
    column : str
        Name of the column.
    changes : mapping of int to value
        New value of each row that changes.
    """
    key, array = next(
        (key, array)
        for key, array in _arrays(content, name).items()
        if column in _fields(key, array)
    )
    new = array.copy()
    cells = new if new.dtype.names is None else new[column]
    for row, value in changes.items():
        cells[row] = value.encode() if cells.dtype.kind == "S" else value
    buffer = io.BytesIO()
    np.save(buffer, new, allow_pickle=False)
    if _is_archive(name):
        return with_member(content, f"{key}.npy", buffer.getvalue())
    return buffer.getvalue()


def _arrays(content: bytes, name: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file by name."""
    check_expansion(content, name)
    try:
        loaded = np.load(io.BytesIO(content), allow_pickle=False)
        if not _is_archive(name):
            arrays = {uncompressed_name(Path(name)).stem: np.asarray(loaded)}
        else:
            arrays = {key: loaded[key] for key in loaded.files}
    except MemoryError:
        raise
    except Exception as error:  # a damaged file can raise any error
        if "allow_pickle" in str(error):
            raise ValueError(
                f"{name} holds Python objects as a pickle, which is not read: save arrays of "
                "numbers or of texts (dtype str)."
            ) from None
        raise ValueError(
            f"{name} cannot be read as a NumPy file: check that it is whole."
        ) from None
    # np.load returns other members of an archive as bytes.
    return {key: array for key, array in arrays.items() if isinstance(array, np.ndarray)}


def _is_archive(name: str) -> bool:
    return ending(Path(name)) == ".npz"


def _fields(key: str, array: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the fields of a structured array, or the array itself; none if it has no rows."""
    if array.ndim == 0:
        return {}
    if array.dtype.names is None:
        return {key: array}
    return {field: array[field] for field in array.dtype.names}


def _column(array: NDArray[Any], key: str, name: str) -> Any:
    """Return a 1-D array as cells: numbers as an array, texts and truth values as a list."""
    kind = array.dtype.kind
    if kind in _NUMBERS:
        return array
    if kind in "Ub":
        return array.tolist()
    if kind == "S":
        return [text.decode("utf-8", "replace") for text in array.tolist()]
    if kind in "mM":
        return array.astype(str).tolist()
    raise ValueError(f"Array {key!r} of {name} holds {array.dtype}: save numbers or texts.")


def _block(array: NDArray[Any], key: str, name: str) -> NDArray[Any]:
    """Return an array of several numbers in each row as one of shape (n_rows, p)."""
    if array.dtype.kind not in f"{_NUMBERS}b":
        raise ValueError(
            f"Array {key!r} of {name} holds {array.dtype} in {array.ndim} dimensions: save "
            "numbers, or one array for each column."
        )
    return array.reshape(len(array), -1)
