"""The command line: parsing and printing only."""

from unflip.cli.program import app

__all__ = ["app"]
