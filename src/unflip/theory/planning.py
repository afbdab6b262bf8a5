r"""What would help: more rows, cleaner labels, or having some rows checked.

All targets enter the isotropic theory through c²/S (docs/theory/isotropic.md). For the best ones, t
= E[y | what is known of the label], this **label quality** is Q = Var(E[y | label]), or E[E[y |
label]²] at a known origin. A share f of rows that were checked has quality Q₁ = Var(y), so
altogether Q = f·Q₁ + (1 − f)·Q₀, and under the best penalty

.. math:: \frac{m}{\sqrt V} = \frac{u}{\sqrt{u + \eta/Q}}, \qquad \frac{\eta}{Q} = \frac{p}{nQ}:

**n rows of quality Q are worth nQ/Q₁ rows with clean labels**, and checking m rows is worth adding
n(Q(m)/Q(0) − 1).
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

_GROWTH = np.logspace(0, 2, 41)  # rows from n to 100 n
_SHARES = np.linspace(0, 1, 41)  # of rows checked, or of flips that remain
_MOST_ROWS = 1e12


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Accuracy on clean labels against an effort."""

    effort: FloatArray
    accuracy: FloatArray


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What accuracy to expect now, and what each kind of effort would add; made by `plan`.

    Every accuracy is that of the best targets and the best threshold, on clean labels.

    Parameters
    ----------
    n, p : int
        Rows and features.
    mean_norm : float
        ‖μ‖, half the distance between the class means in units of the noise.
    noise : NoiseModel
        Flip rates and class proportions.
    reg : float
        γ; ``np.inf`` is the best penalty in this model.
    fit_intercept : bool
        Whether the origin has to be found.
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
        """Accuracy with the rows and labels as they are."""
        return float(self.accuracy_of())

    @property
    def oracle_accuracy(self) -> float:
        """Accuracy with the same rows if no label were flipped."""
        return float(self.accuracy_of(checked=self.n))

    @property
    def bayes_accuracy(self) -> float:
        """Accuracy that infinitely many rows tend to."""
        return float(self._mixture(self.n).bayes_accuracy)

    @property
    def clean_rows(self) -> float:
        """How many rows with clean labels would do as well as the n noisy ones, at the best penalty: nQ/Q₁."""
        return self.n * self._quality(0) / self._quality(self.n)

    @property
    def more_rows(self) -> Curve:
        """Accuracy against the number of rows, labels as noisy as now."""
        rows = self.n * _GROWTH
        return Curve(effort=rows, accuracy=self.accuracy_of(rows=rows))

    @property
    def checked_rows(self) -> Curve:
        """Accuracy against the number of rows whose labels are checked and put right, picked at random."""
        checked = self.n * _SHARES
        return Curve(
            effort=checked, accuracy=np.array([float(self.accuracy_of(checked=m)) for m in checked])
        )

    @property
    def cleaner_labels(self) -> Curve:
        """Accuracy against the share of today's flip rates that remains, from 1 down to 0."""
        remaining = 1 - _SHARES
        accuracies = [
            float(self._accuracy(self._moments(0, self._scaled_noise(share)), self.n))
            for share in remaining
        ]
        return Curve(effort=remaining, accuracy=np.array(accuracies))

    def accuracy_of(self, *, rows: ArrayLike | None = None, checked: float = 0) -> FloatArray:
        """Accuracy with another number of rows, or with some of them checked.

        Parameters
        ----------
        rows : array-like, optional
            Number of rows, n by default.
        checked : float
            How many of the n rows have their labels checked and put right.
        """
        n_checked = as_number(checked, "checked")
        if not 0 <= n_checked <= self.n:
            raise ValueError(f"checked = {shown(checked)} must lie between 0 and n = {self.n}.")
        if rows is not None and n_checked:
            raise ValueError("Give rows or checked, not both: checks are of the n present rows.")
        n_rows = as_floats(self.n if rows is None else rows, "rows")
        for count in n_rows[~((n_rows >= 1) & (n_rows < np.inf))].ravel():
            raise ValueError(f"rows = {count:g} must be at least 1 and finite.")
        return self._accuracy(self._moments(n_checked, self.noise), n_rows)

    def worth_in_rows(self, checked: float) -> float:
        """How many further noisy rows would help as much as checking that many of the present ones.

        At the best penalty it is n(Q(m)/Q(0) − 1); ``np.inf`` where a trillion rows do not reach
        the same accuracy.
        """
        goal = float(self.accuracy_of(checked=checked))
        if np.isinf(self.reg):
            present = self._quality(0)  # 0 where one class is so rare that its square vanishes
            return self.n * (self._quality(checked) / present - 1) if present > 0 else np.inf
        if goal <= self.accuracy:
            return 0.0
        if float(self.accuracy_of(rows=_MOST_ROWS)) <= goal:
            return np.inf

        def gap(log_rows: float) -> float:
            return float(self.accuracy_of(rows=np.exp(log_rows))) - goal

        return float(np.exp(brentq(gap, np.log(self.n), np.log(_MOST_ROWS), xtol=1e-12))) - self.n

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
        """(c, S, v) of the best targets: c = S = Q for t = E[y | what is known]."""
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
    """Plan the next effort: more rows, cleaner labels, or checking some rows.

    Parameters are those of `Plan`.

    Examples
    --------
    >>> from unflip import NoiseModel
    >>> noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.5)
    >>> ours = plan(n=1600, p=400, mean_norm=1.2, noise=noise)
    >>> print(f"now {ours.accuracy:.3f}, all labels right {ours.oracle_accuracy:.3f}, limit {ours.bayes_accuracy:.3f}")
    now 0.759, all labels right 0.866, limit 0.885
    >>> print(f"as good as {ours.clean_rows:.0f} clean rows; checking 100 is worth {ours.worth_in_rows(100):.0f} more")
    as good as 145 clean rows; checking 100 is worth 1000 more
    """
    return Plan(n=n, p=p, mean_norm=mean_norm, noise=noise, reg=reg, fit_intercept=fit_intercept)
