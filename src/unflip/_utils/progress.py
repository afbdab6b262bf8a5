"""Progress bars of long loops in notebooks; nothing elsewhere, and nothing without tqdm."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Collection, Iterable, Iterator
from importlib import import_module
from typing import Any, TypeVar

Item = TypeVar("Item")

# Seconds after which a loop shows its bar: a shorter wait needs none.
_PATIENCE = 2.0


def tracked(items: Collection[Item], description: str) -> Iterable[Item]:
    """Return the items, with a progress bar if the loop over them is slow and in a notebook.

    The bar appears after two seconds, and disappears at the end. The environment variable
    ``TQDM_DISABLE=1`` turns it off.

    Parameters
    ----------
    items : collection
        What the loop is over.
    description : str
        Text next to the bar.
    """
    return _tracked(items, description) if in_notebook() else items


def in_notebook() -> bool:
    """Whether the code runs in an IPython kernel, not in a terminal or a script."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


def _tracked(items: Collection[Item], description: str) -> Iterator[Item]:
    start = time.monotonic()
    bar = None
    try:
        for n_done, item in enumerate(items):
            if bar is None and time.monotonic() - start > _PATIENCE:
                bar = _bar(description, n_done, len(items))
            elif bar is not None:
                bar.update()
            yield item
    finally:
        if bar is not None:
            bar.close()


def _bar(description: str, n_done: int, total: int) -> Any:
    """Return a bar of tqdm; None if it is not installed."""
    try:
        with warnings.catch_warnings():
            # Without ipywidgets, the bar is text.
            warnings.simplefilter("ignore")
            tqdm = import_module("tqdm.auto").tqdm
            return tqdm(desc=description, initial=n_done, total=total, leave=False)
    except ImportError:
        return None
