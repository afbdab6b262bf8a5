"""Weighted rows about their mean, as the products that fits need.

A sparse matrix less its mean is dense. For sparse rows the mean is therefore subtracted from
products: (X − 1x̄ᵀ)ᵀB = XᵀB − x̄(1ᵀB), and so on. That loses digits for a column that varies little
about a mean far from 0. It loses none if at most half of the column's entries are stored: its sum
of squares about the mean then is at least half of that about 0 (for equal weights). Columns with
more entries are stored dense, which takes at most twice the memory of their entries, and are
centred like dense rows.

For dense columns, too, the mean is subtracted from products where that saves a copy and the sum of
squares about the mean is not far below that about 0. Rows in double precision may then lose a
digit or two, rows in single precision none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

from unflip._utils.typing import Array


class CentredRows(ABC):
    """Rows xᵢ − x̄ with weights wᵢ, or plain xᵢ if they are not centred.

    Attributes
    ----------
    weights : array of shape (m,)
        Weights of the rows.
    mean : array of shape (p,)
        Weighted mean x̄ of the rows before centring, whether it was subtracted or not.
    """

    weights: Array
    mean: Array

    @property
    @abstractmethod
    def in_memory(self) -> bool:
        """Whether the rows are in the memory of the host."""

    @property
    @abstractmethod
    def is_double(self) -> bool:
        """Whether the rows are in double precision, rather than in single precision."""

    @abstractmethod
    def of_rows(self, rows: slice) -> Self:
        """Return a slice of the rows, about the mean of all."""

    @abstractmethod
    def times(self, columns: Array) -> Array:
        """Multiply the rows by a (p, q) array."""

    @abstractmethod
    def transposed_times(self, columns: Array) -> Array:
        """Multiply the transposed rows by an (m, q) array."""

    @abstractmethod
    def gram(self) -> Array:
        """Return the inner products of all pairs of rows, (m, m), without the weights."""

    @abstractmethod
    def column_powers(self) -> Array:
        """Return the weighted sum of squares of each column, (p,)."""

    @abstractmethod
    def times_and_squared_norms(self, columns: Array) -> tuple[Array, Array]:
        """Multiply the rows by a (p, q) array; also return their squared norms, (m,)."""

    @abstractmethod
    def times_and_sums_of_squares(
        self, columns: Array, axes: Array, weights: Array, variances: Array
    ) -> tuple[Array, Array]:
        """Multiply the rows by a (p, q) array; also return Σⱼ (xᵢᵀaⱼ)²vⱼ, (m, r).

        Parameters
        ----------
        columns : array of shape (p, q)
            Factor of the product.
        axes : array of shape (p, d)
            Axes a.
        weights : array of shape (d, r)
            Weights v.
        variances : array of shape (d,)
            Variances of the rows along the axes, about.
        """
