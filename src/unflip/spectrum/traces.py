"""Traces of functions of an operator that is too large to decompose, from products with a few random vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unflip._typing import FloatArray
from unflip.spectrum.lanczos import Lanczos

N_PROBES = 8
_SEED = 0
_STEPS, _MOST_STEPS = 8, 256  # added at a time, and in all
_SETTLED = 1e-4  # relative change of a trace that ends the quadrature
_SMALLEST_SHIFT = 1e-4  # that the quadrature must resolve, in units of the typical eigenvalue

Operator = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Quadrature:
    r"""Nodes and weights that stand for the eigenvalues s of an operator: Σ f(s) is about Σ τ f(θ).

    Stochastic Lanczos quadrature: E[zᵀf(G)z] over vectors z of independent signs is the trace of f(G), and k Lanczos
    steps from z give zᵀf(G)z as a sum over k nodes. The error is that of a mean over the probes z.

    Attributes
    ----------
    nodes : ndarray of shape (n_probes, k)
        θ.
    weights : ndarray of shape (n_probes, k)
        τ; those of each probe sum to the dimension.
    """

    nodes: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, operator: Operator, probes: FloatArray, dimension: int) -> Quadrature:
        """Add nodes until the number of eigenvalues above a small one settles.

        Parameters
        ----------
        operator : callable
            As in `Lanczos`.
        probes : ndarray of shape (d, n_probes)
            Vectors z, within the space that the operator acts on.
        dimension : int
            Of that space.
        """
        lanczos = Lanczos(operator, probes / np.linalg.norm(probes, axis=0), keep=False)
        before = np.inf
        while True:
            for _ in range(min(_STEPS, dimension)):
                lanczos.step()
            nodes, weights = lanczos.quadrature()
            found = cls(nodes, weights * dimension)
            power = float(found.sums(nodes**2).mean())
            typical = power / (float(found.sums(nodes).mean()) or 1.0)
            above = float(found.sums(nodes / (nodes + _SMALLEST_SHIFT * typical + (power == 0))).mean())
            if abs(above - before) <= _SETTLED * above or lanczos.n_steps >= min(_MOST_STEPS, dimension):
                return found
            before = above

    def sums(self, values: FloatArray) -> FloatArray:
        """Σ τ f(θ) of each probe, (n_probes, ...), by values f(θ) of shape (n_probes, k, ...)."""
        return np.asarray(np.einsum("qk,qk...->q...", self.weights, values))


def random_signs(size: int, n_probes: int = N_PROBES) -> FloatArray:
    """Columns of independent signs, the same each time."""
    return np.random.default_rng(_SEED).choice([-1.0, 1.0], size=(size, n_probes))


def sum_of_squares(operator: Operator, size: int) -> float:
    """Σ s² over the eigenvalues s of a symmetric operator.

    Largest eigenvalues, which random vectors alone would miss or count twice, are found along a few directions that
    hold most of them (Hutch++, Meyer, Musco, Musco and Woodruff 2021); random vectors tell of the others.
    """
    first, second = np.split(random_signs(size, 2 * min(N_PROBES, size)), 2, axis=1)
    leading = np.linalg.qr(operator(first))[0]
    others = second - leading @ (leading.T @ second)
    along = operator(np.hstack([leading, others]))
    powers = (along**2).sum(axis=0)
    n_leading = leading.shape[1]
    return float(powers[:n_leading].sum() + powers[n_leading:].mean())
