"""Tables of the annotators: how much they vote, how often they are right, and what they confuse."""

from __future__ import annotations

import numpy as np

from unflip._utils.arrays import TINY
from unflip._utils.record_tables import Table, columns_of, table
from unflip._utils.typing import FloatArray
from unflip.calibration.interval import Interval, share_interval
from unflip.calibration.true_class import TrueClassModel
from unflip.labels.annotators import Annotators
from unflip.labels.votes import Votes


def annotator_table(votes: Votes, annotators: Annotators, model: TrueClassModel) -> Table:
    """Return `Votes.summary` with accuracy, information and weight of each annotator's votes.

    Parameters
    ----------
    votes : Votes
        The votes.
    annotators : Annotators
        Their annotators.
    model : TrueClassModel
        Model of the true class of the rows.
    """
    summary = votes.summary()
    order = np.searchsorted(votes.annotators, summary.annotator)
    n_votes = np.bincount(votes.annotator)
    weights = annotators.weighted_table(votes).sum(axis=0).reshape(-1, len(votes.classes))

    def right(posterior: FloatArray) -> FloatArray:
        own = posterior[votes.row, votes.label]
        return np.asarray(np.bincount(votes.annotator, own) / n_votes)

    accuracy, variance = model.with_variances(right)
    own = model.posterior[votes.row, votes.label]
    sampling = np.bincount(votes.annotator, own * (1 - own)) / n_votes**2
    intervals = _intervals(accuracy, variance + sampling * _rows_per_vote(votes, model))
    return table(
        **columns_of(summary),
        accuracy=accuracy[order],
        low=np.array([interval.low for interval in intervals])[order],
        high=np.array([interval.high for interval in intervals])[order],
        information=annotators.information[order],
        weight=(weights.sum(axis=1) / n_votes)[order],
    )


def confusion_table(votes: Votes, model: TrueClassModel) -> Table:
    """Return P(label | true class) of the votes of each annotator, a line for each of them.

    The intervals are those of further votes on such rows. Rates of a class without any are NaN.

    Parameters
    ----------
    votes : Votes
        The votes.
    model : TrueClassModel
        Model of the true class of the rows.
    """
    w, k = len(votes.annotators), len(votes.classes)

    def counts(posterior: FloatArray) -> FloatArray:
        return np.asarray(votes.table.T @ posterior).reshape(w, k, k).transpose(0, 2, 1)

    def rates(posterior: FloatArray) -> FloatArray:
        each = counts(posterior)
        total = each.sum(axis=2, keepdims=True)
        return np.where(total > 0, each / np.maximum(total, TINY), np.nan)

    rate, variance = model.with_variances(rates)
    observed = counts(model.posterior)
    # With one more vote for each label, rates of few votes have no variance of 0.
    n_true = observed.sum(axis=2, keepdims=True) + k
    smooth = (observed + 1) / n_true
    sampling = smooth * (1 - smooth) / n_true * _rows_per_vote(votes, model)
    intervals = _intervals(rate.ravel(), (variance + sampling).ravel())
    annotator, true_class, label = (index.ravel() for index in np.indices((w, k, k)))
    return table(
        annotator=votes.annotators[annotator],
        true_class=votes.classes[true_class],
        label=votes.classes[label],
        rate=rate.ravel(),
        low=np.array([interval.low for interval in intervals]),
        high=np.array([interval.high for interval in intervals]),
    )


def _rows_per_vote(votes: Votes, model: TrueClassModel) -> float:
    """Return by how much dependence between rows increases sampling variances."""
    return len(votes) / model.n_effective


def _intervals(shares: FloatArray, variances: FloatArray) -> list[Interval]:
    return [
        share_interval(float(share), float(error))
        for share, error in zip(shares, np.sqrt(variances), strict=True)
    ]
