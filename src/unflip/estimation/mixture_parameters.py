r"""Class means and covariances from noisy labels, for the predictions of `unflip.theory`.

The mean of an observed class is a mixture of the true class means, so these are P⁻¹ times the
observed means, with P = P(true | observed). Their half-difference μ̂ is noisy: E‖μ̂‖² = ‖μ‖² +
Σ_a κ_a² tr(S_a)/n_a. In high dimension the second term can exceed the first. μ̂ is shortened to
the length that remains after subtracting it.

Covariances within the observed classes are estimated by Ledoit and Wolf's method. They include the
mislabelled rows, which add 4P(1 − P)μμᵀ. This is one direction among p. Subtracting an estimate of
it, from the same rows, does more harm than the shrinkage leaves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.covariance import ledoit_wolf
from sklearn.utils.validation import check_X_y

from unflip._utils.sparse import as_dense
from unflip._utils.typing import FloatArray
from unflip._utils.validation import as_flag, check_squares, check_unmasked, reading_rows
from unflip.labels.classes import encode
from unflip.labels.noise import NoiseModel, check_noise
from unflip.theory import GeneralMixture


def estimate_mixture(
    X: ArrayLike, y: ArrayLike, noise: NoiseModel, *, common_covariance: bool = True
) -> GeneralMixture:
    """Estimate the mixture of two classes from rows with noisy labels, for `unflip.theory`.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, p)
        Rows.
    y : array-like of shape (n,)
        Observed labels of two classes; the last in sorted order is positive.
    noise : NoiseModel
        Noise rates. Without priors, they are inferred from the observed proportions.
    common_covariance : bool
        Whether both classes have the same covariance. If False, the covariances are unmixed from
        those of the observed classes, which is unstable in strong noise.

    Returns
    -------
    GeneralMixture
        Input of `theory.predict_mixture` and `theory.optimal_reg`. It holds the difference of the
        class means, not their midpoint: use ``fit_intercept=True`` there, unless the midpoint is
        the origin.

    Notes
    -----
    Accuracy of the predictions (measured in docs/theory/covariance.md): unbiased on Gaussian
    mixtures, 2 to 3 points too high on bag-of-words data. In strong noise, predictions for a single
    data set may be off by 10 points, because the length of the mean is then uncertain.

    Examples
    --------
    >>> from unflip import NoiseModel, theory
    >>> from unflip.datasets import make_mixture
    >>> noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1)
    >>> X, y = make_mixture(1600, 400, mean_norm=1.2, random_state=0)
    >>> mixture = estimate_mixture(X, noise.flip(y, random_state=0), noise)
    >>> print(f"{theory.predict_mixture(mixture, reg=1.0, fit_intercept=True).accuracy:.2f}")
    0.82
    """
    check_noise(noise)
    common = as_flag(common_covariance, "common_covariance")
    check_unmasked(y=y)
    with reading_rows(X):
        checked_X, labels = check_X_y(X, y, accept_sparse="csr", dtype=np.float64)
    rows = as_dense(checked_X)  # the covariances are dense, p×p, in any case
    largest = float(np.abs(rows).max())
    check_squares(largest, rows.size)
    # A power of two: dividing by it is exact, and fourth powers fit float64.
    unit = float(np.ldexp(1.0, np.frexp(largest)[1]))
    rows = rows / unit
    classes, codes = encode(labels, "estimate_mixture")
    if len(classes) != 2 or noise.n_classes != 2:
        raise ValueError(
            f"estimate_mixture requires two classes; y has {len(classes)}, the noise model "
            f"{noise.n_classes}."
        )
    counts = np.bincount(codes)
    if counts.min() < 2:
        raise ValueError(
            f"Class {classes[counts.argmin()]!r} has one row only: pass at least two rows of each "
            "class."
        )
    if noise.priors is None:
        noise = noise.with_observed(counts / len(codes))
    parts = [rows[codes == a] for a in (0, 1)]
    observed_means = np.array([part.mean(axis=0) for part in parts])
    # Row = true class, column = observed class.
    unmixing = np.asarray(np.linalg.inv(noise.posterior), dtype=float)
    contrast = (unmixing[1] - unmixing[0]) / 2  # κ
    residuals = [part - mean for part, mean in zip(parts, observed_means, strict=True)]
    covariances = _covariances(residuals, unmixing, common)
    powers = [float((part**2).mean(axis=0).sum()) / len(part) for part in residuals]  # tr(S_a)/n_a
    return GeneralMixture(
        mean=unit * _shortened(contrast @ observed_means, float(contrast**2 @ powers)),
        cov_neg=unit**2 * covariances[0],
        cov_pos=unit**2 * covariances[1],
        n=len(codes),
        noise=noise,
    )


def _shortened(mean: FloatArray, noise_power: float) -> FloatArray:
    """Return the mean with the noise subtracted from its squared length."""
    power = float(mean @ mean)
    if not power > 0:
        return mean
    return np.asarray(mean * np.sqrt(max(0.0, 1 - noise_power / power)))


def _covariances(
    residuals: list[FloatArray], unmixing: FloatArray, common: bool
) -> tuple[FloatArray, FloatArray]:
    """Return the covariances of the negative and the positive class."""
    if common:
        pooled, _ = ledoit_wolf(np.vstack(residuals), assume_centered=True)
        return pooled, pooled
    observed = np.array([ledoit_wolf(part, assume_centered=True)[0] for part in residuals])
    neg, pos = np.tensordot(unmixing, observed, axes=1)
    return _positive(neg), _positive(pos)


def _positive(matrix: FloatArray) -> FloatArray:
    """Return the nearest positive semi-definite matrix: unmixing may subtract too much."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T)
