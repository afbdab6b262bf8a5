"""Rows that are right by one classification, less those that are right by another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unflip._utils.typing import FloatArray, IntArray
from unflip.calibration.labelled_scores import LabelledScores


@dataclass(frozen=True, eq=False)
class ClassContrast:
    """For each row 1[true class = first] − 1[true class = second], or the first term alone.

    Attributes
    ----------
    first : ndarray of shape (n,)
        A class of each row.
    second : ndarray of shape (n,) or None
        Another class of each row.
    """

    first: IntArray
    second: IntArray | None = None

    def subset(self, rows: IntArray) -> ClassContrast:
        """Return the contrast of some rows."""
        second = None if self.second is None else self.second[rows]
        return ClassContrast(self.first[rows], second)

    def observed(self, truth: IntArray) -> FloatArray:
        """Return the contrast for known true classes, (n,)."""
        value = np.asarray(truth == self.first, dtype=float)
        return value if self.second is None else value - (truth == self.second)

    def expected(self, posterior: FloatArray) -> FloatArray:
        """Return its expectation under P(true class | row), (n,)."""
        rows = np.arange(len(posterior))
        value = posterior[rows, self.first]
        return np.asarray(value if self.second is None else value - posterior[rows, self.second])

    def variance(self, posterior: FloatArray) -> FloatArray:
        """Return its variance under P(true class | row), (n,)."""
        rows = np.arange(len(posterior))
        squares = posterior[rows, self.first]
        if self.second is not None:
            differ = self.first != self.second
            squares = (squares + posterior[rows, self.second]) * differ
        return np.asarray(squares - self.expected(posterior) ** 2)

    def gradients(self, rows: LabelledScores, posterior: FloatArray) -> FloatArray:
        """Return the derivatives of the expectation by the parameters of the model, (n, d)."""
        gradients = rows.gradients(posterior, self.first)
        if self.second is None:
            return gradients
        return np.asarray(gradients - rows.gradients(posterior, self.second))
