"""Options that say how a data file is to be read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How to read a data file, where the file does not say it.

    Attributes
    ----------
    encoding : str or None
        Encoding of a text file; by default UTF-8.
    separator : str or None
        Separator of the cells of a delimited file; by default it is detected.
    sheet : str or None
        Sheet of a workbook; by default the only one with cells.
    """

    encoding: str | None = None
    separator: str | None = None
    sheet: str | None = None

    @property
    def passed(self) -> dict[str, str]:
        """The options that were passed, with their values as typed."""
        values = {"--encoding": self.encoding, "--sep": self.separator, "--sheet": self.sheet}
        return {option: value for option, value in values.items() if value is not None}


#: The options of a file that says everything.
NO_OPTIONS = ReadOptions()
