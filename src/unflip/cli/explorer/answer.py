"""Numbers and curves of `unflip.theory` that the page shows for one setting of the sliders."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unflip import targets as target_values
from unflip import theory
from unflip._utils.typing import FloatArray
from unflip.labels.noise import NoiseModel

#: Kinds of targets; the last takes ρ₊ − ρ₋ from a slider.
CHOICES = ("naive", "unbiased", "optimized", "LPC")
#: ρ₊ − ρ₋ of the accuracy curve. The accuracy depends on this difference only, as it fixes t₊/t₋.
RHO_GRID = np.linspace(-4.0, 4.0, 121)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Values of the sliders.

    Attributes
    ----------
    n, p : int
        Number of rows and of features.
    mean_norm : float
        ‖μ‖.
    eps_pos, eps_neg : float
        Noise rates.
    pi_neg : float
        Prior of the negative class.
    reg : float
        Regularization strength γ.
    targets : {"naive", "unbiased", "optimized", "LPC"}
        Kind of targets; "LPC" takes `rho`.
    rho : float
        ρ₊ − ρ₋ of "LPC".
    fit_intercept : bool
        Whether an intercept is fitted.
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
        """The mixture with these values."""
        noise = NoiseModel.binary(eps_pos=self.eps_pos, eps_neg=self.eps_neg, pi_neg=self.pi_neg)
        return theory.Mixture(mean_norm=self.mean_norm, aspect=self.p / self.n, noise=noise)

    def values(self, choice: str) -> FloatArray:
        """Return (t_neg, t_pos) of a kind of targets."""
        if choice == "LPC":
            return _from_difference(self.rho)
        return target_values.resolve(choice, self.mixture.noise)

    def predict(self, values: FloatArray) -> theory.Prediction:
        """Return the prediction for these targets."""
        return theory.predict(
            self.mixture, targets=values, reg=self.reg, fit_intercept=self.fit_intercept
        )


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One kind of targets: their values and predicted accuracy."""

    name: str
    targets: tuple[float, float]
    accuracy: float  # threshold midway between the class means
    best_accuracy: float  # best threshold for the class priors


@dataclass(frozen=True, kw_only=True)
class Answer:
    """All numbers that the page shows for a setting.

    Attributes
    ----------
    setting : Setting
        Values of the sliders.
    variants : dict of str to Variant
        By name, in the order of `CHOICES`.
    oracle : float
        Accuracy of the same fit with clean labels.
    bayes : float
        Accuracy in the limit of infinitely many rows.
    scores : ndarray of shape (m,)
        Grid of scores for the densities.
    densities : (ndarray, ndarray)
        Score densities of negatives and positives, each times the prior of its class.
    threshold : float
        Midpoint of the class means.
    rho_accuracy : ndarray
        Accuracy along `RHO_GRID`.
    marked : dict of str to float
        ρ₊ − ρ₋ of each kind of targets.
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
        """The selected targets."""
        return self.variants[self.setting.targets]


def answer(setting: Setting) -> Answer:
    """Return all numbers for a setting; raises ValueError if the setting is not valid."""
    if setting.targets not in CHOICES:
        raise ValueError(
            f"targets={setting.targets!r} is not a valid value: use "
            f"{', '.join(map(repr, CHOICES))}."
        )
    mixture = setting.mixture
    chosen = setting.predict(setting.values(setting.targets))
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
    prediction = setting.predict(values)
    return Variant(
        name=name,
        targets=(float(values[0]), float(values[1])),
        accuracy=float(prediction.accuracy),
        best_accuracy=float(prediction.best_accuracy),
    )


def _from_difference(rho: float) -> FloatArray:
    """Return targets with ρ₊ − ρ₋ = ρ; ρ₊ + ρ₋ = 0 sets their scale."""
    return target_values.from_rho(rho / 2, -rho / 2)


def _difference(values: FloatArray) -> float:
    rho_pos, rho_neg = target_values.to_rho(values)
    return rho_pos - rho_neg


def _densities(prediction: theory.Prediction) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
    """Return a grid of scores and the Gaussian densities, each times the prior of its class."""
    std = float(np.sqrt(prediction.variance))
    means = [float(mean) for mean in prediction.means]
    margin = 3.6 * std  # the densities vanish beyond
    scores = np.linspace(min(means) - margin, max(means) + margin, 161)
    negative, positive = (
        prior * np.exp(-(((scores - mean) / std) ** 2) / 2) / (std * np.sqrt(2 * np.pi))
        for prior, mean in zip(prediction.priors, means, strict=True)
    )
    return scores, (negative, positive)
