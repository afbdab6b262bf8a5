"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader finds the old one or the new one, never a part."""
    write_together({path: content})


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Write files as `write_atomically` does; none of them takes its name before all are on the disk.

    A program that is killed just before they take their names leaves whole files that are called
    ".unflip-….part"; on systems where every file has a name from the start, one that is killed
    while it writes leaves a part of one. Symbolic links are followed: the file that one leads to is
    replaced, and the link stays.
    """
    targets = {path: written_file(path) for path in contents}
    parts = {
        path: target.with_name(f".unflip-{secrets.token_hex(8)}.part")
        for path, target in targets.items()
    }
    try:
        for path, content in contents.items():
            with _named(path):
                _write(parts[path], content, targets[path])
        for path, part in parts.items():
            with _named(path):
                os.replace(part, targets[path])
    except BaseException:
        for part in parts.values():
            part.unlink(missing_ok=True)
        raise


def written_file(path: Path) -> Path:
    """Return the file that a symbolic link leads to, or the path itself where it is none.

    Raises OSError where something else than a file is there: a device such as /dev/null must not be
    replaced.
    """
    file = path
    if path.is_symlink():
        with suppress(FileNotFoundError):
            path.stat()  # raises OSError where links lead in a circle
        file = Path(os.path.realpath(path))
    if file.exists() and not file.is_file():
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return file


def _write(part: Path, content: bytes, path: Path) -> None:
    """Write a new file; who may read it is what the user's mask says, or who may read the one that it will replace."""
    part.parent.mkdir(parents=True, exist_ok=True)
    if not _write_unnamed(part, content):
        with part.open("xb") as file:
            _fill(file, content)
    if path.exists():
        shutil.copymode(path, part)


def _write_unnamed(part: Path, content: bytes) -> bool:
    """Write a file that has no name before it is whole, so that a kill leaves nothing; return whether that can be."""
    without_name = getattr(os, "O_TMPFILE", None)
    if without_name is None:
        return False
    try:
        descriptor = os.open(part.parent, without_name | os.O_WRONLY, 0o666)
    except OSError:  # not on this file system; whatever else is wrong shows again with a name
        return False
    with open(descriptor, "wb") as file:
        _fill(file, content)
        try:
            # A folder, though the path needs none, makes Python call linkat, which follows the link
            # to the file.
            os.link(f"/proc/self/fd/{descriptor}", part, src_dir_fd=descriptor)
        except OSError:
            return False
    return True


def _fill(file: BinaryIO, content: bytes) -> None:
    """Write to the disk itself, where a full one shows."""
    file.write(content)
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Say in errors which file was to be written."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
