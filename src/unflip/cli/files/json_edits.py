"""Changes of single values in a JSON text; all other characters stay the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

#: A change: the first and the last place (exclusive) of the old text, and the new text.
Edit = tuple[int, int, str]

_BLANKS = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def edited(text: str, edits: Sequence[Edit]) -> str:
    """Return a text with all changes made."""
    pieces = []
    place = 0
    for start, stop, new in sorted(edits):
        pieces += [text[place:start], new]
        place = stop
    return "".join([*pieces, text[place:]])


def member_edit(text: str, start: int, key: str, value: Any, codec: str) -> Edit:
    """Return the change that gives a member of an object a new value, or adds the member.

    Parameters
    ----------
    text : str
        Valid JSON.
    start : int
        Place of the object, or of blanks before it.
    key : str
        Name of the member; the last one of that name is changed, which is the one that counts.
    value : object
        The new value.
    codec : str
        Encoding in which the text is written.
    """
    edit = None
    stop = _after_blanks(text, start) + 1
    is_empty = True
    for name, first, stop in members(text, start):
        is_empty = False
        if name == key:
            edit = value_edit((first, stop), value, codec)
    if edit is not None:
        return edit
    added = f"{as_json(key, codec)}: {as_json(value, codec)}"
    return stop, stop, added if is_empty else f", {added}"


def value_edit(span: tuple[int, int], value: Any, codec: str) -> Edit:
    """Return the change that puts a new value into the place of another."""
    return *span, as_json(value, codec)


def as_json(value: Any, codec: str) -> str:
    """Return a value as JSON, with escapes only for characters that the encoding lacks."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode(codec)
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def members(text: str, start: int) -> Iterator[tuple[str, int, int]]:
    """Yield the name of each member of an object, and where its value starts and ends.

    Parameters
    ----------
    text : str
        Valid JSON.
    start : int
        Place of the object, or of blanks before it.
    """
    place = _after_blanks(text, _after_blanks(text, start) + 1)
    while text[place] != "}":
        name, place = _DECODER.raw_decode(text, place)
        first = _after_blanks(text, _after_blanks(text, place) + 1)  # after the colon
        _, stop = _DECODER.raw_decode(text, first)
        yield name, first, stop
        place = _next(text, stop)


def elements(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Yield where each element of an array starts and ends; parameters are those of `members`."""
    place = _after_blanks(text, _after_blanks(text, start) + 1)
    while text[place] != "]":
        _, stop = _DECODER.raw_decode(text, place)
        yield place, stop
        place = _next(text, stop)


def _after_blanks(text: str, place: int) -> int:
    match = _BLANKS.match(text, place)
    return place if match is None else match.end()


def _next(text: str, stop: int) -> int:
    """Return the place of the next element or of the end, after a comma if there is one."""
    place = _after_blanks(text, stop)
    return _after_blanks(text, place + 1) if text[place] == "," else place
