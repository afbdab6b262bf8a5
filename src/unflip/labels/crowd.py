r"""Annotators estimated from votes and features: transition matrices, and errors they share.

EM repeats two steps. Bayes' rule gives the posterior q of the true classes from the likelihood of
the votes. The transition matrices follow from q:

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
of all votes together. The log-odds of features assume the class proportions that they were
calibrated with. EM adds the change of these proportions to them.

**Shared errors.** Groups of annotators that copy each other are found first, then the difficulty of
rows is estimated: the spread and the score correlation of largest likelihood on grids, if votes on
rows held out are likelier with them than without.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import gammaln, logsumexp, softmax

from unflip._utils.arrays import TINY
from unflip._utils.typing import FloatArray, IntArray
from unflip.labels.annotator_groups import AnnotatorGroups, candidate_groups, copying_of
from unflip.labels.annotators import Annotators, transitions_and_rates
from unflip.labels.codes import UNCHECKED
from unflip.labels.noise import NoiseModel
from unflip.labels.shared_difficulty import SharedDifficulty, standardized_margins
from unflip.labels.votes import Votes

#: Candidates for s, in votes on each class: a grid of powers of two from 1 to 1024. A choice: with
#: every second one, posteriors of simulated rows move by 0.001; with those up to 32, by 0.01; with
#: more beyond 1024, not at all.
_STRENGTHS = 2.0 ** np.arange(11)
#: Limit on EM rounds for one value of s, so that slow ones end. Simulated votes need at most 50.
_MAX_ROUNDS = 500
#: EM stops once no posterior changes by more than this. Ten times more or less moves posteriors of
#: simulated rows by less than 1e-6.
_TOLERANCE = 1e-6
# The same while candidates for the difficulty are compared.
_SEARCH_TOLERANCE = 1e-3
# Candidates for the spread τ of the difficulty, and for its correlation r with the scores.
_SPREADS = np.linspace(0.0, 1.4, 15)
_CORRELATIONS = np.linspace(0.0, 0.75, 7)
# Steps on these grids, one after the other.
_STRIDES = (2, 1)
# Annotators with fewer votes may give one label by chance.
_FEWEST_VOTES = 5
# Rows by which candidates for the difficulty are compared, at most.
_SAMPLED_ROWS = 20_000


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

    def by_agreement(self, groups: AnnotatorGroups | None = None) -> Annotators:
        """Estimate the transition matrices from how often annotators agree on a row.

        The estimates are optimistic, because an annotator's own votes count. They are a safe start
        of EM, which may swap rare classes if it starts from votes alone. Rows with a single vote
        are ignored, unless their label is trusted or they are all that most rules vote on.

        Parameters
        ----------
        groups : AnnotatorGroups, optional
            Annotators that copy each other. None: those that may do so count as one.
        """
        self._check_that_annotators_choose()
        fewest = 1 if self.votes.abstentions else 2
        is_used = (self.votes.n_votes >= fewest) | (self.truth != UNCHECKED)
        if groups is None and self._candidates:
            w = len(self.votes.annotators)
            groups = AnnotatorGroups.of(self._candidates, [1.0] * len(self._candidates), w)
        each = self.votes.weights if groups is None else groups.vote_weights(self.votes)
        counts = self.votes.weighted_counts(each) + 1 / len(self.votes.classes)
        shares = self._with_truth(counts / counts.sum(axis=1, keepdims=True))
        crowd = replace(self, weights=np.where(is_used, self.weights, 0.0))
        return replace(crowd._estimate(shares, crowd._strength(shares), None), groups=groups)

    def with_features(self, log_odds: FloatArray, before: Annotators) -> Annotators:
        """Estimate the transition matrix of each annotator from votes and features.

        Parameters
        ----------
        log_odds : ndarray of shape (n, k)
            Leave-one-out log-odds of each class against the first, from the features.
        before : Annotators
            Annotators that the log-odds were computed with, where EM starts.
        """
        independent = self._refined(log_odds, before.independent)
        if not self._can_share_errors:
            return independent
        on_their_own = self._with_difficulty(log_odds, independent, before)
        groups = self._groups(log_odds, on_their_own, before)
        if groups is None:
            return on_their_own
        return self._in_groups(groups, log_odds, before)

    def _check_that_annotators_choose(self) -> None:
        """Raise ValueError if votes without abstentions are those of rules with one label each."""
        if self.votes.abstentions:
            return
        counts = self.votes.table.sum(axis=0).reshape(-1, len(self.votes.classes))
        counts = counts[counts.sum(axis=1) >= _FEWEST_VOTES]
        if len(counts) > 1 and (counts.max(axis=1) == counts.sum(axis=1)).all():
            raise ValueError(
                f"The {len(counts)} annotators with at least {_FEWEST_VOTES} votes only ever give "
                "one label each, so their choices say nothing: if they are rules that abstain, "
                "pass abstentions=True to Votes."
            )

    @cached_property
    def _candidates(self) -> list[IntArray]:
        """Groups of annotators that may copy each other."""
        return candidate_groups(self.votes, self.weights) if self._can_share_errors else []

    @property
    def _can_share_errors(self) -> bool:
        """Whether several annotators vote on the same rows, so that shared errors would show."""
        return not self.votes.abstentions and bool(self.votes.n_votes.max() > 1)

    def _refined(self, log_odds: FloatArray, before: Annotators) -> Annotators:
        """Return annotators under which votes and features are likeliest, by EM."""
        annotators = before
        posterior = self._posterior(before, log_odds)
        strength = np.inf
        # Better estimates show larger differences between annotators, so s only decreases.
        while (likeliest := self._strength(posterior)) < strength:
            strength = likeliest
            annotators, posterior = self._em(log_odds, annotators, posterior, strength)
        return annotators

    def _em(
        self,
        log_odds: FloatArray,
        annotators: Annotators,
        posterior: FloatArray,
        strength: float,
        tolerance: float = _TOLERANCE,
    ) -> tuple[Annotators, FloatArray]:
        """Return annotators and posteriors that EM converges to from a posterior."""
        for _ in range(_MAX_ROUNDS):
            annotators = self._estimate(posterior, strength, annotators)
            previous = posterior
            if self.votes.abstentions and self.priors is None:
                log_odds = log_odds + np.log(
                    self._mass(posterior) / self._mass(_probabilities(log_odds))
                )
            posterior = self._posterior(annotators, log_odds)
            if np.abs(posterior - previous).max() <= tolerance:
                break
        return annotators, posterior

    def _with_difficulty(
        self, log_odds: FloatArray, independent: Annotators, before: Annotators
    ) -> Annotators:
        """Return annotators with the likeliest difficulty, if held-out votes are likelier with it.

        Parameters
        ----------
        log_odds : ndarray of shape (n, k)
            As in `with_features`.
        independent : Annotators
            Annotators that err independently.
        before : Annotators
            Annotators whose difficulty is the first one to be tried.
        """
        rows = self._sampled_rows()
        search = _DifficultySearch(self._on(rows), log_odds[rows], independent)
        found = search.likeliest(before.difficulty)
        if found.difficulty is None:
            return independent
        posterior = self.weights[:, None] * self._posterior(independent, log_odds)
        difficulty = found.difficulty.on_rows(standardized_margins(log_odds, posterior))
        annotators = replace(found, difficulty=difficulty)
        start = self._posterior(annotators, log_odds)
        # Posteriors are less certain with difficulty, so s would be larger than it should be.
        return self._em(log_odds, annotators, start, search.strength)[0]

    def _groups(
        self, log_odds: FloatArray, on_their_own: Annotators, before: Annotators
    ) -> AnnotatorGroups | None:
        """Return groups of annotators that copy each other; None if there are none.

        Parameters
        ----------
        log_odds, before
            As in `with_features`.
        on_their_own : Annotators
            Annotators without groups.
        """
        w = len(self.votes.annotators)
        members, copying = [], []
        for candidate in self._candidates:
            copies = self._refined_in(AnnotatorGroups.of([candidate], [1.0], w), log_odds)
            posterior = self.weights[:, None] * self._posterior(copies, log_odds)
            share = copying_of(candidate, self.votes, posterior, copies.transitions)
            grouped = self._in_groups(AnnotatorGroups.of([candidate], [share], w), log_odds, before)
            gains = self._logs_of_others(candidate, grouped, log_odds)
            gains -= self._logs_of_others(candidate, on_their_own, log_odds)
            if self._is_gain(gains):
                members.append(candidate)
                copying.append(share)
        return AnnotatorGroups.of(members, copying, w) if members else None

    def _in_groups(
        self, groups: AnnotatorGroups, log_odds: FloatArray, before: Annotators
    ) -> Annotators:
        """Return annotators in groups, with the likeliest difficulty."""
        return self._with_difficulty(log_odds, self._refined_in(groups, log_odds), before)

    def _refined_in(self, groups: AnnotatorGroups, log_odds: FloatArray) -> Annotators:
        """Return annotators in groups without difficulty, estimated from their agreement on."""
        return self._refined(log_odds, self.by_agreement(groups))

    def _logs_of_others(
        self, members: IntArray, annotators: Annotators, log_odds: FloatArray
    ) -> FloatArray:
        """Return log P(votes of the others | votes of some annotators, features), (n,)."""
        is_member = np.isin(self.votes.annotator, members)
        of_members = annotators.log_likelihoods(self.votes.only(is_member)) + log_odds
        every = annotators.log_likelihoods(self.votes) + log_odds
        return np.asarray(logsumexp(every, axis=1) - logsumexp(of_members, axis=1))

    def _is_gain(self, gains: FloatArray) -> bool:
        """Return whether the sum of gains in log-likelihood exceeds its standard error."""
        gain = float(self.weights @ gains)
        variance = float(self.weights @ (gains - gain / self.weights.sum()) ** 2)
        return bool(gain > np.sqrt(variance))

    def _sampled_rows(self) -> IntArray:
        """Return random rows with votes, at most `_SAMPLED_ROWS`."""
        voted = np.flatnonzero(self.votes.voted & (self.weights > 0))
        if len(voted) <= _SAMPLED_ROWS:
            return voted
        return np.sort(np.random.default_rng(0).choice(voted, _SAMPLED_ROWS, replace=False))

    def _on(self, rows: IntArray) -> Crowd:
        """Return the crowd on some rows, with all annotators and classes."""
        return replace(
            self, votes=self.votes.on_rows(rows), weights=self.weights[rows], truth=self.truth[rows]
        )

    def log_likelihood(self, annotators: Annotators, log_odds: FloatArray) -> float:
        """Return log P(votes | features), summed over the weighted rows."""
        return float(self.weights @ self._log_likelihoods(annotators, log_odds))

    def _log_likelihoods(self, annotators: Annotators, log_odds: FloatArray) -> FloatArray:
        """Return log P(votes | features) of each row, (n,)."""
        logs = annotators.log_likelihoods(self.votes) + log_odds
        return np.asarray(logsumexp(logs, axis=1) - logsumexp(log_odds, axis=1))

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
        sums = self.votes.counted_table.T @ weighted
        return np.asarray(sums).reshape(-1, k, k).transpose(0, 2, 1)

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

    def _estimate(
        self, posterior: FloatArray, strength: float, before: Annotators | None
    ) -> Annotators:
        """Return transition matrices and priors for given posteriors of the true classes.

        How errors are shared stays that of `before`.
        """
        votes, pooled = self._shrinkable(posterior)
        counts = votes + strength * pooled
        shrunk = counts / counts.sum(axis=2, keepdims=True)
        if self.priors is None:
            mass = self._mass(posterior)
            priors = mass / mass.sum()
        else:
            priors = self.priors
        transitions = shrunk
        voting_rates = None
        # Sums of q² instead of q: a row counts in proportion to the certainty of its class.
        n_effective = self._counts(posterior**2).sum(axis=2, keepdims=True)
        if self.votes.abstentions:
            shares = np.maximum(votes.sum(axis=2, keepdims=True), TINY) / self.weights.sum()
            joint = (shares * shrunk / priors).transpose(0, 2, 1)
            transitions, voting_rates = transitions_and_rates(joint)
        else:
            n_effective += strength
        errors = np.sqrt(transitions * (1 - transitions) / (n_effective + 1))
        estimated = Annotators(self.votes.annotators, transitions, priors, errors, voting_rates)
        return estimated if before is None else estimated.sharing_errors_of(before)

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


@dataclass(frozen=True, eq=False)
class _Fit:
    """Annotators with a difficulty, fitted to rows.

    Attributes
    ----------
    point : tuple of int
        Place of spread and score correlation on their grids.
    annotators : Annotators
        Annotators.
    posterior : ndarray of shape (n, k)
        P(true class | votes, features).
    logs : ndarray of shape (n,)
        log P(votes on the row | features).
    """

    point: tuple[int, int]
    annotators: Annotators
    posterior: FloatArray
    logs: FloatArray


class _DifficultySearch:
    """Likelihood of votes by the spread of the difficulty and its correlation with the scores."""

    def __init__(self, crowd: Crowd, log_odds: FloatArray, independent: Annotators) -> None:
        self._crowd = crowd
        self._log_odds = log_odds
        posterior = crowd._posterior(independent, log_odds)
        self.strength = crowd._strength(posterior)
        self._margins = standardized_margins(log_odds, crowd.weights[:, None] * posterior)
        self._independent = _Fit((0, 0), independent, posterior, np.zeros(len(posterior)))

    def likeliest(self, start: SharedDifficulty | None) -> Annotators:
        """Return annotators with the likeliest difficulty, or none if it does not help.

        Parameters
        ----------
        start : SharedDifficulty or None
            Difficulty to begin with, which helped; None for none.
        """
        point = (0, 0)
        if start is not None:
            point = (
                int(np.abs(_SPREADS - start.spread).argmin()),
                int(np.abs(_CORRELATIONS - start.score_correlation).argmin()),
            )
        fit = self._climb(point, self._independent, self._crowd.weights)
        helps = start is not None or self._helps(fit)
        return fit.annotators if helps else self._independent.annotators

    def _helps(self, fit: _Fit) -> bool:
        """Return whether difficulty raises the log-likelihood of votes on rows held out.

        By more than one standard error. Annotators and difficulty are estimated on half of the
        rows, from `fit` on, and compared to independent errors on the other half. Rows with the
        same scores and votes are in the same half.
        """
        if fit.annotators.difficulty is None:
            return False
        weights = self._crowd.weights
        content = np.column_stack([self._log_odds, self._crowd.votes.counts])
        is_second = np.unique(content, axis=0, return_inverse=True)[1].ravel() % 2 == 1
        gains = np.empty(len(weights))
        for held_out in (is_second, ~is_second):
            known = np.where(held_out, 0.0, weights)
            likeliest = self._climb(fit.point, fit, known)
            independent = self._fitted((0, 0), self._independent, known)
            gains[held_out] = (likeliest.logs - independent.logs)[held_out]
        return self._crowd._is_gain(gains)

    def _climb(self, point: tuple[int, int], start: _Fit, weights: FloatArray) -> _Fit:
        """Return the likeliest fit, by steps on the grids from a point; EM begins at `start`."""
        best = self._fitted(point, start, weights)
        fits = {point: best}
        for stride in _STRIDES:
            likeliest = None
            while likeliest is not best:
                likeliest = best
                for neighbour in _neighbours(*best.point, stride):
                    if neighbour not in fits:
                        fits[neighbour] = self._fitted(neighbour, best, weights)
                best = max(fits.values(), key=lambda fit: float(weights @ fit.logs))
        return best

    def _fitted(self, point: tuple[int, int], start: _Fit, weights: FloatArray) -> _Fit:
        """Return annotators fitted to weighted rows, with the difficulty at a point."""
        annotators = replace(start.annotators, difficulty=None)
        spread, correlation = _SPREADS[point[0]], _CORRELATIONS[point[1]]
        if spread:
            difficulty = SharedDifficulty.of(
                float(spread), float(correlation), self._margins, annotators.transitions
            )
            annotators = replace(annotators, difficulty=difficulty)
        crowd = replace(self._crowd, weights=weights)
        annotators, posterior = crowd._em(
            self._log_odds, annotators, start.posterior, self.strength, _SEARCH_TOLERANCE
        )
        logs = crowd._log_likelihoods(annotators, self._log_odds)
        return _Fit(point, annotators, posterior, logs)


def _neighbours(i: int, j: int, stride: int) -> Iterator[tuple[int, int]]:
    """Return the neighbours of a point of the grids of spread and score correlation."""
    for step_i, step_j in ((-1, 0), (1, 0), (0, -1), (0, 1)):
        neighbour = (i + stride * step_i, j + stride * step_j)
        if 0 <= neighbour[0] < len(_SPREADS) and 0 <= neighbour[1] < len(_CORRELATIONS):
            yield neighbour
