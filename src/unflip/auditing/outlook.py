r"""The accuracy to expect after labels are checked, or rows are added.

Let n be the number of rows, d the effective dimension, and Q the information in a noisy label,
relative to a clean label. In the isotropic theory at its best regularization strength, the class
means of the scores then lie

.. math:: \text{separation} = \frac{2u}{\sqrt{u + d/(nQ)}}

standard deviations apart (see `unflip.theory.planning`). The expected accuracy of today gives u. A
checked row then counts as 1 in the mean of Q, and a new row as the rows of today on average.

The information in a label is Q = (Σ_a q_a² − Σπ²)/(1 − Σπ²) for a posterior q. The posterior given
the label alone, P(y | ỹ), underestimates it for refined targets. The posterior given label and
score overestimates it, because the scores already come from the fit. Their mean is used. With more
than two classes, all pairs of class means are assumed to be equally far apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from array_api_compat import array_namespace, device
from scipy.optimize import brentq
from scipy.sparse import issparse
from scipy.special import ndtr

from unflip._utils.typing import FloatArray, IntArray, Rows
from unflip.auditing.evidence import Evidence
from unflip.data.dense import DenseRows
from unflip.data.rows import centred_rows
from unflip.labels.codes import UNCHECKED
from unflip.ridge.spectrum.krylov import sums_of_eigenvalues

# Trapezoidal rule for integrals over normal densities, in standard deviations: the densities are
# below 1e-17 beyond the reach. Half the step changes the accuracy of 50 classes by 1e-12.
_STEP = 0.25
_REACH = 9.0
# Separations, in standard deviations: balanced classes have an accuracy of Φ(0.0005) = 0.5002, near
# chance, and of Φ(15), which is 1 in float64.
_LEAST_SEPARATION = 1e-3
_LARGEST_SEPARATION = 30.0


def accuracy_of(separation: float, priors: FloatArray) -> float:
    """Return the Bayes accuracy for Gaussian classes whose means are all equally far apart.

    With d = separation/√2 it is Σ_a π_a E[Π_{b≠a} Φ(z + d + log(π_a/π_b)/d)] over standard normal
    z. In terms of u = z + log(π_a)/d, all classes share the factors Φ(u + d − log(π_b)/d).
    """
    d = separation / np.sqrt(2)
    centres = np.log(priors) / d
    grid = np.arange(centres.min() - _REACH, centres.max() + _REACH, _STEP)[:, None]
    factors = ndtr(grid + d - centres)
    product = factors.prod(axis=1, keepdims=True)
    # A factor of 0 is more than 38 standard deviations away, where the density is 0, too.
    of_others = np.divide(product, factors, out=np.zeros_like(factors), where=factors > 0)
    density = np.exp(-((grid - centres) ** 2) / 2) / np.sqrt(2 * np.pi)
    return float(priors @ (_STEP * (density * of_others).sum(axis=0)))


def separation_of(accuracy: float, priors: FloatArray) -> float:
    """Return the separation with this accuracy, clipped to 0.001 to 30 standard deviations."""

    def gap(separation: float) -> float:
        return accuracy_of(separation, priors) - accuracy

    if gap(_LEAST_SEPARATION) >= 0:
        return _LEAST_SEPARATION
    if gap(_LARGEST_SEPARATION) <= 0:
        return _LARGEST_SEPARATION
    return float(brentq(gap, _LEAST_SEPARATION, _LARGEST_SEPARATION))


@dataclass(frozen=True, eq=False)
class Outlook:
    """The accuracy to expect after some rows are checked, or rows are added.

    Attributes
    ----------
    priors : ndarray of shape (k,)
        Class priors.
    accuracy : float
        Expected accuracy today.
    dimension : float
        Effective dimension of the features; NaN if it is not known.
    information : ndarray of shape (n,)
        Information in each label today, relative to a clean label.
    """

    priors: FloatArray
    accuracy: float
    dimension: float
    information: FloatArray

    @classmethod
    def of(cls, evidence: Evidence) -> Outlook:
        """Return the outlook of an audit."""
        channel = evidence.noise.channel
        priors = channel.known_priors
        by_label = channel.posterior[evidence.columns]
        by_label_and_score = evidence.label_posterior
        powers = ((by_label**2).sum(axis=1) + (by_label_and_score**2).sum(axis=1)) / 2
        powers[evidence.truth != UNCHECKED] = 1.0
        chance = float(priors @ priors)
        return cls(priors, evidence.accuracy, evidence.dimension, (powers - chance) / (1 - chance))

    def after(self, checked: IntArray, growth: float = 1.0) -> float:
        """Return the accuracy with these rows checked and `growth` times as many rows.

        The new rows have labels as noisy as those of today, and are not checked.
        """
        if np.isnan(self.dimension):
            return float("nan")
        information = self.information.copy()
        information[checked] = 1.0
        n = len(information)
        today, accuracy_today = self._today
        total_today = n * self._mean(self.information)
        error_today = self.dimension / total_today
        # Solves 4u² = separation²·(u + error) for u.
        u = (today**2 + np.sqrt(today**4 + 16 * today**2 * error_today)) / 8
        total_later = n * self._mean(information) + (growth - 1) * total_today
        later = max(today, 2 * u / np.sqrt(u + self.dimension / total_later))
        return self.accuracy + accuracy_of(later, self.priors) - accuracy_today

    @cached_property
    def _today(self) -> tuple[float, float]:
        """Return the separation that matches the accuracy of today, and its exact accuracy."""
        separation = separation_of(self.accuracy, self.priors)
        return separation, accuracy_of(separation, self.priors)

    @staticmethod
    def _mean(information: FloatArray) -> float:
        return max(float(information.mean()), 1e-3)  # so that d/(nQ) is finite


def effective_dimension(X: Rows) -> float:
    """Return (Σλ)²/Σλ² for the eigenvalues λ of the covariance, corrected for sampling error."""
    n, p = X.shape
    total, squares = sums_of_eigenvalues(X) if issparse(X) else _dense_sums(X)
    in_sample = total**2 / squares
    return float(np.clip(1 / max(1 / in_sample - 1 / n, 1 / p), 1.0, p))


def _dense_sums(X: Rows) -> tuple[float, float]:
    n, p = X.shape
    xp = array_namespace(X)
    ones = xp.ones((n, 1), dtype=xp.float64, device=device(X))
    gram = centred_rows(X).gram() if n < p else DenseRows.with_sums(X, ones)[1]
    # Only the ratio of the sums matters, and their squares could overflow float64.
    gram = gram / (float(xp.max(xp.abs(gram))) or 1.0)
    return float(xp.sum(xp.linalg.diagonal(gram))), float(xp.sum(gram**2))
