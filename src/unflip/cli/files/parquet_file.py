"""Parquet files as tables."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from unflip.cli.files.arrow_columns import table_of, with_changes
from unflip.cli.files.read_options import ReadOptions
from unflip.cli.files.tables import Table

OPTIONS = ()


def read(content: bytes, name: str, options: ReadOptions) -> Table:
    """Return the columns of a Parquet file.

    Parameters
    ----------
    content : bytes
        Content of the file.
    name : str
        Name of the file, for errors.
    options : ReadOptions
        None apply.
    """
    return table_of(_arrow_table(content, name), name)


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
    from pyarrow import parquet

    buffer = io.BytesIO()
    parquet.write_table(with_changes(_arrow_table(content, name), column, changes), buffer)
    return buffer.getvalue()


def _arrow_table(content: bytes, name: str) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.read_table(pa.BufferReader(content))
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise ValueError(
            f"{name} cannot be read as Parquet ({reason}): check that it is whole."
        ) from None
