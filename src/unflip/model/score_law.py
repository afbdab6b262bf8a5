r"""The law of the scores of each TRUE class, from means of the observed ones, and the accuracy of rules under it.

With Q = P(true | observed), the mean scores M̃ of the observed classes are Q m, so m = Q⁻¹M̃; the
covariance W within a true class is that within an observed one, S, less what the m of its true
classes explain. Under N(m_a, W) a rule is right with probability A_a in class a. The accuracy Σ π_a
A_a has the derivatives

.. math:: \frac{\partial A_a}{\partial m_a} = E[1_{right} W^{-1}(s - m_a)], \qquad
          \frac{\partial A_a}{\partial W} = \tfrac12 E[1_{right} (W^{-1}(s - m_a)(s - m_a)^\top W^{-1} - W^{-1})],

normal integrals too. As M̃ and S are means over rows, they say how far each row moves the accuracy:
by a quadratic function of its score, whose variance under the law gives the standard error.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from unflip._utils.typing import FloatArray
from unflip.calibration.accuracy import PAIR_VARIANCE, ExpectedAccuracy
from unflip.calibration.decision import Decision
from unflip.calibration.log_odds import ROUNDING
from unflip.labels.noise import NoiseModel
from unflip.ridge.score_sums import ClassScores

_LOG2_POINTS = 13  # of the normal integrals of more than two classes


@dataclass(frozen=True, eq=False)
class ScoreLaw:
    """Gaussian law of the scores given the true class, in coordinates in which the total covariance is the identity.

    Attributes
    ----------
    centre : ndarray of shape (r,)
        Mean score, the origin of these coordinates.
    basis, inverse : ndarray of shape (r, rank) and (rank, r)
        From scores to the coordinates, and back. Axes along which scores do not vary are dropped.
    observed_means : ndarray of shape (k, rank)
        Means of the observed classes.
    observed_within : ndarray of shape (rank, rank)
        Covariance within these.
    share : ndarray of shape (k,)
        Observed proportions.
    noise : NoiseModel
        With priors.
    n_rows : float
        How many rows of equal weight the means are of.
    """

    centre: FloatArray
    basis: FloatArray
    inverse: FloatArray
    observed_means: FloatArray
    observed_within: FloatArray
    share: FloatArray
    noise: NoiseModel
    n_rows: float

    @classmethod
    def of(cls, scores: ClassScores, noise: NoiseModel) -> ScoreLaw:
        """Whiten what is known of the scores."""
        variances, vectors = np.linalg.eigh(scores.total)
        size = np.abs(scores.means).max()
        kept = variances > max((ROUNDING * size) ** 2, ROUNDING * variances[-1])
        spread = np.sqrt(variances[kept])
        basis = vectors[:, kept] / spread
        return cls(
            centre=scores.centre,
            basis=basis,
            inverse=(vectors[:, kept] * spread).T,
            observed_means=(scores.means - scores.centre) @ basis,
            observed_within=basis.T @ scores.within @ basis,
            share=scores.share,
            noise=noise,
            n_rows=scores.n_rows,
        )

    @property
    def rank(self) -> int:
        """Number of coordinates."""
        return int(self.basis.shape[1])

    @cached_property
    def unmixing(self) -> FloatArray:
        """Q⁻¹: weights of the observed classes' means in those of the true ones, (k, k)."""
        noise = self.noise
        return np.asarray(noise.inverse_transition.T * noise.observed / noise.known_priors[:, None])

    @cached_property
    def means(self) -> FloatArray:
        """Means of the true classes, (k, rank)."""
        return np.asarray(self.unmixing @ self.observed_means)

    @property
    def mean_scores(self) -> FloatArray:
        """Mean scores of the true classes, (k, r)."""
        return np.asarray(self.centre + self.means @ self.inverse)

    @cached_property
    def mixing(self) -> FloatArray:
        """Q = P(true | observed), a row for each observed class."""
        observed = self.noise.observed
        return np.asarray(self.noise.joint.T / np.where(observed > 0, observed, 1.0)[:, None])

    @cached_property
    def gaps(self) -> FloatArray:
        """From the mean of each observed class to those of the true ones, (k observed, k true, rank)."""
        return np.asarray(self.means[None, :, :] - self.observed_means[:, None, :])

    @cached_property
    def within(self) -> FloatArray:
        """Covariance within a true class; along each axis at least its own standard error and 1/n_rows of the total.

        A few rows that happen to fall apart are not read as certainty.
        """
        explained = np.einsum("b,ba,bar,baq->rq", self.share, self.mixing, self.gaps, self.gaps)
        values, axes = np.linalg.eigh(self.observed_within - explained)
        at_least = self._rebuilt(np.maximum(values, 1 / self.n_rows), axes)
        still = np.zeros_like(self.means)
        errors = [
            np.sqrt(self.variance_of(still, np.outer(axis, axis), at_least)) for axis in axes.T
        ]
        return self._rebuilt(np.maximum(values, np.maximum(errors, 1 / self.n_rows)), axes)

    def variance_of(self, by_means: FloatArray, by_within: FloatArray, within: FloatArray) -> float:
        """Return the sampling variance of what has these derivatives by the true classes' means and covariance.

        A row of observed class b whose score is u off the mean moves it by gᵀu + uᵀHu, and u is the
        gap to the row's true class and a normal vector.
        """
        pulled = np.einsum("b,ba,bar->ar", self.share, self.mixing, self.gaps) @ by_within
        linear = (
            self.unmixing.T
            @ (by_means - 2 * pulled)
            / np.where(self.share > 0, self.share, 1.0)[:, None]
        )
        slopes = linear[:, None, :] + 2 * self.gaps @ by_within
        bent = by_within @ within
        inside = np.einsum("bar,rq,baq->ba", slopes, within, slopes) + 2 * float(
            np.trace(bent @ bent)
        )
        levels = ((linear[:, None, :] + self.gaps @ by_within) * self.gaps).sum(axis=2)
        each = (self.mixing * (inside + levels**2)).sum(axis=1) - (self.mixing * levels).sum(
            axis=1
        ) ** 2
        return PAIR_VARIANCE * float(self.share @ each) / self.n_rows

    @staticmethod
    def _rebuilt(values: FloatArray, axes: FloatArray) -> FloatArray:
        return np.asarray((axes * values) @ axes.T)

    def in_coordinates(self, decision: Decision) -> Decision:
        """Return a rule on scores as one on the coordinates."""
        return Decision(
            self.inverse @ decision.slopes,
            self.centre @ decision.slopes + decision.intercepts,
            decision.slope,
            decision.costs,
            decision.shift,
        )


@dataclass(frozen=True, eq=False)
class _Rightness:
    """How often a rule is right in each true class, and how that moves with standardised scores z.

    Attributes
    ----------
    probability : ndarray of shape (k,)
        P(right | class).
    first : ndarray of shape (k, rank)
        E[1_right z].
    second : ndarray of shape (k, rank, rank)
        E[1_right (zzᵀ − I)]/2.
    """

    probability: FloatArray
    first: FloatArray
    second: FloatArray


def expected_accuracy(
    law: ScoreLaw, decision: Decision, deployed: FloatArray, *, counted: bool
) -> ExpectedAccuracy:
    """Return the accuracy of a rule under the law, and its standard error.

    The error is that of the class means and the covariance of the scores, and of the proportions
    where these are `counted`. The flip rates and the Gaussian shape are taken for granted.

    Parameters
    ----------
    law : ScoreLaw
        Of the scores.
    decision : Decision
        The rule.
    deployed : ndarray of shape (k,)
        Class proportions of new rows.
    counted : bool
        Whether the priors are what explains the observed proportions, and not known.
    """
    values, axes = np.linalg.eigh(law.within)
    right = _rightness(law.means, (axes * np.sqrt(values)) @ axes.T, law.in_coordinates(decision))
    back = (axes / np.sqrt(values)) @ axes.T
    by_means = deployed[:, None] * right.first @ back
    by_within = back @ np.einsum("a,arq->rq", deployed, right.second) @ back
    variance = law.variance_of(by_means, by_within, law.within)
    if counted:
        by_share = _by_share(law, right.probability, by_means, by_within)
        variance += (
            max(float(law.share @ by_share**2 - (law.share @ by_share) ** 2), 0.0) / law.n_rows
        )
    return ExpectedAccuracy(float(deployed @ right.probability), float(np.sqrt(variance)))


def _by_share(
    law: ScoreLaw, probability: FloatArray, by_means: FloatArray, by_within: FloatArray
) -> FloatArray:
    """Return the derivative of the accuracy by each observed proportion, through priors and unmixing."""
    through_means = -np.einsum("bar,ar->ba", law.gaps, by_means / law.noise.known_priors[:, None])
    return np.asarray((law.noise.inverse_transition * (through_means + probability)).sum(axis=1))


def _rightness(means: FloatArray, root: FloatArray, rule: Decision) -> _Rightness:
    """Integrate over new rows' scores m_a + root z: in closed form for one decision value, else over fixed points."""
    if rule.slopes.shape[1] == 1:
        return _of_one_value(means, root, rule)
    k, rank = means.shape
    points = np.zeros((1, 0))
    if rank:
        points = ndtri(qmc.Sobol(rank, scramble=True, rng=0).random_base2(_LOG2_POINTS))
    right = np.array(
        [rule.classes(rule.values(means[a] + points @ root)) == a for a in range(k)], dtype=float
    )
    right /= len(points)
    probability = right.sum(axis=1)
    second = np.einsum("an,nr,nq->arq", right, points, points, optimize=True)
    return _Rightness(
        probability, right @ points, (second - probability[:, None, None] * np.eye(rank)) / 2
    )


def _of_one_value(means: FloatArray, root: FloatArray, rule: Decision) -> _Rightness:
    """Do that for two classes, of which the second is predicted where the value is positive."""
    along = root @ rule.slopes[:, 0]
    spread = float(np.linalg.norm(along))
    signs = np.array([-1.0, 1.0])
    value = rule.values(means)[:, 0]
    if not spread:
        return _Rightness(
            (signs * value > 0) + (signs < 0) * (value == 0.0),
            0 * means,
            np.zeros((2, *root.shape)),
        )
    unit, margin = along / spread, signs * value / spread
    density = np.exp(-(margin**2) / 2) / np.sqrt(2 * np.pi)
    second = -(margin * density)[:, None, None] * np.outer(unit, unit) / 2
    return _Rightness(ndtr(margin), (signs * density)[:, None] * unit, second)
