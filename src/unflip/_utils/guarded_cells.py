"""Cells of CSV files, guarded so that no spreadsheet runs them as formulas."""

from __future__ import annotations

import re

# A spreadsheet may run a cell as a formula if it starts with one of these signs, also full-width or
# small, after blanks and invisible characters. The page's decisions.js has the same pattern. It
# includes apostrophes at the start, which would be mistaken for the added one.
_BLANKS = r"[\s\x00-\x1f\x7f-\x9f\xad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
_SIGNS = r"[=+\-@\ufe62\ufe63\ufe66\ufe6b\uff0b\uff0d\uff1d\uff20]"
_FORMULA = re.compile(rf"'*(?:[\x00-\x1f]|{_BLANKS}*{_SIGNS})")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)


def guarded(cell: str) -> str:
    """Return a cell with an apostrophe before it if a spreadsheet may run it as a formula."""
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


def unguarded(cell: str) -> str:
    """Return a cell without the apostrophe of `guarded`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
