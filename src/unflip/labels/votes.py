"""Labels given by several annotators to each row."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from unflip._utils.record_tables import Table, table
from unflip._utils.typing import FloatArray, IntArray, SparseArray
from unflip._utils.validation import as_array, as_count, shown
from unflip.labels.agreement import (
    cohen_kappas,
    fleiss_kappa,
    kappas_with_others,
    krippendorff_alpha,
)
from unflip.labels.classes import is_missing
from unflip.labels.codes import UNLABELLED


@dataclass(frozen=True, eq=False, repr=False)
class Votes:
    """Labels from several annotators. Each row may have several votes, one, or none.

    `LPClassifier.fit` and `audit` take votes in place of labels. Create them with `from_table` or
    `from_columns`.

    Parameters
    ----------
    n_rows : int
        Number of rows of X, rows without votes included.
    classes : ndarray of shape (k,)
        Distinct labels, sorted.
    annotators : ndarray of shape (w,)
        Distinct annotators, sorted.
    row, annotator, label : ndarray of int, shape (n_votes,)
        Row, index of the annotator and index of the class of each vote, sorted by row.
    abstentions : bool
        Whether a missing vote is an abstention: every annotator saw every row.

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
    abstentions: bool = False

    @classmethod
    def from_table(
        cls,
        rows: ArrayLike,
        annotators: ArrayLike | None,
        labels: ArrayLike,
        *,
        n_rows: int | None = None,
        abstentions: bool = False,
    ) -> Votes:
        """Return the votes of a table with one line per vote.

        Parameters
        ----------
        rows : array-like of int, shape (n_votes,)
            Row of X of each vote, from 0.
        annotators : array-like of shape (n_votes,) or None
            Annotator of each vote. None: unknown, and all votes share one transition matrix.
        labels : array-like of shape (n_votes,)
            Label of each vote; None, NaN, pandas.NA or "" for no vote.
        n_rows : int, optional
            Number of rows of X. None: the last row is the last one of `rows`.
        abstentions : bool
            Whether every annotator saw every row, so that a missing vote is an abstention, as with
            rules. How often an annotator votes on each class then counts as evidence.

        Examples
        --------
        >>> Votes.from_table([0, 0, 1], ["Ann", "Bob", "Ann"], ["cat", "dog", "cat"])
        <3 votes of 2 annotators on 2 of 2 rows, classes ['cat', 'dog']>
        """
        total = None if n_rows is None else as_count(n_rows, "n_rows")
        label_column = _column(labels, "labels")
        row_column = _checked_rows(rows, total)
        if annotators is None:
            annotator_column: NDArray[Any] = np.zeros(len(row_column), dtype=np.intp)
        else:
            annotator_column = _column(annotators, "annotators")
        if not len(row_column) == len(annotator_column) == len(label_column):
            raise ValueError(
                f"rows, annotators and labels have {len(row_column)}, {len(annotator_column)} and "
                f"{len(label_column)} entries: pass one of each for every vote."
            )
        if total is None:
            total = int(row_column.max(initial=-1)) + 1
        return cls._from_lines(
            total, row_column, annotator_column, label_column, abstentions=abstentions
        )

    @classmethod
    def from_columns(
        cls,
        columns: ArrayLike,
        annotators: ArrayLike | None = None,
        *,
        abstentions: bool = False,
    ) -> Votes:
        """Return the votes of a table with one line per row of X and one column per annotator.

        Parameters
        ----------
        columns : array-like of shape (n, w) or (n,)
            Labels; None, NaN, pandas.NA, "" or a mask for no vote.
        annotators : array-like of shape (w,), optional
            Names of the annotators; by default those of the columns of a data frame, or numbers
            from 0.
        abstentions : bool
            As in `from_table`.

        Examples
        --------
        >>> rules = [[None, "spam"], ["ham", None], [None, None]]
        >>> Votes.from_columns(rules, ["greeting", "free"], abstentions=True)
        <2 votes of 2 annotators on 2 of 3 rows, classes ['ham', 'spam'], abstentions>
        """
        if annotators is None:
            annotators = getattr(columns, "columns", None)  # of a data frame
        table = _as_objects(columns)
        if table.ndim == 1:
            table = table[:, None]
        if table.ndim != 2:
            raise ValueError(
                f"columns has shape {table.shape}: pass a line for each row and a column for each "
                "annotator."
            )
        n, w = table.shape
        names = np.arange(w) if annotators is None else _column(annotators, "annotators")
        if len(names) != w:
            raise ValueError(
                f"annotators has {len(names)} names but there are {w} columns of votes: pass one "
                "name for each column."
            )
        repeated = [name for name, count in Counter(names.tolist()).items() if count > 1]
        if repeated:
            raise ValueError(
                f"annotators holds {repeated[0]!r} more than once: give each column a name of its "
                "own, or merge the columns of an annotator."
            )
        rows = np.repeat(np.arange(n), w)
        return cls._from_lines(n, rows, np.tile(names, n), table.ravel(), abstentions=abstentions)

    @classmethod
    def _from_lines(
        cls,
        n_rows: int,
        row: IntArray,
        annotators: NDArray[Any],
        labels: NDArray[Any],
        *,
        abstentions: bool,
    ) -> Votes:
        """Return the votes of lines that may lack a label, sorted by row."""
        has_label = np.array([not is_missing(label) for label in labels.tolist()], dtype=bool)
        if not has_label.any():
            raise ValueError("There are no votes: pass at least one label.")
        order = np.flatnonzero(has_label)[np.argsort(row[has_label], kind="stable")]
        classes, label = _indexed(labels[order], "labels")
        names, annotator = _indexed(annotators[order], "annotators")
        # Imported here, because `unflip.theory` loads without scikit-learn.
        from sklearn.utils.multiclass import type_of_target

        kind = type_of_target(classes, input_name="labels", raise_unknown=True)
        if kind.startswith("continuous"):
            raise ValueError(
                f"labels holds numbers such as {classes[0]!r}, which are not classes: pass class "
                "labels."
            )
        return cls(n_rows, classes, names, row[order], annotator, label, abstentions)

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, rows: ArrayLike) -> Votes:
        """Return the votes on rows, by indices or a mask; unused classes and annotators go."""
        indices = as_array(rows, "rows")
        if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "biu"):
            raise ValueError(f"rows = {shown(rows)} must be a list of row numbers, or a mask.")
        part = self.on_rows(np.arange(self.n_rows)[indices if indices.size else []])
        label_codes, label = np.unique(part.label, return_inverse=True)
        annotator_codes, annotator = np.unique(part.annotator, return_inverse=True)
        return replace(
            part,
            classes=self.classes[label_codes],
            annotators=self.annotators[annotator_codes],
            annotator=annotator,
            label=label,
        )

    def on_rows(self, rows: IntArray) -> Votes:
        """Return the votes on rows, by indices; unused classes and annotators stay."""
        starts, ends = np.searchsorted(self.row, [rows, rows + 1])
        n_each = ends - starts
        row = np.repeat(np.arange(len(rows)), n_each)
        offsets = starts - (np.cumsum(n_each) - n_each)
        kept = np.arange(len(row)) + np.repeat(offsets, n_each)
        return replace(
            self,
            n_rows=len(rows),
            row=row,
            annotator=self.annotator[kept],
            label=self.label[kept],
        )

    def __repr__(self) -> str:
        return (
            f"<{len(self.row)} votes of {len(self.annotators)} annotators on "
            f"{int(self.voted.sum())} of {self.n_rows} rows, classes {self.classes.tolist()}"
            f"{', abstentions' * self.abstentions}>"
        )

    @property
    def n_votes(self) -> IntArray:
        """Number of votes on each row, (n,)."""
        return np.bincount(self.row, minlength=self.n_rows)

    @property
    def voted(self) -> NDArray[np.bool_]:
        """Whether each row has a vote, (n,)."""
        return self.n_votes > 0

    @property
    def mean_votes(self) -> float:
        """Mean number of votes on the rows that have any."""
        return float(self.n_votes[self.voted].mean())

    @property
    def single(self) -> bool:
        """Whether no row has more than one vote, as with labels of which some are missing.

        With abstentions, annotators differ even then.
        """
        return not self.abstentions and bool((self.n_votes <= 1).all())

    @property
    def counts(self) -> FloatArray:
        """Number of votes of each row for each class, (n, k)."""
        return self.weighted_counts(np.ones(len(self.row)))

    def weighted_counts(self, weights: FloatArray) -> FloatArray:
        """Return the sums of weights of the votes (n_votes,) on each row for each class, (n, k)."""
        k = len(self.classes)
        flat = np.bincount(self.row * k + self.label, weights, minlength=self.n_rows * k)
        return flat.reshape(self.n_rows, k).astype(float)

    def only(self, kept: NDArray[np.bool_]) -> Votes:
        """Return some of the votes, by a mask; rows, classes and annotators stay."""
        return replace(
            self, row=self.row[kept], annotator=self.annotator[kept], label=self.label[kept]
        )

    @property
    def disagreement(self) -> float:
        """Share of pairs of votes on a row that differ, mean over rows with several votes.

        NaN if no row has several votes.
        """
        counts = self.counts[self.n_votes > 1]
        if not len(counts):
            return np.nan
        n_votes = counts.sum(axis=1)
        n_agreeing = (counts * (counts - 1)).sum(axis=1)
        return float(np.mean(1 - n_agreeing / (n_votes * (n_votes - 1))))

    def noise_bounds(self) -> tuple[float, float]:
        """Return the least and the largest noise rate of a vote that disagreement allows.

        Two votes differ only if one of them is wrong, so the mean noise rate is at least half the
        disagreement. If votes on a row are independent, with noise rates e and e' below 1/2, they
        differ with probability at least e + e' − 2ee' ≥ (e + e')/2, so the mean is at most the
        disagreement. Errors that annotators share, because the row misleads all of them, do not
        show.

        Returns
        -------
        low, high : float
            NaN if no row has several votes.
        """
        return self.disagreement / 2, self.disagreement

    def cohen_kappas(self) -> FloatArray:
        """Return Cohen's kappa of each pair of annotators, over the rows that both labelled.

        Cohen's kappa is the agreement of two annotators, corrected for chance: 1 if they always
        agree, near 0 if their votes are independent. If an annotator voted several times on a row,
        each of these votes is paired with each vote of the other annotator.

        Returns
        -------
        ndarray of shape (w, w)
            In the order of ``annotators``. NaN if two annotators share no row, or if all their
            votes on shared rows are for one class. The diagonal is 1, or NaN if all votes of the
            annotator are for one class.

        Examples
        --------
        >>> Votes.from_columns([[0, 0], [0, 1], [1, 1], [1, 1], [0, None]]).cohen_kappas()
        array([[1. , 0.5],
               [0.5, 1. ]])
        """
        return cohen_kappas(self.table, len(self.classes))

    def fleiss_kappa(self) -> float:
        """Return Fleiss' kappa: the agreement of votes on a row, corrected for chance.

        It is over rows with at least two votes. Their number may vary: each row counts the same.
        Who voted does not matter, and several votes of an annotator on a row all count.

        Returns
        -------
        float
            NaN if no row has several votes, or if the votes on these rows are for one class.

        Examples
        --------
        >>> round(Votes.from_columns([[0, 0], [0, 1], [1, 1], [1, 1], [0, None]]).fleiss_kappa(), 3)
        0.467
        """
        return fleiss_kappa(self.counts)

    def krippendorff_alpha(self) -> float:
        """Return Krippendorff's alpha for classes without order: agreement, corrected for chance.

        It is over rows with at least two votes. In contrast to Fleiss' kappa, each vote counts the
        same, and small samples are corrected for. Who voted does not matter, and several votes of
        an annotator on a row all count.

        Returns
        -------
        float
            NaN if no row has several votes, or if the votes on these rows are for one class.

        Examples
        --------
        >>> votes = Votes.from_columns([[0, 0], [0, 1], [1, 1], [1, 1], [0, None]])
        >>> round(votes.krippendorff_alpha(), 3)
        0.533
        """
        return krippendorff_alpha(self.counts)

    def summary(self) -> Table:
        """Return how much and how each annotator votes, those with most votes first.

        Returns
        -------
        DataFrame, or record array without pandas
            Columns ``annotator``, ``votes`` (their number), ``coverage`` (share of the rows with a
            vote of the annotator), ``label`` (the most frequent one), ``label_share`` (its share of
            the votes), and ``kappa``: Cohen's kappa with all other votes on the same rows, NaN if
            undefined.

        Examples
        --------
        >>> votes = Votes.from_columns([[0, 0], [0, 1], [1, 1], [1, None]], ["Ann", "Bob"])
        >>> votes.summary()["annotator"].tolist(), votes.summary()["coverage"].tolist()
        (['Ann', 'Bob'], [1.0, 0.75])
        """
        w = len(self.annotators)
        k = len(self.classes)
        counts = np.bincount(self.annotator * k + self.label, minlength=w * k).reshape(w, k)
        n_votes = counts.sum(axis=1)
        n_rows = np.bincount(np.unique(self.row * w + self.annotator) % w, minlength=w)
        kappa = kappas_with_others(self.row, self.annotator, self.label, self.counts)
        order = np.argsort(-n_votes, kind="stable")
        return table(
            annotator=self.annotators[order],
            votes=n_votes[order],
            coverage=(n_rows / self.n_rows)[order],
            label=self.classes[counts.argmax(axis=1)][order],
            label_share=(counts.max(axis=1) / n_votes)[order],
            kappa=kappa[order],
        )

    @cached_property
    def table(self) -> SparseArray:
        """Indicators of the votes, (n, w·k), with k columns for each annotator."""
        return self.weighted_table(np.ones(len(self.row)))

    def weighted_table(self, weights: FloatArray) -> SparseArray:
        """Return weights of the votes, (n_votes,), in the columns of `table`."""
        column = self.annotator * len(self.classes) + self.label
        shape = (self.n_rows, len(self.annotators) * len(self.classes))
        return csr_array((weights, (self.row, column)), shape=shape)

    @cached_property
    def counted_table(self) -> SparseArray:
        """The weights of the votes, in the columns of `table`."""
        return self.weighted_table(self.weights)

    @cached_property
    def weights(self) -> FloatArray:
        """What each vote counts, (n_votes,): the votes of an annotator on a row are one together.

        All votes count 1 if there is one annotator, whose name stands for unknown ones.
        """
        if len(self.annotators) == 1:
            return np.ones(len(self.row))
        cells = self.row * len(self.annotators) + self.annotator
        _, cell, sizes = np.unique(cells, return_inverse=True, return_counts=True)
        return np.asarray(1 / sizes[cell])

    def shares(self, weights: FloatArray) -> FloatArray:
        """Return class proportions of the votes; the votes on a row share its weight."""
        each = (weights / np.maximum(self.n_votes, 1))[self.row]
        return np.asarray(np.bincount(self.label, each, minlength=len(self.classes)) / each.sum())

    def majority(self, likelihoods: FloatArray) -> IntArray:
        """Return the class index with most votes on each row, `UNLABELLED` without votes.

        Ties go to the class of the largest likelihood, (n, k).
        """
        counts = self.counts
        tied = counts == counts.max(axis=1, keepdims=True)
        best = np.where(tied, likelihoods, -1.0).argmax(axis=1)
        return np.where(self.voted, best, UNLABELLED)


def _checked_rows(rows: ArrayLike, n_rows: int | None) -> IntArray:
    indices = as_array(rows, "rows")
    if indices.ndim != 1 or (indices.size and not np.issubdtype(indices.dtype, np.integer)):
        raise ValueError(
            f"rows is {indices.dtype} of shape {indices.shape}: pass the number of a row of X for "
            "each vote."
        )
    end = np.inf if n_rows is None else n_rows
    for outside in indices[(indices < 0) | (indices >= end)]:
        limit = "" if n_rows is None else f", below n_rows = {n_rows}"
        raise ValueError(f"rows holds {outside}, which is not a row of X: count from 0{limit}.")
    return indices.astype(np.intp)


def _as_objects(values: ArrayLike) -> NDArray[Any]:
    """Return an array of objects, with None for masked entries."""
    table: NDArray[Any] = np.array(values, dtype=object)
    if isinstance(values, np.ma.MaskedArray):
        table[np.ma.getmaskarray(values)] = None
    return table


def _column(values: ArrayLike, name: str) -> NDArray[Any]:
    column = _as_objects(values)
    if column.ndim != 1 or any(isinstance(entry, list) for entry in column):
        raise ValueError(
            f"{name} has shape {column.shape}: pass a one-dimensional list, one entry per vote."
        )
    return column


def _indexed(values: NDArray[Any], name: str) -> tuple[NDArray[Any], IntArray]:
    """Return the distinct values, sorted, and the index of each value among them."""
    try:
        distinct, codes = np.unique(values, return_inverse=True)
    except TypeError:
        types = sorted({type(value).__name__ for value in values.tolist()})
        raise ValueError(
            f"{name} holds {' and '.join(types)}, which cannot be sorted: convert them to one type."
        ) from None
    return np.asarray(distinct.tolist()), codes.astype(np.intp)
