"""Words and pairs of words as features of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline

from unflip._utils.typing import FloatArray

# With more rows of words, their Gram matrix (72 MB at 3000) gets too large, and SVD reduces them to
# _N_COMPONENTS features; both are documented in docs/command_line.md.
_MOST_SPARSE_ROWS = 3000
_N_COMPONENTS = 500
# Most frequent words and pairs of words that are features: limits the size of a saved model.
_MOST_WORDS = 50_000


def fit_words(texts: Sequence[str], columns: str) -> tuple[Pipeline, Any]:
    """Return the fitted transformer of texts, and their features.

    Words and pairs of words are weighted by TF-IDF; with many rows, a truncated SVD reduces them to
    500 components.

    Parameters
    ----------
    texts : sequence of str
        The texts.
    columns : str
        Their columns, for errors.
    """
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


def word_names(pipeline: Pipeline) -> NDArray[Any]:
    """Return the words and pairs of words."""
    return np.asarray(pipeline["words"].get_feature_names_out(), dtype=object)


def word_weights(pipeline: Pipeline, weights: FloatArray) -> FloatArray:
    """Return the weight of each word for weights of the features."""
    if "directions" not in pipeline.named_steps:
        return weights
    return np.asarray(weights @ pipeline["directions"].components_, dtype=float)
