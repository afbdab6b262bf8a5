"""Drop directions of the scores that are leakage of the labels alone.

If a fit explains nothing, leaving row i out moves its score against its own label, by
−Hᵢtᵢ/(1 − Hᵢ). Along most directions of the scores that is small. But with more classes than
features (or than directions with a signal) it is all there is along some directions, and a
calibration would take it for certainty. So directions whose correlation with the labels is below
−3 standard errors are dropped.
"""

from __future__ import annotations

import numpy as np

from unflip._utils.typing import FloatArray

_CONTRADICTION = 3.0  # standard errors; a false alarm has probability 0.1%


def projection_onto_agreeing(
    of_scores: FloatArray, common: FloatArray, of_labels: FloatArray, n_effective: float
) -> FloatArray | None:
    """Return the projection onto directions that do not contradict the labels; None if all do not.

    Parameters
    ----------
    of_scores, common, of_labels : ndarray of shape (r, r)
        Covariances of the scores, of scores and labels, and of the labels.
    n_effective : float
        Effective sample size.
    """
    powers, axes = np.linalg.eigh(of_scores)
    agreement = ((common @ axes) * axes).sum(axis=0)
    label_powers = ((of_labels @ axes) * axes).sum(axis=0)
    error = np.sqrt(np.maximum(powers * label_powers, 0) / n_effective)
    is_kept = agreement >= -_CONTRADICTION * error
    if is_kept.all():
        return None
    kept = axes[:, is_kept]
    return np.asarray(kept @ kept.T)
