"""Protocol of the paper's experiments on Amazon reviews, as in the published code."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from unflip._utils.typing import FloatArray, IntArray
from unflip.datasets import load_amazon_reviews

FOLDER = "amazon_reviews"
# Settings of the published code.
N_NEGATIVE = 480
N_POSITIVE = 1120
N_ROWS = N_NEGATIVE + N_POSITIVE
PI_NEG = N_NEGATIVE / N_ROWS
REG = 100.0


def standardised(domain: str) -> tuple[FloatArray, IntArray]:
    """Load a domain, with columns standardised over ALL rows of the file, test rows included."""
    X, y = load_amazon_reviews(domain)
    return StandardScaler().fit_transform(X), y


@dataclass(frozen=True, eq=False)
class Sample:
    """Training rows, drawn with replacement, and the rows never drawn.

    Attributes
    ----------
    rows : ndarray of int, shape (1600,)
        Rows of the file.
    flips : ndarray of bool, shape (n_rates, 1600)
        Whether the label of each row is flipped, at each noise rate ε₊.
    unseen : ndarray of int
        Test rows.
    """

    rows: IntArray
    flips: NDArray[np.bool_]
    unseen: IntArray


class Stream:
    """Random draws in the order of the published experiment, by NumPy's legacy generator.

    First 480 negative and 1120 positive rows with replacement; then, for every row, one flip at the
    rate of the negatives and one at the rate of the positives, of which each row uses that of its
    class. A binomial of size one takes one random number at any rate, so streams with different ε₊
    draw the same rows. They are drawn together here.
    """

    def __init__(
        self, y: IntArray, *, eps_pos: tuple[float, ...], eps_neg: float, seed: int
    ) -> None:
        self._y = y
        self._eps_pos = eps_pos
        self._eps_neg = eps_neg
        self._generator = np.random.RandomState(seed)

    def draw(self) -> Sample:
        """Return the next draw."""
        generator = self._generator
        negatives = generator.choice(np.flatnonzero(self._y == 0), N_NEGATIVE)
        positives = generator.choice(np.flatnonzero(self._y == 1), N_POSITIVE)
        rows = np.concatenate([negatives, positives])
        flip_negative = generator.binomial(1, self._eps_neg, N_ROWS)
        state = generator.get_state()
        flips = []
        for eps_pos in self._eps_pos:
            generator.set_state(state)
            flip_positive = generator.binomial(1, eps_pos, N_ROWS)
            flips.append(np.where(self._y[rows] == 0, flip_negative, flip_positive))
        unseen = np.setdiff1d(np.arange(len(self._y)), rows)
        return Sample(rows, np.array(flips, dtype=bool), unseen)
