"""Compressed files: .gz, .bz2, .zst, and .zip with one file in it."""

from __future__ import annotations

import bz2
import gzip
import io
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

#: Endings of compressed files.
ENDINGS = (".gz", ".bz2", ".zst", ".zip")
# A compressed file that expands to more than both is not read: it was probably made to exhaust
# memory. Both are choices. Text and numbers rarely shrink by a factor beyond 50.
_MOST_EXPANSION = 200
_MOST_BYTES = 2**30
_CHUNK = 2**24  # bytes that are expanded at a time
_APPLE_FOLDER = "__MACOSX/"  # macOS adds its own files to archives there


def compression(path: Path) -> str:
    """Return the ending of a compressed file, such as ".gz"; empty if it is not compressed."""
    suffix = path.suffix.lower()
    return suffix if suffix in ENDINGS else ""


def uncompressed_name(path: Path) -> Path:
    """Return the name of a file without the ending of its compression."""
    return path.with_suffix("") if compression(path) else path


def decompressed(content: bytes, path: Path) -> tuple[bytes, str]:
    """Return the content of a file that may be compressed, and the name of what is in it.

    The name is that of the file; in a .zip file it is followed by the name of its member.

    Parameters
    ----------
    content : bytes
        The content of the file.
    path : Path
        The file.
    """
    kind = compression(path)
    if not kind:
        return content, str(path)
    if kind == ".zip":
        return _unzipped(content, path)
    try:
        with _STREAMS[kind](content) as stream:
            expanded = _read(stream, len(content), path)
    except (OSError, EOFError, zlib.error):
        raise ValueError(_damaged(path)) from None
    return expanded, str(path)


def compressed(new: bytes, path: Path, original: bytes) -> bytes:
    """Return new content, compressed like a file.

    Parameters
    ----------
    new : bytes
        The new content.
    path : Path
        The file.
    original : bytes
        The present content of the file.
    """
    kind = compression(path)
    if kind == ".gz":
        return gzip.compress(new, mtime=0)
    if kind == ".bz2":
        return bz2.compress(new)
    if kind == ".zst":
        import pyarrow as pa

        return bytes(pa.Codec("zstd").compress(new, asbytes=True))
    if kind == ".zip":
        with zipfile.ZipFile(io.BytesIO(original)) as archive:
            member = _only_member(archive, path)
        return with_member(original, member.filename, new)
    return new


def with_member(content: bytes, name: str, new: bytes) -> bytes:
    """Return a zip archive in which one member has new content."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(buffer, "w") as written:
        for member in old.infolist():
            member_content = new if member.filename == name else old.read(member)
            written.writestr(member, member_content, compress_type=member.compress_type)
    return buffer.getvalue()


def check_expansion(content: bytes, name: str) -> None:
    """Raise ValueError if a zip archive expands to too many bytes; ignore other files."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            n_bytes = sum(member.file_size for member in archive.infolist())
    except zipfile.BadZipFile:
        return
    if n_bytes > _limit(len(content)):
        raise ValueError(_too_large(name))


def _unzipped(content: bytes, path: Path) -> tuple[bytes, str]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            member = _only_member(archive, path)
            if member.flag_bits & 1:
                raise ValueError(f"{path} is protected by a password: unpack it first.")
            with archive.open(member) as stream:
                return _read(stream, len(content), path), f"{path}/{member.filename}"
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError):
        raise ValueError(_damaged(path)) from None


def _only_member(archive: zipfile.ZipFile, path: Path) -> zipfile.ZipInfo:
    members = [
        member
        for member in archive.infolist()
        if not member.is_dir() and not member.filename.startswith(_APPLE_FOLDER)
    ]
    if len(members) != 1:
        raise ValueError(
            f"{path} holds {len(members)} files, not one: unpack it, and name the data file."
        )
    return members[0]


def _read(stream: BinaryIO | Any, n_compressed: int, path: Path) -> bytes:
    """Return all that a stream expands to; raise ValueError once it is too much."""
    expanded = io.BytesIO()
    while chunk := stream.read(_CHUNK):
        expanded.write(chunk)
        if expanded.tell() > _limit(n_compressed):
            raise ValueError(_too_large(str(path)))
    return expanded.getvalue()


def _limit(n_compressed: int) -> int:
    return max(_MOST_EXPANSION * n_compressed, _MOST_BYTES)


def _too_large(name: str) -> str:
    return (
        f"{name} expands to more than {_MOST_EXPANSION} times its size, and is not read: unpack it "
        "yourself if you trust it."
    )


def _damaged(path: Path) -> str:
    kind = compression(path)
    return (
        f"{path} ends in {kind} but is not a complete {_NAMES[kind]} file: check it, or rename it."
    )


def _zstandard(content: bytes) -> Any:
    import pyarrow as pa

    return pa.CompressedInputStream(pa.BufferReader(content), "zstd")


_STREAMS: dict[str, Callable[[bytes], Any]] = {
    ".gz": lambda content: gzip.GzipFile(fileobj=io.BytesIO(content)),
    ".bz2": lambda content: bz2.BZ2File(io.BytesIO(content)),
    ".zst": _zstandard,
}
_NAMES = {".gz": "gzip", ".bz2": "bzip2", ".zst": "zstandard", ".zip": "zip"}
