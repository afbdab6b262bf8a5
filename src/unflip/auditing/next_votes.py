"""Which annotator to ask next about which row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import entr, rel_entr

from unflip._utils.record_tables import Table, table
from unflip._utils.typing import FloatArray, IntArray
from unflip._utils.validation import as_count, as_number, shown
from unflip.labels.annotators import Annotators
from unflip.labels.votes import Votes

# Bits that are more than a rounding error.
_LEAST_GAIN = 1e-9
# Rows whose gains are computed at a time, to bound memory.
_BATCH = 50


def next_votes(
    annotators: Annotators,
    votes: Votes,
    posterior: FloatArray,
    m: int,
    costs: Mapping[Any, float] | None,
) -> Table:
    """Return the m rows on which one more vote tells most about the true class for its cost.

    The gain is the expected information of the vote about the true class (mutual information):
    the entropy of the class now, less its mean after the vote.

    Parameters
    ----------
    annotators : Annotators
        Transition matrices, and errors that annotators share.
    votes : Votes
        The votes so far. Nobody is asked twice about a row.
    posterior : ndarray of shape (n, k)
        P(true class | votes, features).
    m : int
        Number of rows.
    costs : mapping, optional
        Cost of a vote of each annotator, infinite for those who cannot be asked; 1 if not given.

    Returns
    -------
    DataFrame, or record array without pandas
        Columns ``row``, ``annotator``, ``gain`` in bits, and ``cost``, largest gain for its cost
        first. Shorter than m if fewer rows can gain.
    """
    if votes.abstentions:
        raise ValueError(
            "Every annotator saw every row, so there is nobody to ask: abstentions=True is for "
            "rules."
        )
    if len(votes.annotators) == 1:
        raise ValueError(
            "The votes are of one annotator, or of unknown ones: pass annotators= to Votes to see "
            "whom to ask."
        )
    n_asked = as_count(m, "m", most=len(votes))
    cost_of = _cost_of(annotators, costs)
    entropy = entr(posterior).sum(axis=1) / np.log(2)
    order = np.argsort(-entropy, kind="stable")
    best: list[tuple[float, int, int, float]] = []
    for start in range(0, len(order), _BATCH):
        rows = order[start : start + _BATCH]
        # No vote tells more than the entropy, so later rows cannot displace the best ones.
        if len(best) == n_asked and best[-1][0] >= entropy[rows[0]] / cost_of.min():
            break
        gains = _gains(annotators, votes, rows, posterior[rows])
        values = gains / cost_of
        chosen = values.argmax(axis=1)
        within = np.arange(len(rows))
        lines = zip(values[within, chosen], rows, chosen, gains[within, chosen], strict=True)
        best += [line for line in lines if line[3] > _LEAST_GAIN]
        best = sorted(best, key=lambda line: (-line[0], line[1]))[:n_asked]
    chosen = np.array([line[2] for line in best], dtype=np.intp)
    return table(
        row=np.array([line[1] for line in best], dtype=np.intp),
        annotator=annotators.names[chosen],
        gain=np.array([line[3] for line in best]),
        cost=cost_of[chosen],
    )


def _gains(
    annotators: Annotators, votes: Votes, rows: IntArray, posterior: FloatArray
) -> FloatArray:
    """Return the bits that a vote of each annotator tells, (m, w); 0 for those who voted."""
    joint = annotators.with_next_vote(votes, rows, posterior)
    apart = joint.sum(axis=3, keepdims=True) * joint.sum(axis=2, keepdims=True)
    gains = np.maximum(rel_entr(joint, apart).sum(axis=(2, 3)) / np.log(2), 0.0)
    if annotators.groups is not None:
        gains *= annotators.groups.next_vote_weights(votes, rows)
    part = votes.on_rows(rows)
    gains[part.row, part.annotator] = 0.0
    return np.asarray(gains)


def _cost_of(annotators: Annotators, costs: Mapping[Any, float] | None) -> FloatArray:
    """Return the cost of a vote of each annotator, (w,)."""
    names = annotators.names.tolist()
    given = {} if costs is None else dict(costs)
    if unknown := set(given) - set(names):
        raise ValueError(
            f"costs names {shown(sorted(unknown, key=str))}, who have not voted: use names of "
            "annotators of the votes."
        )
    each = np.array([as_number(given.get(name, 1.0), f"costs[{name!r}]") for name in names])
    if not (each > 0).all() or not np.isfinite(each).any():
        raise ValueError(
            f"costs = {shown(costs)} must be positive, and finite for at least one annotator."
        )
    return each
