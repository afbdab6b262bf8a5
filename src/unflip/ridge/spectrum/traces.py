"""Traces of functions of an operator that is too large to decompose, from products with a few random vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from unflip._utils.typing import FloatArray
from unflip.ridge.spectrum.lanczos import Lanczos

_SEED = 0
_LEADING = 8
_FEWEST_PROBES, _MOST_PROBES, _PROBE_VALUES = (
    8,
    64,
    2**17,
)  # in between, probes hold so many numbers in all
_STEPS, _MOST_STEPS = 8, 256  # added at a time, and in all
_SETTLED = 1e-4  # relative change of a trace that ends the quadrature
_SMALLEST_SHIFT = 1e-4  # that the quadrature must resolve, in units of the typical eigenvalue
_LOG_RANGE = 100.0  # of shifts, about the largest eigenvalue
_TINY = float(np.finfo(float).tiny)  # in place of 0 in a denominator

Operator = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Quadrature:
    r"""Nodes θ and weights τ that stand for the eigenvalues s of an operator G: Σ f(s) is about Σ τ f(θ).

    k Lanczos steps from a vector z give zᵀf(G)z as a sum over k nodes. The trace of f(G) is the sum
    of these over a few orthonormal vectors Q, and, of what is orthogonal to them, the mean over
    vectors z of independent signs (stochastic Lanczos quadrature). Q are rough leading
    eigenvectors, because single large eigenvalues are what random vectors miss or count twice (as
    in Hutch++, Meyer, Musco, Musco and Woodruff 2021). What is random is the mean over the probes
    z.

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
        """Add nodes until the number of eigenvalues above a small one settles.

        Parameters
        ----------
        operator : callable
            As in `Lanczos`.
        probes : ndarray of shape (d, n_leading + n_probes)
            Vectors of signs, within the space that the operator acts on: the first to find Q, the
            others z.
        dimension : int
            Of that space.
        """
        leading = _leading(operator, probes[:, :_LEADING])
        n_leading, n_probes = leading.shape[1], probes.shape[1] - _LEADING
        others = probes[:, _LEADING:] - leading @ (leading.T @ probes[:, _LEADING:])
        norms = np.linalg.norm(others, axis=0)
        starts = np.hstack([leading, others / np.where(norms > 0, norms, np.inf)])
        shares = np.append(
            np.ones(n_leading), np.full(n_probes, (dimension - n_leading) / n_probes)
        )[:, None]
        lanczos = Lanczos(operator, starts, keep=False)
        before = np.inf
        while True:
            for _ in range(min(_STEPS, dimension)):
                lanczos.step()
            nodes, weights = lanczos.quadrature()
            found = cls(nodes, shares * weights, n_leading)
            above = found._n_above_small()
            if abs(above - before) <= _SETTLED * above or lanczos.n_steps >= min(
                _MOST_STEPS, dimension
            ):
                return found
            before = above

    def sums(self, values: FloatArray) -> FloatArray:
        """Σ τ f(θ) by values f(θ) of shape (n_nodes, ...), the nodes in one row."""
        return np.asarray(np.tensordot(self.weights.ravel(), values, axes=1))

    def errors(self, values: FloatArray) -> FloatArray:
        """Return the standard error of each sum, by how much the probes differ."""
        each = values.reshape(*self.weights.shape, *values.shape[1:])[self.n_leading :]
        by_probe = np.einsum("qk,qk...->q...", self.weights[self.n_leading :], each)
        return np.asarray(by_probe.std(axis=0, ddof=1) * np.sqrt(len(by_probe)))

    def shift_of(self, total: float) -> float:
        """Return the shift ν at which Σ s/(s + ν) is this positive total; 0 where it is less without any."""
        nodes = self.nodes.ravel()
        unit = float(nodes.max()) or 1.0

        def excess(log_shift: float) -> float:
            return float(self.sums(nodes / (nodes + unit * np.exp(log_shift)))) - total

        if excess(-_LOG_RANGE) <= 0:
            return 0.0
        return float(unit * np.exp(brentq(excess, -_LOG_RANGE, _LOG_RANGE)))

    def _n_above_small(self) -> float:
        nodes = self.nodes.ravel()
        total, squares = (
            self.sums(nodes),
            self.sums(nodes**2),
        )  # the typical eigenvalue is their ratio
        shifted = np.maximum(total * nodes + _SMALLEST_SHIFT * squares, _TINY)
        return float(self.sums(total * nodes / shifted))


def random_signs(size: int) -> FloatArray:
    """Columns of independent signs, the same each time: more of them where they are short."""
    n_probes = int(np.clip(_PROBE_VALUES // size, _FEWEST_PROBES, _MOST_PROBES))
    return np.random.default_rng(_SEED).choice([-1.0, 1.0], size=(size, _LEADING + n_probes))


def _leading(operator: Operator, starts: FloatArray) -> FloatArray:
    """Orthonormal vectors that hold most of the largest eigenvalues: two steps of subspace iteration."""
    vectors = np.linalg.qr(operator(starts))[0]
    vectors, sizes, _ = np.linalg.svd(operator(vectors), full_matrices=False)
    return np.asarray(vectors[:, sizes > 0])
