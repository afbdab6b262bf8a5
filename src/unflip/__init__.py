"""Linear classifiers from noisy labels in high dimension."""

from unflip import datasets, estimation, losses, targets, theory
from unflip.classifier import LPClassifier
from unflip.noise import NoiseModel

__all__ = ["LPClassifier", "NoiseModel", "datasets", "estimation", "losses", "targets", "theory"]
__version__ = "0.1.0"
