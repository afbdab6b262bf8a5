r"""Spikes: eigenvalues of the covariance above the noise level, computed without labels.

In a mixture of k classes with isotropic noise of variance σ², the covariance about the mean has up
to k − 1 eigenvalues σ²(1 + ℓ) above σ². In the sample covariance of n rows (η = p/(n − 1)), those
with ℓ > √η lie above the bulk, at

.. math:: \lambda = \sigma^2 (1 + \ell)\Bigl(1 + \frac{\eta}{\ell}\Bigr),

and weaker ones within it. The coordinate of a row along a spike, scaled to unit variance, is that
of its class mean, shrunk, plus Gaussian noise. The squared correlation of the two is

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
from unflip.data.rows import check_magnitude
from unflip.ridge.spectrum.base import Spectrum
from unflip.ridge.spectrum.decomposition import decompose

#: Tracy–Widom law of the largest eigenvalue (real data), by the shifted gamma distribution of
#: Chiani (2014), which is right to three digits.
_TRACY_WIDOM = gamma(46.446, loc=-9.84801, scale=0.186054)
#: Starting values of the log-odds of class proportions, which cover proportions from .7 to 99.3%.
#: Half and twice as many lead to the same proportions, up to 1e-6.
_LOG_ODDS_GRID = np.linspace(-5, 5, 41)


@dataclass(frozen=True, eq=False)
class Spikes:
    """Principal directions with more variance than isotropic noise.

    Attributes
    ----------
    strengths : ndarray of shape (r,)
        ℓ of each spike, the variance of the class means along it in units of the noise, strongest
        first.
    noise_variance : float
        σ², of one feature.
    excess_spread : float
        Spread of the other eigenvalues beyond that of isotropic noise, in standard errors.
    aspect : float
        η = p/(n − 1).
    spectrum : Spectrum
        Spectrum of the rows.
    """

    strengths: FloatArray
    noise_variance: float
    excess_spread: float
    aspect: float
    spectrum: Spectrum

    @classmethod
    def of(cls, spectrum: Spectrum, most: int | None = None) -> Spikes:
        """Return the spikes in the spectrum of centred rows of weight 1, at most so many."""
        variances, unit = _relative_variances(spectrum)
        n_features = len(variances)
        n_free = spectrum.n - 1
        edge = bulk_edge(n_features, n_free)
        limit = min(n_features, n_free) / 2
        if most is not None:
            limit = min(most, limit)
        n_spikes = 0
        noise, strengths = _noise_and_strengths(variances, n_spikes, n_free)
        while n_spikes + 1 <= limit and variances[n_spikes] > noise * edge:
            if variances[n_spikes + 1 :].sum() <= 1e-10 * variances.sum():
                break  # the rest is rounding, not noise
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
        """Coordinates of the rows along the spikes, with mean 0 and variance 1, (n, r)."""
        return as_numpy(self.spectrum.coordinates(len(self.strengths)))

    @property
    def visibility(self) -> FloatArray:
        """Share ρ² of the variance along each spike that is due to the class means."""
        return np.asarray((1 - self.aspect / self.strengths**2) / (1 + 1 / self.strengths))


@dataclass(frozen=True)
class SpectralMixture:
    """Parameters of two classes, estimated without labels.

    Attributes
    ----------
    mean_norm : float
        ‖μ‖, half the distance between the class means, in units of the noise's standard deviation.
    pi_small : float
        Proportion of the smaller class. Without labels it is unknown which of the two it is.
    noise_std : float
        σ, standard deviation of the noise of one feature.
    """

    mean_norm: float
    pi_small: float
    noise_std: float


def spectral_mixture(X: ArrayLike) -> SpectralMixture:
    """Estimate an isotropic mixture of two classes without labels.

    ‖μ‖ follows from the largest eigenvalue of the covariance, the class proportions from the
    likelihood of the coordinates along its eigenvector. The origin and the variance of the noise
    may be unknown.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, p)
        Rows.

    Examples
    --------
    >>> from unflip.datasets import make_mixture
    >>> X, _ = make_mixture(2000, 200, mean_norm=2.0, priors=[0.3, 0.7], random_state=0)
    >>> mixture = spectral_mixture(5 + 3 * X)
    >>> print(f"{mixture.mean_norm:.1f} {mixture.pi_small:.1f} {mixture.noise_std:.1f}")
    2.0 0.3 3.0
    """
    with reading_rows(X):
        rows = check_array(X, accept_sparse="csr", dtype=np.float64, ensure_min_samples=4)
    check_magnitude(rows)
    spikes = Spikes.of(decompose(rows))
    check_has_spike(spikes)
    pi = proportion_along(spikes.coordinates[:, 0], float(spikes.visibility[0]))
    strength = float(spikes.strengths[0])
    return SpectralMixture(
        mean_norm=np.sqrt(strength / (4 * pi * (1 - pi))),
        pi_small=min(pi, 1 - pi),
        noise_std=np.sqrt(spikes.noise_variance),
    )


def check_has_spike(spikes: Spikes) -> None:
    """Raise `ValueError` if there is no spike."""
    if not len(spikes.strengths):
        weakest = np.sqrt(spikes.aspect)
        raise ValueError(
            "No eigenvalue of the covariance of X exceeds the level of isotropic noise, so the "
            f"classes are not visible without labels: 4π₁π₂‖μ‖² is below about {weakest:.2g}, the "
            "limit for this number of rows and features. Pass mean_norm= and pi_neg=, more rows, "
            "or trusted labels."
        )


def proportion_along(coordinates: FloatArray, visibility: float) -> float:
    """Return the maximum-likelihood proportion of the class on the right along a spike.

    With total variance 1, the class means are −2π₂ρ/√v and 2π₁ρ/√v (v = 4π₁π₂), and the variance
    within classes is 1 − ρ².
    """

    def cost(log_odds: float) -> float:
        right = float(expit(log_odds))
        scale = np.sqrt(visibility / (right * (1 - right)))
        left_density = norm.pdf(coordinates, -right * scale, np.sqrt(1 - visibility))
        right_density = norm.pdf(coordinates, (1 - right) * scale, np.sqrt(1 - visibility))
        density = (1 - right) * left_density + right * right_density
        return -float(np.log(np.maximum(density, np.finfo(float).tiny)).sum())

    best = int(np.argmin([cost(value) for value in _LOG_ODDS_GRID]))
    bounds = (
        _LOG_ODDS_GRID[max(best - 1, 0)],
        _LOG_ODDS_GRID[min(best + 1, len(_LOG_ODDS_GRID) - 1)],
    )
    return float(expit(minimize_scalar(cost, bounds=bounds, method="bounded").x))


def bulk_edge(n_features: int, n_free: float) -> float:
    """Return the 99% quantile of the largest eigenvalue of isotropic noise of variance 1."""
    rows = np.sqrt(n_free - 0.5)
    columns = np.sqrt(n_features - 0.5)
    centre = (rows + columns) ** 2
    scale = (rows + columns) * (1 / rows + 1 / columns) ** (1 / 3)
    return float(centre + scale * _TRACY_WIDOM.ppf(0.99)) / n_free


def _relative_variances(spectrum: Spectrum) -> tuple[FloatArray, float]:
    """Return variances along all principal directions, largest first, over their mean.

    Returns that mean too, unbiased. Variances are 1 if the rows do not vary.
    """
    n_features = max(spectrum.n_varying, 1)
    variances = np.sort(as_numpy(spectrum.variances))[::-1][:n_features]
    unit = float(variances.sum()) / n_features
    relative = np.ones(n_features)
    if unit > 0:
        relative = np.append(variances / unit, np.zeros(n_features - len(variances)))
    return relative, unit * spectrum.n / (spectrum.n - 1)


def _noise_and_strengths(
    variances: FloatArray, n_spikes: int, n_free: float
) -> tuple[float, FloatArray]:
    """Return σ² and ℓ of the first eigenvalues, by fixed-point iteration.

    A spike lowers the bulk by η + η/ℓ, which biases σ².
    """
    n_features = len(variances)
    aspect = n_features / n_free
    rest = float(variances[n_spikes:].sum())
    noise = rest / (n_features - n_spikes)
    for _ in range(20):  # more than enough to converge
        strengths = _strength(variances[:n_spikes] / noise, aspect)
        lost = float((aspect + aspect / strengths).sum())
        noise = rest / max(n_features - n_spikes - lost, (n_features - n_spikes) / 2)
    return noise, strengths


def _strength(relative: FloatArray, aspect: float) -> FloatArray:
    """Return ℓ of eigenvalues λ/σ² = (1 + ℓ)(1 + η/ℓ): the larger root, √η if there is none."""
    half = (relative - 1 - aspect) / 2
    return np.asarray(half + np.sqrt(np.maximum(half**2 - aspect, 0)))


def _excess_spread(variances: FloatArray, strengths: FloatArray, n_free: float) -> float:
    """Return the spread of bulk eigenvalues beyond that of isotropic noise, in standard errors.

    Without spikes this is John's test of sphericity: with N = n − 1, N(pΣλ²/(Σλ)² − 1) − p is
    N(1, 4) in high dimension (Ledoit and Wolf 2002). A spike removes its own eigenvalue and lowers
    the others slightly: Σλ falls by 1 + η + η/ℓ, and Σλ² by 1 + 4η + 2η/ℓ + η²(1 + 1/ℓ)².
    """
    n_features = len(variances)
    aspect = n_features / n_free
    bulk = variances[len(strengths) :]
    lost = 1 + aspect + aspect / strengths
    lost_squares = 1 + 4 * aspect + 2 * aspect / strengths + (aspect * (1 + 1 / strengths)) ** 2
    shift = float((2 * (1 + aspect) * lost - lost_squares).sum()) / aspect
    statistic = n_free * (n_features * float(bulk @ bulk) / float(bulk.sum()) ** 2 - 1) - n_features
    return (statistic - 1 - shift) / 2
