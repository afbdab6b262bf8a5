"""Compressed files: .gz, .bz2, .zst, and .zip with one file in it."""

from __future__ import annotations

import bz2
import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

#: Endings of compressed files.
ENDINGS = (".gz", ".bz2", ".zst", ".zip")
# A compressed file that expands to more than both is not read: it was probably made to exhaust
# memory. Both are choices. Text and numbers rarely shrink by a factor beyond 50.
_MOST_EXPANSION = 200
_MOST_BYTES = 2**30
_CHUNK = 2**24  # bytes that are expanded at a time
_ENCRYPTED = 1  # flag of a member of a .zip file
# What a damaged file can raise.
_DAMAGED = (
    OSError,
    EOFError,
    ValueError,
    NotImplementedError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
)
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
    name = str(path)
    if kind == ".zip":
        member = _only_member(content, path)
        name = f"{path}/{member.filename}"
        opened = partial(_open_member, content, member)
    else:
        opened = partial(_STREAMS[kind], content)
    limit = _limit(len(content))
    try:
        with opened() as stream:
            expanded = _read(stream, limit)
    except _DAMAGED:
        raise ValueError(_damaged(path)) from None
    if len(expanded) > limit:
        raise ValueError(_too_large(str(path)))
    return expanded, name


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
        return with_member(original, _only_member(original, path).filename, new)
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
    except _DAMAGED:
        return
    if n_bytes > _limit(len(content)):
        raise ValueError(_too_large(name))


def _only_member(content: bytes, path: Path) -> zipfile.ZipInfo:
    """Return the only file in a zip archive; raise ValueError if it is not the only one."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
    except _DAMAGED:
        raise ValueError(_damaged(path)) from None
    files = [
        member
        for member in members
        if not member.is_dir() and not member.filename.startswith(_APPLE_FOLDER)
    ]
    if len(files) != 1:
        raise ValueError(
            f"{path} holds {len(files)} files, not one: unpack it, and name the data file."
        )
    if files[0].flag_bits & _ENCRYPTED:
        raise ValueError(f"{path} is protected by a password: unpack it first.")
    return files[0]


def _open_member(content: bytes, member: zipfile.ZipInfo) -> Any:
    return zipfile.ZipFile(io.BytesIO(content)).open(member)


def _read(stream: Any, limit: int) -> bytes:
    """Return what a stream expands to, or a little more than the limit of it."""
    expanded = io.BytesIO()
    while expanded.tell() <= limit and (chunk := stream.read(_CHUNK)):
        expanded.write(chunk)
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
