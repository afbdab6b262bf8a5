r"""How each worker votes, found from the votes alone or from votes and features.

Worker w says b of a row of true class a with probability Tʷ_ab, whatever else the row is like, so votes on a row
multiply: P(votes | a) = Π Tʷ_ab. The tables are those of Dawid and Skene (1979), found by EM: given the tables, Bayes
gives the posteriors q of the true classes; given these, a table is what the worker said of rows of each class,

.. math:: T^w_{ab} = \frac{n^w_{ab} + s\, T_{ab}}{\sum_b n^w_{ab} + s}, \qquad n^w_{ab} = \sum_i q_i(a),

the sum over the rows of which w said b. T is the table of all votes together: a worker of few votes is taken to be like
the others, as if they had given s votes on each class.

Where features say P(a | xᵢ) without the row's own votes, they stand in the place of the class proportions (Raykar and
others 2010). Votes alone may leave rare classes swapped, so a first fit is made with T for all workers, and their own
tables are found with its help.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from unflip._typing import FloatArray, IntArray
from unflip.labels import UNCHECKED
from unflip.noise import Channel, NoiseModel
from unflip.votes import Votes

_STRENGTH = 4.0  # votes on each class by which a worker is taken to be like the others
_MAX_ROUNDS = 500
_SETTLED = 1e-6
_SMALLEST_LOG = -300.0  # likelihoods below are no numbers; only their ratios matter


@dataclass(frozen=True, eq=False)
class Workers:
    """How each worker votes.

    Attributes
    ----------
    names : ndarray of shape (w,)
        The workers.
    tables : ndarray of shape (w, k, k)
        ``tables[w, a, b]`` = P(worker w says b | TRUE class a).
    priors : ndarray of shape (k,)
        Proportions of the true classes.
    """

    names: NDArray[Any]
    tables: FloatArray
    priors: FloatArray

    @classmethod
    def alike(cls, noise: NoiseModel, votes: Votes) -> Workers:
        """All workers vote as this noise model, with priors, says."""
        shape = (len(votes.workers), *noise.transition.shape)
        return cls(votes.workers, np.broadcast_to(noise.transition, shape), noise.known_priors)

    def log_likelihoods(self, votes: Votes) -> FloatArray:
        """Log P(votes on the row | true class), (n, k)."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.tables)
        k = logs.shape[1]
        found = np.asarray(votes.table @ logs.transpose(0, 2, 1).reshape(-1, k))
        for row in np.flatnonzero(found.max(axis=1) == -np.inf):
            said = votes.classes[votes.label[votes.row == row]].tolist()
            raise ValueError(f"No class can have the votes {said} of row {row}: give noise= without zeros.")
        return found

    def channel(self, votes: Votes) -> Channel:
        """Return P(votes on a row | true class), with a column for each row."""
        logs = self.log_likelihoods(votes)
        most = logs.max(axis=1, keepdims=True)
        return Channel(np.exp(logs - np.where(most < _SMALLEST_LOG, most, 0.0)).T, self.priors)

    def moved(self, true_class: int, change: float) -> Workers:
        """Return workers who flip more (or fewer) labels of one class, with the same shares among the others."""
        tables = self.tables.copy()
        others = np.arange(tables.shape[1]) != true_class
        flips = tables[:, true_class, others]
        total = flips.sum(axis=1, keepdims=True)
        shares = np.where(total > 0, flips / np.where(total > 0, total, 1.0), 1 / others.sum())
        wanted = np.clip(total + change, 0.0, 1.0)
        tables[:, true_class, others], tables[:, true_class, true_class] = wanted * shares, 1 - wanted[:, 0]
        return replace(self, tables=tables)


@dataclass(frozen=True, eq=False, kw_only=True)
class Crowd:
    """Votes on rows, and what else is known of them.

    Attributes
    ----------
    votes : Votes
        Of n rows.
    weights : ndarray of shape (n,)
        How many independent rows each stands for.
    truth : ndarray of shape (n,)
        True class of the rows that were checked, `UNCHECKED` for the others.
    priors : ndarray of shape (k,), optional
        Proportions of the true classes, where known.
    """

    votes: Votes
    weights: FloatArray
    truth: IntArray
    priors: FloatArray | None = None

    def alike(self) -> Workers:
        """Find the one table of all workers from the votes alone.

        Rows of one vote tell nothing of it and slow EM down, so it is found from the others first.
        """
        several = (self.votes.n_votes > 1) | (self.truth != UNCHECKED)
        counts = self.votes.counts + 1 / len(self.votes.classes)
        posterior = counts / counts.sum(axis=1, keepdims=True)
        part = replace(self, weights=np.where(several, self.weights, 0.0))
        first = part._repeated(posterior, own=0.0)
        return self._repeated(self._posterior(first), own=0.0)

    def with_features(self, log_odds: FloatArray, before: Workers) -> Workers:
        """Find each worker's own table from votes and features.

        Parameters
        ----------
        log_odds : ndarray of shape (n, k)
            Of each class against the first, by features alone: the row's own votes have no part in them.
        before : Workers
            What the log-odds rest on, where EM starts.
        """
        return self._repeated(self._posterior(before, log_odds), log_odds, own=1.0)

    def _repeated(self, posterior: FloatArray, log_odds: FloatArray | None = None, *, own: float) -> Workers:
        """EM from posteriors of the true classes on."""
        for _ in range(_MAX_ROUNDS):
            workers = self._tables(posterior, own)
            previous, posterior = posterior, self._posterior(workers, log_odds)
            if np.abs(posterior - previous).max() <= _SETTLED:
                break
        return workers

    def _tables(self, posterior: FloatArray, own: float) -> Workers:
        """Tables and proportions by posteriors of the true classes; `own` is 0 where all workers are alike."""
        k, votes = len(self.votes.classes), self.votes
        weighted = self.weights[:, None] * posterior
        said = np.asarray(votes.table.T @ weighted).reshape(-1, k, k).transpose(0, 2, 1)
        pooled = said.sum(axis=0) + 1 / k
        pooled /= pooled.sum(axis=1, keepdims=True)
        tables = own * said + _STRENGTH * pooled
        mass = weighted.sum(axis=0) + 1  # a row of each class is added, so that none is empty
        priors = mass / mass.sum() if self.priors is None else self.priors
        return Workers(votes.workers, tables / tables.sum(axis=2, keepdims=True), priors)

    def _posterior(self, workers: Workers, log_odds: FloatArray | None = None) -> FloatArray:
        """P(true class | votes, features), (n, k)."""
        prior = np.log(workers.priors) if log_odds is None else log_odds
        posterior = np.asarray(softmax(workers.log_likelihoods(self.votes) + prior, axis=1))
        checked = self.truth != UNCHECKED
        posterior[checked] = np.eye(len(workers.priors))[self.truth[checked]]
        return posterior

    def noise(self, workers: Workers) -> tuple[NoiseModel, FloatArray]:
        """Return the noise of one vote of a worker taken at random among votes, and its standard errors."""
        by_worker = np.bincount(self.votes.worker, self.weights[self.votes.row])
        transition = np.tensordot(by_worker / by_worker.sum(), workers.tables, axes=1)
        transition /= transition.sum(axis=1, keepdims=True)
        rows = float(self.weights[self.votes.voted].sum()) * workers.priors
        return NoiseModel(transition, workers.priors), np.sqrt(transition * (1 - transition) / rows[:, None])
