"""Figure 7: cross-entropy against ρ₊, on synthetic data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unflip._utils.typing import FloatArray, IntArray
from unflip.cli.paper import cross_entropy
from unflip.cli.paper.piece import Piece, Settings, Tables, Task
from unflip.labels.noise import NoiseModel


class Setup(NamedTuple):
    """The paper's settings of Figure 7."""

    n_rows: int = 1000
    n_features: int = 1000
    mean_norm: float = 2.0
    n_steps: int = 50
    noise: NoiseModel = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)


SETUP = Setup()


def tasks(settings: Settings) -> list[Task]:
    """Return every draw, the theory, and the published curves."""
    return cross_entropy.tasks(settings, one_draw, {"theory": predicted, "published": published})


def one_draw(stream: str, seed: int) -> Tables:
    """Return the accuracy of every fit to one draw, with the published order of random numbers.

    First the training rows, negatives first, feature by feature; then the balanced test rows in the
    same way, twice as many; then the label noise of the negatives and of the positives.
    """
    generator = np.random.RandomState(seed)
    n_negative = round(SETUP.noise.known_priors[0] * SETUP.n_rows)
    X, y = _mixture(generator, n_negative, SETUP.n_rows - n_negative)
    X_test, y_test = _mixture(generator, SETUP.n_rows, SETUP.n_rows)
    flips = [
        generator.binomial(1, rate, (y == label).sum())
        for label, rate in enumerate((SETUP.noise.eps_neg, SETUP.noise.eps_pos))
    ]
    coef = cross_entropy.descend(X, y, y ^ np.concatenate(flips), SETUP.noise, SETUP.n_steps)
    accuracies = np.mean((X_test @ coef > 0) == y_test[:, None], axis=0)
    return {"draws": cross_entropy.rows_of(accuracies, SETUP.noise, stream=stream, seed=seed)}


def _mixture(
    generator: np.random.RandomState, n_negative: int, n_positive: int
) -> tuple[FloatArray, IntArray]:
    """Return rows of both classes, whose means are ∓‖μ‖ along the first axis."""
    y = np.repeat([0, 1], [n_negative, n_positive])
    noise = generator.normal(size=(SETUP.n_features, len(y)))
    noise[0] += SETUP.mean_norm * (2 * y - 1)
    return noise.T, y


def predicted() -> Tables:
    """Return the accuracy of the regularized minimum by the theory."""
    accuracies = cross_entropy.predicted(
        SETUP.noise,
        SETUP.n_steps,
        mean_norm=SETUP.mean_norm,
        aspect=SETUP.n_features / SETUP.n_rows,
    )
    return {"theory": cross_entropy.rows_of(accuracies, SETUP.noise)}


def published() -> Tables:
    """Return the published curves."""
    return cross_entropy.published(SETUP.noise, "")


def notes(tables: Tables) -> list[str]:
    """Return sentences that compare with the published curves and with the theory."""
    return [
        cross_entropy.replay_sentence(tables)
        + " Order of the random numbers: training rows, negatives first and feature by feature, "
        "with μ along the first axis; 2000 balanced test rows; label noise of the negatives, then "
        "of the positives. All fits share them.",
        cross_entropy.fresh_sentence(tables),
        *cross_entropy.inversion_sentences(tables),
        cross_entropy.theory_sentence(tables),
    ]


PIECE = Piece(
    name="fig7",
    title="Figure 7. Cross-entropy against ρ₊, synthetic",
    paper="n = p = 1000, π₁ = .3, ‖μ‖ = 2, ε₊ = .4, ε₋ = .3, ρ₋ = 0; binary cross-entropy by "
    "gradient descent with learning rate .1, three seeds. As with the squared loss there is an "
    "optimal ρ₊, above the unbiased approach.",
    full=Settings(draws=60, seed=7000),
    quick=Settings(draws=12, seed=7000),
    tasks=tasks,
    draw=cross_entropy.draw,
    summary=cross_entropy.summary,
    notes=notes,
    needs_data=(cross_entropy.FOLDER,),
)
