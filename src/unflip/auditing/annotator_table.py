"""The table of annotators: how much they vote, and how often they are right."""

from __future__ import annotations

import numpy as np

from unflip._utils.record_tables import Table, table
from unflip._utils.typing import FloatArray
from unflip.calibration.interval import share_interval
from unflip.calibration.true_class import TrueClassModel
from unflip.labels.votes import Votes


def annotator_table(votes: Votes, model: TrueClassModel) -> Table:
    """Return `Votes.summary` with the share of right votes of each annotator and its 95% interval.

    Parameters
    ----------
    votes : Votes
        The votes.
    model : TrueClassModel
        Model of the true class of the rows.
    """
    summary = votes.summary()
    order = np.searchsorted(votes.annotators, summary.annotator)
    n_votes = np.bincount(votes.annotator)

    def shares(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(votes.annotator, values) / n_votes)

    def right(posterior: FloatArray) -> FloatArray:
        return shares(posterior[votes.row, votes.label])

    accuracy, variance = model.with_variances(right)
    own = model.posterior[votes.row, votes.label]
    rows_per_vote = len(votes) / model.n_effective  # more than 1 if rows are not independent
    sampling = shares(own * (1 - own)) / n_votes * rows_per_vote
    intervals = [
        share_interval(float(value), float(error))
        for value, error in zip(accuracy, np.sqrt(variance + sampling), strict=True)
    ]
    return table(
        **{name: summary[name] for name in summary.dtype.names or ()},
        accuracy=accuracy[order],
        low=np.array([interval.low for interval in intervals])[order],
        high=np.array([interval.high for interval in intervals])[order],
    )
