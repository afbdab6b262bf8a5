"""Drop directions of the scores that are leakage of the labels alone.

If a fit explains nothing, leaving row i out moves its score against its own label, by
−Hᵢtᵢ/(1 − Hᵢ). Along most directions of the scores this is small. With more classes than features
(or than directions with a signal), some directions hold nothing else, and a calibration would
take it for certainty. So directions whose correlation with the labels is below −3 standard errors
are dropped.
"""

from __future__ import annotations

import numpy as np

from unflip._utils.typing import FloatArray

# Standard errors. Without leakage a direction falls below −3 with probability 0.1% (normal tail).
_CONTRADICTION = 3.0


def projection_onto_agreeing(
    score_covariance: FloatArray,
    cross_covariance: FloatArray,
    label_covariance: FloatArray,
    n_effective: float,
) -> FloatArray | None:
    """Return the projection onto directions that agree with the labels; None if all do.

    Parameters
    ----------
    score_covariance, cross_covariance, label_covariance : ndarray of shape (r, r)
        Covariances of the scores, of scores and labels, and of the labels.
    n_effective : float
        Effective sample size.

    Examples
    --------
    >>> projection_onto_agreeing(np.eye(2), np.diag([0.5, -0.5]), np.eye(2), 100.0)
    array([[1., 0.],
           [0., 0.]])
    """
    score_powers, axes = np.linalg.eigh(score_covariance)
    agreement = ((cross_covariance @ axes) * axes).sum(axis=0)
    label_powers = ((label_covariance @ axes) * axes).sum(axis=0)
    standard_error = np.sqrt(np.maximum(score_powers * label_powers, 0) / n_effective)
    is_kept = agreement >= -_CONTRADICTION * standard_error
    if is_kept.all():
        return None
    kept_axes = axes[:, is_kept]
    return np.asarray(kept_axes @ kept_axes.T)
