"""The whole story on made-up data: what flips do, what each variant gets, and what the theory said beforehand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from unflip import targets as target_values
from unflip import theory
from unflip._utils.typing import FloatArray, IntArray
from unflip.datasets import make_mixture
from unflip.labels.noise import NoiseModel
from unflip.model.classifier import LPClassifier
from unflip.ridge.spectrum.decomposition import decompose

N_ROWS, N_FEATURES, MEAN_NORM, PRIORS, REG = 1000, 500, 2.0, (0.3, 0.7), 10.0
EPS_POS, EPS_NEG = 0.4, 0.3
EPS_POS_GRID = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
VARIANTS = ("oracle", "naive", "unbiased", "optimized")


@dataclass(frozen=True)
class Comparison:
    """Accuracy on clean labels, predicted and simulated."""

    predicted: float
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
    """Everything that the demonstration shows."""

    curves: dict[str, list[Comparison]]  # by variant, along EPS_POS_GRID, at the known origin
    with_intercept: Comparison  # optimized, origin unknown, at EPS_POS
    scores: dict[str, FloatArray]  # by variant, of new rows, from one draw at EPS_POS
    true: IntArray  # classes of those rows

    def at_headline(self, variant: str) -> Comparison:
        """Return the comparison at EPS_POS."""
        return self.curves[variant][EPS_POS_GRID.index(EPS_POS)]


def run(n_draws: int = 16, seed: int = 0) -> Demo:
    """Simulate the paper's model and predict the same numbers without data."""
    accuracies = np.array([_accuracies_of_draw(seed + draw) for draw in range(n_draws)])
    curves = {
        variant: [
            Comparison.of(predict(variant, eps_pos).accuracy, accuracies[:, i, j])
            for i, eps_pos in enumerate(EPS_POS_GRID)
        ]
        for j, variant in enumerate(VARIANTS)
    }
    found = np.array([_accuracy_with_intercept(seed + draw) for draw in range(n_draws)])
    known = predict("optimized", EPS_POS, fit_intercept=True).best_accuracy
    scores, true = _scores_of_new_rows(seed)
    return Demo(curves, Comparison.of(known, found), scores, true)


def noise_at(variant: str, eps_pos: float) -> NoiseModel:
    """Return the flips that a variant's training labels went through: none for the oracle."""
    if variant == "oracle":
        return NoiseModel.none().with_priors(PRIORS)
    return NoiseModel.binary(eps_pos=eps_pos, eps_neg=EPS_NEG, pi_neg=PRIORS[0])


def targets_at(variant: str, eps_pos: float) -> FloatArray:
    """Return the two values that a variant regresses on."""
    name = "naive" if variant == "oracle" else variant
    return target_values.resolve(name, noise_at(variant, eps_pos))


def predict(variant: str, eps_pos: float, *, fit_intercept: bool = False) -> theory.Prediction:
    """Return what the theory says of a variant."""
    mixture = theory.Mixture(
        mean_norm=MEAN_NORM, aspect=N_FEATURES / N_ROWS, noise=noise_at(variant, eps_pos)
    )
    return theory.predict(
        mixture, targets=targets_at(variant, eps_pos), reg=REG, fit_intercept=fit_intercept
    )


def _training_rows(seed: int) -> tuple[FloatArray, IntArray]:
    return make_mixture(N_ROWS, N_FEATURES, mean_norm=MEAN_NORM, priors=PRIORS, random_state=seed)


def _accuracies_of_draw(seed: int) -> FloatArray:
    """Accuracy of every variant at every flip rate: one eigendecomposition, a column of targets for each."""
    X, y = _training_rows(seed)
    columns = [
        targets_at(variant, eps_pos)[noise_at(variant, eps_pos).flip(y, random_state=seed)]
        for eps_pos in EPS_POS_GRID
        for variant in VARIANTS
    ]
    coefs = decompose(X, fit_intercept=False).path(np.column_stack(columns), [REG]).coef[:, 0, :]
    accuracies = [_accuracy(coef, 0.0) for coef in coefs.T]
    return np.reshape(accuracies, (len(EPS_POS_GRID), len(VARIANTS)))


def _accuracy_with_intercept(seed: int) -> float:
    X, y = _training_rows(seed)
    noise = noise_at("optimized", EPS_POS)
    clf = LPClassifier(noise, targets="optimized", reg=REG).fit(X, noise.flip(y, random_state=seed))
    return _accuracy(clf.coef_[0], float(clf.intercept_[0]))


def _accuracy(coef: FloatArray, intercept: float) -> float:
    """Accuracy on infinitely many new rows: given the fit, their scores are Gaussian."""
    along, std = MEAN_NORM / np.sqrt(N_FEATURES) * coef.sum(), np.linalg.norm(coef)
    return float(
        PRIORS[0] * ndtr((along - intercept) / std) + PRIORS[1] * ndtr((along + intercept) / std)
    )


def _scores_of_new_rows(seed: int) -> tuple[dict[str, FloatArray], IntArray]:
    X, y = _training_rows(seed)
    X_new, y_new = make_mixture(
        5000, N_FEATURES, mean_norm=MEAN_NORM, priors=PRIORS, random_state=seed + 10**6
    )
    scores = {}
    for variant in VARIANTS:
        noise, targets = noise_at(variant, EPS_POS), targets_at(variant, EPS_POS)
        clf = LPClassifier(noise, targets=targets, readout="plain", reg=REG, fit_intercept=False)
        scores[variant] = clf.fit(X, noise.flip(y, random_state=seed)).decision_function(X_new)
    return scores, y_new
