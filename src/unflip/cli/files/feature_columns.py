"""Features of a file: its columns by kind, the words of texts, or an embedding."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy as np

from unflip._utils.typing import FloatArray
from unflip.cli.files.number_cells import bad_cell, check_finite, column_numbers
from unflip.cli.files.tables import Table, as_text
from unflip.cli.files.typed_frame import (
    described_column,
    frame_of,
    list_column,
    remedy,
    typed_column,
)
from unflip.cli.text_layout import joined
from unflip.data.chunks import LARGEST
from unflip.features.table_columns import (
    BESIDE_EMBEDDING,
    BESIDE_TEXT,
    TableColumn,
)
from unflip.features.table_features import TableFeatures

Kind = Literal["numeric", "mixed", "text", "embedding"]

#: Block of the features of a folder of images.
IMAGES = "edges and colours of the images"
_N_NAMED = 4  # columns that a description names
#: Kinds of columns that can be beside texts and embeddings, and their plurals.
_PLURALS = {"number": "numbers", "boolean": "booleans", "category": "categories", "date": "dates"}


@dataclass(frozen=True, kw_only=True)
class Features:
    """The columns of the features.

    Attributes
    ----------
    kind : {"numeric", "mixed", "text", "embedding"}
        Kind of features; texts and embeddings may have other columns beside them.
    details : tuple of TableColumn
        All columns that could be features, with the reason why some are left out.
    """

    kind: Kind
    details: tuple[TableColumn, ...]

    @classmethod
    def of(cls, details: Sequence[TableColumn]) -> Features:
        """Return features whose kind is that of the columns that are used."""
        kinds = {each.kind for each in details if not each.left_out}
        if "text" in kinds:
            return cls(kind="text", details=tuple(details))
        if "embedding" in kinds:
            return cls(kind="embedding", details=tuple(details))
        is_numeric = kinds <= {"number", "boolean"}
        return cls(kind="numeric" if is_numeric else "mixed", details=tuple(details))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are used."""
        return tuple(each.name for each in self.details if not each.left_out)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The columns that are not used."""
        return tuple(each.name for each in self.details if each.left_out)

    def of_kind(self, *kinds: str) -> tuple[str, ...]:
        """Return the columns that are used, of some kinds."""
        return tuple(each.name for each in self.details if each.kind in kinds and not each.left_out)

    @property
    def named(self) -> str:
        """The columns of text by name, such as "columns 'title' and 'text'"."""
        texts = self.of_kind("text")
        columns = "column" if len(texts) == 1 else "columns"
        return f"{columns} {joined([repr(column) for column in texts])}"

    def __str__(self) -> str:
        if self.kind == "numeric":
            return _described("numeric column", "numeric columns", self.columns)
        groups = [
            _described(kind, plural, self.of_kind(kind))
            for kind, plural in _PLURALS.items()
            if self.of_kind(kind)
        ]
        if self.kind == "mixed":
            return joined(groups)
        main = f"the words of {self.named}"
        if self.kind == "embedding":
            columns = self.of_kind("embedding")
            main = _described("embedding column", "embedding columns", columns)
            if columns == (IMAGES,):
                main = IMAGES
        return joined([main, *groups])

    def with_dimension(self, n_features: int) -> str:
        """Describe the features; include their number if it differs from that of the columns."""
        has_lists = self.kind == "embedding" and n_features != len(self.columns)
        return f"{self}, {n_features} dimensions" if has_lists else str(self)


def _described(singular: str, plural: str, columns: Sequence[str]) -> str:
    """Return the number of columns and the names of the first, such as "2 dates (start, end)"."""
    named = ", ".join(columns[:_N_NAMED]) + ", ..." * (len(columns) > _N_NAMED)
    return f"{len(columns)} {singular if len(columns) == 1 else plural} ({named})"


def choose(
    table: Table,
    *,
    text: Sequence[str],
    embedding: str | None,
    reserved: Sequence[str],
    use: Sequence[str] = (),
) -> Features:
    """Choose the columns of the features.

    Parameters
    ----------
    table : Table
        The file.
    text : sequence of str
        Columns of text.
    embedding : str or None
        Prefix of the columns of an embedding. Without `text` and `embedding`, all columns are
        features, unless they look like an id or like text, or never vary.
    reserved : sequence of str
        Columns of labels, groups or row ids, and ignored columns.
    use : sequence of str
        Columns to use in any case; names may have wildcards.
    """
    free = [column for column in table.columns if column not in reserved]
    used = _used_anyway(table, use, free)
    if text and embedding is not None:
        raise ValueError("--text and --embedding exclude each other: pass one of them.")
    if text:
        _check_texts(table, text, reserved)
        main = {name: TableColumn(name=name, kind="text") for name in text}
        return _beside(table, main, BESIDE_TEXT, free, used)
    if embedding is not None:
        candidates = [*free, *table.blocks]
        columns = [column for column in candidates if column.startswith(embedding)]
        if not columns:
            raise ValueError(
                f"{table.name} has no column with the prefix {embedding!r}: check --embedding."
            )
        main = {name: TableColumn(name=name, kind="embedding") for name in columns}
        return _beside(table, main, BESIDE_EMBEDDING, candidates, used)
    features = Features.of(
        [described_column(table, column, forced=column in used) for column in free]
    )
    if not features.columns:
        raise ValueError(_nothing_to_use(table, features))
    return features


def values(features: Features, table: Table) -> Any:
    """Return the columns as a DataFrame; raise ValueError at a cell of another kind."""
    columns = []
    for each in features.details:
        if each.left_out:
            continue
        if each.name not in table.columns and each.name not in table.blocks:
            file = ", or pass a file of features with --embedding" * (each.kind == "embedding")
            raise ValueError(
                f"{table.name} has no column {each.name!r}, which is a feature of the model: add "
                f"it{file}."
            )
        if each.kind == "embedding":
            columns.append(list_column(embedding_block(table, each.name), each.name))
        else:
            columns.append(typed_column(table, each.name, each.kind))
    return frame_of(columns)


def fit_features(features: Features, frame: Any) -> tuple[TableFeatures, Any]:
    """Return the fitted transformer of the columns, and the features."""
    recipe = TableFeatures(
        features.of_kind("text"), embedding=features.of_kind("embedding"), use=features.columns
    )
    return recipe, recipe.fit_transform(frame)


def _used_anyway(table: Table, use: Sequence[str], free: Sequence[str]) -> set[str]:
    """Return the columns that --use names; raise ValueError if there is none, or it has a role."""
    used: set[str] = set()
    for name in use:
        matches = [column for column in free if column == name or fnmatchcase(column, name)]
        if not matches:
            table.column(name)
            raise ValueError(f"--use {name} is a column with another role: name another.")
        used.update(matches)
    return used


def _beside(
    table: Table,
    main: dict[str, TableColumn],
    reason: str,
    free: Sequence[str],
    used: set[str],
) -> Features:
    """Return texts or an embedding, with the columns beside them that --use names."""
    details = []
    for column in free:
        if column in main:
            details.append(main[column])
        elif column in used:
            details.append(described_column(table, column, forced=True))
        else:
            details.append(TableColumn(name=column, kind="other", left_out=reason))
    return Features.of(details)


def _check_texts(table: Table, columns: Sequence[str], reserved: Sequence[str]) -> None:
    """Raise ValueError if a column of text is empty, has another role or is named twice."""
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


def _nothing_to_use(table: Table, features: Features) -> str:
    """Return the error message about a file without features."""
    for name in table.blocks:
        return (
            f"{table.name} has no column to use as a feature, but an array {name!r}: use it with "
            f"--embedding {shlex.quote(name)}."
        )
    for column in features.left_out:
        first = next((cell for cell in table.columns[column] if isinstance(cell, list)), None)
        if first is not None:
            return (
                f"{table.name} has no column to use as a feature, but column {column!r} has lists "
                f"of {len(first)} values: use them as features with --embedding "
                f"{shlex.quote(column)}."
            )
    longest = max(
        features.left_out, key=lambda column: _length(table.columns[column]), default=None
    )
    hint = ""
    if longest and _length(table.columns[longest]):
        hint = f", for example --text {shlex.quote(longest)}"
    reasons = "; ".join(f"{each.name!r}: {each.left_out}" for each in features.details)
    why = f" ({reasons})" if reasons else ""
    return (
        f"{table.name} has no column to use as a feature{why}: name a column of text with "
        f"--text{hint}, or add columns."
    )


def _length(cells: Sequence[Any]) -> int:
    return 0 if isinstance(cells, np.ndarray) else sum(len(as_text(cell)) for cell in cells[:1000])


def embedding_block(table: Table, column: str) -> FloatArray:
    """Return a column of numbers, of lists of numbers, or an array, as one of shape (n, p)."""
    cells: Any = table.blocks[column] if column in table.blocks else table.columns[column]
    advice = remedy(column)
    if column in table.blocks:
        values = np.asarray(cells, dtype=float)
    elif isinstance(cells[0], list):
        values = _from_lists(cells, table, column)
    else:
        values = column_numbers(table, column, advice)
    block = values.reshape(len(cells), -1)
    check_finite(table, column, block, advice)
    large = np.flatnonzero((np.abs(block) > LARGEST).any(axis=1))
    if len(large):
        problem = "so large that its square overflows float64"
        raise ValueError(bad_cell(table, column, int(large[0]), problem, advice))
    return block


def _from_lists(cells: Sequence[Any], table: Table, column: str) -> FloatArray:
    try:
        return np.array(cells, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"Column {column!r} of {table.name} must have lists of numbers of the same length."
        ) from None
