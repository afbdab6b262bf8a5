r"""Groups of annotators that copy each other.

Two annotators of a group give the same label on many rows on which their transition matrices, and
the difficulty of the row, make different labels likely. With the number A of rows on which both
give the same label, and its expectation E if both err on their own, the *copying* of a pair is the
share of the expected differences that is missing:

.. math:: \kappa = \frac{A - E}{n - E}.

It is 0 for independent annotators and 1 for copies. Pairs that copy more than half of the time, and
significantly, are linked, and linked annotators are a group. The m votes of a group on a row count
as m/(1 + (m − 1)κ) votes, as in a cluster sample (Kish 1965): each log-likelihood is divided by
1 + (m − 1)κ. Copies together count as one vote.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array, triu
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtri

from unflip._utils.typing import FloatArray, IntArray
from unflip.labels.votes import Votes

# Least copying of a pair that is linked: annotators with less are better described by difficulty.
_LEAST_COPYING = 0.5
# Probability that any pair of independent annotators is linked (Bonferroni).
_FALSE_ALARM = 0.01
# Pairs of annotators whose expected agreement is computed at a time, to bound memory.
_CHUNK = 10_000


@dataclass(frozen=True, eq=False)
class AnnotatorGroups:
    """Groups of annotators, and how much their members copy each other.

    Attributes
    ----------
    group : ndarray of int, shape (w,)
        Group of each annotator; annotators on their own have a group each.
    copying : ndarray of shape (n_groups,)
        Mean κ of the linked pairs of each group; 0 for annotators on their own.
    """

    group: IntArray
    copying: FloatArray

    @property
    def members(self) -> list[IntArray]:
        """Annotators of each group that has several."""
        sizes = np.bincount(self.group)
        return [np.flatnonzero(self.group == g) for g in np.flatnonzero(sizes > 1)]

    def next_vote_weights(self, votes: Votes, rows: IntArray) -> FloatArray:
        """Return what a further vote of each annotator would add on some rows, (n_rows, w)."""
        n_groups = len(self.copying)
        part = votes.on_rows(rows)
        cells = part.row * n_groups + self.group[part.annotator]
        sizes = np.bincount(cells, minlength=len(rows) * n_groups).reshape(-1, n_groups)
        added = _effective(sizes + 1, self.copying) - _effective(sizes, self.copying)
        return np.asarray(added[:, self.group])

    def vote_weights(self, votes: Votes) -> FloatArray:
        """Return what each vote counts, (n_votes,), between 0 and 1."""
        group = self.group[votes.annotator]
        cells = votes.row * len(self.copying) + group
        _, cell, sizes = np.unique(cells, return_inverse=True, return_counts=True)
        return np.asarray(1 / (1 + (sizes[cell] - 1) * self.copying[group]))


def _effective(sizes: IntArray, copying: FloatArray) -> FloatArray:
    """Return what votes of a group on a row count together."""
    return np.asarray(sizes / (1 + np.maximum(sizes - 1, 0) * copying))


def find_groups(
    votes: Votes, posterior: FloatArray, transitions_at: FloatArray, shares: FloatArray
) -> AnnotatorGroups | None:
    """Return the groups of annotators; None if all err on their own.

    Parameters
    ----------
    votes : Votes
        Votes on n rows.
    posterior : ndarray of shape (n, k)
        P(true class | votes, features), times the weight of the row.
    transitions_at : ndarray of shape (w, k, k, n_values)
        Transition matrices for each value of the difficulty of a row.
    shares : ndarray of shape (n_values,)
        Probability of each value.
    """
    n_annotators = len(votes.annotators)
    if n_annotators < 2 or votes.n_votes.max() < 2:
        return None
    first, second, common, agreed = _pairs(votes, posterior)
    expected = np.empty(len(first))
    for start in range(0, len(first), _CHUNK):
        part = slice(start, start + _CHUNK)
        pairs = transitions_at[first[part]] * transitions_at[second[part]]
        expected[part] = (common[part] * (pairs.sum(axis=2) @ shares)).sum(axis=1)
    n_common = common.sum(axis=1)
    differing = np.maximum(n_common - expected, 1e-9)
    copying = (agreed - expected) / differing
    deviation = np.sqrt(np.maximum(expected * differing / np.maximum(n_common, 1e-9), 1e-9))
    least = ndtri(1 - _FALSE_ALARM / max(len(first), 1))
    linked = (copying >= _LEAST_COPYING) & (agreed - expected >= least * np.maximum(deviation, 1.0))
    if not linked.any():
        return None
    links = coo_array(
        (np.ones(int(linked.sum())), (first[linked], second[linked])),
        shape=(n_annotators, n_annotators),
    )
    n_groups, group = connected_components(links, directed=False)
    of_pair = group[first[linked]]
    n_pairs = np.bincount(of_pair, minlength=n_groups)
    sums = np.bincount(of_pair, np.clip(copying[linked], 0.0, 1.0), minlength=n_groups)
    return AnnotatorGroups(group.astype(np.intp), sums / np.maximum(n_pairs, 1))


def _pairs(
    votes: Votes, posterior: FloatArray
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return the pairs of annotators with common rows, and what these rows hold.

    Returns
    -------
    first, second : ndarray of int, shape (n_pairs,)
        The annotators.
    common : ndarray of shape (n_pairs, k)
        Expected number of their common rows of each true class.
    agreed : ndarray of shape (n_pairs,)
        Number of common rows with the same label.
    """
    shape = (votes.n_rows, len(votes.annotators))
    ones = np.ones(len(votes.row))
    voted = csr_array((ones, (votes.row, votes.annotator)), shape=shape)
    pairs = triu(voted.T @ voted, k=1).tocoo()
    first, second = pairs.coords
    weights = posterior.sum(axis=1)

    def counts(row_weights: FloatArray, of_label: int | None = None) -> FloatArray:
        is_counted = np.ones(len(votes.row), bool) if of_label is None else votes.label == of_label
        entries = (votes.row[is_counted], votes.annotator[is_counted])
        table = csr_array((ones[is_counted], entries), shape=shape)
        weighted = csr_array((row_weights[entries[0]], entries), shape=shape)
        return np.asarray((table.T @ weighted).tocsr()[first, second])

    common = np.column_stack([counts(column) for column in posterior.T])
    agreed = sum(counts(weights, label) for label in range(posterior.shape[1]))
    return first, second, common, np.asarray(agreed)
