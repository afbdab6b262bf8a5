r"""Noise rates where nothing identifies them: what the surest rows allow, and an honest doubt.

If flips depend on the true class alone, P(ỹ = b | x) is a mean of the rates ε_ab over the classes
that x may belong to. So among rows that surely are of class a the labels show row a of the
transition itself, and among rows that are likely to be, more flips than that: the labels of these
*anchor rows* bound the rates from above. From below nothing does: every label may be right, and the
classes overlap. The estimate keeps three quarters of the bound (labels are as a rule what limits
the surest rows), and its standard error is that of a rate of which nothing is known but that it
lies between 0 and the share of labels that the scores contradict.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unflip._utils.typing import FloatArray, IntArray
from unflip.labels.noise import NoiseModel

_LEAST_TOLD = 0.05  # of two classes 1 − ε₊ − ε₋
_SMALLEST_SHARE_LEFT = 0.1  # of an observed class that flips may leave as its true share
_KEPT = 0.75
#: The anchor rows of a class: this share of its size, but no fewer rows than ten and no more than a third of all.
_SHARE, _FEWEST, _LARGEST_SHARE = 0.2, 10.0, 1 / 3


@dataclass(frozen=True, eq=False)
class RoughRates:
    """A transition and its standard errors, k×k each."""

    transition: FloatArray
    errors: FloatArray


def anchor_rates(scores: FloatArray, codes: IntArray, weights: FloatArray) -> RoughRates:
    """Read the rates off the rows that score highest for each class.

    Parameters
    ----------
    scores : ndarray of shape (n, k)
        Leave-one-out scores of each class.
    codes, weights : ndarray of shape (n,)
        Observed class and weight of each row.
    """
    k = scores.shape[1]
    sizes = np.bincount(codes, weights, minlength=k)
    wanted = np.clip(_SHARE * sizes, _FEWEST, _LARGEST_SHARE * sizes.sum())
    anchors = _pooled(
        np.stack([_labels_at_top(scores[:, a], codes, weights, wanted[a], k) for a in range(k)]),
        wanted,
    )
    rates = np.where(np.eye(k, dtype=bool), 0.0, _KEPT * anchors)
    largest = _contradicted(scores, codes, weights)
    doubt = (
        largest**2 / 12
        + (largest / 2 - rates) ** 2
        + _KEPT**2 * anchors * (1 - anchors) / wanted[:, None]
    )
    return RoughRates(with_diagonal(rates), with_diagonal_errors(np.sqrt(doubt)))


def _pooled(anchors: FloatArray, sizes: FloatArray) -> FloatArray:
    """Move the labels of each group towards what all groups have, as ten more rows would: few say little of one class.

    These rows are flipped as often as those of all groups, to classes in proportion to their sizes.

    Parameters
    ----------
    anchors : ndarray of shape (k, k)
        Shares of the observed classes among the anchor rows of each class.
    sizes : ndarray of shape (k,)
        Number of anchor rows.
    """
    flips = 1 - np.diag(anchors)
    of_all = np.average(flips, weights=sizes)
    others = with_diagonal(of_all * sizes / (sizes.sum() - sizes[:, None]))
    return np.asarray((sizes[:, None] * anchors + _FEWEST * others) / (sizes[:, None] + _FEWEST))


def with_diagonal(rates: FloatArray) -> FloatArray:
    """Complete off-diagonal rates to rows that sum to 1."""
    table = rates.copy()
    np.fill_diagonal(table, 0.0)
    np.fill_diagonal(table, 1 - table.sum(axis=1))
    return table


def with_diagonal_errors(errors: FloatArray) -> FloatArray:
    """Complete errors of off-diagonal rates, independent of each other, with those of what they leave."""
    table = errors.copy()
    np.fill_diagonal(table, 0.0)
    np.fill_diagonal(table, np.sqrt((table**2).sum(axis=1)))
    return table


def _labels_at_top(
    score: FloatArray, codes: IntArray, weights: FloatArray, wanted: float, k: int
) -> FloatArray:
    """Shares of the observed classes among the highest scores, of so much weight in all; equal scores enter together.

    Half a row of each class is added, so that few rows rule nothing out.
    """
    _, position = np.unique(-score, return_inverse=True)
    pooled = np.bincount(position, weights)
    taken = np.clip(wanted - (np.cumsum(pooled) - pooled), 0, pooled) / pooled
    counts = np.bincount(codes, weights * taken[position], minlength=k) + 0.5
    return np.asarray(counts / counts.sum())


def _contradicted(scores: FloatArray, codes: IntArray, weights: FloatArray) -> FloatArray:
    """Share of each observed class among the rows that the scores give to each class, k×k."""
    k = scores.shape[1]
    likeliest = np.argmax(scores - np.average(scores, axis=0, weights=weights), axis=1)
    counts = np.bincount(likeliest * k + codes, weights, minlength=k * k).reshape(k, k) + 0.5
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def consistent(
    transition: FloatArray, observed: FloatArray, *, is_sure: bool = False
) -> NoiseModel:
    """Return these flips with the priors that explain the observed proportions, halved until there are such priors.

    Flips are halved, too, where labels would tell next to nothing of the true class: by the
    geometric mean of the k − 1 eigenvalues of the transition beside 1, if the features surely
    predict the labels, and else by their product, as rates of many classes that are read off chance
    make much of it.
    """
    k, identity = len(observed), np.eye(len(observed))
    least = _LEAST_TOLD ** (k - 1) if is_sure else _LEAST_TOLD
    for kept in (1.0, 0.5, 0.25, 0.125):
        candidate = identity + kept * (transition - identity)
        if np.linalg.det(candidate) > least:
            priors = np.linalg.solve(candidate.T, observed)
            if (priors > _SMALLEST_SHARE_LEFT * observed).all():
                return NoiseModel(candidate, priors / priors.sum())
    return NoiseModel(identity, observed)
