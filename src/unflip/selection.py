r"""Choosing the ridge penalty from noisy labels alone, by leave-one-out scores.

Those of the squared loss are exact. Other losses have approximate ones (`unflip.solvers`), are judged by the same
alignment, and where the scale counts by their own loss instead of the squared error (`unflip.rounds`).

Which score is best depends on how it is read, so there are two criteria. Both are right under class-conditional label
noise because row i's label has no part in its leave-one-out score sᵢ and flips depend on the true class only.

**Alignment**, where the scale of the scores does not matter (a threshold fitted to them, or the sign without an
intercept): the correlation of sᵢ with the targets tᵢ. With class means m± and variance σ² of the scores,

.. math:: \mathrm{Cov}(t, s) = \tfrac12 \mathrm{Cov}(t, y)\,(m_+ - m_-), \qquad
          \mathrm{Var}(s) = \sigma^2 + \pi_- \pi_+ (m_+ - m_-)^2:

whatever the flip rates, it grows with (m₊ − m₋)/σ and with nothing else that γ changes. The γ that maximises it
maximises the accuracy on CLEAN labels. (The leave-one-out error rate on the observed labels is blurred by a floor of
flips.) Without an intercept the origin is the midpoint of the class means, and the same holds for the uncentred cosine,
E[t·y]·m/√(ν·E[t²]).

**Squared error**, where the sign of the score plus an intercept decides, so that its scale counts: the mean of
(tᵢ − sᵢ)². Flips add to it only Var(t | x), which no γ changes, so the minimum is that of the distance to E[t | x].
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from unflip._typing import FloatArray
from unflip.rows import DistinctRows
from unflip.spectrum import LeftOut, Spectrum

AnyLeftOut = TypeVar("AnyLeftOut", bound=LeftOut)

#: Penalties tried, in units of the typical eigenvalue of the covariance.
RELATIVE_REGS = np.logspace(-4, 4, 50)
_COARSENESS = 4
_SMALLEST_POWER = 1e-10


def candidate_regs(spectrum: Spectrum) -> FloatArray:
    """Penalties worth trying for these rows: none at which leave-one-out scores cannot be relied on."""
    regs = spectrum.scale * RELATIVE_REGS
    return np.asarray(regs[regs >= min(spectrum.least_reg, regs[-1])])


def coarse_regs(spectrum: Spectrum) -> FloatArray:
    """Every fourth of the penalties worth trying, over the same range: for losses of which each costs a fit."""
    return candidate_regs(spectrum)[::_COARSENESS]


def without_copies(left_out: AnyLeftOut, rows: DistinctRows) -> AnyLeftOut:
    """Leave copies of a row out together, as far as they should."""
    share = rows.leaving_share
    if (share == 1).all():
        return left_out
    return left_out.of_copies(np.arange(len(share)), left_out.targets, share)


def best_reg(scores: FloatArray, targets: FloatArray, weights: FloatArray, *, scale_free: bool, centred: bool) -> int:
    """Return the index of the penalty with the best leave-one-out scores.

    Parameters
    ----------
    scores : ndarray of shape (m, n_regs, n_targets)
        Label-free leave-one-out scores of the distinct rows.
    targets : ndarray of shape (m, n_targets)
        Targets of each distinct row.
    weights : ndarray of shape (m,)
        Weight of each distinct row.
    scale_free : bool
        Whether the scores are read in a way that their scale does not change: judge alignment, else squared error.
    centred : bool
        Whether alignment is about the means (with an intercept) or about the origin.
    """
    if scale_free:
        return int(np.argmax(loo_alignment(scores, targets, weights, centred=centred)))
    return int(np.argmin(loo_squared_error(scores, targets, weights)))


def loo_alignment(scores: FloatArray, targets: FloatArray, weights: FloatArray, *, centred: bool) -> FloatArray:
    """Correlation (or, not centred, cosine) of scores and targets for each penalty, all targets taken together.

    For several targets the covariances and the variances are summed over them, which no rotation of them changes.
    """
    share = weights / weights.sum()
    if centred:
        scores = scores - np.tensordot(share, scores, axes=1)
        targets = targets - share @ targets
    agreement = np.tensordot(share[:, None] * targets, scores, axes=([0, 1], [0, 2]))
    power = np.einsum("m,mgt,mgt->g", share, scores, scores)
    norms = np.sqrt(power * float((share @ targets**2).sum()))
    return np.asarray(agreement / np.where(norms > 0, norms, 1.0))


def canonical_correlation(scores: FloatArray, labels: FloatArray, weights: FloatArray, *, centred: bool) -> float:
    """Root mean square of the canonical correlations of scores and labels, (m, r) each.

    It compares fits to different targets: unlike `loo_alignment`, it does not change with linear maps of the scores,
    and flips among several classes are such a map of what the scores of true labels would be.
    """
    share = weights / weights.sum()
    if centred:
        scores, labels = scores - share @ scores, labels - share @ labels
    common = (_whitened(scores, share).T * share) @ _whitened(labels, share)
    return float(np.sqrt((common**2).sum() / labels.shape[1]))


def _whitened(columns: FloatArray, share: FloatArray) -> FloatArray:
    """Return columns in coordinates that are uncorrelated with power 1; those without power are dropped."""
    powers, axes = np.linalg.eigh((columns.T * share) @ columns)
    kept = powers > _SMALLEST_POWER * powers[-1]
    return np.asarray(columns @ (axes[:, kept] / np.sqrt(powers[kept])))


def loo_squared_error(scores: FloatArray, targets: FloatArray, weights: FloatArray) -> FloatArray:
    """Mean squared distance of the scores to the targets, for each penalty."""
    share = weights / weights.sum()
    return np.asarray(np.tensordot(share, (targets[:, None, :] - scores) ** 2, axes=1).sum(axis=-1))
