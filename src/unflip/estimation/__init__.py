"""What the data say of themselves: how labels were flipped, and the other quantities that the theory takes as known."""

from unflip.estimation.automatic import AssumedNoiseWarning, Automatic
from unflip.estimation.base import NoiseEstimator
from unflip.estimation.cross_moment import CrossMoment
from unflip.estimation.evidence import MixtureEvidence
from unflip.estimation.mean_norm import mean_norm_from_rows
from unflip.estimation.mixture import estimate_mixture
from unflip.estimation.second_moment import SecondMomentMatching
from unflip.estimation.spectral import SpectralMixture, spectral_mixture
from unflip.estimation.trusted import TrustedSubset

__all__ = [
    "AssumedNoiseWarning",
    "Automatic",
    "CrossMoment",
    "MixtureEvidence",
    "NoiseEstimator",
    "SecondMomentMatching",
    "SpectralMixture",
    "TrustedSubset",
    "estimate_mixture",
    "mean_norm_from_rows",
    "spectral_mixture",
]
