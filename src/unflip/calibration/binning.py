r"""Scores of very many rows, pooled: a few thousand of which smooth sums are nearly the same.

Neighbouring scores of one label become two, a standard deviation above and below their mean, with
half of their weight each. Sums of a smooth function over them differ from the third moment within a
group on, and groups are narrow: in the tails, where scores are far apart, a group is a single row;
further in it is at most 1/32 of the rows that are further out, and at most 1/1024 of the range of
what is no tail, so that no group spans the gap between two classes.
"""

from __future__ import annotations

import numpy as np
from array_api_compat import array_namespace

from unflip._utils.arrays import as_numpy, like, taken
from unflip._utils.typing import Array, FloatArray, IntArray

MANY = 2**16  # rows, from which on sorting them is little beside a dozen sums
_SINGLE = 256  # rows of each tail that are not pooled
_GROWTH, _LEVELS = 1 + 1 / 32, 1025


def binned(scores: Array, codes: Array, share: Array) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return scores, codes and shares, (q,) each, that stand for those of very many rows of two classes.

    Parameters
    ----------
    scores : array of shape (n,)
        Scores of the rows, whitened.
    codes, share : array of shape (n,)
        Label of each, 0 or 1, and its share of all weight.
    """
    xp = array_namespace(scores)
    order = xp.argsort(scores)
    ordered, labels, weights = (taken(values, order) for values in (scores, codes, share))
    parts = [_grouped(ordered[labels == code], weights[labels == code]) for code in (0, 1)]
    lengths = [len(values) for values, _ in parts]
    values, weights = (np.concatenate(both) for both in zip(*parts, strict=True))
    return values, np.repeat([0, 1], lengths), weights


def evenly(values: Array, count: int) -> Array:
    """Return indices of about so many of the values, or of all if these are no more, evenly spaced in their order."""
    return array_namespace(values).argsort(values)[:: -(-values.shape[0] // count)]


def random_rows(n: int, count: int) -> IntArray:
    """Return positions of so many of n rows, or of all, in order: drawn at random, so that no order of rows matters.

    They are the same ones each time, whatever the values: a choice by these would move with
    rounding errors.
    """
    return np.sort(np.random.default_rng(0).permutation(n)[:count]) if n > count else np.arange(n)


def _grouped(ordered: Array, weights: Array) -> tuple[FloatArray, FloatArray]:
    """Return two scores for each group of neighbours among those of one label, and their weights."""
    edges = like(_edges(ordered), ordered)
    weight, first, second = (
        _between(values, edges) for values in (weights, weights * ordered, weights * ordered**2)
    )
    mean = first / np.where(weight > 0, weight, 1.0)
    spread = np.sqrt(np.maximum(second / np.where(weight > 0, weight, 1.0) - mean**2, 0.0))
    return np.concatenate([mean - spread, mean + spread]), np.concatenate([weight, weight]) / 2


def _between(values: Array, edges: Array) -> FloatArray:
    """Add up the values from each edge to the next, on the host."""
    running = array_namespace(values).cumulative_sum(values, include_initial=True)
    return np.diff(as_numpy(taken(running, edges)))


def _edges(ordered: Array) -> IntArray:
    """Positions at which groups of ordered scores begin, and their number."""
    n = int(ordered.shape[0])
    tail = min(_SINGLE, n // 2)
    n_groups = int(np.log(max(n / 2 / _SINGLE, 1.0)) / np.log(_GROWTH)) + 1
    inner = np.minimum(_SINGLE * _GROWTH ** np.arange(n_groups), n / 2).astype(int)
    lower = np.append(np.arange(tail), inner)
    by_rank = np.concatenate([lower, n - lower])
    if n <= 2 * tail:
        return np.unique(by_rank)
    levels = np.linspace(float(ordered[tail]), float(ordered[n - 1 - tail]), _LEVELS)
    by_value = array_namespace(ordered).searchsorted(ordered, like(levels, ordered))
    return np.unique(np.concatenate([by_rank, as_numpy(by_value)]))
