"""Simulation of the paper's model for `unflip demo`, beside the theory's predictions."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from unflip import targets as target_values
from unflip import theory
from unflip._utils.typing import FloatArray, IntArray
from unflip.datasets import make_mixture
from unflip.estimation.noise_estimator import AssumedNoiseWarning
from unflip.labels.noise import NoiseModel
from unflip.model.classifier import LPClassifier
from unflip.ridge.spectrum.decomposition import decompose


class Setup(NamedTuple):
    """Settings of the demonstration."""

    n_rows: int = 1000
    n_features: int = 500
    mean_norm: float = 2.0
    priors: tuple[float, float] = (0.3, 0.7)
    reg: float = 10.0
    eps_pos: float = 0.4
    eps_neg: float = 0.3
    eps_pos_grid: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)


SETUP = Setup()
VARIANTS = ("oracle", "naive", "unbiased", "optimized")


@dataclass(frozen=True)
class Comparison:
    """Accuracy on clean labels, predicted and simulated."""

    predicted: float  # NaN if there is no prediction
    simulated: float
    standard_error: float

    @classmethod
    def of(cls, predicted: FloatArray, draws: FloatArray) -> Comparison:
        """Compare a prediction with the accuracies of several draws."""
        return cls(
            float(predicted), float(draws.mean()), float(draws.std(ddof=1) / np.sqrt(len(draws)))
        )


@dataclass(frozen=True)
class Demo:
    """Results of the demonstration."""

    curves: dict[str, list[Comparison]]  # by variant, along eps_pos_grid, without intercept
    with_intercept: Comparison  # optimized targets at eps_pos
    default: Comparison  # LPClassifier() at eps_pos, not predicted by the theory
    scores: dict[str, FloatArray]  # by variant, of new rows, from one draw at eps_pos
    true: IntArray  # classes of those rows

    def at_headline(self, variant: str) -> Comparison:
        """Return the comparison at eps_pos."""
        return self.curves[variant][SETUP.eps_pos_grid.index(SETUP.eps_pos)]


def run(n_draws: int = 16, seed: int = 0) -> Demo:
    """Simulate the paper's model, and predict the same accuracies without data."""
    accuracies = np.array([_accuracies_of_draw(seed + draw) for draw in range(n_draws)])
    curves = {
        variant: [
            Comparison.of(predict(variant, eps_pos).accuracy, accuracies[:, i, j])
            for i, eps_pos in enumerate(SETUP.eps_pos_grid)
        ]
        for j, variant in enumerate(VARIANTS)
    }
    optimized = LPClassifier(
        noise_at("optimized", SETUP.eps_pos), targets="optimized", reg=SETUP.reg
    )
    simulated, by_default = np.transpose(
        [
            [_accuracy_of_fit(clf, seed + draw) for clf in (optimized, LPClassifier())]
            for draw in range(n_draws)
        ]
    )
    predicted = predict("optimized", SETUP.eps_pos, fit_intercept=True).best_accuracy
    scores, true = _scores_of_new_rows(seed)
    return Demo(
        curves=curves,
        with_intercept=Comparison.of(predicted, simulated),
        default=Comparison.of(np.array(np.nan), by_default),
        scores=scores,
        true=true,
    )


def noise_at(variant: str, eps_pos: float) -> NoiseModel:
    """Return the noise of a variant's training labels: none for the oracle."""
    if variant == "oracle":
        return NoiseModel.none().with_priors(SETUP.priors)
    return NoiseModel.binary(eps_pos=eps_pos, eps_neg=SETUP.eps_neg, pi_neg=SETUP.priors[0])


def targets_at(variant: str, eps_pos: float) -> FloatArray:
    """Return the regression targets of a variant."""
    name = "naive" if variant == "oracle" else variant
    return target_values.resolve(name, noise_at(variant, eps_pos))


def predict(variant: str, eps_pos: float, *, fit_intercept: bool = False) -> theory.Prediction:
    """Return the theory's prediction for a variant."""
    mixture = theory.Mixture(
        mean_norm=SETUP.mean_norm,
        aspect=SETUP.n_features / SETUP.n_rows,
        noise=noise_at(variant, eps_pos),
    )
    return theory.predict(
        mixture, targets=targets_at(variant, eps_pos), reg=SETUP.reg, fit_intercept=fit_intercept
    )


def _draw_rows(n: int, seed: int) -> tuple[FloatArray, IntArray]:
    return make_mixture(
        n,
        SETUP.n_features,
        mean_norm=SETUP.mean_norm,
        priors=SETUP.priors,
        random_state=seed,
    )


def _accuracies_of_draw(seed: int) -> FloatArray:
    """Return the accuracy of every variant at every noise rate, from one eigendecomposition."""
    X, y = _draw_rows(SETUP.n_rows, seed)
    columns = [
        targets_at(variant, eps_pos)[noise_at(variant, eps_pos).flip(y, random_state=seed)]
        for eps_pos in SETUP.eps_pos_grid
        for variant in VARIANTS
    ]
    spectrum = decompose(X, fit_intercept=False)
    coefs = spectrum.path(np.column_stack(columns), [SETUP.reg]).coef[:, 0, :]
    accuracies = [_accuracy(coef, 0.0) for coef in coefs.T]
    return np.reshape(accuracies, (len(SETUP.eps_pos_grid), len(VARIANTS)))


def _accuracy_of_fit(clf: LPClassifier, seed: int) -> float:
    X, y = _draw_rows(SETUP.n_rows, seed)
    noise = noise_at("optimized", SETUP.eps_pos)
    with warnings.catch_warnings():
        # The demonstration compares accuracies, whatever the source of the noise rates.
        warnings.simplefilter("ignore", AssumedNoiseWarning)
        clf.fit(X, noise.flip(y, random_state=seed))
    return _accuracy(clf.coef_[0], float(clf.intercept_[0]))


def _accuracy(coef: FloatArray, intercept: float) -> float:
    """Return the accuracy on infinitely many new rows, whose scores are Gaussian given the fit."""
    along = SETUP.mean_norm / np.sqrt(SETUP.n_features) * coef.sum()
    std = np.linalg.norm(coef)
    pi_neg, pi_pos = SETUP.priors
    return float(
        pi_neg * ndtr((along - intercept) / std) + pi_pos * ndtr((along + intercept) / std)
    )


def _scores_of_new_rows(seed: int) -> tuple[dict[str, FloatArray], IntArray]:
    X, y = _draw_rows(SETUP.n_rows, seed)
    X_new, y_new = _draw_rows(5000, seed + 10**6)
    scores = {}
    for variant in VARIANTS:
        noise = noise_at(variant, SETUP.eps_pos)
        clf = LPClassifier(
            noise,
            targets=targets_at(variant, SETUP.eps_pos),
            readout="plain",
            reg=SETUP.reg,
            fit_intercept=False,
        )
        scores[variant] = clf.fit(X, noise.flip(y, random_state=seed)).decision_function(X_new)
    return scores, y_new
