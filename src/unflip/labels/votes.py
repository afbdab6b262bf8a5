"""Votes of several annotators on the class of each row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from unflip._utils.typing import FloatArray, IntArray, SparseArray
from unflip._utils.validation import as_array, as_count, shown
from unflip.labels.classes import is_missing

#: Class index of a row without any vote.
UNLABELLED = -1


@dataclass(frozen=True, eq=False, repr=False)
class Votes:
    """Who said what of which row. Any row may have several votes, one, or none.

    `LPClassifier.fit` and `audit` take votes in place of labels. Make them by `from_table` or
    `from_columns`.

    Parameters
    ----------
    n_rows : int
        Number of rows that votes were asked for.
    classes : ndarray of shape (k,)
        Labels that were given, sorted.
    annotators : ndarray of shape (w,)
        Annotators who gave them, sorted.
    row, annotator, label : ndarray of int, shape (n_votes,)
        Row, index of the annotator and index of the class of each vote, sorted by row.

    Examples
    --------
    >>> votes = Votes.from_columns([["cat", "cat", None], ["dog", None, "cat"], [None, None, None]])
    >>> votes
    <4 votes of 3 annotators on 2 of 3 rows, classes ['cat', 'dog']>
    >>> votes.counts
    array([[2., 0.],
           [1., 1.],
           [0., 0.]])
    """

    n_rows: int
    classes: NDArray[Any]
    annotators: NDArray[Any]
    row: IntArray
    annotator: IntArray
    label: IntArray

    @classmethod
    def from_table(
        cls,
        rows: ArrayLike,
        annotators: ArrayLike | None,
        labels: ArrayLike,
        *,
        n_rows: int | None = None,
    ) -> Votes:
        """Read a table with a line for each vote.

        Parameters
        ----------
        rows : array-like of int, shape (n_votes,)
            Row of X that the vote is about, from 0.
        annotators : array-like of shape (n_votes,) or None
            Who gave it; None where that is not known, and all are taken to be alike.
        labels : array-like of shape (n_votes,)
            What was said: a label, or None, NaN or pandas.NA for no vote.
        n_rows : int, optional
            Number of rows of X, where the last of them have no vote.
        """
        most = None if n_rows is None else as_count(n_rows, "n_rows")
        said, about = _column(labels, "labels"), _checked_rows(rows, most)
        who = (
            np.zeros(len(about), dtype=np.intp)
            if annotators is None
            else _column(annotators, "annotators")
        )
        if not len(about) == len(who) == len(said):
            raise ValueError(
                f"rows, annotators and labels have {len(about)}, {len(who)} and {len(said)} entries: "
                "give one of each for every vote."
            )
        total = int(about.max(initial=-1)) + 1 if most is None else most
        return cls._of(total, about, who, said)

    @classmethod
    def from_columns(cls, columns: ArrayLike, annotators: ArrayLike | None = None) -> Votes:
        """Read a table with a line for each row of X and a column for each annotator.

        Parameters
        ----------
        columns : array-like of shape (n, w) or (n,)
            Labels; None, NaN, pandas.NA or a mask where there is no vote.
        annotators : array-like of shape (w,), optional
            Names of the annotators; by default they are numbered from 0.
        """
        table = _as_objects(columns)
        table = table[:, None] if table.ndim == 1 else table
        if table.ndim != 2:
            raise ValueError(
                f"columns has shape {table.shape}: give a line for each row and a column for each "
                "annotator."
            )
        n, w = table.shape
        names = np.arange(w) if annotators is None else _column(annotators, "annotators")
        if len(names) != w:
            raise ValueError(
                f"annotators has {len(names)} names but there are {w} columns of votes: give one for "
                "each."
            )
        return cls._of(n, np.repeat(np.arange(n), w), np.tile(names, n), table.ravel())

    @classmethod
    def _of(cls, n_rows: int, row: IntArray, who: NDArray[Any], said: NDArray[Any]) -> Votes:
        given = np.array([not is_missing(label) for label in said.tolist()], dtype=bool)
        if not given.any():
            raise ValueError("There is no vote at all: give at least one label.")
        order = np.flatnonzero(given)[np.argsort(row[given], kind="stable")]
        classes, label = _indexed(said[order], "labels")
        annotators, annotator = _indexed(who[order], "annotators")
        from sklearn.utils.multiclass import type_of_target  # the theory loads without it

        kind = type_of_target(classes, input_name="labels", raise_unknown=True)
        if kind.startswith("continuous"):
            raise ValueError(
                f"labels holds numbers such as {classes[0]!r}, which are no classes: give class "
                "labels."
            )
        return cls(n_rows, classes, annotators, row[order], annotator, label)

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, rows: ArrayLike) -> Votes:
        """Return the votes on some rows, by their indices or a mask, with the classes and annotators that these have."""
        indices = as_array(rows, "rows")
        if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "biu"):
            raise ValueError(f"rows = {shown(rows)} must be a list of row numbers, or a mask.")
        wanted = np.arange(self.n_rows)[indices if indices.size else []]
        ends = np.searchsorted(self.row, [wanted, wanted + 1])
        n_each = ends[1] - ends[0]
        row = np.repeat(np.arange(len(wanted)), n_each)
        kept = (
            np.arange(len(row))
            - np.repeat(np.cumsum(n_each) - n_each, n_each)
            + np.repeat(ends[0], n_each)
        )
        label_codes, label = np.unique(self.label[kept], return_inverse=True)
        annotator_codes, annotator = np.unique(self.annotator[kept], return_inverse=True)
        return Votes(
            len(wanted),
            self.classes[label_codes],
            self.annotators[annotator_codes],
            row,
            annotator,
            label,
        )

    def __repr__(self) -> str:
        said = f"{len(self.row)} votes of {len(self.annotators)} annotators on {int(self.voted.sum())} of {self.n_rows} rows"
        return f"<{said}, classes {self.classes.tolist()}>"

    @property
    def n_votes(self) -> IntArray:
        """Number of votes on each row, (n,)."""
        return np.bincount(self.row, minlength=self.n_rows)

    @property
    def voted(self) -> NDArray[np.bool_]:
        """Whether each row has a vote, (n,)."""
        return self.n_votes > 0

    @property
    def single(self) -> bool:
        """Whether no row has more than one vote: then they are labels, some of them missing."""
        return bool((self.n_votes <= 1).all())

    @property
    def counts(self) -> FloatArray:
        """Number of votes of each row for each class, (n, k)."""
        k = len(self.classes)
        flat = np.bincount(self.row * k + self.label, minlength=self.n_rows * k)
        return flat.reshape(self.n_rows, k).astype(float)

    @cached_property
    def table(self) -> SparseArray:
        """Who said what of each row: a 1 for each vote, (n, w·k), in columns of an annotator's k labels."""
        place = self.annotator * len(self.classes) + self.label
        shape = (self.n_rows, len(self.annotators) * len(self.classes))
        return csr_array((np.ones(len(place)), (self.row, place)), shape=shape)

    def shares(self, weights: FloatArray) -> FloatArray:
        """Proportions of the classes among the votes on rows of these weights, a row's votes sharing its weight."""
        each = (weights / np.maximum(self.n_votes, 1))[self.row]
        return np.asarray(np.bincount(self.label, each, minlength=len(self.classes)) / each.sum())

    def majority(self, likelihoods: FloatArray) -> IntArray:
        """Class index with most votes on each row; `UNLABELLED` where there are none.

        Ties go to the class whose `likelihoods`, (n, k), are larger.
        """
        counts = self.counts
        tied = counts == counts.max(axis=1, keepdims=True)
        best = np.where(tied, likelihoods, -1.0).argmax(axis=1)
        return np.where(self.voted, best, UNLABELLED)


def _checked_rows(rows: ArrayLike, n_rows: int | None) -> IntArray:
    about = as_array(rows, "rows")
    if about.ndim != 1 or (about.size and not np.issubdtype(about.dtype, np.integer)):
        raise ValueError(
            f"rows is {about.dtype} of shape {about.shape}: give the number of a row of X for each "
            "vote."
        )
    for outside in about[(about < 0) | (about >= (np.inf if n_rows is None else n_rows))]:
        last = "" if n_rows is None else f", below n_rows = {n_rows}"
        raise ValueError(f"rows holds {outside}, which is no row of X: number them from 0{last}.")
    return about.astype(np.intp)


def _as_objects(values: ArrayLike) -> NDArray[Any]:
    """Return an array of objects, None where there is a mask."""
    table: NDArray[Any] = np.array(values, dtype=object)
    if isinstance(values, np.ma.MaskedArray):
        table[np.ma.getmaskarray(values)] = None
    return table


def _column(values: ArrayLike, name: str) -> NDArray[Any]:
    column = _as_objects(values)
    if column.ndim != 1 or any(isinstance(entry, list) for entry in column):
        raise ValueError(
            f"{name} has shape {column.shape}: give one entry for each vote, in one dimension."
        )
    return column


def _indexed(values: NDArray[Any], name: str) -> tuple[NDArray[Any], IntArray]:
    """Return the sorted kinds of value, and the index of each value's kind."""
    try:
        found, codes = np.unique(values, return_inverse=True)
    except TypeError:
        kinds = sorted({type(value).__name__ for value in values.tolist()})
        raise ValueError(
            f"{name} holds {' and '.join(kinds)}, which cannot be sorted: use one kind."
        ) from None
    return np.asarray(found.tolist()), codes.astype(np.intp)
