"""The decision rule: from scores to decision values, for given class proportions and costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from unflip._utils.arrays import expit, like, softmax
from unflip._utils.typing import Array, FloatArray
from unflip._utils.validation import as_floats
from unflip.labels.noise import NoiseModel, checked_proportions


@dataclass(frozen=True, eq=False)
class Rule:
    """Class proportions of the rows to predict, and costs of wrong predictions.

    Attributes
    ----------
    priors : ndarray of shape (k,)
        Class proportions.
    costs : ndarray of shape (k, k) or None
        Cost of each prediction, row = true class, column = predicted; None: all errors cost the
        same.
    """

    priors: FloatArray
    costs: FloatArray | None

    @classmethod
    def of(
        cls, noise: NoiseModel, deployment_priors: ArrayLike | str | None, costs: ArrayLike | None
    ) -> Rule:
        """Validate the parameters of `LPClassifier`.

        Parameters
        ----------
        noise : NoiseModel
            Noise with the priors of the training rows, the default for the rows to predict.
        deployment_priors : array-like of shape (k,), "balanced" or None
            Class proportions of the rows to predict.
        costs : array-like of shape (k, k) or None
            Cost of each prediction; None: all errors cost the same.
        """
        k = noise.n_classes
        if deployment_priors is None:
            priors = noise.known_priors
        elif isinstance(deployment_priors, str):
            if deployment_priors != "balanced":
                raise ValueError(
                    f"deployment_priors={deployment_priors!r} is not known: use 'balanced' or "
                    "proportions."
                )
            priors = np.full(k, 1 / k)
        else:
            priors = checked_proportions(deployment_priors, k, "deployment_priors")
        return cls(priors, None if costs is None else _checked_costs(costs, k))

    @property
    def log_cost_ratio(self) -> float:
        """Shift of the log-odds of two classes that accounts for the costs."""
        if self.costs is None:
            return 0.0
        regret = self.costs - np.diag(self.costs)[:, None]  # relative to the correct prediction
        return float(np.log(regret[1, 0] / regret[0, 1]))


@dataclass(frozen=True, eq=False)
class Decision:
    """Decision values, which are linear in the fitted scores, and predictions from them.

    Two classes have one value, positive for the second class. More classes have one value each. The
    class with the largest value is predicted, or with costs the class with the lowest expected
    cost.

    Attributes
    ----------
    slopes : ndarray of shape (n_scores, d)
        Coefficients of the decision values in the scores.
    intercepts : ndarray of shape (d,)
        Intercepts of the decision values.
    slope : float
        Log-odds of the true class per unit of the decision values.
    costs : ndarray of shape (k, k) or None
        Costs, for more than two classes.
    shift : float
        Part of the decision value of two classes that comes from the costs, not from log-odds.
    """

    slopes: FloatArray
    intercepts: FloatArray
    slope: float = 1.0
    costs: FloatArray | None = None
    shift: float = 0.0

    @classmethod
    def by_log_odds(cls, slopes: FloatArray, intercepts: FloatArray, rule: Rule) -> Decision:
        """Return the rule for log-odds against the first class, (n_scores, k) and (k,)."""
        if len(intercepts) == 2:
            shift = rule.log_cost_ratio
            return cls(slopes[:, 1:], intercepts[1:] + shift, shift=shift)
        # Relative to their mean, so that no class is special.
        return cls(
            slopes - slopes.mean(axis=1, keepdims=True),
            intercepts - intercepts.mean(),
            costs=rule.costs,
        )

    def values(self, scores: Array) -> Array:
        """Return decision values, (n, d)."""
        return scores @ like(self.slopes, scores) + like(self.intercepts, scores)

    def classes(self, values: Array) -> Array:
        """Return the index of the predicted class for each row of decision values."""
        xp = array_namespace(values)
        if values.shape[1] == 1:
            return xp.astype(values[:, 0] > 0, xp.int64)
        if self.costs is None:
            return xp.argmax(values, axis=1)
        return xp.argmin(self.probabilities(values) @ like(self.costs, values), axis=1)

    def probabilities(self, values: Array) -> Array:
        """Return P(true class), (n, k), for decision values (n, d)."""
        log_odds = self.slope * (values - self.shift)
        if values.shape[1] == 1:
            return array_namespace(values).concat([expit(-log_odds), expit(log_odds)], axis=1)
        return softmax(log_odds)


def _checked_costs(costs: ArrayLike, k: int) -> FloatArray:
    table = as_floats(costs, "costs")
    if table.shape != (k, k):
        raise ValueError(
            f"costs has shape {table.shape}: give {k}×{k} finite numbers, row = true class."
        )
    for a, b in np.argwhere(~np.isfinite(table)):
        raise ValueError(f"costs[{a}, {b}] = {table[a, b]:g} is not finite: give finite numbers.")
    for a, b in np.argwhere((table <= np.diag(table)[:, None]) & ~np.eye(k, dtype=bool)):
        raise ValueError(
            f"costs[{a}, {b}] = {table[a, b]:g} must exceed costs[{a}, {a}] = {table[a, a]:g}: a "
            "wrong prediction must cost more than the correct one."
        )
    return table
