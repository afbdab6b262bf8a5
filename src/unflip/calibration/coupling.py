"""How the label of a row moves the leave-one-out scores of the other rows.

Leave-one-out scores are s = Nt for targets t, and row i's own label adds uᵢ to its target. So score
j contains Nⱼᵢuᵢ, although score i contains nothing of it. What is fitted to the scores of all rows
(class means, a covariance) therefore depends on label i, and in a way that contradicts it: the
scores of rows that resemble row i are moved towards its label, and its own is not. New rows are not
affected. So each row is compared with class means and covariances from which that part is
subtracted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from array_api_compat import array_namespace

from unflip._utils.typing import Array


class DuplicateGroups(Protocol):
    """Distinct rows and their duplicates, the members; such as `DistinctRows`."""

    @property
    def weights(self) -> Array:
        """Total weight of each distinct row, (m,)."""

    @property
    def leaving_share(self) -> Array:
        """Share of that weight that is left out together, (m,)."""

    def of_members(self, values: Array) -> Array:
        """Return the values of distinct rows for each of their duplicates, (n, ...)."""

    def average(self, values: Array) -> Array:
        """Return the weighted mean over the duplicates of each distinct row, (m, ...)."""


@dataclass(frozen=True, eq=False)
class Coupling:
    """What the labels of each of m distinct rows add to sums over the scores of the others.

    Copies of a row leave together, as far as `DistinctRows.leaving_share` has it.

    Attributes
    ----------
    rows : DuplicateGroups
        The rows.
    own : array of shape (m, r)
        uᵢ, what its labels add to the target of each distinct row.
    sums : callable
        Σⱼ πⱼvⱼNⱼᵢ for each distinct row i, (m, c), of columns v of the members, (n, c); πⱼ is the
        share of row j in the weight.
    power : callable
        Returns Σⱼ πⱼNⱼᵢ² for each distinct row i, (m,), for which πᵢ Σⱼ Nᵢⱼ² is taken.
    """

    rows: DuplicateGroups
    own: Array
    sums: Callable[[Array], Array]
    power: Callable[[], Array]

    @property
    def leaving(self) -> Array:
        """Share of the weight that leaves with each distinct row, (m,)."""
        return (
            self.rows.weights
            * self.rows.leaving_share
            / array_namespace(self.own).sum(self.rows.weights)
        )


def uncoupled(rows: DuplicateGroups, scores: Array) -> Coupling:
    """Return the coupling of scores of the distinct rows, (m, r), of which nothing is known but the copies of rows."""
    xp = array_namespace(scores)
    return Coupling(
        rows,
        own=xp.zeros_like(scores),
        sums=lambda columns: xp.zeros_like(rows.average(columns)),
        power=lambda: xp.zeros_like(scores[:, 0]),
    )
