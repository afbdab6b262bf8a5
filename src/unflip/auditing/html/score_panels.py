"""What an audit's scores look like by observed class, beside what the noise model expects of them.

Bars count the rows of an observed class by the log-odds of a true class. A line is what the fitted
model expects there: each row counts in true class a with P(a | row), and the noise model sends a
share T_ab of it to observed class b. Where bars and line part, the labels contradict the model at
that score.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.special import logit

from unflip._utils.typing import FloatArray
from unflip.auditing.evidence import Evidence

MOST_PANELS = 12

_SURE = 1e-6  # probabilities nearer to 0 or 1 are shown there
_OUTLYING = 0.002  # share of the rows on either side that goes into the outermost bar
_FEWEST_BINS, _MOST_BINS = 8, 40
_FINE = 6  # points of a line for each bar
_MARKS = (0.5, 0.1, 0.9, 0.01, 0.99, 0.001, 0.999, 1e-4, 1 - 1e-4, 1e-5, 1 - 1e-5)
_MARK_GAP = 1 / 7  # least distance of two marks on the axis, as a share of it
_MARK_MARGIN = 0.05  # and of a mark from its ends


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
        Rows that are labelled otherwise, and rows labelled with the class.
    expected : ndarray of shape (2, n_points)
        What the model expects of them, in rows for each bar, at the middles of equal intervals.
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
    """Return one panel for two classes, otherwise one for each of the `MOST_PANELS` largest observed classes."""
    k = len(evidence.classes)
    if k == 2:
        return [_panel(evidence, 1)]
    sizes = np.bincount(evidence.codes[evidence.labelled], minlength=k)
    largest = np.argsort(-sizes, kind="stable")[:MOST_PANELS]
    return [_panel(evidence, code) for code in sorted(largest.tolist())]


def _panel(evidence: Evidence, code: int) -> ScorePanel:
    probabilities, codes = (
        evidence.probabilities[evidence.labelled],
        evidence.codes[evidence.labelled],
    )
    scores = logit(np.clip(probabilities[:, code], _SURE, 1 - _SURE))
    low, high = _ends(scores)
    n_bins = int(np.clip(2 * np.cbrt(len(scores)), _FEWEST_BINS, _MOST_BINS))
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
    low, high = np.quantile(scores, [_OUTLYING, 1 - _OUTLYING])
    margin = max(0.03 * (high - low), 0.25)
    return float(low - margin), float(high + margin)


def _smooth_counts(
    scores: FloatArray, share: FloatArray, n_bins: int, ends: tuple[float, float]
) -> FloatArray:
    """Rows for each bar, on a fine grid, smoothed over about a bar."""
    fine, _ = np.histogram(scores, _FINE * n_bins, ends, weights=share)
    return np.asarray(_FINE * gaussian_filter1d(fine, sigma=_FINE / 2, mode="reflect"))


def _marks(low: float, high: float) -> Iterator[float]:
    """Yield probabilities within the axis, the roundest first, none too near to another."""
    taken: list[float] = []
    margin = _MARK_MARGIN * (high - low)
    for mark in _MARKS:
        place = float(logit(mark))
        if low + margin <= place <= high - margin and all(
            abs(place - other) >= _MARK_GAP * (high - low) for other in taken
        ):
            taken.append(place)
            yield mark
