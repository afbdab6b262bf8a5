"""Estimate traces of functions of a large operator from products with a few random vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from unflip._utils.arrays import TINY
from unflip._utils.typing import FloatArray
from unflip.ridge.spectrum.lanczos import Lanczos

# Random vectors from which the leading eigenvectors Q are computed. A choice: with 4, sums over the
# spectrum miss their stated error in a test; with 16, simulated label posteriors move by 0.03.
_LEADING = 8
# Bounds of the number of probes z. In between, probes hold _PROBE_VALUES numbers in total: more
# probes where they are short and cheap. A choice between time and random error: with half and twice
# the values, simulated label posteriors move by 0.02 to 0.03; with 32 probes at most, sums over the
# spectrum miss their stated error in a test.
_FEWEST_PROBES = 8
_MOST_PROBES = 64
_PROBE_VALUES = 2**17
# Largest number of Lanczos steps. Simulated rows and its tests need at most 128.
_MOST_STEPS = 256
# Smallest shift that the quadrature must resolve, in units of the typical eigenvalue: the smallest
# of the `unflip.ridge.selection.RELATIVE_REGS`.
_SMALLEST_SHIFT = 1e-4
# Bounds of log ν, relative to the largest eigenvalue: far beyond all that is asked for.
_LOG_RANGE = 100.0

Operator = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Quadrature:
    r"""Nodes θ and weights τ for sums over the eigenvalues s of an operator G: Σ f(s) ≈ Σ τ f(θ).

    k Lanczos steps from a vector z give zᵀf(G)z as a sum over k nodes. The trace of f(G) is the sum
    of these over a few orthonormal vectors Q, plus the trace over the orthogonal complement. The
    latter is the mean over vectors z of independent signs (stochastic Lanczos quadrature). Q are
    approximate leading eigenvectors, because random vectors estimate single large eigenvalues
    poorly (as in Hutch++, Meyer, Musco, Musco and Woodruff 2021). Only the mean over the probes z
    is random.

    Attributes
    ----------
    nodes, weights : ndarray of shape (n_leading + n_probes, k)
        θ and τ, those of Q first.
    n_leading : int
        Number of vectors Q.
    """

    nodes: FloatArray
    weights: FloatArray
    n_leading: int

    @classmethod
    def of(cls, operator: Operator, probes: FloatArray, dimension: int) -> Quadrature:
        """Add nodes until the number of eigenvalues above a small one converges.

        Parameters
        ----------
        operator : callable
            As in `Lanczos`.
        probes : ndarray of shape (d, n_leading + n_probes)
            Vectors of signs, within the space that the operator acts on: the first for Q, the
            others are z.
        dimension : int
            Dimension of that space.
        """
        leading = _leading_vectors(operator, probes[:, :_LEADING])
        n_leading = leading.shape[1]
        n_probes = probes.shape[1] - _LEADING
        complement = probes[:, _LEADING:] - leading @ (leading.T @ probes[:, _LEADING:])
        norms = np.linalg.norm(complement, axis=0)
        starts = np.hstack([leading, complement / np.where(norms > 0, norms, np.inf)])
        probe_share = (dimension - n_leading) / n_probes
        shares = np.append(np.ones(n_leading), np.full(n_probes, probe_share))[:, None]
        lanczos = Lanczos(operator, starts, keep=False)
        n_before = np.inf
        while True:
            for _ in range(min(8, dimension)):  # steps between two tests of convergence
                lanczos.step()
            nodes, weights = lanczos.quadrature()
            quadrature = cls(nodes, shares * weights, n_leading)
            n_above = quadrature._n_above_small()
            has_converged = abs(n_above - n_before) <= 1e-4 * n_above  # below the random error
            if has_converged or lanczos.n_steps >= min(_MOST_STEPS, dimension):
                return quadrature
            n_before = n_above

    def sums(self, values: FloatArray) -> FloatArray:
        """Return Σ τ f(θ) for values f(θ) of shape (n_nodes, ...), nodes in flattened order."""
        return np.asarray(np.tensordot(self.weights.ravel(), values, axes=1))

    def errors(self, values: FloatArray) -> FloatArray:
        """Return the standard error of each sum, from the variance over the probes."""
        by_node = values.reshape(*self.weights.shape, *values.shape[1:])[self.n_leading :]
        by_probe = np.einsum("qk,qk...->q...", self.weights[self.n_leading :], by_node)
        return np.asarray(by_probe.std(axis=0, ddof=1) * np.sqrt(len(by_probe)))

    def shift_of(self, total: float) -> float:
        """Return the shift ν at which Σ s/(s + ν) is this total; 0 if it is less at ν = 0."""
        nodes = self.nodes.ravel()
        unit = float(nodes.max()) or 1.0

        def excess(log_shift: float) -> float:
            return float(self.sums(nodes / (nodes + unit * np.exp(log_shift)))) - total

        if excess(-_LOG_RANGE) <= 0:
            return 0.0
        return float(unit * np.exp(brentq(excess, -_LOG_RANGE, _LOG_RANGE)))

    def _n_above_small(self) -> float:
        """Return Σ s/(s + ν) at the smallest shift ν to resolve."""
        nodes = self.nodes.ravel()
        total = self.sums(nodes)
        squares = self.sums(nodes**2)  # the typical eigenvalue is squares / total
        shifted = np.maximum(total * nodes + _SMALLEST_SHIFT * squares, TINY)
        return float(self.sums(total * nodes / shifted))


def random_signs(size: int) -> FloatArray:
    """Return columns of independent signs, the same for each call; more of them if short."""
    n_probes = int(np.clip(_PROBE_VALUES // size, _FEWEST_PROBES, _MOST_PROBES))
    rng = np.random.default_rng(0)  # a fixed seed: results are reproducible
    return rng.choice([-1.0, 1.0], size=(size, _LEADING + n_probes))


def _leading_vectors(operator: Operator, starts: FloatArray) -> FloatArray:
    """Return approximate leading eigenvectors, by two steps of subspace iteration."""
    vectors = np.linalg.qr(operator(starts))[0]
    vectors, sizes, _ = np.linalg.svd(operator(vectors), full_matrices=False)
    return np.asarray(vectors[:, sizes > 0])
