r"""Transition matrices of annotators, estimated from their votes and from features.

Annotator w gives label b to a row of true class a with probability Tʷ_ab, independently of the
features and of the other annotators, so P(votes | a) = Π Tʷ_ab (Dawid and Skene 1979). EM repeats
two steps. Bayes' rule gives the posterior q of the true classes. The matrices follow from q:

.. math:: T^w_{ab} = \frac{n^w_{ab} + s\, T_{ab}}{\sum_b n^w_{ab} + s},

where n is the sum of q(a) over the rows that w labelled b, and T is the matrix of all votes
together. The Dirichlet prior of s pseudo-votes shrinks annotators with few votes towards T; s is
large if annotators hardly differ. With features, P(a | xᵢ) replaces the class proportions (Raykar
and others 2010). It must be leave-one-out: computed without the votes on row i.

**Abstentions.** If every annotator saw every row, how often an annotator votes may depend on the
class. A rule that only ever says b is informative because it votes on more rows of class b than of
others. With n_b votes for b on n rows, Bayes' rule gives

.. math:: P(w \text{ says } b \mid a) = \frac{n^w_b}{n}\,
          \frac{P^w(a \mid b)}{\pi_a}, \qquad
          P^w(a \mid b) = \frac{n^w_{ab} + s\, P(a \mid b)}{n^w_b + s},

where the Dirichlet prior shrinks the precision of each annotator and label, P(a | b), towards that
of all votes together. Missing votes are not multiplied in. Whether no rule applies to a row says
little about its class, and rules do not abstain independently: on messages labelled by rules, their
factors lowered the accuracy of the relabelled rows from 95% to 53%. The log-odds of features assume
the class proportions that they were calibrated with, at the start those of the rows with votes. EM
adds the change of these proportions to them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, softmax

from unflip._utils.arrays import TINY
from unflip._utils.typing import FloatArray, IntArray
from unflip.labels.codes import UNCHECKED
from unflip.labels.noise import Channel, NoiseModel
from unflip.labels.votes import Votes

#: Candidates for s, in votes on each class: a grid of powers of two from 1 to 1024. A choice: with
#: every second one, posteriors of simulated rows move by 0.001; with those up to 32, by 0.01; with
#: more beyond 1024, not at all.
_STRENGTHS = 2.0 ** np.arange(11)
#: Limit on EM rounds for one value of s, so that slow ones end. Simulated votes need at most 50.
_MAX_ROUNDS = 500
# Smallest noise rate and smallest 1 − rate in derivatives, so that these are finite.
_LEAST_RATE = 1e-12
#: EM stops once no posterior changes by more than this. Ten times more or less moves posteriors of
#: simulated rows by less than 1e-6.
_TOLERANCE = 1e-6


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
        P(annotator w votes | TRUE class a), if missing votes are abstentions.

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
        if not np.array_equal(self.names, votes.annotators):
            raise ValueError(
                "The votes are from other annotators than the transition matrices: pass votes of "
                "the same annotators."
            )
        with np.errstate(divide="ignore"):  # log 0 = −∞: a label that an annotator never gives
            logs = np.log(self.joint)
        k = logs.shape[1]
        sums = np.asarray(votes.table @ logs.transpose(0, 2, 1).reshape(-1, k))
        for row in np.flatnonzero(sums.max(axis=1) == -np.inf):
            labels = votes.classes[votes.label[votes.row == row]].tolist()
            raise ValueError(
                f"The votes {labels} on row {row} have probability 0 for every class: pass noise= "
                "without zeros."
            )
        return sums

    def channel(self, votes: Votes) -> Channel:
        """Return P(votes on a row | true class), with a column for each row."""
        logs = self.log_likelihoods(votes)
        largest = logs.max(axis=1, keepdims=True)
        # Small likelihoods are rescaled: exp underflows float64 below about −745.
        likelihoods = np.exp(logs - np.where(largest < -300, largest, 0.0))
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
        return replace(self, **_transitions_and_rates(joint))


def _transitions_and_rates(joint: FloatArray) -> dict[str, FloatArray]:
    """Return transition matrices and voting rates whose product is `joint`, up to a factor.

    The factor of an annotator is 1 unless a voting rate would exceed 1.
    """
    rates = joint.sum(axis=2)
    transitions = joint / rates[:, :, None]
    return {
        "transitions": transitions,
        "voting_rates": rates / np.maximum(rates.max(axis=1, keepdims=True), 1.0),
    }


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
        k = self.n_classes
        rates = np.clip(self.annotators.noise_rates, _LEAST_RATE, 1 - _LEAST_RATE)
        logs = np.where(np.eye(k, dtype=bool), -1 / (1 - rates[:, :, None]), 1 / rates[:, :, None])
        changes = np.asarray(self.votes.table @ logs.transpose(0, 2, 1).reshape(-1, k))
        return np.asarray(self.transition * changes.T)


@dataclass(frozen=True, eq=False, kw_only=True)
class Crowd:
    """Votes on rows, with weights, trusted labels and class proportions.

    Attributes
    ----------
    votes : Votes
        Votes on n rows.
    weights : ndarray of shape (n,)
        Weight of each row, as a number of independent rows.
    truth : ndarray of shape (n,)
        True class of the rows with a trusted label, `UNCHECKED` for the others.
    priors : ndarray of shape (k,), optional
        Proportions of the true classes. None: they are estimated.
    """

    votes: Votes
    weights: FloatArray
    truth: IntArray
    priors: FloatArray | None = None

    def by_agreement(self) -> Annotators:
        """Estimate the transition matrices from how often annotators agree on a row.

        The estimates are optimistic, because an annotator's own votes count. They are a safe start
        of EM, which may swap rare classes if it starts from votes alone. Rows with a single vote
        are ignored, unless their label is trusted or they are all that most rules vote on.
        """
        fewest = 1 if self.votes.abstentions else 2
        is_used = (self.votes.n_votes >= fewest) | (self.truth != UNCHECKED)
        counts = self.votes.counts + 1 / len(self.votes.classes)
        shares = self._with_truth(counts / counts.sum(axis=1, keepdims=True))
        crowd = replace(self, weights=np.where(is_used, self.weights, 0.0))
        return crowd._estimate(shares, crowd._strength(shares))

    def with_features(self, log_odds: FloatArray, before: Annotators) -> Annotators:
        """Estimate the transition matrix of each annotator from votes and features.

        Parameters
        ----------
        log_odds : ndarray of shape (n, k)
            Leave-one-out log-odds of each class against the first, from the features.
        before : Annotators
            Annotators that the log-odds were computed with, where EM starts.
        """
        annotators = before
        posterior = self._posterior(before, log_odds)
        strength = np.inf
        # Better estimates show larger differences between annotators, so s only decreases.
        while (likeliest := self._strength(posterior)) < strength:
            strength = likeliest
            for _ in range(_MAX_ROUNDS):
                annotators = self._estimate(posterior, strength)
                previous = posterior
                if self.votes.abstentions and self.priors is None:
                    log_odds = log_odds + np.log(
                        self._mass(posterior) / self._mass(_probabilities(log_odds))
                    )
                posterior = self._posterior(annotators, log_odds)
                if np.abs(posterior - previous).max() <= _TOLERANCE:
                    break
        return annotators

    def noise(self, annotators: Annotators) -> tuple[NoiseModel, FloatArray]:
        """Return the noise model of a vote drawn at random, and its standard errors."""
        if annotators.voting_rates is None:
            n_votes = np.bincount(self.votes.annotator, self.weights[self.votes.row])
            transition = np.tensordot(n_votes / n_votes.sum(), annotators.transitions, axes=1)
        else:
            transition = annotators.joint.sum(axis=0)
        transition /= transition.sum(axis=1, keepdims=True)
        if len(transition) == 2 and np.trace(transition) <= 1:
            raise ValueError(
                "The votes agree no better than by chance, so noise rates cannot be estimated "
                "from them: pass noise=, or more votes."
            )
        n_true = float(self.weights[self.votes.voted].sum()) * annotators.priors
        errors = np.sqrt(transition * (1 - transition) / n_true[:, None])
        return NoiseModel(transition, annotators.priors), errors

    def _counts(self, posterior: FloatArray) -> FloatArray:
        """Return n of each annotator, (w, k, k): by true class and label."""
        k = posterior.shape[1]
        weighted = self.weights[:, None] * posterior
        return np.asarray(self.votes.table.T @ weighted).reshape(-1, k, k).transpose(0, 2, 1)

    def _shrinkable(self, posterior: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return counts whose last axis has a Dirichlet prior, (w, k, k), and its mean, (k, k).

        The last axis is the label given the true class or, with abstentions, the true class given
        the label.
        """
        counts = self._counts(posterior)
        if self.votes.abstentions:
            counts = counts.transpose(0, 2, 1)
        pooled = counts.sum(axis=0) + 1 / posterior.shape[1]
        return counts, pooled / pooled.sum(axis=1, keepdims=True)

    def _strength(self, posterior: FloatArray) -> float:
        """Return the s under which the counts are likeliest, of the Dirichlet prior."""
        counts, pooled = self._shrinkable(posterior)

        def log_likelihood(s: float) -> float:
            each = gammaln(counts + s * pooled) - gammaln(s * pooled)
            return float(each.sum() + (gammaln(s) - gammaln(counts.sum(axis=2) + s)).sum())

        return float(_STRENGTHS[np.argmax([log_likelihood(s) for s in _STRENGTHS.tolist()])])

    def _estimate(self, posterior: FloatArray, strength: float) -> Annotators:
        """Return transition matrices and priors for given posteriors of the true classes."""
        votes, pooled = self._shrinkable(posterior)
        counts = votes + strength * pooled
        shrunk = counts / counts.sum(axis=2, keepdims=True)
        if self.priors is None:
            mass = self._mass(posterior)
            priors = mass / mass.sum()
        else:
            priors = self.priors
        tables = {"transitions": shrunk}
        # Sums of q² instead of q: a row counts in proportion to the certainty of its class.
        n_effective = self._counts(posterior**2).sum(axis=2, keepdims=True)
        if self.votes.abstentions:
            shares = np.maximum(votes.sum(axis=2, keepdims=True), TINY) / self.weights.sum()
            tables = _transitions_and_rates((shares * shrunk / priors).transpose(0, 2, 1))
        else:
            n_effective += strength
        transitions = tables["transitions"]
        errors = np.sqrt(transitions * (1 - transitions) / (n_effective + 1))
        return Annotators(
            names=self.votes.annotators, priors=priors, transitions_std=errors, **tables
        )

    def _posterior(self, annotators: Annotators, log_odds: FloatArray) -> FloatArray:
        """Return P(true class | votes, features), (n, k)."""
        return self._with_truth(_probabilities(annotators.log_likelihoods(self.votes) + log_odds))

    def _mass(self, posterior: FloatArray) -> FloatArray:
        """Return the weight of each true class, with one row added so that no class is empty."""
        return np.asarray(self.weights @ posterior + 1)

    def _with_truth(self, posterior: FloatArray) -> FloatArray:
        """Return the posterior with probability 1 for trusted labels."""
        certain = np.eye(posterior.shape[1])[np.maximum(self.truth, 0)]
        return np.where((self.truth == UNCHECKED)[:, None], posterior, certain)


def _probabilities(log_odds: FloatArray) -> FloatArray:
    """Return the class probabilities, (n, k), of log-odds."""
    return np.asarray(softmax(log_odds, axis=1))
