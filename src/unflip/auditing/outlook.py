r"""What checking labels would be worth: the accuracy to expect after it.

In the isotropic theory at its best penalty n rows whose labels carry a share Q of what clean ones
would, in d effective dimensions, give class means that lie

.. math:: \text{separation} = \frac{2u}{\sqrt{u + d/(nQ)}}

standard deviations apart (see `unflip.theory.planning`). Today's expected accuracy gives u; a row
that is checked then counts with 1 in the mean Q, and a row more as today's rows do on average.

What a row's label carries is Q = (Σ_a q_a² − Σπ²)/(1 − Σπ²) for posteriors q. From the label alone,
q = P(y | ỹ), it is too little for refined targets; from label and score too much, since scores
repeat what the fit believes already. The mean of the two is taken. For more than two classes, all
pairs of class means are taken to be equally far apart.
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
from unflip.data.centred import CentredRows, DenseRows
from unflip.labels.classes import UNCHECKED
from unflip.ridge.spectrum.krylov import sums_of_eigenvalues

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(96)
_COUNT = np.finfo(float).eps * _WEIGHTS.max() < _WEIGHTS
_NODES, _WEIGHTS = _NODES[_COUNT], _WEIGHTS[_COUNT]
_LEAST_SEPARATION, _LARGEST_SEPARATION = 1e-3, 30.0
_LEAST_INFORMATION = 1e-3


def accuracy_of(separation: float, priors: FloatArray) -> float:
    """Accuracy of the best rule for Gaussian classes whose means are all equally far apart.

    With d = separation/√2 it is Σ_a π_a E[Π_{b≠a} Φ(z + d + log(π_a/π_b)/d)] over standard normal
    z.
    """
    d = separation / np.sqrt(2)
    log_ratio = np.log(priors[:, None] / priors[None, :])
    beaten = ndtr(_NODES[:, None, None] + d + log_ratio / d)  # (node, true class, other class)
    beaten[:, np.arange(len(priors)), np.arange(len(priors))] = 1.0
    return float(priors @ (_WEIGHTS @ beaten.prod(axis=2)) / _WEIGHTS.sum())


def separation_of(accuracy: float, priors: FloatArray) -> float:
    """Return the separation with this accuracy, kept within what can be told apart."""

    def gap(separation: float) -> float:
        return accuracy_of(separation, priors) - accuracy

    if gap(_LEAST_SEPARATION) >= 0:
        return _LEAST_SEPARATION
    if gap(_LARGEST_SEPARATION) <= 0:
        return _LARGEST_SEPARATION
    return float(brentq(gap, _LEAST_SEPARATION, _LARGEST_SEPARATION))


@dataclass(frozen=True, eq=False)
class Outlook:
    """Accuracy against the rows that are checked, or added.

    Attributes
    ----------
    priors : ndarray of shape (k,)
        True class proportions.
    accuracy : float
        Today's.
    dimension : float
        Effective dimension of the rows; NaN where it is not known.
    information : ndarray of shape (n,)
        What each row's label carries today, at most 1.
    """

    priors: FloatArray
    accuracy: float
    dimension: float
    information: FloatArray

    @classmethod
    def of(cls, evidence: Evidence) -> Outlook:
        """Read the outlook off the evidence."""
        channel = evidence.noise.channel
        priors = channel.known_priors
        by_label, refined = channel.posterior[evidence.columns], evidence.label_posterior
        powers = ((by_label**2).sum(axis=1) + (refined**2).sum(axis=1)) / 2
        powers[evidence.truth != UNCHECKED] = 1.0
        chance = float(priors @ priors)
        return cls(priors, evidence.accuracy, evidence.dimension, (powers - chance) / (1 - chance))

    def after(self, checked: IntArray, growth: float = 1.0) -> float:
        """Accuracy once these rows are checked and set right, and there are `growth` times as many rows.

        The new rows are labelled as today's are, and not checked.
        """
        if np.isnan(self.dimension):
            return float("nan")
        information = self.information.copy()
        information[checked] = 1.0
        today, accuracy_today = self._today
        present = len(information) * self._mean(self.information)
        doubt = self.dimension / present
        power = (
            today**2 + np.sqrt(today**4 + 16 * today**2 * doubt)
        ) / 8  # u of 4u² = separation²·(u + doubt)
        left = self.dimension / (
            len(information) * self._mean(information) + (growth - 1) * present
        )
        later = max(today, 2 * power / np.sqrt(power + left))
        return self.accuracy + accuracy_of(later, self.priors) - accuracy_today

    @cached_property
    def _today(self) -> tuple[float, float]:
        """Return the separation that today's accuracy is taken for, and its accuracy."""
        separation = separation_of(self.accuracy, self.priors)
        return separation, accuracy_of(separation, self.priors)

    @staticmethod
    def _mean(information: FloatArray) -> float:
        return max(float(information.mean()), _LEAST_INFORMATION)


def effective_dimension(X: Rows) -> float:
    """Return (Σλ)²/Σλ² of the features' covariance, less what sampling adds to the spread of its eigenvalues λ."""
    n, p = X.shape
    total, squares = sums_of_eigenvalues(X) if issparse(X) else _dense_sums(X)
    in_sample = total**2 / squares
    return float(np.clip(1 / max(1 / in_sample - 1 / n, 1 / p), 1.0, p))


def _dense_sums(X: Rows) -> tuple[float, float]:
    (n, p), xp = X.shape, array_namespace(X)
    ones = xp.ones((n, 1), dtype=xp.float64, device=device(X))
    gram = CentredRows.of(X).gram() if n < p else DenseRows.with_sums(X, ones)[1]
    # The sums matter as a ratio, and squares of squares may be no numbers.
    gram = gram / (float(xp.max(xp.abs(gram))) or 1.0)
    return float(xp.sum(xp.linalg.diagonal(gram))), float(xp.sum(gram**2))
