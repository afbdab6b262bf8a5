"""The paper's formulas and protocol, transcribed as printed, to compare with."""

import numpy as np

from unflip.theory import delta


def right_h(aspect, reg):
    """Return h of the appendix."""
    return 1 - aspect / (1 + reg * (1 + delta(aspect, reg))) ** 2


def printed_h(aspect, reg):
    """Return h of the main text, whose square is inside the wrong bracket."""
    return 1 - aspect / (1 + reg * (1 + delta(aspect, reg)) ** 2)


def theorem(*, rho_pos, rho_neg, noise, mean_norm, aspect, reg, h=right_h):
    """Return m_ρ and ν_ρ of the paper's Theorem, term by term."""
    pi1, pi2 = noise.priors
    beta = 1 / (1 - rho_pos - rho_neg)
    lambda_neg, lambda_pos = (1 - rho_pos + rho_neg) * beta, (1 - rho_neg + rho_pos) * beta
    alignment = pi1 * (lambda_neg - 2 * beta * noise.eps_neg) + pi2 * (lambda_pos - 2 * beta * noise.eps_pos)
    u, share = mean_norm**2, h(aspect, reg)
    denominator = u + 1 + reg * (1 + delta(aspect, reg))
    second = pi1 * (4 * beta**2 * noise.eps_neg * (rho_pos - rho_neg) + lambda_neg**2) + pi2 * (
        4 * beta**2 * noise.eps_pos * (rho_neg - rho_pos) + lambda_pos**2
    )
    mean = alignment / denominator * u
    bracket = (u + 1) / denominator - 2 * (1 - share)
    return mean, alignment**2 / (share * denominator) * bracket * u + (1 - share) / share * second


class Table1:
    """One stream of draws of the protocol behind Table 1."""

    N_NEGATIVE, N_POSITIVE = 480, 1120

    def __init__(self, y, *, eps_pos, eps_neg, seed):
        self._negatives, self._positives = np.flatnonzero(y == 0), np.flatnonzero(y == 1)
        self._y, self._eps_pos, self._eps_neg = y, eps_pos, eps_neg
        self._rng = np.random.RandomState(seed)

    def draw(self):
        """Return row indices with their observed labels, and the indices of the rows never drawn."""
        negatives = self._rng.choice(self._negatives, self.N_NEGATIVE)
        rows = np.concatenate([negatives, self._rng.choice(self._positives, self.N_POSITIVE)])
        flip_negative = self._rng.binomial(1, self._eps_neg, len(rows))
        flip_positive = self._rng.binomial(1, self._eps_pos, len(rows))
        observed = np.where(self._y[rows] == 0, flip_negative, 1 - flip_positive)
        return rows, observed, np.setdiff1d(np.arange(len(self._y)), rows)
