"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader finds the old one or the new one, never a part."""
    write_together({path: content})


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Write files as `write_atomically` does; none of them takes its name before all are on the disk.

    Where the program is killed meanwhile, a part may stay under a name that begins with ".unflip-" and ends in ".part".
    """
    parts = {path: path.with_name(f".unflip-{secrets.token_hex(8)}.part") for path in contents}
    try:
        for path, content in contents.items():
            with _named(path):
                _write(parts[path], content, path)
        for path, part in parts.items():
            with _named(path):
                os.replace(part, path)
    except BaseException:
        for part in parts.values():
            part.unlink(missing_ok=True)
        raise


def _write(part: Path, content: bytes, path: Path) -> None:
    """Write to the disk itself, where a full one shows; who may read a new file is what the user's mask says."""
    part.parent.mkdir(parents=True, exist_ok=True)
    with part.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    if path.exists():
        shutil.copymode(path, part)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Say in errors which file was to be written."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
