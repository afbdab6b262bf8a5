r"""Agreement between annotators, corrected for chance: the kappas of Cohen and Fleiss, and alpha.

Each measure compares the share of pairs of votes that differ with the share to expect by chance:

.. math:: 1 - \frac{D_\text{observed}}{D_\text{chance}}.

It is 1 if all votes on a row agree, near 0 if votes are independent of the row, and negative if
votes agree less than by chance. It is undefined, and NaN here, if no row has a pair of votes, or if
all votes in these pairs are for one class. Classes have no order.

References
----------
Cohen (1960), A coefficient of agreement for nominal scales. Educational and Psychological
Measurement 20(1), 37–46. Fleiss (1971), Measuring nominal scale agreement among many raters.
Psychological Bulletin 76(5), 378–382. Krippendorff (2011), Computing Krippendorff's
alpha-reliability. University of Pennsylvania.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, kron

from unflip._utils.typing import FloatArray, IntArray, SparseArray


def cohen_kappas(table: SparseArray, n_classes: int) -> FloatArray:
    """Return Cohen's kappa of each pair of annotators, over the rows that both labelled.

    With the counts C_cd of the pairs of votes (c of the first annotator, d of the second) on the
    same row, D_observed is the share of pairs with c ≠ d. D_chance is this share for independent
    votes with the class proportions of each annotator in these pairs: the row and column sums of C.

    An annotator's votes on a row count once for each vote of the other annotator on it: with two
    votes and one, there are two pairs.

    Parameters
    ----------
    table : sparse array of shape (n, w·k)
        Number of votes on each row; column a·k + c is for class c of annotator a.
    n_classes : int
        k.

    Returns
    -------
    ndarray of shape (w, w)
        NaN where undefined. On the diagonal, each vote is compared with itself: 1, or NaN if all
        votes of the annotator are for one class.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> table = csr_array([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 0, 1]])
    >>> cohen_kappas(table, n_classes=2)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    w = table.shape[1] // max(n_classes, 1)  # without votes, there are no classes
    votes = table @ kron(eye_array(w), np.ones((n_classes, 1)), format="csr")
    columns = table.tocsc()
    pairs = np.zeros((w, w))
    agreeing = np.zeros((w, w))
    by_chance = np.zeros((w, w))  # pairs² · P(two independent votes agree)
    for label in range(n_classes):
        with_label = columns[:, label::n_classes]
        row_sums = (with_label.T @ votes).toarray()  # Σ_d C_cd for c = label
        pairs += row_sums
        agreeing += (with_label.T @ with_label).toarray()
        by_chance += row_sums * row_sums.T
    kappas = _kappas(pairs, agreeing, by_chance)
    n_used = np.count_nonzero(table.sum(axis=0).reshape(w, n_classes), axis=1)
    np.fill_diagonal(kappas, np.where(n_used > 1, 1.0, np.nan))
    return kappas


def kappas_with_others(
    row: IntArray, annotator: IntArray, label: IntArray, counts: FloatArray
) -> FloatArray:
    """Return Cohen's kappa of each annotator's votes and all other votes on the same rows.

    In contrast to `cohen_kappas`, time and memory are linear in the number of votes.

    Parameters
    ----------
    row, annotator, label : ndarray of int, shape (n_votes,)
        Row, index of the annotator and index of the class of each vote.
    counts : ndarray of shape (n, k)
        Number of votes of each row for each class.

    Returns
    -------
    ndarray of shape (w,)
        NaN where undefined.

    Examples
    --------
    >>> votes = np.array([[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 1], [2, 0, 1], [2, 1, 1]])
    >>> kappas_with_others(*votes.T, np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 2.0]])).round(2)
    array([0.4, 0.4])
    """
    w = int(annotator.max(initial=-1)) + 1
    k = counts.shape[1]
    places, place = np.unique(row * w + annotator, return_inverse=True)
    own = np.bincount(place * k + label, minlength=len(places) * k).reshape(-1, k)
    others = (counts[places // max(w, 1)] - own)[place]
    votes = csr_array((np.ones(len(row)), (annotator * k + label, np.arange(len(row)))))
    votes.resize(w * k, len(row))
    pairs = np.asarray(votes @ others).reshape(w, k, k)
    n_pairs = pairs.sum(axis=(1, 2))
    agreeing = np.trace(pairs, axis1=1, axis2=2)
    by_chance = (pairs.sum(axis=1) * pairs.sum(axis=2)).sum(axis=1)
    return _kappas(n_pairs, agreeing, by_chance)


def fleiss_kappa(counts: FloatArray) -> float:
    """Return Fleiss' kappa over the rows with at least two votes, whose number may vary.

    D_observed is the mean over these rows of the share of pairs of votes that differ: each row
    counts the same. D_chance is this share for two votes drawn independently with the class
    proportions of all votes on these rows.

    Parameters
    ----------
    counts : ndarray of shape (n, k)
        Number of votes of each row for each class.

    Returns
    -------
    float
        NaN where undefined.

    Examples
    --------
    >>> round(fleiss_kappa(np.array([[2, 0], [1, 1], [0, 2], [0, 2]])), 3)
    0.467
    """
    rows = _with_pairs(counts)
    totals = rows.sum(axis=0)
    if np.count_nonzero(totals) < 2:
        return np.nan
    n_votes = rows.sum(axis=1)
    observed = np.mean(_differing_pairs(rows) / (n_votes * (n_votes - 1)))
    chance = _differing_pairs(totals) / totals.sum() ** 2
    return float(1 - observed / chance)


def krippendorff_alpha(counts: FloatArray) -> float:
    """Return Krippendorff's alpha for classes without order, over rows with at least two votes.

    D_observed is the mean over the votes on these rows of the share of the other votes on the row
    that differ: each vote counts the same. D_chance is the share of pairs that differ among all
    pairs of these votes, on the same row or not.

    Parameters
    ----------
    counts : ndarray of shape (n, k)
        Number of votes of each row for each class.

    Returns
    -------
    float
        NaN where undefined.

    Examples
    --------
    >>> round(krippendorff_alpha(np.array([[2, 0], [1, 1], [0, 2], [0, 2]])), 3)
    0.533
    """
    rows = _with_pairs(counts)
    totals = rows.sum(axis=0)
    if np.count_nonzero(totals) < 2:
        return np.nan
    differing = _differing_pairs(rows) / (rows.sum(axis=1) - 1)
    n_votes = totals.sum()
    observed = differing.sum() / n_votes
    chance = _differing_pairs(totals) / (n_votes * (n_votes - 1))
    return float(1 - observed / chance)


def _kappas(pairs: FloatArray, agreeing: FloatArray, by_chance: FloatArray) -> FloatArray:
    """Return Cohen's kappa from numbers of pairs, of those that agree, and pairs² · P(agree)."""
    chance = pairs**2 - by_chance
    ratio = np.full(pairs.shape, np.nan)
    np.divide(pairs * (pairs - agreeing), chance, out=ratio, where=chance > 0)
    return 1 - ratio


def _with_pairs(counts: FloatArray) -> FloatArray:
    """Return the rows with at least two votes."""
    several: NDArray[np.bool_] = counts.sum(axis=1) > 1
    return counts[several]


def _differing_pairs(counts: FloatArray) -> FloatArray:
    """Return the number of ordered pairs of votes for different classes, by row."""
    others = counts.sum(axis=-1, keepdims=True) - counts
    return np.asarray((counts * others).sum(axis=-1))
