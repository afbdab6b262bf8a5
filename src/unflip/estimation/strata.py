r"""Posterior of the true class proportions within strata of rows, from trusted labels.

In stratum s of observed class b, the true classes have proportions θₛ, which only trusted labels
show. The prior has two levels, so that few trusted labels do not give a confident estimate:

.. math:: \theta_s \sim \mathrm{Dirichlet}(A \varphi_b), \qquad
          \varphi_b \sim \mathrm{Dirichlet}(\alpha, \dots, 1 + (k - 1)\alpha, \dots, \alpha), \qquad
          \alpha = 1/\sqrt{k - 1},

with the large entry at the observed class. For two classes the prior counts as one wrong and two
right labels. For more classes it counts a little less for each wrong class, and one row more than
all of these together for the right one. A, the similarity of the strata of a class, is averaged
over a grid, weighted by evidence. Given A, stratum s informs φ of its class like
nₛ(A + 1)/(A + nₛ) rows. The shares wₛ of the strata are drawn too (Dirichlet of the row counts),
because the rows are a sample: intervals cover the noise rates, not the share of wrong labels in
these rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from unflip._utils.typing import FloatArray, IntArray
from unflip.labels.codes import UNCHECKED
from unflip.labels.noise import NoiseModel

#: Most strata of an observed class. A choice: with 2 or 8, standard errors from 80 rows, checked as
#: suggested, move by 8 to 36%.
N_BINS = 4
#: Candidates for A, in rows: a grid of powers of two. With 3 or 11 of them, standard errors move by
#: about 2%.
_SIMILARITIES = np.array([1.0, 2, 4, 8, 16, 32])
#: Number of posterior draws. With half and double, standard errors move by up to 4%.
_N_DRAWS = 4000


@dataclass(frozen=True, eq=False)
class Tally:
    """Weight of the rows in each stratum, and of the checked rows by true class."""

    sizes: FloatArray  # (observed class, bin)
    counts: FloatArray  # (observed class, bin, true class)

    @classmethod
    def of(cls, strata: IntArray, true: IntArray, weights: FloatArray, k: int) -> Tally:
        """Return the tally of rows with a stratum, a true class or `UNCHECKED`, and a weight."""
        sizes = np.bincount(strata, weights, minlength=k * N_BINS).astype(float)
        checked = true != UNCHECKED
        cells = strata[checked] * k + true[checked]
        counts = np.bincount(cells, weights[checked], minlength=k * N_BINS * k).astype(float)
        return cls(sizes.reshape(k, N_BINS), counts.reshape(k, N_BINS, k))

    @property
    def observed(self) -> FloatArray:
        """Proportions of the observed classes."""
        return np.asarray(self.sizes.sum(axis=1) / self.sizes.sum())

    @property
    def confusion(self) -> FloatArray:
        """Weight of the checked rows, row = true class, column = observed class."""
        return np.asarray(self.counts.sum(axis=1).T)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Posterior draws of θ and w."""

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
    """Contribution of each stratum to the variance of the rates, for `TrustedSubset.suggest`.

    With j more checked rows, a stratum contributes variance/(1 + j/evidence). The evidence
    E[θ(1 − θ)]/Var θ is the effective number of checked rows, as for a Beta distribution.
    """

    variance: FloatArray  # (stratum,)
    evidence: FloatArray  # (stratum,), in rows

    @classmethod
    def of(
        cls, posterior: Posterior, sizes: FloatArray, n_rows: IntArray, noise: NoiseModel
    ) -> Urgency:
        """Return the urgency for a posterior, and weight and number of rows of each stratum."""
        theta = posterior.theta
        # ∂ε_ab/∂θ_sa = w_s(1{s ∈ b} − ε_ab)/π_a, squared and summed over b
        differences = np.eye(noise.n_classes)[:, None, :] - noise.transition
        slopes = differences / noise.known_priors[:, None]
        effect = (slopes**2).sum(axis=2)[:, None, :]
        variance = (effect * theta.var(axis=0)).sum(axis=2).ravel()
        row_variance = (effect * (theta * (1 - theta)).mean(axis=0)).sum(axis=2).ravel()
        shares = (sizes / sizes.sum()).ravel()
        row_weight = np.divide(sizes.ravel(), n_rows, out=np.ones(sizes.size), where=n_rows > 0)
        smallest = np.finfo(float).tiny  # both variances are 0 in a stratum without uncertainty
        evidence = np.maximum(row_variance, smallest) / np.maximum(variance * row_weight, smallest)
        return cls(shares**2 * variance, evidence)

    @property
    def n_strata(self) -> int:
        """Number of strata, empty ones included."""
        return len(self.variance)

    def allocate(self, m: int, available: IntArray) -> list[int]:
        """Allocate m rows to strata one by one, each where it lowers the variance most."""
        taken = np.zeros(self.n_strata)
        order = []
        for _ in range(m):
            n_checked = self.evidence + taken
            gain = self.variance * (self.evidence / n_checked) / (n_checked + 1)
            best = int(np.argmax(np.where(taken < available, gain, -1.0)))
            taken[best] += 1
            order.append(best)
        return order


def _class_parameters(counts: FloatArray, similarity: float) -> FloatArray:
    """Return Dirichlet parameters of φ for each observed class, (observed class, true class)."""
    k = len(counts)
    alpha = 1 / np.sqrt(k - 1)
    prior = np.full((k, k), alpha) + (1 + (k - 2) * alpha) * np.eye(k)
    weight = (similarity + 1) / (similarity + counts.sum(axis=2, keepdims=True))
    return np.asarray(prior + (counts * weight).sum(axis=1))


def _log_evidence(counts: FloatArray, similarity: float) -> float:
    """Return the log probability of the counts with φ at its mean (Dirichlet-multinomial)."""
    parameters = _class_parameters(counts, similarity)
    alpha = similarity * (parameters / parameters.sum(axis=1, keepdims=True))[:, None, :]
    totals = gammaln(similarity) - gammaln(similarity + counts.sum(axis=2))
    return float(totals.sum() + (gammaln(alpha + counts) - gammaln(alpha)).sum())


def draw_posterior(tally: Tally, rng: np.random.Generator) -> Posterior:
    """Draw from the posterior, averaged over the values of A."""
    log_evidence = np.array([_log_evidence(tally.counts, value) for value in _SIMILARITIES])
    evidence = np.exp(log_evidence - log_evidence.max())
    drawn = rng.choice(len(_SIMILARITIES), size=_N_DRAWS, p=evidence / evidence.sum())
    parameters = np.array([_class_parameters(tally.counts, value) for value in _SIMILARITIES])
    phi = _dirichlet(parameters[drawn], rng)[:, :, None, :]
    theta = _dirichlet(_SIMILARITIES[drawn][:, None, None, None] * phi + tally.counts, rng)
    # Draws of a class of very small weight would all underflow to 0.
    shares = np.maximum(
        rng.standard_gamma(tally.sizes, size=(_N_DRAWS, *tally.sizes.shape)), np.finfo(float).tiny
    )
    return Posterior(theta, shares / shares.sum(axis=(1, 2), keepdims=True))


def _dirichlet(parameters: FloatArray, rng: np.random.Generator) -> FloatArray:
    gammas = rng.standard_gamma(parameters)
    return np.asarray(gammas / gammas.sum(axis=-1, keepdims=True))


def better_than_chance(posterior: Posterior) -> Posterior:
    """Return the draws with ε₊ + ε₋ < 1; raises `ValueError` if they are fewer than 2.5%.

    ε₊ + ε₋ < 1 is the same as P(true + | observed +) > P(true + | observed −).
    """
    positive = posterior.true_given_observed[:, :, 1]
    if positive.shape[1] != 2:
        return posterior
    is_informative = positive[:, 1] > positive[:, 0]
    if is_informative.mean() < 0.025:
        raise ValueError(
            "According to the checked rows, the observed labels are worse than chance (eps_pos + "
            "eps_neg > 1): make sure that the checked rows are a random sample, not suspects, and "
            "that their true labels have the same class names as the observed ones."
        )
    return Posterior(posterior.theta[is_informative], posterior.shares[is_informative])
