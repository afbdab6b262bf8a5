"""What the page shows for one setting of its sliders: numbers and curves of `unflip.theory`, nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unflip import targets as target_values
from unflip import theory
from unflip._utils.typing import FloatArray
from unflip.labels.noise import NoiseModel

#: Targets to choose from; the last takes ρ₊ − ρ₋ from a slider.
CHOICES = ("naive", "unbiased", "optimized", "LPC")
#: Values of ρ₊ − ρ₋ that the curve is drawn over. Accuracy depends on the difference alone: it fixes t₊/t₋.
RHO_GRID = np.linspace(-4.0, 4.0, 121)
_GRID_POINTS = 161
_SHOWN_DEVIATIONS = 3.6


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Where the sliders stand.

    Attributes
    ----------
    n, p : int
        Rows and features.
    mean_norm : float
        ‖μ‖.
    eps_pos, eps_neg : float
        Flip rates.
    pi_neg : float
        Share of true negatives.
    reg : float
        γ.
    targets : {"naive", "unbiased", "optimized", "LPC"}
        What is fitted; "LPC" takes `rho`.
    rho : float
        ρ₊ − ρ₋ of "LPC".
    fit_intercept : bool
        Whether the origin has to be found.
    """

    n: int = 1000
    p: int = 500
    mean_norm: float = 2.0
    eps_pos: float = 0.4
    eps_neg: float = 0.3
    pi_neg: float = 0.3
    reg: float = 10.0
    targets: str = "optimized"
    rho: float = 1.0
    fit_intercept: bool = False

    @cached_property
    def mixture(self) -> theory.Mixture:
        """The model behind the rows."""
        noise = NoiseModel.binary(eps_pos=self.eps_pos, eps_neg=self.eps_neg, pi_neg=self.pi_neg)
        return theory.Mixture(mean_norm=self.mean_norm, aspect=self.p / self.n, noise=noise)

    def values(self, choice: str) -> FloatArray:
        """Return (t_neg, t_pos) of a choice of targets."""
        return (
            _from_difference(self.rho)
            if choice == "LPC"
            else target_values.resolve(choice, self.mixture.noise)
        )

    def predict(self, values: FloatArray) -> theory.Prediction:
        """Return what the theory says of these targets."""
        return theory.predict(
            self.mixture, targets=values, reg=self.reg, fit_intercept=self.fit_intercept
        )


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One choice of targets: what it fits and what to expect of it."""

    name: str
    targets: tuple[float, float]
    accuracy: float  # threshold half-way between the class means
    best_accuracy: float  # best threshold for the class proportions


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Everything that is drawn.

    Attributes
    ----------
    setting : Setting
        What it answers.
    variants : dict of str to Variant
        By name, in the order of `CHOICES`.
    oracle : float
        Accuracy of the same fit if no label were flipped.
    bayes : float
        Accuracy that infinitely many rows tend to.
    scores : ndarray of shape (m,)
        Scores of new rows over which the densities are drawn.
    densities : (ndarray, ndarray)
        Of negatives and of positives at these scores, each times the share of its class.
    threshold : float
        Half-way between the class means.
    rho_accuracy : ndarray
        Accuracy along `RHO_GRID`.
    marked : dict of str to float
        ρ₊ − ρ₋ of each choice.
    """

    setting: Setting
    variants: dict[str, Variant]
    oracle: float
    bayes: float
    scores: FloatArray
    densities: tuple[FloatArray, FloatArray]
    threshold: float
    rho_accuracy: FloatArray
    marked: dict[str, float]

    @property
    def chosen(self) -> Variant:
        """The targets that are selected."""
        return self.variants[self.setting.targets]


def answer(setting: Setting) -> Answer:
    """Ask the theory everything that the page shows; raises its ValueError where the setting makes no model."""
    if setting.targets not in CHOICES:
        raise ValueError(
            f"targets={setting.targets!r} is not known: use {', '.join(map(repr, CHOICES))}."
        )
    mixture, chosen = setting.mixture, setting.predict(setting.values(setting.targets))
    clean = theory.predict(
        mixture.clean, targets="naive", reg=setting.reg, fit_intercept=setting.fit_intercept
    )
    scores, densities = _densities(chosen)
    return Answer(
        setting=setting,
        variants={name: _variant(setting, name) for name in CHOICES},
        oracle=float(clean.accuracy),
        bayes=float(mixture.bayes_accuracy),
        scores=scores,
        densities=densities,
        threshold=float(sum(chosen.means)) / 2,
        rho_accuracy=np.array(
            [setting.predict(_from_difference(rho)).accuracy for rho in RHO_GRID]
        ),
        marked={name: _difference(setting.values(name)) for name in CHOICES},
    )


def _variant(setting: Setting, name: str) -> Variant:
    values = setting.values(name)
    found = setting.predict(values)
    t_neg, t_pos = map(float, values)
    accuracy, best = float(found.accuracy), float(found.best_accuracy)
    return Variant(name=name, targets=(t_neg, t_pos), accuracy=accuracy, best_accuracy=best)


def _from_difference(rho: float) -> FloatArray:
    """Return targets of ρ₊ − ρ₋ = ρ, of which ρ₊ + ρ₋ = 0 sets the scale."""
    return target_values.from_rho(rho / 2, -rho / 2)


def _difference(values: FloatArray) -> float:
    rho_pos, rho_neg = target_values.to_rho(values)
    return rho_pos - rho_neg


def _densities(found: theory.Prediction) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
    """Return scores and the Gaussian densities there, each times the share of its class."""
    std = float(np.sqrt(found.variance))
    middles = [float(mean) for mean in found.means]
    margin = _SHOWN_DEVIATIONS * std
    scores = np.linspace(min(middles) - margin, max(middles) + margin, _GRID_POINTS)
    low, high = (
        share * np.exp(-(((scores - middle) / std) ** 2) / 2) / (std * np.sqrt(2 * np.pi))
        for share, middle in zip(found.priors, middles, strict=True)
    )
    return scores, (low, high)
