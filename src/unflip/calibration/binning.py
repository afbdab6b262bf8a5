r"""Binning of scores: a few thousand weighted scores that replace very many in smooth sums.

Each bin holds neighbouring scores of one label. Two scores replace them, one standard deviation
above and below their mean, with half of their weight each. Sums of a smooth function then differ
only from the third moment within a bin on, and bins are narrow. In the tails, where scores are far
apart, a bin is a single row. Further in, a bin holds at most 1/32 of the rows that are further out,
and spans at most 1/1024 of the range between the tails, so no bin spans the gap between two
classes.
"""

from __future__ import annotations

import numpy as np
from array_api_compat import array_namespace

from unflip._utils.arrays import as_numpy, like, take
from unflip._utils.typing import Array, FloatArray, IntArray
from unflip.labels.noise import Channel

#: Number of rows from which on sorting costs little compared with the sums of a calibration: a fit
#: to 131,072 rows takes twice as long without bins.
MIN_ROWS_TO_BIN = 2**16
# Rows of a random sample that directions and slope are fitted to, if there are more.
_SAMPLE_ROWS = 2**17
# Rows of each tail that are bins of their own. This and the next are choices between the number of
# bins and their error: half and double move a fit to 131,072 rows by less than 1e-8.
_TAIL_ROWS = 256
# Ratio of the ranks at which two successive bins begin, as counted from the tail.
_RANK_RATIO = 1 + 1 / 32


def rows_to_fit(
    scores: Array, codes: Array, share: Array, noise: Channel
) -> tuple[Array, Array, Array]:
    """Return scores, codes and shares to fit to: all rows, or for very many, bins or a sample."""
    n_rows = scores.shape[0]
    is_binary = noise.transition.shape == (2, 2) and scores.shape[1] == 1
    if n_rows >= MIN_ROWS_TO_BIN and is_binary:
        values, labels, weights = binned(scores[:, 0], codes, share)
        return values[:, None], labels, weights
    if n_rows <= _SAMPLE_ROWS:
        return scores, codes, share
    sample = like(random_rows(n_rows, _SAMPLE_ROWS), scores)
    weights = take(share, sample)
    return (
        take(scores, sample),
        take(codes, sample),
        weights / array_namespace(weights).sum(weights),
    )


def binned(scores: Array, codes: Array, share: Array) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return binned scores of two classes, with their codes and shares, (q,) each.

    Parameters
    ----------
    scores : array of shape (n,)
        Whitened scores of the rows.
    codes : array of shape (n,)
        Observed label of each row, 0 or 1.
    share : array of shape (n,)
        Share of each row in the total weight.
    """
    order = array_namespace(scores).argsort(scores)
    ordered = take(scores, order)
    labels = take(codes, order)
    weights = take(share, order)
    values = []
    shares = []
    for code in (0, 1):
        has_label = labels == code
        label_values, label_shares = _bins_of_label(ordered[has_label], weights[has_label])
        values.append(label_values)
        shares.append(label_shares)
    binned_codes = np.repeat([0, 1], [len(label_values) for label_values in values])
    return np.concatenate(values), binned_codes, np.concatenate(shares)


def evenly_spaced(values: Array, count: int) -> Array:
    """Return the indices of about `count` of the values, evenly spaced in their sorted order."""
    return array_namespace(values).argsort(values)[:: -(-values.shape[0] // count)]


def random_rows(n: int, count: int) -> IntArray:
    """Return sorted indices of `count` random rows out of n, or of all rows if n is smaller.

    The choice depends on n and `count` alone. A choice by the values would change with rounding
    errors, and one by position would depend on the order of the rows.
    """
    if n <= count:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).permutation(n)[:count])


def _bins_of_label(ordered: Array, weights: Array) -> tuple[FloatArray, FloatArray]:
    """Return two scores for each bin of the ordered scores of one label, and their weights."""
    edges = like(_edges(ordered), ordered)
    weight = _sums_between(weights, edges)
    divisor = np.where(weight > 0, weight, 1.0)
    mean = _sums_between(weights * ordered, edges) / divisor
    second_moment = _sums_between(weights * ordered**2, edges) / divisor
    spread = np.sqrt(np.maximum(second_moment - mean**2, 0.0))
    return np.concatenate([mean - spread, mean + spread]), np.concatenate([weight, weight]) / 2


def _sums_between(values: Array, edges: Array) -> FloatArray:
    """Return the sum of the values from each edge to the next, on the host."""
    running = array_namespace(values).cumulative_sum(values, include_initial=True)
    return np.diff(as_numpy(take(running, edges)))


def _edges(ordered: Array) -> IntArray:
    """Return the positions at which bins of ordered scores begin, and the number of scores."""
    n = int(ordered.shape[0])
    tail = min(_TAIL_ROWS, n // 2)
    n_bins = int(np.log(max(n / 2 / _TAIL_ROWS, 1.0)) / np.log(_RANK_RATIO)) + 1
    inner = np.minimum(_TAIL_ROWS * _RANK_RATIO ** np.arange(n_bins), n / 2).astype(int)
    lower = np.append(np.arange(tail), inner)
    by_rank = np.concatenate([lower, n - lower])
    if n <= 2 * tail:
        return np.unique(by_rank)
    levels = np.linspace(float(ordered[tail]), float(ordered[n - 1 - tail]), 1024 + 1)
    by_value = array_namespace(ordered).searchsorted(ordered, like(levels, ordered))
    return np.unique(np.concatenate([by_rank, as_numpy(by_value)]))
