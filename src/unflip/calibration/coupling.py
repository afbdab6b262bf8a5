"""Coupling: how the label of a row moves the leave-one-out scores of the other rows.

Leave-one-out scores are s = Nt for targets t, and the label of row i adds uᵢ to its target. So
score j contains Nⱼᵢuᵢ, although score i contains nothing of it. Class means and covariances of the
scores therefore depend on label i, and they contradict it: the scores of similar rows are moved
towards label i, and score i is not. New rows are not affected. So each row is compared with class
means and covariances from which that part is subtracted.
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

    Duplicates are left out together, as far as `DistinctRows.leaving_share` says.

    Attributes
    ----------
    rows : DuplicateGroups
        The rows.
    own : array of shape (m, r)
        uᵢ, what its labels add to the target of each distinct row.
    sums : callable
        Returns Σⱼ πⱼvⱼNⱼᵢ for each distinct row i, (m, c), from columns v of the members, (n, c);
        πⱼ is the share of row j in the total weight.
    power : callable
        Returns Σⱼ πⱼNⱼᵢ² for each distinct row i, (m,), approximated by πᵢ Σⱼ Nᵢⱼ².
    """

    rows: DuplicateGroups
    own: Array
    sums: Callable[[Array], Array]
    power: Callable[[], Array]

    @property
    def leaving(self) -> Array:
        """Share of the total weight that is left out with each distinct row, (m,)."""
        weights = self.rows.weights
        return weights * self.rows.leaving_share / array_namespace(self.own).sum(weights)


def uncoupled(rows: DuplicateGroups, scores: Array) -> Coupling:
    """Return a coupling of scores (m, r) that accounts for duplicates alone: N is taken to be 0."""
    xp = array_namespace(scores)
    return Coupling(
        rows,
        own=xp.zeros_like(scores),
        sums=lambda columns: xp.zeros_like(rows.average(columns)),
        power=lambda: xp.zeros_like(scores[:, 0]),
    )
