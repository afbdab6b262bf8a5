"""Names of a package that are imported on first use (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, module_of: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package.

    Parameters
    ----------
    package : str
        Name of the package.
    module_of : mapping of str to str
        Module within the package that defines each name; empty if the name is a module itself.
    """

    def getattribute(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if not module_of[name]:
            return import_module(f"{package}.{name}")
        return getattr(import_module(f"{package}.{module_of[name]}"), name)

    return getattribute
