r"""Rough noise rates from high-confidence (anchor) rows, where better estimates start.

With class-conditional noise, P(ỹ = b | x) is an average of the rates ε_ab over the classes that x
may belong to. Among rows that certainly belong to class a, the labels follow row a of the
transition matrix. Among rows that only probably do, more labels differ from a. So the labels of the
rows with the highest scores, the *anchor rows*, bound the rates from above. There is no lower
bound: all labels may be clean, with overlapping classes. The estimate is three quarters of the
bound. Its standard error is that of a rate that is uniform between 0 and the share of labels that
contradict the scores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unflip._utils.typing import FloatArray, IntArray
from unflip.labels.noise import NoiseModel

#: Warning if the features, or given scores, do not predict the labels.
NO_SIGNAL = (
    "The features do not predict the labels better than chance, so wrong labels cannot be "
    "identified and the estimated noise rates are meaningless. Add rows or other features, or pass "
    "a NoiseModel."
)
#: Warning if rows and labels hardly determine the noise rates.
NOT_IDENTIFIABLE = (
    "The noise rates are hardly identifiable from these data, so their standard errors are large. "
    "Pass the rates or the class priors if you know them, or the true labels of some rows."
)
#: Largest estimate of ε₊ + ε₋, just below the limit of 1 that `NoiseModel` requires; a choice.
LARGEST_RATE_SUM = 0.999
#: Smallest eigenvalue of the transition (for two classes 1 − ε₊ − ε₋) of an estimate; a choice.
_SMALLEST_EIGENVALUE = 0.05
#: Smallest prior of a class, as a share of its observed proportion; a choice.
_SMALLEST_PRIOR = 0.1
#: Estimated rate, as a share of its upper bound; a choice, see docs/noise_rates.md.
_SHARE_OF_BOUND = 0.75
#: Anchor rows of a class, as a share of the number of its labels; a choice.
_ANCHOR_SHARE = 0.2
#: Fewest anchor rows of a class, and weight, in rows, of the shrinkage towards all classes.
_FEWEST_ANCHORS = 10.0


@dataclass(frozen=True, eq=False)
class RateEstimate:
    """A transition matrix and its standard errors, k×k each."""

    transition: FloatArray
    errors: FloatArray


def anchor_rates(scores: FloatArray, codes: IntArray, weights: FloatArray) -> RateEstimate:
    """Estimate the rates from the rows with the highest scores for each class.

    Parameters
    ----------
    scores : ndarray of shape (n, k)
        Leave-one-out scores of each class.
    codes, weights : ndarray of shape (n,)
        Observed class and weight of each row.
    """
    k = scores.shape[1]
    sizes = np.bincount(codes, weights, minlength=k)
    # At most a third of all rows.
    n_anchors = np.clip(_ANCHOR_SHARE * sizes, _FEWEST_ANCHORS, sizes.sum() * (1 / 3))
    shares = np.stack(
        [_top_label_shares(scores[:, a], codes, weights, n_anchors[a], k) for a in range(k)]
    )
    bounds = _shrunk(shares, n_anchors)
    rates = np.where(np.eye(k, dtype=bool), 0.0, _SHARE_OF_BOUND * bounds)
    largest = _contradicting_shares(scores, codes, weights)
    # Variance of a uniform rate, squared distance from its mean, and sampling error.
    variance = (
        largest**2 / 12
        + (largest / 2 - rates) ** 2
        + _SHARE_OF_BOUND**2 * bounds * (1 - bounds) / n_anchors[:, None]
    )
    return RateEstimate(with_diagonal(rates), with_diagonal_errors(np.sqrt(variance)))


def _shrunk(shares: FloatArray, n_anchors: FloatArray) -> FloatArray:
    """Shrink the label shares of each class towards the average over classes.

    The average has the noise rate of all anchor rows together, with wrong labels in proportion to
    the numbers of anchor rows.

    Parameters
    ----------
    shares : ndarray of shape (k, k)
        Shares of the observed classes among the anchor rows of each class.
    n_anchors : ndarray of shape (k,)
        Number of anchor rows.
    """
    overall = np.average(1 - np.diag(shares), weights=n_anchors)
    average = with_diagonal(overall * n_anchors / (n_anchors.sum() - n_anchors[:, None]))
    counts = n_anchors[:, None]
    return np.asarray((counts * shares + _FEWEST_ANCHORS * average) / (counts + _FEWEST_ANCHORS))


def with_diagonal(rates: FloatArray) -> FloatArray:
    """Return off-diagonal rates with the diagonal that makes rows sum to 1."""
    transition = rates.copy()
    np.fill_diagonal(transition, 0.0)
    np.fill_diagonal(transition, 1 - transition.sum(axis=1))
    return transition


def with_diagonal_errors(errors: FloatArray) -> FloatArray:
    """Return errors of independent off-diagonal rates with those of the diagonal."""
    completed = errors.copy()
    np.fill_diagonal(completed, 0.0)
    np.fill_diagonal(completed, np.sqrt((completed**2).sum(axis=1)))
    return completed


def _top_label_shares(
    score: FloatArray, codes: IntArray, weights: FloatArray, top_weight: float, k: int
) -> FloatArray:
    """Return the shares of observed classes among the highest scores, of this total weight.

    Equal scores enter together. Half a row is added to each class, so that no share is 0.
    """
    _, position = np.unique(-score, return_inverse=True)
    pooled = np.bincount(position, weights)
    fraction = np.clip(top_weight - (np.cumsum(pooled) - pooled), 0, pooled) / pooled
    counts = np.bincount(codes, weights * fraction[position], minlength=k) + 0.5
    return np.asarray(counts / counts.sum())


def _contradicting_shares(scores: FloatArray, codes: IntArray, weights: FloatArray) -> FloatArray:
    """Return the shares of observed classes among the rows of each predicted class, k×k."""
    k = scores.shape[1]
    predicted = np.argmax(scores - np.average(scores, axis=0, weights=weights), axis=1)
    counts = np.bincount(predicted * k + codes, weights, minlength=k * k).reshape(k, k) + 0.5
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def consistent_noise(
    transition: FloatArray, observed: FloatArray, *, is_sure: bool = False
) -> NoiseModel:
    """Return the noise model with priors that explain the observed proportions.

    The rates are halved, at most three times, until such priors exist and the labels are
    informative: the determinant of the transition, the product of its k − 1 eigenvalues beside 1,
    must not be too small. Otherwise labels are taken to be clean.

    Parameters
    ----------
    transition : ndarray of shape (k, k)
        Estimated transition matrix.
    observed : ndarray of shape (k,)
        Observed class proportions.
    is_sure : bool
        Whether features clearly predict the labels. The geometric mean of the eigenvalues then
        replaces their product, which gets small for many classes.
    """
    k = len(observed)
    identity = np.eye(k)
    smallest = _SMALLEST_EIGENVALUE ** (k - 1) if is_sure else _SMALLEST_EIGENVALUE
    for factor in (1.0, 0.5, 0.25, 0.125):
        candidate = identity + factor * (transition - identity)
        if np.linalg.det(candidate) > smallest:
            priors = np.linalg.solve(candidate.T, observed)
            if (priors > _SMALLEST_PRIOR * observed).all():
                return NoiseModel(candidate, priors / priors.sum())
    return NoiseModel(identity, observed)


def uninformative_noise(observed: FloatArray) -> NoiseModel:
    """Return noise that draws half of the labels at random and keeps the class proportions.

    For scores that do not predict the labels: their anchor rows are meaningless, and priors that
    follow from the rates of these would be far off.
    """
    transition = 0.5 * np.eye(len(observed)) + 0.5 * observed
    return NoiseModel(transition / transition.sum(axis=1, keepdims=True), observed)
