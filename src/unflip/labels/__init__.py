"""Labels and their noise: the noise model, votes, annotators, and class encoding.

In come labels as a user has them, transition matrices and votes. Out come class indices, and
P(observed | true class) as a `Channel`. Knows no features, and loads without scikit-learn.
"""

from unflip.labels.annotators import Annotators, Crowd
from unflip.labels.classes import UNCHECKED, contrasts, encode, is_missing, true_codes
from unflip.labels.moved_noise import channels_one_error_away, moved_rate
from unflip.labels.noise import Channel, NoiseModel, check_noise, checked_proportions
from unflip.labels.votes import UNLABELLED, Votes

__all__ = [
    "UNCHECKED",
    "UNLABELLED",
    "Annotators",
    "Channel",
    "Crowd",
    "NoiseModel",
    "Votes",
    "channels_one_error_away",
    "check_noise",
    "checked_proportions",
    "contrasts",
    "encode",
    "is_missing",
    "moved_rate",
    "true_codes",
]
