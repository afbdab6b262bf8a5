"""Features of rows: numeric columns, the words of a text, or an embedding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from unflip._utils.typing import FloatArray
from unflip.cli.files.tables import Table, as_text, has_comma, is_missing, numbers

Kind = Literal["numeric", "text", "embedding"]

_MOST_SPARSE_ROWS = 3000  # beyond, the table of all pairs of rows grows too large
_N_DIRECTIONS = 500  # of words, that stand for all of them then
_MOST_WORDS = 50_000
_LARGEST = 1e140  # numbers of which many squares can be added up


@dataclass(frozen=True, kw_only=True)
class Features:
    """Which columns the features come from.

    Attributes
    ----------
    kind : {"numeric", "text", "embedding"}
        What they are.
    columns : tuple of str
        The columns.
    left_out : tuple of str
        Columns that are neither features nor spoken for.
    """

    kind: Kind
    columns: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.kind == "text":
            return f"the words of column {self.columns[0]!r}"
        named = ", ".join(self.columns[:4]) + (", ..." if len(self.columns) > 4 else "")
        kind = "numeric" if self.kind == "numeric" else "embedding"
        return f"{len(self.columns)} {kind} column{'s' * (len(self.columns) > 1)} ({named})"

    def with_dimension(self, n_features: int) -> str:
        """Return the features in words, with their number where that of the columns does not tell it."""
        more = self.kind == "embedding" and n_features != len(self.columns)
        return f"{self}, {n_features} dimensions" if more else str(self)


def choose(
    table: Table, *, text: str | None, embedding: str | None, reserved: Sequence[str]
) -> Features:
    """Choose the columns to take features from.

    Parameters
    ----------
    table : Table
        The file.
    text : str or None
        Column of texts.
    embedding : str or None
        How the names of the columns of an embedding begin. Without either, all numeric columns are
        taken.
    reserved : sequence of str
        Columns that hold labels, groups or names of rows, or that are to be ignored.
    """
    free = [column for column in table.columns if column not in reserved]
    if text is not None and embedding is not None:
        raise ValueError("--text and --embedding exclude each other: give one of them.")
    if text is not None:
        return _text(table, text, reserved, free)
    if embedding is not None:
        found = [column for column in free if column.startswith(embedding)]
        if not found:
            raise ValueError(
                f"{table.name} has no column whose name begins with {embedding!r}: check "
                "--embedding."
            )
        return Features(kind="embedding", columns=tuple(found), left_out=_without(free, found))
    return _numeric(table, free)


def values(features: Features, table: Table) -> FloatArray | list[str]:
    """Return the texts, or the numbers as an array of shape (n, p), or an error that names the column and the row."""
    for column in features.columns:
        if column not in table.columns:
            raise ValueError(
                f"{table.name} lacks the column {column!r}, which the features come from: add it."
            )
    if features.kind == "text":
        return table.texts(features.columns[0])
    blocks = [_block(table, column) for column in features.columns]
    return np.hstack(blocks)


def fit_features(features: Features, given: FloatArray | list[str]) -> tuple[Pipeline, Any]:
    """Return what makes rows of features, and the rows.

    Numeric columns are standardised and embeddings taken as they are. Words and pairs of words are
    weighed by TF-IDF; of many rows, they are summed up by the 500 directions in which texts differ
    most.
    """
    if features.kind == "numeric":
        recipe = Pipeline([("standardised", StandardScaler())])
        return recipe, recipe.fit_transform(given)
    if features.kind == "embedding":
        return Pipeline([("as_they_are", "passthrough")]), given
    return _fit_words(given, features.columns[0])


def _fit_words(texts: Any, column: str) -> tuple[Pipeline, Any]:
    words = TfidfVectorizer(
        sublinear_tf=True, ngram_range=(1, 2), min_df=2, max_features=_MOST_WORDS, dtype=np.float32
    )
    try:
        rows = words.fit_transform(texts)
    except ValueError:
        raise ValueError(
            f"Column {column!r} holds no word that occurs in two rows: name a column of texts."
        ) from None
    # Numbers of the language itself: a saved model would hold each of NumPy's as a file of its own.
    words.vocabulary_ = {word: int(place) for word, place in words.vocabulary_.items()}
    if rows.shape[0] <= _MOST_SPARSE_ROWS or rows.shape[1] <= 2 * _N_DIRECTIONS:
        return Pipeline([("words", words)]), rows.astype(float)
    # "LU" as "QR", which scikit-learn 1.7 and 1.8 refuse, keeps the directions apart from one pass
    # to the next.
    directions = TruncatedSVD(
        _N_DIRECTIONS, n_iter=2, power_iteration_normalizer="LU", random_state=0
    )
    return Pipeline([("words", words), ("directions", directions)]), directions.fit_transform(
        rows
    ).astype(float)


def _without(columns: Sequence[str], used: Sequence[str]) -> tuple[str, ...]:
    taken = set(used)
    return tuple(column for column in columns if column not in taken)


def _text(table: Table, column: str, reserved: Sequence[str], free: Sequence[str]) -> Features:
    if column in reserved:
        raise ValueError(
            f"--text {column} names a column that is used otherwise: name the column of texts."
        )
    if not any(table.texts(column)):
        raise ValueError(
            f"Column {column!r} of {table.name} holds no text: name another with --text."
        )
    return Features(kind="text", columns=(column,), left_out=_without(free, [column]))


def _numeric(table: Table, free: Sequence[str]) -> Features:
    for column in free:
        slip = table.slip(column) if table.numbers(column) is None else None
        if slip is not None:
            raise ValueError(_bad_cell(table, column, slip, "no number"))
    columns = [column for column in free if _is_numeric(table.numbers(column))]
    if not columns:
        _suggest_embedding(table, free)
        longest = max(free, key=lambda column: _length(table.columns[column]), default=None)
        hint = (
            f", for example --text {longest}" if longest and _length(table.columns[longest]) else ""
        )
        raise ValueError(
            f"{table.name} has no numeric column besides those named: name a column of texts with "
            f"--text{hint}, or add numbers."
        )
    return Features(kind="numeric", columns=tuple(columns), left_out=_without(free, columns))


def _suggest_embedding(table: Table, free: Sequence[str]) -> None:
    """Raise where a column holds lists, which are features if they are asked for."""
    for column in free:
        first = next((cell for cell in table.columns[column] if isinstance(cell, list)), None)
        if first is not None:
            raise ValueError(
                f"{table.name} has no numeric column besides those named, but column {column!r} "
                f"holds lists of {len(first)} values: take them as features with --embedding "
                f"{column}."
            )


def _is_numeric(found: FloatArray | None) -> bool:
    """Whether a column holds numbers that are more than a count of the rows."""
    return found is not None and not (len(found) > 2 and bool((np.diff(found) == 1).all()))


def _length(cells: Sequence[Any]) -> int:
    return 0 if isinstance(cells, np.ndarray) else sum(len(as_text(cell)) for cell in cells[:1000])


def _block(table: Table, column: str) -> FloatArray:
    """Return a column of numbers, or of lists of numbers, as an array of shape (n, p)."""
    cells = table.columns[column]
    found = (
        _from_lists(cells, table, column) if isinstance(cells[0], list) else table.numbers(column)
    )
    if found is None:
        row = table.slip(column)
        if row is None:
            row = next(
                (
                    row
                    for row, cell in enumerate(cells)
                    if not is_missing(cell) and numbers([cell]) is None
                ),
                0,
            )
        raise ValueError(_bad_cell(table, column, row, "no number"))
    block = found.reshape(len(cells), -1)
    bad = np.flatnonzero(~np.isfinite(block).all(axis=1))
    if len(bad):
        raise ValueError(_bad_cell(table, column, int(bad[0]), "not a finite number"))
    large = np.flatnonzero((np.abs(block) > _LARGEST).any(axis=1))
    if len(large):
        raise ValueError(
            _bad_cell(table, column, int(large[0]), "so large that its square is no number")
        )
    return block


def _from_lists(cells: Sequence[Any], table: Table, column: str) -> FloatArray:
    try:
        return np.array(cells, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"Column {column!r} of {table.name} must hold lists of numbers, all of one length."
        ) from None


def _bad_cell(table: Table, column: str, row: int, said: str) -> str:
    cell = table.columns[column][row]
    place = f"Column {column!r} of {table.name}"
    remedy = f"fill in a number, drop the row, or leave the column out of audit and fit with --ignore {column}"
    if not as_text(cell):
        return f"{place} is empty in row {row}: {remedy}."
    if has_comma(cell) and not table.decimal_comma:
        said, remedy = (
            "a number with a decimal comma",
            "write a point in its place, or separate cells by semicolons",
        )
    return f"{place} holds {as_text(cell)[:40]!r} in row {row}, which is {said}: {remedy}."
