r"""ClassProportions of the true classes within strata of the rows, some of which were checked: a two-level posterior.

In stratum s of observed class b the true classes have proportions θₛ, of which only checked rows
tell. The prior has two levels, so that few rows do not give a confident number:

.. math:: \theta_s \sim \mathrm{Dirichlet}(A \varphi_b), \qquad
          \varphi_b \sim \mathrm{Dirichlet}(\alpha, \dots, 1 + (k - 1)\alpha, \dots, \alpha), \qquad
          \alpha = 1/\sqrt{k - 1},

with the large entry at the observed class: for two classes one row of evidence that labels are
wrong and two that they are right, for more classes a little less for each wrong one, and one row
more than all of these for the right one. How alike the strata of a class are, A, is averaged over a
grid by how well each value explains the counts. Given A, stratum s tells φ of its class as much as
nₛ(A + 1)/(A + nₛ) rows would. The shares wₛ of the strata are drawn too (Dirichlet of the row
counts), because the rows are a sample too: intervals hold the rates by which labels were flipped,
not the fraction that happened to be flipped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from unflip._utils.typing import FloatArray, IntArray
from unflip.labels.classes import UNCHECKED
from unflip.labels.noise import NoiseModel

#: Strata of an observed class, at most.
N_BINS = 4
#: Values of A: in how many rows' worth of evidence a stratum follows the proportions of its class.
_COHESIONS = np.array([1.0, 2, 4, 8, 16, 32])
_DRAWS = 4000
#: Below this share of draws in which labels beat chance, the data contradict that they do.
_LEAST_PLAUSIBLE = 0.025


@dataclass(frozen=True, eq=False)
class Tally:
    """Weight of the rows, and of the checked rows by true class, in each stratum."""

    sizes: FloatArray  # (observed class, bin)
    counts: FloatArray  # (observed class, bin, true class)

    @classmethod
    def of(cls, strata: IntArray, true: IntArray, weights: FloatArray, k: int) -> Tally:
        """Count the rows of each stratum, and those of them that were checked by true class."""
        sizes = np.bincount(strata, weights, minlength=k * N_BINS).astype(float)
        checked = true != UNCHECKED
        cells = strata[checked] * k + true[checked]
        counts = np.bincount(cells, weights[checked], minlength=k * N_BINS * k).astype(float)
        return cls(sizes.reshape(k, N_BINS), counts.reshape(k, N_BINS, k))

    @property
    def observed(self) -> FloatArray:
        """ClassProportions of the observed classes."""
        return np.asarray(self.sizes.sum(axis=1) / self.sizes.sum())

    @property
    def seen(self) -> FloatArray:
        """Weight of the checked rows, row = true class, column = observed class."""
        return np.asarray(self.counts.sum(axis=1).T)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Draws of what the rows leave uncertain."""

    theta: FloatArray  # θ: (draw, observed class, bin, true class)
    shares: FloatArray  # w: (draw, observed class, bin)

    @property
    def true_given_observed(self) -> FloatArray:
        """P(true | observed), (draw, observed class, true class)."""
        within = self.shares / self.shares.sum(axis=2, keepdims=True)
        return np.asarray(np.einsum("dob,dobt->dot", within, self.theta))

    @property
    def transitions(self) -> FloatArray:
        """P(observed | true), (draw, true class, observed class)."""
        joint = np.einsum("dob,dobt->dto", self.shares, self.theta)
        return np.asarray(joint / joint.sum(axis=2, keepdims=True))


@dataclass(frozen=True, eq=False)
class Urgency:
    """How much checking rows of each stratum narrows the rates.

    A stratum adds variance/(1 + j/evidence) to the variance of the rates once j more of its rows
    are checked: E[θ(1 − θ)]/Var θ is the weight of the rows that its posterior is worth, as for a
    Beta distribution.
    """

    variance: FloatArray  # (stratum,)
    evidence: FloatArray  # (stratum,), in rows

    @classmethod
    def of(
        cls, posterior: Posterior, sizes: FloatArray, n_rows: IntArray, noise: NoiseModel
    ) -> Urgency:
        """Judge each stratum by its posterior, its weight and its number of rows."""
        theta = posterior.theta
        # ∂ε_ab/∂θ_sa = w_s(1{s ∈ b} − ε_ab)/π_a, squared and summed over b
        slopes = (np.eye(noise.n_classes)[:, None, :] - noise.transition) / noise.known_priors[
            :, None
        ]
        effect = (slopes**2).sum(axis=2)[:, None, :]
        variance = (effect * theta.var(axis=0)).sum(axis=2).ravel()
        of_a_row = (effect * (theta * (1 - theta)).mean(axis=0)).sum(axis=2).ravel()
        shares = (sizes / sizes.sum()).ravel()
        row_weight = np.divide(sizes.ravel(), n_rows, out=np.ones(sizes.size), where=n_rows > 0)
        smallest = np.finfo(
            float
        ).tiny  # a stratum where everything is known has no variance of either kind
        evidence = np.maximum(of_a_row, smallest) / np.maximum(variance * row_weight, smallest)
        return cls(shares**2 * variance, evidence)

    @property
    def n_strata(self) -> int:
        """Number of strata, empty ones included."""
        return len(self.variance)

    def allocate(self, m: int, available: IntArray) -> list[int]:
        """Give m rows to strata one by one, each to where it lowers the variance most."""
        taken = np.zeros(self.n_strata)
        order = []
        for _ in range(m):
            worth = self.evidence + taken
            gain = self.variance * (self.evidence / worth) / (worth + 1)
            chosen = int(np.argmax(np.where(taken < available, gain, -1.0)))
            taken[chosen] += 1
            order.append(chosen)
        return order


def _class_parameters(counts: FloatArray, cohesion: float) -> FloatArray:
    """Dirichlet parameters of φ for each observed class, (observed class, true class)."""
    k = len(counts)
    wrong = 1 / np.sqrt(k - 1)
    prior = np.full((k, k), wrong) + (1 + (k - 2) * wrong) * np.eye(k)
    worth = (cohesion + 1) / (cohesion + counts.sum(axis=2, keepdims=True))
    return np.asarray(prior + (counts * worth).sum(axis=1))


def _log_evidence(counts: FloatArray, cohesion: float) -> float:
    """Log probability of the counts with φ at its mean (Dirichlet-multinomial)."""
    parameters = _class_parameters(counts, cohesion)
    alpha = cohesion * (parameters / parameters.sum(axis=1, keepdims=True))[:, None, :]
    totals = gammaln(cohesion) - gammaln(cohesion + counts.sum(axis=2))
    return float(totals.sum() + (gammaln(alpha + counts) - gammaln(alpha)).sum())


def draw_posterior(tally: Tally, rng: np.random.Generator) -> Posterior:
    """Draw from the posterior, averaged over the values of A."""
    evidence = np.array([_log_evidence(tally.counts, cohesion) for cohesion in _COHESIONS])
    plausible = np.exp(evidence - evidence.max())
    chosen = rng.choice(len(_COHESIONS), size=_DRAWS, p=plausible / plausible.sum())
    parameters = np.array([_class_parameters(tally.counts, cohesion) for cohesion in _COHESIONS])[
        chosen
    ]
    phi = _dirichlet(parameters, rng)[:, :, None, :]
    theta = _dirichlet(_COHESIONS[chosen][:, None, None, None] * phi + tally.counts, rng)
    # A class of next to no weight would draw nothing but zeros.
    shares = np.maximum(
        rng.standard_gamma(tally.sizes, size=(_DRAWS, *tally.sizes.shape)), np.finfo(float).tiny
    )
    return Posterior(theta, shares / shares.sum(axis=(1, 2), keepdims=True))


def _dirichlet(parameters: FloatArray, rng: np.random.Generator) -> FloatArray:
    gammas = rng.standard_gamma(parameters)
    return np.asarray(gammas / gammas.sum(axis=-1, keepdims=True))


def better_than_chance(posterior: Posterior) -> Posterior:
    """Keep the draws with ε₊ + ε₋ < 1, that is P(true + | observed +) > P(true + | observed −)."""
    positive = posterior.true_given_observed[:, :, 1]
    if positive.shape[1] != 2:
        return posterior
    plausible = positive[:, 1] > positive[:, 0]
    if plausible.mean() < _LEAST_PLAUSIBLE:
        raise ValueError(
            "The trusted rows say that the observed labels are worse than chance (eps_pos + "
            "eps_neg > 1): make sure that y and y_trusted name the classes alike, and swap the "
            "observed labels if they do."
        )
    return Posterior(posterior.theta[plausible], posterior.shares[plausible])
