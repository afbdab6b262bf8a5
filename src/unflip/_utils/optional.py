"""Optional dependencies, imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def import_optional(module: str, owner: str) -> Any:
    """Import a module; raise ImportError that says what `owner` needs if a package is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f'{owner} needs {error.name}: install it with pip install "unflip[cli]".'
        ) from None
