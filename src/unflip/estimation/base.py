"""What every estimator of noise rates has in common: its results, and intervals around them."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import ndtri
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from unflip._arrays import as_numpy, largest_magnitude
from unflip._typing import FloatArray, Rows
from unflip._validation import as_number, check_squares, shown
from unflip.centred import DenseRows
from unflip.noise import NoiseModel


class NoiseEstimator(BaseEstimator):
    """Estimates how labels were flipped.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        Labels, sorted.
    noise_ : NoiseModel
        The estimated rates and true class proportions.
    noise_std_ : ndarray of shape (k, k)
        Standard error of each entry of ``noise_.transition``; for two classes that of ε₊ is ``noise_std_[1, 0]`` and
        that of ε₋ ``noise_std_[0, 1]``.
    """

    classes_: NDArray[Any]
    noise_: NoiseModel
    noise_std_: FloatArray

    def __sklearn_tags__(self) -> Tags:
        """Labels are needed; rows may be sparse."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def interval(self, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper ends of intervals that hold each entry of the transition with this confidence."""
        check_is_fitted(self)
        reach = ndtri((1 + checked_confidence(confidence)) / 2) * self.noise_std_
        estimate = self.noise_.transition
        return np.clip(estimate - reach, 0, 1), np.clip(estimate + reach, 0, 1)


def check_magnitude(X: Rows) -> None:
    """Raise where squares of the features are no numbers, in a pass over the rows."""
    if issparse(X):
        largest = np.abs(X.data)
    else:
        rows = DenseRows.of_given(X)
        largest = array_namespace(rows.weights).empty_like(rows.weights)
        rows.fill(lambda block: (largest_magnitude(block),), largest)
    check_squares(float(as_numpy(largest).max(initial=0.0)), X.shape[0] * X.shape[1])


def checked_confidence(confidence: float) -> float:
    """Return the confidence, or an error where it is not a probability between 0 and 1."""
    share = as_number(confidence, "confidence")
    if not 0 < share < 1:
        raise ValueError(f"confidence = {shown(confidence)} must lie strictly between 0 and 1, for example 0.95.")
    return share
