"""Opening Parquet files, with errors that say what to do; needs ``unflip[parquet]``."""

from __future__ import annotations

import os
from typing import Any

Path = str | os.PathLike[str]


def opened(path: Path) -> Any:
    """Return a pyarrow ParquetFile."""
    try:
        from pyarrow import ArrowInvalid
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise ImportError('Parquet files need pyarrow: pip install "unflip[parquet]".') from None
    try:
        return ParquetFile(path)
    except ArrowInvalid as error:
        raise ValueError(f"{path} is not a Parquet file or is damaged ({error}).") from None


def check_columns(path: Path, file: Any, wanted: list[str]) -> None:
    """Raise where a file lacks a column."""
    for name in wanted:
        if name not in file.schema_arrow.names:
            raise ValueError(f"{path} has no column {name!r}: it has {', '.join(file.schema_arrow.names)}.")
