r"""Classes with covariances of their own: the paper's general theorem, corrected, with and without an intercept.

The mean weights are w̄ = Q̄ Σ_b π_b e_b μ_b/(1 + δ_b) with e_b = E[t | y = b], the mean scores m_b
= w̄ᵀμ_b, and the second moment of the score of a new row of class a is

.. math:: \nu_a = \bar w^\top\Sigma_a\bar w + \sum_b \tau_{ab} \bigl(s_b - 2e_bm_b + m_b^2
          + \bar w^\top C_b\bar w\bigr), \qquad \tau_{ab} = \frac{\pi_bT_{ab}}{(1+\delta_b)^2},

with s_b = E[t² | y = b] and T_ab = tr(Σ_b E[QΣ_aQ])/n: the score's own spread plus what the errors
of the fit on each class add. For means ∓μ it is the paper's theorem (thm_general_covariance) with
the factor 2 on its T_b terms that the printed formula lost (docs/errata.md). With an intercept,
means and targets are taken about their averages.
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
    check_distance,
)

_COMMUTING = 1e-10


@dataclass(frozen=True, kw_only=True)
class ClassPrediction(Prediction):
    """Law of the score of one class: its own variance, beside the means of both.

    ``accuracy`` and ``best_accuracy`` are shares of this class, with the threshold half-way between
    the means and with the one that is best for both classes together; ``second_moment`` and
    ``risk`` are this class's.
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
        """Share of this class on its side of the threshold that is best for both."""
        return self.recall_at(self.shared_threshold)[self.label]


class GeneralPrediction(NamedTuple):
    """Law of the score in either class; the two predictions share their means and differ in variance."""

    neg: ClassPrediction
    pos: ClassPrediction

    def class_accuracies_at(self, threshold: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Share of each class on its side of a threshold: (negatives below it, positives above it)."""
        return self.neg.recall_at(threshold)[0], self.pos.recall_at(threshold)[1]

    def accuracy_at(self, threshold: ArrayLike) -> FloatArray:
        """Accuracy on clean labels of the rule "positive where the score exceeds `threshold`"."""
        priors = self.neg.priors
        of_neg, of_pos = self.class_accuracies_at(threshold)
        return np.asarray(priors[0] * of_neg + priors[1] * of_pos)

    @property
    def accuracy(self) -> FloatArray:
        """Accuracy with the threshold half-way between the class means: 0 without an intercept."""
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
    """Two Gaussian classes N(−μ, C₋) and N(+μ, C₊) with flipped labels, and n rows of them.

    Parameters
    ----------
    mean : array-like of shape (p,)
        μ, half the difference of the class means.
    cov_neg, cov_pos : array-like of shape (p, p) or (p,)
        Covariances of the classes; a vector is a diagonal. Equal or commuting ones are diagonalised
        once.
    n : int
        Number of rows.
    noise : NoiseModel
        Flip rates and proportions of the two true classes.
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
        """The same rows with labels that are right: the oracle's data."""
        return replace(self, noise=NoiseModel.none().with_priors(self.noise.known_priors))

    @property
    def bayes_accuracy(self) -> float:
        """Best accuracy that any classifier can have, knowing the classes, where they share a covariance.

        Two covariances make Bayes' rule quadratic, and its accuracy has no closed form.
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
        """Means about the origin, or about their average with an intercept, and covariances."""
        mean, spectra, matrices = self._basis
        centre = float(np.diff(self.noise.known_priors)[0]) if fit_intercept else 0.0
        means = np.array([(-1 - centre) * mean, (1 - centre) * mean])
        if spectra is not None:
            return CommutingMoments(means, spectra, float(self.n))
        return DenseMoments(means, matrices, float(self.n))

    @cached_property
    def _basis(self) -> tuple[FloatArray, FloatArray | None, FloatArray]:
        """The mean and, where the covariances commute, their eigenvalues in the common eigenbasis."""
        mean = as_floats(self.mean, "mean")
        if mean.ndim != 1 or not len(mean) or not np.isfinite(mean).all():
            raise ValueError(
                f"mean has shape {mean.shape}: give one finite number for each feature."
            )
        check_distance(mean, "mean")
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
    """Predict the scores of a ridge classifier when the classes have covariances of their own.

    Parameters
    ----------
    mean, cov_neg, cov_pos, n, noise
        The data, as in `GeneralMixture`.
    targets : {"naive", "unbiased", "optimized"} or (t_neg, t_pos)
        What the observed classes are regressed on.
    reg : float
        γ > 0.
    fit_intercept : bool
        False is the paper's model: the origin is the midpoint of the class means.

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
    ...     mean=np.full(400, 0.1), cov_neg=variances, cov_pos=2 * variances, n=1000, noise=noise, reg=1.0
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
    """Predict for a `GeneralMixture`: what can be diagonalised is diagonalised once for all calls.

    Parameters are those of `predict_general`.
    """
    check_kind(
        mixture, GeneralMixture, "mixture", "give theory.GeneralMixture(mean=..., cov_neg=..., ...)"
    )
    as_flag(fit_intercept, "fit_intercept")
    penalty = as_number(reg, "reg")
    if not 0 < penalty < np.inf:
        raise ValueError(
            f"reg = {shown(reg)} must be one number, positive and finite, for general covariances."
        )
    noise, priors = mixture.noise, mixture.noise.known_priors
    values = target_values.resolve(targets, noise)
    average = float(noise.observed @ values) if fit_intercept else 0.0
    first, second = (
        noise.transition @ (values - average),
        noise.transition @ (values - average) ** 2,
    )  # e_b, s_b

    moments = mixture.class_moments(fit_intercept=fit_intercept)
    equivalent = solve(moments, priors, penalty)
    weights = equivalent.resolvent.times_means @ (equivalent.weights * first)
    means, own = moments.means @ weights, moments.quadratic(weights)
    errors = second - 2 * first * means + means**2 + own
    variances = own + equivalent.amplification() @ errors
    return pair_of(means + average, variances, priors)


def pair_of(means: FloatArray, variances: FloatArray, priors: FloatArray) -> GeneralPrediction:
    """Pair the predictions of two classes with given means and variances of their scores."""
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
    """Eigenvalues (k, p) and common eigenvectors of commuting covariances, or None."""
    first, second = covariances
    product = first @ second
    sizes = np.linalg.norm(first) * np.linalg.norm(second)
    if np.linalg.norm(product - product.T) > _COMMUTING * sizes:
        return None
    # A generic combination has no eigenspace that either covariance would still have to be split
    # in.
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
