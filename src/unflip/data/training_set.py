"""The training set: rows, observed labels or votes, and weights, validated and encoded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unflip._utils.arrays import as_numpy, like, one_hot
from unflip._utils.typing import Array, FloatArray, Rows
from unflip.data.duplicates import DistinctRows
from unflip.labels.classes import true_codes
from unflip.labels.votes import Votes


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Rows with observed labels, as passed by the user and prepared for a fit.

    Attributes
    ----------
    X : array, sparse matrix or LazyRows of shape (n, p)
        All rows.
    y : array of shape (n,) or Votes
        Observed labels, or votes.
    weights : array of shape (n,)
        Weights, in the namespace and on the device of the rows.
    classes : ndarray of shape (k,)
        Labels, sorted.
    rows : DistinctRows
        The distinct rows, and the map between the index spaces.
    codes : array of shape (n_positive,)
        Class index of each member; with votes, the number of the member.
    votes : Votes or None
        Votes on the members.
    is_local : bool
        Whether the rows are features of a transformer, whose fits may be local as those of kernels.
    """

    X: Rows
    y: Array | Votes
    weights: Array
    classes: NDArray[Any]
    rows: DistinctRows
    codes: Array
    votes: Votes | None = None
    is_local: bool = False

    @property
    def n_rows(self) -> int:
        """Number of all rows, zero-weight rows included."""
        return self.rows.n_all

    @property
    def observed(self) -> FloatArray:
        """Proportions of the observed classes, (k,)."""
        return self.rows.shares(self.codes)

    @property
    def label_shares(self) -> Array:
        """Share of each class in the label or votes of each member, (n_positive, k); 0 without."""
        if self.votes is None:
            return one_hot(self.codes, len(self.classes))
        return self.votes.counts / np.maximum(self.votes.n_votes, 1)[:, None]

    def with_single_votes(self, votes: Votes) -> TrainingSet:
        """Return the rows that have a vote, with that vote as their label.

        Parameters
        ----------
        votes : Votes
            Votes on the members, at most one on each.
        """
        voted = self.rows.members[votes.voted]
        X = self.X[voted]
        weights = self.weights[voted]
        y = votes.classes[votes.label]
        rows = DistinctRows.of(X, weights)
        return TrainingSet(X, y, weights, votes.classes, rows, votes.label, is_local=self.is_local)

    def trusted_codes(self, y_trusted: ArrayLike | None) -> Array | None:
        """Return the true class of each member, `UNCHECKED` if unknown; None without any."""
        if y_trusted is None:
            return None
        members = as_numpy(self.rows.members)
        codes = true_codes(y_trusted, self.n_rows, members, self.classes, "y_trusted")
        return like(codes, self.codes)
