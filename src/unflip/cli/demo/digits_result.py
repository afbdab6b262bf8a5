"""Results of `unflip demo`, which the text and the picture show."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unflip._utils.typing import IntArray
from unflip.auditing.report import Audit


@dataclass(frozen=True)
class Accuracy:
    """Accuracy of a classifier on new images.

    Attributes
    ----------
    estimated, error : float
        Estimate from the noisy training labels, and its standard error (NaN if there is none).
    measured : float
        Share of correct predictions on new images with clean labels.
    """

    estimated: float
    error: float
    measured: float


@dataclass(frozen=True, eq=False)
class DigitsDemo:
    """Results of the demonstration.

    Attributes
    ----------
    images : ndarray of uint8, shape (n, height, width)
        Training images, dark on white.
    observed, true : ndarray of shape (n,)
        Noisy and true labels of the training images.
    n_new : int
        Number of new images.
    audit : Audit
        The audit of the noisy labels.
    disagreement : ndarray of bool, shape (n,)
        Whether the cross-validated prediction of logistic regression differs from the label.
    unflip, logistic : Accuracy
        Accuracies of classifiers fitted to the noisy labels.
    clean : float
        Measured accuracy of logistic regression fitted to the true labels.
    """

    images: NDArray[np.uint8]
    observed: IntArray
    true: IntArray
    n_new: int
    audit: Audit
    disagreement: NDArray[np.bool_]
    unflip: Accuracy
    logistic: Accuracy
    clean: float

    @cached_property
    def wrong(self) -> NDArray[np.bool_]:
        """Whether the label of each training image is wrong."""
        return np.asarray(self.observed != self.true)

    @cached_property
    def suspects(self) -> NDArray[np.bool_]:
        """Whether each training image is a suspect of the audit."""
        rows = np.asarray(self.audit.suspects["row"])[: self.audit.n_suspects]
        return np.isin(np.arange(len(self.true)), rows)
