"""Figure 7: the cross-entropy against ρ₊, on synthetic rows."""

from __future__ import annotations

import numpy as np

from unflip._utils.typing import FloatArray, IntArray
from unflip.labels.noise import NoiseModel
from unflip.paper import cross_entropy
from unflip.paper.piece import Piece, Settings, Tables, Task

N_ROWS, N_FEATURES, MEAN_NORM, N_STEPS, PI_NEG = 1000, 1000, 2.0, 50, 0.3
NOISE = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=PI_NEG)


def tasks(settings: Settings) -> list[Task]:
    """Every draw, the theory, and the published curves."""
    others = {"theory": predicted, "published": published}
    return cross_entropy.tasks(settings, one_draw, others)


def one_draw(stream: str, seed: int) -> Tables:
    """Accuracy of every fit to one draw, in the order in which the published experiment draws.

    Training rows with the negatives first, feature by feature; balanced test rows likewise, twice
    as many; then a flip for every negative row and for every positive one.
    """
    generator = np.random.RandomState(seed)
    n_negative = round(PI_NEG * N_ROWS)
    X, y = _mixture(generator, n_negative, N_ROWS - n_negative)
    X_test, y_test = _mixture(generator, N_ROWS, N_ROWS)
    flips = [
        generator.binomial(1, rate, (y == label).sum())
        for label, rate in enumerate((NOISE.eps_neg, NOISE.eps_pos))
    ]
    coef = cross_entropy.descend(X, y, y ^ np.concatenate(flips), NOISE, N_STEPS)
    accuracies = np.mean((X_test @ coef > 0) == y_test[:, None], axis=0)
    return {"draws": cross_entropy.rows_of(accuracies, NOISE, stream=stream, seed=seed)}


def _mixture(
    generator: np.random.RandomState, n_negative: int, n_positive: int
) -> tuple[FloatArray, IntArray]:
    """Rows of both classes, whose means are ∓‖μ‖ along the first axis."""
    y = np.repeat([0, 1], [n_negative, n_positive])
    noise = generator.normal(size=(N_FEATURES, len(y)))
    noise[0] += MEAN_NORM * (2 * y - 1)
    return noise.T, y


def predicted() -> Tables:
    """Accuracy of the penalised minimum."""
    accuracies = cross_entropy.predicted(
        NOISE, N_STEPS, mean_norm=MEAN_NORM, aspect=N_FEATURES / N_ROWS
    )
    return {"theory": cross_entropy.rows_of(accuracies, NOISE)}


def published() -> Tables:
    """Return the published curves."""
    return cross_entropy.published(NOISE, "")


def notes(tables: Tables) -> list[str]:
    """Compare with the published curves and with the theory."""
    return [
        cross_entropy.replay_sentence(tables)
        + " A stream is: training rows, negatives first and feature by feature, with μ along the first axis; "
        "2000 balanced test rows; flips of the negatives, then of the positives. All fits share them.",
        cross_entropy.fresh_sentence(tables),
        *cross_entropy.flip_sentences(tables),
        cross_entropy.theory_sentence(tables),
    ]


PIECE = Piece(
    name="fig7",
    title="Figure 7. Cross-entropy against ρ₊, synthetic",
    paper="n = p = 1000, π₁ = .3, ‖μ‖ = 2, ε₊ = .4, ε₋ = .3, ρ₋ = 0; binary cross-entropy by gradient descent with "
    "learning rate .1, three seeds. As with the squared loss there is an optimal ρ₊, above the unbiased approach.",
    full=Settings(draws=60, seed=7000),
    quick=Settings(draws=12, seed=7000),
    tasks=tasks,
    draw=cross_entropy.draw,
    summary=cross_entropy.summary,
    notes=notes,
    needs_data=(cross_entropy.FOLDER,),
)
