"""Linear classifiers from noisy labels in high dimension."""

from unflip import datasets, estimation, losses, targets, theory
from unflip.auditing import Audit, audit, audit_scores
from unflip.classifier import LPClassifier
from unflip.moments import Moments
from unflip.noise import NoiseModel
from unflip.votes import Votes

__all__ = [
    "Audit",
    "LPClassifier",
    "Moments",
    "NoiseModel",
    "Votes",
    "audit",
    "audit_scores",
    "datasets",
    "estimation",
    "losses",
    "targets",
    "theory",
]
__version__ = "0.1.0"
