"""Directions of log-odds by the shape of whitened scores: EM for Gaussian classes with a common covariance."""

from __future__ import annotations

import numpy as np

from unflip._arrays import as_numpy, expit, like, namespace, pick
from unflip._typing import Array, FloatArray
from unflip.noise import Channel
from unflip.proportions import class_probabilities
from unflip.steepness import TINY

_TOLERANCE = 1e-5  # of the mixture's directions: labels have the last word
MAX_ROUNDS = 300


def directions_by_shape(
    standard: Array,
    codes: Array,
    share: Array,
    noise: Channel,
    smallest_variance: float,
    rounds: int = MAX_ROUNDS,
    anchors: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Directions C⁻¹(m_a − m₀) of the Gaussian mixture, (r, k), from whitened scores, by EM, and the scores midway."""
    if standard.shape[1] == 1 and noise.n_classes == 2:
        slope, midway = _slope_by_shape(standard[:, 0], label_log_odds(codes, noise), share, smallest_variance)
        return np.array([[0.0, slope]]), np.array([0.0, slope * midway])
    label_prior, member = pick(_log_posterior(noise), codes), pick(noise.posterior, codes)
    directions, middle = np.zeros((standard.shape[1], noise.n_classes)), np.zeros(noise.n_classes)
    for _ in range(rounds):
        previous = directions
        directions, middle, _ = mixture_step(standard, member, share, smallest_variance, anchors)
        if settled(_about_their_mean(directions), _about_their_mean(previous)):
            break
        member = class_probabilities(label_prior + shape_logits(standard, directions, middle))
    return directions, middle


def shape_logits(standard: Array, directions: FloatArray, middle: FloatArray) -> Array:
    """Log-odds of whitened scores, (n, k), but for the offsets, which are 0 for Gaussian classes of the same size."""
    return standard @ like(directions, standard) - like(middle, standard)


def _about_their_mean(directions: FloatArray) -> FloatArray:
    """Directions whichever class is called the first: EM must not stop earlier by another name."""
    return np.asarray(directions - directions.mean(axis=1, keepdims=True))


def mixture_step(
    standard: Array,
    member: Array,
    share: Array,
    smallest_variance: float,
    anchors: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Directions C⁻¹(m_a − m₀), the score midway between m_a and m₀ along them, and the mass of each class."""
    mass = as_numpy(share @ member)
    means = as_numpy((member * share[:, None]).T @ standard) / np.maximum(mass, TINY)[:, None]
    if anchors is not None:
        chance = smallest_variance * float((as_numpy(share @ member**2) / np.maximum(mass, TINY)).sum())
        expected = _along(means, mass, anchors)
        means = expected + _shrunk(means - expected, mass, chance)
    within = _floored(np.eye(standard.shape[1]) - (mass * means.T) @ means, smallest_variance)
    directions = np.linalg.solve(within, (means - means[0]).T)
    return directions, np.einsum("ar,ra->a", means + means[0], directions) / 2, mass


def _along(means: FloatArray, mass: FloatArray, anchors: FloatArray) -> FloatArray:
    """Return the multiple of the anchors, about their mean, that comes closest to the class means."""
    apart = anchors - mass @ anchors
    power = float((mass[:, None] * apart**2).sum())
    factor = float((mass[:, None] * apart * means).sum()) / power if power > 0 else 0.0
    return np.asarray(max(factor, 0.0) * apart)


def _shrunk(means: FloatArray, mass: FloatArray, chance: float) -> FloatArray:
    """Shrink the class means along each axis of their scatter by the part of it that chance explains.

    Along an axis of scatter b, of a total variance of 1, means of classes that are alike would scatter by `chance`, the
    sum over the classes of Σ member²/(Σ member)² times their mass; so (b − chance)/(1 − chance) of it is theirs.
    """
    scatter, axes = np.linalg.eigh((mass * means.T) @ means)
    own = np.clip((scatter - chance) / max(1 - chance, TINY), 0.0, None)
    kept = np.minimum(own / np.maximum(scatter, TINY), 1.0)
    return np.asarray((means @ axes * kept) @ axes.T)


def _slope_by_shape(standard: Array, label_log_odds: Array, share: Array, smallest: float) -> tuple[float, float]:
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


def _floored(within: FloatArray, smallest: float) -> FloatArray:
    """Covariance with eigenvalues of at least `smallest`."""
    values, vectors = np.linalg.eigh(within)
    return np.asarray((vectors * np.maximum(values, smallest)) @ vectors.T)


def _log_posterior(noise: Channel) -> FloatArray:
    """Log P(true | observed), row = observed class."""
    with np.errstate(divide="ignore"):  # the log of 0 is −∞: impossible
        return np.asarray(np.log(noise.posterior))


def label_log_odds(codes: Array, noise: Channel) -> Array:
    """Log-odds of the second of two classes by the observed label of each row, (n,)."""
    log_posterior = _log_posterior(noise)
    return pick(log_posterior[:, 1] - log_posterior[:, 0], codes)
