"""The sums over rows that every closed-form fit needs, and that add up across chunks and machines."""

from __future__ import annotations

from dataclasses import dataclass

from array_api_compat import array_namespace, device

from unflip._typing import Array
from unflip.centred import DenseRows


@dataclass(frozen=True, eq=False)
class Moments:
    """Class weights, class means and scatter of a set of rows.

    Labels enter the squared loss only through per-class sums, so these serve every target, every penalty and both
    choices of the intercept. The scatter is kept about the mean, not the origin: with features far from 0 the
    difference Gram − n·mean·meanᵀ would lose its digits.

    Attributes
    ----------
    counts : array of shape (k,)
        Total weight of each observed class.
    class_means : array of shape (k, p)
        Mean row of each observed class.
    scatter : array of shape (p, p)
        Σ wᵢ (xᵢ − x̄)(xᵢ − x̄)ᵀ.

    Examples
    --------
    >>> import numpy as np
    >>> X, codes = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]]), np.array([0, 1, 1])
    >>> whole = Moments.from_rows(X, codes, n_classes=2)
    >>> parts = Moments.from_rows(X[:1], codes[:1], 2) + Moments.from_rows(X[1:], codes[1:], 2)
    >>> bool(np.allclose(whole.scatter, parts.scatter)), whole.class_means.tolist()
    (True, [[1.0, 2.0], [4.0, 2.0]])
    """

    counts: Array
    class_means: Array
    scatter: Array

    @classmethod
    def from_rows(cls, X: Array, codes: Array, n_classes: int, sample_weight: Array | None = None) -> Moments:
        """Sum over the rows of one array of any array-API namespace.

        Parameters
        ----------
        X : array of shape (n, p)
            Rows of floats.
        codes : array of int, shape (n,)
            Observed class index of each row.
        n_classes : int
            Number of classes k; a class may be absent from these rows.
        sample_weight : array of shape (n,), optional
            Weight of each row, 1 by default.
        """
        xp = array_namespace(X)
        if X.ndim != 2 or codes.shape != (X.shape[0],):
            raise ValueError(f"X has shape {X.shape} and codes {codes.shape}: give one class index for each row.")
        if X.shape[0] and not 0 <= int(xp.min(codes)) <= int(xp.max(codes)) < n_classes:
            raise ValueError(
                f"codes run from {int(xp.min(codes))} to {int(xp.max(codes))}; they must be 0..{n_classes - 1}."
            )
        classes = xp.arange(n_classes, device=device(X))
        membership = xp.astype(codes[:, None] == classes[None, :], xp.float64)
        if sample_weight is not None:
            membership = membership * sample_weight[:, None]
        rows, scatter, sums = DenseRows.with_sums(X, membership, sample_weight)
        counts = xp.sum(membership, axis=0)
        return cls(counts, rows.mean[None, :] + sums / _or_one(counts)[:, None], scatter)

    @property
    def n(self) -> float:
        """Total weight n."""
        return float(array_namespace(self.counts).sum(self.counts))

    @property
    def mean(self) -> Array:
        """Mean row x̄."""
        return array_namespace(self.counts).matmul(self.counts, self.class_means) / (self.n or 1.0)

    def gram(self, *, centred: bool) -> Array:
        """Σ wᵢ xᵢxᵢᵀ about the mean or about the origin."""
        if centred:
            return self.scatter
        mean = self.mean
        return self.scatter + self.n * mean[:, None] * mean[None, :]

    def cross(self, targets: Array, *, centred: bool) -> Array:
        """Σ wᵢ xᵢ t(ỹᵢ) for a target value, or a row of them, per class; about the mean or about the origin."""
        xp = array_namespace(self.counts)
        origin = self.mean if centred else xp.zeros_like(self.mean)
        return xp.matmul((self.class_means - origin[None, :]).T * self.counts[None, :], targets)

    def __add__(self, other: Moments) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        if self.class_means.shape != other.class_means.shape:
            raise ValueError(
                f"Moments of {self.class_means.shape} and {other.class_means.shape} (classes, features) cannot be "
                "added: chunks must share their columns and their list of classes."
            )
        counts = self.counts + other.counts
        total = _or_one(counts)[:, None]
        class_means = (self.counts[:, None] * self.class_means + other.counts[:, None] * other.class_means) / total
        gap = self.mean - other.mean
        between = (self.n * other.n / (self.n + other.n or 1.0)) * gap[:, None] * gap[None, :]
        return Moments(counts, class_means, self.scatter + other.scatter + between)


def _or_one(counts: Array) -> Array:
    """Replace zeros by ones, to divide by: an absent class has sums of zero, which stay zero."""
    xp = array_namespace(counts)
    return xp.where(counts > 0, counts, xp.ones_like(counts))
