r"""Ridge scores of two classes with different covariances: the paper's general theorem, corrected.

The mean weights are w̄ = Q̄ Σ_b π_b e_b μ_b/(1 + δ_b) with e_b = E[t | y = b], the mean scores m_b
= w̄ᵀμ_b, and the second moment of the score of a new row of class a is

.. math:: \nu_a = \bar w^\top\Sigma_a\bar w + \sum_b \tau_{ab} \bigl(s_b - 2e_bm_b + m_b^2
          + \bar w^\top C_b\bar w\bigr), \qquad \tau_{ab} = \frac{\pi_bT_{ab}}{(1+\delta_b)^2},

with s_b = E[t² | y = b] and T_ab = tr(Σ_b E[QΣ_aQ])/n: the variance within the class plus the
variance that the errors of the fit on each class add. For means ∓μ it is the paper's theorem
(thm_general_covariance) with the factor 2 on its T_b terms that the printed formula omits
(docs/errata.md). With an intercept, means and targets are centred.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unflip import targets as target_values
from unflip._utils.typing import FloatArray
from unflip._utils.validation import as_flag, as_floats, as_number, check_kind, shown
from unflip.labels.noise import NoiseModel
from unflip.theory.equivalent import ClassMoments, CommutingMoments, DenseMoments, solve
from unflip.theory.model import (
    Mixture,
    Prediction,
    best_threshold,
    check_binary_noise,
    check_mean_size,
)


@dataclass(frozen=True, kw_only=True)
class ClassPrediction(Prediction):
    """Score distribution of one class: its variance, and the means of both classes.

    ``accuracy`` and ``best_accuracy`` are the recall of this class, with the threshold midway
    between the means and with the best threshold for both classes; ``second_moment`` and ``risk``
    are those of this class.
    """

    label: int  # 0 for the negative class, 1 for the positive
    shared_threshold: float

    @property
    def second_moment(self) -> FloatArray:
        """E[score²] in this class."""
        return np.asarray(self.means[self.label] ** 2 + self.variance)

    @property
    def risk(self) -> FloatArray:
        """E[(score − y)²] in this class for the clean label y = ±1."""
        return np.asarray((self.means[self.label] - (2 * self.label - 1)) ** 2 + self.variance)

    @property
    def best_accuracy(self) -> FloatArray:
        """Recall of this class with the best threshold for both classes."""
        return self.recall_at(self.shared_threshold)[self.label]


class GeneralPrediction(NamedTuple):
    """Score distributions of the two classes, which differ in their variances."""

    neg: ClassPrediction
    pos: ClassPrediction

    def class_accuracies_at(self, threshold: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Fraction of the negatives below a threshold and of the positives above it."""
        return self.neg.recall_at(threshold)[0], self.pos.recall_at(threshold)[1]

    def accuracy_at(self, threshold: ArrayLike) -> FloatArray:
        """Accuracy on clean labels of the rule "positive where the score exceeds `threshold`"."""
        priors = self.neg.priors
        of_neg, of_pos = self.class_accuracies_at(threshold)
        return np.asarray(priors[0] * of_neg + priors[1] * of_pos)

    @property
    def accuracy(self) -> FloatArray:
        """Accuracy with the threshold midway between the class means: 0 without an intercept."""
        return self.accuracy_at((self.neg.means[0] + self.neg.means[1]) / 2)

    @property
    def risk(self) -> FloatArray:
        """E[(score − y)²] over both classes for the clean label y = ±1."""
        return np.asarray(self.neg.priors[0] * self.neg.risk + self.neg.priors[1] * self.pos.risk)

    @property
    def best_threshold(self) -> float:
        """The most accurate threshold for the priors."""
        return self.neg.shared_threshold

    @property
    def best_accuracy(self) -> FloatArray:
        """Accuracy with the best threshold."""
        return self.accuracy_at(self.best_threshold)


@dataclass(frozen=True, kw_only=True, eq=False)
class GeneralMixture:
    """Two Gaussian classes N(−μ, C₋) and N(+μ, C₊), and n rows with noisy labels.

    Parameters
    ----------
    mean : array-like of shape (p,)
        μ, half the difference of the class means.
    cov_neg, cov_pos : array-like of shape (p, p) or (p,)
        Covariances of the classes; a vector is a diagonal. Equal or commuting covariances are
        diagonalised once.
    n : int
        Number of rows.
    noise : NoiseModel
        Noise rates and priors of the two true classes.

    Examples
    --------
    >>> noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.5)
    >>> variances = [0.5, 2.0]
    >>> mixture = GeneralMixture(
    ...     mean=[1.0, 1.0], cov_neg=variances, cov_pos=variances, n=100, noise=noise
    ... )
    >>> round(mixture.bayes_accuracy, 3)
    0.943
    """

    mean: ArrayLike
    cov_neg: ArrayLike
    cov_pos: ArrayLike
    n: float
    noise: NoiseModel

    def __post_init__(self) -> None:
        check_binary_noise(self.noise, "GeneralMixture")
        if not 0 < as_number(self.n, "n") < np.inf:
            raise ValueError(
                f"n = {shown(self.n)} must be positive and finite: it is the number of rows."
            )

    @property
    def clean(self) -> GeneralMixture:
        """The same rows with clean labels: the oracle's data."""
        return replace(self, noise=NoiseModel.none().with_priors(self.noise.known_priors))

    @property
    def bayes_accuracy(self) -> float:
        """Accuracy of the Bayes classifier; raises ValueError unless the covariances are equal.

        With two covariances the Bayes rule is quadratic, and its accuracy has no closed form.
        """
        mean, spectra, _ = self._basis
        if spectra is None or not np.allclose(
            spectra[0], spectra[1], rtol=1e-8, atol=1e-12 * spectra.max()
        ):
            raise ValueError(
                "bayes_accuracy needs equal covariances: with two, Bayes' rule is not linear."
            )
        if (spectra[0] <= 1e-12 * spectra[0].max()).any():
            raise ValueError(
                "bayes_accuracy needs a covariance of full rank: add a small multiple of the "
                "identity."
            )
        distance = float(np.sqrt(np.sum(mean**2 / spectra[0])))
        return float(Mixture(mean_norm=distance, aspect=1.0, noise=self.noise).bayes_accuracy)

    def class_moments(self, *, fit_intercept: bool) -> ClassMoments:
        """Return class means, centred if an intercept is fitted, and covariances."""
        mean, spectra, matrices = self._basis
        centre = float(np.diff(self.noise.known_priors)[0]) if fit_intercept else 0.0
        means = np.array([(-1 - centre) * mean, (1 - centre) * mean])
        if spectra is not None:
            return CommutingMoments(means, spectra, float(self.n))
        return DenseMoments(means, matrices, float(self.n))

    @cached_property
    def _basis(self) -> tuple[FloatArray, FloatArray | None, FloatArray]:
        """The mean, eigenvalues in a common eigenbasis or None, and full covariances if needed."""
        mean = as_floats(self.mean, "mean")
        if mean.ndim != 1 or not len(mean) or not np.isfinite(mean).all():
            raise ValueError(
                f"mean has shape {mean.shape}: give one finite number for each feature."
            )
        check_mean_size(mean, "mean")
        covariances = [
            _checked_covariance(value, name, len(mean))
            for value, name in ((self.cov_neg, "cov_neg"), (self.cov_pos, "cov_pos"))
        ]
        if all(covariance.ndim == 1 for covariance in covariances):
            return mean, np.array(covariances), np.empty(0)
        full = np.array([np.diag(c) if c.ndim == 1 else c for c in covariances])
        common = _common_eigenbasis(full)
        if common is None:
            return mean, None, full
        eigenvalues, vectors = common
        return vectors.T @ mean, eigenvalues, full


def predict_general(
    *,
    mean: ArrayLike,
    cov_neg: ArrayLike,
    cov_pos: ArrayLike,
    n: float,
    noise: NoiseModel,
    targets: str | ArrayLike = "optimized",
    reg: float,
    fit_intercept: bool = False,
) -> GeneralPrediction:
    """Predict the scores of a ridge classifier when the classes have different covariances.

    Parameters
    ----------
    mean, cov_neg, cov_pos, n, noise
        The data, as in `GeneralMixture`.
    targets : {"naive", "unbiased", "optimized"} or (t_neg, t_pos)
        Regression targets of the two observed classes.
    reg : float
        Regularization strength γ > 0.
    fit_intercept : bool
        If False, the origin is the midpoint of the class means, as in the paper.

    Returns
    -------
    GeneralPrediction
        The pair (prediction for the negative class, prediction for the positive class), with the
        accuracy over both at any threshold.

    Examples
    --------
    >>> from unflip import NoiseModel
    >>> noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
    >>> variances = np.linspace(0.5, 2.0, 400)
    >>> neg, pos = predict_general(
    ...     mean=np.full(400, 0.1),
    ...     cov_neg=variances,
    ...     cov_pos=2 * variances,
    ...     n=1000,
    ...     noise=noise,
    ...     reg=1.0,
    ... )
    >>> print(f"{neg.accuracy:.3f} {pos.accuracy:.3f}")
    0.769 0.699
    """
    mixture = GeneralMixture(mean=mean, cov_neg=cov_neg, cov_pos=cov_pos, n=n, noise=noise)
    return predict_mixture(mixture, targets=targets, reg=reg, fit_intercept=fit_intercept)


def predict_mixture(
    mixture: GeneralMixture,
    *,
    targets: str | ArrayLike = "optimized",
    reg: float,
    fit_intercept: bool = False,
) -> GeneralPrediction:
    """Predict for a `GeneralMixture`, whose eigendecomposition is reused between calls.

    Parameters are those of `predict_general`.

    Examples
    --------
    >>> noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.5)
    >>> mixture = GeneralMixture(
    ...     mean=np.full(50, 0.3), cov_neg=np.ones(50), cov_pos=np.ones(50), n=100, noise=noise
    ... )
    >>> for reg in (0.1, 10.0):
    ...     print(f"{predict_mixture(mixture, reg=reg).accuracy:.3f}")
    0.627
    0.857
    """
    check_kind(
        mixture, GeneralMixture, "mixture", "give theory.GeneralMixture(mean=..., cov_neg=..., ...)"
    )
    as_flag(fit_intercept, "fit_intercept")
    gamma = as_number(reg, "reg")
    if not 0 < gamma < np.inf:
        raise ValueError(
            f"reg = {shown(reg)} must be one number, positive and finite, for general covariances."
        )
    noise = mixture.noise
    priors = noise.known_priors
    values = target_values.resolve(targets, noise)
    average = float(noise.observed @ values) if fit_intercept else 0.0
    first = noise.transition @ (values - average)  # e_b
    second = noise.transition @ (values - average) ** 2  # s_b

    moments = mixture.class_moments(fit_intercept=fit_intercept)
    equivalent = solve(moments, priors, gamma)
    weights = equivalent.resolvent.times_means @ (equivalent.weights * first)
    means = moments.means @ weights
    own = moments.quadratic(weights)
    errors = second - 2 * first * means + means**2 + own
    variances = own + equivalent.amplification() @ errors
    return class_predictions(means + average, variances, priors)


def class_predictions(
    means: FloatArray, variances: FloatArray, priors: FloatArray
) -> GeneralPrediction:
    """Return the predictions of two classes from the means and variances of their scores."""
    both = (np.asarray(means[0]), np.asarray(means[1]))
    threshold = best_threshold(both, (variances[0], variances[1]), priors)
    gap = float(means[1] - means[0])
    return GeneralPrediction(
        *(
            ClassPrediction(
                means=both,
                variance=np.asarray(variance),
                separation=np.asarray(gap / np.sqrt(variance) if variance > 0 else 0.0),
                priors=priors,
                label=label,
                shared_threshold=threshold,
            )
            for label, variance in enumerate(variances)
        )
    )


def _checked_covariance(values: ArrayLike, name: str, p: int) -> FloatArray:
    covariance = as_floats(values, name)
    if covariance.shape not in ((p,), (p, p)):
        raise ValueError(
            f"{name} has shape {covariance.shape}: give ({p}, {p}), or ({p},) for a diagonal, as "
            f"mean has {p} entries."
        )
    if not np.isfinite(covariance).all():
        raise ValueError(f"{name} holds NaN or infinite entries: estimate it again without them.")
    if covariance.ndim == 1:
        if covariance.min() < 0:
            raise ValueError(f"{name} has the negative variance {covariance.min():g}.")
        return covariance
    scale = float(np.abs(covariance).max()) or 1.0
    if not np.allclose(covariance, covariance.T, rtol=0, atol=1e-8 * scale):
        raise ValueError(f"{name} is not symmetric: give (C + C.T) / 2.")
    try:
        np.linalg.cholesky(covariance + 1e-8 * scale * np.eye(p))
    except np.linalg.LinAlgError:
        raise ValueError(
            f"{name} is not positive semi-definite: shrink it or clip its eigenvalues at 0."
        ) from None
    return covariance


def _common_eigenbasis(covariances: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Return eigenvalues (k, p) and common eigenvectors of commuting covariances, or None."""
    first, second = covariances
    product = first @ second
    sizes = np.linalg.norm(first) * np.linalg.norm(second)
    if np.linalg.norm(product - product.T) > 1e-10 * sizes:  # more than rounding error
        return None
    # Eigenvectors of a generic linear combination diagonalise both covariances, even if either of
    # them has repeated eigenvalues.
    mixing = np.sqrt(2) * np.linalg.norm(first) / (np.linalg.norm(second) or 1.0)
    _, vectors = np.linalg.eigh(first + mixing * second)
    rotated = vectors.T @ covariances @ vectors
    eigenvalues = np.diagonal(rotated, axis1=1, axis2=2)
    off_diagonal = np.linalg.norm(
        rotated - eigenvalues[:, :, None] * np.eye(len(vectors)), axis=(1, 2)
    )
    if (off_diagonal > 1e-6 * np.linalg.norm(covariances, axis=(1, 2))).any():
        return None
    return np.maximum(eigenvalues, 0), vectors
