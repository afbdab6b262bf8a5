"""Input and output of the theory: the isotropic mixture, and the predicted score distribution."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from unflip._utils.typing import FloatArray
from unflip._utils.validation import as_floats, check_kind
from unflip.labels.noise import NoiseModel, check_noise

# Largest entry of a class mean: its fourth power does not overflow float64.
_LARGEST_MEAN = 1e50


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """The paper's data model: x = ±μ + N(0, I), with noisy labels.

    Parameters
    ----------
    mean_norm : array-like
        ‖μ‖, half the distance between the class means.
    aspect : array-like
        η = p/n, features per row.
    noise : NoiseModel
        Noise rates ε± and priors π of the two true classes.

    Examples
    --------
    >>> noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
    >>> print(Mixture(mean_norm=2.0, aspect=1.0, noise=noise).bayes_accuracy.round(3))
    0.979
    """

    mean_norm: ArrayLike
    aspect: ArrayLike
    noise: NoiseModel

    def __post_init__(self) -> None:
        norms = as_floats(self.mean_norm, "mean_norm")
        for value in norms[~(np.isfinite(norms) & (norms >= 0))].ravel():
            raise ValueError(
                f"mean_norm = {value:g} must be zero or positive and finite: it is ‖μ‖."
            )
        aspects = as_floats(self.aspect, "aspect")
        for value in aspects[~(np.isfinite(aspects) & (aspects > 0))].ravel():
            raise ValueError(f"aspect = {value:g} must be positive and finite: it is p/n.")
        check_mean_size(norms, "mean_norm")
        check_binary_noise(self.noise, "Mixture")

    @property
    def clean(self) -> Mixture:
        """The same rows with clean labels: the oracle's data."""
        return replace(self, noise=NoiseModel.none().with_priors(self.noise.known_priors))

    @property
    def bayes_accuracy(self) -> FloatArray:
        """Accuracy of the Bayes classifier, which knows μ: the limit of infinitely many rows."""
        separation = 2 * as_floats(self.mean_norm, "mean_norm")
        zero = np.zeros(())
        limit = Prediction(
            means=(zero, zero), variance=zero, separation=separation, priors=self.noise.known_priors
        )
        return limit.best_accuracy


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Gaussian distribution of the score wᵀx (+ b) of a new row, given its true class.

    Attributes
    ----------
    means : (ndarray, ndarray)
        Mean score of the negative and of the positive class.
    variance : ndarray
        Variance of the score within a class.
    separation : ndarray
        (mean of positives − mean of negatives)/standard deviation. It stays finite at γ = ∞, where
        the scores vanish.
    priors : ndarray of shape (2,)
        Proportions of the true classes.
    """

    means: tuple[FloatArray, FloatArray]
    variance: FloatArray
    separation: FloatArray
    priors: FloatArray

    @property
    def mean(self) -> FloatArray:
        """m_ρ, the mean score of the positive class; without intercept the negative has −m_ρ."""
        return self.means[1]

    @property
    def second_moment(self) -> FloatArray:
        """ν_ρ = E[score²]; without an intercept it is the same in both classes."""
        return self._average(self.means[0] ** 2, self.means[1] ** 2) + self.variance

    @property
    def risk(self) -> FloatArray:
        """E[(score − y)²] for the clean label y = ±1; 1 − 2m_ρ + ν_ρ without an intercept."""
        return self._average((self.means[0] + 1) ** 2, (self.means[1] - 1) ** 2) + self.variance

    @property
    def accuracy(self) -> FloatArray:
        """Accuracy on clean labels with the threshold midway between the class means.

        Without an intercept that threshold is 0 and this is the paper's 1 − φ(m/√(ν − m²)).
        """
        return np.asarray(ndtr(self.separation / 2))

    @property
    def best_accuracy(self) -> FloatArray:
        """Accuracy on clean labels with the best threshold for the priors."""
        log_odds = np.log(self.priors[0] / self.priors[1])
        oriented = np.maximum(self.separation, 0)
        # Without separation the shift is infinite, and the larger class is predicted.
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = np.nan_to_num(log_odds / oriented, nan=0.0, posinf=np.inf, neginf=-np.inf)
        return self._average(ndtr(oriented / 2 + shift), ndtr(oriented / 2 - shift))

    def accuracy_at(self, threshold: ArrayLike) -> FloatArray:
        """Accuracy on clean labels of the rule "positive where the score exceeds `threshold`"."""
        return self._average(*self.recall_at(threshold))

    def recall_at(self, threshold: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Fraction of the negatives below a threshold and of the positives above it."""
        excess = as_floats(threshold, "threshold") - (self.means[0] + self.means[1]) / 2
        # Scores without variance have an infinite shift: all are on one side.
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = np.where(excess == 0, 0.0, excess / np.sqrt(self.variance))
        return ndtr(self.separation / 2 + shift), ndtr(self.separation / 2 - shift)

    def _average(self, negative: FloatArray, positive: FloatArray) -> FloatArray:
        return np.asarray(self.priors[0] * negative + self.priors[1] * positive)


def check_mixture(mixture: object) -> None:
    """Raise ValueError unless this is a `Mixture`."""
    check_kind(
        mixture, Mixture, "mixture", "give theory.Mixture(mean_norm=..., aspect=..., noise=...)"
    )


def check_mean_size(means: FloatArray, name: str) -> None:
    """Raise ValueError if means, or their norms, are so large that their powers overflow."""
    largest = float(np.abs(means).max(initial=0.0))
    if largest > _LARGEST_MEAN:
        raise ValueError(
            f"{name} holds {largest:g}, beyond {_LARGEST_MEAN:g}: give means in units of the noise."
        )


def check_binary_noise(noise: NoiseModel, owner: str) -> None:
    """Raise ValueError unless the noise model has two classes and known priors."""
    check_noise(noise)
    if noise.n_classes != 2:
        raise ValueError(f"{owner} has two classes; this noise model has {noise.n_classes}.")
    if noise.priors is None:
        raise ValueError(
            f"{owner} needs the class proportions: give the noise model pi_neg= or priors=."
        )


def best_threshold(
    means: tuple[FloatArray, FloatArray],
    variances: tuple[FloatArray, FloatArray],
    priors: FloatArray,
) -> float:
    """Return the most accurate threshold between two Gaussians, ±∞ if one class is best for all.

    Where the weighted densities cross, the log-ratio a·s² + b·s + c of positive to negative
    vanishes; the crossing at which it rises is the best finite threshold.
    """
    middle = (float(means[0]) + float(means[1])) / 2
    scale = float(np.sqrt(max(map(float, variances))))
    if scale == 0:
        if float(means[1]) > float(means[0]):
            return middle
        return float(np.copysign(np.inf, priors[0] - priors[1]))
    m0, m1 = (float(mean - middle) / scale for mean in means)
    # At least 1e-12, so that the reciprocal of a vanishing variance stays finite.
    v0, v1 = (max(float(variance) / scale**2, 1e-12) for variance in variances)
    a = (1 / v0 - 1 / v1) / 2
    b = m1 / v1 - m0 / v0
    c = (m0**2 / v0 - m1**2 / v1 + np.log(v0 / v1)) / 2 + np.log(priors[1] / priors[0])
    is_quadratic = abs(a) > 1e-14 * abs(b)  # otherwise a is rounding error
    roots = np.roots([a, b, c] if is_quadratic else [b, c])
    rising = [float(root.real) for root in roots if root.imag == 0 and 2 * a * root.real + b > 0]

    def accuracy(s: float) -> float:
        return float(
            priors[0] * ndtr((s - m0) / np.sqrt(v0)) + priors[1] * ndtr((m1 - s) / np.sqrt(v1))
        )

    return middle + scale * max([*rising, -np.inf, np.inf], key=accuracy)
