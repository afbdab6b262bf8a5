r"""Deterministic equivalent of the resolvent for classes with different covariances.

With class second moments Σ_b = C_b + μ_bμ_bᵀ, proportions π_b and n rows (the paper's Lemmas DEQ
and de QAQ),

.. math:: \bar Q = \Bigl(\sum_b \frac{\pi_b}{1+\delta_b}\Sigma_b + \gamma I\Bigr)^{-1}, \qquad
          \delta_b = \frac1n \operatorname{tr}(\Sigma_b\bar Q), \qquad
          E[QAQ] = \bar Q\Bigl(A + \sum_b \frac{\pi_b T_b}{(1+\delta_b)^2}\Sigma_b\Bigr)\bar Q,

where T_b = tr(Σ_b E[QAQ])/n solves the k×k system that the last equation implies. The means stay in
the traces: they matter only like 1/n, but with them the second moments of finite samples come out
closer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from unflip._utils.typing import FloatArray
from unflip.theory.resolvent import delta as isotropic_delta

# Limit on steps of Newton's method and the plain iteration together. Its tests need more than
# 25 and at most 100.
_MAX_STEPS = 200


@dataclass(frozen=True)
class Resolvent:
    """Traces and products of Q̄ at fixed class weights."""

    traces: FloatArray  # tr(Σ_b Q̄)/n, shape (k,)
    products: FloatArray  # tr(Σ_b Q̄ Σ_c Q̄)/n, shape (k, k)
    times_means: FloatArray  # Q̄μ_b as columns, shape (p, k)


@dataclass(frozen=True)
class DenseMoments:
    """Class moments with full covariance matrices; every evaluation inverts one matrix."""

    means: FloatArray  # (k, p)
    covariances: FloatArray  # (k, p, p)
    n: float

    def resolvent(self, weights: FloatArray, reg: float) -> Resolvent:
        """(Σ_b weights_b Σ_b + γI)⁻¹."""
        seconds = self.covariances + self.means[:, :, None] * self.means[:, None, :]
        inverse = np.linalg.inv(
            np.tensordot(weights, seconds, axes=1) + reg * np.eye(seconds.shape[1])
        )
        smoothed = seconds @ inverse
        traces = np.trace(smoothed, axis1=1, axis2=2) / self.n
        products = np.einsum("bij,cji->bc", smoothed, smoothed) / self.n
        return Resolvent(traces, products, inverse @ self.means.T)

    def quadratic(self, vector: FloatArray) -> FloatArray:
        """vᵀC_bv for each class."""
        return np.asarray((self.covariances @ vector) @ vector)

    def variances(self) -> FloatArray:
        """tr(Σ_b)/p for each class."""
        diagonals = np.diagonal(self.covariances, axis1=1, axis2=2)
        return np.asarray((diagonals + self.means**2).mean(axis=1))


@dataclass(frozen=True)
class CommutingMoments:
    """Class moments with covariances that share their eigenvectors, in the basis of these."""

    means: FloatArray  # (k, p), in the eigenbasis
    eigenvalues: FloatArray  # (k, p)
    n: float

    def resolvent(self, weights: FloatArray, reg: float) -> Resolvent:
        """(Σ_b weights_b Σ_b + γI)⁻¹, with Woodbury's identity for the means' low-rank part."""
        bulk = 1 / (weights @ self.eigenvalues + reg)  # diagonal part of the inverse
        basis = self._span_of_means()
        coordinates = basis.T @ self.means.T
        inner = (coordinates * weights) @ coordinates.T
        gram = basis.T @ (bulk[:, None] * basis)
        kept = np.asarray(np.linalg.inv(np.eye(len(gram)) + inner @ gram), dtype=float)
        # A product, because a difference would cancel.
        smoothed_means = bulk[:, None] * (basis @ (kept @ coordinates))
        core = kept @ inner
        spectra = self.eigenvalues * bulk  # (k, p)
        # The low-rank part of each trace.
        reduced = [basis.T @ ((row * bulk)[:, None] * basis) @ core for row in spectra]
        traces = spectra.sum(axis=1) - np.array([np.trace(part) for part in reduced])
        products = spectra @ spectra.T
        for b, c in np.ndindex(products.shape):
            cross = basis.T @ ((spectra[b] * spectra[c] * bulk)[:, None] * basis) @ core
            products[b, c] += np.trace(reduced[b] @ reduced[c]) - 2 * np.trace(cross)
        of_means = self.eigenvalues @ smoothed_means**2  # (class of covariance, class of mean)
        products += of_means + of_means.T + (self.means @ smoothed_means) ** 2
        own = np.einsum("bp,pb->b", self.means, smoothed_means)
        return Resolvent((traces + own) / self.n, products / self.n, smoothed_means)

    def _span_of_means(self) -> FloatArray:
        """Return orthonormal columns that span the means; two centred means are collinear."""
        vectors, sizes, _ = np.linalg.svd(self.means.T, full_matrices=False)
        smallest = 1e-12 * max(sizes.max(), np.finfo(float).tiny)  # below: rounding error
        return np.asarray(vectors[:, sizes > smallest], dtype=float)

    def quadratic(self, vector: FloatArray) -> FloatArray:
        """vᵀC_bv for each class."""
        return np.asarray(self.eigenvalues @ vector**2)

    def variances(self) -> FloatArray:
        """tr(Σ_b)/p for each class."""
        return np.asarray((self.eigenvalues + self.means**2).mean(axis=1))


#: Means and covariances of k classes, in some basis of the features.
ClassMoments: TypeAlias = DenseMoments | CommutingMoments


@dataclass(frozen=True)
class Equivalent:
    """The solution δ_b, and the resolvent there."""

    deltas: FloatArray  # (k,)
    resolvent: Resolvent
    priors: FloatArray

    @property
    def weights(self) -> FloatArray:
        """π_b/(1 + δ_b)."""
        return np.asarray(self.priors / (1 + self.deltas))

    def amplification(self) -> FloatArray:
        """π_bT_b/(1 + δ_b)² for A = Σ_a, shape (a, b).

        Entry (a, b) is the variance of the scores of class a per squared error on class b.
        """
        squared = self.priors / (1 + self.deltas) ** 2
        products = self.resolvent.products
        # Column a holds T for A = Σ_a.
        traces = np.linalg.solve(np.eye(len(squared)) - products * squared, products)
        return np.asarray(traces.T * squared)


def solve(moments: ClassMoments, priors: FloatArray, reg: float) -> Equivalent:
    """Solve δ_b = tr(Σ_bQ̄)/n by Newton's method, or by the plain iteration if a step overshoots.

    The derivative of the right-hand side is π_c/(1 + δ_c)² tr(Σ_bQ̄Σ_cQ̄)/n, from the resolvent's
    products.
    """
    deltas = _starting_point(moments, reg)
    previous_error = np.inf
    for _ in range(_MAX_STEPS):
        resolvent = moments.resolvent(priors / (1 + deltas), reg)
        residual = resolvent.traces - deltas
        error = float(np.abs(residual / (1 + deltas)).max())
        if error <= 1e-12:  # relative
            return Equivalent(deltas, resolvent, priors)
        derivative = resolvent.products * (priors / (1 + deltas) ** 2)
        newton = deltas + np.linalg.solve(np.eye(len(deltas)) - derivative, residual)
        newton_works = (newton > 0).all() and error < previous_error
        deltas = newton if newton_works else resolvent.traces
        previous_error = error
    raise ValueError(
        f"The fixed point of delta did not converge at reg = {reg:g} (error {error:.1e}): use a "
        "larger reg, or covariances with a smaller condition number."
    )


def _starting_point(moments: ClassMoments, reg: float) -> FloatArray:
    """Return δ of isotropic classes with the same total variance."""
    variances = moments.variances()
    typical = float(variances.mean()) or 1.0
    aspect = moments.means.shape[1] / moments.n
    return np.asarray(isotropic_delta(aspect, reg / typical) * variances / typical)
