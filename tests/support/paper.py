"""The paper's formulas and protocol as printed, for comparison."""

import numpy as np

from unflip.theory import delta


def right_h(aspect, reg):
    """Return h of the appendix, which is correct."""
    return 1 - aspect / (1 + reg * (1 + delta(aspect, reg))) ** 2


def printed_h(aspect, reg):
    """Return h of the main text, whose square is inside the wrong bracket."""
    return 1 - aspect / (1 + reg * (1 + delta(aspect, reg)) ** 2)


def theorem(*, rho_pos, rho_neg, noise, mean_norm, aspect, reg, h=right_h):
    """Return m_ρ and ν_ρ of the paper's Theorem, term by term."""
    pi1, pi2 = noise.priors
    beta = 1 / (1 - rho_pos - rho_neg)
    lambda_neg, lambda_pos = (1 - rho_pos + rho_neg) * beta, (1 - rho_neg + rho_pos) * beta
    alignment = pi1 * (lambda_neg - 2 * beta * noise.eps_neg) + pi2 * (
        lambda_pos - 2 * beta * noise.eps_pos
    )
    u, share = mean_norm**2, h(aspect, reg)
    denominator = u + 1 + reg * (1 + delta(aspect, reg))
    second = pi1 * (4 * beta**2 * noise.eps_neg * (rho_pos - rho_neg) + lambda_neg**2) + pi2 * (
        4 * beta**2 * noise.eps_pos * (rho_neg - rho_pos) + lambda_pos**2
    )
    mean = alignment / denominator * u
    bracket = (u + 1) / denominator - 2 * (1 - share)
    return mean, alignment**2 / (share * denominator) * bracket * u + (1 - share) / share * second


class Table1:
    """Random draws in the protocol of Table 1."""

    N_NEGATIVE, N_POSITIVE = 480, 1120

    def __init__(self, y, *, eps_pos, eps_neg, seed):
        self._negatives, self._positives = np.flatnonzero(y == 0), np.flatnonzero(y == 1)
        self._y, self._eps_pos, self._eps_neg = y, eps_pos, eps_neg
        self._rng = np.random.RandomState(seed)

    def draw(self):
        """Return drawn rows, their observed labels, and the rows never drawn."""
        negatives = self._rng.choice(self._negatives, self.N_NEGATIVE)
        rows = np.concatenate([negatives, self._rng.choice(self._positives, self.N_POSITIVE)])
        flip_negative = self._rng.binomial(1, self._eps_neg, len(rows))
        flip_positive = self._rng.binomial(1, self._eps_pos, len(rows))
        observed = np.where(self._y[rows] == 0, flip_negative, 1 - flip_positive)
        return rows, observed, np.setdiff1d(np.arange(len(self._y)), rows)


def general_theorem(*, mean, cov_neg, cov_pos, n, noise, targets, reg, cross_terms=2):
    """Return m and (ν₁, ν₂) of the paper's theorem for general covariances, by matrix algebra.

    The cross sum over pairs of rows from both classes counts twice (``cross_terms=2``); the paper
    prints it once.
    """
    seconds = [covariance + np.outer(mean, mean) for covariance in (cov_neg, cov_pos)]
    pi, k = noise.priors, range(2)
    deltas = np.ones(2)
    for _ in range(100_000):
        q_bar = np.linalg.inv(
            sum(pi[b] / (1 + deltas[b]) * seconds[b] for b in k) + reg * np.eye(len(mean))
        )
        updated = np.array([np.trace(seconds[b] @ q_bar) / n for b in k])
        if np.abs(updated - deltas).max() < 1e-13:
            break
        deltas = updated
    e = np.array([-1, 1]) * (noise.transition @ targets)
    s = noise.transition @ np.asarray(targets) ** 2
    a = pi * e / (1 + deltas)
    mean_score = a.sum() * mean @ q_bar @ mean
    weights = pi / (1 + deltas) ** 2
    omega = np.array(
        [[weights[c] * np.trace(seconds[b] @ q_bar @ seconds[c] @ q_bar) / n for c in k] for b in k]
    )
    nu = []
    for a_class in k:
        plain = q_bar @ seconds[a_class] @ q_bar
        t = np.linalg.solve(np.eye(2) - omega, [np.trace(seconds[b] @ plain) / n for b in k])
        inner = seconds[a_class] + sum(weights[b] * t[b] * seconds[b] for b in k)
        squared = q_bar @ inner @ q_bar  # E[QΣ_aQ]
        cross = mean @ q_bar @ mean * a.sum() * (a * t / (1 + deltas)).sum()
        nu.append(
            a.sum() ** 2 * mean @ squared @ mean - cross_terms * cross + (weights * s * t).sum()
        )
    return mean_score, np.array(nu)
