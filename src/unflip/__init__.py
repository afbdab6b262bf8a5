"""Linear classifiers from noisy labels in high dimension."""

from unflip import datasets, targets, theory
from unflip.classifier import LPClassifier
from unflip.noise import NoiseModel

__all__ = ["LPClassifier", "NoiseModel", "datasets", "targets", "theory"]
__version__ = "0.1.0"
