"""Feather and Arrow files as tables: the file and the stream format of Arrow."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from unflip.cli.files.arrow_columns import ClassNames, table_of, with_changes
from unflip.cli.files.read_options import ReadOptions
from unflip.cli.files.tables import Table

OPTIONS = ()
_FILE_MARK = b"ARROW1"  # the first bytes of the file format; the stream format has none


def read(content: bytes, name: str, options: ReadOptions) -> Table:
    """Return the columns of a Feather or Arrow file.

    Parameters
    ----------
    content : bytes
        Content of the file.
    name : str
        Name of the file, for errors.
    options : ReadOptions
        None apply.
    """
    return table_of(arrow_table(content, name), name)


def rewrite(
    content: bytes, name: str, options: ReadOptions, column: str, changes: Mapping[int, Any]
) -> bytes:
    """Return the content of the file with new values in one column.

    Types, other columns and metadata stay as they are.

    Parameters
    ----------
    content, name, options
        As for `read`.
    column : str
        Name of the column.
    changes : mapping of int to value
        New value of each row that changes.
    """
    return rewritten_arrow(content, name, column, changes)


def arrow_table(content: bytes, name: str) -> Any:
    """Return the Arrow table of a file in either format; raise ValueError if it is damaged."""
    import pyarrow as pa

    opened = pa.ipc.open_file if content.startswith(_FILE_MARK) else pa.ipc.open_stream
    try:
        table = opened(pa.BufferReader(content)).read_all()
        table.validate(full=True)  # a damaged file can point outside of its data
    except (pa.ArrowException, OSError) as error:
        reason = next(iter(str(error).splitlines()), "").rstrip(".")
        raise ValueError(
            f"{name} cannot be read as an Arrow or Feather file ({reason}): check that it is whole."
        ) from None
    return table


def rewritten_arrow(
    content: bytes,
    name: str,
    column: str,
    changes: Mapping[int, Any],
    class_names: ClassNames | None = None,
) -> bytes:
    """Return the content of an Arrow file with new values in one column, in the same format.

    Parameters
    ----------
    content, name, column, changes
        As for `rewrite`.
    class_names : mapping of str to sequence of str, optional
        Names of the classes in each column of class numbers; by default from the metadata.
    """
    import pyarrow as pa

    new = with_changes(arrow_table(content, name), column, changes, class_names)
    buffer = io.BytesIO()
    opened = pa.ipc.new_file if content.startswith(_FILE_MARK) else pa.ipc.new_stream
    with opened(buffer, new.schema) as writer:
        writer.write_table(new)
    return buffer.getvalue()
