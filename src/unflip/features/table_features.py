"""Features of a table: numbers, booleans, categories, dates and texts, scaled for linear fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import hstack, issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from unflip._utils.typing import FloatArray
from unflip.features.column_values import Part, number_lists
from unflip.features.table_columns import (
    BESIDE_EMBEDDING,
    BESIDE_TEXT,
    IGNORED,
    TableColumn,
    as_frame,
    check_column,
    column_of,
    fewest_rows,
    joined_texts,
    named_columns,
    parts_of,
)
from unflip.features.word_features import fit_words, word_names, word_weights

_MISSING = "(missing)"
_RARE = "(rare)"


class _Input(NamedTuple):
    """A part of a column, with the column's name."""

    column: Any
    part: Part


class TableFeatures(TransformerMixin, BaseEstimator):
    """Turn a DataFrame into features for a linear classifier.

    Each column is treated by its kind, with the transformers of scikit-learn:

    * **numbers**, booleans included: standardized, missing values replaced by the median;
    * **categories** (strings of few words): an indicator of each level, one of missing values, and
      one of all levels in fewer than 5 rows (or a tenth of the rows). New levels
      count as rare, and have no indicator if the fit had no rare level;
    * **dates**, also in strings: seconds elapsed, year, day, and indicators of month, weekday and
      hour;
    * **texts**, which `text` names: TF-IDF of words and pairs of words, beyond 3000 rows reduced to
      500 dimensions by an SVD. Several columns are joined;
    * **embeddings**, which `embedding` names: unchanged.

    Numbers and dates that are missing in 5 rows or more have an indicator of that.

    Columns are left out if they look like an id (all values differ, or number the rows), look like
    text that `text` does not name, or never vary. ``columns_`` says why.

    Parameters
    ----------
    text : str or sequence of str, optional
        Columns of text. Their words are the only features, unless `use` adds columns.
    embedding : str or sequence of str, optional
        Columns of an embedding, of numbers or lists of numbers. They are the only features, unless
        `use` adds columns.
    use : str or sequence of str, optional
        Columns to use though they would be left out: beside texts or an embedding, or because they
        look like an id.
    ignore : str or sequence of str, optional
        Columns that are not features. All names may have wildcards: ``use="*"`` uses all columns.

    Attributes
    ----------
    columns_ : list of TableColumn
        What became of each column: ``name``, ``kind``, ``n_features``, and ``left_out``, the reason
        if it is not used.
    feature_names_in_ : ndarray of shape (n_columns,)
        Names of the columns.
    n_features_in_ : int
        Number of columns.
    names_ : list of str
        Names of the features of all columns but texts.

    Examples
    --------
    >>> import pandas as pd
    >>> from unflip.features import TableFeatures
    >>> frame = pd.DataFrame({"age": [20, None, 40] * 10, "sex": ["f", "m", None] * 10})
    >>> features = TableFeatures()
    >>> features.fit_transform(frame)[:3]
    array([[-1.,  0.,  0.,  1.,  0.],
           [ 0.,  1.,  0.,  0.,  1.],
           [ 1.,  0.,  1.,  0.,  0.]])
    >>> features.get_feature_names_out().tolist()
    ['age', 'age missing', 'sex=(missing)', 'sex=f', 'sex=m']
    """

    def __init__(
        self,
        text: str | Sequence[str] | None = None,
        *,
        embedding: str | Sequence[str] | None = None,
        use: str | Sequence[str] | None = None,
        ignore: str | Sequence[str] | None = None,
    ) -> None:
        self.text = text
        self.embedding = embedding
        self.use = use
        self.ignore = ignore

    def fit(self, X: Any, y: object = None) -> Self:
        """Learn the columns of a DataFrame; `y` is ignored."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: object = None, **fit_params: object) -> Any:
        """Learn the columns of a DataFrame, and return their features; `y` is ignored."""
        frame = as_frame(X)
        self.feature_names_in_ = np.array([*frame.columns], dtype=object)
        self.n_features_in_ = frame.shape[1]
        self.columns_ = self._columns_of(frame)
        self.words_: Pipeline | None = None
        self.table_: ColumnTransformer | None = None
        blocks = []
        names: list[str] = []
        text = self._used("text")
        if text:
            named = f"column{'s' * (len(text) > 1)} {', '.join(map(repr, text))}"
            self.words_, rows = fit_words(joined_texts(frame, text), named)
            self._count_features({text[0]: rows.shape[1]})
            blocks.append(rows)
        for name in self._used("embedding"):
            rows = number_lists(frame[name])
            self._count_features({name: rows.shape[1]})
            is_list = rows.shape[1] > 1
            names += [
                f"{name}[{place}]" if is_list else str(name) for place in range(rows.shape[1])
            ]
            blocks.append(rows)
        inputs = self._inputs(frame)
        if inputs:
            self.table_ = _transformer(inputs)
            blocks.append(self.table_.fit_transform(_frame_of(inputs)))
            origins = _origins(self.table_, inputs)
            self._count_features(Counter(column for column, _ in origins))
            names += [name for _, name in origins]
        if not blocks:
            raise ValueError(_nothing_to_use(self.columns_))
        self.names_ = names
        return _side_by_side(blocks)

    @property
    def named_features_(self) -> NDArray[Any]:
        """Names of the inputs that explain a score: words, columns, and "column=level"."""
        words = [] if self.words_ is None else word_names(self.words_).tolist()
        return np.array([*words, *self.names_], dtype=object)

    def transform(self, X: Any) -> Any:
        """Return the features of a DataFrame with the columns of the fit, and perhaps others.

        Returns
        -------
        ndarray or sparse matrix of shape (n, p)
            The features; sparse if most of them are zero.
        """
        check_is_fitted(self)
        return self._features(X, self.words_)

    def named_rows(self, X: Any) -> Any:
        """Return the values of the ``named_features_`` in each row of a DataFrame.

        ``named_rows(X) @ named_weights(w)`` equals ``transform(X) @ w``.

        Returns
        -------
        ndarray or sparse matrix of shape (n, q)
            The values; sparse if most of them are zero.
        """
        check_is_fitted(self)
        return self._features(X, None if self.words_ is None else self.words_["words"])

    def named_weights(self, weights: FloatArray) -> FloatArray:
        """Return the weights of the ``named_features_`` for weights of the features (p,)."""
        check_is_fitted(self)
        weights = np.asarray(weights, dtype=float)
        if self.words_ is None:
            return weights
        n_features = len(self._text_features())
        of_words = word_weights(self.words_, weights[:n_features])
        return np.concatenate([of_words, weights[n_features:]])

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the features; `input_features` is ignored."""
        check_is_fitted(self)
        if self.words_ is None:
            return self.named_features_
        return np.array([*self._text_features(), *self.names_], dtype=object)

    def new_levels(self, X: Any) -> dict[Any, list[Any]]:
        """Return the values of categories that the fit did not see: by column, one for each row."""
        check_is_fitted(self)
        categories = set(self._used("category"))
        if self.table_ is None or not categories:
            return {}
        inputs = [each for each in self._inputs(as_frame(X)) if not each.part.is_number]
        known = self.table_.named_transformers_["levels"].categories_
        found = {
            column: [level for level in part.values if level not in {None, *levels.tolist()}]
            for (column, part), levels in zip(inputs, known, strict=True)
            if column in categories
        }
        return {column: values for column, values in found.items() if values}

    def example(self) -> Any:
        """Return a table of one row that can be transformed, with all that is possible missing."""
        check_is_fitted(self)
        cells: dict[Any, list[Any]] = {}
        for column in self.columns_:
            if column.kind == "embedding":
                cells[column.name] = [[0.0] * column.n_features]
            elif not column.left_out:
                cells[column.name] = [None]
        return import_module("pandas").DataFrame(cells, dtype=object)

    def _used(self, kind: str) -> list[Any]:
        """Return the columns of a kind that are used."""
        return [each.name for each in self.columns_ if each.kind == kind and not each.left_out]

    def _text_features(self) -> NDArray[Any]:
        """Return the names of the features of texts: words, or directions of the SVD."""
        if self.words_ is None or "directions" not in self.words_.named_steps:
            return word_names(self.words_)
        n_directions = len(self.words_["directions"].components_)
        return np.array([f"text direction {place}" for place in range(n_directions)], dtype=object)

    def _columns_of(self, frame: Any) -> list[TableColumn]:
        """Return what becomes of each column."""
        names = list(frame.columns)
        text = named_columns(self.text, names, "text")
        use = named_columns(self.use, names, "use")
        ignored = named_columns(self.ignore, names, "ignore")
        embedding = named_columns(self.embedding, names, "embedding")
        columns = []
        for name in names:
            if name in ignored:
                if name in text:
                    raise ValueError(f"text={name!r} is also named by ignore: name it once.")
                columns.append(TableColumn(name=name, kind="other", left_out=IGNORED))
            elif name in text:
                columns.append(TableColumn(name=name, kind="text"))
            elif name in embedding:
                columns.append(TableColumn(name=name, kind="embedding"))
            elif embedding and name not in use:
                columns.append(TableColumn(name=name, kind="other", left_out=BESIDE_EMBEDDING))
            elif text and name not in use:
                columns.append(TableColumn(name=name, kind="other", left_out=BESIDE_TEXT))
            else:
                columns.append(column_of(frame[name], forced=name in use))
        return columns

    def _count_features(self, counts: dict[Any, int]) -> None:
        self.columns_ = [
            replace(column, n_features=counts.get(column.name, column.n_features))
            for column in self.columns_
        ]

    def _features(self, X: Any, words: Any) -> Any:
        """Return the features of a DataFrame, with this transformer of the texts, if any."""
        frame = as_frame(X)
        for column in self.columns_:
            if not column.left_out:
                check_column(column.name, frame.columns, "column")
        blocks = []
        if words is not None:
            blocks.append(words.transform(joined_texts(frame, self._used("text"))).astype(float))
        blocks += [
            _same_dimension(number_lists(frame[column.name]), column)
            for column in self.columns_
            if column.kind == "embedding"
        ]
        if self.table_ is not None:
            blocks.append(self.table_.transform(_frame_of(self._inputs(frame))))
        return _side_by_side(blocks)

    def _inputs(self, frame: Any) -> list[_Input]:
        """Return the parts of all columns that are used, but texts."""
        return [
            _Input(column.name, part)
            for column in self.columns_
            if not column.left_out and column.kind not in ("text", "embedding")
            for part in parts_of(frame[column.name], column)
        ]


def _transformer(inputs: Sequence[_Input]) -> ColumnTransformer:
    """Return the transformers of all columns but texts, not yet fitted."""
    fewest = fewest_rows(len(inputs[0].part.values))
    places = range(len(inputs))
    numbers = [place for place in places if inputs[place].part.is_number]
    levels = [place for place in places if not inputs[place].part.is_number]
    missing = [place for place in numbers if np.isnan(inputs[place].part.values).sum() >= fewest]
    # Scaled before missing values are imputed, so that imputed values do not change the scale.
    scaled = Pipeline([("scale", StandardScaler()), ("impute", SimpleImputer(strategy="median"))])
    # Indicators keep their variance of at most 1/4: scaled to 1, those of rare levels would be
    # features with a few large values.
    encoder = OneHotEncoder(min_frequency=fewest, handle_unknown="infrequent_if_exist")
    return ColumnTransformer(
        [
            ("numbers", scaled, numbers),
            ("missing", MissingIndicator(features="all"), missing),
            ("levels", encoder, levels),
        ]
    )


def _frame_of(inputs: Sequence[_Input]) -> Any:
    """Return the parts as a DataFrame whose columns are their places."""
    pandas = import_module("pandas")
    columns = [
        part.values
        if part.is_number
        else np.array([_MISSING if level is None else level for level in part.values], dtype=object)
        for _, part in inputs
    ]
    return pandas.DataFrame(dict(enumerate(columns)))


def _origins(fitted: ColumnTransformer, inputs: Sequence[_Input]) -> list[tuple[Any, str]]:
    """Return the column and the name of each feature."""
    places = {name: of_columns for name, _, of_columns in fitted.transformers}
    origins = [(inputs[place].column, inputs[place].part.name) for place in places["numbers"]]
    origins += [
        (inputs[place].column, f"{inputs[place].part.name} missing") for place in places["missing"]
    ]
    encoder = fitted.named_transformers_["levels"]
    for number, place in enumerate(places["levels"]):
        rare = encoder.infrequent_categories_[number]
        levels = encoder.categories_[number].tolist()
        pooled = set() if rare is None else {*rare}
        named = [level for level in levels if level not in pooled] + [_RARE] * bool(pooled)
        origins += [(inputs[place].column, f"{inputs[place].part.name}={level}") for level in named]
    return origins


def _same_dimension(rows: FloatArray, column: TableColumn) -> FloatArray:
    """Return numbers; raise ValueError if there are not as many as in the fit."""
    if rows.shape[1] != column.n_features:
        raise ValueError(
            f"Column {column.name!r} has {rows.shape[1]} numbers in each row, but had "
            f"{column.n_features} in the fit: use the same embedding."
        )
    return rows


def _side_by_side(blocks: Sequence[Any]) -> Any:
    """Return blocks of features as one matrix."""
    if len(blocks) == 1:
        return blocks[0]
    if any(map(issparse, blocks)):
        return hstack(blocks, format="csr")
    return np.hstack(blocks)


def _nothing_to_use(columns: Sequence[TableColumn]) -> str:
    """Return the error message about a table without features."""
    reasons = "; ".join(f"{column.name!r}: {column.left_out}" for column in columns)
    return (
        f"X has no column to use as a feature ({reasons}): name columns of text with "
        "text=, or others with use=."
    )
