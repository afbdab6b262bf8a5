r"""Errors that annotators share, because a row is difficult or looks like another class.

A row of true class a has a latent number z, the same for all annotators. Annotator w is right with
probability

.. math:: P(w \text{ is right} \mid a, z) =
          \Phi\!\left(\frac{\Phi^{-1}(T^w_{aa}) + \lambda^w_a z}{\sqrt{1 - (\lambda^w_a)^2}}\right),

and wrong labels keep their shares. Given z, annotators err independently. If z is standard normal,
the mean over z is the transition matrix T itself, for any loading λ. Two annotators then have a
tetrachoric correlation λλ' of being right.

**Loadings.** Each row has a position on the line between its class, at 1, and the others, at −1,
with a standard deviation τ, the *spread*. An annotator compares it with a threshold, with an error
of their own. It follows that λ = τD, where D is half the distance between the thresholds of rows
of class a and of the others:

.. math:: D^w_a = \frac{\Phi^{-1}(T^w_{aa}) - \Phi^{-1}(\bar T^w_a)}{2},

with the mean T̄ of P(label a) over the other classes. So annotators who guess share no errors, and
adversarial ones err where the others do not.

**Scores.** Annotators and features may be misled by the same rows. With the margin t of a row of
class a, the log-odds of class a against the others with mean 0 and variance 1 within class a, z is
normal with mean rt and variance 1 − r². The spread and r, the *score correlation*, are estimated by
maximum likelihood. Without several votes per row they are not identified, and errors are taken as
independent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr, logit, ndtri, softmax

from unflip._utils.arrays import TINY
from unflip._utils.typing import FloatArray, IntArray, SparseArray

# Values of z that likelihoods are summed over. With the largest loading, the mean of the transition
# matrix over them is exact to 1e-4.
_NODES = np.linspace(-3.6, 3.6, 13)
# Standard normal probabilities of these values.
_SHARES = np.exp(-(_NODES**2) / 2) / np.exp(-(_NODES**2) / 2).sum()
# Largest loading: nearly perfect annotators would otherwise be right or wrong together.
_LARGEST_LOADING = 0.9
# Largest |margin| in standard deviations, so that no score excludes that annotators err.
_LARGEST_MARGIN = 3.0
# Smallest probability of a right or a wrong label: annotators who never err may do so.
_LEAST_RATE = 1e-6
# Rows whose likelihoods at all values of z are computed at a time, to bound memory.
_BATCH = 10_000


@dataclass(frozen=True, eq=False)
class SharedDifficulty:
    """Distribution of the latent number z of each row, and how annotators depend on it.

    Attributes
    ----------
    spread : float
        Standard deviation τ of the positions of rows; 0 if annotators err independently.
    score_correlation : float
        Correlation r of z with the margin by the features.
    margins : ndarray of shape (n, k)
        Margin of each row for each class that may be its true one.
    log_norms : ndarray of shape (n, k)
        Logarithm of the sum of the normal densities of z, up to a factor, over its values.
    loadings : ndarray of shape (w, k)
        Loading λ of each annotator and true class.
    """

    spread: float
    score_correlation: float
    margins: FloatArray
    log_norms: FloatArray
    loadings: FloatArray

    @classmethod
    def of(
        cls,
        spread: float,
        score_correlation: float,
        margins: FloatArray,
        transitions: FloatArray,
    ) -> SharedDifficulty:
        """Return the difficulty for annotators with these transition matrices, (w, k, k)."""
        norms = _log_norms(margins, score_correlation)
        return cls(spread, score_correlation, margins, norms, _loadings(spread, transitions))

    def on_rows(self, margins: FloatArray) -> SharedDifficulty:
        """Return the difficulty of other rows, with these margins, (n, k)."""
        norms = _log_norms(margins, self.score_correlation)
        return replace(self, margins=margins, log_norms=norms)

    def with_loadings(self, transitions: FloatArray) -> SharedDifficulty:
        """Return the difficulty for annotators with these transition matrices, (w, k, k)."""
        return replace(self, loadings=_loadings(self.spread, transitions))

    def transitions_by_difficulty(self, transitions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the transition matrices at each value of z, and the shares of these values.

        Returns
        -------
        transitions : ndarray of shape (w, k, k, n_values)
        shares : ndarray of shape (n_values,)
        """
        return np.exp(self._log_transitions(transitions)), _SHARES

    def log_likelihoods(self, table: SparseArray, transitions: FloatArray) -> FloatArray:
        """Return log P(votes on the row | true class), (n, k).

        Parameters
        ----------
        table : sparse array of shape (n, w·k)
            Weights of the votes, in the columns of `Votes.table`.
        transitions : ndarray of shape (w, k, k)
            Transition matrices.
        """
        logs = self._log_transitions(transitions)
        total = np.empty(self.margins.shape)
        for rows in _batches(len(total)):
            total[rows] = _log_sum(sums_of_votes(table[rows], logs) + self._log_density(rows))
        return total

    def log_derivatives(self, table: SparseArray, transitions: FloatArray) -> FloatArray:
        """Return the derivative of `log_likelihoods` by the noise rates of all annotators, (n, k).

        The rate is that of the true class in question. Wrong labels keep their shares, and loadings
        do not change.
        """
        logs = self._log_transitions(transitions)
        slopes = self._log_slopes(transitions)
        derivatives = np.empty(self.margins.shape)
        for rows in _batches(len(derivatives)):
            given_z = sums_of_votes(table[rows], logs) + self._log_density(rows)
            total = _log_sum(given_z)[:, :, None]
            density = np.exp(given_z - np.where(total == -np.inf, 0.0, total))
            derivatives[rows] = (density * sums_of_votes(table[rows], slopes)).sum(axis=2)
        return derivatives

    def density(self, rows: IntArray, table: SparseArray, transitions: FloatArray) -> FloatArray:
        """Return P(z | votes on the row, true class) at its values, (n_rows, k, n_values).

        Parameters
        ----------
        rows : ndarray of int, shape (n_rows,)
            Rows.
        table : sparse array of shape (n_rows, w·k)
            Weights of their votes.
        transitions : ndarray of shape (w, k, k)
            Transition matrices.
        """
        logs = self._log_transitions(transitions)
        return np.asarray(softmax(sums_of_votes(table, logs) + self._log_density(rows), axis=2))

    def correlation(self, transitions: FloatArray, priors: FloatArray, shares: FloatArray) -> float:
        """Return the intraclass correlation of the errors of two votes on a row.

        Parameters
        ----------
        transitions : ndarray of shape (w, k, k)
            Transition matrices.
        priors : ndarray of shape (k,)
            Proportions of the true classes.
        shares : ndarray of shape (w,)
            Share of each annotator in the votes.
        """
        log_right, _ = self._log_right_and_wrong(transitions)
        means = np.tensordot(shares, np.exp(log_right), axes=1)
        shared = (means - (means @ _SHARES)[:, None]) ** 2 @ _SHARES
        right = np.diagonal(transitions, axis1=1, axis2=2)
        single = shares @ (right * (1 - right))
        return float(priors @ shared / max(float(priors @ single), TINY))

    def _log_density(self, rows: slice | IntArray) -> FloatArray:
        """Return the logarithm of the probability of each value of z, (n_rows, k, n_values)."""
        normal = _log_normal(self.margins[rows], self.score_correlation)
        return np.asarray(normal - self.log_norms[rows][:, :, None])

    def _positions(self, thresholds: FloatArray) -> FloatArray:
        """Return Φ⁻¹ of P(right), (w, k, n_values), for its values without shared errors."""
        loadings = self.loadings[:, :, None]
        return np.asarray((thresholds[:, :, None] + loadings * _NODES) / np.sqrt(1 - loadings**2))

    def _log_right_and_wrong(self, transitions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the logarithms of P(right) and P(wrong), (w, k, n_values) each."""
        positions = self._positions(_thresholds(transitions))
        return np.asarray(log_ndtr(positions)), np.asarray(log_ndtr(-positions))

    def _log_transitions(self, transitions: FloatArray) -> FloatArray:
        """Return the logarithms of the transition matrices, (w, k, k, n_values)."""
        right, wrong = self._log_right_and_wrong(transitions)
        is_right = np.eye(transitions.shape[1], dtype=bool)[:, :, None]
        with np.errstate(divide="ignore"):  # log 0 = −∞: a label that an annotator never gives
            shares = np.log(transitions / _noise_rates(transitions)[:, :, None])
        logs = np.where(is_right, right[:, :, None], wrong[:, :, None] + shares[:, :, :, None])
        return np.asarray(logs)

    def _log_slopes(self, transitions: FloatArray) -> FloatArray:
        """Return the derivatives of `_log_transitions` by the noise rates, (w, k, k, n_values)."""
        thresholds = _thresholds(transitions)
        positions = self._positions(thresholds)
        # φ(position) / φ(threshold), from their logarithms.
        ratios = np.exp((thresholds[:, :, None] ** 2 - positions**2) / 2)
        ratios /= np.sqrt(1 - self.loadings**2)[:, :, None]
        right = -ratios / np.exp(log_ndtr(positions))
        wrong = ratios / np.exp(log_ndtr(-positions))
        is_right = np.eye(transitions.shape[1], dtype=bool)[:, :, None]
        return np.asarray(np.where(is_right, right[:, :, None], wrong[:, :, None]))


def sums_of_votes(table: SparseArray, values: FloatArray) -> FloatArray:
    """Return the weighted sums over the votes on each row, (n, k, ...).

    Parameters
    ----------
    table : sparse array of shape (n, w·k)
        Weights of the votes, in the columns of `Votes.table`.
    values : ndarray of shape (w, k, k, ...)
        One or more values for each annotator, true class, and label.
    """
    by_label = np.swapaxes(values, 1, 2)
    sums = table @ by_label.reshape(table.shape[1], -1)
    return np.asarray(sums.reshape(-1, *by_label.shape[2:]))


def standardized_margins(log_odds: FloatArray, posterior: FloatArray) -> FloatArray:
    """Return log-odds of each class against all others, standardized within that class, (n, k).

    Parameters
    ----------
    log_odds : ndarray of shape (n, k)
        Log-odds of the classes by the features, up to a constant in each row.
    posterior : ndarray of shape (n, k)
        P(true class | votes, features), weighted.
    """
    shares = softmax(log_odds, axis=1)
    margins = logit(np.clip(shares, _LEAST_RATE, 1 - _LEAST_RATE))
    within = posterior / np.maximum(posterior.sum(axis=0), TINY)
    centred = margins - (within * margins).sum(axis=0)
    deviations = np.sqrt((within * centred**2).sum(axis=0))
    standardized = centred / np.maximum(deviations, TINY)
    return np.asarray(np.clip(standardized, -_LARGEST_MARGIN, _LARGEST_MARGIN))


def _batches(n: int) -> Iterator[slice]:
    return (slice(start, start + _BATCH) for start in range(0, n, _BATCH))


def _log_normal(margins: FloatArray, correlation: float) -> FloatArray:
    """Return log densities of the values of z given margins, up to a constant, (..., n_values)."""
    distances = _NODES - correlation * margins[..., None]
    return np.asarray(distances**2 / (-2 * (1 - correlation**2)))


def _log_norms(margins: FloatArray, correlation: float) -> FloatArray:
    norms = np.empty(margins.shape)
    for rows in _batches(len(margins)):
        norms[rows] = _log_sum(_log_normal(margins[rows], correlation))
    return norms


def _log_sum(logs: FloatArray) -> FloatArray:
    """Return the logarithm of the sum of exponentials over the last axis; −∞ if all are −∞."""
    largest = logs.max(axis=-1, keepdims=True)
    largest[largest == -np.inf] = 0.0
    with np.errstate(divide="ignore"):  # log 0 = −∞: no value of z allows these votes
        return np.asarray(
            np.log(np.exp(logs - largest) @ np.ones(logs.shape[-1])) + largest[..., 0]
        )


def _loadings(spread: float, transitions: FloatArray) -> FloatArray:
    """Return λ = τD, with half the distance D between rows of a class and of others, (w, k)."""
    right = np.diagonal(transitions, axis1=1, axis2=2)
    false = (transitions.sum(axis=1) - right) / (transitions.shape[1] - 1)
    false = np.clip(false, _LEAST_RATE, 1 - _LEAST_RATE)
    loadings = spread * (_thresholds(transitions) - ndtri(false)) / 2
    return np.asarray(np.clip(loadings, -_LARGEST_LOADING, _LARGEST_LOADING))


def _thresholds(transitions: FloatArray) -> FloatArray:
    """Return Φ⁻¹(T_aa), (w, k)."""
    return np.asarray(ndtri(1 - _noise_rates(transitions)))


def _noise_rates(transitions: FloatArray) -> FloatArray:
    rates = 1 - np.diagonal(transitions, axis1=1, axis2=2)
    return np.clip(rates, _LEAST_RATE, 1 - _LEAST_RATE)
