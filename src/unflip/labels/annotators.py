r"""How each annotator votes, found from votes and features together.

Annotator w says b of a row of true class a with probability Tʷ_ab, whatever else the row is like, so
votes on a row multiply: P(votes | a) = Π Tʷ_ab. The tables are those of Dawid and Skene (1979).
Given tables, Bayes gives posteriors q of the true classes; given these, a table is what the annotator
said of rows of each class,

.. math:: T^w_{ab} = \frac{n^w_{ab} + s\, T_{ab}}{\sum_b n^w_{ab} + s},

with the sum n of q(a) over the rows of which w said b. T is the table of all votes together: a
annotator of few votes is taken to be like the others, who lend s votes on each class, many where
annotators hardly differ. EM repeats the two steps, with an s that follows from the tables that it
finds. With features, P(a | xᵢ) stands in the place of the class proportions (Raykar and others
2010); it must not know the row's own votes, which would vouch for themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, softmax

from unflip._utils.typing import FloatArray, IntArray
from unflip.labels.classes import UNCHECKED
from unflip.labels.noise import Channel, NoiseModel
from unflip.labels.votes import Votes

#: Votes on each class that the others may lend an annotator.
_STRENGTHS = 2.0 ** np.arange(11)
_MAX_ROUNDS = 500
_SETTLED = 1e-6
_SMALLEST_LOG = -300.0  # likelihoods below are no numbers; only their ratios matter


@dataclass(frozen=True, eq=False)
class Annotators:
    """How each annotator votes.

    Attributes
    ----------
    names : ndarray of shape (w,)
        The annotators.
    transitions : ndarray of shape (w, k, k)
        ``transitions[w, a, b]`` = P(annotator w says b | TRUE class a).
    priors : ndarray of shape (k,)
        Proportions of the true classes.
    transitions_std : ndarray of shape (w, k, k)
        Standard error of each entry of ``transitions``; 0 where they were given.
    """

    names: NDArray[Any]
    transitions: FloatArray
    priors: FloatArray
    transitions_std: FloatArray

    @classmethod
    def alike(cls, noise: NoiseModel, votes: Votes) -> Annotators:
        """All annotators vote as this noise model, with priors, says."""
        shape = (len(votes.annotators), *noise.transition.shape)
        tables = np.broadcast_to(noise.transition, shape)
        return cls(votes.annotators, tables, noise.known_priors, np.zeros(shape))

    def log_likelihoods(self, votes: Votes) -> FloatArray:
        """Log P(votes on the row | true class), (n, k)."""
        if not np.array_equal(self.names, votes.annotators):
            raise ValueError(
                "These votes are of other annotators than the tables: give votes of the same ones."
            )
        with np.errstate(
            divide="ignore"
        ):  # the log of 0 is −∞: a class that an annotator never calls so
            logs = np.log(self.transitions)
        k = logs.shape[1]
        found = np.asarray(votes.table @ logs.transpose(0, 2, 1).reshape(-1, k))
        for row in np.flatnonzero(found.max(axis=1) == -np.inf):
            said = votes.classes[votes.label[votes.row == row]].tolist()
            raise ValueError(
                f"No class can have the votes {said} of row {row}: give noise= without zeros."
            )
        return found

    def channel(self, votes: Votes) -> Channel:
        """Return P(votes on a row | true class), with a column for each row."""
        logs = self.log_likelihoods(votes)
        most = logs.max(axis=1, keepdims=True)
        likelihoods = np.exp(logs - np.where(most < _SMALLEST_LOG, most, 0.0))
        single = (
            votes.n_votes[votes.row] == 1
        )  # the entries themselves, without the rounding of a logarithm
        likelihoods[votes.row[single]] = self.transitions[
            votes.annotator[single], :, votes.label[single]
        ]
        return Channel(likelihoods.T, self.priors)

    def moved(self, true_class: int, change: float) -> Annotators:
        """Return annotators who flip more (or fewer) labels of one class, with the same shares among the others."""
        tables = self.transitions.copy()
        others = np.arange(tables.shape[1]) != true_class
        flips = tables[:, true_class, others]
        total = flips.sum(axis=1, keepdims=True)
        shares = np.where(total > 0, flips / np.where(total > 0, total, 1.0), 1 / others.sum())
        wanted = np.clip(total + change, 0.0, 1.0)
        tables[:, true_class, others], tables[:, true_class, true_class] = (
            wanted * shares,
            1 - wanted[:, 0],
        )
        return replace(self, transitions=tables)

    def one_error_away(self, votes: Votes, errors: FloatArray) -> list[Channel]:
        """Return what votes would tell if all annotators flipped a standard error (k, k) more of one class at a time."""
        flips = np.diag(errors)
        return [
            self.moved(int(a), float(flips[a])).channel(votes) for a in np.flatnonzero(flips > 0)
        ]


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

    def by_agreement(self) -> Annotators:
        """Tables by how often each annotator agrees with the votes on a row, their own among them.

        They flatter the annotators, but are a safe start: EM from votes alone may swap rare classes,
        or believe liars. Rows of one vote tell nothing.
        """
        told = (self.votes.n_votes > 1) | (self.truth != UNCHECKED)
        counts = self.votes.counts + 1 / len(self.votes.classes)
        shares = self._with_truth(counts / counts.sum(axis=1, keepdims=True))
        part = replace(self, weights=np.where(told, self.weights, 0.0))
        return part._tables(shares, part._strength(shares))

    def with_features(self, log_odds: FloatArray, before: Annotators) -> Annotators:
        """Find each annotator's own table from votes and features.

        Parameters
        ----------
        log_odds : ndarray of shape (n, k)
            Of each class against the first, by features alone: the row's own votes have no part in
            them.
        before : Annotators
            What the log-odds rest on, where EM starts.
        """
        annotators, posterior, strength = before, self._posterior(before, log_odds), np.inf
        while (
            likelier := self._strength(posterior)
        ) < strength:  # annotators differ more, the better they are known
            strength = likelier
            for _ in range(_MAX_ROUNDS):
                annotators = self._tables(posterior, strength)
                previous, posterior = posterior, self._posterior(annotators, log_odds)
                if np.abs(posterior - previous).max() <= _SETTLED:
                    break
        return annotators

    def _said(self, posterior: FloatArray) -> tuple[FloatArray, FloatArray]:
        """How often each annotator said b of rows of class a, (w, k, k), and the table of all votes together, (k, k)."""
        k = posterior.shape[1]
        weighted = self.weights[:, None] * posterior
        said = np.asarray(self.votes.table.T @ weighted).reshape(-1, k, k).transpose(0, 2, 1)
        pooled = said.sum(axis=0) + 1 / k
        return said, pooled / pooled.sum(axis=1, keepdims=True)

    def _strength(self, posterior: FloatArray) -> float:
        """How much alike annotators are: the Dirichlet prior s·T under which what they said is likeliest."""
        said, pooled = self._said(posterior)

        def log_likelihood(s: float) -> float:
            each = gammaln(said + s * pooled) - gammaln(s * pooled)
            return float(each.sum() + (gammaln(s) - gammaln(said.sum(axis=2) + s)).sum())

        return float(_STRENGTHS[np.argmax([log_likelihood(s) for s in _STRENGTHS.tolist()])])

    def _tables(self, posterior: FloatArray, strength: float) -> Annotators:
        """Tables and proportions by posteriors of the true classes."""
        said, pooled = self._said(posterior)
        counts = said + strength * pooled
        tables = counts / counts.sum(axis=2, keepdims=True)
        mass = self.weights @ posterior + 1  # a row of each class is added, so that none is empty
        priors = mass / mass.sum() if self.priors is None else self.priors
        # A row counts as far as its class is known: by q² instead of q.
        known = self._said(posterior**2)[0].sum(axis=2, keepdims=True) + strength
        return Annotators(
            self.votes.annotators, tables, priors, np.sqrt(tables * (1 - tables) / (known + 1))
        )

    def _posterior(self, annotators: Annotators, log_odds: FloatArray) -> FloatArray:
        """P(true class | votes, features), (n, k)."""
        return self._with_truth(
            np.asarray(softmax(annotators.log_likelihoods(self.votes) + log_odds, axis=1))
        )

    def _with_truth(self, posterior: FloatArray) -> FloatArray:
        """Posteriors with certainty for the rows that were checked."""
        certain = np.eye(posterior.shape[1])[np.maximum(self.truth, 0)]
        return np.where((self.truth == UNCHECKED)[:, None], posterior, certain)

    def noise(self, annotators: Annotators) -> tuple[NoiseModel, FloatArray]:
        """Return the noise of one vote of an annotator taken at random among votes, and its standard errors."""
        by_annotator = np.bincount(self.votes.annotator, self.weights[self.votes.row])
        transition = np.tensordot(by_annotator / by_annotator.sum(), annotators.transitions, axes=1)
        transition /= transition.sum(axis=1, keepdims=True)
        if len(transition) == 2 and np.trace(transition) <= 1:
            raise ValueError(
                "The votes on these rows agree no better than by chance, so they teach nothing: "
                "give noise= or more votes."
            )
        rows = float(self.weights[self.votes.voted].sum()) * annotators.priors
        return NoiseModel(transition, annotators.priors), np.sqrt(
            transition * (1 - transition) / rows[:, None]
        )
