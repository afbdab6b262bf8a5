"""What to predict, given probabilities: for other class proportions than those of the training rows, and for costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from unflip._typing import FloatArray
from unflip._validation import as_floats
from unflip.noise import NoiseModel


@dataclass(frozen=True, eq=False)
class Rule:
    """Proportions of the rows to predict, and the cost of predicting each class where another is true."""

    priors: FloatArray  # (k,)
    costs: FloatArray  # (k, k), row = true class, column = predicted

    @classmethod
    def of(cls, noise: NoiseModel, deployment_priors: ArrayLike | str | None, costs: ArrayLike | None) -> Rule:
        """Read what `LPClassifier` was given.

        Parameters
        ----------
        noise : NoiseModel
            With the priors of the training rows, which are those of new rows unless others are given.
        deployment_priors : array-like of shape (k,), "balanced" or None
            Class proportions of the rows to predict.
        costs : array-like of shape (k, k) or None
            Cost of each prediction; None: 1 for every wrong one.
        """
        k = noise.n_classes
        if deployment_priors is None:
            priors = noise.known_priors
        elif isinstance(deployment_priors, str):
            if deployment_priors != "balanced":
                raise ValueError(
                    f"deployment_priors={deployment_priors!r} is not known: use 'balanced' or proportions."
                )
            priors = np.full(k, 1 / k)
        else:
            priors = noise.with_priors(deployment_priors).known_priors
        return cls(priors, 1 - np.eye(k) if costs is None else _checked_costs(costs, k))

    @property
    def log_cost_ratio(self) -> float:
        """How far costs move the log-odds of two classes at which the second is predicted."""
        regret = self.costs - np.diag(self.costs)[:, None]  # beyond the right prediction's
        return float(np.log(regret[1, 0] / regret[0, 1]))


def _checked_costs(costs: ArrayLike, k: int) -> FloatArray:
    table = as_floats(costs, "costs")
    if table.shape != (k, k) or not np.isfinite(table).all():
        raise ValueError(f"costs has shape {table.shape}: give {k}×{k} finite numbers, row = true class.")
    for a, b in np.argwhere((table <= np.diag(table)[:, None]) & ~np.eye(k, dtype=bool)):
        raise ValueError(
            f"costs[{a}, {b}] = {table[a, b]:g} must exceed costs[{a}, {a}] = {table[a, a]:g}: a wrong prediction has "
            "to cost more than the right one."
        )
    return table
