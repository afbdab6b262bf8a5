"""UTF-8 decoding, with errors that name the line."""

from __future__ import annotations


def decoded(content: bytes, name: str) -> str:
    """Return the text of a UTF-8 file; raise ValueError if it is not UTF-8.

    Parameters
    ----------
    content : bytes
        Content of the file.
    name : str
        Name of the file, for errors.
    """
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{name} is not UTF-8 text (byte {content[error.start]:#04x} in line {line}): save it "
            "as UTF-8, in a spreadsheet as 'CSV UTF-8'."
        ) from None
