r"""Transition matrices of annotators, and the likelihood of their votes.

Annotator w gives label b to a row of true class a with probability Tʷ_ab, independently of the
features. If annotators also err independently of each other, P(votes | a) = Π Tʷ_ab (Dawid and
Skene 1979). Errors that they share, because a row is difficult or because they copy each other,
change this likelihood (`unflip.labels.shared_difficulty`, `unflip.labels.annotator_groups`).

With abstentions, every annotator saw every row, and w votes on a row of class a at a *voting rate*,
so that P(w says b | a) is the product of this rate and Tʷ_ab. Missing votes are not multiplied in.
Whether no rule applies to a row says little about its class, and rules do not abstain on their own:
on messages labelled by rules, their factors lowered the accuracy of the relabelled rows from 95% to
53%.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._utils.arrays import TINY
from unflip._utils.typing import FloatArray, IntArray, SparseArray
from unflip.labels.annotator_groups import AnnotatorGroups
from unflip.labels.noise import Channel, NoiseModel
from unflip.labels.shared_difficulty import SharedDifficulty, sums_of_votes
from unflip.labels.votes import Votes

# Smallest noise rate and smallest 1 − rate in derivatives, so that these are finite.
_LEAST_RATE = 1e-12


@dataclass(frozen=True, eq=False)
class Annotators:
    """Transition matrix of each annotator.

    Attributes
    ----------
    names : ndarray of shape (w,)
        The annotators.
    transitions : ndarray of shape (w, k, k)
        ``transitions[w, a, b]`` = P(annotator w gives label b | TRUE class a).
    priors : ndarray of shape (k,)
        Proportions of the true classes.
    transitions_std : ndarray of shape (w, k, k)
        Standard error of each entry of ``transitions``; 0 if the transition matrices are known.
    voting_rates : ndarray of shape (w, k) or None
        P(annotator w votes | TRUE class a) on rows with at least one vote, if missing votes are
        abstentions.
    difficulty : SharedDifficulty or None
        Errors that annotators share on the training rows, in their order; None if they err
        independently.
    groups : AnnotatorGroups or None
        Annotators that copy each other; None if none do.

    Examples
    --------
    >>> noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1, pi_neg=0.5)
    >>> votes = Votes.from_columns([[0, 0], [1, 0]], annotators=["Ann", "Bob"])
    >>> annotators = Annotators.from_noise(noise, votes)
    >>> annotators.names.tolist(), annotators.transitions.shape
    (['Ann', 'Bob'], (2, 2, 2))
    >>> annotators.channel(votes).posterior[0].round(2)  # two votes for class 0
    array([0.95, 0.05])
    """

    names: NDArray[Any]
    transitions: FloatArray
    priors: FloatArray
    transitions_std: FloatArray
    voting_rates: FloatArray | None = None
    difficulty: SharedDifficulty | None = None
    groups: AnnotatorGroups | None = None

    @classmethod
    def from_noise(cls, noise: NoiseModel, votes: Votes) -> Annotators:
        """Return annotators who all have the transition matrix of a noise model with priors."""
        shape = (len(votes.annotators), *noise.transition.shape)
        transitions = np.broadcast_to(noise.transition, shape)
        return cls(votes.annotators, transitions, noise.known_priors, np.zeros(shape))

    @property
    def joint(self) -> FloatArray:
        """P(annotator w votes, and gives label b | TRUE class a), (w, k, k).

        Without abstentions, P(label b | TRUE class a): it is given that the annotator votes.
        """
        if self.voting_rates is None:
            return self.transitions
        return np.asarray(self.voting_rates[:, :, None] * self.transitions)

    @property
    def accuracy(self) -> FloatArray:
        """P(a vote of annotator w is right), (w,)."""
        votes = self.priors[:, None] * self.joint
        return np.asarray(np.trace(votes, axis1=1, axis2=2) / votes.sum(axis=(1, 2)))

    @property
    def noise_rates(self) -> FloatArray:
        """P(label wrong | TRUE class a) of a vote, (w, k); with abstentions, of all votes together.

        Rules that give one label have no noise rates of their own.
        """
        joint = self.joint
        if self.voting_rates is not None:
            joint = joint.sum(axis=0, keepdims=True)
        right = np.diagonal(joint, axis1=1, axis2=2) / joint.sum(axis=2)
        return np.broadcast_to(1 - right, self.transitions.shape[:2])

    def log_likelihoods(self, votes: Votes) -> FloatArray:
        """Return log P(votes on the row | true class), (n, k)."""
        table = self.weighted_table(votes)
        if self.difficulty is None:
            with np.errstate(divide="ignore"):  # log 0 = −∞: a label that is never given
                sums = sums_of_votes(table, np.log(self.joint))
        elif len(self.difficulty.margins) != len(votes):
            raise ValueError(
                f"The votes are on {len(votes)} rows, but the difficulty of rows is known for the "
                f"{len(self.difficulty.margins)} training rows: pass their votes, or use "
                "annotators.independent."
            )
        else:
            sums = self.difficulty.log_likelihoods(table, self.transitions)
        for row in np.flatnonzero(sums.max(axis=1) == -np.inf):
            labels = votes.classes[votes.label[votes.row == row]].tolist()
            raise ValueError(
                f"The votes {labels} on row {row} have probability 0 for every class: pass noise= "
                "without zeros."
            )
        return sums

    def weighted_table(self, votes: Votes) -> SparseArray:
        """Return ``votes.table`` with what each vote counts, (n, w·k)."""
        if not np.array_equal(self.names, votes.annotators):
            raise ValueError(
                "The votes are from other annotators than the transition matrices: pass votes of "
                "the same annotators."
            )
        if self.groups is None:
            return votes.counted_table
        return votes.weighted_table(self.groups.vote_weights(votes))

    @property
    def independent(self) -> Annotators:
        """The same annotators if they err independently, without difficulty and groups."""
        return replace(self, difficulty=None, groups=None)

    def sharing_errors_of(self, other: Annotators) -> Annotators:
        """Return the same annotators with the groups and the difficulty of others."""
        difficulty = other.difficulty
        if difficulty is not None:
            difficulty = difficulty.with_loadings(self.transitions)
        return replace(self, difficulty=difficulty, groups=other.groups)

    def by_difficulty(self) -> tuple[FloatArray, FloatArray]:
        """Return transition matrices by the difficulty of a row, and the shares of difficulties.

        Returns
        -------
        transitions : ndarray of shape (w, k, k, n_values)
        shares : ndarray of shape (n_values,)
        """
        if self.difficulty is None:
            return self.transitions[..., None], np.ones(1)
        return self.difficulty.transitions_by_difficulty(self.transitions)

    def with_next_vote(self, votes: Votes, rows: IntArray, posterior: FloatArray) -> FloatArray:
        """Return P(true class, label that an annotator would give next | votes), (m, w, k, k).

        Parameters
        ----------
        votes : Votes
            The votes so far.
        rows : ndarray of int, shape (m,)
            Rows.
        posterior : ndarray of shape (m, k)
            P(true class | votes, features) of these rows.
        """
        if self.difficulty is None:
            return np.asarray(posterior[:, None, :, None] * self.transitions)
        table = self.weighted_table(votes)[rows]
        density = posterior[:, :, None] * self.difficulty.density(rows, table, self.transitions)
        return np.asarray(np.einsum("rkz,wklz->rwkl", density, self.by_difficulty()[0]))

    @property
    def information(self) -> FloatArray:
        """Bits that a vote of each annotator is expected to tell about the true class, (w,).

        Kullback-Leibler divergence of the class after the vote from the class proportions. It is 0
        for annotators who guess, and at most the entropy of the classes without abstentions.
        """
        votes = self.priors[:, None] * self.joint
        votes = votes / votes.sum(axis=(1, 2), keepdims=True)
        given_label = votes / np.maximum(votes.sum(axis=1, keepdims=True), TINY)
        ratios = np.log2(np.maximum(given_label, TINY) / self.priors[:, None])
        return np.asarray((votes * ratios).sum(axis=(1, 2)))

    def error_correlation(self, votes: Votes) -> float:
        """Return the intraclass correlation of the errors of two votes on a row, by difficulty."""
        if self.difficulty is None:
            return 0.0
        shares = np.bincount(votes.annotator, minlength=len(self.names)) / len(votes.annotator)
        return self.difficulty.correlation(self.transitions, self.priors, shares)

    def effective_votes(self, votes: Votes) -> float:
        r"""Return how many independent votes the votes on a row are worth, mean over rows.

        Copies count as one vote. With the correlation ρ of errors by difficulty, m votes are then
        worth :math:`m / (1 + (m - 1)\rho)` (Kish 1965).
        """
        correlation = self.error_correlation(votes)
        n_votes = self.weighted_table(votes).sum(axis=1)[votes.voted]
        return float(np.mean(n_votes / (1 + (n_votes - 1) * correlation)))

    def channel(self, votes: Votes) -> Channel:
        """Return P(votes on a row | true class), with a column for each row."""
        logs = self.log_likelihoods(votes)
        largest = logs.max(axis=1, keepdims=True)
        # Small likelihoods are rescaled: exp underflows float64 below about −745.
        likelihoods = np.exp(logs - np.where(largest < -300, largest, 0.0))
        if self.difficulty is None:
            # A single vote takes the entries themselves, without the rounding of a logarithm.
            single = votes.n_votes[votes.row] == 1
            entries = self.joint[votes.annotator[single], :, votes.label[single]]
            likelihoods[votes.row[single]] = entries
        return VoteChannel(likelihoods.T, self.priors, annotators=self, votes=votes)

    def moved(self, true_class: int, change: float) -> Annotators:
        """Return annotators whose noise rate of one class is changed, in the same proportions."""
        is_wrong = np.arange(self.transitions.shape[1]) != true_class
        rates = self.noise_rates[:, true_class, None]
        moved = np.clip(rates + change, 0.0, 1.0)
        before = np.where(is_wrong, rates, 1 - rates)
        after = np.where(is_wrong, moved, 1 - moved)
        joint = self.joint.copy()
        labels = joint[:, true_class]
        # Wrong labels that never occur get equal shares.
        even = labels.sum(axis=1, keepdims=True) / np.where(is_wrong, is_wrong.sum(), 1)
        each = np.where(before > 0, labels / np.where(before > 0, before, 1.0), even)
        joint[:, true_class] = after * each
        return self._with_joint(joint)

    def _with_joint(self, joint: FloatArray) -> Annotators:
        """Return annotators with this `joint`."""
        if self.voting_rates is None:
            return replace(self, transitions=joint)
        transitions, voting_rates = transitions_and_rates(joint)
        return replace(self, transitions=transitions, voting_rates=voting_rates)


def transitions_and_rates(joint: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return transition matrices and voting rates whose product is `joint`, up to a factor.

    The factor of an annotator is 1 unless a voting rate would exceed 1.
    """
    rates = joint.sum(axis=2)
    return joint / rates[:, :, None], rates / np.maximum(rates.max(axis=1, keepdims=True), 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class VoteChannel(Channel):
    """P(votes on a row | true class), with a column for each row."""

    annotators: Annotators = field(kw_only=True)
    votes: Votes = field(kw_only=True)

    @property
    def rate_derivatives(self) -> FloatArray:
        """Derivative of row a by the noise rate of true class a of all annotators, (k, n).

        Wrong labels keep their shares, so log T changes by 1/ε for a wrong label, and by
        −1/(1 − ε) for the right one.
        """
        annotators = self.annotators
        table = annotators.weighted_table(self.votes)
        if annotators.difficulty is not None:
            changes = annotators.difficulty.log_derivatives(table, annotators.transitions)
            return np.asarray(self.transition * changes.T)
        k = self.n_classes
        rates = np.clip(annotators.noise_rates, _LEAST_RATE, 1 - _LEAST_RATE)
        logs = np.where(np.eye(k, dtype=bool), -1 / (1 - rates[:, :, None]), 1 / rates[:, :, None])
        return np.asarray(self.transition * sums_of_votes(table, logs).T)
