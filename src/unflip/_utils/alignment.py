"""Check that pandas objects that are passed side by side are about the same rows."""

from __future__ import annotations

from itertools import combinations
from typing import Any


def check_aligned(**arguments: object) -> None:
    """Raise ValueError if two pandas objects have different indexes.

    Everything else is positional, and so is a pandas object whose index counts from 0, unless the
    other index has the same numbers in another order.

    Parameters
    ----------
    **arguments
        Objects by the names of the parameters, the samples first.
    """
    indexes = {name: _index(value) for name, value in arguments.items() if _is_pandas(value)}
    for first, second in combinations(indexes, 2):
        if _differ(indexes[first], indexes[second]):
            raise ValueError(
                f"{first} and {second} have different pandas indexes: align them first, for "
                f"example with {second}.reindex({first}.index), or pass {second}.to_numpy() if "
                "their rows are in the same order."
            )


def _is_pandas(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas" and hasattr(value, "index")


def _index(value: Any) -> Any:
    return value.index


def _differ(first: Any, second: Any) -> bool:
    """Return whether two indexes contradict each other."""
    if first.equals(second):
        return False
    if _counts_from_0(first) or _counts_from_0(second):
        same = first.isin(second).all() and second.isin(first).all()
        return bool(len(first) == len(second) and same)
    return True


def _counts_from_0(index: Any) -> bool:
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
