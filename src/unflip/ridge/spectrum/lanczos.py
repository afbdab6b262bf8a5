"""Lanczos: Krylov spaces of a symmetric operator, which serve every shift of it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import numpy as np
from scipy.linalg import eigh_tridiagonal

from unflip._utils.typing import FloatArray

# Basis vectors that are stored in one array: grown in chunks, the basis is never copied.
_CHUNK = 64
# Norm of a new vector, relative to the operator, below which the space is invariant: ten times the
# rounding error of float64.
_INVARIANT = 10 * float(np.finfo(float).eps)


class Lanczos:
    r"""Krylov spaces of an operator G, one for each column of unit vectors b, grown together.

    After k steps GV = VT + β v eᵀ with orthonormal columns V, the first of which is b, and a k×k
    tridiagonal T. A shift of G shifts T alone, so one space solves (G + ν)x = b for every ν > 0,
    by x = Vy with (T + ν)y = e₁. The residual is −β y_k v, and is smallest for the largest ν.

    Parameters
    ----------
    operator : callable
        Product of G, positive semi-definite, with a (d, q) array.
    starts : ndarray of shape (d, q)
        Unit vectors b; or 0, for which x = 0.
    keep : bool
        Whether to store V, which solutions need, and to keep new vectors orthogonal to it.
        Otherwise only T is computed. Rounding then adds repeated eigenvalues to T, which do not
        change the quadrature.

    Examples
    --------
    >>> matrix = np.diag([1.0, 2.0, 3.0])
    >>> lanczos = Lanczos(lambda columns: matrix @ columns, np.full((3, 1), 3**-0.5), keep=True)
    >>> residual = lanczos.grow(shift=1.0, tolerance=1e-9, most=3)
    >>> lanczos.solutions(np.array([1.0]))[:, 0, 0] * 3**0.5
    array([0.5       , 0.33333333, 0.25      ])
    """

    def __init__(
        self, operator: Callable[[FloatArray], FloatArray], starts: FloatArray, *, keep: bool
    ) -> None:
        self._operator = operator
        self._keep = keep
        self._current = starts
        self._previous = np.zeros_like(starts)
        self._diagonal: list[FloatArray] = []
        self._coupling: list[FloatArray] = []  # β below each entry of the diagonal
        self._chunks: list[FloatArray] = []  # (q, _CHUNK, d)

    @property
    def n_steps(self) -> int:
        """Dimension k of each space."""
        return len(self._diagonal)

    @property
    def n_bytes(self) -> int:
        """Memory of V in bytes."""
        return sum(chunk.nbytes for chunk in self._chunks)

    def step(self) -> None:
        """Add a dimension to each space."""
        if self._keep:
            self._store()
        following = self._operator(self._current)
        diagonal = np.einsum("dq,dq->q", self._current, following)
        following -= diagonal * self._current
        if self._coupling:
            following -= self._coupling[-1] * self._previous
        self._orthogonalise(following)
        coupling = np.sqrt(np.einsum("dq,dq->q", following, following))
        self._diagonal.append(diagonal)
        coupling[coupling <= _INVARIANT * np.max(self._diagonal, axis=0)] = 0.0
        self._coupling.append(coupling)
        following /= np.where(coupling > 0, coupling, np.inf)
        self._previous = self._current
        self._current = following

    def grow(self, shift: float, tolerance: float, most: int) -> float:
        """Add dimensions until (G + shift)x = b is solved to a tolerance, at most `most`.

        Returns
        -------
        float
            The largest relative residual of a column.
        """
        pivot = np.ones(1)
        coupling = np.zeros(1)
        residual = np.ones(self._current.shape[1])
        for step in count():
            if step == self.n_steps:
                if float(residual.max()) <= tolerance or step >= most:
                    break
                self.step()
            pivot = self._diagonal[step] + shift - coupling**2 / pivot
            coupling = self._coupling[step]
            residual = residual * coupling / pivot  # |βy_k|, from the LDLᵀ factors of T + ν
        return float(residual.max())

    def solutions(self, shifts: FloatArray) -> FloatArray:
        """Return x of (G + ν)x = b for every shift, (d, n_shifts, q)."""
        d, q = self._current.shape
        solutions = np.zeros((d, len(shifts), q))
        for column in range(q):
            values, vectors = self._ritz(column)
            coordinates = vectors @ (vectors[0][:, None] / (values[:, None] + shifts))  # y
            for start, chunk in zip(range(0, self.n_steps, _CHUNK), self._chunks, strict=True):
                part = coordinates[start : start + _CHUNK]
                solutions[:, :, column] += chunk[column, : len(part)].T @ part
        return solutions

    def quadrature(self) -> tuple[FloatArray, FloatArray]:
        """Return nodes θ and weights τ, (q, k), with bᵀf(G)b ≈ Σ τ f(θ).

        This is exact for polynomials f of degree 2k − 1.
        """
        pairs = [self._ritz(column) for column in range(self._current.shape[1])]
        nodes = np.array([values for values, _ in pairs])
        weights = np.array([vectors[0] ** 2 for _, vectors in pairs])
        return nodes, weights

    def _ritz(self, column: int) -> tuple[FloatArray, FloatArray]:
        """Return the eigenvalues of T, clipped at 0, and its eigenvectors."""
        diagonal = np.array(self._diagonal)[:, column]
        coupling = np.array(self._coupling)[:-1, column]
        values, vectors = eigh_tridiagonal(diagonal, coupling)
        return np.maximum(values, 0.0), vectors

    def _store(self) -> None:
        within = self.n_steps % _CHUNK
        d, q = self._current.shape
        if within == 0:
            self._chunks.append(np.empty((q, _CHUNK, d)))
        self._chunks[-1][:, within] = self._current.T

    def _orthogonalise(self, vectors: FloatArray) -> None:
        for start, chunk in zip(
            range(0, self.n_steps + 1, _CHUNK), self._chunks, strict=bool(self._chunks)
        ):
            filled = min(self.n_steps + 1 - start, _CHUNK)
            for column in range(vectors.shape[1]):
                basis = chunk[column, :filled]
                vectors[:, column] -= basis.T @ (basis @ vectors[:, column])
