"""Directions of log-odds by the shape of whitened scores: EM for Gaussian classes with a common covariance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unflip._utils.arrays import (
    LARGE_BLOCK,
    TINY,
    as_numpy,
    at_least,
    expit,
    in_columns,
    is_numpy,
    like,
    namespace,
    pick,
    times_table,
)
from unflip._utils.typing import Array, FloatArray
from unflip.calibration.coupling import Coupling
from unflip.calibration.intercepts import class_probabilities
from unflip.labels.noise import Channel

_TOLERANCE = 1e-5  # of the mixture's directions: labels have the last word
MAX_ROUNDS = 100
_BLOCK = 2**18  # numbers of a block of rows
_LEAST_LEFT = (
    1e-3  # of a row's own share that a class keeps without the row: less is rounding error
)
# 1 − leverage of a row in the covariance; it would be 0 for a row that alone spans a direction
_LEAST_SLACK = 0.1


@dataclass(frozen=True, eq=False)
class ScoreMixture:
    """Gaussian classes of whitened scores, by EM in which the observed label of each row acts as a prior.

    Attributes
    ----------
    mass : ndarray of shape (k,)
        ClassProportions of the classes.
    means : ndarray of shape (k, r)
        Their means m.
    precision : ndarray of shape (r, r)
        Inverse of their common covariance.
    member : array of shape (n, k)
        Posterior of each row's class, by label and score, that mass, means and precision were found
        with.
    """

    mass: FloatArray
    means: FloatArray
    precision: FloatArray
    member: Array

    @classmethod
    def fit(
        cls,
        standard: Array,
        codes: Array,
        share: Array,
        noise: Channel,
        smallest_variance: float,
    ) -> ScoreMixture:
        """Fit by EM; parameters are those of `directions_by_shape`."""
        label_prior, scores = pick(_log_posterior(noise), codes), with_one(standard)
        found = cls.of(scores, pick(noise.posterior, codes), share, smallest_variance)
        for _ in range(MAX_ROUNDS - 1):
            logits = found.logits(scores)
            logits += label_prior
            member = class_probabilities(logits)
            previous, found = found, cls.of(scores, member, share, smallest_variance)
            if settled(_about_their_mean(found.directions), _about_their_mean(previous.directions)):
                break
        return found

    @classmethod
    def of(
        cls, scores: Array, member: Array, share: Array, smallest_variance: float
    ) -> ScoreMixture:
        """Return the mixture that given posteriors of the classes make of whitened scores `with_one`."""
        sums = as_numpy((member * share[:, None]).T @ scores)
        mass, means = sums[:, -1], sums[:, :-1] / np.maximum(sums[:, -1:], TINY)
        values, vectors = np.linalg.eigh(np.eye(means.shape[1]) - (mass * means.T) @ means)
        precision = (vectors / np.maximum(values, smallest_variance)) @ vectors.T
        return cls(mass, means, precision, member)

    @property
    def directions(self) -> FloatArray:
        """C⁻¹(m_a − m₀), (r, k)."""
        return np.asarray(self.precision @ (self.means - self.means[0]).T)

    @property
    def middle(self) -> FloatArray:
        """Value midway between m_a and m₀ along each direction, (k,)."""
        return np.asarray(np.einsum("ar,ra->a", self.means + self.means[0], self.directions) / 2)

    def logits(self, scores: Array, intercepts: FloatArray | float = 0.0) -> Array:
        """Log-odds of whitened scores `with_one`, (n, k), and these intercepts."""
        return times_table(scores, np.vstack([self.directions, intercepts - self.middle]))

    def left_out_logits(self, standard: Array, share: Array, coupling: Coupling | None) -> Array:
        r"""Logits of each row by a mixture that has seen neither the row nor, to first order, its label, (n, k).

        Without row i, whose label adds u to its target and Nⱼᵢu to the other scores zⱼ, the sums
        behind the means are

        .. math:: \sum_{j \ne i} \pi_j q_{ja} (z_j - N_{ji} u) = S_a - \pi_i q_{ia} z_i - \nu_{ia} u,

        with ν = Σⱼ πⱼqⱼNⱼᵢ, and the covariance loses πᵢeeᵀ + ξuᵀ + uξᵀ − κuuᵀ, where e is the
        distance of zᵢ to its own mean, ξ = Σⱼ πⱼNⱼᵢeⱼ and κ = Σⱼ πⱼNⱼᵢ². Its inverse follows to
        first order, for e exactly.
        """
        if coupling is None:
            return self._in_parts(standard, self.member, share)
        rows, n_classes = coupling.rows, self.means.shape[0]
        moved = in_columns(
            coupling.sums(namespace(standard).concat([self.member, standard], axis=1))
        )
        standard, member = rows.average(standard), rows.average(self.member)
        columns = (
            coupling.own,
            coupling.power()[:, None],
            moved[:, :n_classes],
            moved[:, n_classes:],
        )
        return rows.of_members(self._in_parts(standard, member, coupling.leaving, *columns))

    def _in_parts(self, *columns: Array) -> Array:
        """Return `_without_own_row`, made of so many rows at a time that what it takes fits into the cache."""
        xp, n_rows = namespace(columns[0]), columns[0].shape[0]
        height = max((_BLOCK if is_numpy(columns[0]) else LARGE_BLOCK) // self.means.size, 1)
        parts = (slice(start, min(start + height, n_rows)) for start in range(0, n_rows, height))
        found = [
            self._without_own_row(*(column[part, ...] for column in columns)).T for part in parts
        ]
        return _from_first(xp.concat(found, axis=1).T)

    def _without_own_row(
        self, standard: Array, member: Array, share: Array, *coupled: Array
    ) -> Array:
        means, precision = self.means, self.precision
        mass, sums = like(self.mass, standard), self.mass[:, None] * self.means
        own_mass = share[:, None] * member
        along = times_table(standard, precision)
        size, by_class = _between(along, standard), times_table(along, sums.T)
        level = like(np.einsum("ar,rs,as->a", sums, precision, sums), standard)
        linear, squared = (
            by_class - own_mass * size,
            level - 2 * own_mass * by_class + own_mass**2 * size,
        )
        off = standard - times_table(member, means)
        off_along = times_table(off, precision)
        of_means = times_table(off_along, means.T)
        kept = share[:, None] / at_least(
            1 - share[:, None] * _between(off_along, off), _LEAST_SLACK
        )
        bent = kept * of_means * (_between(off_along, standard) - of_means / 2)
        if coupled:
            own, power, class_part, moved = coupled
            score_part = moved - times_table(class_part, means)
            own_along, moved_along = times_table(own, precision), times_table(score_part, precision)
            own_score, own_of_means, moved_of_means = (
                _between(own_along, standard),
                times_table(own_along, means.T),
                times_table(moved_along, means.T),
            )
            linear -= class_part * own_score
            squared += class_part * (
                class_part * _between(own_along, own) - 2 * times_table(own_along, sums.T)
            )
            squared += 2 * class_part * own_mass * own_score
            bent += own_of_means * (
                _between(moved_along, standard) - power * own_score + power * own_of_means / 2
            )
            bent += moved_of_means * (own_score - own_of_means)
        left = at_least(mass - own_mass, _LEAST_LEFT * share[:, None])
        return linear / left - squared / (2 * left**2) + bent


def with_one(standard: Array) -> Array:
    """Return scores and a column of 1: one product with them does for means and proportions, or for intercepts too."""
    xp = namespace(standard)
    return xp.concat([standard.T, xp.ones_like(standard[:, :1]).T]).T


def _between(one: Array, other: Array) -> Array:
    """Products of the rows of two arrays, (n, 1)."""
    return namespace(one).sum(one * other, axis=1, keepdims=True)


def _from_first(logits: Array) -> Array:
    return logits - logits[:, :1]


def directions_by_shape(
    standard: Array, codes: Array, share: Array, noise: Channel, smallest_variance: float
) -> tuple[FloatArray, FloatArray]:
    """Directions C⁻¹(m_a − m₀) of the Gaussian mixture, (r, k), from whitened scores, by EM, and the scores midway."""
    if standard.shape[1] == 1 and noise.n_classes == 2:
        slope, midway = _slope_by_shape(
            standard[:, 0], label_log_odds(codes, noise), share, smallest_variance
        )
        return np.array([[0.0, slope]]), np.array([0.0, slope * midway])
    mixture = ScoreMixture.fit(standard, codes, share, noise, smallest_variance)
    return mixture.directions, mixture.middle


def shape_logits(standard: Array, directions: FloatArray, middle: FloatArray) -> Array:
    """Log-odds of whitened scores, (n, k), but for the intercepts, which are 0 for Gaussian classes of the same size."""
    logits = times_table(standard, directions)
    logits -= like(middle, standard)
    return logits


def _about_their_mean(directions: FloatArray) -> FloatArray:
    """Directions whichever class is called the first: EM must not stop earlier by another name."""
    return np.asarray(directions - directions.mean(axis=1, keepdims=True))


def _slope_by_shape(
    standard: Array, label_log_odds: Array, share: Array, smallest: float
) -> tuple[float, float]:
    """Slope of one score of two classes, as `directions_by_shape` finds it, and the score midway: means lie about 0."""
    weights = namespace(standard).stack([share, share * standard])
    member = expit(label_log_odds)
    slope = midway = 0.0
    for _ in range(MAX_ROUNDS):
        mass, moment = map(float, as_numpy(weights @ member))
        upper, lower = moment / mass, -moment / (1 - mass)
        midway = (upper + lower) / 2
        within = max(1 - mass * upper**2 - (1 - mass) * lower**2, smallest)
        previous, slope = slope, (upper - lower) / within
        if settled(slope, previous):
            break
        member = expit(label_log_odds + slope * (standard - midway))
    return slope, midway


def settled(slopes: FloatArray | float, previous: FloatArray | float) -> bool:
    """Whether EM moves slopes no further than they need be known."""
    return bool(np.abs(slopes - previous).max() <= _TOLERANCE * (1 + np.abs(slopes).max()))


def _log_posterior(noise: Channel) -> FloatArray:
    """Log P(true | observed), row = observed class."""
    with np.errstate(divide="ignore"):  # the log of 0 is −∞: impossible
        return np.asarray(np.log(noise.posterior))


def label_log_odds(codes: Array, noise: Channel) -> Array:
    """Log-odds of the second of two classes by the observed label of each row, (n,)."""
    log_posterior = _log_posterior(noise)
    return pick(log_posterior[:, 1] - log_posterior[:, 0], codes)
