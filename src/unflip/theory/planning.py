r"""Predicted gain from more rows, cleaner labels, or checking the labels of some rows.

Targets enter the isotropic theory through c²/S (docs/theory/isotropic.md). For the best targets, t
= E[y | label], this **label quality** is Q = Var(E[y | label]), or E[E[y | label]²] at a known
origin. Checked labels have quality Q₁ = Var(y). If a fraction f of the rows is checked, Q = f·Q₁ +
(1 − f)·Q₀, and at the best γ

.. math:: \frac{m}{\sqrt V} = \frac{u}{\sqrt{u + \eta/Q}}, \qquad \frac{\eta}{Q} = \frac{p}{nQ}:

**n rows of quality Q are equivalent to nQ/Q₁ rows with clean labels**, and checking m rows is
equivalent to n(Q(m)/Q(0) − 1) additional rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from unflip import targets as target_values
from unflip._utils.typing import FloatArray
from unflip._utils.validation import as_flag, as_floats, as_number, shown
from unflip.labels.noise import NoiseModel
from unflip.theory.isotropic import TargetMoments, predict_from_moments, target_moments
from unflip.theory.model import Mixture, check_binary_noise

# Fractions of checked rows, or of remaining label noise: the points of a curve, every 2.5%.
_FRACTIONS = np.linspace(0, 1, 41)
# End of the search in `Plan.equivalent_rows`, beyond any data set: more rows count as infinitely
# many.
_MAX_ROWS = 1e12


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Accuracy on clean labels as a function of an effort."""

    effort: FloatArray
    accuracy: FloatArray


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Expected accuracy now and after each kind of effort; made by `plan`.

    Every accuracy is that of the best targets and the best threshold, on clean labels.

    Parameters
    ----------
    n, p : int
        Number of rows and of features.
    mean_norm : float
        ‖μ‖, half the distance between the class means in units of the noise.
    noise : NoiseModel
        Noise rates and class priors.
    reg : float
        Regularization strength γ; ``np.inf`` is the best one in this model.
    fit_intercept : bool
        Whether an intercept is fitted.

    Examples
    --------
    >>> from unflip import NoiseModel
    >>> noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.5)
    >>> Plan(n=1600, p=400, mean_norm=1.2, noise=noise).accuracy_of(rows=[1600, 3200]).round(3)
    array([0.759, 0.805])
    """

    n: int
    p: int
    mean_norm: float
    noise: NoiseModel
    reg: float = np.inf
    fit_intercept: bool = True

    def __post_init__(self) -> None:
        check_binary_noise(self.noise, "Plan")
        as_flag(self.fit_intercept, "fit_intercept")
        for name in ("mean_norm", "reg"):
            object.__setattr__(self, name, as_number(getattr(self, name), name))
        for name in ("n", "p"):
            if not 1 <= as_number(getattr(self, name), name) < np.inf:
                raise ValueError(
                    f"{name} = {shown(getattr(self, name))} must be at least 1 and finite."
                )
        self.accuracy_of()  # validates the rest

    @property
    def accuracy(self) -> float:
        """Accuracy with the present rows and labels."""
        return float(self.accuracy_of())

    @property
    def oracle_accuracy(self) -> float:
        """Accuracy with the same rows and clean labels."""
        return float(self.accuracy_of(checked=self.n))

    @property
    def bayes_accuracy(self) -> float:
        """Accuracy in the limit of infinitely many rows."""
        return float(self._mixture(self.n).bayes_accuracy)

    @property
    def clean_rows(self) -> float:
        """Effective number of clean labels at the best γ, nQ/Q₁."""
        return self.n * self._quality(0) / self._quality(self.n)

    @property
    def more_rows(self) -> Curve:
        """Accuracy against the number of rows, from n to 100 n, at the same noise rates."""
        rows = self.n * np.logspace(0, 2, 41)
        return Curve(effort=rows, accuracy=self.accuracy_of(rows=rows))

    @property
    def checked_rows(self) -> Curve:
        """Accuracy against the number of randomly chosen rows whose labels are corrected."""
        checked = self.n * _FRACTIONS
        accuracies = [float(self.accuracy_of(checked=m)) for m in checked]
        return Curve(effort=checked, accuracy=np.array(accuracies))

    @property
    def cleaner_labels(self) -> Curve:
        """Accuracy against the remaining fraction of the present noise rates, from 1 to 0."""
        remaining = 1 - _FRACTIONS
        accuracies = [
            float(self._accuracy(self._moments(0, self._scaled_noise(share)), self.n))
            for share in remaining
        ]
        return Curve(effort=remaining, accuracy=np.array(accuracies))

    def accuracy_of(self, *, rows: ArrayLike | None = None, checked: float = 0) -> FloatArray:
        """Return the accuracy with another number of rows, or with checked labels.

        Parameters
        ----------
        rows : array-like, optional
            Number of rows, n by default.
        checked : float
            Number of the n rows whose labels are checked and corrected.
        """
        n_checked = as_number(checked, "checked")
        if not 0 <= n_checked <= self.n:
            raise ValueError(f"checked = {shown(checked)} must lie between 0 and n = {self.n}.")
        if rows is not None and n_checked:
            raise ValueError("Give rows or checked, not both: checked counts the n present rows.")
        n_rows = as_floats(self.n if rows is None else rows, "rows")
        for count in n_rows[~((n_rows >= 1) & (n_rows < np.inf))].ravel():
            raise ValueError(f"rows = {count:g} must be at least 1 and finite.")
        return self._accuracy(self._moments(n_checked, self.noise), n_rows)

    def equivalent_rows(self, checked: float) -> float:
        """Return the number of additional noisy rows equivalent to checking some present rows.

        At the best γ it is n(Q(m)/Q(0) − 1); ``np.inf`` if a trillion rows do not reach the same
        accuracy.
        """
        goal = float(self.accuracy_of(checked=checked))
        if np.isinf(self.reg):
            present = self._quality(0)  # 0 if the squared prior of a rare class underflows
            return self.n * (self._quality(checked) / present - 1) if present > 0 else np.inf
        if goal <= self.accuracy:
            return 0.0
        if float(self.accuracy_of(rows=_MAX_ROWS)) <= goal:
            return np.inf

        def gap(log_rows: float) -> float:
            return float(self.accuracy_of(rows=np.exp(log_rows))) - goal

        return float(np.exp(brentq(gap, np.log(self.n), np.log(_MAX_ROWS), xtol=1e-12))) - self.n

    def _mixture(self, rows: ArrayLike) -> Mixture:
        return Mixture(
            mean_norm=self.mean_norm, aspect=self.p / as_floats(rows, "rows"), noise=self.noise
        )

    def _accuracy(self, moments: TargetMoments, rows: ArrayLike) -> FloatArray:
        prediction = predict_from_moments(
            moments, self._mixture(rows), self.reg, fit_intercept=self.fit_intercept
        )
        return prediction.best_accuracy

    def _moments(self, checked: float, noise: NoiseModel) -> TargetMoments:
        """Return (c, S, v) of the best targets: c = S = Q for t = E[y | label]."""
        best = target_moments(
            target_values.optimized(noise), noise, fit_intercept=self.fit_intercept
        )
        share = checked / self.n
        quality = share * best.label_power + (1 - share) * best.alignment
        misfit = quality * max(1 - quality / best.label_power, 0.0)
        return TargetMoments(
            alignment=quality, misfit=misfit, label_power=best.label_power, mean=best.mean
        )

    def _quality(self, checked: float) -> float:
        return self._moments(checked, self.noise).alignment

    def _scaled_noise(self, share: float) -> NoiseModel:
        return NoiseModel.binary(
            eps_pos=share * self.noise.eps_pos,
            eps_neg=share * self.noise.eps_neg,
            pi_neg=float(self.noise.known_priors[0]),
        )


def plan(
    *,
    n: int,
    p: int,
    mean_norm: float,
    noise: NoiseModel,
    reg: float = np.inf,
    fit_intercept: bool = True,
) -> Plan:
    """Predict the gain from more rows, cleaner labels, or checking some rows.

    Parameters are those of `Plan`.

    Examples
    --------
    >>> from unflip import NoiseModel
    >>> noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.5)
    >>> ours = plan(n=1600, p=400, mean_norm=1.2, noise=noise)
    >>> print(f"now {ours.accuracy:.3f}, with clean labels {ours.oracle_accuracy:.3f}")
    now 0.759, with clean labels 0.866
    >>> print(f"{ours.clean_rows:.0f} clean labels would be as accurate")
    145 clean labels would be as accurate
    >>> print(f"checking 100 rows is equivalent to {ours.equivalent_rows(100):.0f} more")
    checking 100 rows is equivalent to 1000 more
    """
    return Plan(n=n, p=p, mean_norm=mean_norm, noise=noise, reg=reg, fit_intercept=fit_intercept)
