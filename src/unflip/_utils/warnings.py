"""Warnings that point at the user's line of code."""

from __future__ import annotations

import inspect
import warnings


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside this package."""
    frame = inspect.currentframe()
    level = 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "unflip":
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)
