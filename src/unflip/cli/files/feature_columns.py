"""Features of a file: numeric columns, the words of a text column, or an embedding."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from unflip._utils.typing import FloatArray
from unflip.cli.files.number_cells import bad_cell, check_finite, column_numbers
from unflip.cli.files.tables import Table, as_text
from unflip.cli.text_layout import joined
from unflip.data.chunks import LARGEST

Kind = Literal["numeric", "text", "embedding"]

# With more rows of words, their Gram matrix (72 MB at 3000) gets too large, and SVD reduces them to
# _N_COMPONENTS features; both are documented in docs/command_line.md.
_MOST_SPARSE_ROWS = 3000
_N_COMPONENTS = 500
# Most frequent words and pairs of words that are features: limits the size of a saved model.
_MOST_WORDS = 50_000


@dataclass(frozen=True, kw_only=True)
class Features:
    """The columns of the features.

    Attributes
    ----------
    kind : {"numeric", "text", "embedding"}
        Kind of features.
    columns : tuple of str
        The columns.
    left_out : tuple of str
        Columns that are not used at all.
    """

    kind: Kind
    columns: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.kind == "text":
            return f"the words of {self.named}"
        named = ", ".join(self.columns[:4]) + (", ..." if len(self.columns) > 4 else "")
        kind = "numeric" if self.kind == "numeric" else "embedding"
        return f"{len(self.columns)} {kind} column{'s' * (len(self.columns) > 1)} ({named})"

    @property
    def named(self) -> str:
        """The columns by name, such as "columns 'title', 'text'"."""
        columns = "column" if len(self.columns) == 1 else "columns"
        return f"{columns} {joined([repr(column) for column in self.columns])}"

    def with_dimension(self, n_features: int) -> str:
        """Describe the features; include their number if it differs from that of the columns."""
        has_lists = self.kind == "embedding" and n_features != len(self.columns)
        return f"{self}, {n_features} dimensions" if has_lists else str(self)


def choose(
    table: Table, *, text: Sequence[str], embedding: str | None, reserved: Sequence[str]
) -> Features:
    """Choose the columns of the features.

    Parameters
    ----------
    table : Table
        The file.
    text : sequence of str
        Columns of text.
    embedding : str or None
        Prefix of the columns of an embedding. Without `text` and `embedding`, all numeric columns
        are features.
    reserved : sequence of str
        Columns of labels, groups or row ids, and ignored columns.
    """
    free = [column for column in table.columns if column not in reserved]
    if text and embedding is not None:
        raise ValueError("--text and --embedding exclude each other: pass one of them.")
    if text:
        return _text(table, text, reserved, free)
    if embedding is not None:
        candidates = [*free, *table.blocks]
        columns = [column for column in candidates if column.startswith(embedding)]
        if not columns:
            raise ValueError(
                f"{table.name} has no column with the prefix {embedding!r}: check --embedding."
            )
        return Features(kind="embedding", columns=tuple(columns), left_out=_without(free, columns))
    return _numeric(table, free)


def values(features: Features, table: Table) -> FloatArray | list[str]:
    """Return the texts, or the numbers (n, p); raise ValueError at a cell that is not a number."""
    for column in features.columns:
        if column not in table.columns and column not in table.blocks:
            file = ", or pass a file of features with --embedding" * (features.kind == "embedding")
            raise ValueError(
                f"{table.name} has no column {column!r}, which is a feature of the model: add "
                f"it{file}."
            )
    if features.kind == "text":
        columns = [table.texts(column) for column in features.columns]
        return ["\n".join(filter(None, texts)) for texts in zip(*columns, strict=True)]
    blocks = [_block(table, column) for column in features.columns]
    return np.hstack(blocks)


def fit_features(features: Features, column_values: FloatArray | list[str]) -> tuple[Pipeline, Any]:
    """Return the fitted transformer of the columns, and the features.

    Numeric columns are standardized, and embeddings stay unchanged. Words and pairs of words are
    weighted by TF-IDF; with many rows, a truncated SVD reduces them to 500 components.
    """
    if features.kind == "numeric":
        recipe = Pipeline([("standardised", StandardScaler())])
        return recipe, recipe.fit_transform(column_values)
    if features.kind == "embedding":
        return Pipeline([("as_they_are", "passthrough")]), column_values
    return _fit_words(column_values, features.named)


def _fit_words(texts: Any, columns: str) -> tuple[Pipeline, Any]:
    words = TfidfVectorizer(
        sublinear_tf=True, ngram_range=(1, 2), min_df=2, max_features=_MOST_WORDS, dtype=np.float32
    )
    try:
        rows = words.fit_transform(texts)
    except ValueError:
        raise ValueError(
            f"There is no word that occurs in two rows of {columns}: name a column of text."
        ) from None
    # As Python integers, because a saved model stores each NumPy integer in a file of its own.
    words.vocabulary_ = {word: int(place) for word, place in words.vocabulary_.items()}
    if rows.shape[0] <= _MOST_SPARSE_ROWS or rows.shape[1] <= 2 * _N_COMPONENTS:
        return Pipeline([("words", words)]), rows.astype(float)
    # scikit-learn 1.7 and 1.8 do not accept "QR", so "LU" orthogonalizes between the iterations.
    svd = TruncatedSVD(_N_COMPONENTS, n_iter=2, power_iteration_normalizer="LU", random_state=0)
    reduced = svd.fit_transform(rows).astype(float)
    return Pipeline([("words", words), ("directions", svd)]), reduced


def _without(columns: Sequence[str], used: Sequence[str]) -> tuple[str, ...]:
    taken = set(used)
    return tuple(column for column in columns if column not in taken)


def _text(
    table: Table, columns: Sequence[str], reserved: Sequence[str], free: Sequence[str]
) -> Features:
    for column in columns:
        if column in reserved:
            raise ValueError(
                f"--text {column} is a column with another role: name the column of text."
            )
        if columns.count(column) > 1:
            raise ValueError(f"--text {column} is given twice: name each column once.")
        if not any(table.texts(column)):
            raise ValueError(
                f"Column {column!r} of {table.name} has no text: name another with --text."
            )
    return Features(kind="text", columns=tuple(columns), left_out=_without(free, columns))


def _numeric(table: Table, free: Sequence[str]) -> Features:
    for column in free:
        row = table.non_number(column) if table.numbers(column) is None else None
        if row is not None:
            raise ValueError(bad_cell(table, column, row, "not a number", _remedy(column)))
    columns = [column for column in free if _is_numeric(table.numbers(column))]
    if not columns:
        _suggest_embedding(table, free)
        longest = max(free, key=lambda column: _length(table.columns[column]), default=None)
        hint = ""
        if longest and _length(table.columns[longest]):
            hint = f", for example --text {shlex.quote(longest)}"
        raise ValueError(
            f"{table.name} has no numeric column to use as a feature: name a column of text with "
            f"--text{hint}, or add numeric columns."
        )
    return Features(kind="numeric", columns=tuple(columns), left_out=_without(free, columns))


def _suggest_embedding(table: Table, free: Sequence[str]) -> None:
    """Raise ValueError if there are lists or arrays, which --embedding can use as features."""
    for name in table.blocks:
        raise ValueError(
            f"{table.name} has no numeric column to use as a feature, but an array {name!r}: use "
            f"it as features with --embedding {shlex.quote(name)}."
        )
    for column in free:
        first = next((cell for cell in table.columns[column] if isinstance(cell, list)), None)
        if first is not None:
            raise ValueError(
                f"{table.name} has no numeric column to use as a feature, but column {column!r} "
                f"has lists of {len(first)} values: use them as features with --embedding "
                f"{shlex.quote(column)}."
            )


def _is_numeric(column: FloatArray | None) -> bool:
    """Whether a column holds numbers other than row numbers."""
    if column is None:
        return False
    with np.errstate(invalid="ignore", over="ignore"):  # infinite numbers raise an error later
        are_row_numbers = len(column) > 2 and bool((np.diff(column) == 1).all())
    return not are_row_numbers


def _length(cells: Sequence[Any]) -> int:
    return 0 if isinstance(cells, np.ndarray) else sum(len(as_text(cell)) for cell in cells[:1000])


def _block(table: Table, column: str) -> FloatArray:
    """Return a column of numbers, of lists of numbers, or an array, as one of shape (n, p)."""
    cells: Any = table.blocks[column] if column in table.blocks else table.columns[column]
    remedy = _remedy(column)
    if column in table.blocks:
        values = np.asarray(cells, dtype=float)
    elif isinstance(cells[0], list):
        values = _from_lists(cells, table, column)
    else:
        values = column_numbers(table, column, remedy)
    block = values.reshape(len(cells), -1)
    check_finite(table, column, block, remedy)
    large = np.flatnonzero((np.abs(block) > LARGEST).any(axis=1))
    if len(large):
        problem = "so large that its square overflows float64"
        raise ValueError(bad_cell(table, column, int(large[0]), problem, remedy))
    return block


def _from_lists(cells: Sequence[Any], table: Table, column: str) -> FloatArray:
    try:
        return np.array(cells, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"Column {column!r} of {table.name} must have lists of numbers of the same length."
        ) from None


def _remedy(column: str) -> str:
    return (
        "fill in a number (for example the median of the column), remove the row, or ignore the "
        f"column in audit and fit with --ignore {shlex.quote(column)}"
    )
