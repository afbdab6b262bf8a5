"""The observed labels that scores are calibrated against."""

from __future__ import annotations

from dataclasses import dataclass, replace

from unflip._utils.arrays import namespace, take
from unflip._utils.typing import Array


@dataclass(frozen=True, eq=False)
class Observations:
    """Observed labels or votes, with weights.

    Attributes
    ----------
    codes : array of shape (n,)
        Column of the transition matrix for each row: its observed class, or with votes the number
        of the row.
    weights : array of shape (n,)
        Weights of the rows.
    n_effective : float
        Effective sample size.
    priors_known : bool
        Whether the class priors are known independently of the labels. The class proportions of the
        rows then differ from them by chance alone.
    """

    codes: Array
    weights: Array
    n_effective: float
    priors_known: bool = False

    @property
    def shares(self) -> Array:
        """Weights that sum to 1, (n,)."""
        return self.weights / namespace(self.weights).sum(self.weights)

    def subset(self, indices: Array) -> Observations:
        """Return the rows with these indices; the effective sample size remains that of all."""
        return replace(self, codes=take(self.codes, indices), weights=take(self.weights, indices))
