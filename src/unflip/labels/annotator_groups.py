r"""Groups of annotators that copy each other.

Two annotators of a group give the same label on many rows on which their transition matrices make
different labels likely. With the number A of rows on which both give the same label, and its
expectation E if both err on their own, the *copying* of a pair is the share of the expected
differences that is missing:

.. math:: \kappa = \frac{A - E}{n - E}.

It is 0 for independent annotators and 1 for copies. The m votes of a group on a row count as
m/(1 + (m − 1)κ) votes, as in a cluster sample (Kish 1965): each log-likelihood is divided by
1 + (m − 1)κ. Copies together count as one vote.

If most annotators copy each other, their consensus looks like the truth, and E like A. Candidates
for groups are therefore pairs that disagree much less with each other than with others. They are a
group if the votes of all others become likelier, given those of the group, when these count less.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_array, csr_array, triu
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtri

from unflip._utils.arrays import TINY
from unflip._utils.typing import FloatArray, IntArray
from unflip.labels.votes import Votes

# Candidates disagree at most this share as often as each of them with all others. A choice:
# likelihood decides on groups.
_CLOSE = 0.5
# Probability that any pair of annotators looks that close by chance (Bonferroni).
_FALSE_ALARM = 0.01


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

    @classmethod
    def of(cls, groups: list[IntArray], copying: list[float], n_annotators: int) -> AnnotatorGroups:
        """Return groups with their members and copying; the other annotators are on their own."""
        group = np.full(n_annotators, -1)
        for g, members in enumerate(groups):
            group[members] = g
        alone = group < 0
        group[alone] = len(groups) + np.arange(alone.sum())
        return cls(group, np.concatenate([copying, np.zeros(int(alone.sum()))]))

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
        sums = np.bincount(cells, part.weights, len(rows) * n_groups)
        sizes: FloatArray = sums.astype(float).reshape(-1, n_groups)
        added = _effective(sizes + 1, self.copying) - _effective(sizes, self.copying)
        return np.asarray(added[:, self.group])

    def vote_weights(self, votes: Votes) -> FloatArray:
        """Return what each vote counts, (n_votes,), between 0 and 1."""
        group = self.group[votes.annotator]
        cells = votes.row * len(self.copying) + group
        _, cell = np.unique(cells, return_inverse=True)
        sizes = np.bincount(cell, votes.weights)
        return np.asarray(votes.weights / (1 + (sizes[cell] - 1) * self.copying[group]))


def _effective(sizes: FloatArray, copying: FloatArray) -> FloatArray:
    """Return what votes of a group on a row count together."""
    return np.asarray(sizes / (1 + np.maximum(sizes - 1, 0) * copying))


def candidate_groups(votes: Votes, weights: FloatArray) -> list[IntArray]:
    """Return groups of annotators that may copy each other: the members of each.

    Parameters
    ----------
    votes : Votes
        Votes on n rows.
    weights : ndarray of shape (n,)
        Weight of each row, as a number of independent rows.
    """
    w = len(votes.annotators)
    pairs = _Pairs.of(votes)
    if not len(pairs.first):
        return []
    n_common = pairs.sums(weights)
    differences = n_common - pairs.agreement(weights)
    ends = np.concatenate([pairs.first, pairs.second])
    typical = np.bincount(ends, np.tile(differences, 2), minlength=w) / np.maximum(
        np.bincount(ends, np.tile(n_common, 2), minlength=w), TINY
    )
    rate = _CLOSE * np.minimum(typical[pairs.first], typical[pairs.second])
    expected = n_common * rate
    least = ndtri(1 - _FALSE_ALARM / len(n_common))
    is_close = expected - differences >= least * np.sqrt(np.maximum(expected * (1 - rate), 1.0))
    links = coo_array(
        (np.ones(int(is_close.sum())), (pairs.first[is_close], pairs.second[is_close])),
        shape=(w, w),
    )
    _, group = connected_components(links, directed=False)
    sizes = np.bincount(group)
    # Without others, nothing tells copies from annotators who are right.
    return [np.flatnonzero(group == g) for g in np.flatnonzero((sizes > 1) & (sizes < w))]


def copying_of(
    members: IntArray, votes: Votes, posterior: FloatArray, transitions: FloatArray
) -> float:
    """Return the copying κ of annotators, from 0 to 1.

    Parameters
    ----------
    members : ndarray of int
        The annotators.
    votes : Votes
        Votes on n rows.
    posterior : ndarray of shape (n, k)
        P(true class | votes, features), times the weight of the row.
    transitions : ndarray of shape (w, k, k)
        Transition matrices.
    """
    pairs = _Pairs.of(votes)
    within = np.isin(pairs.first, members) & np.isin(pairs.second, members)
    pairs = replace(pairs, first=pairs.first[within], second=pairs.second[within])
    common = np.column_stack([pairs.sums(column) for column in posterior.T])
    agreement = pairs.agreement(posterior.sum(axis=1))
    agreeing = (transitions[pairs.first] * transitions[pairs.second]).sum(axis=2)
    expected = float((common * agreeing).sum())
    differing = float(common.sum()) - expected
    return float(np.clip((agreement.sum() - expected) / max(differing, TINY), 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of annotators with common rows."""

    votes: Votes
    first: IntArray
    second: IntArray

    @classmethod
    def of(cls, votes: Votes) -> _Pairs:
        voted = _indicators(votes)
        first, second = triu(voted.T @ voted, k=1).tocoo().coords
        return cls(votes, first, second)

    def sums(self, weights: FloatArray, of_label: int | None = None) -> FloatArray:
        """Return the weight of the rows on which both vote, or both vote for one label."""
        voted = _indicators(self.votes, of_label)
        weighted = voted.multiply(weights[:, None])
        return np.asarray((voted.T @ weighted.tocsr()).tocsr()[self.first, self.second])

    def agreement(self, weights: FloatArray) -> FloatArray:
        """Return the weight of the rows on which both give the same label."""
        return np.asarray(sum(self.sums(weights, b) for b in range(len(self.votes.classes))))


def _indicators(votes: Votes, of_label: int | None = None) -> csr_array:
    """Return whether each annotator voted on each row, or voted for one label, (n, w)."""
    is_meant = np.ones(len(votes.row), bool) if of_label is None else votes.label == of_label
    entries = (votes.row[is_meant], votes.annotator[is_meant])
    shape = (votes.n_rows, len(votes.annotators))
    indicators = csr_array((np.ones(int(is_meant.sum())), entries), shape=shape)
    indicators.data[:] = 1.0  # repeated votes were summed
    return indicators
