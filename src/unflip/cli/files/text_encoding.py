"""Decoding of text files, with errors that name the line and the likely encoding."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

_MARK = "\ufeff"  # byte order mark, which spreadsheets write first
# Encodings whose byte order is told by the mark; the first two letters of UTF-32 are those of
# UTF-16, so it comes first.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_WITHOUT_ORDER = ("utf-16", "utf-32")


@dataclass(frozen=True)
class Decoded:
    """The text of a file, and what is needed to write it in the same encoding.

    Attributes
    ----------
    text : str
        The text, without a byte order mark.
    mark : str
        The byte order mark, or an empty string.
    codec : str
        Name of the encoding.
    """

    text: str
    mark: str
    codec: str

    def encoded(self, text: str) -> bytes:
        """Return another text in the same encoding, with the same byte order mark."""
        return (self.mark + text).encode(self.codec)


def decoded(content: bytes, name: str, encoding: str | None = None) -> Decoded:
    """Return the text of a file; raise ValueError if it is in another encoding.

    Parameters
    ----------
    content : bytes
        Content of the file.
    name : str
        Name of the file, for errors.
    encoding : str, optional
        The encoding, UTF-8 by default.
    """
    codec = "utf-8" if encoding is None else _codec(content, encoding)
    try:
        text = content.decode(codec)
    except UnicodeError as error:
        raise ValueError(_not_decodable(content, name, encoding, error)) from None
    mark = _MARK if text.startswith(_MARK) else ""
    return Decoded(text.removeprefix(_MARK), mark, codec)


def _codec(content: bytes, encoding: str) -> str:
    """Return an encoding with the byte order of the file; raise ValueError if there is none."""
    try:
        codec = codecs.lookup(encoding).name
        b"a".decode(codec, "replace")  # LookupError for codecs that are not for text, such as zlib
    except (LookupError, ValueError):  # ValueError for a null character
        raise ValueError(
            f"--encoding {encoding!r} is not a known encoding: use for example utf-8, utf-16, "
            "cp1252 or shift_jis."
        ) from None
    if codec == "utf-8-sig":
        return "utf-8"
    if codec in _WITHOUT_ORDER:
        return _marked_codec(content, codec) or f"{codec}-le"
    return codec


def _marked_codec(content: bytes, kind: str = "utf") -> str | None:
    """Return the encoding that a byte order mark stands for; None without a mark."""
    for mark, codec in _MARKS.items():
        if content.startswith(mark) and codec.startswith(kind):
            return codec
    return None


def _not_decodable(content: bytes, name: str, encoding: str | None, error: UnicodeError) -> str:
    where = ""
    if isinstance(error, UnicodeDecodeError):
        line = content.count(b"\n", 0, error.start) + 1
        where = f" (byte {content[error.start]:#04x} in line {line})"
    if encoding is not None:
        return f"{name} is not text in the encoding {encoding}{where}: pass another --encoding."
    return (
        f"{name} is not UTF-8 text{where}: pass its encoding, probably --encoding "
        f"{_likely(content)}, or save it as UTF-8, in a spreadsheet as 'CSV UTF-8'."
    )


def _likely(content: bytes) -> str:
    """Return the likely encoding of a text that is not UTF-8."""
    marked = _marked_codec(content)
    if marked is not None:
        return marked[: len("utf-16")]
    try:
        content.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"
