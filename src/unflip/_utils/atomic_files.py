"""Atomic writes: files are written completely or not at all."""

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
    """Write a file so that readers see the old content or the new, never a part."""
    write_together({path: content})


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Write several files like `write_atomically`; none is renamed before all are on the disk.

    A program that is killed just before the files are renamed leaves complete files named
    ".unflip-….part". On systems without unnamed temporary files, a program that is killed while it
    writes leaves an incomplete one. Symbolic links are followed: the target of the link is
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


def write_folder(path: Path, contents: Mapping[str, bytes]) -> None:
    """Write a new folder of files, which appears with all of them or not at all.

    Parameters
    ----------
    path : Path
        The folder, which does not exist.
    contents : mapping of str to bytes
        Content of each file.
    """
    part = path.with_name(f".unflip-{secrets.token_hex(8)}.part")
    try:
        with _named(path):
            part.mkdir()
            write_together({part / name: content for name, content in contents.items()})
            part.rename(path)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def written_file(path: Path) -> Path:
    """Return the target of a symbolic link, or the path itself if it is not a link.

    Raises OSError if the path is not a regular file: a device such as /dev/null must not be
    replaced.
    """
    file = path
    if path.is_symlink():
        with suppress(FileNotFoundError):
            path.stat()  # raises OSError if links form a loop
        file = Path(os.path.realpath(path))
    if file.exists() and not file.is_file():
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return file


def _write(part: Path, content: bytes, path: Path) -> None:
    """Write a new file with the permissions of the file it replaces, or the user's default."""
    part.parent.mkdir(parents=True, exist_ok=True)
    if not _write_unnamed(part, content):
        with part.open("xb") as file:
            _fill(file, content)
    if path.exists():
        shutil.copymode(path, part)


def _write_unnamed(part: Path, content: bytes) -> bool:
    """Write an unnamed file and name it when complete; return whether the system supports that.

    A program that is killed then leaves nothing.
    """
    unnamed = getattr(os, "O_TMPFILE", None)
    if unnamed is None:
        return False
    try:
        descriptor = os.open(part.parent, unnamed | os.O_WRONLY, 0o666)
    except OSError:  # unsupported here; any other problem also occurs with a named file
        return False
    with open(descriptor, "wb") as file:
        _fill(file, content)
        try:
            # src_dir_fd makes Python call linkat, which follows the link to the file.
            os.link(f"/proc/self/fd/{descriptor}", part, src_dir_fd=descriptor)
        except OSError:
            return False
    return True


def _fill(file: BinaryIO, content: bytes) -> None:
    """Write through to the disk, so that a full disk raises."""
    file.write(content)
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the file in errors."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
