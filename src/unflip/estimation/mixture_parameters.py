r"""Class means and covariances from noisy labels, so that the theory can be asked about real data.

The mean row of an observed class is a known mixture of the true class means, so with P = P(true |
observed) they are P⁻¹ times the observed means. Their half-difference μ̂ carries noise, E‖μ̂‖² =
‖μ‖² + Σ_a κ_a² tr(S_a)/n_a, which in high dimension can exceed ‖μ‖² itself: μ̂ is shortened to the
length that remains when the noise is subtracted.

Covariances are Ledoit and Wolf's, within the observed classes. These still hold the flipped rows,
which add 4P(1 − P)μμᵀ. That is one direction among p, and subtracting an estimate of it, found from
the same rows, does more harm than the shrinkage leaves it to do.
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
    """Estimate the two classes behind rows with noisy labels, for `unflip.theory`.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, p)
        Rows.
    y : array-like of shape (n,)
        Observed labels of two classes; the later in sorted order is positive.
    noise : NoiseModel
        Flip rates; priors are inferred from the observed proportions where it has none.
    common_covariance : bool
        One covariance for both classes, or one each. Two are unmixed from those of the observed
        classes, which strong noise makes unstable.

    Returns
    -------
    GeneralMixture
        For `theory.predict_mixture` and `theory.optimal_reg`. It does not hold where the classes
        lie, only how far apart: use ``fit_intercept=True`` there, unless your origin is the
        midpoint between them.

    Notes
    -----
    How far to trust the prediction (docs/theory/covariance.md has the measurements): on Gaussian
    mixtures it is right on average, on bag-of-words data 2 to 3 points too high. In strong noise a
    single data set may be off by 10 points, because the length of the mean is then hard to tell.

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
        given, labels = check_X_y(X, y, accept_sparse="csr", dtype=np.float64)
    rows = as_dense(given)  # the covariances are p×p whatever the rows are
    largest = float(np.abs(rows).max())
    check_squares(largest, rows.size)
    unit = float(
        np.ldexp(1.0, np.frexp(largest)[1])
    )  # a power of two: it costs no digit, and squares of squares fit
    rows = rows / unit
    classes, codes = encode(labels, "estimate_mixture")
    if len(classes) != 2 or noise.n_classes != 2:
        given = f"y has {len(classes)}, the noise model {noise.n_classes}"
        raise ValueError(f"estimate_mixture takes two classes; {given}.")
    counts = np.bincount(codes)
    if counts.min() < 2:
        raise ValueError(
            f"Class {classes[counts.argmin()]!r} has one row only: two are needed to see how it "
            "varies."
        )
    known = noise if noise.priors is not None else noise.with_observed(counts / len(codes))
    parts = [rows[codes == a] for a in (0, 1)]
    observed_means = np.array([part.mean(axis=0) for part in parts])
    unmixing = np.asarray(
        np.linalg.inv(known.posterior), dtype=float
    )  # row = true class, column = observed class
    contrast = (unmixing[1] - unmixing[0]) / 2  # κ
    residuals = [part - mean for part, mean in zip(parts, observed_means, strict=True)]
    covariances = _covariances(residuals, unmixing, common)
    powers = [float((part**2).mean(axis=0).sum()) / len(part) for part in residuals]  # tr(S_a)/n_a
    return GeneralMixture(
        mean=unit * _shortened(contrast @ observed_means, float(contrast**2 @ powers)),
        cov_neg=unit**2 * covariances[0],
        cov_pos=unit**2 * covariances[1],
        n=len(codes),
        noise=known,
    )


def _shortened(mean: FloatArray, noise_power: float) -> FloatArray:
    power = float(mean @ mean)
    return mean * np.sqrt(max(0.0, 1 - noise_power / power)) if power > 0 else mean


def _covariances(
    residuals: list[FloatArray], unmixing: FloatArray, common: bool
) -> tuple[FloatArray, FloatArray]:
    if common:
        pooled, _ = ledoit_wolf(np.vstack(residuals), assume_centered=True)
        return pooled, pooled
    observed = np.array([ledoit_wolf(part, assume_centered=True)[0] for part in residuals])
    neg, pos = np.tensordot(unmixing, observed, axes=1)
    return _positive(neg), _positive(pos)


def _positive(matrix: FloatArray) -> FloatArray:
    """Nearest positive semi-definite matrix: unmixing subtracts, and may subtract too much."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T)
