"""Estimators of noise rates, and of the mixture parameters that the theory needs.

Input: samples with observed labels, and trusted labels if there are any. Output: a `NoiseModel`
with standard errors. A new estimator is one new file with a subclass of `NoiseEstimator`.
"""

from unflip.estimation.anchors import anchor_rates, consistent_noise
from unflip.estimation.automatic import Automatic
from unflip.estimation.clusters import fit_clusters
from unflip.estimation.cross_moment import CrossMoment
from unflip.estimation.given_rates import GivenRates
from unflip.estimation.isotropy import MixtureEvidence, mixture_evidence
from unflip.estimation.mean_norm import mean_norm_from_rows
from unflip.estimation.mixture_parameters import estimate_mixture
from unflip.estimation.noise_estimator import AssumedNoiseWarning, NoiseEstimator
from unflip.estimation.priors_constraint import constrain_by_priors
from unflip.estimation.second_moment import SecondMomentMatching
from unflip.estimation.spectral import SpectralMixture, Spikes, spectral_mixture
from unflip.estimation.trusted import TrustedSubset

__all__ = [
    "AssumedNoiseWarning",
    "Automatic",
    "CrossMoment",
    "GivenRates",
    "MixtureEvidence",
    "NoiseEstimator",
    "SecondMomentMatching",
    "SpectralMixture",
    "Spikes",
    "TrustedSubset",
    "anchor_rates",
    "consistent_noise",
    "constrain_by_priors",
    "estimate_mixture",
    "fit_clusters",
    "mean_norm_from_rows",
    "mixture_evidence",
    "spectral_mixture",
]
