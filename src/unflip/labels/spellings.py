"""Labels that differ from each other only by case or spaces."""

from __future__ import annotations

from collections.abc import Mapping


def letters(text: str) -> str:
    """Return a text without spaces and without case."""
    return "".join(text.casefold().split())


def usual_spellings(counts: Mapping[str, int]) -> dict[str, str]:
    """Return the most frequent spelling of each label, apart from case and spaces."""
    by_letters: dict[str, list[str]] = {}
    for label in counts:
        by_letters.setdefault(letters(label), []).append(label)
    return {
        label: max(similar, key=counts.__getitem__)
        for similar in by_letters.values()
        for label in similar
    }
