"""Labels and label noise: the noise model, votes, annotators, and class encoding.

Input: labels, transition matrices and votes. Output: class indices, and P(observation | true
class) as a `Channel`. Uses no features, and loads without scikit-learn.
"""

from unflip.labels.annotators import Annotators
from unflip.labels.class_values import (
    ByClass,
    noise_in_order,
    noise_of_rates,
    priors_in_order,
    proportions_in_order,
)
from unflip.labels.classes import (
    contrasts,
    encode,
    inclusion_probabilities,
    is_missing,
    split_missing,
    true_codes,
)
from unflip.labels.codes import UNCHECKED, UNLABELLED
from unflip.labels.crowd import Crowd
from unflip.labels.moved_noise import moved_rate
from unflip.labels.noise import (
    Channel,
    NoiseModel,
    check_noise,
    checked_proportions,
    shares_of_wrong_labels,
)
from unflip.labels.spellings import letters, usual_spellings
from unflip.labels.votes import Votes

__all__ = [
    "UNCHECKED",
    "UNLABELLED",
    "Annotators",
    "ByClass",
    "Channel",
    "Crowd",
    "NoiseModel",
    "Votes",
    "check_noise",
    "checked_proportions",
    "contrasts",
    "encode",
    "inclusion_probabilities",
    "is_missing",
    "letters",
    "moved_rate",
    "noise_in_order",
    "noise_of_rates",
    "priors_in_order",
    "proportions_in_order",
    "shares_of_wrong_labels",
    "split_missing",
    "true_codes",
    "usual_spellings",
]
