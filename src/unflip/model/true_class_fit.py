"""The model of the true class for a fit with trusted labels."""

from __future__ import annotations

import numpy as np

from unflip._utils.arrays import as_numpy
from unflip._utils.typing import Array, IntArray
from unflip.calibration.labelled_scores import LabelledScores, ModelScores
from unflip.calibration.true_class import TrueClassModel
from unflip.data.training_set import TrainingSet
from unflip.labels.classes import inclusion_probabilities
from unflip.labels.codes import UNCHECKED
from unflip.model.noise_sources import NoiseSource


def true_class_model(
    data: TrainingSet, source: NoiseSource, probabilities: Array, predicted: Array
) -> TrueClassModel | None:
    """Return the model that trusted labels calibrate; None if the rates come from elsewhere.

    Parameters
    ----------
    data : TrainingSet
        The training set.
    source : NoiseSource
        Noise model, with the trusted labels.
    probabilities : array of shape (n_positive, k)
        P(true class | score) of each member. The row's own label must not contribute to it.
    predicted : array of shape (n_positive,)
        Predicted class of each member.
    """
    estimator = source.estimator
    if estimator is None or not source.is_calibrated_by_truth:
        return None
    truth = as_numpy(data.trusted_codes(estimator.y_trusted))
    counts = as_numpy(data.rows.counts)
    if not ((truth != UNCHECKED) & (counts > 0)).any():
        return None
    members = as_numpy(data.rows.members)
    inclusion = inclusion_probabilities(estimator.inclusion, data.n_rows, members, truth)
    scores = ModelScores.of(as_numpy(probabilities), as_numpy(predicted))
    rows = _labelled_scores(data, source, scores)
    return TrueClassModel.fit(rows, truth, counts=counts, inclusion=inclusion)


def _labelled_scores(data: TrainingSet, source: NoiseSource, scores: ModelScores) -> LabelledScores:
    k = len(data.classes)
    votes = data.votes
    if votes is None or source.annotators is None:
        return LabelledScores((scores,), _as_codes(data.codes), k)
    channel = source.channel(data)
    observed = votes.majority(channel.transition.T)
    if votes.abstentions:
        scores = scores.claimed_by_rules(channel.posterior, votes.voted)
    vote_logs = source.annotators.log_likelihoods(votes)
    return LabelledScores((scores,), observed, k, vote_logs)


def _as_codes(codes: Array) -> IntArray:
    return np.asarray(as_numpy(codes), dtype=np.intp)
