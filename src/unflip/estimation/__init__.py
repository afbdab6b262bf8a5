"""Estimators of noise rates, and of the mixture parameters that the theory needs.

Input: samples with observed labels, and trusted labels if there are any. Output: a `NoiseModel`
with standard errors. A new estimator is one new file with a subclass of `NoiseEstimator`.
"""

from unflip.estimation.automatic import Automatic
from unflip.estimation.cross_moment import CrossMoment
from unflip.estimation.isotropy import MixtureEvidence
from unflip.estimation.mean_norm import mean_norm_from_rows
from unflip.estimation.mixture_parameters import estimate_mixture
from unflip.estimation.noise_estimator import AssumedNoiseWarning, NoiseEstimator
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
