r"""What the rows alone, without any label, say of the classes: spikes of the covariance above the noise.

In a mixture of k classes with isotropic noise of variance σ² the covariance about the mean has up
to k − 1 eigenvalues σ²(1 + ℓ) above σ². Of the sample covariance of n rows (η = p/(n − 1)) those
with ℓ > √η stand out of the bulk, at

.. math:: \lambda = \sigma^2 (1 + \ell)\Bigl(1 + \frac{\eta}{\ell}\Bigr),

while weaker ones drown in it. The rows' coordinate along a spike, scaled to unit variance, is that
of their class's mean, shrunk, plus Gaussian noise: the two are correlated by

.. math:: \rho^2 = \frac{1 - \eta/\ell^2}{1 + 1/\ell}.

For two classes ℓ = 4π₁π₂‖μ‖².
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import expit
from scipy.stats import gamma, norm
from sklearn.utils.validation import check_array

from unflip._utils.arrays import as_numpy
from unflip._utils.typing import FloatArray
from unflip._utils.validation import reading_rows
from unflip.data.centred import check_magnitude
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.decomposition import decompose

#: Share of pure noise that is taken for a spike.
_FALSE_ALARM = 0.01
# The Tracy–Widom law of the largest eigenvalue (real data), as Chiani's shifted gamma law: right to
# three digits.
_TRACY_WIDOM = gamma(46.446, loc=-9.84801, scale=0.186054)
_ROUNDING = 1e-10
_LOG_ODDS_GRID = np.linspace(-5, 5, 41)


@dataclass(frozen=True, eq=False)
class Spikes:
    """Directions in which rows vary more than isotropic noise does.

    Attributes
    ----------
    strengths : ndarray of shape (r,)
        ℓ of each spike, the variance of the class means along it in units of the noise, strongest
        first.
    noise_variance : float
        σ², of one feature.
    excess_spread : float
        How far the other eigenvalues are spread beyond those of isotropic noise, in standard
        deviations of that spread.
    aspect : float
        η = p/(n − 1).
    spectrum : Spectrum
        That of the rows.
    """

    strengths: FloatArray
    noise_variance: float
    excess_spread: float
    aspect: float
    spectrum: Spectrum

    @classmethod
    def of(cls, spectrum: Spectrum, most: int | None = None) -> Spikes:
        """Find the spikes in the spectrum of centred rows, all of weight 1, or so many of them."""
        variances, unit = _relative_variances(spectrum)
        n_features, n_free = len(variances), spectrum.n - 1
        edge, limit = bulk_edge(n_features, n_free), min(n_features, n_free) / 2
        wanted = limit if most is None else min(most, limit)
        n_spikes = 0
        noise, strengths = _noise_and_strengths(variances, n_spikes, n_free)
        while n_spikes + 1 <= wanted and variances[n_spikes] > noise * edge:
            if variances[n_spikes + 1 :].sum() <= _ROUNDING * variances.sum():
                break  # what stands out is all there is: no noise to stand out of
            n_spikes += 1
            noise, strengths = _noise_and_strengths(variances, n_spikes, n_free)
        return cls(
            strengths=strengths,
            noise_variance=noise * unit,
            excess_spread=_excess_spread(variances, strengths, n_free),
            aspect=n_features / n_free,
            spectrum=spectrum,
        )

    @cached_property
    def coordinates(self) -> FloatArray:
        """The rows along the spikes, with mean 0 and variance 1, (n, r): a pass over them."""
        return as_numpy(self.spectrum.coordinates(len(self.strengths)))

    @property
    def visibility(self) -> FloatArray:
        """ρ², how much of the coordinates' variance is that of the class means; one value per spike."""
        return np.asarray((1 - self.aspect / self.strengths**2) / (1 + 1 / self.strengths))


@dataclass(frozen=True)
class SpectralMixture:
    """Two classes as seen without labels.

    Attributes
    ----------
    mean_norm : float
        ‖μ‖, half the distance between the class means, in units of the noise's standard deviation.
    pi_small : float
        Proportion of the smaller class; which of the two it is, only labels can tell.
    noise_std : float
        σ, standard deviation of the noise of one feature.
    """

    mean_norm: float
    pi_small: float
    noise_std: float


def spectral_mixture(X: ArrayLike) -> SpectralMixture:
    """Estimate ‖μ‖, the class proportions and the noise of a two-class isotropic mixture, without labels.

    The length comes from the top eigenvalue of the covariance, the proportions from the likelihood
    of the rows' coordinates along its eigenvector. Neither the origin nor the noise's variance need
    be known.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, p)
        Rows.

    Examples
    --------
    >>> from unflip.datasets import make_mixture
    >>> X, _ = make_mixture(2000, 200, mean_norm=2.0, priors=[0.3, 0.7], random_state=0)
    >>> found = spectral_mixture(5 + 3 * X)
    >>> print(f"{found.mean_norm:.1f} {found.pi_small:.1f} {found.noise_std:.1f}")
    2.0 0.3 3.0
    """
    with reading_rows(X):
        rows = check_array(X, accept_sparse="csr", dtype=np.float64, ensure_min_samples=4)
    check_magnitude(rows)
    spikes = Spikes.of(decompose(rows))
    check_visible(spikes)
    pi = proportion_along(spikes.coordinates[:, 0], float(spikes.visibility[0]))
    strength = float(spikes.strengths[0])
    return SpectralMixture(
        np.sqrt(strength / (4 * pi * (1 - pi))), min(pi, 1 - pi), np.sqrt(spikes.noise_variance)
    )


def check_visible(spikes: Spikes) -> None:
    """Raise where no spike stands out of the noise."""
    if not len(spikes.strengths):
        weakest = np.sqrt(spikes.aspect)
        raise ValueError(
            "No direction of X stands out of isotropic noise, so the rows alone do not show the "
            f"classes: 4π₁π₂‖μ‖² is below about {weakest:.2g}, the limit for this many features "
            "per row. Give mean_norm= and pi_neg=, more rows, or trusted rows."
        )


def proportion_along(coordinates: FloatArray, visibility: float) -> float:
    """Maximum-likelihood share of the class on the right, of two along a spike of known visibility.

    With unit variance in all, the class means are −2π₂ρ/√v and 2π₁ρ/√v (v = 4π₁π₂) and the variance
    within is 1 − ρ².
    """

    def cost(log_odds: float) -> float:
        right = float(expit(log_odds))
        scale = np.sqrt(visibility / (right * (1 - right)))
        left_density = norm.pdf(coordinates, -right * scale, np.sqrt(1 - visibility))
        right_density = norm.pdf(coordinates, (1 - right) * scale, np.sqrt(1 - visibility))
        density = (1 - right) * left_density + right * right_density
        return -float(np.log(np.maximum(density, np.finfo(float).tiny)).sum())

    best = int(np.argmin([cost(value) for value in _LOG_ODDS_GRID]))
    around = (
        _LOG_ODDS_GRID[max(best - 1, 0)],
        _LOG_ODDS_GRID[min(best + 1, len(_LOG_ODDS_GRID) - 1)],
    )
    return float(expit(minimize_scalar(cost, bounds=around, method="bounded").x))


def bulk_edge(n_features: int, n_free: float) -> float:
    """Largest eigenvalue that isotropic noise of variance 1 has, but for one case in a hundred (Tracy–Widom law)."""
    rows, columns = np.sqrt(n_free - 0.5), np.sqrt(n_features - 0.5)
    centre = (rows + columns) ** 2
    scale = (rows + columns) * (1 / rows + 1 / columns) ** (1 / 3)
    return float(centre + scale * _TRACY_WIDOM.ppf(1 - _FALSE_ALARM)) / n_free


def _relative_variances(spectrum: Spectrum) -> tuple[FloatArray, float]:
    """Unbiased variances along all principal directions, largest first, and the mean that they are relative to."""
    n_features = max(spectrum.n_varying, 1)
    found = np.sort(as_numpy(spectrum.variances))[::-1][:n_features]
    unit = float(found.sum()) / n_features
    variances = (
        np.append(found / unit, np.zeros(n_features - len(found)))
        if unit > 0
        else np.ones(n_features)
    )
    return variances, unit * spectrum.n / (spectrum.n - 1)


def _noise_and_strengths(
    variances: FloatArray, n_spikes: int, n_free: float
) -> tuple[float, FloatArray]:
    """σ² and ℓ of the first eigenvalues: each depends on the other, by a bias of the bulk that a few rounds settle."""
    n_features = len(variances)
    aspect = n_features / n_free
    rest = float(variances[n_spikes:].sum())
    noise, strengths = rest / (n_features - n_spikes), np.zeros(0)
    for _ in range(20):
        strengths = _strength(variances[:n_spikes] / noise, aspect)
        pushed = float((aspect + aspect / strengths).sum())
        noise = rest / max(n_features - n_spikes - pushed, (n_features - n_spikes) / 2)
    return noise, strengths


def _strength(relative: FloatArray, aspect: float) -> FloatArray:
    """ℓ of an eigenvalue λ/σ² = (1 + ℓ)(1 + η/ℓ), the larger root; at the transition where there is none."""
    half = (relative - 1 - aspect) / 2
    return np.asarray(half + np.sqrt(np.maximum(half**2 - aspect, 0)))


def _excess_spread(variances: FloatArray, strengths: FloatArray, n_free: float) -> float:
    """Spread of the bulk's eigenvalues beyond that of isotropic noise, standardised.

    Without spikes this is John's test of sphericity: with N = n − 1, N(pΣλ²/(Σλ)² − 1) − p is N(1,
    4) in high dimension (Ledoit and Wolf 2002). A spike takes its own eigenvalue away and pushes
    the others down a little, which lowers Σλ by 1 + η + η/ℓ and Σλ² by 1 + 4η + 2η/ℓ + η²(1 +
    1/ℓ)².
    """
    n_features = len(variances)
    aspect = n_features / n_free
    bulk = variances[len(strengths) :]
    lost = 1 + aspect + aspect / strengths
    lost_squares = 1 + 4 * aspect + 2 * aspect / strengths + (aspect * (1 + 1 / strengths)) ** 2
    shift = float((2 * (1 + aspect) * lost - lost_squares).sum()) / aspect
    statistic = n_free * (n_features * float(bulk @ bulk) / float(bulk.sum()) ** 2 - 1) - n_features
    return (statistic - 1 - shift) / 2
