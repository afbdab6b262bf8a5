r"""Score distribution of each TRUE class, from sums over observed classes, and its accuracy.

With Q = P(true | observed), the mean scores M̃ of the observed classes are Q m, so m = Q⁻¹M̃. The
covariance W within a true class is the covariance S within an observed one, minus the part that the
means m of its true classes explain. Under N(m_a, W) a rule is right with probability A_a in class
a. The accuracy Σ π_a A_a has the derivatives

.. math:: \frac{\partial A_a}{\partial m_a} = E[1_{right} W^{-1}(s - m_a)], \qquad
          \frac{\partial A_a}{\partial W} = \tfrac12 E[1_{right}
          (W^{-1}(s - m_a)(s - m_a)^\top W^{-1} - W^{-1})],

which are normal integrals, too. M̃ and S are means over rows. So these derivatives give the
influence of each row on the accuracy, a quadratic function of its score. Its variance under the
distribution yields the standard error.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from unflip._utils.typing import FloatArray
from unflip.calibration.accuracy import ExpectedAccuracy
from unflip.calibration.decision import Decision
from unflip.calibration.information import PAIR_VARIANCE
from unflip.calibration.log_odds import ROUNDING
from unflip.labels.noise import NoiseModel
from unflip.ridge.score_sums import ClassScores


@dataclass(frozen=True, eq=False)
class ScoreLaw:
    """Gaussian distribution of whitened scores given the true class.

    The total covariance of whitened scores is the identity.

    Attributes
    ----------
    centre : ndarray of shape (r,)
        Mean score, the origin of the whitened coordinates.
    basis, inverse : ndarray of shape (r, rank) and (rank, r)
        Maps from scores to whitened coordinates, and back. Axes without variance are dropped.
    observed_means : ndarray of shape (k, rank)
        Means of the observed classes.
    observed_within : ndarray of shape (rank, rank)
        Covariance within the observed classes.
    share : ndarray of shape (k,)
        Observed proportions.
    noise : NoiseModel
        Noise with priors.
    n_effective : float
        Effective sample size of the means.
    """

    centre: FloatArray
    basis: FloatArray
    inverse: FloatArray
    observed_means: FloatArray
    observed_within: FloatArray
    share: FloatArray
    noise: NoiseModel
    n_effective: float

    @classmethod
    def of(cls, scores: ClassScores, noise: NoiseModel) -> ScoreLaw:
        """Return the distribution of the scores with these sums."""
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
            n_effective=scores.n_effective,
        )

    @property
    def rank(self) -> int:
        """Number of coordinates."""
        return int(self.basis.shape[1])

    @cached_property
    def unmixing(self) -> FloatArray:
        """Q⁻¹, from means of the observed classes to means of the true classes, (k, k)."""
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
        """Means of the true classes minus those of the observed, (k observed, k true, rank)."""
        return np.asarray(self.means[None, :, :] - self.observed_means[:, None, :])

    @cached_property
    def within(self) -> FloatArray:
        """Covariance W within a true class.

        Along each axis it is at least its standard error and 1/n_effective of the total, so that a
        few rows which happen to be separable do not give certainty.
        """
        explained = np.einsum("b,ba,bar,baq->rq", self.share, self.mixing, self.gaps, self.gaps)
        values, axes = np.linalg.eigh(self.observed_within - explained)
        smallest = 1 / self.n_effective
        positive = self._from_eigen(np.maximum(values, smallest), axes)
        zero = np.zeros_like(self.means)
        errors = [
            np.sqrt(self.variance_of(zero, np.outer(axis, axis), positive)) for axis in axes.T
        ]
        return self._from_eigen(np.maximum(values, np.maximum(errors, smallest)), axes)

    def variance_of(self, by_means: FloatArray, by_within: FloatArray, within: FloatArray) -> float:
        """Return the sampling variance of a quantity with these derivatives by m and W.

        A row of observed class b whose score differs by u from the class mean moves it by
        gᵀu + uᵀHu. Here u is the gap to the mean of the row's true class plus a normal vector with
        covariance `within`.
        """
        pulled = np.einsum("b,ba,bar->ar", self.share, self.mixing, self.gaps) @ by_within
        linear = (
            self.unmixing.T
            @ (by_means - 2 * pulled)
            / np.where(self.share > 0, self.share, 1.0)[:, None]
        )
        slopes = linear[:, None, :] + 2 * self.gaps @ by_within
        quadratic = by_within @ within
        variance_given_true = np.einsum("bar,rq,baq->ba", slopes, within, slopes)
        variance_given_true = variance_given_true + 2 * float(np.trace(quadratic @ quadratic))
        mean_given_true = ((linear[:, None, :] + self.gaps @ by_within) * self.gaps).sum(axis=2)
        second_moment = (self.mixing * (variance_given_true + mean_given_true**2)).sum(axis=1)
        variance = second_moment - (self.mixing * mean_given_true).sum(axis=1) ** 2
        return PAIR_VARIANCE * float(self.share @ variance) / self.n_effective

    @staticmethod
    def _from_eigen(values: FloatArray, axes: FloatArray) -> FloatArray:
        return np.asarray((axes * values) @ axes.T)

    def in_coordinates(self, decision: Decision) -> Decision:
        """Return a rule on scores as a rule on whitened coordinates."""
        return Decision(
            self.inverse @ decision.slopes,
            self.centre @ decision.slopes + decision.intercepts,
            decision.slope,
            decision.costs,
            decision.shift,
        )


@dataclass(frozen=True, eq=False)
class _ClassAccuracy:
    """Accuracy of a rule in each true class, and its moments with standardised scores z.

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
    """Return the accuracy of a rule under the distribution, and its standard error.

    The error covers the class means and the covariance of the scores, and the priors if they are
    `counted`. It takes the noise rates and the Gaussian shape as exact.

    Parameters
    ----------
    law : ScoreLaw
        Score distribution.
    decision : Decision
        The rule.
    deployed : ndarray of shape (k,)
        Class proportions of new rows.
    counted : bool
        Whether the priors are inferred from the observed proportions.
    """
    values, axes = np.linalg.eigh(law.within)
    right = _class_accuracy(
        law.means, (axes * np.sqrt(values)) @ axes.T, law.in_coordinates(decision)
    )
    back = (axes / np.sqrt(values)) @ axes.T
    by_means = deployed[:, None] * right.first @ back
    by_within = back @ np.einsum("a,arq->rq", deployed, right.second) @ back
    variance = law.variance_of(by_means, by_within, law.within)
    if counted:
        by_share = _by_share(law, right.probability, by_means)
        share_variance = float(law.share @ by_share**2 - (law.share @ by_share) ** 2)
        variance += max(share_variance, 0.0) / law.n_effective
    return ExpectedAccuracy(float(deployed @ right.probability), float(np.sqrt(variance)))


def _by_share(law: ScoreLaw, probability: FloatArray, by_means: FloatArray) -> FloatArray:
    """Return the derivative of the accuracy by each observed proportion, through m and priors."""
    through_means = -np.einsum("bar,ar->ba", law.gaps, by_means / law.noise.known_priors[:, None])
    return np.asarray((law.noise.inverse_transition * (through_means + probability)).sum(axis=1))


def _class_accuracy(means: FloatArray, root: FloatArray, rule: Decision) -> _ClassAccuracy:
    """Integrate over scores m_a + root z, in closed form or by quasi-Monte Carlo."""
    if rule.slopes.shape[1] == 1:
        return _binary_accuracy(means, root, rule)
    k, rank = means.shape
    points = np.zeros((1, 0))
    if rank:
        points = ndtri(qmc.Sobol(rank, scramble=True, rng=0).random_base2(13))  # 8192 points
    right = np.array(
        [rule.classes(rule.values(means[a] + points @ root)) == a for a in range(k)], dtype=float
    )
    right /= len(points)
    probability = right.sum(axis=1)
    second = np.einsum("an,nr,nq->arq", right, points, points, optimize=True)
    return _ClassAccuracy(
        probability, right @ points, (second - probability[:, None, None] * np.eye(rank)) / 2
    )


def _binary_accuracy(means: FloatArray, root: FloatArray, rule: Decision) -> _ClassAccuracy:
    """Return `_class_accuracy` of two classes; a positive decision value predicts the second."""
    along = root @ rule.slopes[:, 0]
    spread = float(np.linalg.norm(along))
    signs = np.array([-1.0, 1.0])
    value = rule.values(means)[:, 0]
    if not spread:
        is_right = (signs * value > 0) + (signs < 0) * (value == 0.0)
        return _ClassAccuracy(is_right, 0 * means, np.zeros((2, *root.shape)))
    unit = along / spread
    margin = signs * value / spread
    density = np.exp(-(margin**2) / 2) / np.sqrt(2 * np.pi)
    second = -(margin * density)[:, None, None] * np.outer(unit, unit) / 2
    return _ClassAccuracy(ndtr(margin), (signs * density)[:, None] * unit, second)
