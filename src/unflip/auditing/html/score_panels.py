"""Histograms of the scores by observed class, with the counts that the noise model expects.

Bars count the rows of an observed class by the log-odds of a true class. Lines are expected counts:
a row belongs to true class a with P(a | row), and has label b with probability T_ab. Where bars and
line differ, the labels contradict the noise model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.special import logit

from unflip._utils.typing import FloatArray
from unflip.auditing.evidence import Evidence

#: Most classes with a panel each; with more, heat maps are easier to read. A choice.
MOST_PANELS = 6

_LEAST_PROBABILITY = 1e-6  # probabilities are clipped to this distance from 0 and 1
_POINTS_PER_BIN = 6  # of a line
# Probabilities to mark on the axis, the most important first.
_MARKS = (0.5, 0.1, 0.9, 0.01, 0.99, 0.001, 0.999, 1e-4, 1 - 1e-4, 1e-5, 1 - 1e-5)


@dataclass(frozen=True, eq=False)
class ScorePanel:
    """Rows by the log-odds of one class: those labelled with it, and the others.

    Attributes
    ----------
    code : int
        The class.
    low, high : float
        Ends of the axis, in log-odds.
    counts : ndarray of shape (2, n_bins)
        Number of rows with another label, and with the label of the class.
    expected : ndarray of shape (2, n_points)
        Expected number of rows per bar, at the centres of equal intervals.
    marks : list of float
        Probabilities to mark on the axis.
    """

    code: int
    low: float
    high: float
    counts: FloatArray
    expected: FloatArray
    marks: list[float]


def score_panels(evidence: Evidence) -> list[ScorePanel]:
    """Return one panel for two classes, one for each of a few classes, and none for many."""
    k = len(evidence.classes)
    if k > MOST_PANELS:
        return []
    return [_panel(evidence, code) for code in ([1] if k == 2 else range(k))]


def _panel(evidence: Evidence, code: int) -> ScorePanel:
    probabilities = evidence.probabilities[evidence.labelled]
    codes = evidence.codes[evidence.labelled]
    clipped = np.clip(probabilities[:, code], _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)
    scores = logit(clipped)
    low, high = _ends(scores)
    n_bins = int(np.clip(2 * np.cbrt(len(scores)), 8, 40))  # Rice's rule, within limits
    inside = np.clip(scores, low, high)
    labelled = (codes == code).astype(float)
    likely = probabilities @ evidence.noise.model.transition[:, code]
    counts = [
        np.histogram(inside, n_bins, (low, high), weights=share)[0]
        for share in (1 - labelled, labelled)
    ]
    expected = [
        _smooth_counts(inside, share, n_bins, (low, high)) for share in (1 - likely, likely)
    ]
    return ScorePanel(
        code, low, high, np.array(counts), np.array(expected), list(_marks(low, high))
    )


def _ends(scores: FloatArray) -> tuple[float, float]:
    # 0.2% of the rows on either side go into the outermost bars.
    low, high = np.quantile(scores, [0.002, 1 - 0.002])
    margin = max(0.03 * (high - low), 0.25)
    return float(low - margin), float(high + margin)


def _smooth_counts(
    scores: FloatArray, share: FloatArray, n_bins: int, ends: tuple[float, float]
) -> FloatArray:
    """Return the number of rows per bar on a fine grid, smoothed over about a bar."""
    fine, _ = np.histogram(scores, _POINTS_PER_BIN * n_bins, ends, weights=share)
    smooth = gaussian_filter1d(fine, sigma=_POINTS_PER_BIN / 2, mode="reflect")
    return np.asarray(_POINTS_PER_BIN * smooth)


def _marks(low: float, high: float) -> Iterator[float]:
    """Yield probabilities to mark on the axis, with enough space between them."""
    taken: list[float] = []
    margin = 0.05 * (high - low)
    gap = 1 / 7 * (high - low)
    for mark in _MARKS:
        place = float(logit(mark))
        if low + margin <= place <= high - margin and all(
            abs(place - other) >= gap for other in taken
        ):
            taken.append(place)
            yield mark
