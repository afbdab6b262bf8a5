"""The protocol of the paper's experiments on Amazon reviews, as it was run rather than as it is described."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from unflip._utils.typing import FloatArray, IntArray
from unflip.datasets import load_amazon_reviews

FOLDER = "amazon_reviews"
N_NEGATIVE, N_POSITIVE = 480, 1120
N_ROWS = N_NEGATIVE + N_POSITIVE
PI_NEG = N_NEGATIVE / N_ROWS
REG = 100.0


def standardised(domain: str) -> tuple[FloatArray, IntArray]:
    """Load a domain with every column at mean 0 and variance 1 over ALL rows of the file, later test rows included."""
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
        Whether the label of each is flipped, at each rate ε₊.
    unseen : ndarray of int
        Test rows.
    """

    rows: IntArray
    flips: NDArray[np.bool_]
    unseen: IntArray


class Stream:
    """One stream of draws: NumPy's legacy generator, in the order of the published experiment.

    Rows with replacement, 480 negative and 1120 positive, then a flip for every row at the rate of
    the negatives and another at that of the positives, of which each row uses its own. A binomial
    of size one takes one number from the stream at any rate, so that streams of several ε₊ go
    through the same rows; they are drawn here side by side.
    """

    def __init__(
        self, y: IntArray, *, eps_pos: tuple[float, ...], eps_neg: float, seed: int
    ) -> None:
        self._y, self._classes = y, (np.flatnonzero(y == 0), np.flatnonzero(y == 1))
        self._eps_pos, self._eps_neg = eps_pos, eps_neg
        self._generator = np.random.RandomState(seed)

    def draw(self) -> Sample:
        """Draw once."""
        generator = self._generator
        rows = np.concatenate(
            [
                generator.choice(own, size)
                for own, size in zip(self._classes, (N_NEGATIVE, N_POSITIVE), strict=True)
            ]
        )
        flip_negative = generator.binomial(1, self._eps_neg, N_ROWS)
        state = generator.get_state()
        flips = []
        for eps_pos in self._eps_pos:
            generator.set_state(state)
            flips.append(
                np.where(self._y[rows] == 0, flip_negative, generator.binomial(1, eps_pos, N_ROWS))
            )
        return Sample(
            rows, np.array(flips, dtype=bool), np.setdiff1d(np.arange(len(self._y)), rows)
        )
