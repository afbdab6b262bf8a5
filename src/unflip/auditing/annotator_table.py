"""The table of annotators: how much they vote, and how often they are right."""

from __future__ import annotations

import numpy as np

from unflip._utils.record_tables import Table, table
from unflip.labels.annotators import Annotators
from unflip.labels.votes import Votes


def annotator_table(votes: Votes, annotators: Annotators) -> Table:
    """Return `Votes.summary` with the accuracy of each annotator and its 95% interval.

    Parameters
    ----------
    votes : Votes
        The votes.
    annotators : Annotators
        Transition matrices of the same annotators.
    """
    summary = votes.summary()
    order = np.searchsorted(annotators.names, summary.annotator)
    low, high = annotators.accuracy_intervals()[order].T
    columns = {name: summary[name] for name in summary.dtype.names or ()}
    return table(**columns, accuracy=annotators.accuracy[order], low=low, high=high)
